"""Tasks that anything can learn: what is asked for can be read off a word."""

from typing import Any

import numpy as np

from calque.encoders.encoder import HuggingFaceEncoder
from calque.text.conllu import Tree
from calque.text.labelled.items import Answer, Labelled, Question, Tagged, TextPair
from calque.transfer.heads import HeadKind
from calque.transfer.learner import HeadOptions, Learner, Regime
from calque.transfer.task import Reading
from calque.transfer.tasks import task_named
from calque.transfer.vectors import Space

WORDS = ["cat", "dog", "mat", "the", "life", "it"]
TAGS = dict(zip(WORDS, ["B-ANIMAL", "B-ANIMAL", "B-THING", "O", "B-THING", "O"], strict=True))
UPOS = dict(zip(WORDS, ["NOUN", "NOUN", "NOUN", "DET", "NOUN", "PRON"], strict=True))

NLI = ("entailment", "neutral", "contradiction")


def sentences(count: int, seed: int = 0, longest: int = 7) -> list[list[str]]:
    random = np.random.default_rng(seed)
    return [[WORDS[k] for k in random.integers(0, 6, random.integers(2, longest))] for _ in range(count)]


def tagged(count: int = 12, seed: int = 0, language: str = "en", longest: int = 7) -> Labelled[Tagged]:
    """A tag that is its word's."""
    items = [Tagged(tuple(one), tuple(TAGS[word] for word in one)) for one in sentences(count, seed, longest)]
    return Labelled(language, tuple(items), "tags.tsv")


def parts(count: int = 12, seed: int = 0) -> Labelled[Tagged]:
    """A part of speech that is its word's."""
    items = [Tagged(tuple(one), tuple(UPOS[word] for word in one)) for one in sentences(count, seed)]
    return Labelled("en", tuple(items), "pos.tsv")


def pairs(count: int = 12, seed: int = 0) -> Labelled[TextPair]:
    """A label that is said by the first word of the second text."""
    random = np.random.default_rng(seed)
    made = []
    for one in sentences(count, seed):
        which = int(random.integers(0, 3))
        second = f"{WORDS[which]} the it"
        made.append(TextPair(" ".join(one), second, NLI[which], ("en", "en")))
    return Labelled("en", tuple(made), "pairs.tsv")


def trees(count: int = 8, seed: int = 0) -> Labelled[Tree]:
    """Every word hangs from the one before it, by a relation that is its word's."""
    names = dict(zip(WORDS, ["nsubj", "obj", "obl", "det", "nmod", "expl"], strict=True))
    made = []
    for number, one in enumerate(sentences(count, seed)):
        labels = ["root", *(names[word] for word in one[1:])]
        upos = tuple(UPOS[word] for word in one)
        made.append(
            Tree(
                tuple(one),
                upos,
                tuple(range(len(one))),
                tuple(labels),
                tuple(one),
                f"s{number}",
                " ".join(one),
            )
        )
    return Labelled("en", tuple(made), "trees.conllu")


def questions(count: int = 10, seed: int = 0, words: int = 8) -> Labelled[Question]:
    """The answer is the one animal of the paragraph."""
    random = np.random.default_rng(seed)
    made = []
    for number in range(count):
        text = [WORDS[k] for k in random.integers(2, 6, words)]
        place, animal = int(random.integers(0, words)), WORDS[int(random.integers(0, 2))]
        text[place] = animal
        start = len(" ".join(text[:place])) + (place > 0)
        answer = Answer(animal, start)
        made.append(Question("the life", " ".join(text), (answer,), ("en", "en"), f"q{number}"))
    return Labelled("en", tuple(made), "questions.json")


DATA: dict[str, Any] = {"ner": tagged, "pos": parts, "nli": pairs, "parsing": trees, "qa": questions}


def learner(
    task: str,
    encoder: HuggingFaceEncoder,
    regime: str = "features",
    *,
    head: str | None = None,
    layers: tuple[int, ...] = (3,),
    reading: Reading | None = None,
    **options: Any,
) -> Learner:
    """A learner of this task's own data."""
    known = task_named(task)
    kind = known.heads()[0] if head is None else HeadKind(head)
    return Learner(
        known,
        encoder,
        Regime(regime),
        known.labels([DATA[task]()]),
        reading or Reading(longest=24, overlap=6),
        HeadOptions(kind, **options),
        Space(None, layers),
    )
