"""Sentences labelled by character, as Chinese often is: their tags on words."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from calque.errors import BadInput
from calque.text.labelled.items import Labelled, Tagged


def segmented(found: Labelled[Tagged], segment: Callable[[str], list[str]]) -> Labelled[Tagged]:
    """Sentences in words, as `segment` splits their text, with the entities of their characters.

    A word belongs to the entity that most of its characters belong to, the first of equals, or to none. Where
    not all of them agree it is counted in `changed`. Sentences that `segment` does not spell as they were are
    dropped, counted.
    """
    items: list[Tagged] = []
    dropped, changed = Counter(found.dropped), Counter(found.changed)
    for sentence in found.items:
        words = segment(join_characters(sentence.words))
        if not words or _spelled(words) != _spelled(sentence.words):
            dropped["segmented otherwise"] += 1
            continue
        tags, conflicts = word_tags(words, sentence)
        changed["word across entities"] += conflicts
        items.append(replace(sentence, words=tuple(words), tags=tags))
    if not items:
        raise BadInput("no sentence has the same characters in words", where=found.origin)
    return replace(
        found, items=tuple(items), dropped=dict(dropped), changed={k: n for k, n in changed.items() if n}
    )


def join_characters(words: Sequence[str]) -> str:
    """The text of a sentence in characters; words of several letters keep a space between them.

    >>> join_characters(["我", "爱", "New", "York", "2", "4"])
    '我爱New York24'
    """
    text = words[0] if words else ""
    for before, word in pairwise(words):
        text += (" " if len(before) > 1 and len(word) > 1 else "") + word
    return text


def word_tags(words: Sequence[str], sentence: Tagged) -> tuple[tuple[str, ...], int]:
    """A BIO tag for each of `words`, which spell `sentence`, and how many have characters that disagree."""
    owners = [
        owner
        for word, owner in zip(sentence.words, _entities(sentence.tags), strict=True)
        for _ in _spelled([word])
    ]
    types = [tag[2:] for tag in sentence.tags]
    tags, begun, start, conflicts = [], -1, 0, 0
    for word in words:
        mine = owners[start : (start := start + len(_spelled([word])))]
        conflicts += len(set(mine)) > 1
        owner = Counter(mine).most_common(1)[0][0] if mine else -1
        tags.append("O" if owner < 0 else f"{'I' if owner == begun else 'B'}-{types[owner]}")
        begun = owner
    return tuple(tags), conflicts


def _entities(tags: Sequence[str]) -> Iterator[int]:
    """For each tag the place where its entity begins, -1 for O."""
    start = -1
    for place, (before, tag) in enumerate(pairwise(("O", *tags))):
        if tag[0] == "B" or before[1:] != tag[1:]:
            start = place
        yield -1 if tag == "O" else start


def _spelled(words: Sequence[str]) -> str:
    """The characters of words without spaces and what nobody sees, which segmenters leave out."""
    return "".join(c for c in "".join(words) if not c.isspace() and unicodedata.category(c) not in _UNSEEN)


_UNSEEN = frozenset({"Cc", "Cf"})
