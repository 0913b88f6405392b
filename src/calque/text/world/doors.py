"""The world as the rest of calque takes it: word pairs, sentences, files."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import chain, product
from pathlib import Path

import numpy as np

from calque.files import atomic_directory
from calque.text.labelled.writers import write_labelled
from calque.text.world.draws import LANGUAGES, WorldSentence, generate
from calque.text.world.surface import WorldSide
from calque.text.world.tasks import TASKS, world_task
from calque.types import UPOS, Bitext, Bytes, Sentences, WordPairs

_TAG = {name: index for index, name in enumerate(UPOS)}


def world_pairs(count: int, languages: tuple[str, str] = ("en", "far"), *, seed: int = 0) -> WordPairs:
    """Sentences in two languages with their gold links and part-of-speech tags."""
    drawn = list(generate(count, seed=seed, languages=languages))
    a, b = ([sentence.sides[language] for sentence in drawn] for language in languages)
    bitext = Bitext.of(
        languages,
        [s.words for s in a],
        [s.words for s in b],
        tags=(_tags(a), _tags(b)),
        origin=f"world, {count} sentences, seed {seed}",
    )
    links = [sentence.links[languages] for sentence in drawn]
    rows = np.repeat(np.arange(len(drawn)), [len(pairs) for pairs in links])
    ends = np.array(list(chain.from_iterable(links)), np.int32).reshape(-1, 2)
    return WordPairs.of(bitext, rows, ends[:, 0], ends[:, 1], linker="gold")


def world_sentences(
    count: int, language: str, *, seed: int = 0, domain: tuple[int, int] | None = None
) -> Sentences:
    """Sentences in one language with part-of-speech tags; with a `domain`, of some kinds only."""
    drawn = generate(count, seed=seed, languages=(language,), domain=domain)
    sides = [sentence.sides[language] for sentence in drawn]
    return Sentences.of(language, [s.words for s in sides], _tags(sides))


def _tags(sides: list[WorldSide]) -> Bytes:
    return np.array([_TAG[tag] for s in sides for tag in s.upos], np.uint8)


def write_world(folder: Path, count: int, *, languages: Sequence[str] = LANGUAGES, seed: int = 0) -> None:
    """Write a draw as files that people have: bitexts, Pharaoh links and treebanks.

    For the first language with each other one: `en-far.tsv` (tokenised text), `en-far.links`, and the words
    of the links as two dictionaries, `en-far.train.txt` and `en-far.test.txt`; for every language
    `far.conllu`, with entities, slots and senses in its last column.
    """
    drawn = list(generate(count, seed=seed, languages=languages))
    first, *others = languages
    with atomic_directory(folder) as partial:
        for other in others:
            _write(partial / f"{first}-{other}.tsv", [_row(s, first, other) for s in drawn])
            _write(partial / f"{first}-{other}.links", [_pharaoh(s, first, other) for s in drawn])
            for part, entries in _dictionaries(drawn, first, other).items():
                _write(partial / f"{first}-{other}.{part}.txt", entries)
        for language in languages:
            blocks = [_block(number, s, language) for number, s in enumerate(drawn, 1)]
            _write(partial / f"{language}.conllu", blocks)


#: The draws of a task's parts: test and dev are of another half of the words of pos than train is.
_PARTS = {"train": 0, "dev": 1, "test": 3}
_ENDINGS = {"parsing": "conllu", "qa": "json"}


def write_tasks(folder: Path, count: int, *, languages: Sequence[str] = LANGUAGES, seed: int = 0) -> None:
    """Write every task with `count` items to learn from, and a quarter as many, at least one, to choose and
    to test by, such as `ner/en.train.tsv`.

    Tags and inferences are TSV, trees CoNLL-U, questions SQuAD's JSON, all as `read_labelled` reads them. The
    items are the same in every language.
    """
    few = max(1, count // 4)
    with atomic_directory(folder) as partial:
        for task in TASKS:
            (partial / task).mkdir()
            for language, (part, draw) in product(languages, _PARTS.items()):
                drawn = world_task(task, count if part == "train" else few, language, seed=4 * seed + draw)
                path = partial / task / f"{language}.{part}.{_ENDINGS.get(task, 'tsv')}"
                write_labelled(task, path, drawn.items)


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8", newline="\n")


def _row(sentence: WorldSentence, *languages: str) -> str:
    return "\t".join(" ".join(sentence.sides[language].words) for language in languages)


def _pharaoh(sentence: WorldSentence, a: str, b: str) -> str:
    return " ".join(f"{i}-{j}" for i, j in sentence.links[a, b])


def _dictionaries(drawn: Sequence[WorldSentence], a: str, b: str) -> dict[str, list[str]]:
    """Words linked more than once, in lower case, the most frequent first; every fourth to test with."""
    counts: Counter[tuple[str, str]] = Counter()
    for sentence in drawn:
        words = sentence.sides[a].words, sentence.sides[b].words
        counts.update((words[0][i].lower(), words[1][j].lower()) for i, j in sentence.links[a, b])
    entries: dict[str, list[str]] = defaultdict(list)
    for (word, other), count in sorted(counts.items(), key=lambda held: (-held[1], held[0])):
        if count > 1:
            entries[word].append(f"{word} {other}")
    ranked = list(entries.values())
    train = (held for place, held in enumerate(ranked) if place % 4 != 3)
    return {"train": [*chain.from_iterable(train)], "test": [*chain.from_iterable(ranked[3::4])]}


def _block(number: int, sentence: WorldSentence, language: str) -> str:
    held = sentence.sides[language]
    about = [f"# sent_id = {number}", f"# text = {' '.join(held.words)}"]
    about += [f"# construction = {sentence.construction}"]
    about += [f"# intent = {sentence.intent}"] if sentence.intent else []
    rows = zip(held.words, held.upos, held.heads, held.labels, _misc(held), strict=True)
    lines = [
        f"{at}\t{word}\t_\t{upos}\t_\t_\t{head}\t{label}\t_\t{misc}"
        for at, (word, upos, head, label, misc) in enumerate(rows, 1)
    ]
    return "\n".join([*about, *lines, ""])


def _misc(held: WorldSide) -> list[str]:
    named = [
        (("Entity", entity), ("Slot", slot), ("Sense", sense))
        for entity, slot, sense in zip(held.entities, held.slots, held.senses, strict=True)
    ]
    return [
        "|".join(f"{name}={value}" for name, value in word if value not in ("", "O")) or "_" for word in named
    ]
