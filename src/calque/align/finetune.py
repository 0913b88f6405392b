"""Alignment by training: the encoder itself is changed until linked words meet.

Both sides of all languages of a batch go through the encoder in one pass, held sides first. From there on
there are held words, words that move, and which of them are linked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

import numpy as np
import torch

from calque.align.corpora import Corpus, Moves, Preparer, Supervision
from calque.align.regularisers import Form, NearParameters, Originals, Regulariser, originals
from calque.encoders.aligned import AlignedEncoder
from calque.encoders.encoder import HuggingFaceEncoder
from calque.encoders.joining import joined_batches, places, with_specials
from calque.encoders.pooling import bags, pool
from calque.encoders.spans import ragged
from calque.errors import BadSetting
from calque.files import Cache
from calque.geometry.losses import Contrast, Head, Linked, Power, distance, strong, weak
from calque.recipe import Choice
from calque.training.batches import bucketed, side_by_side
from calque.training.crew import Crew
from calque.training.loop import GradientTerm, Taken
from calque.types import Longs, Pooling, Sentences, TextBatch, WordPairs

#: The figure that tells of collapse: the mean cosine of words that are not linked; and that of linked ones.
UNRELATED, RELATED = "unrelated cosine", "related cosine"

_PARTS = ("source", "target", "source_words", "target_words")


class Loss(Choice):
    """What brings linked words together.

    l2: their distance. weak: each is to be nearer to its translation than to the other words of the other
    side. strong: than to the other words of both sides.
    """

    L2 = "l2"
    WEAK = "weak"
    STRONG = "strong"


_CONTRASTIVE = {Loss.WEAK: weak, Loss.STRONG: strong}


@dataclass(frozen=True)
class FinetuneOptions:
    """How an encoder is aligned by training.

    The loss is summed over `layers`. `supervision` says what is linked: words, special tokens, or both.
    `moves` is the side of the pairs that moves; the other is held. What the moving side is pulled to is the
    held side as it is trained, the same without gradient (detached), or as the original gives it (frozen).
    `power` and `reduction` are those of distances: L2 and the hidden regulariser. The regulariser's weights
    are λ; it keeps all held words, or the linked ones. `head` is the width of the contrastive losses' head, 0
    for none; `queue` how many past links serve as negatives.
    A batch holds `batch` sentence pairs of each language, or of all together, or as many as make
    `batch_tokens` pieces. `max_pairs` sentence pairs of each language are drawn. The original's vectors are
    kept in memory up to `originals_gb`.
    """

    layers: tuple[int, ...]
    loss: Loss = Loss.L2
    pooling: Pooling = "mean"
    supervision: Supervision = "words"
    moves: Moves = "target"
    pulled_to: Literal["trained", "detached", "frozen"] = "trained"
    power: Power = 2
    reduction: Literal["mean", "sum"] = "mean"
    temperature: float = 0.1
    head: int = 128
    queue: int = 0
    mask_same: bool = True
    regulariser: Regulariser = Regulariser.HIDDEN
    hidden_weight: float = 1.0
    hidden_words: Literal["all", "linked"] = "all"
    parameter_weight: float = 1.0
    parameter_form: Form = "squared"
    batch: int = 16
    batch_of: Literal["language", "all"] = "language"
    batch_tokens: int | None = None
    max_pairs: int | None = None
    originals_gb: float = 2.0

    def __post_init__(self) -> None:
        least = {"head": 0, "queue": 0, "hidden_weight": 0, "parameter_weight": 0, "originals_gb": 0}
        least |= {"batch": 1, "batch_tokens": 1, "max_pairs": 1}
        for name, bound in least.items():
            value = getattr(self, name)
            if value is not None and value < bound:
                raise BadSetting(f"{name} is {value}", remedy=f"at least {bound}")
        if not self.temperature > 0:
            raise BadSetting(f"temperature is {self.temperature}", remedy="above 0, such as 0.1")
        if not self.layers:
            raise BadSetting("no layers to align", remedy="such as the last")
        if self.queue and self.loss is Loss.L2:
            raise BadSetting("a queue of negatives is for contrastive losses", remedy="weak or strong")

    @property
    def hidden(self) -> bool:
        """Whether hidden states are kept near the original's."""
        return self.regulariser in (Regulariser.HIDDEN, Regulariser.BOTH)

    @property
    def parameters(self) -> bool:
        """Whether parameters are kept near the original's."""
        return self.regulariser in (Regulariser.PARAMETERS, Regulariser.BOTH)

    @property
    def specials(self) -> bool:
        """Whether special tokens are linked."""
        return self.supervision != "words"


