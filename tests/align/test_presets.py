"""Presets: each is whole, says what its paper says, and can be edited."""

import math
import tomllib
from importlib import resources
from pathlib import Path

import pytest
from linked_text import linked_text
from tiny_encoders import build

from calque.align.finetune import FinetuneAligner, Loss
from calque.errors import BadInput, BadSetting
from calque.links.filters import parse_filter
from calque.pipeline.finetuning import FinetuneRecipe
from calque.pipeline.linking import LinkRecipe
from calque.presets import load_preset, preset_names
from calque.training.crew import Crew
from calque.training.schedule import Schedule

#: What every preset must set, whatever calque's own defaults are.
ALWAYS = {"method", "layers", "pooling", "supervision", "moves", "pulled_to", "regulariser", "batch",
          "batch_of", "max_length", "learning_rate", "betas", "epsilon", "weight_decay", "warmup", "schedule",
          "clip", "accumulate", "dropout", "precision"}  # fmt: skip
OF_A_LOSS = {"l2": {"power", "reduction"}, "weak": {"temperature", "head", "queue", "mask_same"}}
OF_A_REGULARISER = {
    "hidden": {"hidden_weight", "hidden_words"},
    "parameters": {"parameter_weight", "parameter_form"},
}


def recipe(name: str) -> FinetuneRecipe:
    return FinetuneRecipe.build(encoder="x", pairs=["y"], **load_preset(name).align)


@pytest.mark.parametrize("name", preset_names())
def test_every_setting_is_known_and_none_is_left_to_a_default(name: str) -> None:
    preset = load_preset(name)
    loss = "l2" if preset.align["method"] == "l2" else "weak"
    needed = ALWAYS | OF_A_LOSS[loss] | OF_A_REGULARISER[preset.align["regulariser"]]
    assert set(preset.align) - {"max_pairs", "steps", "epochs"} == needed
    assert ("steps" in preset.align) != ("epochs" in preset.align)
    made = recipe(name)
    assert FinetuneRecipe.build(**tomllib.loads(made.to_toml().partition("\n")[2])).digest() == made.digest()
    linking = LinkRecipe.build(paths=["x"], languages=("en", "de"), **preset.link)
    assert linking.linker == "fast-align"
    for one in linking.filters:
        parse_filter(one)
    text = (resources.files("calque") / "recipes" / "align" / f"{name}.toml").read_text(encoding="utf-8")
    assert text.startswith("# ") and "§" in text.partition("about")[0] and preset.about


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_takes_a_step(name: str) -> None:
    encoder = build("bert")
    task = FinetuneAligner(recipe(name).finetuning(encoder.depth)).task(encoder, [linked_text(sentences=6)])
    taken = task.step(task.batches(0)[0], Crew.alone())
    assert all(math.isfinite(loss.item()) for loss in taken.losses.values())


def test_papers_and_programs_differ_where_they_should() -> None:
    assert set(preset_names()) >= {
        "cao2020", "cao2020-program", "wu2020-l2", "wu2020-weak", "wu2020-strong", "wu2020-weak-program",
        "kulshreshtha2020-tgt-to-src", "kulshreshtha2020-src-to-tgt", "efimov2022",
    }  # fmt: skip
    cao, program = recipe("cao2020"), recipe("cao2020-program")
    assert (cao.learning_rate, cao.betas, cao.epsilon, cao.batch, cao.epochs) == (
        5e-5,
        (0.9, 0.98),
        1e-9,
        2,
        1,
    )
    assert (cao.pulled_to, program.pulled_to) == ("trained", "frozen")
    assert program.schedule is Schedule.CONSTANT and cao.pooling == "last" and cao.reduction == "sum"
    weak, program = recipe("wu2020-weak"), recipe("wu2020-weak-program")
    assert (weak.parameter_form, program.parameter_form) == ("squared", "root")
    assert (weak.method, weak.steps, weak.warmup, weak.batch) == (Loss.WEAK, 100_000, 4000, 128)
    assert (weak.max_length, weak.precision, weak.mask_same) == (96, "float16", False)
    assert load_preset("wu2020-l2").link["filters"] == ["different", "one-to-one"]
    forth, back = recipe("kulshreshtha2020-tgt-to-src"), recipe("kulshreshtha2020-src-to-tgt")
    assert (forth.moves, back.moves) == ("target", "source") and forth.power == 1 and forth.layers == "last4"
    assert recipe("efimov2022").supervision == "all" and recipe("efimov2022-program").batch == 32


def test_an_edited_copy_is_a_preset_of_its_own(tmp_path: Path) -> None:
    text = (resources.files("calque") / "recipes" / "align" / "cao2020.toml").read_text(encoding="utf-8")
    own = tmp_path / "mine.toml"
    own.write_text(text.replace("batch = 2", "batch = 8"), encoding="utf-8")
    assert load_preset(own).align["batch"] == 8 and load_preset(str(own)).name == "mine"


def test_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=r"unknown preset 'cao202'.*did you mean cao2020\?"):
        load_preset("cao202")
    with pytest.raises(BadInput, match="no such file"):
        load_preset(tmp_path / "none.toml")
    for text, told in (
        ("about = ", "not TOML"),
        ("[links]\n[align]", "unknown part 'links'"),
        ("", "no \\[align\\]"),
    ):
        (tmp_path / "broken.toml").write_text(text)
        with pytest.raises(BadInput, match=told):
            load_preset(tmp_path / "broken.toml")
