"""How the types of `types.py` lie on disk: plain arrays that can be memory-mapped, and JSON beside them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from calque.circumstances import with_circumstances
from calque.documents import parse_json, read_text, shaped
from calque.errors import BadInput
from calque.files import (
    atomic_directory,
    atomic_file,
    check_results,
    check_sealed,
    file_digest,
    read_json,
    seal,
    write_json,
    write_text,
)
from calque.types import Bitext, Items, Result, Sentences, Vocabulary, WordPairs, check_places

_KIND = "word pairs"
_AGAIN = "make the folder again"


def save_array(path: Path, array: NDArray[Any]) -> None:
    """One .npy file, whole or not at all."""
    with atomic_file(path) as partial, partial.open("wb") as handle:
        np.save(handle, array, allow_pickle=False)


def load_array(path: Path) -> NDArray[Any]:
    """One .npy file, memory-mapped."""
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)  # type: ignore[no-any-return]
    except FileNotFoundError:
        raise BadInput("no such file", where=path) from None
    except Exception as error:  # NumPy gives a header to Python's own parser, which raises many things
        raise BadInput(f"not a readable array: {error}", where=path, remedy=_AGAIN) from None


def save_pairs(folder: Path, pairs: WordPairs) -> None:
    """Write links and their bitext as one folder; only the words that occur are kept."""
    used = np.unique(np.concatenate([pairs.bitext.source.ids, pairs.bitext.target.ids]))
    place = np.zeros(len(pairs.bitext.source.vocabulary), np.int32)
    place[used] = np.arange(len(used), dtype=np.int32)
    strings = pairs.bitext.source.vocabulary.strings
    words = Vocabulary.of(strings[i] for i in used)
    with atomic_directory(folder) as partial:
        save_array(partial / "vocabulary.bytes.npy", words.blob)
        save_array(partial / "vocabulary.offsets.npy", words.offsets)
        for name, side in (("source", pairs.bitext.source), ("target", pairs.bitext.target)):
            save_array(partial / f"{name}.ids.npy", place[side.ids])
            save_array(partial / f"{name}.offsets.npy", side.offsets)
            if side.tags is not None:
                save_array(partial / f"{name}.tags.npy", side.tags)
        save_array(partial / "line.npy", pairs.bitext.line)
        save_array(partial / "links.npy", np.stack([pairs.sentence, pairs.source, pairs.target], 1))
        save_array(partial / "score.npy", pairs.score)
        write_json(partial / "pairs.json", _describe(pairs))
        seal(partial)


def _describe(pairs: WordPairs) -> dict[str, Any]:
    return {
        "kind": _KIND,
        "version": 1,
        "languages": list(pairs.languages),
        "unit": pairs.bitext.source.unit,
        "linker": pairs.linker,
        "origin": pairs.bitext.origin,
        "dropped": dict(pairs.bitext.dropped),
        "sentences": len(pairs.bitext),
        "links": len(pairs),
    }


def load_pairs(folder: Path) -> WordPairs:
    """Read what `save_pairs` wrote, memory-mapped."""
    if not (folder / "pairs.json").is_file():
        inside = sorted(path.parent.name for path in folder.glob("*/pairs.json")) if folder.is_dir() else []
        remedy = f"did you mean {folder / inside[-1]}?" if inside else "make it with `calque link`"
        raise BadInput("no word pairs here", where=folder, remedy=remedy)
    check_sealed(folder, "make it again with `calque link`")
    with shaped(folder, _AGAIN, what="its parts do not fit together"):
        return _pairs(folder, read_json(folder / "pairs.json"))


def _pairs(folder: Path, about: Mapping[str, Any]) -> WordPairs:
    words = Vocabulary(
        load_array(folder / "vocabulary.bytes.npy"), load_array(folder / "vocabulary.offsets.npy")
    ).checked()
    sides = []
    for name, language in zip(("source", "target"), about["languages"], strict=True):
        tags = folder / f"{name}.tags.npy"
        sides.append(
            Sentences(
                str(language),
                load_array(folder / f"{name}.ids.npy"),
                load_array(folder / f"{name}.offsets.npy"),
                words,
                load_array(tags) if tags.exists() else None,
                about["unit"],
            ).checked()
        )
    bitext = Bitext(
        sides[0], sides[1], load_array(folder / "line.npy"), str(about["origin"]), dict(about["dropped"])
    )
    links, score = load_array(folder / "links.npy"), load_array(folder / "score.npy")
    sentence, source, target = (links[:, column] for column in range(3))
    pairs = WordPairs(bitext, sentence, source, target, score, str(about["linker"]))
    _check(pairs)
    if len(pairs) != about["links"] or about["unit"] not in ("word", "piece"):
        raise BadInput(f"{len(pairs)} links of {about['links']} {about['unit']}s")
    return pairs


def _check(pairs: WordPairs) -> None:
    """Refuse links to what is not there, and sides that do not fit."""
    bitext, sentence = pairs.bitext, pairs.sentence
    check_places(bitext.line, 1 << 62, "lines")
    if not len(bitext.source) == len(bitext.target) == len(bitext.line):
        raise BadInput(f"{len(bitext.source)}, {len(bitext.target)} and {len(bitext.line)} sentences")
    check_places(sentence, len(bitext), "sentences of links")
    if (np.diff(sentence) < 0).any():
        raise BadInput("links out of order")
    for side, words in ((bitext.source, pairs.source), (bitext.target, pairs.target)):
        check_places(words, 1 << 31, "words of links")
        if (words >= side.lengths[sentence]).any():
            raise BadInput(f"links to words that are not there ({side.language})")
    if pairs.score.shape != sentence.shape or not np.isfinite(pairs.score).all():
        raise BadInput("scores that are not one number a link")


# ------------------------------------------------------------------------------------------- results


def result_line(result: Result) -> str:
    """One result as a line of JSON without the fields that say nothing."""
    empty = {field.name: field.default for field in fields(Result)}
    held = {key: value for key, value in asdict(result).items() if value != empty[key]}
    return json.dumps(held, ensure_ascii=False, sort_keys=True)


def save_results(path: Path, results: Iterable[Result]) -> None:
    """Write results.jsonl: sorted, without times, so that two equal runs give equal files.

    What the run has met that its last bits depend on goes into every signature.
    """
    told = (replace(one, signature=with_circumstances(one.signature)) for one in results)
    write_text(path, "".join(line + "\n" for line in sorted(map(result_line, told))))


def load_results(path: Path) -> list[Result]:
    """Read results.jsonl; a line that does not fit is named, one that was lost is missed."""
    if not path.is_file():
        raise BadInput("no results here", where=path, remedy="give a folder written by `calque measure`")
    check_results(path)
    # Lines end at line feeds alone: a name may hold other characters that end lines.
    lines = read_text(path).removesuffix("\n").split("\n")
    return [_result(line, path, number) for number, line in enumerate(lines, 1) if line or lines[1:]]


def _result(line: str, path: Path, number: int) -> Result:
    held = parse_json(line, path, line=number, remedy="measure again")
    with shaped(path, "measure again", what="not a result", line=number):
        for name in ("languages", "group"):
            if isinstance(held.get(name), list):
                held[name] = tuple(held[name])
        wrong = [name for name, value in held.items() if not _fits(value, _KINDS[name])]
        if wrong:
            raise BadInput(f"{wrong[0]} is {held[wrong[0]]!r}")
        return Result(**held)


#: Figures beyond it could not be drawn, nor be told in percent.
LARGEST = 1e100


def _kinds(told: Any) -> frozenset[type]:
    """The classes that a value of a field may have."""
    parts = [kind for part in get_args(told) for kind in _kinds(part)]
    if get_origin(told) is tuple:
        return frozenset({tuple})
    return frozenset(parts or {float: {float, int}}.get(told, {told}))


_KINDS = {name: _kinds(told) for name, told in get_type_hints(Result).items()}


def _fits(value: Any, kinds: frozenset[type]) -> bool:
    """Whether a value is such as the fields of a result have."""
    kind = type(value)
    if kind is tuple:
        return kind in kinds and len(value) == 2 and all(isinstance(one, str) for one in value)
    large = abs(value) >= 1 << 63 if kind is int else kind is float and LARGEST < abs(value) < math.inf
    return kind in kinds and not large


def save_items(folder: Path, items: Items) -> str:
    """Write per-item statistics under their own digest (safetensors); returns the digest."""
    import hashlib

    from safetensors.numpy import save

    columns: Mapping[str, NDArray[Any]] = {
        "cluster": items.cluster,
        **{f"key.{name}": column for name, column in items.keys.items()},
        **{f"value.{name}": column for name, column in items.values.items()},
    }
    data = save({name: np.ascontiguousarray(column) for name, column in columns.items()})
    digest = hashlib.sha256(data).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_file(folder / f"{digest}.safetensors") as partial:
        partial.write_bytes(data)
    return digest


def load_items(folder: Path, digest: str) -> Items:
    """Read per-item statistics by digest."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    path = items_path(folder, digest)
    if not path.is_file():
        raise BadInput("no such items file", where=path)
    if not file_digest(path).startswith(digest):
        raise BadInput("is damaged: it is named by what it held", where=path, remedy="measure again")
    with shaped(path, "measure again", what="not an items file"):
        try:
            columns = load_file(path)
        except (SafetensorError, OSError) as error:
            raise BadInput(str(error)) from None
        if len({column.shape for column in columns.values()}) != 1:
            raise BadInput("columns of different lengths")
        return Items(
            {name[4:]: column for name, column in columns.items() if name.startswith("key.")},
            columns["cluster"],
            {name[6:]: column for name, column in columns.items() if name.startswith("value.")},
        )


_DIGEST = re.compile(r"[0-9a-f]{8,64}")


def items_path(folder: Path, digest: str) -> Path:
    """Where items of this digest lie; results come from files, and what they name must stay in the folder."""
    if not _DIGEST.fullmatch(digest):
        raise BadInput(f"not the name of an items file: {digest!r}", where=folder)
    return folder / f"{digest}.safetensors"
