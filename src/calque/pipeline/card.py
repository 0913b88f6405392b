"""The model card of an aligned encoder: what it is, how it was made, how to load it, what it has seen.

Equal runs write equal cards: there are no times and no paths in them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

import calque
from calque.encoders.aligned import AlignedEncoder
from calque.encoders.bundled import BUNDLED
from calque.encoders.bylanguage import PARTS, LanguageEncoders
from calque.encoders.specs import by_language, is_by_language, short_name
from calque.encoders.static import StaticEncoder
from calque.files import write_text
from calque.pipeline.runs import EncoderRecipe
from calque.text.languages import WORLD, language_name, primary_subtag
from calque.types import Encoder

if TYPE_CHECKING:
    from calque.pipeline.exporting import Exported, ExportRecipe

CARD = "README.md"
#: Settings that a card tells elsewhere, or that only mean something where the run was made.
_TOLD = frozenset({"encoder", "inputs", "seed", "method", "layers", "pooling", "supervision"})


def write_card(folder: Path, aligned: AlignedEncoder, recipe: EncoderRecipe, note: str = "") -> None:
    """Write the card of an encoder that lies in a folder; `note` is what else must be known of it."""
    write_text(folder / CARD, card(aligned, recipe, note))


def card(aligned: AlignedEncoder, recipe: EncoderRecipe, note: str = "") -> str:
    """The card's text: front matter for a hub, then Markdown for people."""
    spec = str(recipe.model_dump()["encoder"])
    parts = [
        f"# {code(short_name(spec))}, aligned across languages",
        *([note] if note else []),
        _what(aligned, spec),
        "## How it was made",
        table(("", ""), _settings(aligned, recipe)),
        "Settings that are not named are the usual ones of that version"
        + ("." if note else "; `recipe.toml` holds them all."),
        table(("languages", "pairs used", "left out"), _pairs(aligned)),
        "## How to load it",
        *_loading(aligned),
        "## What it has seen",
        _seen(aligned),
        "## Limits",
        "\n".join(_limits(aligned)),
    ]
    return front_matter(_metadata(aligned, spec)) + "\n".join(f"\n{part}" for part in parts) + "\n"


# ---------------------------------------------------------------------------------------- the hub's part


def front_matter(metadata: Mapping[str, Any]) -> str:
    """What a hub reads, between two lines of dashes."""
    return f"---\n{yaml.safe_dump(dict(metadata), sort_keys=False)}---\n"


def hub_languages(languages: Sequence[str]) -> list[str]:
    """The codes among these that a hub knows: those of registered languages, without script and region.

    >>> hub_languages(["pt-BR", "en", "near", "x-mine"])
    ['en', 'pt']
    """
    return sorted({primary_subtag(one) for one in languages if one not in WORLD and one[:2] != "x-"})


def _metadata(aligned: AlignedEncoder, spec: str) -> dict[str, Any]:
    languages, bases = hub_languages(_languages(aligned)), hub_names(spec)
    ordinary = not aligned.maps
    return {
        **({"language": languages} if languages else {}),
        "library_name": "transformers" if ordinary else "calque",
        "tags": ["calque", "cross-lingual", aligned.method],
        **({"base_model": bases[0] if len(bases) == 1 else bases} if bases else {}),
    }


def hub_names(spec: str) -> list[str]:
    """The names on a hub that an encoder's name means; none for directories, files and bundled encoders.

    >>> hub_names("en=bert-base-cased,de=dbmdz/bert-base-german-cased"), hub_names("./runs/model")
    (['bert-base-cased', 'dbmdz/bert-base-german-cased'], [])
    """
    named = list(by_language(spec).values()) if is_by_language(spec) else [spec]
    here = re.compile(r"[./~]|.*/$|.*\.vec")
    return [
        one for one in named if not (here.match(one) or one in BUNDLED or Path(one).expanduser().exists())
    ]


# ------------------------------------------------------------------------------------------ what it is