@dataclass(frozen=True)
class FinetuneAligner:
    """Makes the task of aligning an encoder by training, which `train` then carries out.

    What is to stay as it is (embeddings, layers, vocabulary) is frozen before.
    """

    options: FinetuneOptions

    def task(
        self,
        encoder: HuggingFaceEncoder,
        pairs: Sequence[WordPairs],
        *,
        seed: int = 0,
        batches: int | None = None,
        cache: Cache | None = None,
        original: HuggingFaceEncoder | None = None,
    ) -> FinetuneTask:
        """Training on these pairs, of any number of languages.

        The original that hidden states and parameters are kept near is the encoder as it is now, unless
        another is given. `batches` is how many will be read where that may be less than all: then the
        original's vectors are not computed for the whole text. With a cache they stay for the next seed.
        """
        preparer = Preparer(
            encoder,
            supervision=self.options.supervision,
            moves=self.options.moves,
            most=self.options.max_pairs,
            seed=seed,
        )
        corpora = [preparer.corpus(one) for one in pairs]
        return FinetuneTask(
            encoder, corpora, self.options, seed, batches=batches, cache=cache, original=original
        )


# ----------------------------------------------------------------------------------------- the training


@dataclass(frozen=True, eq=False)
class Read:
    """One share of a batch as the encoder reads it, held rows first.

    Shape: held_at, moving_at, held_word, moving_word, order (links,); places are among the words of `batch`,
    of which the first `held_words` are held. `order` is the same however a batch is shared out.
    """

    batch: TextBatch
    held: TextBatch
    held_words: int
    held_at: torch.Tensor
    moving_at: torch.Tensor
    held_word: torch.Tensor
    moving_word: torch.Tensor
    order: torch.Tensor

    def idle(self) -> Read:
        """The same text with nothing to learn from it."""
        return Read(self.batch, self.held, 0, *(column[:0] for column in self._columns))

    @property
    def _columns(self) -> tuple[torch.Tensor, ...]:
        return self.held_at, self.moving_at, self.held_word, self.moving_word, self.order


