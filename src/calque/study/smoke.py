"""A study tried out in a minute: every dataset replaced by files of the invented universe, every encoder by a
tiny one, every training cut to a few steps. What it says is nothing; that it runs is all.

Files have the form of those that they stand for, as names and `format` tell it: two line by line stay two,
columns stay columns, so that the same readers read them. Rows of a dataset (`hf:…`) cannot be had without the
hub; a file of what they hold is the nearest: of a bitext two columns, of a task what `write_tasks` writes.
Every encoder, method, task and measure is there. Of the rest of the matrix only a part is: two seeds, two
sizes of bitext, and as few languages as every table has one of, but two at least.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from calque.align.finetune import Loss
from calque.encoders.specs import is_by_language, names_vectors
from calque.errors import CalqueError
from calque.files import is_done, write_text
from calque.pipeline.aligning import AlignRecipe
from calque.pipeline.pretraining import pretrain
from calque.pipeline.runs import running
from calque.presets import Verb, load_preset
from calque.pretrain.sharing import Share
from calque.recipe import Recipe
from calque.study.recipe import LoadedStudy, StudyRecipe
from calque.text.conllu import read_conllu
from calque.text.world import write_tasks, write_world
from calque.text.world.forms import bitext_names, form_of, text_name, write_forms

WIDTH = 16
TINY_ENCODER: dict[str, Any] = {
    "layers": 12, "width": WIDTH, "heads": 2, "inner": 16, "vocabulary": 700, "steps": 2, "batch_tokens": 256,
    "evaluate_every": 1,
}  # fmt: skip
FEW_STEPS = {"steps": 2, "epochs": 1, "batch": 4, "warmup": 0.1, "accumulate": 1, "evaluate_every": 1}
#: Of training data all that `SmokeRecipe.tasks` has: fewer do not have all the labels that others have.
FEW_ITEMS = {"limit_train": 80, "limit_dev": 4, "limit_test": 6}
#: Settings of a training that are for large ones.
LARGE = ("batch_tokens", "max_pairs", "lora", "trim_vocabulary", "precision", "save_every")
#: What of a pretraining is tried out; text, size and length are not.
PRETRAINED = ("share", "paired", "rows", "cutting")
SEEDS, VALUES, LANGUAGES = 2, 2, 2


class SmokeRecipe(Recipe):
    """A small world whose languages are called as those of a study are; with a `tiny` encoder to extend."""

    verb: ClassVar[str] = "smoke world"

    source: str
    languages: tuple[str, ...]
    count: int = Field(120, ge=20)
    tasks: int = Field(80, ge=4)
    tiny: bool = False


def smoke_world(*, out: str | Path, **settings: Any) -> Path:
    """Write what `calque world` does under other languages' names, and random vectors of their words."""
    recipe, folder = SmokeRecipe.build(**settings), Path(out)
    if not is_done(folder, recipe.digest()):
        with running(recipe, folder) as run:
            made = run.folder / "made"
            write_world(made / "text", recipe.count, seed=recipe.seed)
            write_tasks(made / "tasks", recipe.tasks, seed=recipe.seed)
            names = {recipe.source: "en"} | {code: _stand_in(i) for i, code in enumerate(recipe.languages)}
            _renamed(made, run.folder, recipe.source, names)
            shutil.rmtree(made)
            write_forms(run.folder, recipe.source, recipe.languages)
            for code in names:
                _write_vectors(run.folder / "vectors" / f"{code}.vec", run.folder / "text" / f"{code}.conllu")
            if recipe.tiny:
                text = f"{recipe.source}={run.folder / 'text' / recipe.source}.conllu"
                pretrain(run.folder / "tiny", text=[text], **TINY_ENCODER)
    return folder


def _stand_in(number: int) -> str:
    """The language of the world that a language is played by."""
    return ("far", "near")[number % 2]


def _renamed(made: Path, folder: Path, source: str, names: Mapping[str, str]) -> None:
    for file in sorted(path for path in made.rglob("*") if path.is_file()):
        for code, played in names.items():
            if file.name.startswith(f"en-{played}."):
                name = f"{source}-{code}{file.name.removeprefix(f'en-{played}')}"
            elif file.name.startswith(f"{played}."):
                name = f"{code}{file.name.removeprefix(played)}"
            else:
                continue
            target = folder / file.relative_to(made).parent / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)


