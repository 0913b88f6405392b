"""The folder of a study: which cells stand there, what they took, what they say, and what may go."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from calque.documents import parse_json, read_text
from calque.errors import BadInput, BadSetting, CalqueError, creating
from calque.files import FINISHED, RESULTS, SUMS, checksum, read_json, write_json
from calque.locks import remove_at_once
from calque.progress import say
from calque.report.page import PAGE
from calque.study.cells import CELLS, Cell, is_key
from calque.study.recipe import RECIPE, STUDY
from calque.study.workers import FAILURES

#: Verbs whose results are figures of the study; what they rest on has its own folder.
TOLD = ("measure", "transfer", "compare", "pretrain", "extend", "link")
#: What a training that was cut off leaves in `.KEY.training`, and a task in `.KEY.parts`.
_UNFINISHED = re.compile(r"\.(training|parts)$")
#: What a study writes into its folder.
WRITTEN = frozenset(
    {CELLS, FAILURES, RECIPE, STUDY, RESULTS, FINISHED, PAGE, "environment.json", "cost.json"}
)
#: Verbs that make an encoder, whose results name it by its size: the study has a name for it.
MAKING = ("pretrain", "extend")


def threads_of(folder: Path, keys: Iterable[str]) -> list[int]:
    """The numbers of threads that these cells were computed with, where they tell."""
    told = {_told(folder / CELLS / key / "environment.json").get("threads") for key in keys}
    return sorted(one for one in told if isinstance(one, int))


def claim(folder: Path) -> None:
    """Take a new or empty folder, or that of a study; one with anything else in it is refused."""
    check_ours(folder)
    with creating(folder):
        (folder / CELLS).mkdir(parents=True, exist_ok=True)


def check_ours(folder: Path) -> None:
    """Refuse a folder that has what no study writes, and no record of one."""
    if folder.exists() and not (folder / STUDY).is_file() and (folder.is_file() or _has_more(folder)):
        raise BadSetting("exists and is not a study of calque", where=folder, remedy="choose another --out")


def _has_more(folder: Path) -> bool:
    """Whether something lies here that no study writes; what a killed one was writing is hidden."""
    hidden = tuple(f".{name}." for name in WRITTEN)
    names = [one.name for one in folder.iterdir()]
    # A study makes its cells first: without them this is a recipe of one's own, or a run.
    if names and CELLS not in names:
        return True
    if any(name not in WRITTEN and not name.startswith(hidden) for name in names):
        return True
    cells = folder / CELLS
    return cells.exists() and not all(is_key(one.name) or one.name[0] == "." for one in cells.iterdir())


def standing(folder: Path, keys: Iterable[str]) -> frozenset[str]:
    """The cells that are there."""
    return frozenset(key for key in keys if (folder / CELLS / key / FINISHED).is_file())


def cost(folder: Path, key: str) -> tuple[float | None, int | None]:
    """Seconds and megabytes that a cell took, where it is there."""
    held = _told(folder / CELLS / key / "cost.json")
    seconds = held.get("seconds")
    return seconds.get("total") if isinstance(seconds, dict) else None, held.get("peak_memory_mb")


def _told(path: Path) -> dict[str, Any]:
    """What a file says that can be done without: nothing where it is not there, or damaged."""
    with suppress(CalqueError, OSError):
        held = read_json(path)
        return held if isinstance(held, dict) else {}
    return {}


def _cells_told(folder: Path) -> Iterator[dict[str, Any]]:
    """The cells that this study had when it was last run."""
    held = _told(folder / STUDY).get("cells")
    yield from (one for one in (held if isinstance(held, list) else []) if isinstance(one, dict))


def failed_before(folder: Path) -> dict[str, str]:
    """The cells that failed when this study was last run, and why."""
    failed = (one for one in _cells_told(folder) if one.get("status") == "failed")
    return {str(one.get("key")): str(one.get("error")) for one in failed}


#: A cell that was computed once: its verb, its axes, and the seconds that it took.
Spent: TypeAlias = tuple[str, Mapping[str, str], float]


def spent(folder: Path, cells: Mapping[str, Cell]) -> Iterator[Spent]:
    """What cells took that are there, and those that this study had when it was last run."""
    for key, cell in cells.items():
        if (seconds := cost(folder, key)[0]) is not None:
            yield cell.verb, cell.axes, seconds
    for one in _cells_told(folder):
        verb, axes = one.get("verb"), one.get("axes")
        seconds = one.get("seconds") or cost(folder, str(one.get("key")))[0]
        if isinstance(verb, str) and isinstance(axes, dict) and isinstance(seconds, int | float):
            yield verb, axes, seconds


def guess(cell: Cell, known: Sequence[Spent]) -> float | None:
    """About how long a cell takes, by the mean of those most like it; None where nothing is known."""
    for alike in (("method", "task", "measure"), ("task", "measure"), ()):
        own = [
            seconds
            for verb, axes, seconds in known
            if verb == cell.verb and all(axes.get(axis) == cell.axes.get(axis) for axis in alike)
        ]
        if own:
            return sum(own) / len(own)
    return None


def results(root: Path, cells: Mapping[str, Cell], done: Container[str]) -> list[str]:
    """All results as lines, each once, in an order that does not depend on who computed what when."""
    found: set[str] = set()
    for key, cell in cells.items():
        path = root / CELLS / key / RESULTS
        if key in done and cell.verb.split()[0] in TOLD and path.is_file():
            # Lines end at line feeds alone: a name may hold other characters that end lines.
            lines = filter(None, read_text(path).split("\n"))
            own, added = _study_names(cell, cells), _own_name(cell)
            found.update(_renamed(line, own, added) for line in lines) if own or added else found.update(
                lines
            )
    return sorted(found)


def _study_names(cell: Cell, cells: Mapping[str, Cell]) -> dict[str, str]:
    """What a study calls the tasks of a cell, which knows them by what they are; and the encoder it makes."""
    if cell.verb in MAKING:
        return {"encoder": cell.axes["encoder"]}
    learned = [cell] if cell.verb == "transfer" else [cells[key] for key in cell.needs]
    return {
        f"transfer-{one.settings['task']}": f"transfer-{one.axes['task']}"
        for one in learned
        if one.verb == "transfer" and one.axes["task"] != one.settings["task"]
    }


def _own_name(cell: Cell) -> str:
    """What tells the tasks of a measure from those of others of its kind: the study's name for it."""
    name = cell.axes.get("measure", "")
    return "" if not name or cell.verb.endswith(f" {name}") else f"-{name}"


