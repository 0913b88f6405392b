"""Training without the rows of the vocabulary that the text never asks for.

Two thirds of a multilingual encoder are the vectors of its pieces, and a corpus in two languages uses few of
them. The tokenizer stays as it is and so do the ids: they are looked up on their way into a matrix that holds
the rows in use, so that gradients and the optimiser's state are as small as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from calque.encoders.encoder import HuggingFaceEncoder
from calque.errors import BadInput, BadSetting
from calque.types import Longs, Sentences

_TRIMMED = "a trimmed vocabulary"


def used_pieces(encoder: HuggingFaceEncoder, texts: Iterable[Sentences]) -> Longs:
    """Ids of the pieces these sentences are made of, special tokens and prefix included. Shape: (n,)."""
    used = np.zeros(encoder.body.get_input_embeddings().num_embeddings, bool)
    for text in texts:
        layout = encoder.reader.layout(text)
        for pieces in (layout.pieces, layout.frame.head, layout.frame.tail):
            used[pieces] = True
    return np.flatnonzero(used)


@dataclass(frozen=True, eq=False)
class Trimmed:
    """An encoder with part of its vocabulary; `restore` makes it whole.

    `kept` are the ids that it can read, in the order of their rows. Shape: (kept,). `full` is the matrix of
    all rows, which waits: whatever else is tied to it stays tied, and sees the trained rows when restored.
    """

    encoder: HuggingFaceEncoder
    kept: Longs
    full: torch.nn.Parameter
    tables: Sequence[torch.nn.Embedding]
    hooks: Sequence[Any]

    def restore(self) -> None:
        """Write the trained rows into the full matrix and put it back; the other rows are as they were."""
        if self.encoder.unfinished.pop(_TRIMMED, None) is None:
            return
        rows = self.tables[0].weight
        with torch.no_grad():
            places = torch.from_numpy(self.kept).to(self.full.device)
            self.full.index_copy_(0, places, rows.to(self.full.device))
        self.full.requires_grad_(rows.requires_grad)
        for table, hook in zip(self.tables, self.hooks, strict=True):
            hook.remove()
            del table.row_of
            table.weight = self.full
            if table.padding_idx is not None:
                table.padding_idx = int(self.kept[table.padding_idx])
            table.to(rows.device)


def trim_vocabulary(encoder: HuggingFaceEncoder, used: NDArray[np.integer[Any]]) -> Trimmed:
    """Keep the rows of these pieces and of special tokens; any other piece is then refused.

    Shape: used (n,), ids in any order, as `used_pieces` gives them. Trim before an optimiser is made, and
    `restore` before the encoder is saved. With weight decay, rows that are not there do not decay.
    """
    if _TRIMMED in encoder.unfinished:
        raise BadSetting(f"{encoder.name} is trimmed already", remedy="restore() it first")
    full = encoder.body.get_input_embeddings().weight
    tables = tied_tables(encoder, full)
    kept = _kept(encoder, used, [table.padding_idx for table in tables])
    row_of = torch.full((len(full),), -1, dtype=torch.long)
    row_of[torch.from_numpy(kept)] = torch.arange(len(kept))
    places = torch.from_numpy(kept).to(full.device)
    rows = torch.nn.Parameter(full.detach()[places], requires_grad=full.requires_grad)
    full.requires_grad_(False)
    for table in tables:
        table.weight = rows
        table.register_buffer("row_of", row_of.to(full.device))
        if table.padding_idx is not None:
            table.padding_idx = int(row_of[table.padding_idx])
    hooks = [table.register_forward_pre_hook(_looker(encoder.tokenizer)) for table in tables]
    encoder.unfinished[_TRIMMED] = "restore() it first"
    return Trimmed(encoder, kept, full, tables, hooks)


def harmless(encoder: HuggingFaceEncoder, *, weight_decay: float) -> bool:
    """Whether training with part of the vocabulary saves time and changes nothing else.

    Rows are trained, none decays that is in no text, and nothing but a look-up uses them.
    """
    matrix = encoder.body.get_input_embeddings().weight
    if not matrix.requires_grad or weight_decay or _TRIMMED in encoder.unfinished:
        return False
    try:
        tied_tables(encoder, matrix)
    except BadSetting:
        return False
    return True


def tied_tables(encoder: HuggingFaceEncoder, matrix: torch.nn.Parameter) -> list[torch.nn.Embedding]:
    """The modules that look pieces up in this matrix: one, or several that share it as in T5."""
    users = [m for m in encoder.body.modules() if any(p is matrix for p in m.parameters(recurse=False))]
    others = [type(user).__name__ for user in users if not isinstance(user, torch.nn.Embedding)]
    if others:
        raise BadSetting(
            f"the vocabulary of {encoder.name} is tied to a {others[0]}, so it cannot be trimmed",
            remedy="train with the whole vocabulary, or freeze the embeddings",
        )
    return users


def _kept(encoder: HuggingFaceEncoder, used: NDArray[Any], padding: Sequence[int | None]) -> Longs:
    count = encoder.body.get_input_embeddings().num_embeddings
    wrong = used[(used < 0) | (used >= count)]
    if len(wrong):
        raise BadInput(f"no piece {wrong[0]}", where=encoder.name, remedy=f"ids are 0 to {count - 1}")
    # Piece 0 is what an encoder tries itself with, to see what layers it has.
    always = [0, encoder.reader.pad, *encoder.tokenizer.all_special_ids]
    always += [piece for piece in padding if piece is not None]
    return np.union1d(used, always).astype(np.int64)


def _looker(tokenizer: Any) -> Callable[[Any, tuple[torch.Tensor]], torch.Tensor]:
    """Turns ids of pieces into rows, just before an embedding is asked for them."""

    def look_up(table: Any, args: tuple[torch.Tensor]) -> torch.Tensor:
        rows: torch.Tensor = table.row_of[args[0]]
        if (rows < 0).any():
            outside = sorted(set(args[0][rows < 0].tolist()))
            raise BadInput(
                f"{tokenizer.convert_ids_to_tokens(outside[0])!r} is outside the trimmed vocabulary"
                f" ({len(outside)} such pieces)",
                remedy="trim to all the text that will be read, that for evaluation too",
            )
        return rows

    return look_up
