"""What the measures and their figures are, in words for a reader who has not met them.

A new measure is one more entry in `TASKS`, a new figure one in `METRICS`; what has none is shown by its name.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """How a figure is read: as a percentage or as it is, and whether less is better.

    Where it is `neutral`, more is neither better nor worse. `name` is what it is called where that is not its
    own name, `about` what it is.
    """

    percent: bool = True
    lower: bool = False
    neutral: bool = False
    name: str = ""
    about: str = ""

    @property
    def scale(self) -> float:
        return 100.0 if self.percent else 1.0

    @property
    def unit(self) -> str:
        return "%" if self.percent else ""

    @property
    def peak(self) -> str:
        """What a layer is at which the figure is as good as it gets."""
        return "highest" if self.neutral else "best"


#: Figures that are not a share of which more is better, or that need a word of explanation.
METRICS = {
    "aer": Metric(lower=True, name="AER"),
    "anisotropy": Metric(
        percent=False,
        lower=True,
        about="Mean cosine of words drawn at random: 0 where all directions are used.",
    ),
    "auc": Metric(
        percent=False,
        name="AUC",
        about="The chance that a linked pair lies nearer than an unrelated one: 0.5 is chance, 1 always.",
    ),
    "cka": Metric(percent=False, neutral=True, name="CKA"),
    "correlation": Metric(percent=False, neutral=True),
    "d-prime": Metric(
        percent=False,
        name="d′",
        about="How far the means of linked and unrelated pairs lie apart, in standard deviations.",
    ),
    "distance": Metric(percent=False, lower=True),
    "em": Metric(
        name="exact match",
        about="The share of questions whose whole answer is right, but for case, punctuation and articles.",
    ),
    "f1": Metric(name="F1"),
    "las": Metric(
        name="LAS",
        about="Labelled attachment: the share of words that hang on the right word by the right relation; "
        "punctuation and symbols are left out.",
    ),
    "las-conll18": Metric(
        name="LAS (CoNLL 2018)",
        about="As the shared task of 2018 counts: punctuation too, and relations without their subtypes.",
    ),
    "nearest in the other language": Metric(
        about="The share of drawn words whose nearest one, of all that are drawn, is of the other language."
    ),
    "nearest is the link": Metric(
        about="The share of drawn words whose nearest one is the very word that they are linked to."
    ),
    "overlap": Metric(
        percent=False, lower=True, about="The area that the two histograms share: 0 is none, 1 all of it."
    ),
    "pearson": Metric(percent=False, neutral=True, name="Pearson’s r", about="On a straight line: 1 or −1."),
    "spearman": Metric(percent=False, neutral=True, name="Spearman’s ρ", about="In the same order: 1."),
    "token-f1": Metric(name="F1 of words", about="Counted word by word, over words that belong to a span."),
    "trustworthiness": Metric(
        neutral=True,
        about="How far neighbours in the picture are neighbours in the encoder: 100% where all of them are.",
    ),
    "uas": Metric(
        name="UAS",
        about="Unlabelled attachment: the share of words on the right word, whatever the relation.",
    ),
    "uas-conll18": Metric(
        name="UAS (CoNLL 2018)",
        about="As the shared task of 2018 counts: the same of all words, punctuation too.",
    ),
}


def metric_of(name: str) -> Metric:
    """How a figure of this name is read.

    >>> metric_of("p@5").name, metric_of("top-10 share").percent, metric_of("accuracy").percent
    ('P@5', False, True)
    """
    kind, _, number = name.partition("@")
    if kind == "p" and number.isdigit():
        among = "first" if number == "1" else f"among the first {number}"
        return Metric(
            name=f"P@{number}", about=f"The share of words that find one of their translations {among}."
        )
    if name.startswith("top-") and name.endswith(" share"):
        most = name.removeprefix("top-").removesuffix(" share")
        about = f"The share of the squared distance that lies in the {most} dimensions that differ most."
        return Metric(percent=False, neutral=True, name=f"top {most} dimensions", about=about)
    return METRICS.get(name, Metric())


@dataclass(frozen=True)
class Task:
    """A measure in words.

    `name` is what it is called within a sentence, `title` at the head of a page. `asked` says what was done;
    where something is `counted`, under that name, it starts with what that is, so that the number can stand
    before it. `alone` is the outcome where nothing was compared. Of its `metrics` the first decides the
    verdict and the others stand beside it, and so it is with `variants` that are measured at once.
    `mutual`: both languages are treated alike, nothing goes from one to the other. `drawn`: pictures tell it
    all, so that figures need not be told again.
    """

    name: str
    title: str = ""
    asked: str = ""
    alone: str = ""
    counted: str = ""
    metrics: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    mutual: bool = False
    drawn: bool = False


TASKS = {
    "word-retrieval": Task(
        "word retrieval",
        asked="linked words, and their translations, each search all words of the other language for the one "
        "they are linked to.",
        alone="{value} of the words find their translation",
        counted="scored",
        metrics=("accuracy",),
    ),
    "ambiguous-words": Task(
        "finding the right sense",
        "Words with several translations",
        asked="words with several translations, chosen by rule, each search in some of their sentences for "
        "the word that they are linked to there.",
        alone="{value} of the occurrences find their translation",
        counted="types",
        metrics=("accuracy",),
    ),
    "lexicon": Task(
        "lexicon induction",
        asked="words of a dictionary each search the words of the other language for one of their "
        "translations: words by themselves, without a sentence.",
        alone="{value} of the dictionary’s words find a translation first",
        counted="scored",
        metrics=("p@1", "p@5", "p@10"),
    ),
    "sentence-retrieval": Task(
        "sentence retrieval",
        asked="sentences each search all sentences of the other language for their translation.",
        alone="{value} of the sentences find their translation",
        counted="sentences",
        metrics=("accuracy",),
    ),
    "cka": Task(
        "CKA",
        "Shape of the spaces (CKA)",
        asked="Do the sentences of two languages form the same shape? CKA is 1 where sentences that are "
        "alike in one language are just as much alike in the other, and 0 where the two have nothing in "
        "common. It does not ask whether they lie in the same place: turning or moving one of the two "
        "changes nothing.",
        alone="CKA is {value} at its highest",
        metrics=("cka",),
        variants=("linear", "debiased"),
        mutual=True,
    ),
    "cka-between-encoders": Task(
        "CKA between encoders",
        "Encoders beside the first (CKA)",
        asked="Do the sentences of one language form the same shape in two encoders? CKA is 1 where they do, "
        "but for turning, moving and scaling all of them.",
        alone="CKA is {value} at its highest",
        metrics=("cka",),
        variants=("linear", "debiased"),
        mutual=True,
    ),
    "distances": Task(
        "distances",
        "Distances of linked words",
        asked="Do words and their translations lie nearer to each other than words that have nothing to do "
        "with each other?",
        alone="A linked pair lies nearer than an unrelated one with probability {value}",
        metrics=("auc", "overlap", "d-prime", "anisotropy", "top-10 share", "top-100 share"),
        variants=("l2", "cosine"),
        mutual=True,
    ),
    "projection": Task(
        "words on a plane",
        "Words on a plane",
        asked="Words of two languages, each in a sentence, brought from all dimensions of an encoder to two: "
        "where the languages meet, a word lies beside its translation and not among the other words of its "
        "language. A picture convinces easily: the figures are of the encoder itself, and say how far the "
        "picture holds.",
        alone="{value} of the drawn words lie nearest to the word that they are linked to",
        metrics=("nearest is the link", "nearest in the other language", "trustworthiness"),
        variants=("tsne", "pca"),
        mutual=True,
    ),
    "correlation": Task(
        "correlation",
        "Two measures against each other",
        asked="Where one measure is high, is the other one high as well?",
        alone="{figure} is {value}",
        metrics=("pearson", "spearman"),
        mutual=True,
        drawn=True,
    ),
    "transfer-nli": Task(
        "natural language inference",
        "Natural language inference (NLI)",
        asked="Of two sentences: does the second follow from the first, contradict it, or neither?",
        alone="{value} of the pairs are judged right",
        metrics=("accuracy",),
    ),
    "transfer-ner": Task(
        "named entities",
        "Named entities (NER)",
        asked="Which words of a sentence are names, and of what kind: people, places, organisations? F1 "
        "weighs names that were missed against names that were made up; a name counts only where all of its "
        "words and its kind are right.",
        alone="F1 {value} on names",
        metrics=("f1", "token-f1", "accuracy"),
    ),
    "transfer-slots": Task(
        "slot filling",
        "Slot filling",
        asked="Which words of a request tell what is needed to fulfil it: in ‘wake me at seven’, which are "
        "the time? F1 weighs slots that were missed against slots that were made up; a slot counts only "
        "where all of its words and its kind are right.",
        alone="F1 {value} on slots",
        metrics=("f1", "token-f1", "accuracy"),
    ),
    "transfer-pos": Task(
        "parts of speech",
        "Parts of speech (POS)",
        asked="Is a word a noun, a verb, an adjective, in this sentence?",
        alone="{value} of the words get their right part of speech",
        metrics=("accuracy",),
    ),
    "transfer-parsing": Task(
        "parsing",
        "Dependency parsing",
        asked="On which other word of its sentence does a word hang, and by which relation: as its subject, "
        "its object, its article?",
        alone="{value} of the words hang on the right word by the right relation",
        metrics=("las", "uas", "las-conll18", "uas-conll18"),
    ),
    "transfer-qa": Task(
        "question answering",
        "Question answering (QA)",
        asked="Which stretch of a paragraph answers a question? F1 weighs the words of the answer that were "
        "found against those that do not belong to it, question by question.",
        alone="F1 {value} on answers",
        metrics=("f1", "em"),
    ),
}

#: Variants by the words they are shown in; the usual ones need none.
VARIANTS = {
    "contextual": "",
    "linear": "",
    "mean": "",
    "l2": "L2 distance",
    "first": "first token",
    "tsne": "",
    "pca": "PCA",
}


def task_of(name: str) -> Task:
    """A measure by its name; one that is not known is called by it.

    >>> task_of("cka").title, task_of("slot-filling").name
    ('Shape of the spaces (CKA)', 'slot filling')
    """
    return TASKS.get(name) or Task(name.replace("-", " "))