def _renamed(line: str, names: Mapping[str, str], added: str) -> str:
    held = json.loads(line)
    task = names.get(held["task"], held["task"]) + added
    told = {**held, "task": task, "encoder": names.get("encoder", held["encoder"])}
    return json.dumps(told, ensure_ascii=False, sort_keys=True)


@dataclass(frozen=True)
class Left:
    """A cell of earlier settings, or what is left of its training, and the bytes that only it takes.

    A file that several of them share counts with the last.
    """

    key: str
    size: int


def unwanted(folder: Path, wanted: Container[str]) -> list[Left]:
    """The cells that lie here and are not wanted, and what is left of their trainings."""
    names = {path: _UNFINISHED.sub("", path.name.strip(".")) for path in (folder / CELLS).iterdir()}
    left = (path for path, key in names.items() if is_key(key) and key not in wanted)
    found = sorted(path for path in left if path.is_dir())
    links = Counter[int]()
    return [Left(path.name, _freed(path, links)) for path in found]


def prune(folder: Path, wanted: Container[str]) -> None:
    """Remove what is not wanted, and what was told of its failures."""
    for one in unwanted(folder, wanted):
        remove_at_once(folder / CELLS / one.key)
    for path in (folder / FAILURES).glob("*.txt"):
        if is_key(path.stem) and path.stem not in wanted:
            path.unlink()


def heal(folder: Path, cells: Mapping[str, Cell]) -> None:
    """Remove cells in which a file is not as it was written: they are computed again.

    Only where that is sure: what the system cannot read today may be whole tomorrow. What a run took is no
    reason to make it anew.
    """
    for key in standing(folder, cells):
        run = folder / CELLS / key
        for name in ("cost.json", "environment.json"):
            if _is_no_json(run / name):
                say(f"{run / name} is damaged: what it told is forgotten")
                write_json(run / name, {})
        if (path := _damaged(run)) is not None:
            say(f"{path} is damaged: {cells[key].verb} {cells[key].title} is computed again")
            remove_at_once(run)


def _damaged(run: Path) -> Path | None:
    """A file of a run that is lost, or surely not what was written."""
    if _is_no_json(run / FINISHED):
        return run / FINISHED
    told = read_json(run / FINISHED).get("results")
    if told is not None and _differs(run / RESULTS, told):
        return run / RESULTS
    for sums in sorted(run.rglob(SUMS)):
        if _is_no_json(sums):
            return sums
        for name, one in read_json(sums).items():
            if _differs(sums.parent / name, one):
                return sums.parent / str(name)
    return None


def _is_no_json(path: Path) -> bool:
    """Whether a file is lost, or can be read and is no table."""
    try:
        return not isinstance(parse_json(path.read_bytes().decode(), path), dict)
    except (FileNotFoundError, UnicodeDecodeError, BadInput):
        return True
    except OSError:
        return False


def _differs(path: Path, told: object) -> bool:
    """Whether a file is lost, or can be read and has another checksum."""
    try:
        return checksum(path) != told
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _freed(folder: Path, links: Counter[int]) -> int:
    """Bytes that go with a folder, and with those whose files are among these links already."""
    freed = 0
    for about in (path.stat() for path in folder.rglob("*") if path.is_file()):
        links[about.st_ino] += 1
        freed += about.st_size if links[about.st_ino] == about.st_nlink else 0
    return freed
