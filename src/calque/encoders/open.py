"""One door to every encoder: a hub name, a directory, static vectors, the bundled model, aligned ones."""

from __future__ import annotations

import difflib
import shutil
from collections.abc import Hashable
from dataclasses import replace
from pathlib import Path
from weakref import WeakValueDictionary

from calque.encoders.aligned import ALIGNMENT, MAPS, AlignedEncoder, Beginning, load_maps, save_maps
from calque.encoders.bundled import BUNDLED, MANIFEST, bundled_directory
from calque.encoders.bylanguage import LANGUAGES, PARTS, LanguageEncoders, LanguagesFile
from calque.encoders.encoder import EncoderOptions, HuggingFaceEncoder
from calque.encoders.hub import model_directory
from calque.encoders.specs import by_language, is_by_language, names_vectors
from calque.encoders.static import StaticEncoder, load_static, open_static_spec, save_static
from calque.errors import BadInput, BadSetting
from calque.files import FINISHED, SUMS
from calque.text.languages import check_language
from calque.types import Encoder

#: What tells sentence-transformers how to make sentence vectors of a checkpoint.
MODULES, READING, SENTENCES = (
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
)
#: What belongs to a checkpoint, and what calque itself put beside one. What sentence-transformers would make
#: of it is not its own either: where there are maps it would be wrong.
CHECKPOINT = frozenset({".json", ".safetensors", ".model", ".txt", ".spm", ".jinja"})
OURS = frozenset(
    {ALIGNMENT, MAPS, MANIFEST, SUMS, FINISHED, "environment.json", "cost.json", MODULES, READING, SENTENCES}
)


def open_encoder(spec: str, options: EncoderOptions | None = None, *, own: bool = False) -> Encoder:
    """Open an encoder.

    `spec` is a hub name, a local directory, a directory written by calque, `e5-small-q4`, static vectors as
    `en=wiki.en.vec,de=wiki.de.vec`, or encoders that were trained apart as `en=DIRECTORY,de=DIRECTORY`. An
    `own` one is shared with nobody, and may be changed.
    """
    options = options or EncoderOptions()
    if is_by_language(spec):
        return open_static_spec(spec) if names_vectors(spec) else _strangers(spec, options, own)
    folder = Path(spec).expanduser()
    began = Beginning.read(folder)
    if began is not None:
        inner = _open_plain(spec, as_trained(options, began), began.name or spec, own)
        return load_maps(folder, inner)
    return _open_plain(spec, options, spec, own)


def _strangers(spec: str, options: EncoderOptions, own: bool) -> LanguageEncoders:
    """Encoders that share nothing, one for each language that is named."""
    parts: dict[str, HuggingFaceEncoder] = {}
    for given, what in by_language(spec).items():
        code = check_language(given)
        if code in parts:
            raise BadSetting(f"two encoders for {code} in {spec!r}", remedy="give one a language")
        parts[code] = _ordinary(what, options, f"{code} of {spec}", own)
    return LanguageEncoders(parts, name=spec)


def _ordinary(what: str, options: EncoderOptions, name: str, own: bool) -> HuggingFaceEncoder:
    """One encoder for all languages, without maps."""
    folder = Path(what).expanduser()
    moved = (folder / MAPS).is_file()
    if not moved and not (folder / LANGUAGES).is_file():
        opened = _open_plain(what, options, name, own)
        if isinstance(opened, HuggingFaceEncoder):
            return opened
    raise BadSetting(
        f"{what} is aligned by maps already" if moved else f"{what} is not one encoder for one language",
        remedy="name a Hugging Face encoder for each language",
    )


def _by_language(folder: Path, options: EncoderOptions, name: str, own: bool) -> LanguageEncoders:
    """Encoders as `LanguageEncoders.save` wrote them."""
    about = LanguagesFile.read(folder)
    parts = {
        code: _ordinary(str((folder / PARTS / code).absolute()), options, f"{code} of {name}", own)
        for code in about.languages
    }
    try:
        return LanguageEncoders(parts, separate=about.separate, name=name)
    except BadInput as error:
        raise BadInput(error.what, where=folder, remedy=error.remedy) from None