def _write_vectors(path: Path, text: Path) -> None:
    """Random static vectors in the format of fastText."""
    words = sorted({word for tree in read_conllu(text) for word in tree.words})
    rows = np.random.default_rng(0).standard_normal((len(words), WIDTH)).round(3)
    lines = [f"{word} {' '.join(map(str, row))}" for word, row in zip(words, rows, strict=True)]
    write_text(path, "\n".join([f"{len(words)} {WIDTH}", *lines]) + "\n")


# --------------------------------------------------------------------------------------- the recipe


def smoke_study(study: LoadedStudy) -> LoadedStudy:
    """A smaller matrix over tiny encoders and files of the world."""
    held = study.recipe.model_dump(mode="json", exclude_defaults=True)
    source, codes = study.recipe.source, _languages(study.recipe)
    make = _Small(source, codes)
    small = {
        **held,
        "about": f"Tried out in small, on invented text: {study.recipe.about or study.name}",
        "seeds": held.get("seeds", [0])[:SEEDS],
        "world": {
            "source": source,
            "languages": codes,
            "tiny": any(map(_extends, study.recipe.encoders.values())),
        },
        "encoders": {name: make.encoder(spec) for name, spec in study.recipe.encoders.items()},
        "align": make.align(held.get("align", {})),
        "compare": {**held.get("compare", {}), "rounds": 20},
    }
    for part in ("links", "scored"):
        if part in held:
            small[part] = make.links(held[part], scored=part == "scored")
    if "measure" in held:
        small["measure"] = {name: make.measure(name, one) for name, one in held["measure"].items()}
    if "transfer" in held:
        small["transfer"] = make.transfer(held["transfer"])
    return study.model_copy(update={"recipe": StudyRecipe(**small)})


def _languages(recipe: StudyRecipe) -> list[str]:
    """Some languages of a study: the first ones, and of every table one at least. The source is not told."""
    tables = [recipe.links.languages, recipe.scored.languages if recipe.scored else []]
    for spec in recipe.encoders.values():
        if isinstance(spec, dict):
            tables.append(_texts(spec) or [code for code, one in spec.items() if isinstance(one, dict)])
    tables += [recipe.align.own(name).get("to", []) for name in recipe.align.methods]
    tables += [list(one.get(part, {})) for one in recipe.measure.values() for part in ("text", "dictionary")]
    for task in recipe.transfer.tasks.values():
        tables += [list(task.get(part, {})) for part in ("train", "dev", "test")]
        tables.append([spec.partition("=")[0] for spec in task.get("mixed", [])])
    found: dict[str, None] = {}
    for table in tables:
        spoken = dict.fromkeys(code for one in table for code in one.split("/") if code != recipe.source)
        # Dictionaries of word types need no links; of the first languages there are both.
        missing = LANGUAGES - len(found) if not found else int(found.keys().isdisjoint(spoken))
        found.update(dict.fromkeys(list(spoken)[:missing]))
    return list(found)


def _texts(spec: Mapping[str, Any]) -> list[str]:
    """The languages that a pretraining names."""
    codes = [part.partition("=")[0] for text in spec.get("text", []) for part in text.split(",")]
    return codes or list(spec.get("languages", []))


