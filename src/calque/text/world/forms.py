"""The world in the forms that people's files have: a table of them, and what writes each."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from html import escape
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from calque.files import write_text
from calque.text.conllu import read_conllu
from calque.text.labelled.items import Tagged, TextPair
from calque.text.labelled.open import read_labelled
from calque.text.lines import bare_suffix
from calque.text.readers import TREEBANKS, BitextFormat, RawPair, guess_format, is_dataset, read_pairs

PARTS = ("train", "dev", "test")


# ----------------------------------------------------------------------------------------- items


def _conll(path: Path, sentences: Sequence[Tagged]) -> None:
    """Four columns between spaces and a line that begins the document, as CoNLL 2003 has them."""
    blocks = ("".join(f"{word} X X {tag}\n" for word, tag in _rows(one)) for one in sentences)
    write_text(path, "\n".join(["-DOCSTART- -X- -X- O\n", *blocks, ""]))


def _numbered(path: Path, sentences: Sequence[Tagged]) -> None:
    """Number, word, intent, tag, as Facebook's files have them."""
    blocks = []
    for one in sentences:
        rows = enumerate(_rows(one), 1)
        lines = [f"{at}\t{word}\trequest\t{tag if tag != 'O' else 'NoLabel'}" for at, (word, tag) in rows]
        blocks.append("\n".join([f"# text: {' '.join(one.words)}", "# intent: request", *lines, "", ""]))
    write_text(path, "".join(blocks))


def _folder(path: Path, sentences: Sequence[Tagged]) -> None:
    """`seq.in` and `seq.out`, line by line, as ATIS and SNIPS have them."""
    write_text(path / "seq.in", "".join(" ".join(one.words) + "\n" for one in sentences))
    write_text(path / "seq.out", "".join(" ".join(one.tags) + "\n" for one in sentences))


def _treebank(key: str) -> Callable[[Path, Sequence[Tagged]], None]:
    """CoNLL-U with tags as parts of speech, or as `key=tag` in its last column."""

    def cells(tag: str) -> tuple[str, str]:
        return (tag, "_") if not key else ("_", f"{key}={tag}" if tag != "O" else "_")

    def write(path: Path, sentences: Sequence[Tagged]) -> None:
        blocks = []
        for one in sentences:
            rows = ((at, word, *cells(tag)) for at, (word, tag) in enumerate(_rows(one), 1))
            lines = [f"{at}\t{word}\t_\t{upos}\t_\t_\t_\t_\t_\t{misc}" for at, word, upos, misc in rows]
            blocks.append("\n".join([f"# sent_id = {one.id}", *lines, "", ""]))
        write_text(path, "".join(blocks))

    return write


def _rows(one: Tagged) -> list[tuple[str, str]]:
    return list(zip(one.words, one.tags, strict=True))


def _objects(path: Path, pairs: Sequence[TextPair]) -> None:
    """An object a line under XNLI's names."""
    names = ("sentence1", "sentence2", "gold_label", "pairID")
    cells = ((pair.first, pair.second, pair.label, pair.id) for pair in pairs)
    rows = (json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) for row in cells)
    write_text(path, "".join(f"{row}\n" for row in rows))


class Form(NamedTuple):
    """How a task's files lie on disk: what calque calls it, and what writes it, if `write_tasks` does not."""

    format: str
    write: Callable[[Path, Sequence[Any]], None] | None = None


#: The forms of each task by the ending of the world's files. The last is that of names that tell nothing.
FORMS: dict[str, dict[str, Form]] = {
    "nli": {"jsonl": Form("jsonl", _objects), "tsv": Form("tsv")},
    "ner": {
        "tsv": Form("conll"),
        "conllu": Form("conllu", _treebank("Entity")),
        "conll": Form("conll", _conll),
    },
    "slots": {
        "tsv": Form("conll"),
        "conllu": Form("conllu", _treebank("Slot")),
        "folder": Form("folder", _folder),
        "conll": Form("conll", _numbered),
    },
    "pos": {"tsv": Form("tsv"), "conllu": Form("conllu", _treebank(""))},
    "parsing": {"conllu": Form("conllu")},
    "qa": {"json": Form("squad")},
}  # fmt: skip


