"""What every encoder around another shares: it is the inner one but for what it says itself."""

from __future__ import annotations

from collections.abc import Sequence

from calque.types import Encoder, Sentences, States, TextBatch


class Wrapped:
    """An encoder around `inner`; a wrapper overrides what it changes."""

    inner: Encoder

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def width(self) -> int:
        return self.inner.width

    @property
    def depth(self) -> int:
        return self.inner.depth

    @property
    def languages(self) -> frozenset[str] | None:
        return self.inner.languages

    @property
    def fingerprint(self) -> str:
        return self.inner.fingerprint

    def batch(self, sentences: Sentences) -> TextBatch:
        return self.inner.batch(sentences)

    def states(self, batch: TextBatch, layers: Sequence[int]) -> States:
        return self.inner.states(batch, layers)