class _Small:
    """Parts of a recipe over a small world."""

    def __init__(self, source: str, codes: Sequence[str]) -> None:
        self.source, self.codes = source, codes

    def _kept(self, codes: Iterable[str]) -> list[str]:
        """Those of these languages that are in the world."""
        return [code for code in codes if set(code.split("/")) <= {self.source, *self.codes}]

    def _bitext(
        self, code: str, given: str | Sequence[str] = "", format: str | None = None
    ) -> str | list[str]:
        """The world's bitext with a language, in the form of these files: one, or two line by line."""
        paths = [given] if isinstance(given, str) else list(given)
        found = [f"world:text/{name}" for name in bitext_names(paths, (self.source, code), format)]
        return found if len(found) > 1 else found[0]

    def _text(self, code: str, given: str | Sequence[str] = "") -> str:
        """The world's text of a language, in the form of this file."""
        return f"world:text/{text_name(given if isinstance(given, str) else given[0], code)}"

    def _corpora(self, specs: Iterable[str], codes: Iterable[str]) -> list[str]:
        """Text to pretrain on in the form of these: `en=FILE`, or `en,de=FILE` and `en=FILE,de=FILE`."""
        found = []
        for spec in specs or [f"{code}=" for code in (self.source, *codes)]:
            parts = [part.partition("=") for part in spec.split(",")]
            spoken, paths = [part[0] for part in parts], [part[2] for part in parts if part[1]] or [""]
            others = [code for code in self._kept(spoken) if code != self.source]
            if len(parts) == 1:
                found += [f"{code}={self._text(code, paths)}" for code in self._kept(spoken)]
            else:
                found += [self._together(code, self._bitext(code, paths)) for code in others]
        return list(dict.fromkeys(found))

    def _together(self, code: str, files: str | Sequence[str]) -> str:
        if isinstance(files, str):
            return f"{self.source},{code}={files}"
        return f"{self.source}={files[0]},{code}={files[1]}"

    def _words(self, code: str, part: str) -> str:
        return f"world:text/{self.source}-{code}.{part}.txt"

    # ------------------------------------------------------------------------------------ encoders

    def encoder(self, spec: str | Mapping[str, Any]) -> str | dict[str, Any]:
        """Something tiny of the same kind: vectors, an encoder for each language, or one for all."""
        if isinstance(spec, str):
            spoken = (self.source, *self.codes)
            if spec.startswith("world:") or (is_by_language(spec) and names_vectors(spec)):
                return ",".join(f"{code}=world:vectors/{code}.vec" for code in spoken)
            return (
                {code: self._alone(code, {}) for code in spoken}
                if is_by_language(spec)
                else self._pretrained({})
            )
        if all(isinstance(one, Mapping) for one in spec.values()):
            return {code: self._alone(code, spec[code]) for code in self._kept(spec)}
        return self._extended(spec) if _extends(spec) else self._pretrained(spec)

    def _extended(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """A tiny encoder that learns more languages."""
        text = self._corpora(spec.get("text", ()), self.codes)
        few = {name: TINY_ENCODER[name] for name in ("steps", "batch_tokens", "evaluate_every")}
        return {**few, "encoder": "world:tiny", "pieces": 30, "text": text}

    def _pretrained(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """An encoder of all languages, or of those that a pretraining names, sharing what it says."""
        own = {**_preset(spec, "pretrain"), **spec}
        spoken = [code for code in self._kept(_texts(own)) if code != self.source] or list(self.codes)
        found = {name: own[name] for name in PRETRAINED if name in own} | TINY_ENCODER
        found["text"] = self._corpora(own.get("text", ()), spoken)
        if own.get("paired"):
            pairs = own.get("bitext") or [f"{self.source},{code}=" for code in spoken]
            found["bitext"] = self._corpora(pairs, spoken)
        if own.get("share") == Share.EXTRA_ANCHORS:
            found["dictionary"] = [self._words(code, "train") for code in spoken]
        return found

    def _alone(self, code: str, spec: Mapping[str, Any]) -> dict[str, Any]:
        """A tiny encoder of one language."""
        found = {name: spec[name] for name in ("rows", "cutting") if name in spec}
        return {**found, **TINY_ENCODER, "text": self._corpora(spec.get("text", [f"{code}="]), ())}

    # ------------------------------------------------------------------------------------ alignment

    def links(self, held: Mapping[str, Any], *, scored: bool) -> dict[str, Any]:
        """Links of the world: made by the same linker, or those that are known to be right."""
        codes = self._kept([*held.get("text", {}), *held.get("pairs", {})])
        kept = ("linker", "symmetrise", "filters", "encoder", "subwords", "layer", "threshold")
        found: dict[str, Any] = {name: held[name] for name in kept if name in held} | _format(held)
        text, format = held.get("text", {}), found.get("format")
        # Folders of pairs are calque's own; the world has text to make them of.
        found["text"] = {code: self._bitext(code, text.get(code, ""), format) for code in codes}
        found["tokenised"] = True
        if scored:
            found["links"] = {code: f"world:text/{self.source}-{code}.links" for code in codes}
        else:
            found |= {"dev": 10, "test": 20}
        return found

    def align(self, held: Mapping[str, Any]) -> dict[str, Any]:
        found = {name: value for name, value in held.items() if name not in (*LARGE, "dev")}
        for name in held.get("methods", []):
            found[name] = self._method(name, held.get(name, {}))
        found["vary"] = _axes(held.get("vary", {}))
        if "size" in held:
            found["size"] = _sizes(1)[0]
        found["dictionary"] = {
            code: self._words(code, "train") for code in self._kept(held.get("dictionary", {}))
        }
        return found

    def _method(self, name: str, held: Mapping[str, Any]) -> dict[str, Any]:
        """Settings of one method, with few steps where it takes any."""
        own = {key: value for key, value in held.items() if key not in (*LARGE, "dev")}
        trained = (own.get("method") or _preset(held, "align").get("method", name)) in [*map(str, Loss)]
        few = {key: value for key, value in FEW_STEPS.items() if trained or key in AlignRecipe.model_fields}
        if "method" in own or "preset" in own or "transfer" not in own:
            own |= few
        if "size" in own:
            own["size"] = _sizes(1)[0]
        if "vary" in own:
            own["vary"] = _axes(own["vary"])
        if "to" in own:
            own["to"] = self._kept(own["to"])
        if "transfer" in own:
            own["transfer"] = {
                key: value for key, value in own["transfer"].items() if key not in {**FEW_STEPS, **FEW_ITEMS}
            }
        return own

    # ------------------------------------------------------------------------------------ measures and tasks

    def measure(self, name: str, held: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {**held, "limit": 20, "rounds": 10}
        if held.get("measure", name) == "sentences":  # the world's text is also what is aligned on
            found["include_seen"] = True
        if isinstance(text := held.get("text"), Mapping):
            mono = held.get("measure", name) == "lexicon"
            found["text"] = {
                code: self._text(code, text[code]) if mono else self._bitext(code, text[code])
                for code in self._kept(text)
            }
        if isinstance(words := held.get("dictionary"), Mapping):
            found["dictionary"] = {code: self._words(code, "test") for code in self._kept(words)}
        return found

    def transfer(self, held: Mapping[str, Any]) -> dict[str, Any]:
        found = {name: value for name, value in held.items() if not isinstance(value, Mapping)}
        shared = {"format": found["format"]} if "format" in found else {}
        found = {name: value for name, value in found.items() if name not in (*LARGE, "format")}
        for name, one in held.items():
            if isinstance(one, Mapping):
                found[name] = self._task(str(one.get("task", name)), {**shared, **one})
        return found

    def _task(self, task: str, held: Mapping[str, Any]) -> dict[str, Any]:
        """The same task on few items of the world."""
        dropped = ("train", "dev", "test", "mixed", "format", *LARGE)
        found: dict[str, Any] = {key: value for key, value in held.items() if key not in dropped}
        found |= _format(held)

        def stand_in(code: str, part: str, path: str) -> str:
            form = form_of(task, path, found.get("format"))
            return f"world:tasks/{task}/{_paragraphs(code)}.{part}.{form}"

        for part in ("train", "dev", "test"):
            if part in held:
                files = held[part]
                found[part] = {code: stand_in(code, part, files[code]) for code in self._kept(files)}
        mixed = [[part.partition("=")[::2] for part in spec.split(",")] for spec in held.get("mixed", [])]
        if mixed:
            found["mixed"] = [
                ",".join(f"{code}={stand_in(code, 'test', path)}" for code, path in parts)
                for parts in mixed
                if len(self._kept(code for code, _ in parts)) == len(parts)
            ]
        return {**found, **FEW_STEPS, **FEW_ITEMS}


def _format(held: Mapping[str, Any]) -> dict[str, str]:
    """How files are said to be read, if it is said; datasets become files."""
    return {"format": held["format"]} if held.get("format", "dataset") != "dataset" else {}


def _paragraphs(code: str) -> str:
    """Questions in one language about a text in another are the text's here."""
    return code.partition("/")[2] or code


def _sizes(count: int) -> list[int]:
    """Sentence pairs: few, but more than a tiny encoder has dimensions."""
    return [20 + 10 * number for number in range(count)]


def _axes(vary: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Axes of the matrix; of sizes, of which there may be many, the first values."""
    return {
        axis: _sizes(min(VALUES, len(values))) if axis == "size" else values for axis, values in vary.items()
    }


def _preset(spec: Mapping[str, Any], verb: Verb) -> Mapping[str, Any]:
    """Settings of the preset that is named, if it is there: what is wrong is told where it is checked."""
    try:
        return load_preset(spec["preset"], verb).settings if "preset" in spec else {}
    except CalqueError:
        return {}


def _extends(spec: str | Mapping[str, Any]) -> bool:
    """Whether a table of an encoder has the settings of `calque extend`."""
    return isinstance(spec, Mapping) and "encoder" in spec