def _open_plain(spec: str, options: EncoderOptions, name: str, own: bool) -> Encoder:
    folder = Path(spec).expanduser()
    if (folder / "static.json").is_file():
        return load_static(folder)
    if (folder / LANGUAGES).is_file():
        return _by_language(folder, options, name, own)
    bundled = spec in BUNDLED and not folder.exists()
    meant = difflib.get_close_matches(spec, BUNDLED, 1, 0.8)
    if meant and not bundled and not folder.exists():
        raise BadSetting(f"no encoder {spec!r}", remedy=f"did you mean {meant[0]}?")
    directory = bundled_directory(spec) if bundled else model_directory(spec, options.revision)
    if own:
        return HuggingFaceEncoder.load(str(directory), options, name=name)
    return _open_once(directory, options, name)


#: Encoders in use, by name, options and the files that they were read from.
_IN_USE: WeakValueDictionary[Hashable, HuggingFaceEncoder] = WeakValueDictionary()


def _open_once(folder: Path, options: EncoderOptions, name: str) -> HuggingFaceEncoder:
    """An encoder from a directory; the one in use when these files, or links to them, were read already.

    One whose weights have changed in memory since is not taken.
    """
    options = replace(options, prefix=options.prefix or "")
    key = (name, options, *(_identity(file) for file in checkpoint_files(folder)))
    found = _IN_USE.get(key)
    if found is None or found.directory is None:
        found = _IN_USE[key] = HuggingFaceEncoder.load(str(folder), options, name=name)
    return found


def _identity(file: Path) -> tuple[str, int, int, int]:
    about = file.stat()
    return (file.name, about.st_dev, about.st_ino, about.st_mtime_ns)


def trained_prefix(spec: str) -> str | None:
    """The prefix that an aligned encoder was aligned with; None when `spec` is no aligned encoder."""
    began = Beginning.read(Path(spec).expanduser())
    return None if began is None else began.prefix


def as_trained(options: EncoderOptions, began: Beginning | None) -> EncoderOptions:
    """Maps belong to the input they were learned on: its prefix and length come along with them."""
    if began is None:
        return options
    return replace(
        options,
        prefix=began.prefix if options.prefix is None else options.prefix,
        max_length=began.max_length or options.max_length,
    )


def save_aligned(folder: Path, aligned: AlignedEncoder) -> None:
    """Write an encoder that `open_encoder` reads back as it is, and AutoModel without its maps."""
    inner = aligned.inner
    if isinstance(inner, StaticEncoder):
        save_static(folder, inner)
        save_maps(folder, aligned)
        return
    if isinstance(inner, LanguageEncoders):
        inner.save(folder, copy_checkpoint)
    elif not isinstance(inner, HuggingFaceEncoder):
        raise BadSetting(f"an encoder of type {type(inner).__name__} cannot be saved with maps")
    elif aligned.maps:
        copy_checkpoint(inner, folder)
    else:
        inner.save(folder)
    trained = {
        "prefix": inner.options.prefix or "",
        "max_length": inner.options.max_length,
        "name": inner.name,
    }
    save_maps(folder, replace(aligned, about={**aligned.about, "encoder": trained}))


def copy_checkpoint(encoder: HuggingFaceEncoder, folder: Path) -> None:
    """The encoder's own files, linked where the file system can, so that weights are not stored twice."""
    if encoder.directory is None:
        encoder.model.save_pretrained(folder)
        encoder.tokenizer.save_pretrained(folder)
        return
    for file in checkpoint_files(encoder.directory):
        _link_or_copy(file.resolve(), folder / file.name)


def checkpoint_files(folder: Path) -> list[Path]:
    """The files of a checkpoint, without what calque put beside them."""
    return [
        file
        for file in sorted(folder.iterdir())
        if file.suffix in CHECKPOINT and file.name not in OURS and file.is_file()
    ]


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)
