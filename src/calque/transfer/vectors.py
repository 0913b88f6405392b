"""Where a head's vectors come from: computed once and kept, or from an encoder that is being trained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from calque.encoders.aligned import AlignedEncoder, as_torch
from calque.encoders.cached import CachedEncoder
from calque.encoders.encoder import HuggingFaceEncoder
from calque.encoders.pooling import bags, pool
from calque.encoders.spans import ragged
from calque.transfer.inputs import Inputs
from calque.types import Floats, Longs, Pooling, SpaceMap


class Space:
    """Where vectors are taken before a head sees them: by the maps of an aligned encoder, or nowhere."""

    def __init__(self, aligned: AlignedEncoder | None, layers: Sequence[int]) -> None:
        self.aligned = aligned if aligned is not None and aligned.maps else None
        self.layers = tuple(layers)
        self._maps: dict[tuple[str, int], SpaceMap] = {}

    @property
    def name(self) -> str:
        """The language whose space it is; empty where nothing is moved."""
        return "" if self.aligned is None else self.aligned.space

    def moved(self, vectors: torch.Tensor, spoken: Longs, languages: Sequence[str]) -> torch.Tensor:
        """Every vector by the map of its language and layer. Shape: (layers, n, d), spoken (n,)."""
        if self.aligned is None:
            return vectors
        out = vectors.clone()
        for number in np.unique(spoken).tolist():
            rows = torch.from_numpy(np.flatnonzero(spoken == number)).to(vectors.device)
            for level, layer in enumerate(self.layers):
                out[level, rows] = self._map(languages[number], layer, vectors).apply(vectors[level, rows])
        return out

    def _map(self, language: str, layer: int, like: torch.Tensor) -> SpaceMap:
        assert self.aligned is not None
        if (language, layer) not in self._maps:
            self._maps[language, layer] = as_torch(self.aligned.map_for(language, layer), like)
        return self._maps[language, layer]


class Vectors(Protocol):
    """Vectors of the sequences of one set of items. Shape: sizes (sequences,), what each costs to read."""

    @property
    def inputs(self) -> Inputs: ...

    @property
    def sizes(self) -> Longs: ...

    def of(self, sequences: Longs) -> tuple[torch.Tensor, torch.Tensor]:
        """Shape: (n,) to vectors (layers, n, longest, d) and mask (n, longest)."""
        ...


class Kept:
    """Vectors of a frozen encoder, computed once and read from the cache."""

    def __init__(
        self, encoder: CachedEncoder, inputs: Inputs, space: Space, pooling: Pooling, device: torch.device
    ) -> None:
        self.inputs, self.space, self.device = inputs, space, device
        held = encoder.unit_vectors(inputs.rows, layers=space.layers, pooling=pooling)
        self._parts = [list(parts) for parts in held.parts]
        self._first = np.cumsum([0, *map(len, self._parts[0])])

    @property
    def sizes(self) -> Longs:
        return self.inputs.lengths

    def of(self, sequences: Longs) -> tuple[torch.Tensor, torch.Tensor]:
        units, mask = _units(self.inputs, sequences)
        read = torch.from_numpy(np.stack([self._gather(parts, units) for parts in self._parts]))
        moved = self.space.moved(read.to(self.device), self.inputs.spoken[units], self.inputs.languages)
        return padded(moved, mask.to(self.device))

    def _gather(self, parts: Sequence[NDArray[np.floating]], units: Longs) -> Floats:
        """These rows of one layer, which lies in parts. Shape: (n,) to (n, d)."""
        out = np.empty((len(units), parts[0].shape[1]), np.float32)
        owner = np.searchsorted(self._first, units, "right") - 1
        for number in np.unique(owner).tolist():
            here = owner == number
            out[here] = parts[number][units[here] - self._first[number]]
        return out


class Live:
    """Vectors of an encoder as it is now, with gradients unless it is frozen."""

    def __init__(
        self,
        encoder: HuggingFaceEncoder,
        inputs: Inputs,
        space: Space,
        pooling: Pooling,
        *,
        frozen: bool = False,
    ) -> None:
        self.encoder, self.inputs, self.space, self.pooling = encoder, inputs, space, pooling
        self.frozen = frozen

    @property
    def sizes(self) -> Longs:
        """Pieces of all rows that a sequence lies in."""
        inputs = self.inputs
        rows, first = np.unique(inputs.rows.units.sentence[inputs.order], return_index=True)
        owner = np.searchsorted(inputs.first, first, "right") - 1
        total = np.bincount(owner, inputs.rows.lengths[rows], minlength=len(inputs))
        return total.astype(np.int64)

    def of(self, sequences: Longs) -> tuple[torch.Tensor, torch.Tensor]:
        inputs, rows = self.inputs, self.inputs.rows
        units, mask = _units(inputs, sequences)
        chosen = np.unique(rows.units.sentence[units])
        batch = rows.batch(chosen, self.encoder.reader.pad)
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.frozen):
            states = self.encoder.states(batch, self.space.layers)
        taken = bags(batch.row, batch.start, batch.end, width=batch.pieces.shape[1], pooling=self.pooling)
        pooled = torch.stack([pool(hidden, taken).float() for hidden in states.hidden])
        # The batch's words are the units of its rows, in order.
        place = torch.from_numpy(np.searchsorted(batch.word, units)).to(pooled.device)
        moved = self.space.moved(pooled[:, place], inputs.spoken[units], inputs.languages)
        return padded(moved, mask.to(pooled.device))


def _units(inputs: Inputs, sequences: Longs) -> tuple[Longs, torch.Tensor]:
    """The units of these sequences laid end to end, and which places of a padded matrix they take."""
    count = inputs.lengths[sequences]
    units = inputs.order[ragged(inputs.first[sequences], count)[1]]
    mask = np.arange(max(1, int(count.max(initial=1)))) < count[:, None]
    return units, torch.from_numpy(mask)


def padded(vectors: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Vectors laid end to end as rows, and their mask.

    Shape: (layers, n, d), (batch, longest) to (layers, batch, longest, d).
    """
    out = vectors.new_zeros((len(vectors), *mask.shape, vectors.shape[-1]))
    out[:, mask] = vectors
    return out, mask
