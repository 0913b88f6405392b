"""Links by statistical models trained on the bitext itself, through sil-thot.

Both directions are trained and then symmetrised. Eflomal can say two things about its own text: the
alignments it ended training with, and those it finds when it decodes the text anew. They differ on most
sentences, and the first are better: `StatisticalLinker.link` gives those ("eflomal/intersection/training").
`TrainedLinker.link`, which takes any text, decodes ("eflomal/intersection/decoded"). For the other models the
two are the same, and always called decoded.

A model in training takes about ten times the memory of what it has learnt. So thot reads the text from files,
and each direction is written down when it has been trained and read back without its text and counts.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from calque.documents import shaped
from calque.errors import BadInput, BadSetting
from calque.files import atomic_directory, check_sealed, read_json, seal, write_json
from calque.links.symmetrise import Symmetrisation, symmetrise
from calque.locks import scratch
from calque.progress import bar
from calque.recipe import Choice
from calque.types import Bitext, Doubles, Ints, Longs, Sentences, WordIndex, WordPairs

CHUNK = 1000
_FILE, _KIND, _AGAIN = "linker.json", "statistical linker", "train it again"
#: Files that hold the text: thot wants them there, and does without what is in them.
_TEXT = ("src", "trg", "srctrgc")
#: Words that thot keeps for itself.
_RESERVED = frozenset({"NULL", "UNKNOWN_WORD", "<UNUSED_WORD>"})


class StatisticalModel(Choice):
    """Which model links.

    eflomal: Gibbs sampling over IBM 1, HMM and fertility; the best links, seeded.
    fast-align: IBM 2 with a diagonal prior, what the papers used.
    hmm, ibm1, ibm2, ibm3, ibm4: the classic models, each started from simpler ones.
    """

    EFLOMAL = "eflomal"
    FAST_ALIGN = "fast-align"
    HMM = "hmm"
    IBM1 = "ibm1"
    IBM2 = "ibm2"
    IBM3 = "ibm3"
    IBM4 = "ibm4"


#: Each model's stages as thot names them: a stage starts from what the one before has learnt.
_STAGES: dict[StatisticalModel, tuple[str, ...]] = {
    StatisticalModel.EFLOMAL: ("EflomalAlignmentModel",),
    StatisticalModel.FAST_ALIGN: ("FastAlignModel",),
    StatisticalModel.HMM: ("Ibm1AlignmentModel", "HmmAlignmentModel"),
    StatisticalModel.IBM1: ("Ibm1AlignmentModel",),
    StatisticalModel.IBM2: ("Ibm1AlignmentModel", "Ibm2AlignmentModel"),
    StatisticalModel.IBM3: ("Ibm1AlignmentModel", "HmmAlignmentModel", "Ibm3AlignmentModel"),
    StatisticalModel.IBM4: (
        "Ibm1AlignmentModel",
        "HmmAlignmentModel",
        "Ibm3AlignmentModel",
        "Ibm4AlignmentModel",
    ),
}


@dataclass(frozen=True)
class StatisticalLinker:
    """Links a bitext by training on it.

    `iterations` is the number of sweeps: for eflomal in all, for the others at each stage. None lets eflomal
    choose by the size of the text, and gives the others five. A score is the geometric mean of the two
    directions' translation probabilities.
    """

    model: StatisticalModel = StatisticalModel.EFLOMAL
    symmetrisation: Symmetrisation = Symmetrisation.INTERSECTION
    seed: int = 0
    iterations: int | None = None
    lowercase: bool = True

    def __post_init__(self) -> None:
        least = 3 if self.model is StatisticalModel.EFLOMAL else 1
        if self.iterations is not None and self.iterations < least:
            raise BadSetting(
                f"iterations is {self.iterations}", remedy=f"at least {least} for {self.model}, or none given"
            )
        if not 0 <= self.seed < 2**31:
            raise BadSetting(f"seed is {self.seed}", remedy="a whole number from 0 to 2147483647")

    @property
    def name(self) -> str:
        way = "training" if self.model is StatisticalModel.EFLOMAL else "decoded"
        return f"{self.model}/{self.symmetrisation}/{way}"

    def link(self, bitext: Bitext) -> WordPairs:
        """Train both directions on this text and return the links they ended training with."""
        return self.train(bitext).training_links()

    def train(self, bitext: Bitext) -> TrainedLinker:
        """Train both directions; the result links other text too, and can be kept."""
        if not len(bitext):
            raise BadInput("no sentence pairs to link", where=bitext.origin or None)
        forward, ended_forward = _train(self, bitext.source, bitext.target)
        backward, ended_backward = _train(self, bitext.target, bitext.source)
        own = _Own(bitext, ended_forward, ended_backward)
        return TrainedLinker(self, forward, backward, bitext.languages, own)


class _Own(NamedTuple):
    """The text a linker was trained on, and the links that its directions ended with, where it told them.

    Shape: forward (target words,), backward (source words,): 1-based words of the other side, or 0.
    """

    bitext: Bitext
    forward: Ints | None
    backward: Ints | None


@dataclass(frozen=True, eq=False)
class TrainedLinker:
    """Two trained directions. `forward` gives each target word its source word, `backward` the reverse."""

    settings: StatisticalLinker
    forward: Any
    backward: Any
    languages: tuple[str, str]
    own: _Own | None = None

    @property
    def name(self) -> str:
        return f"{self.settings.model}/{self.settings.symmetrisation}/decoded"

    def link(self, bitext: Bitext) -> WordPairs:
        """Links of any text of the same languages, seen in training or not."""
        if bitext.languages != self.languages:
            raise BadInput(
                f"a linker of {'-'.join(self.languages)} for text of {'-'.join(bitext.languages)}",
                where=bitext.origin or None,
                remedy="give text of the languages it was trained on, in that order",
            )
        forward = self._decode(self.forward, bitext.source, bitext.target)
        backward = self._decode(self.backward, bitext.target, bitext.source)
        return self._symmetrise(bitext, forward, backward, self.name)

    def training_links(self) -> WordPairs:
        """Links of the text it was trained on: those that training ended with, where they differ."""
        if self.own is None:
            raise BadInput("a linker read from disk keeps no links of its own", remedy="use link(bitext)")
        bitext, forward, backward = self.own
        if forward is None or backward is None:
            return self.link(bitext)
        return self._symmetrise(bitext, forward, backward, self.settings.name)

    def _decode(self, model: Any, given: Sentences, made: Sentences) -> Ints:
        sides = [_fed(side, self.settings.lowercase) for side in (given, made)]

        def alignments() -> Iterator[Any]:
            with bar(f"Linking {given.language} → {made.language}", len(given), "sentences") as advance:
                while some := list(islice(sides[0], CHUNK)):
                    yield from model.get_best_alignments(some, list(islice(sides[1], CHUNK)))
                    advance(len(some))

        return _generators(made, alignments())

    def _symmetrise(self, bitext: Bitext, forward: Ints, backward: Ints, name: str) -> WordPairs:
        """Shape: forward (target words,), backward (source words,): 1-based words of the other side, or 0."""
        sentence, j = (column[forward > 0] for column in WordIndex.every(bitext.target))
        one = WordPairs.of(bitext, sentence, forward[forward > 0] - 1, j)
        sentence, i = (column[backward > 0] for column in WordIndex.every(bitext.source))
        other = WordPairs.of(bitext, sentence, i, backward[backward > 0] - 1)
        links = symmetrise(one, other, self.settings.symmetrisation)
        return replace(links, score=self._scores(links).astype(np.float32), linker=name)

    def _scores(self, links: WordPairs) -> Doubles:
        codes = links.source_ids.astype(np.int64) << 32 | links.target_ids
        kinds, place = np.unique(codes, return_inverse=True)
        source, target = kinds >> 32, kinds & 0xFFFFFFFF
        strings = _safe(links.bitext.source, self.settings.lowercase)
        there = _probabilities(self.forward, strings, source, target)
        back = _probabilities(self.backward, strings, target, source)
        return np.sqrt(there * back).clip(0, 1)[place]

    def save(self, folder: Path) -> None:
        """Keep the linker as one folder: what it learnt and its words, not the text it was trained on."""
        with atomic_directory(folder) as partial:
            for name, model in (("forward", self.forward), ("backward", self.backward)):
                _write(model, partial, name)
            about = {"kind": _KIND, "version": 1, "languages": list(self.languages)}
            write_json(partial / _FILE, about | asdict(self.settings))
            seal(partial)  # thot reads half a file as if there were no more


def load_linker(folder: Path) -> TrainedLinker:
    """Read what `TrainedLinker.save` wrote."""
    path = folder / _FILE
    if path.is_file():
        check_sealed(folder, _AGAIN)
    held = read_json(path) if path.is_file() else None
    if not isinstance(held, dict) or held.get("kind") != _KIND:
        raise BadInput("no trained linker here", where=folder, remedy="give a folder written by its save()")
    with shaped(path, _AGAIN, what="not a linker"):
        settings, languages = _settings(held), _languages(held["languages"])
    forward, backward = (_load(folder, name, settings.model) for name in ("forward", "backward"))
    return TrainedLinker(settings, forward, backward, languages)


def _settings(held: Mapping[str, Any]) -> StatisticalLinker:
    seed, iterations, lowercase = held["seed"], held["iterations"], held["lowercase"]
    if type(seed) is not int or type(iterations) not in (int, type(None)) or type(lowercase) is not bool:
        raise BadInput(f"seed {seed!r}, iterations {iterations!r}, lowercase {lowercase!r}")
    try:
        model, way = StatisticalModel.parse(held["model"]), Symmetrisation.parse(held["symmetrisation"])
        return StatisticalLinker(model, way, seed, iterations, lowercase)
    except BadSetting as error:
        raise BadInput(error.what) from None


def _languages(told: Any) -> tuple[str, str]:
    if not isinstance(told, list) or len(told) != 2 or not all(isinstance(one, str) for one in told):
        raise BadInput(f"languages are {told!r}, not two codes")
    return told[0], told[1]


def _write(model: Any, folder: Path, name: str) -> None:
    """What a model has learnt, without its text. The links that training ended with are lost to it."""
    if not model.print(str(folder / name)):
        raise BadInput("cannot be written", where=folder, remedy="make room on this disk")
    (folder / f"{name}.aligns").unlink(missing_ok=True)
    for text in _TEXT:
        (folder / f"{name}.{text}").write_bytes(b"")


def _load(folder: Path, name: str, kind: StatisticalModel) -> Any:
    model = getattr(_thot(), _STAGES[kind][-1])()
    # thot takes a missing vocabulary for an empty one.
    whole = all((folder / f"{name}.{file}").is_file() for file in ("svcb", "tvcb", "yml"))
    if not whole or not model.load(str(folder / name)):
        raise BadInput(f"its {name} model cannot be read", where=folder, remedy=_AGAIN)
    return model


# ---------------------------------------------------------------------------------------------- thot


def _thot() -> Any:
    try:
        import thot.alignment
    except ImportError:
        machine = f"{platform.system()} on {platform.machine()}"
        raise BadSetting(
            f"statistical linkers need sil-thot, which is not installed (here: {machine})",
            remedy="pip install sil-thot; it has no wheel for Linux on ARM: link by similarity there,"
            " or read links made elsewhere",
        ) from None
    return thot.alignment


def _train(settings: StatisticalLinker, given: Sentences, made: Sentences) -> tuple[Any, Ints | None]:
    """A model of the words of `made` given those of `given`, and the links it ended training with.

    Shape of the links: (words of `made`,). Only eflomal's are worth having.
    """
    with scratch() as folder:
        ended = _train_into(folder, settings, given, made)
        return _load(folder, "model", settings.model), ended


def _train_into(folder: Path, settings: StatisticalLinker, given: Sentences, made: Sentences) -> Ints | None:
    first, *later = (getattr(_thot(), stage) for stage in _STAGES[settings.model])
    files = [
        _text_file(folder / side, text, settings.lowercase)
        for side, text in (("given", given), ("made", made))
    ]
    model = first()
    model.read_sentence_pairs(*map(str, files))
    label = f"Training {settings.model} {given.language} → {made.language}"
    with _threads(settings.model):
        _run(model, settings, label)
        for stage in later:
            model = stage(model)
            _run(model, settings, label)
    ended = None
    # thot's training alignments of an IBM 2 started from IBM 1 are garbage; decoding gives true ones.
    if settings.model is StatisticalModel.EFLOMAL:
        ended = _generators(made, (model.get_training_alignment(k) for k in range(len(made))))
    _write(model, folder, "model")
    return ended


def _text_file(path: Path, side: Sentences, lowercase: bool) -> Path:
    """A sentence a line, from which thot reads it again at every sweep in place of keeping it."""
    with path.open("w", encoding="utf-8", newline="\n") as handle:
        handle.writelines(" ".join(words) + "\n" for words in _fed(side, lowercase))
    return path


def _run(model: Any, settings: StatisticalLinker, label: str) -> None:
    sweeps = settings.iterations or 5
    if settings.model is StatisticalModel.EFLOMAL:
        model.seed = settings.seed
        model.emit_training_alignments = True
        if settings.iterations is not None:
            simple = max(1, settings.iterations // 6)
            model.auto_iterations = False
            model.set_iterations(simple, simple, settings.iterations - 2 * simple)
    model.start_training()
    if settings.model is StatisticalModel.EFLOMAL:
        sweeps = model.scheduled_iterations
    with bar(label, sweeps, "sweeps") as advance:
        for _ in range(sweeps):
            model.train()
            advance(1)
    model.end_training()


def _threads(model: StatisticalModel) -> Any:
    """One thread for fast-align: its sums depend on their order, and so would its links."""
    if model is not StatisticalModel.FAST_ALIGN:
        return nullcontext()
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    return threadpool_limits(1, user_api="openmp")


def _safe(side: Sentences, lowercase: bool) -> list[str]:
    """The vocabulary as thot can keep it: without spaces, none of its own words."""
    strings = side.vocabulary.strings
    cased = [word.lower() for word in strings] if lowercase else strings
    joined = [
        word if word.isprintable() and " " not in word else "\u2423".join(word.split()) for word in cased
    ]
    return [f"\u2423{word}" if word in _RESERVED or not word else word for word in joined]


def _fed(side: Sentences, lowercase: bool) -> Iterator[list[str]]:
    words, ids, cuts = _safe(side, lowercase), side.ids, side.offsets.tolist()
    for a, b in pairwise(cuts):
        yield [words[i] for i in ids[a:b].tolist()]


def _generators(made: Sentences, alignments: Iterable[tuple[float, Any]]) -> Ints:
    """For each generated word the 1-based word that generated it, 0 for none. Shape: (words of `made`,)."""
    found = np.zeros(len(made.ids), np.int32)
    for (first, last), (_, words) in zip(pairwise(made.offsets.tolist()), alignments, strict=True):
        found[first:last] = words.to_list()
    return found


def _probabilities(model: Any, strings: list[str], given: Longs, made: Longs) -> Doubles:
    a = {i: model.get_src_word_index(strings[i]) for i in np.unique(given).tolist()}
    b = {i: model.get_trg_word_index(strings[i]) for i in np.unique(made).tolist()}
    probability = model.translation_prob
    pairs = zip(given.tolist(), made.tolist(), strict=True)
    return np.fromiter((probability(a[i], b[j]) for i, j in pairs), np.float64, len(given))
