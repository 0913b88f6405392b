"""`calque export`: sentence-transformers gives calque's vectors; what cannot be exported is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_encoders
import yaml

from calque.cli import main
from calque.encoders.encoder import EncoderOptions
from calque.encoders.open import MODULES, READING, SENTENCES, open_encoder
from calque.errors import BadSetting
from calque.files import read_json
from calque.pipeline import align, export
from calque.types import Encoder, Floats, Sentences

Told = Callable[..., str]
TEXTS = [
    "The cat sat on the mat and it's a dog's life, isn't it?",
    "die Katze saß auf der Matte",
    "query : the [ dog",
    "Кошка",
    "cat " * 600,
]


def vectors_of(encoder: Encoder, language: str, layer: int, pooling: Any = "mean") -> Floats:
    text = Sentences.of(language, [one.split() for one in TEXTS])
    return encoder.sentence_vectors(text, layers=[layer], pooling=pooling)[0]


def vectors_there(folder: Path) -> Floats:
    """What the other library makes of a directory, and that it needs no code for that."""
    library = pytest.importorskip("sentence_transformers")
    kinds = [one["type"] for one in read_json(folder / MODULES)]
    assert all(kind.startswith("sentence_transformers.models.") for kind in kinds)
    assert "auto_map" not in read_json(folder / "config.json")
    model = library.SentenceTransformer(str(folder), device="cpu")
    return np.asarray(model.encode([text.strip() for text in TEXTS], show_progress_bar=False), np.float32)


@pytest.fixture(scope="session")
def families(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    root = tmp_path_factory.mktemp("families")

    def folder(family: str) -> Path:
        if not (root / family).is_dir():
            tiny_encoders.build(family).save(root / family)
        return root / family

    return folder


@pytest.fixture(scope="module")
def aligned(corpus: Path, bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    root = tmp_path_factory.mktemp("aligned")

    def folder(method: str) -> Path:
        if not (root / method).is_dir():
            how: dict[str, Any] = {"shrink": 0.3} if "rotation" in method else {}
            align(
                str(bert), corpus / "links" / "train", out=root / method, method=method, layers="2,3",
                prefix="query: ", **how,
            )  # fmt: skip
        return root / method

    return folder


@pytest.fixture
def calque(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Told:
    """Type `calque export …`; it must end with this exit code. Returns all it printed."""

    def run(*words: object, code: int = 0) -> str:
        monkeypatch.setattr("sys.argv", ["calque", "export", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        told = capsys.readouterr()
        assert (stop.value.code or 0) == code, told.out + told.err
        return told.out + told.err

    return run


# ---------------------------------------------------------------------------------------- equal vectors


@pytest.mark.parametrize("pooling", ["mean", "first"])
@pytest.mark.parametrize("prefix", [None, "query: "])
@pytest.mark.parametrize("family", list(tiny_encoders.FAMILIES))
def test_every_family_gives_the_same_vectors(
    family: str, prefix: str | None, pooling: str, families: Callable[[str], Path], tmp_path: Path
) -> None:
    if (family, pooling) == ("t5", "first"):
        with pytest.raises(BadSetting, match="no special token first"):
            export(str(families(family)), out=tmp_path / "out", pooling=pooling)
        return
    made = export(str(families(family)), out=tmp_path / "out", prefix=prefix, pooling=pooling)
    encoder = open_encoder(str(families(family)), EncoderOptions(prefix=prefix))
    wanted = vectors_of(encoder, "en", 3, pooling)
    np.testing.assert_allclose(vectors_there(made.folder), wanted, atol=1e-5)
    # calque reads what it wrote as an encoder whose special tokens begin with the prefix
    again = open_encoder(str(made.folder))
    np.testing.assert_allclose(vectors_of(again, "en", 3, pooling), wanted, atol=1e-5)


@pytest.mark.parametrize("layer", [1, 2])
@pytest.mark.parametrize("family", ["bert", "xlm-roberta", "deberta-v2"])
def test_layers_above_are_left_out(
    family: str, layer: int, families: Callable[[str], Path], tmp_path: Path
) -> None:
    made = export(str(families(family)), out=tmp_path / "out", layer=str(layer))
    assert read_json(made.folder / "config.json")["num_hidden_layers"] == layer == made.layer
    wanted = vectors_of(open_encoder(str(families(family))), "en", layer)
    np.testing.assert_allclose(vectors_there(made.folder), wanted, atol=1e-5)


@pytest.mark.parametrize("family", ["modernbert", "t5", "llama"])
def test_a_layer_that_a_shorter_model_would_change_is_refused(
    family: str, families: Callable[[str], Path], tmp_path: Path
) -> None:
    with pytest.raises(BadSetting, match="another step follows its last layer"):
        export(str(families(family)), out=tmp_path / "out", layer="2")
    assert not list(tmp_path.iterdir())


def test_an_encoder_decoder_model_is_refused(tmp_path: Path) -> None:
    model, tokenizer = tiny_encoders.marian(tmp_path)
    model.save_pretrained(tmp_path / "marian")
    tokenizer.save_pretrained(tmp_path / "marian")
    with pytest.raises(BadSetting, match="the decoder's vectors"):
        export(str(tmp_path / "marian"), out=tmp_path / "out")


@pytest.mark.parametrize("layer", ["last", "2"])
@pytest.mark.parametrize("language", ["de", "en"])
@pytest.mark.parametrize(
    "method", ["centring", "z-norm", "top-components", "centred-rotation", "iterative-normalisation"]
)
def test_maps_of_a_language_become_modules(
    method: str, language: str, layer: str, aligned: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = aligned(method)
    made = export(str(folder), out=tmp_path / "out", language=language, layer=layer)
    encoder = open_encoder(str(folder))
    np.testing.assert_allclose(
        vectors_there(made.folder), vectors_of(encoder, language, made.layer), atol=1e-4
    )
    assert (made.language, made.space, made.prefix) == (language, "en", "query: ")
    moved = made.modules[3:]
    if method == "iterative-normalisation":
        assert moved[:2] == ("Normalize", "Dense")
    else:
        assert moved == (() if (method, language) == ("centred-rotation", "en") else ("Dense",))


def test_an_encoder_aligned_by_training_needs_no_language(corpus: Path, bert: Path, tmp_path: Path) -> None:
    align(str(bert), corpus / "links" / "train", out=tmp_path / "weak", method="weak", steps=3, batch=4)
    made = export(str(tmp_path / "weak"), out=tmp_path / "out", normalise=True)
    assert made.modules == ("Transformer", "WordWeights", "Pooling", "Normalize") and made.space is None
    wanted = vectors_of(open_encoder(str(tmp_path / "weak")), "de", 3)
    wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors_there(made.folder), wanted, atol=1e-5)
    assert "12 of English–German" in (made.folder / "README.md").read_text(encoding="utf-8")


def test_encoders_by_language_are_exported_one_by_one(corpus: Path, tmp_path: Path) -> None:
    for code, family in (("en", "bert"), ("de", "xlm-roberta")):
        tiny_encoders.build(family).save(tmp_path / code)
    spec = f"en={tmp_path}/en,de={tmp_path}/de"
    align(spec, corpus / "links" / "train", out=tmp_path / "both", method="rotation", shrink=0.3)
    for name in (spec, str(tmp_path / "both")):
        for code in ("en", "de"):
            made = export(name, out=tmp_path / "out", language=code, overwrite=True)
            wanted = vectors_of(open_encoder(name), code, 3)
            np.testing.assert_allclose(vectors_there(made.folder), wanted, atol=1e-4)


# ------------------------------------------------------------------------------------ what is written


def test_what_is_written_is_told_and_is_not_inherited(
    aligned: Callable[[str], Path], corpus: Path, tmp_path: Path, calque: Told
) -> None:
    start = (aligned("z-norm"), "--out", tmp_path / "out", "--language", "de")
    told = calque(*start)
    assert "Transformer → WordWeights → Pooling → Dense, layer 3" in told and "'query: '" in told
    assert "for de only: its map into the space of en" in told and "written" in told
    assert "already there" in calque(*start)
    record = json.loads(calque(*start, "--json"))
    assert record["modules"][-1] == "Dense" and record["space"] == "en" and calque(*start, "--quiet") == ""
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    metadata = yaml.safe_load(card.split("---\n")[1])
    assert metadata["language"] == ["de"] and metadata["library_name"] == "sentence-transformers"
    assert "**For German only:**" in card and "give text without it" in card
    align(str(tmp_path / "out"), corpus / "links" / "train", out=tmp_path / "on", method="centring")
    assert not [name for name in (MODULES, READING, SENTENCES) if (tmp_path / "on" / name).exists()]


def test_weights_are_linked_where_nothing_changes(bert: Path, tmp_path: Path) -> None:
    made = export(str(bert), out=tmp_path / "out")
    assert (made.folder / "model.safetensors").stat().st_ino == (bert / "model.safetensors").stat().st_ino
    before = {file.name: file.read_bytes() for file in bert.iterdir()}
    export(str(bert), out=tmp_path / "out", prefix="query: ", overwrite=True)
    assert {file.name: file.read_bytes() for file in bert.iterdir()} == before


def test_weights_in_half_precision_are_written_as_calque_runs_them(bert: Path, tmp_path: Path) -> None:
    encoder = tiny_encoders.build("bert")
    encoder.model.half().save_pretrained(tmp_path / "half")
    encoder.tokenizer.save_pretrained(tmp_path / "half")
    assert read_json(tmp_path / "half" / "config.json")["dtype"] == "float16"
    made = export(str(tmp_path / "half"), out=tmp_path / "out")
    wanted = vectors_of(open_encoder(str(tmp_path / "half")), "en", 3)
    np.testing.assert_allclose(vectors_there(made.folder), wanted, atol=1e-5)


# ------------------------------------------------------------------------------------------ mistakes


def test_mistakes_are_named_and_leave_nothing(
    aligned: Callable[[str], Path], bert: Path, tmp_path: Path, calque: Told
) -> None:
    out, maps = ("--out", tmp_path / "runs" / "out"), aligned("centring")
    (tmp_path / "en.vec").write_text("1 2\ncat 1 2\n", encoding="utf-8")
    wrong: list[tuple[Sequence[object], str]] = [
        (("nowhere/at/all/",), "no such directory"),
        (("e5-small-q5",), "did you mean e5-small-q4"),
        ((f"en={tmp_path}/en.vec",), "static vectors"),
        ((f"en={bert},de={bert}",), "an encoder for each language"),
        ((f"en={bert},de={bert}", "--language", "fr"), "no encoder for language 'fr' (known: de, en)"),
        ((maps,), "--language de or en"),
        ((maps, "--language", "german"), "did you mean de (German)"),
        ((maps, "--language", "fr"), "has no map for language 'fr' (known: de, en)"),
        ((maps, "--language", "de", "--layer", "1"), "no maps at layer 1"),
        ((bert, "--language", "de"), "reads all languages alike"),
        ((bert, "--layer", "0"), "layer 0 is the embeddings"),
        ((bert, "--layer", "9"), "no layer '9'"),
        ((bert, "--layer", "1,2"), "names 2 layers"),
        ((bert, "--pooling", "last"), "pooling"),
        ((bert, "--max-length", "1"), "leaves no room"),
    ]
    for words, told in wrong:
        assert told in " ".join(calque(*words, *out, code=2).split()), words
    assert not (tmp_path / "runs").exists() or not list((tmp_path / "runs").iterdir())


def test_another_recipe_in_the_folder_is_kept_unless_told_otherwise(
    bert: Path, tmp_path: Path, calque: Told
) -> None:
    calque(bert, "--out", tmp_path / "out")
    assert "holds a finished run of another recipe" in calque(
        bert, "--out", tmp_path / "out", "--layer", 2, code=2
    )
    calque(bert, "--out", tmp_path / "out", "--layer", 2, "--overwrite")
    assert read_json(tmp_path / "out" / "config.json")["num_hidden_layers"] == 2
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("kept")
    assert "not a calque run" in calque(bert, "--out", tmp_path / "mine", code=2)


@pytest.mark.slow
def test_a_real_encoder_gives_the_same_vectors(e5_directory: Path, tmp_path: Path) -> None:
    from calque.demo.corpus import sentences

    library = pytest.importorskip("sentence_transformers")
    made = export(str(e5_directory), out=tmp_path / "out", prefix="query: ", layer="8")
    model = library.SentenceTransformer(str(made.folder), device="cpu")
    encoder = open_encoder(str(e5_directory), EncoderOptions(prefix="query: "))
    for code in ("en", "de", "ru", "hi", "zh"):
        words = [list(one) for one in sentences(code)[:20]]
        wanted = encoder.sentence_vectors(Sentences.of(code, words), layers=[8])[0]
        found = model.encode([" ".join(one) for one in words], show_progress_bar=False)
        np.testing.assert_allclose(found, wanted, atol=1e-4)
