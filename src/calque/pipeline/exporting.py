"""`calque export`: an encoder as a directory of sentence-transformers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

from calque.encoders.aligned import AlignedEncoder
from calque.encoders.bylanguage import LanguageEncoders, PieceReader
from calque.encoders.encoder import HuggingFaceEncoder
from calque.encoders.open import open_encoder
from calque.encoders.sentence_model import ELSEWHERE, SentenceModel, write_sentence_model
from calque.encoders.tokens import language_code
from calque.errors import BadSetting
from calque.files import is_done, read_json, write_json
from calque.pipeline.card import write_export_card
from calque.pipeline.pairing import one_layer
from calque.pipeline.runs import EncoderRecipe, running
from calque.recipe import suggestion
from calque.text.languages import check_language
from calque.types import Encoder, SentencePooling, SpaceMap

ABOUT = Path("artifacts") / "export.json"


class ExportRecipe(EncoderRecipe):
    """Settings of `calque export`.

    `language` is the one whose vectors are exported, where an encoder has maps or weights for each. With
    `normalise` vectors have length one.
    """

    verb: ClassVar[str] = "export"
    places: ClassVar[frozenset[str]] = frozenset({"encoder"})

    encoder: str
    language: str | None = None
    layer: str = "last"
    pooling: SentencePooling = "mean"
    normalise: bool = False


@dataclass(frozen=True)
class Exported:
    """What `export` wrote: the modules of sentence-transformers, and what their vectors are.

    `space` is the language whose space the maps lead into, None without maps.
    """

    folder: Path
    modules: tuple[str, ...]
    language: str | None
    space: str | None
    layer: int
    prefix: str


def export(
    encoder: str,
    *,
    out: str | Path,
    overwrite: bool = False,
    device: str = "auto",
    **settings: object,
) -> Exported:
    """Write a directory that `SentenceTransformer` loads by itself; settings as in `ExportRecipe`.

    Its vectors are those of `sentence_vectors`, for text whose words are what spaces separate.
    """
    recipe = ExportRecipe.build(encoder=str(encoder), **settings)
    if recipe.language is not None:
        recipe = recipe.model_copy(update={"language": check_language(recipe.language)})
    opened = open_encoder(recipe.encoder, recipe.options(device))
    recipe = recipe.model_copy(update={"inputs": {"encoder": opened.fingerprint}})
    folder = Path(out)
    if not is_done(folder, recipe.digest(), overwrite=overwrite):
        made, space = _chosen(opened, recipe)
        with running(recipe, folder, overwrite=overwrite) as run:
            modules = write_sentence_model(run.folder, made)
            found = Exported(
                folder, tuple(modules), recipe.language, space, made.layer, made.encoder.options.prefix or ""
            )
            held = asdict(found)
            del held["folder"]
            write_json(run.folder / ABOUT, held)
            write_export_card(run.folder, opened, recipe, found)
    held = read_json(folder / ABOUT)
    return Exported(folder, **{**held, "modules": tuple(held["modules"])})


def _chosen(opened: Encoder, recipe: ExportRecipe) -> tuple[SentenceModel, str | None]:
    """What is exported, and the space that its maps lead into."""
    inner = opened.inner if isinstance(opened, AlignedEncoder) else opened
    if not isinstance(inner, HuggingFaceEncoder | LanguageEncoders):
        raise BadSetting(
            f"{recipe.encoder} has static vectors: sentence-transformers would look its words up otherwise",
            remedy=ELSEWHERE,
        )
    language = _language(opened, inner, recipe)
    part = inner.speaking(language)
    layer = one_layer(recipe.layer, part.depth)
    space_map, space = SpaceMap(), None
    if isinstance(opened, AlignedEncoder) and opened.maps:
        # The map of a language into the space that the encoder is in, else into one that it reaches.
        moved = opened.meeting((language, language))
        if layer not in moved.layers:
            raise BadSetting(
                f"{recipe.encoder} has no maps at layer {layer}: its vectors there are not aligned",
                remedy=f"--layer {' or '.join(map(str, moved.layers))}",
            )
        space_map, space = moved.map_for(language, layer), moved.space
    made = SentenceModel(part, language, layer, recipe.pooling, space_map, recipe.normalise)
    return made, space


def _language(opened: Encoder, inner: PieceReader, recipe: ExportRecipe) -> str:
    """The language whose vectors are exported; none for an encoder that reads all alike."""
    maps = opened.maps if isinstance(opened, AlignedEncoder) else {}
    known = sorted({key.language for key in maps} or opened.languages or ())
    given = recipe.language
    if not known:
        if given is None:
            return ""
        if language_code(inner.speaking(given).tokenizer, given):
            return given
        raise BadSetting(
            f"{recipe.encoder} reads all languages alike: --language {given} changes nothing",
            remedy="leave it out",
        )
    if given is None:
        raise BadSetting(
            f"{recipe.encoder} has {'maps' if maps else 'an encoder'} for each language, and "
            "sentence-transformers is not told of languages",
            remedy=f"--language {' or '.join(known)}, one directory for each; with all at once: "
            "calque.pipeline.MtebEncoder in Python",
        )
    if given not in known:
        raise BadSetting(
            f"{recipe.encoder} has no {'map' if maps else 'encoder'} for language {given!r}",
            remedy=suggestion(given, known),
        )
    return given