def _what(aligned: AlignedEncoder, spec: str) -> str:
    told = ", ".join(f"{language_name(one)} ({code(one)})" for one in _languages(aligned))
    where = f"at layer{'s' * (len(_layers(aligned)) > 1)} {', '.join(map(str, _layers(aligned)))}"
    base, method = code(short_name(spec)), code(aligned.method)
    if not aligned.maps:
        return (
            f"An ordinary checkpoint: the weights of {base}, trained with {method} to bring "
            f"translations together {where}. Languages: {told}."
        )
    if isinstance(aligned.inner, StaticEncoder):
        kind = f"Word vectors, those of {base}"
    elif isinstance(aligned.inner, LanguageEncoders):
        kind = f"A checkpoint a language in `{PARTS}/`, those of {base}"
    else:
        kind = f"An ordinary checkpoint, that of {base}"
    return (
        f"{kind}, unchanged, and linear maps ({method}) beside it in `maps.safetensors`, under which the "
        f"languages meet {where}. Languages: {told}."
    )


def _languages(aligned: AlignedEncoder) -> list[str]:
    """The languages that it was aligned for."""
    moved = {key.language for key in aligned.maps}
    return sorted(moved or {one for pair in aligned.about["coverage"] for one in _both(aligned, pair)})


def _both(aligned: AlignedEncoder, pair: str) -> tuple[str, ...]:
    """The languages of a pair by name; a code may have a hyphen of its own."""
    known = {"-".join(languages): languages for languages in aligned.seen}
    return known.get(pair, tuple(pair.split("-")))


def _layers(aligned: AlignedEncoder) -> list[int]:
    return [int(layer) for layer in aligned.about["layers"]]


# ----------------------------------------------------------------------------------------- how it was made


def _settings(aligned: AlignedEncoder, recipe: EncoderRecipe) -> Iterator[tuple[str, str]]:
    held = recipe.model_dump(mode="json")
    yield "method", code(aligned.method)
    yield "what was paired", code(held["supervision"])
    yield "layers", ", ".join(map(str, _layers(aligned)))
    yield "pieces of a word", code(aligned.pooling)
    changed = recipe.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
    for name in sorted(set(changed) - _TOLD - recipe.places):
        yield name.replace("_", " "), code(changed[name])
    yield "seed", str(recipe.seed)
    yield "encoder", f"fingerprint {code(recipe.inputs.get('encoder', 'not known')[:12])}"
    yield "calque", calque.__version__


def _pairs(aligned: AlignedEncoder) -> Iterator[tuple[str, str, str]]:
    for pair, counts in aligned.about["coverage"].items():
        told = "–".join(language_name(one) for one in _both(aligned, pair))
        lost = ", ".join(
            f"{reason} {count:,}" for reason, count in counts.items() if reason != "used" and count
        )
        yield told, f"{counts.get('used', 0):,}", lost or "nothing"


# ----------------------------------------------------------------------------------------- how to load it


def _loading(aligned: AlignedEncoder) -> Iterator[str]:
    languages, layer = _languages(aligned), _layers(aligned)[-1]
    example = next((one for one in languages if one != aligned.space), languages[0])
    yield (
        "```python\n"
        "from calque.encoders.open import open_encoder\n"
        "from calque.types import Sentences\n\n"
        'encoder = open_encoder("path/to/this/folder")\n'
        f'text = Sentences.of({json.dumps(example)}, [["word", "by", "word"]])\n'
        f"vectors = encoder.sentence_vectors(text, layers=[{layer}])  # (layers, sentences, d)\n"
        "```"
    )
    prefix = getattr(getattr(aligned.inner, "options", None), "prefix", "") or ""
    if prefix:
        yield (
            f"It was aligned with {code(prefix)} before every text. calque puts that there itself; other "
            "programs must be told."
        )
    if isinstance(aligned.inner, StaticEncoder):
        return
    place = f"{PARTS}/{example}" if isinstance(aligned.inner, LanguageEncoders) else ""
    folder = "/".join(["path/to/this/folder", *([place] if place else [])])
    if aligned.maps:
        yield (
            f'**`AutoModel.from_pretrained("{folder}")` loads the weights but gives vectors WITHOUT the '
            "maps:** those of the encoder as it was, not aligned. `calque export` writes one language of it, "
            "maps included, for sentence-transformers."
        )
    else:
        yield f'`AutoModel.from_pretrained("{folder}")` needs nothing else: the weights are the alignment.'


# -------------------------------------------------------------------------------------- what it has seen


