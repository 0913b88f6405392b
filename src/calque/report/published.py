"""Figures that five papers printed, and which of them may stand beside a figure of one's own.

A cell matches only where task, language and metric are the same: token F1 never stands beside span F1, a mean
over other languages never beside a mean, a test in mixed languages only beside such a test. The data are
seldom the very same, so every cell says which they are (`dataset`).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from calque.errors import BadSetting
from calque.recipe import suggestion
from calque.report.transfer import PREFIX
from calque.text.languages import primary_subtag

#: The language of a cell that is a paper's own mean over languages.
AVERAGE = "avg"


@dataclass(frozen=True)
class Paper:
    """Where figures were printed."""

    authors: tuple[str, ...]
    year: int
    title: str
    venue: str

    @property
    def short(self) -> str:
        """As it is cited in a line.

        >>> PAPERS["wu2020"].short, PAPERS["cao2020"].short
        ('Wu & Dredze 2020', 'Cao et al. 2020')
        """
        first, *others = (name.rpartition(" ")[2] for name in self.authors)
        return f"{first}{f' & {others[0]}' if len(others) == 1 else ' et al.'} {self.year}"

    @property
    def full(self) -> str:
        """As it stands in a list of references."""
        end = "" if self.title.endswith("?") else "."
        return f"{', '.join(self.authors)} ({self.year}). {self.title}{end} {self.venue}."


PAPERS: Mapping[str, Paper] = {
    "kulshreshtha2020": Paper(
        ("Saurabh Kulshreshtha", "José Luis Redondo García", "Ching-Yun Chang"),
        2020,
        "Cross-lingual Alignment Methods for Multilingual BERT: A Comparative Study",
        "Findings of EMNLP 2020",
    ),
    "cao2020": Paper(
        ("Steven Cao", "Nikita Kitaev", "Dan Klein"),
        2020,
        "Multilingual Alignment of Contextual Word Representations",
        "ICLR 2020",
    ),
    "wu2020": Paper(
        ("Shijie Wu", "Mark Dredze"),
        2020,
        "Do Explicit Alignments Robustly Improve Multilingual Encoders?",
        "EMNLP 2020",
    ),
    "efimov2022": Paper(
        ("Pavel Efimov", "Leonid Boytsov", "Elena Arslanova", "Pavel Braslavski"),
        2022,
        "The Impact of Cross-Lingual Adjustment of Contextual Word Representations on Zero-Shot Transfer",
        "ECIR 2023",
    ),
    "conneau2020": Paper(
        ("Alexis Conneau", "Shijie Wu", "Haoran Li", "Luke Zettlemoyer", "Veselin Stoyanov"),
        2020,
        "Emerging Cross-lingual Structure in Pretrained Language Models",
        "ACL 2020",
    ),
}

#: Encoders by the names that people know them by.
MODELS = {
    "mbert": "mBERT",
    "bert": "BERT",
    "xlm": "XLM",
    "fasttext": "fastText",
    "xlmr-base": "XLM-R base",
    "xlmr-large": "XLM-R large",
    "embert-hi": "mBERT with a larger Hindi vocabulary",
    "bimlm-8l": "bilingual MLM of 8 layers",
    "-": "not told",
}

#: Of a task and metric of calque: the names that the papers' tables have for them.
_SAME: Mapping[tuple[str, str], tuple[tuple[str, ...], tuple[str, ...]]] = {
    ("nli", "accuracy"): (("xnli",), ("accuracy",)),
    # Kulshreshtha et al. say F1 and cite the CoNLL tasks, which count spans.
    ("ner", "f1"): (("ner", "conll-ner", "pioner-ner"), ("f1", "span-f1")),
    ("ner", "token-f1"): (("ner",), ("token-f1",)),
    ("slots", "f1"): (("atis-sf", "fb-sf", "snips-sf"), ("f1",)),
    ("pos", "accuracy"): (("pos",), ("accuracy",)),
    ("parsing", "las"): (("parsing",), ("las",)),
    ("qa", "f1"): (("mlqa", "xquad", "tydiqa", "squad"), ("f1",)),
    ("word-retrieval", "accuracy"): (("word-retrieval",), ("accuracy",)),
}
#: Variants of word retrieval by the tables' names; the parts of speech of Cao et al. match none.
_VARIANTS = {"": "contextual", "contextual": "contextual", "first-occurrence": "non-contextual"}
#: Methods and groups that learned the task in the language that they were tested in.
_LEARNED_THERE = ("translate-train", "target-train-1400")
_WITHIN = "monolingual-check-translated-squad"
#: Groups of texts in two languages, the language told and English, and which of them comes first.
_MIXED = {
    "mixed-language": "{0}+en",
    "question-target-paragraph-en": "{0}+en",
    "question-en-paragraph-target": "en+{0}",
}

_DATASETS = {
    "xnli": "XNLI",
    "pioner-ner": "PioNER",
    "atis-sf": "ATIS in Hindi and Turkish",
    "fb-sf": "Facebook’s multilingual task-oriented dialogue",
    "snips-sf": "Almawave-SLU (SNIPS in Italian)",
    "word-retrieval": "Europarl",
    "mlqa": "MLQA",
    "xquad": "XQuAD",
    "tydiqa": "TyDi QA",
    "squad": "SQuAD",
}
_VERSIONS = {"wu2020": "2.6", "conneau2020": "2.3"}
_TREEBANKS = {"ar": "PADT", "en": "EWT", "hi": "HDTB", "vi": "VTB"} | dict.fromkeys(
    ("de", "es", "fr", "ru", "zh"), "GSD"
)


@dataclass(frozen=True)
class Published:
    """A cell of a paper's table, under the names of `published/results.csv`. `value` and `std` are in %.

    `breakdown` is a group of words such as `pos=verb`; empty where the cell is about all of them.
    """

    paper: str
    table: str
    group: str
    breakdown: str
    model: str
    method: str
    task: str
    language: str
    metric: str
    value: float
    std: float | None
    mark: str

    @property
    def score(self) -> float:
        """The value from 0 to 1, as results have it."""
        return self.value / 100

    @property
    def deviation(self) -> float | None:
        """The standard deviation on the scale of results."""
        return None if self.std is None else self.std / 100

    @property
    def baseline(self) -> bool:
        """Whether nothing was aligned."""
        return self.method == "none"

    @property
    def encoder(self) -> str:
        """The encoder as people call it."""
        return MODELS.get(self.model, self.model)

    @property
    def source(self) -> str:
        """Where it stands, in a few words."""
        return f"{PAPERS[self.paper].short}, table {self.table}"

    @property
    def zero_shot(self) -> bool:
        """Whether the task was not learned in the language that it was tested in."""
        return self.method not in _LEARNED_THERE and self.group != _WITHIN

    @property
    def tested(self) -> str:
        """The language of the test as results name it: `es+en` where its texts are in two."""
        return _MIXED.get(self.group, "{0}").format(self.language)

    @property
    def dataset(self) -> str:
        """What it was tested on, and on which part of it where that is not the test data."""
        return _dataset(self)


def _dataset(cell: Published) -> str:
    if cell.task in ("pos", "parsing"):
        treebank = _TREEBANKS.get(cell.language, "")
        return " ".join(filter(None, ("Universal Dependencies", _VERSIONS[cell.paper], treebank)))
    if cell.task == "ner":
        chinese = (cell.paper, cell.language) == ("conneau2020", "zh")
        return "Chinese entities of SIGHAN 2006, learned from CoNLL 2003" if chinese else "WikiAnn"
    if cell.task == "conll-ner":
        name = "CoNLL 2003" if cell.language == "de" else "CoNLL 2002"
    else:
        name = _DATASETS[cell.task]
    # Kulshreshtha et al. say that they report on the target language's validation data.
    own = cell.paper == "kulshreshtha2020" and cell.group == "zero-shot"
    return f"{name}, dev" if own else f"{name}, mixed languages" if cell.group in _MIXED else name


@cache
def published() -> tuple[Published, ...]:
    """Every cell, in the order of the papers' tables."""
    file = resources.files("calque") / "published" / "results.csv"
    rows = csv.DictReader(file.read_text(encoding="utf-8").splitlines())
    return tuple(map(_cell, rows))


