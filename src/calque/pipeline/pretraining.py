"""`calque pretrain`: text of one language or several to a masked language model that they share in part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from pydantic import Field, model_validator
from transformers import BertConfig, BertForMaskedLM

from calque.encoders.bylanguage import PARTS, LanguagesFile
from calque.encoders.hub import quiet
from calque.encoders.tokens import Reader
from calque.errors import BadSetting
from calque.pipeline.modelling import Making, MaskedRecipe, PretrainRun, check_length, modelled
from calque.pipeline.pretraintext import (
    Corpora,
    file_corpora,
    text_digests,
    text_languages,
    world_corpora,
)
from calque.presets import load_preset
from calque.pretrain.masked import Learned, MaskedLanguageModel
from calque.pretrain.masking import Masker
from calque.pretrain.sharing import CONDITIONS, Share, Sharing, sharing_models
from calque.pretrain.switching import switchable
from calque.pretrain.texts import MaskedText, Paired, Plain, Rows, Switched, streamed
from calque.pretrain.vocabulary import SPECIALS, Cut, Cutting, train_tokenizers
from calque.progress import say
from calque.types import Sentences

#: Settings of the world's text.
OF_THE_WORLD = ("languages", "sentences", "domains")


class PretrainRecipe(MaskedRecipe):
    """Settings of `calque pretrain`.

    Text is that of files, by language as `file_corpora` reads them, or of the world: then `sentences` are
    drawn for each of `languages`, none the translation of another, and with `domains` of different kinds.
    `share` says what languages have in common. With `paired`, that part of the rows are sentences beside
    their translation (TLM), from `bitext` or the world. `inner` is the width of a layer's inside, 4 times
    `width` in BERT. `preset` names whose settings these are, but for those that were given.
    """

    verb: ClassVar[str] = "pretrain"

    preset: str | None = None
    languages: tuple[str, ...] = ("en", "far")
    sentences: int = Field(40_000, ge=1)
    domains: bool = False
    bitext: list[str] = Field(default_factory=list)
    paired: float = Field(0.0, ge=0, lt=1)
    dictionary: list[str] = Field(default_factory=list)
    share: Share = Share.ALL
    cutting: Cutting = Cutting.UNIGRAM
    vocabulary: int = Field(4500, ge=1)
    layers: int = Field(4, ge=1)
    width: int = Field(96, ge=1)
    heads: int = Field(4, ge=1)
    inner: int = Field(192, ge=1)
    dropout: float = Field(0.0, ge=0, lt=1)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.width % self.heads:
            raise ValueError(
                f"a width of {self.width} cannot be shared by {self.heads} heads: give a multiple of them"
            )
        if self.text and (idle := [name for name in OF_THE_WORLD if self._given(name)]):
            raise ValueError(f"{' and '.join(idle)} are of the world, and text is given: leave them out")
        if self.bitext and not (self.text and self.paired):
            raise ValueError(
                "bitext goes with text, and with the part of rows that are paired (--paired 0.5)"
            )
        if self.paired and self.text and not self.bitext:
            raise ValueError("paired rows need a bitext: --bitext en,de=FILE")
        if self.paired and not self.sharing.whole:
            raise ValueError(
                f"two languages cannot stand in one row when they share no more than {self.share}: share all"
            )
        if self.sharing.switched and self.text and not self.dictionary:
            raise ValueError("extra anchors need a dictionary: --dictionary en-de.txt")
        if self.dictionary and not (self.sharing.switched and self.text):
            raise ValueError("a dictionary goes with text of one's own and share extra-anchors")
        if self.sharing.switched and self.rows is Rows.STREAMS:
            raise ValueError("extra anchors replace words in sentences, not in streams: --rows sentences")
        return self

    def _given(self, name: str) -> bool:
        return bool(getattr(self, name) != type(self).model_fields[name].default)

    @property
    def sharing(self) -> Sharing:
        return CONDITIONS[self.share]

    def known(self) -> Self:
        """The recipe with the fingerprints of its files, which must be there."""
        codes = text_languages(self.text) if self.text else self.languages
        if len(set(codes)) < 2 and (self.share is not Share.ALL or self.paired):
            raise BadSetting(
                f"nothing to share: {', '.join(codes)} is the only language",
                remedy="give another, or neither --share nor --paired",
            )
        found = text_digests(self.text, self.bitext, self.dictionary)
        return self.model_copy(update={"inputs": found}) if found else self

    def corpora(self) -> Corpora:
        """What to read."""
        if self.text:
            return file_corpora(
                self.text,
                limit=self.limit,
                bitext=self.bitext,
                dictionaries=self.dictionary,
                dev=self.evaluate_every is not None,
            )
        return world_corpora(
            self.languages,
            self.sentences,
            self.seed,
            domains=self.domains,
            switched=self.sharing.switched,
            pairs=self.sentences // 4 if self.paired else 0,
            dev=self.evaluate_every is not None,
        )

    def model(self, tokenizer: Any, number: int = 0) -> Any:
        """A BERT of this size with random weights, the same for the same seed and number."""
        config = BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=self.width,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            intermediate_size=self.inner,
            max_position_embeddings=self.max_length,
            hidden_dropout_prob=self.dropout,
            attention_probs_dropout_prob=self.dropout,
            pad_token_id=tokenizer.pad_token_id,
        )
        with torch.random.fork_rng():
            torch.manual_seed(self.seed + 1000 * number)
            return BertForMaskedLM(config)


def pretrain(
    out: str | Path,
    *,
    preset: str | Path | None = None,
    overwrite: bool = False,
    resume: bool = False,
    device: str = "auto",
    processes: int | None = None,
    save_every: int = 500,
    tensorboard: bool = False,
    **settings: object,
) -> PretrainRun:
    """Train a masked language model and write it; settings as in `PretrainRecipe`, or by a preset.

    Until it is written, checkpoints lie in a hidden folder beside `out`, from which `resume` goes on. Started
    by torchrun, every process runs this, and the first one writes.
    """
    recipe = pretrain_recipe(preset, **settings).known()

    def make() -> Making:
        corpora = recipe.corpora()
        return _Made.of(recipe, corpora).making(recipe, corpora)

    how = {"processes": processes, "save_every": save_every, "tensorboard": tensorboard}
    return modelled(recipe, out, make, overwrite=overwrite, resume=resume, device=device, **how)


def pretrain_recipe(preset: str | Path | None = None, **settings: object) -> PretrainRecipe:
    """What these settings ask for; no text is read yet."""
    check_length(settings)
    if preset is not None:
        settings = {**load_preset(preset, "pretrain").settings, "preset": Path(preset).stem, **settings}
    return PretrainRecipe.build(**settings)


@dataclass(frozen=True, eq=False)
class _Made:
    """Models and tokenizers by language, and the texts that they learn from."""

    languages: Sequence[str]
    models: Sequence[Any]
    cuts: Sequence[Cut]
    readers: Sequence[Reader]
    maskers: Sequence[Masker]

    @classmethod
    def of(cls, recipe: PretrainRecipe, corpora: Corpora) -> _Made:
        sharing, texts = recipe.sharing, corpora.texts
        cuts = train_tokenizers(
            texts, recipe.vocabulary, recipe.cutting, sharing.pieces, max_length=recipe.max_length
        )
        pieces = {id(cut.tokenizer): int(cut.own.sum()) for cut in cuts}
        if (made := len(SPECIALS) + sum(pieces.values())) < recipe.vocabulary:
            say(f"{made:,} pieces, not {recipe.vocabulary:,}: the text gives no more")
        models = sharing_models(
            lambda number: recipe.model(cuts[number].tokenizer, number),
            len(texts),
            sharing.separate(recipe.layers),
            softmax=sharing.own_embeddings,
        )
        maskers = [Masker.of(cut.tokenizer, recipe.masked) for cut in cuts]
        if not sharing.whole:
            maskers = [replace(one, ordinary=cut.own) for one, cut in zip(maskers, cuts, strict=True)]
        # One reader for a tokenizer that languages share: it remembers how words are cut.
        held = {id(cut.tokenizer): Reader(cut.tokenizer, limit=recipe.max_length) for cut in cuts}
        readers = [held[id(cut.tokenizer)] for cut in cuts]
        return cls(corpora.languages, models, cuts, readers, maskers)

    def learned(self, recipe: PretrainRecipe, corpora: Corpora) -> list[Learned]:
        """Every text with its model; pairs last."""
        found = [
            Learned(self._text(recipe, corpora, number, text), self.models[number], self.maskers[number])
            for number, text in enumerate(corpora.texts)
        ]
        for pair in corpora.pairs:
            a, b = (self.languages.index(code) for code in pair.languages)
            sides = self.readers[a].layout(pair.source), self.readers[b].layout(pair.target)
            rows = Paired.of(*sides, self.readers[a].pair, recipe.max_length)
            found.append(Learned(rows, self.models[0], self.maskers[0], paired=True))
        return found

    def _text(self, recipe: PretrainRecipe, corpora: Corpora, number: int, text: Sentences) -> MaskedText:
        reader = self.readers[number]
        if corpora.translations is not None:
            whole, switcher = switchable(text, corpora.translations.get(text.language, {}))
            return Switched(whole, reader, switcher)
        layout = reader.layout(text)
        return Plain(streamed(layout, layout.frame.tail) if recipe.rows is Rows.STREAMS else layout)

    def scored(self, number: int, text: Sentences) -> Learned:
        """Held-out sentences of the language of this number, as they are."""
        return Learned(Plain(self.readers[number].layout(text)), self.models[number], self.maskers[number])

    def save(self, folder: Path, sharing: Sharing, layers: int) -> None:
        """An ordinary checkpoint; one a language where they share less than everything or cut words apart."""
        with quiet():
            if len({id(cut.tokenizer) for cut in self.cuts}) == 1:
                self.models[0].save_pretrained(folder)
                self.cuts[0].tokenizer.save_pretrained(folder)
                return
            for code, model, cut in zip(self.languages, self.models, self.cuts, strict=True):
                model.save_pretrained(folder / PARTS / code)
                cut.tokenizer.save_pretrained(folder / PARTS / code)
            LanguagesFile(tuple(self.languages), tuple(sharing.separate(layers))).write(folder)

    def making(self, recipe: PretrainRecipe, corpora: Corpora) -> Making:
        """What is trained, scored and written."""
        return Making(
            MaskedLanguageModel(self.learned(recipe, corpora), recipe.reading(recipe.paired)),
            {text.language: self.scored(number, text) for number, text in enumerate(corpora.held_out)},
            lambda folder: self.save(folder, recipe.sharing, recipe.layers),
            dev=None if corpora.dev is None else self.scored(0, corpora.dev),
        )