def _seen(aligned: AlignedEncoder, where: str = "`seen.tsv.gz`") -> str:
    counts = [
        f"{len(pairs):,} of {'–'.join(language_name(one) for one in languages)}"
        for languages, pairs in sorted(aligned.seen.items())
        if pairs
    ]
    if not counts:
        return f"No word pairs were learned from by name: {where} is empty."
    return (
        f"{where} holds every pair of words that it learned from: {', '.join(counts)}. `calque measure` "
        "leaves these out, so that what it scores was not learned by heart; do the same with other programs."
    )


def _limits(aligned: AlignedEncoder) -> Iterator[str]:
    if aligned.maps:
        yield (
            "- Maps belong to these languages, these layers and this input: other languages are refused, "
            "other layers stay as they were."
        )
    else:
        yield (
            "- All weights may have moved: languages, layers and tasks that were not aligned are no longer "
            "those of the encoder it was made from."
        )
    yield "- It knows what the text above taught it; other kinds of text may meet less well."
    yield "- What the encoder it was made from cannot or must not do (its licence, its biases) is unchanged."
    yield "- This card measures nothing: `calque measure` says whether the alignment helped."


# ------------------------------------------------------------------------------------- an exported encoder


def write_export_card(folder: Path, encoder: Encoder, recipe: ExportRecipe, made: Exported) -> None:
    """Write the card of a directory for sentence-transformers."""
    bases, known = hub_names(recipe.encoder), [made.language] if made.language else []
    if isinstance(encoder, AlignedEncoder) and not known:
        known = _languages(encoder)
    kinds = ["sentence-transformers", "sentence-similarity", "feature-extraction"]
    languages = hub_languages(known)
    metadata = {
        **({"language": languages} if languages else {}),
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity",
        "tags": [*kinds, "calque", "cross-lingual"],
        **({"base_model": bases[0]} if len(bases) == 1 else {}),
    }
    text = "\n".join(f"\n{part}" for part in _export_parts(encoder, recipe, made))
    write_text(folder / CARD, f"{front_matter(metadata)}{text}\n")


def _export_parts(encoder: Encoder, recipe: ExportRecipe, made: Exported) -> Iterator[str]:
    base = code(short_name(recipe.encoder))
    yield f"# {base} for sentence-transformers"
    pooled = "its first special token" if recipe.pooling == "first" else "the mean of its pieces"
    yield (
        f"Sentence vectors of {base} as calque {calque.__version__} gives them: layer {made.layer}, {pooled}"
        f"{', of length one' if recipe.normalise else ''}. Special tokens and prefix are no part of a mean."
    )
    if made.space is not None and made.language is not None:
        yield (
            f"**For {language_name(made.language)} only:** the map of that language into the space of "
            f"{language_name(made.space)} is part of it. Vectors of other languages that were exported from "
            "the same encoder lie in the same space."
        )
    yield (
        "```python\nfrom sentence_transformers import SentenceTransformer\n\n"
        'vectors = SentenceTransformer("path/to/this/folder").encode(["a text as it is"])\n```'
    )
    if made.prefix:
        yield f"The tokenizer puts {code(made.prefix)} before every text by itself: give text without it."
    yield (
        "`AutoModel` loads the transformer alone, without pooling and map. calque reads the folder as an "
        "encoder without maps."
    )
    if isinstance(encoder, AlignedEncoder):
        yield "## What it has seen"
        method = code(encoder.method)
        yield f"It is {code(short_name(encoder.inner.name))}, aligned by {method}."
        yield _seen(encoder, "`seen.tsv.gz` of the encoder it was made from")


# ------------------------------------------------------------------------------------------------ Markdown


def code(value: Any) -> str:
    """A value as it was given, safe among Markdown.

    >>> code("query: "), code(0.1), code("a`b"), code("`")
    ('`"query: "`', '`0.1`', '``a`b``', '`` ` ``')
    """
    plain = isinstance(value, str) and value == value.strip() and value.isprintable() and "\\" not in value
    text = value if plain and value else json.dumps(value, ensure_ascii=False)
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    room = " " if "`" in text[:1] + text[-1:] else ""
    return f"{fence}{room}{text}{room}{fence}"


def table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    """A table of cells in Markdown.

    >>> print(table(("a", "b"), iter([("x|y", "z")])))
    | a | b |
    | --- | --- |
    | x\\|y | z |
    """
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |" for cells in lines)
