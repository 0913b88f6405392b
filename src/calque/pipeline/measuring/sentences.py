"""`calque measure sentences`: how often a sentence finds its translation, by layer, for several encoders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

from calque.encoders.static import StaticEncoder
from calque.encoders.wrapped import Wrapped
from calque.errors import BadSetting
from calque.geometry.neighbours import Similarity
from calque.measure.scoring import Measurement
from calque.measure.sentence_retrieval import SentenceOptions, sentence_retrieval
from calque.pipeline.measuring.common import (
    Many,
    MeasureRecipe,
    MeasureRun,
    each,
    load_any_pairs,
    measured,
    meeting,
    save_measurements,
    torch_device,
)
from calque.pipeline.runs import Running, input_digests
from calque.text.bitext import read_bitext
from calque.text.clean import Cleaning
from calque.types import Bitext, Encoder, SentencePooling

#: Nothing is dropped but pairs with an empty side.
WHOLE = Cleaning(max_words=10**9, max_ratio=0, duplicates=False)


class SentencesRecipe(MeasureRecipe):
    """Settings of `calque measure sentences`.

    Sentences come from `pairs`, as words, or from `text`: parallel files by language, as `ParallelText` reads
    them. Text is given to encoders as it is written, unless `words` or static vectors ask for words.
    """

    verb: ClassVar[str] = "measure sentences"
    places: ClassVar[frozenset[str]] = MeasureRecipe.places | {"text"}

    text: tuple[str, ...] = ()
    words: bool = False
    similarity: Similarity = Similarity.COSINE
    radius_k: int = 10
    pooling: SentencePooling = "mean"

    def retrieval(self, device: str) -> SentenceOptions:
        return SentenceOptions(
            similarity=self.similarity,
            radius_k=self.radius_k,
            pooling=self.pooling,
            rounds=self.rounds,
            seed=self.seed,
            device=device,
        )


def measure_sentences(
    encoders: Many,
    pairs: Many = (),
    *,
    text: Many = (),
    out: str | Path,
    overwrite: bool = False,
    device: str = "auto",
    **settings: object,
) -> MeasureRun:
    """Sentence retrieval of every encoder on every parallel text; settings as in `SentencesRecipe`."""
    recipe = SentencesRecipe.of(encoders, pairs, text=tuple(each(text)), **settings)
    texts = [ParallelText.parse(spec) for spec in recipe.text]
    if not (recipe.pairs or texts):
        raise BadSetting("no sentences to measure on", remedy="give --pairs or --text")
    for one in texts:
        input_digests(one.paths)  # what is not there is told before an encoder is opened
    opened = recipe.opened(device)
    recipe = recipe.model_copy(update={"words": recipe.words or needs_words(opened)})
    # What was dropped when the pairs were made is no news here.
    bitexts = [replace(load_any_pairs(Path(path), recipe.limit).bitext, dropped={}) for path in recipe.pairs]
    bitexts += [one.read(words=recipe.words, limit=recipe.limit) for one in texts]
    recipe = recipe.knowing({f"text {i}": one.fingerprint for i, one in enumerate(bitexts)}, opened)

    def write(run: Running) -> None:
        parts = []
        for one in bitexts:
            with run.stage("-".join(one.languages)):
                parts.append(_measure(recipe, opened, one))
        save_measurements(run.folder, parts)

    return measured(recipe, out, write, overwrite=overwrite)


def _measure(recipe: SentencesRecipe, opened: Mapping[str, Encoder], bitext: Bitext) -> Measurement:
    encoders = meeting(opened, bitext.languages)
    return sentence_retrieval(
        encoders,
        bitext,
        recipe.chosen_layers(encoders),
        options=recipe.retrieval(torch_device(opened)),
        recipe=recipe.digest(),
    )


# ------------------------------------------------------------------------------------------- the text


@dataclass(frozen=True)
class ParallelText:
    """A bitext in one file, or in one a language, by a short name."""

    paths: tuple[str, ...]
    languages: tuple[str, str]

    @classmethod
    def parse(cls, spec: str) -> Self:
        """Files by language; languages without a file of their own share the one that follows.

        >>> ParallelText.parse("de=news.de,en=news.en")
        ParallelText(paths=('news.de', 'news.en'), languages=('de', 'en'))
        >>> ParallelText.parse("de,en=news.tsv")
        ParallelText(paths=('news.tsv',), languages=('de', 'en'))
        """
        parts = [tuple(field.strip() for field in part.partition("=")) for part in spec.split(",")]
        languages, paths = [part[0] for part in parts], [part[2] for part in parts if part[1]]
        if len(parts) != 2 or not all(languages) or not parts[1][1] or not all(paths):
            raise BadSetting(
                f"text {spec!r} not understood",
                remedy="de=news.de,en=news.en for two files, de,en=news.tsv for one that holds both",
            )
        return cls(tuple(paths), (languages[0], languages[1]))

    def read(self, *, words: bool, limit: int | None = None) -> Bitext:
        """The sentence pairs that have two sides, as words or as they are written."""
        return read_bitext(list(self.paths), self.languages, tokenised=not words, cleaning=WHOLE, limit=limit)


def needs_words(encoders: Mapping[str, Encoder]) -> bool:
    """Whether one of these encoders looks words up, and so cannot read text as it is written."""

    def static(encoder: object) -> bool:
        return static(encoder.inner) if isinstance(encoder, Wrapped) else isinstance(encoder, StaticEncoder)

    return any(map(static, encoders.values()))
