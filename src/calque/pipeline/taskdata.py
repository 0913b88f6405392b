"""The labelled files of a task by language, and tests in mixed languages made of parallel ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from calque.errors import BadSetting
from calque.text.labelled.items import Labelled
from calque.text.labelled.mixed import mixed_pairs, mixed_questions
from calque.text.labelled.open import read_labelled
from calque.text.languages import check_language


class DataNames(Protocol):
    """Where data lie, as `code=file`."""

    @property
    def train(self) -> list[str]: ...
    @property
    def dev(self) -> list[str]: ...
    @property
    def test(self) -> list[str]: ...
    @property
    def mixed(self) -> list[str]: ...
    @property
    def limit_train(self) -> int | None: ...
    @property
    def limit_dev(self) -> int | None: ...
    @property
    def limit_test(self) -> int | None: ...
    @property
    def seed(self) -> int: ...


@dataclass(frozen=True)
class Reads:
    """How files of a task are read."""

    task: str
    format: str | None = None
    skip_bad: bool = False
    subtypes: bool = False

    def file(self, spec: str, limit: int | None = None) -> Labelled[Any]:
        """The items of `code=file`; of questions in another language than their paragraphs, `de/en=file`."""
        code, path = split_spec(spec)
        language, _, context = code.partition("/")
        return read_labelled(
            self.task,
            path,
            language,
            format=self.format,
            skip_bad=self.skip_bad,
            limit=limit,
            subtypes=self.subtypes,
            context_language=context or None,
        )


@dataclass(frozen=True, eq=False)
class TaskData:
    """What is learned from, what chooses among epochs, and what is tested."""

    train: Sequence[Labelled[Any]]
    dev: Sequence[Labelled[Any]]
    test: Sequence[Labelled[Any]]

    @property
    def trained(self) -> frozenset[str]:
        """The languages of the training data, as they are told by."""
        return frozenset(one.language for one in self.train)

    @property
    def spoken_in_training(self) -> list[str]:
        """The languages that training texts are in."""
        codes = {
            c for one in self.train for item in one.items for c in getattr(item, "languages", (one.language,))
        }
        return sorted(codes)

    def each(self, change: Callable[[Labelled[Any]], Labelled[Any]]) -> TaskData:
        """Every set changed."""
        return TaskData(*(list(map(change, part)) for part in (self.train, self.dev, self.test)))

    def fingerprints(self) -> dict[str, str]:
        """What a recipe has to know of them."""
        return {
            f"{name} {number} {one.language}": one.fingerprint
            for name in ("train", "dev", "test")
            for number, one in enumerate(getattr(self, name))
        }


def read_data(reads: Reads, names: DataNames) -> TaskData:
    """All files of a run."""
    train = [reads.file(spec, names.limit_train) for spec in names.train]
    dev = [reads.file(spec, names.limit_dev) for spec in names.dev]
    test = [reads.file(spec, names.limit_test) for spec in names.test]
    for spec in names.mixed:
        test += mixed(reads, spec, names.limit_test, names.seed)
    told = [one.language for one in test]
    twice = next((name for name in told if told.count(name) > 1), None)
    if twice:
        raise BadSetting(f"two tests in {twice}", remedy="one file a language; join them, or run them apart")
    return TaskData(train, dev, test)


def mixed(reads: Reads, spec: str, limit: int | None, seed: int) -> list[Labelled[Any]]:
    """Tests in two languages at once, of parallel files `de=a,en=b`."""
    parts = spec.split(",")
    if len(parts) != 2:
        raise BadSetting(
            f"--mixed {spec}", remedy="two parallel files, such as de=xnli.de.tsv,en=xnli.en.tsv"
        )
    if reads.task not in ("nli", "qa"):
        raise BadSetting(f"{reads.task} has one text an item", remedy="--mixed is for nli and qa")
    first, second = (reads.file(part) for part in parts)
    if reads.task == "nli":
        made: list[Labelled[Any]] = [mixed_pairs(first, second, seed=seed)]
    else:
        made = [mixed_questions(first, second), mixed_questions(second, first)]
    # Only now: files of the same questions may have them in another order.
    return [replace(one, items=one.items[:limit]) for one in made]


def split_spec(spec: str) -> tuple[str, str]:
    """Language and file of `code=file`.

    >>> split_spec("de=data/de.tsv")
    ('de', 'data/de.tsv')
    """
    code, told, path = spec.partition("=")
    if not told or not path:
        raise BadSetting(f"data {spec!r}", remedy="a language and a file, such as de=panx.de.tsv")
    return "/".join(check_language(part) for part in code.split("/")), path
