"""How a run was made, in words: what was scored, what it cost, and the command that makes it again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from calque.report.collect import Run, place_of
from calque.report.parts import Advice

_WHOLE = ("sentences", "kept", "links", "scored")
#: Settings whose option has another name than they have; those with none are plain arguments.
_OPTIONS = {
    "encoders": "--encoder",
    "labels": "--label",
    "breakdowns": "--by",
    "filters": "--filter",
    "paths": "",
    "runs": "",
    "seeds": "--seed-list",
    "task": "",
    "text": "",
}
#: Two values that are typed after one option; switches that are on unless they are told to be off.
_AT_ONCE, _ON = ("languages", "betas"), ("dropout", "root_loss")


def flat(held: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Names and values, those inside others with both names."""
    for name, value in held.items():
        label = f"{above}{name}".replace("_", " ")
        if isinstance(value, Mapping):
            yield from flat(value, f"{label}, ")
        elif isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
            for one in value:
                yield from flat({k: v for k, v in one.items() if k != "name"}, f"{one.get('name', label)}, ")
        elif value is not None:
            yield label, ", ".join(map(str, value)) if isinstance(value, list) else value


def counts(held: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What there was, what was scored, then what was left out, the most first."""
    whole = [(name, value) for name, value in flat(held) if isinstance(value, int)]
    for name, value in sorted(whole, key=lambda one: (place_of(one[0], _WHOLE)[0], -one[1], one[0])):
        yield name, f"{value:,}"


#: More seconds or megabytes than anything takes; a number as large is shown as it stands.
_MOST = 1e15


def cost(held: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Time and memory as a person says them."""
    for name, value in flat(held):
        if not isinstance(value, int | float) or not abs(value) < _MOST:
            yield name, str(value)
        elif name.startswith("seconds"):
            yield name.removeprefix("seconds").removeprefix(", ") or "time", duration(value)
        elif name.endswith(" mb"):
            yield name.removesuffix(" mb"), f"{value / 1024:.1f} GB" if value >= 1024 else f"{value:.0f} MB"
        else:
            yield name, f"{value:,.6g}"


def duration(seconds: float) -> str:
    """Seconds as a person says them.

    >>> duration(7.25), duration(192), duration(7380)
    ('7.2 s', '3 min 12 s', '2 h 3 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = int(seconds // 60)
    return f"{minutes} min {seconds % 60:.0f} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def command(run: Run) -> str:
    """The command line that makes this run again, one option a line."""
    if not run.verb:
        return ""
    named = {name: _OPTIONS.get(name, "--" + name.replace("_", "-")) for name in run.recipe}
    parts = [f"calque {run.verb}"]
    for name in sorted(named, key=lambda name: named[name] != ""):
        if name not in ("verb", "inputs"):
            parts += _option(named[name], run.recipe[name], name)
    return " \\\n  ".join([*parts, f"--out {shlex.quote(run.name)}"])


def _option(option: str, value: Any, name: str) -> list[str]:
    """An option as it is typed: a list again and again, but two languages at once and seeds with commas; a
    switch by itself.

    >>> _option("--by", ["pos", "seen"], "breakdowns"), _option("--languages", ["en", "de"], "languages")
    (['--by pos', '--by seen'], ['--languages en de'])
    """
    if isinstance(value, bool) or value == "":
        off = [option.replace("--", "--no-", 1)] if value is False and name in _ON else []
        return [option] if value else off
    values = value if isinstance(value, list) else [value]
    if name == "seeds":
        return [f"{option} {','.join(map(str, values))}"]
    if name in _AT_ONCE:
        return [f"{option} {shlex.join(map(str, values))}"]
    return [f"{option} {shlex.quote(str(one))}".strip() for one in values]


def advice(run: Run) -> tuple[Advice, ...]:
    """How to do the same with a bitext of one's own: link, align, measure, look."""
    encoder = shlex.quote(str(next(iter(run.recipe.get("encoders", ())), "e5-small-q4")))
    source, target = (run.panels[0].languages if run.panels else run.languages) or ("en", "de")
    pair = shlex.join((source, target))
    return (
        Advice(
            "Link the words of your bitext: one sentence pair a line, separated by a tab.",
            f"calque link my.tsv --languages {pair} --test 500 --out runs/links",
        ),
        Advice(
            "Align the encoder on most of it.",
            f"calque align --encoder {encoder} --pairs runs/links/train --out runs/aligned",
        ),
        Advice(
            "Measure on the rest, before and after.",
            f"calque measure words --encoder {encoder} --encoder runs/aligned --pairs runs/links/test"
            " --out runs/words",
        ),
        Advice("Look at what came out.", "calque report runs/words"),
    )