def _cell(row: dict[str, str]) -> Published:
    std = row.pop("std")
    return Published(**{**row, "value": float(row["value"]), "std": float(std) if std else None})  # type: ignore[arg-type]


def check_paper(name: str) -> str:
    """A paper's short name; an unknown one is an error that suggests another."""
    if name not in PAPERS:
        raise BadSetting(f"unknown paper {name!r}", remedy=suggestion(name, PAPERS))
    return name


def matching(
    paper: str | None = None,
    *,
    task: str,
    language: str,
    metric: str,
    variant: str = "",
    ceilings: bool = False,
) -> list[Published]:
    """Cells of one paper or of all that are about the same task, language and metric; often none.

    Names are those of results: `ner` or `transfer-ner`, `de`, or `es+en` for a test in mixed languages. A
    paper's own mean is `AVERAGE`: it is over its own languages (Wu & Dredze's over nine, English among them),
    so `mean` matches none. `variant` is of word retrieval. `ceilings` adds what was learned in the very
    language of the test, such as translate-train.

    >>> for cell in matching(task="ner", language="es", metric="token-f1"):
    ...     print(cell.source, cell.dataset, cell.method, cell.value)
    Efimov et al. 2022, table 3 WikiAnn none 73.4
    Efimov et al. 2022, table 3 WikiAnn adjusted 73.28
    Efimov et al. 2022, table 3 WikiAnn adjusted-continual 72.71
    >>> matching(task="qa", language="de", metric="em")
    []
    """
    if paper is not None:
        check_paper(paper)
    name = task.removeprefix(PREFIX)
    tasks, metrics = _SAME.get((name, metric), ((), ()))
    asked = _places(language, either=name == "nli")
    return [
        cell
        for cell in published()
        if cell.task in tasks
        and cell.metric in metrics
        and cell.tested in asked
        and not cell.breakdown
        and (paper is None or cell.paper == paper)
        and (ceilings or cell.zero_shot)
        and (name != "word-retrieval" or cell.group == _VARIANTS.get(variant))
    ]


def _places(language: str, *, either: bool) -> tuple[str, ...]:
    """A language without script and region; of two, also the other way round where that is the same."""
    codes = [primary_subtag(code) for code in language.split("+")]
    whole = "+".join(codes)
    return (whole, "+".join(codes[::-1])) if either else (whole,)
