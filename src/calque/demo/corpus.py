"""The demo corpus: sentences by language, hand-made links of the first of them, named entities.

Plain files that a person can read and extend; `README.md` beside this file says how.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from calque.errors import BadInput
from calque.files import write_text

HERE = Path(__file__).parent
PIVOT = "en"
ENTITIES = ("PER", "LOC", "ORG")


def languages() -> tuple[str, ...]:
    """Languages that English is translated into."""
    return tuple(sorted(file.stem for file in (HERE / "text").glob("*.txt") if file.stem != PIVOT))


def sentences(language: str) -> list[list[str]]:
    """All sentences as words; sentence k is the same in every language."""
    return [line.split() for line in _lines("text", language)]


def scored_count() -> int:
    """How many sentences have hand-made links: the first, in every language the same."""
    return len(_lines("links", languages()[0]))


def ambiguous() -> list[str]:
    """English words that sentences 2k and 2k + 1 use in two senses."""
    return (HERE / "ambiguous.txt").read_text(encoding="utf-8").split()


def hand_links(language: str) -> list[list[tuple[int, int]]]:
    """Links of the first sentences, as (English word, word of the language) counted from 0."""
    lines = _lines("links", language)
    texts = zip(sentences(PIVOT)[: len(lines)], sentences(language)[: len(lines)], strict=True)
    return [
        [
            (_place(left, source, language, number), _place(right, target, language, number))
            for token in line.split()
            for left, _, right in [token.partition("=")]
        ]
        for number, (line, (source, target)) in enumerate(zip(lines, texts, strict=True), 1)
    ]


def entities(language: str) -> list[list[str]]:
    """A BIO tag for each word of each sentence."""
    return [
        _tags(words, line, language, number)
        for number, (words, line) in enumerate(
            zip(sentences(language), _lines("entities", language), strict=True), 1
        )
    ]


def write_corpus(folder: Path) -> None:
    """Write what the verbs read: for each language a bitext to learn from, and one with links to score."""
    for language in languages():
        links = hand_links(language)
        lines = [
            f"{source}\t{target}\n"
            for source, target in zip(_lines("text", PIVOT), _lines("text", language), strict=True)
        ]
        name = f"{PIVOT}-{language}"
        write_text(folder / f"{name}.test.tsv", "".join(lines[: len(links)]))
        write_text(folder / f"{name}.train.tsv", "".join(lines[len(links) :]))
        pharaoh = (" ".join(f"{i}-{j}" for i, j in sorted(one)) for one in links)
        write_text(folder / f"{name}.test.links", "".join(f"{line}\n" for line in pharaoh))


def _lines(part: str, language: str) -> list[str]:
    return (HERE / part / f"{language}.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")


def _place(token: str, words: Sequence[str], language: str, line: int) -> int:
    """Where `word`, or the n-th `word#n`, stands."""
    word, _, nth = token.partition("#")
    places = [place for place, held in enumerate(words) if held == word]
    where = HERE / "links" / f"{language}.txt"
    if not nth and len(places) == 1:
        return places[0]
    if nth.isdecimal() and 1 <= int(nth) <= len(places):
        return places[int(nth) - 1]
    raise BadInput(
        f"{token!r} stands for none or several of the {len(places)} {word!r} of its sentence",
        where=where,
        line=line,
        remedy=f"write a word of the sentence, {word}#1, {word}#2 … where it occurs more than once",
    )


def _tags(words: Sequence[str], line: str, language: str, number: int) -> list[str]:
    tags = ["O"] * len(words)
    first = 0
    for kind, name in _named(line):
        starts = [k for k in range(first, len(words)) if list(words[k : k + len(name)]) == name]
        if kind not in ENTITIES or not name or not starts:
            raise BadInput(
                f"no entity {kind} {' '.join(name)} in this sentence",
                where=HERE / "entities" / f"{language}.txt",
                line=number,
                remedy=f"write {' or '.join(ENTITIES)} and words of the sentence, in its order",
            )
        first = starts[0] + len(name)
        tags[starts[0] : first] = [f"B-{kind}"] + [f"I-{kind}"] * (len(name) - 1)
    return tags


def _named(line: str) -> Iterator[tuple[str, list[str]]]:
    """Kinds and words of `PER Maria Lopez | LOC Berlin`."""
    for part in filter(None, map(str.strip, line.split("|"))):
        kind, *name = part.split()
        yield kind, name
