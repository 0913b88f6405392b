"""What readers of labelled files share: where they are, what to do about bad items, telling formats apart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

from calque.errors import BadInput, BadSetting
from calque.recipe import suggestion
from calque.text.labelled.items import Item, Labelled
from calque.text.languages import check_language
from calque.text.lines import read_lines

T = TypeVar("T")
Numbered: TypeAlias = list[tuple[int, str]]

DATASET = "hf:"


class Unusable(BadInput):
    """An item that cannot be used. `reason` is what it is counted under where bad items are dropped."""

    def __init__(
        self,
        reason: str,
        what: str,
        *,
        where: str | Path | None = None,
        line: int | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(what, where=where, line=line, remedy=remedy)
        self.reason = reason


class Passed(Exception):
    """An item without fault that is not asked for: dropped and counted. `language` is its own, if another."""

    def __init__(self, reason: str, language: str = "") -> None:
        super().__init__(reason)
        self.reason, self.language = reason, language


@dataclass(frozen=True)
class Changed:
    """Says that items were changed in reading, and why."""

    reason: str
    count: int = 1


Remark: TypeAlias = Unusable | Passed | Changed


@dataclass(frozen=True)
class Source:
    """A file to read, or a dataset by name; `hint` is added to what is said when not one item can be read."""

    path: str
    language: str
    skip_bad: bool = False
    limit: int | None = None
    hint: str = ""

    def bad(self, reason: str, what: str, *, line: int | None = None, remedy: str | None = None) -> Unusable:
        """An error in an item of this file."""
        return Unusable(reason, what, where=self.path, line=line, remedy=remedy)


@dataclass(frozen=True)
class TaskFiles(Generic[Item]):
    """The formats of a task: a reader by name, and the name by what `look` says of a file."""

    task: str
    formats: Mapping[str, Callable[[Source], Iterator[Item | Remark]]]
    looks: Mapping[str, str]

    def read(
        self,
        path: str | Path,
        language: str,
        *,
        format: str | None = None,
        skip_bad: bool = False,
        limit: int | None = None,
    ) -> Labelled[Item]:
        """Every item, or the first `limit`; bad ones are an error, or dropped and counted with `skip_bad`."""
        if limit is not None and limit < 1:
            raise BadSetting(f"limit {limit}", remedy="at least 1")
        if format is not None and format not in self.formats:
            raise BadSetting(
                f"unknown format {format!r} for {self.task}", remedy=suggestion(format, self.formats)
            )
        chosen = self.guess(str(path)) if format is None else format
        hint = f"read as {chosen}; {self._known()}" if format is None else ""
        source = Source(str(path), check_language(language), skip_bad, limit, hint)
        return gather(self.formats[chosen](source), source)

    def guess(self, path: str) -> str:
        """The format of a file by what it looks like."""
        looks = look(path)
        if looks == "empty":
            raise BadInput("an empty file", where=path)
        if looks not in self.looks:
            raise BadInput(f"{LOOKS[looks]}: not a file for {self.task}", where=path, remedy=self._known())
        return self.looks[looks]

    def _known(self) -> str:
        return f"for {self.task} --format takes " + ", ".join(self.formats)


# --------------------------------------------------------------------------------------------- items


def attempt(make: Callable[..., T], *args: object) -> T | Unusable | Passed:
    """What `make` returns, or why it does not."""
    try:
        return make(*args)
    except (Unusable, Passed) as reason:
        return reason


def gather(found: Iterable[Item | Remark], source: Source) -> Labelled[Item]:
    """Items with counts of those that were dropped or changed; none at all is an error."""
    items: list[Item] = []
    dropped: Counter[str] = Counter()
    changed: Counter[str] = Counter()
    others: dict[str, None] = {}
    try:
        for one in found:
            if isinstance(one, Changed):
                changed[one.reason] += one.count
            elif isinstance(one, Unusable | Passed):
                if isinstance(one, Passed):
                    others.update({one.language: None} if one.language else {})
                elif not source.skip_bad:
                    raise one
                dropped[one.reason] += 1
            else:
                items.append(one)
                if len(items) == source.limit:
                    break
        if not items:
            raise _nothing(source, dropped, list(others))
    except BadInput as error:
        raise error if items or not source.hint else _hinted(error, source.hint) from None
    return Labelled(source.language, tuple(items), source.path, _sorted(dropped), _sorted(changed))


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return {reason: count for reason, count in sorted(counts.items()) if count}


def _nothing(source: Source, dropped: Counter[str], others: list[str]) -> BadInput:
    if others and set(dropped) == {"other language"}:
        return BadInput(
            f"nothing in {source.language!r} here", where=source.path, remedy="it holds " + ", ".join(others)
        )
    told = ", ".join(f"{count} {reason}" for reason, count in sorted(dropped.items()))
    what = f"no item left: all {sum(dropped.values())} dropped ({told})" if dropped else "no items here"
    return BadInput(what, where=source.path)


def _hinted(error: BadInput, hint: str) -> BadInput:
    remedy = f"{error.remedy}; {hint}" if error.remedy else hint
    return BadInput(error.what, where=error.where, line=error.line, remedy=remedy)


#: JSON can spell half of a character that takes two units in UTF-16.
_HALF = re.compile("[\ud800-\udfff]")


def check_text(source: Source, *texts: object, line: int | None = None, name: str = "text") -> None:
    """Refuse what is no text, is empty, or holds characters that no file can."""
    for text in texts:
        if not isinstance(text, str):
            raise source.bad(f"no {name}", f"a {name} is {text!r}", line=line)
        if "\0" in text:
            raise source.bad(
                "NUL character", f"a {name} holds a NUL character", line=line, remedy="convert it to UTF-8"
            )
        if not text.isascii() and _HALF.search(text):
            raise source.bad(
                "broken character",
                f"a {name} holds half a character",
                line=line,
                remedy="mend its \\u escapes",
            )
        if not text.strip(" \t\r\n"):
            raise source.bad(f"empty {name}", f"an empty {name}", line=line)


# ---------------------------------------------------------------------------------------------- files


def blocks(path: str) -> Iterator[Numbered]:
    """Numbered lines between empty ones."""
    rows: Numbered = []
    for number, line in enumerate(read_lines(path), 1):
        if line.strip(" \t"):
            rows.append((number, line))
        elif rows:
            yield rows
            rows = []
    if rows:
        yield rows


PEEK = 100
_JSON = re.compile(r'\s*(\{\s*("|$)|\[\s*(\{|$))')
LOOKS = {
    "folder": "a folder",
    "dataset": "a dataset",
    "json": "JSON",
    "conllu": "CoNLL-U",
    "numbered": "columns with word numbers",
    "tabs": "columns between tabs",
    "spaces": "words between spaces",
    "words": "no columns",
}


def look(path: str) -> str:
    """What a file looks like by its first line that is neither empty nor a comment; one of `LOOKS`."""
    if path.startswith(DATASET):
        return "dataset"
    if Path(path).is_dir():
        return "folder"
    lines = (line for line in islice(read_lines(path), PEEK) if line.strip(" \t"))
    first = ""
    for line in lines:
        first = first or line
        if line[0] != "#" or "\t" in line:
            first = line
            break
    return _look(first)


def _look(line: str) -> str:
    columns = line.split("\t")
    if not line:
        return "empty"
    if len(columns) == 10 and re.fullmatch(r"1|1-\d+|0\.1", columns[0]):
        return "conllu"
    if len(columns) == 4 and columns[0] == "1":
        return "numbered"
    if _JSON.match(line):
        return "json"
    if len(columns) > 1:
        return "tabs"
    return "spaces" if " " in line.strip() else "words"
