"""`calque encode`: vectors of words or sentences, for one's own use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Literal

import numpy as np

from calque.encoders.aligned import AlignedEncoder
from calque.encoders.anchors import block_rows, word_chunks
from calque.errors import BadInput
from calque.files import is_done, read_json, write_json
from calque.pipeline.runs import EncoderRecipe, input_digests, open_for, running
from calque.progress import bar
from calque.recipe import parse_layers
from calque.store import load_array
from calque.text.bitext import read_sentences
from calque.text.languages import check_language
from calque.types import Encoder, Floats, Pooling, Sentences, WordIndex

Unit = Literal["words", "sentences"]


class EncodeRecipe(EncoderRecipe):
    """Settings of `calque encode`."""

    verb: ClassVar[str] = "encode"
    places: ClassVar[frozenset[str]] = frozenset({"text", "encoder"})

    encoder: str
    text: str
    language: str
    unit: Unit = "words"
    layers: str = "last"
    pooling: Pooling | None = None
    tokenised: bool = False
    limit: int | None = None


@dataclass(frozen=True, eq=False)
class Vectors:
    """What `encode` wrote: `layer-N.npy` arrays and, for words, `words.tsv` with one row a vector."""

    folder: Path
    layers: tuple[int, ...]
    dropped: dict[str, int]

    def layer(self, layer: int) -> Floats:
        """Vectors of one layer, memory-mapped. Shape: (words or sentences, d)."""
        return load_array(self.folder / f"layer-{layer}.npy")


def encode(
    encoder: str,
    text: str | Path,
    language: str,
    *,
    out: str | Path,
    overwrite: bool = False,
    device: str = "auto",
    **settings: object,
) -> Vectors:
    """Write vectors of the words or sentences of a text, chunk by chunk; settings as in `EncodeRecipe`."""
    recipe = EncodeRecipe.build(
        encoder=str(encoder), text=str(text), language=check_language(language), **settings
    )
    opened = open_for(recipe.encoder, recipe.options(device))
    inputs = input_digests([recipe.text]) | {"encoder": opened.fingerprint}
    recipe = recipe.model_copy(update={"inputs": inputs})
    folder = Path(out)
    if not is_done(folder, recipe.digest(), overwrite=overwrite):
        with running(recipe, folder, overwrite=overwrite) as run:
            sentences = read_sentences(
                recipe.text, recipe.language, tokenised=recipe.tokenised, limit=recipe.limit
            )
            if not len(sentences.ids):
                raise BadInput("no words in this text", where=recipe.text)
            layers = parse_layers(recipe.layers, opened.depth)
            blocks = _words if recipe.unit == "words" else _sentences
            with run.stage("encode"):
                dropped = blocks(opened, sentences, layers, recipe, run.folder)
            about = {"layers": list(layers), "dropped": dropped, "sentences": len(sentences)}
            write_json(run.folder / "vectors.json", about)
    held = read_json(folder / "vectors.json")
    return Vectors(folder, tuple(held["layers"]), held["dropped"])


def _words(
    encoder: Encoder, text: Sentences, layers: tuple[int, ...], recipe: EncodeRecipe, folder: Path
) -> dict[str, int]:
    pooling = recipe.pooling or (encoder.pooling if isinstance(encoder, AlignedEncoder) else "mean")
    dropped: dict[str, int] = {}

    def blocks() -> Iterator[Floats]:
        with (folder / "words.tsv").open("w", encoding="utf-8", newline="\n") as table:
            table.write("sentence\tword\ttext\n")
            numbers = len(layers) * encoder.width
            for first, last, words in word_chunks(WordIndex.every(text), len(text), numbers):
                chunk = text.select(np.arange(first, last))
                found = encoder.word_vectors(chunk, words, layers=layers, pooling=pooling)
                for reason, count in found.dropped.items():
                    dropped[reason] = dropped.get(reason, 0) + count
                rows = zip(words.sentence[found.present], words.word[found.present], strict=True)
                table.writelines(f"{first + s + 1}\t{w + 1}\t{chunk.word(s, w)}\n" for s, w in rows)
                yield np.asarray(found.vectors, np.float32)

    _write_layers(folder, layers, blocks(), encoder.width)
    return dropped


def _sentences(
    encoder: Encoder, text: Sentences, layers: tuple[int, ...], recipe: EncodeRecipe, folder: Path
) -> dict[str, int]:
    size = min(4096, block_rows(len(layers) * encoder.width))

    def blocks() -> Iterator[Floats]:
        with bar("encoding", len(text), "sentences") as advance:
            for first in range(0, len(text), size):
                chunk = text.select(np.arange(first, min(first + size, len(text))))
                yield encoder.sentence_vectors(chunk, layers=layers)
                advance(len(chunk))

    _write_layers(folder, layers, blocks(), encoder.width)
    return {}


def _write_layers(folder: Path, layers: tuple[int, ...], blocks: Iterator[Floats], width: int) -> None:
    """Append blocks (layers, n, d) to one .npy file a layer, in flat memory."""
    rows = 0
    with ExitStack() as open_files:
        files = [open_files.enter_context((folder / f"layer-{layer}.npy").open("wb")) for layer in layers]
        for handle in files:
            _write_header(handle, (0, width))
        for block in blocks:
            rows += block.shape[1]
            for handle, part in zip(files, block, strict=True):
                handle.write(part.tobytes())
        for handle in files:
            handle.seek(0)
            _write_header(handle, (rows, width))


def _write_header(handle: BinaryIO, shape: tuple[int, int]) -> None:
    """The header of the .npy format; NumPy pads it so that a larger first axis takes the same room."""
    header: dict[str, Any] = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(handle, header)
