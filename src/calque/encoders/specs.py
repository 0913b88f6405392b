"""What the name of an encoder means where it names something for each language: vectors, or encoders."""

from __future__ import annotations

from pathlib import Path

from calque.errors import BadSetting

#: How files of vectors end; a name that ends otherwise and is no file means an encoder.
VECTORS = frozenset({".vec", ".bin", ".txt", ".gz", ".xz", ".bz2", ".zst"})


def is_by_language(spec: str) -> bool:
    """Whether a name is `LANGUAGE=…`, once or several times.

    >>> is_by_language("en=wiki.en.vec,de=wiki.de.vec"), is_by_language("bert-base-multilingual-cased")
    (True, False)
    """
    language, equals, path = spec.partition("=")
    return bool(equals and path) and language.replace("-", "").replace("_", "").isalnum()


def by_language(spec: str) -> dict[str, str]:
    """What is named for each language.

    >>> by_language("en=models/en, far=models/far")
    {'en': 'models/en', 'far': 'models/far'}
    """
    named: dict[str, str] = {}
    for part in spec.split(","):
        language, equals, name = (field.strip() for field in part.partition("="))
        if not (language and equals and name):
            raise BadSetting(
                f"{part!r} is not LANGUAGE=FILE", remedy="for example en=wiki.en.vec,de=wiki.de.vec"
            )
        if language in named:
            raise BadSetting(f"two files for {language!r} in {spec!r}", remedy="give one a language")
        named[language] = name
    return named


def names_vectors(spec: str) -> bool:
    """Whether a name by language means files of vectors; otherwise it means encoders. Both is an error."""
    kinds = {language: _is_vectors(name) for language, name in by_language(spec).items()}
    if len(set(kinds.values())) > 1:
        files, models = (", ".join(k for k, one in kinds.items() if one is kind) for kind in (True, False))
        raise BadSetting(
            f"{spec!r} names vectors for {files} and an encoder for {models}",
            remedy="give files of vectors for all languages, or encoders for all",
        )
    return next(iter(kinds.values()))


def _is_vectors(name: str) -> bool:
    path = Path(name).expanduser()
    return path.is_file() or (not path.is_dir() and path.suffix in VECTORS)


def short_name(spec: str) -> str:
    """What to call an encoder in a table: the last part of its path, or of each by language.

    >>> short_name("runs/aligned"), short_name("en=models/small,far=models/other")
    ('aligned', 'small+other')
    """
    if is_by_language(spec):
        return "+".join(Path(name).name for name in by_language(spec).values())
    return Path(spec).name or spec