class FinetuneTask:
    """Aligning an encoder by training, as `train` wants it."""

    unit = "words"

    def __init__(
        self,
        encoder: HuggingFaceEncoder,
        corpora: Sequence[Corpus],
        options: FinetuneOptions,
        seed: int = 0,
        *,
        batches: int | None = None,
        cache: Cache | None = None,
        original: HuggingFaceEncoder | None = None,
    ) -> None:
        self.encoder, self.corpora, self.options, self.seed = encoder, corpora, options, seed
        self.modules: dict[str, torch.nn.Module] = {"encoder": encoder.model}
        self.terms: list[GradientTerm] = []
        if options.parameters:
            near, first = encoder.body.parameters(), _beginning(encoder, original)
            weight, form = options.parameter_weight, options.parameter_form
            self.terms.append(NearParameters(near, weight, form, toward=first))
        self._heads = make_heads(encoder, options, seed)
        if self._heads is not None:
            self.modules["heads"] = self._heads
        self._originals: Originals | None = None
        if options.hidden or options.pulled_to == "frozen":
            self._originals = originals(
                original or encoder,
                [corpus.held.text for corpus in corpora],
                layers=options.layers,
                pooling=options.pooling,
                specials=options.specials,
                most=options.originals_gb * 1e9,
                whole=batches is None or batches >= len(self.batches(0)),
                cache=cache,
            )
        self._queues: dict[int, Linked] = {}

    # ------------------------------------------------------------------------------ what the loop asks

    def batches(self, epoch: int) -> list[Longs]:
        """Shape: each (pairs of a language, languages), numbers of sentence pairs."""
        options, lengths = self.options, [corpus.length for corpus in self.corpora]
        table = side_by_side(lengths, seed=self.seed, epoch=epoch)
        columns = zip(lengths, table.T, strict=True)
        longest = np.max([length[rows] for length, rows in columns], axis=0)
        size = options.batch if options.batch_of == "language" else max(1, options.batch // len(lengths))
        chosen = bucketed(
            2 * len(lengths) * longest,
            size=size if options.batch_tokens is None else None,
            tokens=options.batch_tokens,
            seed=self.seed,
            epoch=epoch,
        )
        return [table[rows] for rows in chosen]

    def step(self, batch: Longs, crew: Crew) -> Taken:
        """Losses of this process's share. One without a share still takes part in what all gather."""
        share = np.array(crew.share(range(len(batch))), np.int64)
        numbers = share if len(share) else np.zeros(1, np.int64)
        rows = batch[numbers]
        read = self._read(rows, numbers) if len(share) else self._read(rows, numbers).idle()
        vectors = self._vectors(read.batch)
        before = vectors if self._originals is None else self._originals.of(read.held, list(rows.T))
        linked = [self._linked(read, *one) for one in zip(vectors, before, strict=True)]
        losses = {self.options.loss.value: self._together(linked, read.order, crew)}
        if self.options.hidden:
            losses["hidden"] = self._near(read, vectors, before, crew)
        units = len(read.batch.row) if len(share) else 0
        last = linked[-1].detached()
        watched = {RELATED: related_cosine(last, crew), UNRELATED: unrelated_cosine(last, crew)}
        return Taken(losses, units, watched)

    def state(self) -> dict[str, torch.Tensor]:
        return {
            f"queue {level} {part}": getattr(queue, part)
            for level, queue in self._queues.items()
            for part in _PARTS
        }

    def load_state(self, state: Mapping[str, torch.Tensor]) -> None:
        levels = sorted({int(name.split()[1]) for name in state})
        self._queues = {
            level: Linked(*(state[f"queue {level} {part}"].to(self.encoder.device) for part in _PARTS))
            for level in levels
        }

    def read_in(self, parts: int) -> bool:
        """The encoder reads a batch in parts; losses are of the whole batch as before."""
        return self.encoder.read_in(parts)

    @torch.no_grad()
    def unrelated(self) -> float:
        """Mean cosine of words that are not linked, as the encoder has it now, in the first batch."""
        rows = self.batches(0)[0]
        read = self._read(rows, np.arange(len(rows)))
        last = self._vectors(read.batch)[-1]
        return unrelated_cosine(self._linked(read, last, last), Crew.alone(self.encoder.device))

    # -------------------------------------------------------------------------------------- one batch

    def _read(self, rows: Longs, numbers: Longs) -> Read:
        """These rows of a batch, which have these numbers in it."""
        count = len(rows)
        held, moving = (
            self._joined([side.text.select(chosen) for side, chosen in zip(sides, rows.T, strict=True)])
            for sides in zip(*((corpus.held, corpus.moving) for corpus in self.corpora), strict=True)
        )
        batch = joined_batches([held, moving], self.encoder.reader.pad)
        columns: list[tuple[Longs, ...]] = []
        for number, (corpus, chosen) in enumerate(zip(self.corpora, rows.T, strict=True)):
            owner, link = ragged(corpus.first[chosen], corpus.first[chosen + 1] - corpus.first[chosen])
            row = number * count + owner
            columns.append(
                (
                    places(batch, row, corpus.held.at[link]),
                    places(batch, row + rows.size, corpus.moving.at[link]),
                    corpus.held.word[link],
                    corpus.moving.word[link],
                    numbers[owner] * len(self.corpora) + number,
                )
            )
        whole = (torch.from_numpy(np.concatenate(parts)) for parts in zip(*columns, strict=True))
        return Read(batch, held, len(held.row), *(column.to(self.encoder.device) for column in whole))

    def _joined(self, texts: Sequence[Sentences]) -> TextBatch:
        made = [self.encoder.batch(text) for text in texts]
        if self.options.specials:
            made = [with_specials(one) for one in made]
        return joined_batches(made, self.encoder.reader.pad)

    def _vectors(self, batch: TextBatch) -> list[torch.Tensor]:
        """Vectors of all words of a batch, a tensor a layer. Shape: each (words, d)."""
        states = self.encoder.states(batch, self.options.layers)
        taken = bags(
            batch.row, batch.start, batch.end, width=batch.pieces.shape[1], pooling=self.options.pooling
        )
        return [pool(hidden, taken).float() for hidden in states.hidden]

    def _linked(self, read: Read, vectors: torch.Tensor, before: torch.Tensor) -> Linked:
        """Linked words of one layer: the held side (source here) and the one that moves (target)."""
        held = (before if self.options.pulled_to == "frozen" else vectors)[read.held_at]
        if self.options.pulled_to == "detached":
            held = held.detach()
        return Linked(held, vectors[read.moving_at], read.held_word, read.moving_word)

    def _together(self, linked: Sequence[Linked], order: torch.Tensor, crew: Crew) -> torch.Tensor:
        """What brings linked words together, summed over layers."""
        if self.options.loss is Loss.L2:
            count = self._count(len(order), crew)
            parts = [self._apart(one.source, one.target, count) for one in linked]
        else:
            offset, sequence = crew.offset(len(order)), crew.gather(order).argsort(stable=True)
            parts = [self._told_apart(level, one, crew, offset, sequence) for level, one in enumerate(linked)]
        return torch.stack(parts).sum()

    def _told_apart(
        self, level: int, links: Linked, crew: Crew, offset: int, sequence: torch.Tensor
    ) -> torch.Tensor:
        """A contrastive loss of one layer; the batch, in `sequence`, then goes into the queue."""
        own = self._headed(level, links)
        batch, queue = own.each(crew.gather), self._queues.get(level)
        contrast = Contrast(self.options.temperature, self.options.mask_same, batch, offset, queue)
        if self.options.queue:
            newest = batch.detached().each(lambda column: column[sequence])
            whole = newest if queue is None else newest.then(queue)
            self._queues[level] = whole.each(lambda column: column[: self.options.queue])
        return _CONTRASTIVE[self.options.loss](own, contrast)

    def _headed(self, level: int, links: Linked) -> Linked:
        if self._heads is None:
            return links
        head = self._heads[level]
        return replace(links, source=head(links.source), target=head(links.target))

    def _near(
        self, read: Read, vectors: Sequence[torch.Tensor], before: Sequence[torch.Tensor], crew: Crew
    ) -> torch.Tensor:
        """How far held words are from where the original has them, summed over layers."""
        every = slice(0, read.held_words)
        chosen = every if self.options.hidden_words == "all" else read.held_at
        parts = [(now[chosen], then[chosen]) for now, then in zip(vectors, before, strict=True)]
        count = self._count(len(parts[0][0]), crew)
        apart = [self._apart(now, then, count) for now, then in parts]
        return self.options.hidden_weight * torch.stack(apart).sum()

    def _apart(self, a: torch.Tensor, b: torch.Tensor, count: float | torch.Tensor) -> torch.Tensor:
        return distance(a, b, power=self.options.power, count=count)

    def _count(self, rows: int, crew: Crew) -> float | torch.Tensor:
        return crew.total(float(rows)) if self.options.reduction == "mean" else 1.0

    # ---------------------------------------------------------------------------------- what came of it

    def aligned(self) -> AlignedEncoder:
        """The encoder as it is now: it needs no maps, and knows what pairs of words and sentences it saw."""
        seen: dict[tuple[str, str], frozenset[tuple[str, str]]] = {}
        for corpus in self.corpora:
            seen[corpus.languages] = seen.get(corpus.languages, frozenset()) | corpus.types
        read = np.unique(np.concatenate([corpus.read for corpus in self.corpora]))
        return AlignedEncoder(self.encoder, {}, "", self.options.pooling, seen, self.about(), read)

    def about(self) -> dict[str, object]:
        """What was trained, on what, and what could not be used."""
        options = asdict(self.options)
        coverage: dict[str, Counter[str]] = {}
        for corpus in self.corpora:
            coverage.setdefault("-".join(corpus.languages), Counter()).update(corpus.coverage)
        return {
            "method": options.pop("loss"),
            "layers": list(options.pop("layers")),
            "options": options,
            "original": "not needed" if self._originals is None else self._originals.about,
            "coverage": {languages: dict(counts) for languages, counts in coverage.items()},
        }


def _beginning(encoder: HuggingFaceEncoder, original: HuggingFaceEncoder | None) -> list[torch.nn.Parameter]:
    """What each parameter is kept near: the original's of its name; adapters, which it lacks, as they are."""
    there = dict((original or encoder).body.named_parameters())
    found = []
    for name, own in encoder.body.named_parameters():
        first = there.get(name.replace(".base_layer", ""), own if ".lora_" in name else None)
        if first is None or first.shape != own.shape:
            told = f"{(original or encoder).name} is not what {encoder.name} was made from: {name}"
            raise BadSetting(told, remedy="another --original")
        found.append(first)
    return found


def make_heads(
    encoder: HuggingFaceEncoder, options: FinetuneOptions, seed: int
) -> torch.nn.ModuleList | None:
    """A head for each layer, the same in every process."""
    if options.loss is Loss.L2 or not options.head:
        return None
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        heads = [Head(encoder.width, options.head) for _ in options.layers]
    return torch.nn.ModuleList(heads).to(encoder.device)


@torch.no_grad()
def related_cosine(links: Linked, crew: Crew) -> float:
    """Mean cosine of linked words."""
    cosine = torch.nn.functional.cosine_similarity(links.source, links.target).cpu().double()
    total, count = crew.total(torch.stack([cosine.sum(), cosine.new_tensor(len(cosine))])).tolist()
    return total / count if count else 0.0


@torch.no_grad()
def unrelated_cosine(links: Linked, crew: Crew) -> float:
    """Mean cosine of words that are not linked: each with the one half a batch further, unless the same."""
    step = len(links) // 2
    other, word = links.target.roll(step, 0), links.target_words.roll(step, 0)
    apart = word != links.target_words
    cosine = torch.nn.functional.cosine_similarity(links.source[apart], other[apart]).cpu().double()
    total, count = crew.total(torch.stack([cosine.sum(), cosine.new_tensor(len(cosine))])).tolist()
    return total / count if count else 0.0
