"""A study's matrix as cells: which are there, what each reads, and which of them belong together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import product
from pathlib import Path
from typing import Any

from calque.align.finetune import Loss
from calque.errors import CalqueError
from calque.geometry.solvers import Method
from calque.pipeline.aligning import AlignRecipe
from calque.pipeline.finetuning import FinetuneRecipe
from calque.presets import load_preset
from calque.recipe import suggestion
from calque.study.cells import Cell
from calque.study.recipe import MEASURES, LinksPart, LoadedStudy
from calque.text.languages import check_language

#: Linear methods that depend on a seed.
DRAWN = (Method.ORTHOGONAL_GRADIENT.value,)
#: Measures on linked words; the others can read parallel text.
ON_LINKS = ("words", "distances", "projection", "examples")
#: Seeds of encoders that never met: they do not begin alike.
APART = 1000
#: What differs between the seeds of a study.
VARIES = "alignment where it is trained or sampled, the head's first weights, the order of batches, dropout"


@dataclass(frozen=True)
class Variant:
    """A way to align: a method of the recipe at one point of its axes. `to` are languages, if not all."""

    name: str
    method: str | None
    settings: Mapping[str, Any]
    axes: Mapping[str, Any]
    where: str
    size: int | None = None
    task: Mapping[str, Any] = field(default_factory=dict)
    to: tuple[str, ...] | None = None

    @property
    def label(self) -> str:
        return ", ".join([self.name, *(f"{axis} {value}" for axis, value in self.axes.items())])

    @property
    def trained(self) -> bool:
        """Whether the encoder itself changes, so that any language can be read."""
        return self.method is None or self.method in list(Loss)

    @property
    def drawn(self) -> bool:
        """Whether a seed makes a difference."""
        return self.method is not None and (self.trained or self.method in DRAWN or self.size is not None)


@dataclass(frozen=True)
class Group:
    """What is compared with what: a baseline and the methods beside it, by label."""

    encoder: str
    baseline: str
    methods: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """All cells in an order in which they can be computed, and how the page tells of them.

    `missing` are files of the data folder that are not there yet.
    """

    cells: Mapping[str, Cell]
    groups: Sequence[Group]
    methods: Mapping[str, Mapping[str, Any]]
    tasks: Mapping[str, Mapping[str, Any]]
    mistakes: Sequence[str]
    missing: Sequence[str] = ()


def make_plan(study: LoadedStudy, broken: frozenset[str] = frozenset()) -> Plan:
    """The matrix of a study. What rests on `broken` cells is left out of measures and comparisons."""
    return _Planner(study, broken).plan()


@dataclass
class _Planner:
    study: LoadedStudy
    broken: frozenset[str]
    cells: dict[str, Cell] = field(default_factory=dict)
    same: dict[str, str] = field(default_factory=dict)
    dead: set[str] = field(default_factory=set)
    mistakes: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.recipe = self.study.recipe
        self.variants = list(self._variants())
        self.aligned = self.recipe.links.languages

    def plan(self) -> Plan:
        self._check_names()
        groups = self._groups()
        for group in groups:
            for seed in self.recipe.seeds:
                for encoder, variant in self._rows(group):
                    for codes in self._joined(self._spoken(variant)) or [[]]:
                        self._encoder(encoder, variant, seed, codes)
            self._measures(group)
            self._transfers(group)
        told = {
            self._label(name, one): {"encoder": name, "method": one.name, "axes": _words(one.axes)}
            for name in self.recipe.encoders
            for one in self._aligning(name)
        }
        tasks = {str(one.get("task", name)): one.get("translated") for name, one in self.tasks.items()}
        return Plan(
            self.cells,
            groups,
            told,
            {name: {"translated": known} for name, known in tasks.items()},
            list(dict.fromkeys(self.mistakes)),
            list(dict.fromkeys(self.missing)),
        )

    # ------------------------------------------------------------------------------------ the matrix

    @property
    def tasks(self) -> dict[str, dict[str, Any]]:
        return self.recipe.transfer.tasks

    def _groups(self) -> list[Group]:
        """Each encoder with its methods; without any, all encoders with the first."""
        names = list(self.recipe.encoders)
        if not self.variants:
            return [Group(names[0], names[0], tuple(names[1:]))]
        return [
            Group(name, name, tuple(self._label(name, one) for one in self._aligning(name))) for name in names
        ]

    def _rows(self, group: Group) -> list[tuple[str, Variant | None]]:
        """Encoder and method of the baseline and of every label beside it."""
        if not self.variants:
            return [(name, None) for name in self.recipe.encoders]
        return [(group.encoder, None), *((group.encoder, one) for one in self._aligning(group.encoder))]

    def _aligning(self, encoder: str) -> list[Variant]:
        """The ways in which an encoder is aligned: none where others are named."""
        return self.variants if encoder in (self.recipe.align.encoders or [encoder]) else []

    def _spoken(self, variant: Variant | None) -> list[str]:
        """The languages that a variant is aligned to."""
        chosen = None if variant is None else variant.to
        return [code for code in self.aligned if chosen is None or code in chosen]

    def _joined(self, codes: Sequence[str]) -> list[list[str]]:
        """Languages that one encoder is aligned to: all of them, or each by itself."""
        return [list(codes)] if self.recipe.align.together and codes else [[code] for code in codes]

    def _label(self, encoder: str, variant: Variant | None) -> str:
        if variant is None:
            return encoder
        return variant.label if len(self.recipe.encoders) == 1 else f"{encoder} {variant.label}"

    def _variants(self) -> Iterator[Variant]:
        align = self.recipe.align
        for name in align.methods:
            own = align.own(name)
            task, vary, to = own.pop("transfer", {}), own.pop("vary", align.vary), own.pop("to", None)
            method = self._method(name, own)
            known = FinetuneRecipe if method in list(Loss) else AlignRecipe
            fields = {*known.model_fields, "size"}
            shared = {key: value for key, value in align.shared.items() if key in fields}
            for values in product(*vary.values()):
                axes = dict(zip(vary, values, strict=True))
                settings = {**shared, **own, **axes}
                size = settings.pop("size", None)
                if method is not None:
                    settings["method"] = method
                if size is not None and known is FinetuneRecipe:
                    settings.setdefault("max_pairs", size)
                told = None if to is None else tuple(to)
                yield Variant(name, method, settings, axes, f"align.{name}", size, task, told)

    def _method(self, name: str, own: Mapping[str, Any]) -> str | None:
        """The method that a name stands for: its own, that of its preset, or itself; None trains none."""
        if "preset" in own:
            try:
                return str(own.get("method") or load_preset(own["preset"]).align.get("method", name))
            except CalqueError as error:
                self.mistakes.append(f"align.{name}: {error}")
        if "method" not in own and "transfer" in self.recipe.align.own(name):
            return name if name in [*map(str, Method), *map(str, Loss)] else None
        return str(own.get("method", name))

    def _check_names(self) -> None:
        """Names that no part of the study knows."""
        recipe = self.recipe
        both = {*AlignRecipe.model_fields, *FinetuneRecipe.model_fields, "size"}
        for name in recipe.align.shared:
            if name not in both:
                self._unknown(f"align.{name}", name, [*both, *type(recipe.align).model_fields])
        for name in recipe.align.idle:
            # Methods may be left out for now, but hardly under a name so like one that is there.
            if get_close_matches(name, recipe.align.methods, 1, 0.8):
                self._unknown(f"align.{name}", name, recipe.align.methods, "a table of no method")
        if "method" in recipe.align.shared:
            self.mistakes.append("align.method: is for a method's own table; did you mean methods?")
        for axis, values in recipe.align.vary.items():
            if axis not in both:
                self._unknown(f"align.vary.{axis}", axis, both)
            if not values:
                self.mistakes.append(f"align.vary.{axis}: no values (give one or more, or leave it out)")
        if recipe.align.vary and not recipe.align.methods:
            self.mistakes.append("align.vary: nothing to vary (give align.methods)")
        if len(set(recipe.seeds)) < len(recipe.seeds):
            self.mistakes.append(f"seeds: one stands twice among {list(recipe.seeds)}")
        for name in recipe.align.encoders:
            if name not in recipe.encoders:
                self._unknown("align.encoders", name, recipe.encoders, f"unknown encoder {name}")
        for one in self.variants:
            for code in set(one.to or ()) - set(recipe.links.languages):
                self._unknown(f"{one.where}.to", code, recipe.links.languages, f"no links of {code}")
        for name, held in recipe.measure.items():
            if held.get("measure", name) not in MEASURES:
                self._unknown(f"measure.{name}", str(held.get("measure", name)), MEASURES, "unknown measure")
        parts = {
            "links.text": recipe.links.languages,
            "scored.text": (recipe.scored or LinksPart()).languages,
        }
        for where, codes in {**parts, "source": [recipe.source]}.items():
            for code in codes:
                self._tried(where, check_language, code)
        if recipe.align.methods and not recipe.links.languages:
            self.mistakes.append("links: nothing to align by (give links.text.de = FILE, or links.pairs)")

    def _unknown(self, where: str, name: str, known: Any, what: str = "unknown setting") -> None:
        self.mistakes.append(f"{where}: {what}; {suggestion(name, sorted(map(str, known)))}")

    def _tried(self, where: str, function: Any, *given: Any) -> Any:
        try:
            return function(*given)
        except CalqueError as error:
            self.mistakes.append(f"{where}: {error}")
            return None

    # ------------------------------------------------------------------------------------ inputs

    def _add(self, verb: str, title: str, settings: Mapping[str, Any], where: str, **axes: object) -> str:
        """A reference to the cell of these settings, which may be there under another title."""
        cell = Cell.of(verb, title, settings, _words(axes), where)
        key = self.same.setdefault(cell.key.rpartition("-")[2], cell.key)
        self.cells.setdefault(key, cell)
        if key in self.broken or self.dead.intersection(cell.needs):
            self.dead.add(key)
        return f"cell://{key}"

    def _dead(self, reference: str) -> bool:
        """Whether something rests on a broken cell; encoders by language on several."""
        return any(f"cell://{key}" in reference for key in self.dead)

    def _file(self, given: object, where: str) -> str:
        """A path of the recipe as it stands in settings; what is not there is a mistake."""
        name = str(given)
        if self._escapes(name, where):
            return name
        if name.startswith("hf:"):
            return name
        if name.startswith("world:"):
            return f"{self._world(where)}/{name.removeprefix('world:')}"
        held = self.recipe.data if name.startswith("data:") else "."
        path = self.study.base / Path(held, name.removeprefix("data:")).expanduser()
        there = _is_there(path)
        if not there and name.startswith("data:"):
            self.missing.append(name.removeprefix("data:"))
            return name
        if not there:
            self.mistakes.append(f"{where}: no such file: {name}")
            return name
        return f"file://{path.resolve()}"

    def _escapes(self, name: str, where: str) -> bool:
        """Whether a name means what is calque's own to say, or leads out of the folder that it names."""
        begin, told, path = name.partition(":")
        inside = begin in ("data", "world") and bool(told)
        out = inside and (Path(path).is_absolute() or ".." in Path(path).parts or path.startswith("~"))
        own = "cell://" in name or "file://" in name
        if out:
            self.mistakes.append(f"{where}: {name} leads out of its folder; give the file's own path")
        if own:
            self.mistakes.append(f"{where}: {name}: cell:// and file:// are not for recipes; give a path")
        return out or own

    def _world(self, where: str) -> str:
        if self.recipe.world is None:
            self.mistakes.append(f"{where}: names a file of the world (add a table [world])")
        given = dict(self.recipe.world or {})
        return self._add("smoke world" if "source" in given else "world", "", given, "world")

    def _pairs(self, part: LinksPart, name: str, code: str, split: str) -> str:
        """Linked words of one language with the source."""
        where = f"{name}.text.{code}"
        if code in part.pairs:
            return self._file(part.pairs[code], f"{name}.pairs.{code}")
        given = part.text[code]
        paths = [given] if isinstance(given, str) else list(given)
        settings = {
            **part.settings,
            "paths": [self._file(path, where) for path in paths],
            "languages": [self.recipe.source, code],
        }
        if code in part.links:
            settings["links"] = self._file(part.links[code], f"{name}.links.{code}")
        if "encoder" in settings:
            settings["encoder"] = self._encoder_spec(str(settings["encoder"]), f"{name}.encoder")
        return f"{self._add('link', f'{name} {code}', settings, name, language=code)}/{split}"

    def _encoder_spec(self, spec: str, where: str) -> str:
        """An encoder by its name in the study, a directory, vectors by language, or a name of a hub."""
        known = self.recipe.encoders.get(spec, spec)
        if not isinstance(known, str):
            return self._base(spec, self.recipe.seeds[0])
        parts = [part.partition("=") for part in known.split(",")]
        return ",".join(
            f"{a}{told}{self._place(b, where)}" if told else self._place(a, where) for a, told, b in parts
        )

    def _place(self, name: str, where: str) -> str:
        if self._escapes(name, where):
            return name
        if name.startswith(("world:", "data:")):
            return self._file(name, where)
        path = self.study.base / Path(name).expanduser()
        return f"file://{path.resolve()}" if _is_there(path) else name

    # ------------------------------------------------------------------------------------ encoders

    def _encoder(self, name: str, variant: Variant | None, seed: int, codes: Sequence[str]) -> str:
        """The encoder of a name, aligned to these languages where a variant says so.

        A seed among the settings of an alignment is that of all its runs.
        """
        base = self._base(name, seed)
        codes = [code for code in codes if code in self._spoken(variant)]
        if variant is None or variant.method is None or not codes:
            return base
        seed = variant.settings.get("seed", seed)
        pairs = [self._learned(code, variant.size, seed) for code in codes]
        settings = {**variant.settings, "encoder": base, "pairs": pairs}
        if variant.drawn:
            settings["seed"] = seed
        if settings.get("supervision") in ("dictionary", "embeddings") and "dictionary" not in settings:
            settings["dictionary"] = [self._dictionary(code) for code in codes]
        label, alone = self._label(name, variant), "" if len(codes) > 1 else f" {codes[0]}"
        told = {"encoder": name, "method": label, **({"seed": seed} if variant.drawn else {})}
        title = f"{label}{alone}" + (f", seed {seed}" if variant.drawn else "")
        return self._add("align", title, settings, variant.where, **told)

    def _base(self, name: str, seed: int) -> str:
        spec = self.recipe.encoders[name]
        if isinstance(spec, str):
            return self._encoder_spec(spec, f"encoders.{name}")
        if all(isinstance(one, Mapping) for one in spec.values()):
            each = enumerate(spec.items())
            parts = [(code, one, seed + APART * place) for place, (code, one) in each]
            return ",".join(
                f"{code}={self._trained(f'{name} {code}', one, own, name)}" for code, one, own in parts
            )
        return self._trained(name, spec, seed, name)

    def _trained(self, title: str, spec: Mapping[str, Any], seed: int, name: str) -> str:
        """A model that is pretrained, or another one that is extended."""
        where, settings = f"encoders.{name}", {"seed": seed, **spec}
        if extended := "encoder" in spec:
            settings["encoder"] = self._extended(str(spec["encoder"]), where)
        for part in ("text", "bitext"):
            if part in spec:
                settings[part] = [self._spec(one, f"{where}.{part}") for one in spec[part]]
        if "dictionary" in spec:
            settings["dictionary"] = [self._file(one, f"{where}.dictionary") for one in spec["dictionary"]]
        told = {"encoder": name, "seed": settings["seed"]}
        verb = "extend" if extended else "pretrain"
        return self._add(verb, f"{title}, seed {settings['seed']}", settings, where, **told)

    def _extended(self, spec: str, where: str) -> str:
        """The encoder that another is made of."""
        known = self.recipe.encoders.get(spec)
        if isinstance(known, Mapping) and "encoder" in known:
            self.mistakes.append(f"{where}.encoder: {spec} is itself extended")
            return spec
        return self._encoder_spec(spec, where)

    def _spec(self, spec: str, where: str) -> str:
        """`en=FILE` or `en,de=FILE` with the file looked up."""
        codes, told, path = spec.rpartition("=")
        return f"{codes}{told}{self._file(path, where)}"

    def _learned(self, code: str, size: int | None, seed: int) -> str:
        """Links to learn from: all, or a sample of sentences that another seed draws anew."""
        whole = self._pairs(self.recipe.links, "links", code, "train")
        if size is None:
            return whole
        drawn = {"pairs": whole, "sentences": size, "seed": seed}
        title = f"{size} of {code}, seed {seed}"
        return f"{self._add('sample', title, drawn, 'align.vary.size', language=code)}/train"

    def _dictionary(self, code: str) -> str:
        given = self.recipe.align.dictionary.get(code)
        where = f"align.dictionary.{code}"
        if given is None:
            self.mistakes.append(f"{where}: missing, and supervision by a dictionary needs it")
            return ""
        return self._file(given, where)

    # ------------------------------------------------------------------------------------ measures

    def _measures(self, group: Group) -> None:
        for name, held in self.recipe.measure.items():
            settings = dict(held)
            kind = str(settings.pop("measure", name))
            if kind not in MEASURES:
                continue
            done: set[tuple[str, ...]] = set()
            for seed in self.recipe.seeds:
                for codes, rows in self._sets(group, self._measured_in(kind, settings)):
                    found = self._opened(rows, codes, seed)
                    if (known := (*codes, *found.values())) not in done and found:
                        done.add(known)
                        self._measure(name, kind, settings, codes, found, seed, group)

    def _measured_in(self, kind: str, settings: Mapping[str, Any]) -> list[str]:
        """The languages that a measure is taken in."""
        own = settings.get("text") if kind in ("sentences", "cka") else settings.get("dictionary")
        if isinstance(own, Mapping):
            return [code for code in own if code != self.recipe.source]
        return (self.recipe.scored or self.recipe.links).languages

    def _sets(
        self, group: Group, codes: Sequence[str]
    ) -> Iterator[tuple[list[str], list[tuple[str, Variant | None]]]]:
        """Languages with all that can read them: those without a map only what needs none."""
        rows = self._rows(group)
        able: dict[tuple[int, ...], list[str]] = {}
        for code in codes:
            readers = tuple(i for i, (_, variant) in enumerate(rows) if self._readable(variant, code))
            able.setdefault(readers, []).append(code)
        for readers, some in able.items():
            able_rows = [rows[i] for i in readers]
            for part in self._joined([code for code in some if code in self.aligned]):
                yield part, able_rows
            if other := [code for code in some if code not in self.aligned]:
                yield other, able_rows

    def _opened(
        self, rows: Sequence[tuple[str, Variant | None]], codes: Sequence[str], seed: int
    ) -> dict[str, str]:
        """Encoders by label, without those that rest on something broken or that only a task changes."""
        joint = self.aligned if self.recipe.align.together else [c for c in codes if c in self.aligned]
        found = {}
        for name, variant in rows:
            if variant is not None and variant.method is None:
                continue
            reference = self._encoder(name, variant, seed, joint)
            if not self._dead(reference):
                found[self._label(name, variant)] = reference
        return found

    def _measure(
        self,
        name: str,
        kind: str,
        settings: Mapping[str, Any],
        codes: Sequence[str],
        encoders: Mapping[str, str],
        seed: int,
        group: Group,
    ) -> None:
        where = f"measure.{name}"
        given: dict[str, Any] = {**settings, "encoders": list(encoders.values()), "labels": list(encoders)}
        given["seed"] = seed
        given |= self._read(kind, settings, codes, where)
        title = f"{name} {' '.join(codes)}, {group.encoder}, seed {seed}"
        self._add(f"measure {kind}", title, given, where, encoder=group.encoder, measure=name, seed=seed)

    def _read(
        self, kind: str, settings: Mapping[str, Any], codes: Sequence[str], where: str
    ) -> dict[str, Any]:
        """What a measure reads, in these languages."""
        source, text = self.recipe.source, settings.get("text")
        if kind == "lexicon":
            given = settings.get("dictionary", {})
            if not isinstance(given, Mapping):
                self.mistakes.append(f"{where}.dictionary: a file for each language: dictionary.de = FILE")
                return {}
            files = {code: [given[code]] if isinstance(given[code], str) else given[code] for code in codes}
            found: dict[str, Any] = {
                "dictionary": [
                    self._file(one, f"{where}.dictionary") for some in files.values() for one in some
                ]
            }
            if isinstance(text, Mapping):
                own = {code: path for code, path in text.items() if code in (*codes, source)}
                found["text"] = [f"{code}={self._file(one, where)}" for code, one in own.items()]
            return found
        if isinstance(text, Mapping) and kind not in ON_LINKS:
            return {"text": [self._parallel(text[code], code, where) for code in codes]}
        scored = self.recipe.scored
        if scored is not None:
            return {"pairs": [self._pairs(scored, "scored", code, "train") for code in codes]}
        if not self.recipe.links.settings.get("test") and self.recipe.links.text:
            self.mistakes.append(f"{where}: nothing to measure on (give links.test = 500, or [scored])")
        return {"pairs": [self._pairs(self.recipe.links, "links", code, "test") for code in codes]}

    def _parallel(self, given: object, code: str, where: str) -> str:
        if isinstance(given, str):
            return f"{self.recipe.source},{code}={self._file(given, where)}"
        first, second = (self._file(one, where) for one in given)  # type: ignore[attr-defined]
        return f"{self.recipe.source}={first},{code}={second}"

    # ------------------------------------------------------------------------------------ tasks

    def _transfers(self, group: Group) -> None:
        runs: dict[int, list[str]] = {}
        seen: list[str] = []
        for name, held in self.tasks.items():
            task = str(held.get("task", name))
            # Two tables of one task cannot be told apart in one comparison.
            number = seen.count(task)
            seen.append(task)
            own = [one for seed in self.recipe.seeds for one in self._task(name, held, group, seed)]
            runs.setdefault(number, []).extend(one for one in own if not self._dead(one))
        for number, found in runs.items():
            self._compare(group, found, number)

    def _compare(self, group: Group, runs: Sequence[str], number: int) -> None:
        labels = {self.cells[one.removeprefix("cell://")].settings["label"] for one in runs}
        if len(labels) < 2 or group.baseline not in labels:
            return
        settings = {
            **self.recipe.compare,
            "runs": list(runs),
            "baseline": group.baseline,
            "pool": True,
            "varies": VARIES,
        }
        title = f"{group.encoder}{f' {number + 1}' if number else ''}"
        self._add("compare", title, settings, "compare", encoder=group.encoder)

    def _task(self, name: str, held: Mapping[str, Any], group: Group, seed: int) -> Iterator[str]:
        """The runs of a task with one seed, the baseline's first."""
        where = f"transfer.{name}"
        given = {"keep_models": "none", **self.recipe.transfer.shared, **held}
        given.pop("translated", None)
        data: dict[str, dict[str, str]] = {
            part: self._labelled(given.pop(part, {}), f"{where}.{part}") for part in ("train", "dev", "test")
        }
        data["mixed"] = {str(one): self._mixed(one, where) for one in given.pop("mixed", [])}
        task = given.pop("task", name)
        for encoder, variant in self._rows(group):
            label = self._label(encoder, variant)
            for codes, parts in self._parts(variant, data):
                reference = self._encoder(encoder, variant, seed, codes)
                shared = {"task": task, "encoder": reference, "label": label, "seeds": [seed]}
                settings = {**given, **shared, **parts}
                if mixed := list(settings.pop("mixed").values()):
                    settings["mixed"] = mixed
                if variant is not None:
                    settings |= self._beside(variant, codes)
                alone = f" {codes[0]}" if len(codes) == 1 and not self.recipe.align.together else ""
                axes = {"encoder": encoder, "method": label, "task": name, "seed": seed}
                title = f"{name}: {label}{alone}, seed {seed}"
                yield self._add("transfer", title, settings, where, **axes)

    def _parts(
        self, variant: Variant | None, data: Mapping[str, Mapping[str, str]]
    ) -> Iterator[tuple[list[str], dict[str, dict[str, str]]]]:
        """Languages that an encoder is aligned to, with the data that it can read.

        Where each has an encoder of its own, so it has in a task. One that is not aligned is trained once for
        all, unless dev data of a language that is tested choose among epochs.
        """
        whole = self.recipe.align.together or (variant is None and set(data["dev"]) <= set(data["train"]))
        each = [self.aligned] if whole else [[code] for code in self._spoken(variant)]
        if variant is None and not whole:
            each = [*each, []]
        for codes in each:
            found = {
                part: {
                    spec: path
                    for spec, path in files.items()
                    if (part == "dev" and spec in data["train"])
                    or (self._readable(variant, spec) and (whole or self._about(spec, codes)))
                }
                for part, files in data.items()
                if part != "train"
            }
            if found["test"] or found["mixed"]:
                yield codes, {"train": dict(data["train"]), **found}

    def _about(self, spec: str, codes: Sequence[str]) -> bool:
        """Whether data are in one of these languages, or, if there are none, in none that is aligned."""
        spoken = _codes(spec)
        return not spoken.isdisjoint(codes) if codes else spoken.isdisjoint(self.aligned)

    def _readable(self, variant: Variant | None, spec: str) -> bool:
        """Whether there are maps for the languages of some data, or none are needed."""
        if variant is None or (variant.trained and self.recipe.align.together):
            return True
        return _codes(spec) <= {self.recipe.source, *self._spoken(variant)}

    def _beside(self, variant: Variant, codes: Sequence[str]) -> dict[str, Any]:
        """Settings of the task that belong to a method: alignment that goes on while it is learned."""
        settings = dict(variant.task)
        if settings.get("continual") is True:
            settings["continual"] = [
                self._pairs(self.recipe.links, "links", code, "train")
                for code in self._spoken(variant)
                if code in codes
            ]
        return settings

    def _labelled(self, given: object, where: str) -> dict[str, str]:
        if not isinstance(given, Mapping):
            self.mistakes.append(f"{where}: a file for each language: {where}.de = FILE")
            return {}
        return {str(code): self._file(path, f"{where}.{code}") for code, path in given.items()}

    def _mixed(self, spec: str, where: str) -> str:
        return ",".join(self._spec(part, f"{where}.mixed") for part in str(spec).split(","))


def _is_there(path: Path) -> bool:
    """Whether there is such a file; a name that none can have is none."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _codes(spec: str) -> set[str]:
    """The languages of data: of `de`, of questions `de/en` about a text in another, of `de=FILE,en=FILE`."""
    return {code for part in spec.split(",") for code in part.partition("=")[0].split("/")}


def _words(axes: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in axes.items()}
