"""A study's matrix: its groups, the cells so far, and the encoders that they make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from calque.pipeline.extending import ExtendRecipe
from calque.pipeline.linking import LinkRecipe
from calque.pipeline.modelling import MaskedRecipe
from calque.pipeline.pretraining import PretrainRecipe
from calque.study.cells import Cell, cell_reference, each_text, needed
from calque.study.inputs import Inputs
from calque.study.recipe import LinksPart, LoadedStudy
from calque.study.variants import Variant, variants_of

#: Seeds of encoders that never met: they do not begin alike.
APART = 1000


@dataclass(frozen=True)
class Group:
    """What is compared with what: a baseline and the methods beside it, by label."""

    encoder: str
    baseline: str
    methods: tuple[str, ...]


#: An encoder by name, and how it is aligned, if at all.
Row = tuple[str, Variant | None]


class Matrix:
    """Adds cells as they are asked for: each once, whoever asks.

    What rests on `broken` cells is `dead`: it is there, and is left out of measures and comparisons.
    """

    def __init__(self, study: LoadedStudy, broken: frozenset[str]) -> None:
        self.recipe = study.recipe
        self.cells: dict[str, Cell] = {}
        self._broken, self._dead = broken, set[str]()
        self.inputs = Inputs(study, self._world)
        self.variants = variants_of(self.recipe.align, self.inputs)
        self.aligned = self.recipe.links.languages

    # ------------------------------------------------------------------------------------ who is there

    def groups(self) -> list[Group]:
        """Each encoder with its methods; without any, all encoders with the first."""
        names = list(self.recipe.encoders)
        if not self.variants:
            return [Group(names[0], names[0], tuple(names[1:]))]
        return [
            Group(name, name, tuple(self.label(name, one) for one in self.aligning(name))) for name in names
        ]

    def rows(self, group: Group) -> list[Row]:
        """Encoder and method of the baseline and of every label beside it."""
        if not self.variants:
            return [(name, None) for name in self.recipe.encoders]
        return [(group.encoder, None), *((group.encoder, one) for one in self.aligning(group.encoder))]

    def aligning(self, encoder: str) -> list[Variant]:
        """The ways in which an encoder is aligned: none where others are named."""
        return self.variants if encoder in (self.recipe.align.encoders or [encoder]) else []

    def label(self, encoder: str, variant: Variant | None) -> str:
        if variant is None:
            return encoder
        return variant.label if len(self.recipe.encoders) == 1 else f"{encoder} {variant.label}"

    def spoken(self, variant: Variant | None) -> list[str]:
        """The languages that a variant is aligned to."""
        chosen = None if variant is None else variant.to
        return [code for code in self.aligned if chosen is None or code in chosen]

    def joined(self, codes: Sequence[str]) -> list[list[str]]:
        """Languages that one encoder is aligned to: all of them, or each by itself."""
        return [list(codes)] if self.recipe.align.together and codes else [[code] for code in codes]

    def readable(self, variant: Variant | None, spec: str) -> bool:
        """Whether there are maps for the languages of some data, or none are needed."""
        if variant is None or (variant.trained and self.recipe.align.together):
            return True
        return languages_of(spec) <= {self.recipe.source, *self.spoken(variant)}

    # ------------------------------------------------------------------------------------ cells

    def add(self, verb: str, title: str, settings: Mapping[str, Any], where: str, **axes: object) -> str:
        """A reference to the cell of these settings, which may be there under another title."""
        cell = Cell.of(verb, title, in_order(settings), words_of(axes), where)
        self.cells.setdefault(cell.key, cell)
        if cell.key in self._broken or self._dead.intersection(cell.needs):
            self._dead.add(cell.key)
        return cell_reference(cell.key)

    def dead(self, reference: str) -> bool:
        """Whether something rests on a broken cell; encoders by language on several."""
        return not self._dead.isdisjoint(needed(reference))

    def cell(self, reference: str) -> Cell:
        """The cell that a reference is to."""
        return self.cells[needed(reference)[0]]

    def look_for_files(self) -> None:
        """Look for files that no cell may have asked for: what is not there is a mistake all the same."""
        for where, part in self.recipe.linked.items():
            for name in ("text", "links", "pairs"):
                for code, given in getattr(part, name).items():
                    each_text(given, partial(self.inputs.file, where=f"{where}.{name}.{code}"))
        for code in self.recipe.align.dictionary:
            self._dictionary(code)

    def _world(self, where: str) -> str:
        if self.recipe.world is None:
            self.inputs.mistakes.append(f"{where}: names a file of the world (add a table [world])")
        given = dict(self.recipe.world or {})
        return self.add("smoke world" if "source" in given else "world", "", given, "world")

    # ------------------------------------------------------------------------------------ linked text

    def linked(self, code: str) -> str:
        """Linked words of one language to learn from."""
        return self._pairs(self.recipe.links, "links", code, "train")

    def scored(self, code: str) -> str:
        """Linked words of one language to measure on: of [scored], or what of [links] is not learned."""
        if self.recipe.scored is not None:
            return self._pairs(self.recipe.scored, "scored", code, "test", "train")
        return self._pairs(self.recipe.links, "links", code, "test")

    def keeps(self, code: str) -> bool:
        """Whether words of a language are there to be measured on."""
        links = self.recipe.links
        if self.recipe.scored is not None:
            return True
        if code in links.pairs:
            folder = links.pairs[code]
            if not self.variants:  # nothing is learned from them
                return True
            return self.inputs.has(f"{folder}/test") or not self.inputs.has(folder)
        return bool(links.settings.get("test"))

    def _pairs(self, part: LinksPart, name: str, code: str, *wanted: str) -> str:
        """Linked words of one language with the source: the first of these splits that there is."""
        if code in part.pairs:
            whole = part.pairs[code]
            inside = (f"{whole}/{split}" for split in wanted)
            found = next(filter(self.inputs.has, inside), whole)
            return self.inputs.file(found, f"{name}.pairs.{code}")
        given = part.text[code]
        paths = [given] if isinstance(given, str) else list(given)
        settings = part.settings
        if "encoder" in settings:
            settings["encoder"] = self._by_name(str(settings["encoder"]), f"{name}.encoder")
        settings = {
            **self.inputs.located(LinkRecipe, settings, name),
            "paths": [self.inputs.file(path, f"{name}.text.{code}") for path in paths],
            "languages": [self.recipe.source, code],
        }
        if code in part.links:
            settings["links"] = self.inputs.file(part.links[code], f"{name}.links.{code}")
        split = next((one for one in wanted if settings.get(one)), "train")
        return f"{self.add('link', f'{name} {code}', settings, name, language=code)}/{split}"

    def learned(self, code: str, size: int | None, seed: int) -> str:
        """Links to learn from: all, or a sample of sentences that another seed draws anew."""
        whole = self.linked(code)
        if size is None:
            return whole
        drawn = {"pairs": whole, "sentences": size, "seed": seed}
        title = f"{size} of {code}, seed {seed}"
        return f"{self.add('sample', title, drawn, 'align.vary.size', language=code)}/train"

    # ------------------------------------------------------------------------------------ encoders

    def encoder(self, name: str, variant: Variant | None, seed: int, codes: Sequence[str]) -> str:
        """The encoder of a name, aligned to these languages where a variant says so.

        A seed among the settings of an alignment is that of all its runs.
        """
        base = self._base(name, seed)
        codes = [code for code in codes if code in self.spoken(variant)]
        if variant is None or variant.method is None or not codes:
            return base
        seed = variant.settings.get("seed", seed)
        pairs = [self.learned(code, variant.size, seed) for code in codes]
        settings = {**variant.settings, "encoder": base, "pairs": pairs}
        if variant.drawn:
            settings["seed"] = seed
        if settings.get("supervision") in ("dictionary", "embeddings") and "dictionary" not in settings:
            settings["dictionary"] = [self._dictionary(code) for code in codes]
        label, alone = self.label(name, variant), "" if len(codes) > 1 else f" {codes[0]}"
        told = {"encoder": name, "method": label, **({"seed": seed} if variant.drawn else {})}
        title = f"{label}{alone}" + (f", seed {seed}" if variant.drawn else "")
        return self.add("align", title, settings, variant.where, **told)

    def _dictionary(self, code: str) -> str:
        given = self.recipe.align.dictionary.get(code)
        where = f"align.dictionary.{code}"
        if given is None:
            self.inputs.mistakes.append(f"{where}: missing, and supervision by a dictionary needs it")
            return ""
        return self.inputs.file(given, where)

    def _base(self, name: str, seed: int) -> str:
        spec = self.recipe.encoders[name]
        if isinstance(spec, str):
            return self._by_name(spec, f"encoders.{name}")
        if all(isinstance(one, Mapping) for one in spec.values()):
            each = enumerate(spec.items())
            parts = [(code, one, seed + APART * place) for place, (code, one) in each]
            return ",".join(
                f"{code}={self._trained(f'{name} {code}', one, own, name)}" for code, one, own in parts
            )
        return self._trained(name, spec, seed, name)

    def _by_name(self, spec: str, where: str) -> str:
        """An encoder by its name in the study, a directory, vectors by language, or a name of a hub."""
        known = self.recipe.encoders.get(spec, spec)
        if not isinstance(known, str):
            return self._base(spec, self.recipe.seeds[0])
        return self.inputs.place(known, where)

    def _trained(self, title: str, spec: Mapping[str, Any], seed: int, name: str) -> str:
        """A model that is pretrained, or another one that is extended."""
        where, extended = f"encoders.{name}", "encoder" in spec
        kind: type[MaskedRecipe] = ExtendRecipe if extended else PretrainRecipe
        settings = {"seed": seed, **spec}
        if extended:
            settings["encoder"] = self._extended(str(spec["encoder"]), where)
        settings = self.inputs.located(kind, settings, where)
        told = {"encoder": name, "seed": settings["seed"]}
        verb = "extend" if extended else "pretrain"
        return self.add(verb, f"{title}, seed {settings['seed']}", settings, where, **told)

    def _extended(self, spec: str, where: str) -> str:
        """The encoder that another is made of."""
        known = self.recipe.encoders.get(spec)
        if isinstance(known, Mapping) and "encoder" in known:
            self.inputs.mistakes.append(f"{where}.encoder: {spec} is itself extended")
            return spec
        return self._by_name(spec, where)


def languages_of(spec: str) -> set[str]:
    """The languages of data: of `de`, of questions `de/en` about a text in another, of `de=FILE,en=FILE`."""
    return {code for part in spec.split(",") for code in part.partition("=")[0].split("/")}


def words_of(axes: Mapping[str, object]) -> dict[str, str]:
    """Axes as they are written down."""
    return {name: str(value) for name, value in axes.items()}


def in_order(value: Any) -> Any:
    """Nested lists and tables with all tables in the order of their names.

    A key does not tell in which order they were written, so no verb may see it.

    >>> in_order({"test": {"near": "a", "far": ["b", "a"]}})
    {'test': {'far': ['b', 'a'], 'near': 'a'}}
    """
    if isinstance(value, Mapping):
        return {name: in_order(value[name]) for name in sorted(value)}
    return [in_order(one) for one in value] if isinstance(value, list | tuple) else value