def form_of(task: str, name: str, format: str | None = None) -> str:
    """The form that stands for a file by its name, and by its `format` where that is told; "tsv" of no task.

    A dataset's rows (`hf:…`) have the form that `write_tasks` writes: words with tags, named columns.

    >>> form_of("slots", "data:atis/en/train"), form_of("slots", "eval-es.conllu", "conll")
    ('folder', 'conll')
    """
    if task not in FORMS:
        return "tsv"
    if is_dataset(name):
        return _plain(task)
    usable = [one for one, form in FORMS[task].items() if format in (form.format, None)] or [_plain(task)]
    ending = bare_suffix(name)[1:] or "folder"
    return ending if ending in usable else usable[-1]


def _plain(task: str) -> str:
    """The form that `write_tasks` writes."""
    return next(ending for ending, form in FORMS[task].items() if form.write is None)


# ------------------------------------------------------------------------------------------ text


def bitext_names(paths: Sequence[str], languages: tuple[str, str], format: str | None = None) -> list[str]:
    """The files of the world's bitext in the form of these; a dataset's rows are lines of a TSV.

    >>> bitext_names(["data:QED.en-hy.en", "data:QED.en-hy.hy"], ("en", "hy"))
    ['en-hy.en', 'en-hy.hy']
    """
    pair, told = "-".join(languages), format
    if told is None and (len(paths) == 2 or bare_suffix(paths[0]) == ".tmx"):
        told = guess_format(paths)
    if told == BitextFormat.CONLLU:
        return [f"{code}.conllu" for code in languages]
    if told == BitextFormat.LINES:
        return [f"{pair}.{code}" for code in languages]
    if told == BitextFormat.TRIPLE:
        return [f"{pair}.triple"]
    return [f"{pair}.tmx" if told == BitextFormat.TMX else f"{pair}.tsv"]


def text_name(path: str, language: str) -> str:
    """The file of the world's text of one language in the form of this one: sentences, or a treebank."""
    return f"{language}.{'conllu' if bare_suffix(path) in TREEBANKS else 'txt'}"


# ------------------------------------------------------------------------------------------ files


def write_forms(folder: Path, source: str, others: Sequence[str]) -> None:
    """Write in every form what `write_world` and `write_tasks` wrote into `text` and `tasks` here."""
    for other in others:
        pair = source, other
        _write_bitext(folder / "text", pair, list(read_pairs([f"{folder}/text/{source}-{other}.tsv"], pair)))
    for code in (source, *others):
        trees = read_conllu(folder / "text" / f"{code}.conllu")
        write_text(folder / "text" / f"{code}.txt", "".join(f"{tree.text}\n" for tree in trees))
    for task, code, part in product(FORMS, (source, *others), PARTS):
        path = folder / "tasks" / task / f"{code}.{part}.{_plain(task)}"
        items = read_labelled(task, path, code).items
        for ending, form in FORMS[task].items():
            if form.write is not None:
                form.write(path.with_suffix(f".{ending}"), items)


def _write_bitext(folder: Path, languages: tuple[str, str], pairs: Sequence[RawPair]) -> None:
    name, rows = "-".join(languages), [(pair.source, pair.target) for pair in pairs]
    for code, side in zip(languages, zip(*rows, strict=True), strict=True):
        write_text(folder / f"{name}.{code}", "".join(f"{text}\n" for text in side))
    write_text(folder / f"{name}.triple", "".join(" ||| ".join(row) + "\n" for row in rows))
    write_text(folder / f"{name}.tmx", _memory(languages, rows))


def _memory(languages: tuple[str, str], rows: Sequence[tuple[str, str]]) -> str:
    """A translation memory."""
    units = (
        "".join(
            f'<tuv xml:lang="{code}"><seg>{escape(text)}</seg></tuv>'
            for code, text in zip(languages, row, strict=True)
        )
        for row in rows
    )
    body = "".join(f"<tu>{unit}</tu>\n" for unit in units)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4"><body>\n{body}</body></tmx>\n'
