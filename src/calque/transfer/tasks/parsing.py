"""Dependency parsing: a head and a relation a word."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from calque.encoders.tokens import Reader
from calque.stats.ratios import Ratio
from calque.stats.tasks import metrics_of, statistics, tree_statistics
from calque.text.conllu import Tree
from calque.text.labelled.items import Labelled
from calque.text.labelled.writers import write_trees
from calque.transfer.heads import HeadKind
from calque.transfer.inputs import word_inputs
from calque.transfer.learning import GoldLabels, Prepared
from calque.transfer.task import Labels, Reading
from calque.types import Doubles, Longs

#: Relations of Universal Dependencies: https://universaldependencies.org/u/dep/.
RELATIONS = ("acl", "advcl", "advmod", "amod", "appos", "aux", "case", "cc", "ccomp", "clf", "compound",
             "conj", "cop", "csubj", "dep", "det", "discourse", "dislocated", "expl", "fixed", "flat",
             "goeswith", "iobj", "list", "mark", "nmod", "nsubj", "nummod", "obj", "obl", "orphan",
             "parataxis", "punct", "reparandum", "root", "vocative", "xcomp")  # fmt: skip


class Parse(NamedTuple):
    """Heads (1-based, 0 the root) and relations of the words of a sentence."""

    heads: tuple[int, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True)
class ParsingTask:
    """Biaffine scores of heads and relations, decoded into a tree with one root."""

    name: str = "parsing"
    suffix: str = ".conllu"

    @property
    def metrics(self) -> tuple[Ratio, ...]:
        return metrics_of(self.name)

    def heads(self) -> tuple[HeadKind, ...]:
        return (HeadKind.PARSE,)

    def labels(self, train: Sequence[Labelled[Tree]]) -> Labels:
        """The universal relations, and what else the training data has."""
        return Labels.of(
            {*RELATIONS, *(name for data in train for tree in data.items for name in tree.labels)}
        )

    def names(self, item: Tree) -> Iterable[str]:
        return item.labels

    def prepare(self, data: Labelled[Tree], labels: Labels, reader: Reader, reading: Reading) -> Prepared:
        trees = [first_words(tree, reading.words) for tree in data.items]
        inputs = word_inputs(
            [tree.words for tree in trees],
            data.language,
            reader,
            longest=reading.longest,
            overlap=reading.overlap,
        )
        number = labels.number
        heads = np.array([head for tree in trees for head in tree.heads], np.int64)
        relations = np.array([number.get(name, -1) for tree in trees for name in tree.labels], np.int64)
        return Prepared(inputs, GoldLabels({"heads": heads, "relations": relations}, {}))

    def predictions(
        self,
        data: Labelled[Tree],
        prepared: Prepared,
        said: Sequence[tuple[Sequence[int], Sequence[int]]],
        labels: Labels,
        reading: Reading,
    ) -> list[Parse]:
        return [Parse(tuple(heads), tuple(labels.names[one] for one in names)) for heads, names in said]

    def statistics(
        self, data: Labelled[Tree], predictions: Sequence[Parse], reading: Reading
    ) -> dict[str, Doubles]:
        """Of sentences that were cut, the words that were parsed."""
        return statistics(
            [
                tree_statistics(cut_gold(tree, len(said.heads)), said.heads, said.labels)
                for tree, said in zip(data.items, predictions, strict=True)
            ]
        )

    def clusters(self, data: Labelled[Tree]) -> Longs:
        return np.arange(len(data))

    def write(self, path: Path, data: Labelled[Tree], predictions: Sequence[Parse]) -> None:
        """The sentences with predicted heads and relations, in CoNLL-U."""
        trees = [cut_gold(tree, len(said.heads)) for tree, said in zip(data.items, predictions, strict=True)]
        write_trees(path, trees, [said.heads for said in predictions], [said.labels for said in predictions])


def cut_gold(tree: Tree, words: int) -> Tree:
    """The first words of a tree, with the heads they have in the whole of it."""
    if words >= len(tree):
        return tree
    columns = ("words", "upos", "heads", "labels", "lemmas")
    return replace(tree, **{name: getattr(tree, name)[:words] for name in columns})


def first_words(tree: Tree, words: int | None) -> Tree:
    """The first words of a tree to learn from or to parse; a head that was cut off is not known (−1)."""
    if words is None or words >= len(tree):
        return tree
    cut = cut_gold(tree, words)
    return replace(cut, heads=tuple(head if head <= words else -1 for head in cut.heads))
