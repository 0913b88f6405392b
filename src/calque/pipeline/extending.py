"""`calque extend`: an encoder learns more of a language from plain text, with more pieces for its words."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from calque.encoders.bundled import BUNDLED, bundled_directory
from calque.encoders.bylanguage import LANGUAGES, PARTS, LanguagesFile
from calque.encoders.encoder import longest_input
from calque.encoders.hub import model_directory, quiet, read_masked, weights_digest
from calque.encoders.tokens import Reader
from calque.errors import BadSetting
from calque.pipeline.modelling import Making, MaskedRecipe, PretrainRun, check_length, modelled
from calque.pipeline.pretraintext import Corpora, file_corpora, text_digests
from calque.pretrain.extending import Extended, Initial, extend_model, extend_tokenizer, pieces_per_word
from calque.pretrain.masked import Learned, MaskedLanguageModel
from calque.pretrain.masking import Masker
from calque.pretrain.texts import Plain, Rows, streamed
from calque.progress import say
from calque.types import Sentences

#: Into how many pieces words are cut.
BEFORE, AFTER = "pieces a word, before", "pieces a word"


class ExtendRecipe(MaskedRecipe):
    """Settings of `calque extend`.

    At most `pieces` are added to the encoder's vocabulary, made from the text of `new_languages` (all of
    `text` unless given: text of a language that the encoder knows is then read too, so as not to be
    forgotten). With `trained` embeddings, all else is held.
    """

    verb: ClassVar[str] = "extend"

    encoder: str
    new_languages: tuple[str, ...] = ()
    pieces: int = Field(5000, ge=0)
    initial: Initial = Initial.MEAN
    trained: Literal["all", "embeddings"] = "all"
    revision: str | None = None
    masked: float = Field(0.15, gt=0, le=1)
    steps: int = Field(1000, ge=1)
    batch_tokens: int = Field(2048, ge=1)
    learning_rate: float = Field(5e-5, gt=0)

    def known(self, folder: Path) -> Self:
        """The recipe with the fingerprints of encoder and files, which must be there."""
        if not self.text:
            raise BadSetting("no text to learn from", remedy="--text sw=FILE, again for each language")
        found = text_digests(self.text, [], [])
        return self.model_copy(update={"inputs": {**found, "encoder": weights_digest(folder)}})


def extend(
    encoder: str,
    text: str | list[str],
    *,
    out: str | Path,
    overwrite: bool = False,
    resume: bool = False,
    device: str = "auto",
    processes: int | None = None,
    save_every: int = 500,
    tensorboard: bool = False,
    **settings: object,
) -> PretrainRun:
    """Add pieces to an encoder and train it on as a masked language model; settings as in `ExtendRecipe`."""
    check_length(settings)
    texts = [text] if isinstance(text, str) else list(text)
    recipe = ExtendRecipe.build(encoder=encoder, text=texts, **settings)
    if (Path(encoder) / LANGUAGES).is_file():
        parts = Path(encoder) / PARTS / LanguagesFile.read(Path(encoder)).languages[0]
        raise BadSetting(
            "an encoder for each language, not one to extend",
            where=encoder,
            remedy=f"one of its parts, such as {parts}",
        )
    bundled = encoder in BUNDLED and not Path(encoder).exists()
    folder = bundled_directory(encoder) if bundled else model_directory(encoder, recipe.revision)
    known = recipe.known(folder)
    how = {"processes": processes, "save_every": save_every, "tensorboard": tensorboard}
    return modelled(
        known,
        out,
        lambda: _making(known, folder),
        overwrite=overwrite,
        resume=resume,
        device=device,
        **how,
    )


def _making(recipe: ExtendRecipe, folder: Path) -> Making:
    model, tokenizer = read_masked(folder, recipe.seed)
    corpora = file_corpora(recipe.text, limit=recipe.limit, dev=recipe.evaluate_every is not None)
    extended = _extended(recipe, tokenizer, corpora)
    if extended.pieces:
        extend_model(model, extended, initial=recipe.initial, seed=recipe.seed)
        say(f"{len(extended.pieces):,} pieces added to {len(tokenizer):,}")
    if recipe.trained == "embeddings":
        model.requires_grad_(False)
        model.get_input_embeddings().weight.requires_grad_(True)
    longest = longest_input(model.base_model)
    if longest < recipe.max_length:
        say(f"inputs of at most {longest} pieces, as many as this encoder reads, not {recipe.max_length}")
    reader = Reader(extended.tokenizer, limit=min(recipe.max_length, longest))
    masker = Masker.of(extended.tokenizer, recipe.masked)

    def save(place: Path) -> None:
        with quiet():
            model.save_pretrained(place)
            extended.tokenizer.save_pretrained(place)

    def scored(text: Sentences) -> Learned:
        return Learned(Plain(reader.layout(text)), model, masker)

    return Making(
        MaskedLanguageModel(_learned(recipe, corpora, reader, model, masker), recipe.reading()),
        {text.language: scored(text) for text in corpora.held_out},
        save,
        _fineness(corpora, tokenizer, extended.tokenizer),
        None if corpora.dev is None else scored(corpora.dev),
    )


def _extended(recipe: ExtendRecipe, tokenizer: Any, corpora: Corpora) -> Extended:
    if not recipe.pieces:
        return Extended(tokenizer, [], [], len(tokenizer))
    unknown = set(recipe.new_languages) - set(corpora.languages)
    if unknown:
        raise BadSetting(
            f"no text of {sorted(unknown)[0]} to take pieces from",
            remedy=f"of {', '.join(corpora.languages)}",
        )
    new = recipe.new_languages or tuple(corpora.languages)
    return extend_tokenizer(tokenizer, [one for one in corpora.texts if one.language in new], recipe.pieces)


def _learned(
    recipe: ExtendRecipe, corpora: Corpora, reader: Reader, model: Any, masker: Masker
) -> list[Learned]:
    layouts = [reader.layout(text) for text in corpora.texts]
    if recipe.rows is Rows.STREAMS:
        layouts = [streamed(layout, layout.frame.tail) for layout in layouts]
    return [Learned(Plain(layout), model, masker) for layout in layouts]


def _fineness(corpora: Corpora, before: Any, after: Any) -> dict[tuple[str, str], float]:
    """Into how many pieces words of held-out text are cut, before and after."""
    told = ((BEFORE, before), (AFTER, after))
    return {
        (text.language, metric): pieces_per_word(tokenizer, text)
        for text in corpora.held_out
        for metric, tokenizer in told
    }
