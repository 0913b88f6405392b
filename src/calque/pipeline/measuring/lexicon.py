"""`calque measure lexicon`: how often a word of a dictionary finds its translation among all words."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from calque.encoders.aligned import AlignedEncoder
from calque.encoders.static import is_static_spec, open_static_spec
from calque.encoders.wordtypes import table_words
from calque.errors import BadSetting
from calque.files import Cache
from calque.geometry.neighbours import Similarity
from calque.measure.lexicon import LexiconOptions, Oov, TypeVector, lexicon_induction
from calque.measure.scoring import Measurement
from calque.pipeline.measuring.common import (
    Many,
    MeasureRecipe,
    MeasureRun,
    common_pooling,
    each,
    load_any_pairs,
    measured,
    meeting,
    save_measurements,
    torch_device,
)
from calque.pipeline.runs import Running, input_digests, open_for
from calque.pipeline.vocabularies import (
    LanguagePair,
    Texts,
    WordsOptions,
    by_direction,
    read_dictionaries,
    word_types,
)
from calque.text.dictionaries import Dictionary
from calque.types import Encoder


class LexiconRecipe(MeasureRecipe):
    """Settings of `calque measure lexicon`.

    The words of a language are those of its text (`text` as LANGUAGE=FILE, or that of `pairs`), of a table of
    static vectors, or of the dictionaries, whichever there is first: those that occur `min_count` times, and
    of these the first `max_vocab`. Words that differ in case only are one, unless `keep_case`.
    Words that an encoder was trained on together with one of their translations are left out for all of them,
    unless `include_seen`; those that are their own translation only with `drop_identical`.
    """

    verb: ClassVar[str] = "measure lexicon"
    places: ClassVar[frozenset[str]] = MeasureRecipe.places | {"dictionary", "text"}

    dictionary: list[str]
    languages: tuple[str, str] | None = None
    text: list[str] = Field(default_factory=list)
    tokenised: bool = False
    vectors: TypeVector | None = None
    similarity: Similarity = Similarity.CSLS
    radius_k: int = 10
    oov: Oov = Oov.SKIP
    backward: bool = False
    drop_identical: bool = False
    include_seen: bool = False
    keep_case: bool = False
    min_count: int = Field(1, ge=1)
    max_vocab: int = Field(200_000, ge=1)

    def words(self) -> WordsOptions:
        return WordsOptions(not self.keep_case, self.min_count, self.max_vocab)

    def search(self, encoders: Mapping[str, Encoder]) -> LexiconOptions:
        assert self.vectors is not None
        return LexiconOptions(
            vectors=self.vectors,
            similarity=self.similarity,
            radius_k=self.radius_k,
            pooling=common_pooling(self.pooling, encoders),
            oov=self.oov,
            drop_identical=self.drop_identical,
            include_seen=self.include_seen,
            rounds=self.rounds,
            seed=self.seed,
            device=torch_device(encoders),
        )

    def layers_asked(self, encoders: Mapping[str, Encoder]) -> dict[str, tuple[int, ...]]:
        """As asked of anchors; embeddings and static vectors are layer 0."""
        if self.vectors is TypeVector.ANCHORS:
            return self.chosen_layers(encoders)
        if self.layers != "all" and any(chosen != (0,) for chosen in self.chosen_layers(encoders).values()):
            raise BadSetting(
                f"layers {self.layers}: words without a text are looked up in layer 0",
                remedy="leave --layers out, or --vectors anchors with a text",
            )
        return dict.fromkeys(encoders, (0,))


def measure_lexicon(
    encoders: Many,
    dictionary: Many,
    *,
    pairs: Many = (),
    out: str | Path,
    overwrite: bool = False,
    device: str = "auto",
    **settings: object,
) -> MeasureRun:
    """Lexicon induction of every encoder by every dictionary; settings as in `LexiconRecipe`."""
    recipe = LexiconRecipe.of(encoders, pairs, dictionary=each(dictionary), **settings)
    dictionaries = read_dictionaries(recipe.dictionary, recipe.languages)
    bitexts = [load_any_pairs(Path(path), recipe.limit).bitext for path in recipe.pairs]
    texts = Texts.read(recipe.text, bitexts, tokenised=recipe.tokenised, limit=recipe.limit)
    opened = {
        label: _open(recipe, spec, device) for label, spec in zip(recipe.labels, recipe.encoders, strict=True)
    }
    recipe = recipe.model_copy(update={"vectors": recipe.vectors or _usual(opened, dictionaries, texts)})
    inputs = {f"dictionary {i}": digest for i, digest in input_digests(recipe.dictionary).items()}
    recipe = recipe.knowing(inputs | texts.fingerprints(), opened)
    asked = by_direction(dictionaries, backward=recipe.backward)

    def write(run: Running) -> None:
        parts = []
        for languages, ways in asked.items():
            with run.stage("-".join(languages)):
                parts.append(_measure(recipe, meeting(opened, languages), languages, ways, texts))
        save_measurements(run.folder, parts)

    return measured(recipe, out, write, overwrite=overwrite)


def _open(recipe: LexiconRecipe, spec: str, device: str) -> Encoder:
    """Without the cache of vectors, for anchors need none of a text's many vectors again."""
    if is_static_spec(spec):
        return open_static_spec(spec, limit=recipe.max_vocab)
    return open_for(spec, recipe.options(device))


def _usual(
    encoders: Mapping[str, Encoder], dictionaries: Mapping[LanguagePair, Dictionary], texts: Texts
) -> TypeVector:
    """Static where all encoders are and no text is given, anchors otherwise."""
    language = next(iter(dictionaries))[0]
    static = all(table_words(one, language) is not None for one in encoders.values())
    return TypeVector.STATIC if static and not texts.fingerprints() else TypeVector.ANCHORS


def _measure(
    recipe: LexiconRecipe,
    encoders: Mapping[str, Encoder],
    languages: LanguagePair,
    ways: Mapping[str, Dictionary],
    texts: Texts,
) -> Measurement:
    options = recipe.search(encoders)
    if options.vectors is TypeVector.STATIC:
        _check_static(encoders, languages)
    words = {name: dictionary.words() for name, dictionary in ways.items()}
    turned = words["backward"][::-1] if "backward" in words else ((), ())
    both = [list(chain(words["forward"][side], turned[side])) for side in (0, 1)]
    source, target = (
        word_types(
            options.vectors,
            list(encoders.values()),
            language,
            texts.of(language, languages),
            both[side],
            recipe.words(),
        )
        for side, language in enumerate(languages)
    )
    seen = {
        types
        for one in encoders.values()
        if isinstance(one, AlignedEncoder)
        for types in one.seen_by(languages)
    }
    return lexicon_induction(
        encoders,
        (source, target),
        ways,
        recipe.layers_asked(encoders),
        seen=seen,
        options=options,
        cache=Cache(),
        recipe=recipe.digest()[:12],
    )


def _check_static(encoders: Mapping[str, Encoder], languages: LanguagePair) -> None:
    for label, encoder in encoders.items():
        if table_words(encoder, languages[0]) is None:
            raise BadSetting(
                f"encoder {label!r} has no static vectors",
                remedy="--vectors anchors or embeddings take any encoder",
            )
