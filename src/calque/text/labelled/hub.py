"""Labelled Hugging Face datasets by name: rows with their labels by name, the usual columns found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from calque.errors import BadInput
from calque.text.labelled.reading import Source
from calque.text.readers import _rows


def read_rows(source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    """Numbered rows; labels kept as numbers become the names that the dataset has for them."""
    table = _rows(source.path)
    features: Mapping[str, Any] = getattr(table, "features", None) or {}
    names = {name: found for name, kind in features.items() if (found := _names(kind))}
    for number, row in enumerate(table, 1):
        yield number, {name: _named(value, names.get(name)) for name, value in row.items()}


def _names(feature: Any) -> list[str] | None:
    """The names of a label column, or of a column of lists of labels."""
    inner = getattr(feature, "feature", feature)
    inner = inner[0] if isinstance(inner, list) and inner else inner
    return getattr(inner, "names", None)


def _named(value: Any, names: list[str] | None) -> Any:
    if names is None:
        return value
    if isinstance(value, list):
        return [_named(one, names) for one in value]
    return names[value] if isinstance(value, int) and 0 <= value < len(names) else value


def column(row: Mapping[str, Any], names: Sequence[str], source: Source) -> str:
    """The first of these columns that a row has."""
    found = next((name for name in names if name in row), None)
    if found is None:
        raise BadInput(
            f"no column {' or '.join(names)}", where=source.path, remedy="it holds " + ", ".join(row)
        )
    return found
