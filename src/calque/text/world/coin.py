"""Invented words: made from the lemma alone, pronounceable, and never the same for two lemmas."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from calque.text.world.lexicon import CLOSED, Lemma

#: Closed classes whose words take endings, so that they are made like open-class stems.
_INFLECTED = frozenset({"AUX", "PRON"})


@dataclass(frozen=True)
class Phonology:
    """The sounds of an invented language: what opens a syllable, its vowels, what closes a word.

    `reserved` are prefixes with a meaning of their own, which no stem may begin with.
    """

    name: str
    onsets: tuple[str, ...]
    vowels: tuple[str, ...]
    codas: tuple[str, ...]
    reserved: tuple[str, ...] = ()


def candidates(lemma: Lemma, sounds: Phonology) -> Iterator[str]:
    """An endless row of possible words for a lemma, the same at every call."""
    attempt = 0
    while True:
        seed = f"{sounds.name}\0{lemma.key}\0{attempt}".encode()
        yield _spell(int.from_bytes(hashlib.blake2b(seed, digest_size=16).digest()), is_short(lemma), sounds)
        attempt += 1


def _spell(number: int, short: bool, sounds: Phonology) -> str:
    def take(options: tuple[str, ...]) -> str:
        nonlocal number
        number, index = divmod(number, len(options))
        return options[index]

    number, shape = divmod(number, 10)
    if short:
        onset = take(tuple(onset for onset in sounds.onsets if len(onset) == 1))
        return onset + take(sounds.vowels) + (take(sounds.codas) if shape < 7 else "")
    syllables = 3 if shape < 3 else 2
    return "".join(take(sounds.onsets) + take(sounds.vowels) for _ in range(syllables)) + take(sounds.codas)


def is_short(lemma: Lemma) -> bool:
    """Function words have at most three letters; every other word has more."""
    return lemma.upos in CLOSED and lemma.upos not in _INFLECTED


def coin_words(
    lemmas: Iterable[Lemma],
    sounds: Phonology,
    adopt: Callable[[Lemma], str | None],
    avoid: Iterable[str] = (),
) -> dict[Lemma, str]:
    """A word (or stem) for every lemma; `adopt` may propose one, which is taken when it is free.

    No stem begins with another stem, so that no two lemmas ever share a form, whatever their endings.
    Names and figures are adopted as they are. No coined word is one of `avoid`.
    """
    held, barred, taken = list(lemmas), frozenset(avoid), _Taken()
    words = {lemma: word for lemma in held if _is_given(lemma) and (word := adopt(lemma))}
    for word in words.values():
        taken.add(word.casefold(), short=False)
    for lemma in held:
        if lemma in words:
            continue
        short, proposed = is_short(lemma), adopt(lemma)
        if not proposed or not taken.free(proposed, short):
            options = (w for w in candidates(lemma, sounds) if not w.startswith(sounds.reserved))
            proposed = next(w for w in options if w not in barred and taken.free(w, short))
        words[lemma] = proposed
        taken.add(proposed, short)
    return words


def _is_given(lemma: Lemma) -> bool:
    return lemma.upos in ("PROPN", "PUNCT") or lemma.text[0].isdigit()


class _Taken:
    """Function words and stems in use, and all beginnings of stems."""

    def __init__(self) -> None:
        self.short: set[str] = set()
        self.stems: set[str] = set()
        self.beginnings: set[str] = set()

    def add(self, word: str, short: bool) -> None:
        if short:
            self.short.add(word)
        else:
            self.stems.add(word)
            self.beginnings.update(word[:n] for n in range(1, len(word)))

    def free(self, word: str, short: bool) -> bool:
        if short:
            return len(word) < 4 and word not in self.short
        starts = (word[:n] in self.stems for n in range(1, len(word) + 1))
        return len(word) > 3 and word not in self.beginnings and not any(starts)
