"""Encoders by language through the verbs: two that never met, and two that share their upper layers."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_encoders
import torch
import transformers
from safetensors.torch import load_file
from tokenizers import Tokenizer, models, pre_tokenizers

import small_corpus
from calque.encoders.aligned import AlignedEncoder
from calque.encoders.anchors import anchors
from calque.encoders.bylanguage import LANGUAGES, PARTS, LanguageEncoders
from calque.encoders.cached import CachedEncoder
from calque.encoders.encoder import HuggingFaceEncoder
from calque.encoders.open import open_encoder
from calque.encoders.wordtypes import Types
from calque.errors import BadInput, BadSetting
from calque.geometry.solvers import Method, SolverOptions, solve_pairs
from calque.pipeline import align, link, predict, transfer, transferring
from calque.store import load_pairs, load_results
from calque.types import Encoder, Floats, MapKey, Matrix, Sentences, SpaceMap, WordIndex, WordPairs

KINDS = {"cat": "ANIMAL", "dog": "ANIMAL", "mat": "THING", "street": "THING", "child": "PERSON"}
FROZEN: dict[str, Any] = {
    "seeds": 1, "epochs": 15, "batch": 8, "learning_rate": 5e-2, "body": "none", "regime": "features",
    "head": "tag", "pooling": "mean",
}  # fmt: skip
TUNED: dict[str, Any] = {"seeds": 1, "epochs": 20, "batch": 8, "learning_rate": 1e-2}
SEPARATE = ["embeddings", "encoder.layer.0"]


def build(language: str, seed: int) -> HuggingFaceEncoder:
    """A BERT with random weights whose pieces are the words of one language, always the same."""
    words = [*small_corpus.INTO] if language == "en" else [*small_corpus.INTO.values()]
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    known = {piece: number for number, piece in enumerate([*names.values(), *words])}
    backend = Tokenizer(models.WordPiece(known, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = tiny_encoders.fast(backend, "[CLS] $A [SEP]", names)
    torch.manual_seed(seed)
    config = transformers.BertConfig(vocab_size=len(known), **tiny_encoders.SIZES)
    return HuggingFaceEncoder.from_model(transformers.BertModel(config), tokenizer, language)


@pytest.fixture(scope="module")
def strangers(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two encoders that have nothing in common but their size, by name."""
    folder = tmp_path_factory.mktemp("strangers")
    for seed, code in enumerate(("en", "de")):
        build(code, seed).save(folder / code)
    return f"en={folder}/en,de={folder}/de"


@pytest.fixture(scope="module")
def relatives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two encoders that share all but embeddings and the first layer, as a folder."""
    first, second = build("en", 0), build("de", 1)
    own = {name: value for name, value in second.model.state_dict().items() if name.startswith((*SEPARATE,))}
    second.model.load_state_dict({**first.model.state_dict(), **own})
    folder = tmp_path_factory.mktemp("relatives")
    LanguageEncoders({"en": first, "de": second}, separate=SEPARATE).save(folder)
    return folder


def write(path: Path, language: str, count: int, seed: int) -> str:
    """Words with what they are; the same sentences in both languages."""
    rng = np.random.default_rng(seed)
    tag = {word: f"B-{KINDS[word]}" if word in KINDS else "O" for word in small_corpus.INTO}
    lines = []
    for _ in range(count):
        words = rng.choice(list(small_corpus.INTO), rng.integers(3, 8)).tolist()
        lines += [f"{word if language == 'en' else small_corpus.INTO[word]}\t{tag[word]}" for word in words]
        lines.append("")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("tagged")
    tests = {code: write(folder / f"test.{code}.tsv", code, 20, 1) for code in ("en", "de")}
    return {"train": {"en": write(folder / "train.en.tsv", "en", 60, 0)}, "test": tests}


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def run(*command: object, code: int = 0) -> str:
        from calque.cli import main

        monkeypatch.setattr("sys.argv", ["calque", *map(str, command)])
        with pytest.raises(SystemExit) as stop:
            main()
        told = capsys.readouterr()
        assert (stop.value.code or 0) == code, told.out + told.err
        return " ".join((told.out + told.err).split())

    return run


def score(folder: Path, language: str) -> float:
    found = load_results(folder / "results.jsonl")
    return next(one.value for one in found if one.languages[1] == language and one.metric == "f1")


# ------------------------------------------------------------------------------------------- alignment


def vectors(supervision: str, encoder: Encoder, pairs: WordPairs, side: int, layer: int) -> Floats:
    """Vectors of one side of what is paired, made by the encoder of that language alone. Shape: (n, d)."""
    text = (pairs.bitext.source, pairs.bitext.target)[side]
    if supervision == "words":
        words = WordIndex(pairs.sentence, (pairs.source, pairs.target)[side])
        return encoder.word_vectors(text, words, layers=[layer]).layer(layer)
    if supervision == "sentences":
        return encoder.sentence_vectors(text, layers=[layer])[0]
    types = Types.of_text(text)
    return anchors(encoder, types, layers=[layer]).layer(layer)[
        types.find(entry[side] for entry in small_corpus.INTO.items())
    ]


@pytest.mark.parametrize("supervision", ["words", "sentences", "dictionary"])
def test_the_map_is_that_of_the_two_encoders_own_vectors(
    supervision: str, strangers: str, corpus: Path, tmp_path: Path
) -> None:
    given = {"dictionary": (str(corpus / "words.txt"),)} if supervision == "dictionary" else {}
    pairs, links = load_pairs(corpus / "links" / "train"), corpus / "links" / "train"
    how = {"method": "rotation", "layers": "all", "supervision": supervision, "shrink": 0.01}
    aligned = align(strangers, links, out=tmp_path / "aligned", **how, **given)
    assert isinstance(aligned.inner, LanguageEncoders) and aligned.layers == (0, 1, 2, 3)
    parts = [CachedEncoder(aligned.inner.speaking(code)) for code in ("en", "de")]
    for layer in aligned.layers:
        held, moving = (vectors(supervision, one, pairs, side, layer) for side, one in enumerate(parts))
        expected = solve_pairs(Method.ROTATION, moving, held, SolverOptions(shrink=0.01)).moves
        assert np.allclose(matrix(aligned, layer), matrix_of(expected), atol=1e-4), layer


def test_words_alone_are_paired_by_their_embeddings(strangers: str, corpus: Path, tmp_path: Path) -> None:
    """Words of the corpus are single pieces; one that is not is left out."""
    file = tmp_path / "en-de.txt"
    file.write_text((corpus / "words.txt").read_text(encoding="utf-8") + "zebra Zebra\n", encoding="utf-8")
    how = {"method": "rotation", "layers": "0", "shrink": 0.01, "supervision": "embeddings"}
    held, moving = (
        open_encoder(strangers)
        .word_vectors(Sentences.of(code, [[word] for word in words]), layers=[0])
        .layer(0)
        for code, words in (("en", small_corpus.INTO), ("de", small_corpus.INTO.values()))
    )
    expected = solve_pairs(Method.ROTATION, moving, held, SolverOptions(shrink=0.01)).moves
    # By themselves, or those of a text.
    for name, pairs in (("alone", ()), ("text", corpus / "links" / "train")):
        aligned = align(strangers, pairs, dictionary=(str(file),), out=tmp_path / name, **how)
        assert aligned.about["coverage"]["en-de"]["used"] == len(small_corpus.INTO)
        assert np.allclose(matrix(aligned, 0), matrix_of(expected), atol=1e-3), "but for half precision"
    file.write_text("zebra Zebra\n", encoding="utf-8")
    with pytest.raises(BadInput, match="none of 1 en words is a single piece"):
        align(strangers, dictionary=(str(file),), out=tmp_path / "no", **how)


def matrix(aligned: AlignedEncoder, layer: int) -> Floats:
    return matrix_of(aligned.maps[MapKey("de", "en", layer)])


def matrix_of(space_map: SpaceMap) -> Floats:
    (step,) = space_map.steps
    assert isinstance(step, Matrix)
    return np.asarray(step.matrix)


def test_two_encoders_tell_the_languages_of_a_dictionary_that_does_not(
    strangers: str, corpus: Path, tmp_path: Path
) -> None:
    given = {"supervision": "identical", "layers": "3", "method": "rotation", "shrink": 0.5}
    text = [f"{code}={corpus}/text.tsv" for code in ("en", "de")]
    found = align(strangers, text=text, out=tmp_path / "same", **given)
    assert found.languages == {"en", "de"}
    with pytest.raises(BadSetting, match="embeddings are layer 0, and layers 1, 3 are asked for"):
        align(
            strangers,
            supervision="embeddings",
            dictionary=(str(corpus / "words.txt"),),
            languages=("en", "de"),
            layers="1,3",
            out=tmp_path / "no",
        )


# ---------------------------------------------------------------------------------------- command line


def test_strangers_are_aligned_measured_and_carry_a_task_over(
    strangers: str,
    corpus: Path,
    data: dict[str, Any],
    typed: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    links, words = corpus / "links", corpus / "words.txt"
    typed("align", "--encoder", strangers, "--pairs", links / "train", "--method", "rotation",
          "--layers", "0,3", "--out", "aligned")  # fmt: skip
    held = tmp_path / "aligned"
    assert json.loads((held / LANGUAGES).read_text())["separate"] is None
    assert "a checkpoint a language" in json.loads((held / "alignment.json").read_text())["note"]
    assert (held / PARTS / "de" / "model.safetensors").samefile(
        Path(strangers.partition("de=")[2]) / "model.safetensors"
    )
    both = ["--encoder", strangers, "--encoder", "aligned", "--layers", "0,3"]
    pairs = ["--pairs", links / "test", "--rounds", "10"]
    told = typed("measure", "words", *both, *pairs, "--include-seen", "--out", "words")
    assert "en+de" in told and "aligned" in told
    typed("measure", "sentences", *both, *pairs, "--out", "sentences")
    typed("measure", "distances", *both, *pairs, "--out", "distances")
    typed("measure", "cka", *both, "--pairs", links / "test", "--rounds", "10", "--out", "cka")
    typed("measure", "lexicon", *both, "--pairs", links / "test", "--dictionary", words, "--languages",
          "en", "de", "--include-seen", "--rounds", "10", "--out", "lexicon")  # fmt: skip
    figures = {
        one.encoder: one.value
        for one in load_results(tmp_path / "words" / "results.jsonl")
        if one.layer == 0 and one.direction == "both" and one.group is None and one.baseline is None
    }
    assert figures["aligned"] > figures["en+de"] + 0.2, "words meet that did not"

    how = ["--regime", "features", "--layers", "0", "--body", "none", "--head", "tag", "--pooling", "mean",
           "--epochs", "15", "--batch", "8", "--learning-rate", "0.05", "--seeds", "1"]  # fmt: skip
    sets = ["--train", f"en={data['train']['en']}", *(f"--test={k}={v}" for k, v in data["test"].items())]
    for name, encoder in (("plain", strangers), ("mapped", "aligned")):
        typed("transfer", "ner", "--encoder", encoder, *sets, *how, "--out", name)
    assert score(tmp_path / "mapped", "en") == score(tmp_path / "plain", "en") > 0.7
    assert score(tmp_path / "mapped", "de") > score(tmp_path / "plain", "de") + 0.15

    lines = Path(data["test"]["de"]).read_text(encoding="utf-8").strip().split("\n\n")
    text = "\n".join(" ".join(row.split("\t")[0] for row in one.splitlines()) for one in lines)
    Path("de.txt").write_text(f"{text}\n", encoding="utf-8")
    typed("predict", "de.txt", "--model", "mapped", "--language", "de", "--tokenised", "--out", "de.tsv")
    said = [row.split("\t")[-1] for row in Path("de.tsv").read_text(encoding="utf-8").splitlines() if row]
    tested = (tmp_path / "mapped" / "predictions" / "de.seed-0@en.tsv").read_text(encoding="utf-8")
    assert said == [row.split("\t")[-1] for row in tested.splitlines() if row]
    told = typed("predict", "de.txt", "--model", "plain", "--language", "fr", "--out", "fr.tsv", code=2)
    assert "no encoder for language 'fr' (it has en, de" in told


# -------------------------------------------------------------------------------------------- transfer


@pytest.fixture(scope="module")
def tuned(relatives: Path, data: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "tuned"
    transfer("ner", str(relatives), **data, out=out, **TUNED)
    return out


def test_only_what_is_shared_is_fine_tuned_and_every_language_has_its_own_below(
    relatives: Path, tuned: Path
) -> None:
    model = tuned / "models" / "seed-0"
    assert json.loads((model / LANGUAGES).read_text()) == json.loads((relatives / LANGUAGES).read_text())
    before, after = (
        {code: load_file(folder / PARTS / code / "model.safetensors") for code in ("en", "de")}
        for folder in (relatives, model)
    )
    for name in before["en"]:
        if name.startswith((*SEPARATE,)):
            assert all(torch.equal(before[code][name], after[code][name]) for code in ("en", "de")), name
        else:
            assert torch.equal(after["en"][name], after["de"][name]), name
    layer = "encoder.layer.2.output.dense.weight"
    assert not torch.equal(before["en"][layer], after["en"][layer])
    assert score(tuned, "en") > 0.7


def test_a_fine_tuned_model_predicts_and_is_tested_as_it_was(
    tuned: Path, data: dict[str, Any], tmp_path: Path
) -> None:
    model = tuned / "models" / "seed-0"
    run = transfer("ner", model=str(model), test=data["test"], seeds=1, out=tmp_path / "tested")
    assert {code: score(run.folder, code) for code in ("en", "de")} == {
        code: score(tuned, code) for code in ("en", "de")
    }
    more = {"train": data["train"], "epochs": 1, "learning_rate": 1e-4, "batch": 8, "seeds": 1}
    transfer("ner", model=str(model), test=data["test"], out=tmp_path / "more", **more)
    for code in ("en", "de"):
        file = tuned / "predictions" / f"{code}.seed-0.tsv"
        blocks = file.read_text(encoding="utf-8").strip().split("\n\n")
        rows = [[line.split("\t") for line in block.splitlines()] for block in blocks]
        text = tmp_path / f"{code}.txt"
        text.write_text("".join(" ".join(r[0] for r in one) + "\n" for one in rows), encoding="utf-8")
        found = predict(tuned, text, code, tokenised=True, out=tmp_path / f"{code}.tsv")
        assert [list(tags) for tags in found.predictions] == [[r[2] for r in one] for one in rows]


def test_a_training_that_was_stopped_goes_on_and_ends_the_same(
    relatives: Path, tuned: Path, data: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, whole, steps = tmp_path / "tuned", transferring.Learner.learn, []

    def failing(self: Any, *args: Any, **kwargs: Any) -> Any:
        from calque.transfer.learning import TransferTask

        step = TransferTask.step

        def counted(task: Any, *given: Any) -> Any:
            steps.append(given)
            if len(steps) == 9:
                raise KeyboardInterrupt
            return step(task, *given)

        monkeypatch.setattr(TransferTask, "step", counted)
        return whole(self, *args, **kwargs)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(transferring.Learner, "learn", failing)
        transfer("ner", str(relatives), **data, out=out, save_every=4, **TUNED)
    transfer("ner", str(relatives), **data, out=out, save_every=4, **TUNED)
    assert len(steps) < 9 + 160, "it went on from its checkpoint"
    assert (out / "results.jsonl").read_bytes() == (tuned / "results.jsonl").read_bytes()
    name = Path("models") / "seed-0" / PARTS / "de" / "model.safetensors"
    mine, theirs = (load_file(folder / name) for folder in (out, tuned))
    assert all(torch.equal(mine[key], theirs[key]) for key in mine)


def test_what_is_trained_is_said_once(
    relatives: Path, data: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(transferring, "say", told.append)
    given = {**TUNED, "seeds": 2, "epochs": 1, "limit_train": 8, "freeze_layers": 2, "keep_models": "all"}
    transfer("ner", str(relatives), **data, out=tmp_path / "run", **given)
    (line,) = (one for one in told if "share" in one)
    assert "en, de share" in line and "frozen (embeddings, encoder.layer.0)" in line
    held = [
        load_file(folder / PARTS / "de" / "model.safetensors")
        for folder in (relatives, tmp_path / "run" / "models" / "seed-1")
    ]
    moved = {name.split(".")[2] for name in held[0] if not torch.equal(held[0][name], held[1][name])}
    assert moved == {"2"}, "lower layers can be frozen in all languages as well"


def test_features_of_relatives_need_no_maps(relatives: Path, data: dict[str, Any], tmp_path: Path) -> None:
    transfer("ner", str(relatives), **data, out=tmp_path / "run", layers="all", **FROZEN)
    assert score(tmp_path / "run", "en") > 0.7


# ---------------------------------------------------------------------------------- what cannot be done


def test_strangers_have_nothing_to_fine_tune(strangers: str, data: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=r"nothing that its languages share.*--regime features"):
        transfer("ner", strangers, **data, out=tmp_path / "run", **TUNED)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("more", [{"lora": 2}, {"continual": ["links"]}], ids=["lora", "continual"])
def test_adapters_and_continual_alignment_are_refused(
    more: dict[str, Any], relatives: Path, data: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(BadSetting, match=f"--{next(iter(more))} is not for encoders by language"):
        transfer("ner", str(relatives), **data, out=tmp_path / "run", **TUNED, **more)


def test_languages_that_no_encoder_is_there_for(
    strangers: str, data: dict[str, Any], corpus: Path, tmp_path: Path
) -> None:
    with pytest.raises(BadSetting, match="no encoder for language 'fr'"):
        transfer("ner", strangers, train=data["train"], test={"fr": data["test"]["de"]},
                 out=tmp_path / "run", **FROZEN)  # fmt: skip
    with pytest.raises(BadSetting, match="no encoder for language 'de'"):
        align(strangers.partition(",")[0], corpus / "links" / "train", out=tmp_path / "one")


def test_a_row_in_two_languages_is_refused(strangers: str, tmp_path: Path) -> None:
    for code, line in (("en", "the cat\tcat"), ("de", "die Katze\tKatze")):
        (tmp_path / f"{code}.tsv").write_text(f"{line}\tentailment\n{line}\tneutral\n" * 4, encoding="utf-8")
    given = {"train": {"en": tmp_path / "en.tsv"}, "mixed": [f"de={tmp_path}/de.tsv,en={tmp_path}/en.tsv"]}
    with pytest.raises(BadSetting, match="items in de and en at once"):
        transfer("nli", strangers, **given, regime="features", out=tmp_path / "run")


def test_training_alignment_and_subwords_need_one_encoder(
    strangers: str, corpus: Path, tmp_path: Path
) -> None:
    with pytest.raises(BadSetting, match=r"encoder for each language.*--method rotation"):
        align(strangers, corpus / "links" / "train", method="weak", steps=1, out=tmp_path / "weak")
    with pytest.raises(BadSetting, match="has others for each language"):
        link(corpus / "text.tsv", ("en", "de"), encoder=strangers, subwords=True, out=tmp_path / "links")


def test_an_alignment_is_refused_over_other_widths(strangers: str, corpus: Path, tmp_path: Path) -> None:
    align(strangers, corpus / "links" / "train", method="rotation", out=tmp_path / "aligned")
    config = transformers.BertConfig(vocab_size=180, **{**tiny_encoders.SIZES, "hidden_size": 12})
    other = HuggingFaceEncoder.from_model(transformers.BertModel(config), tiny_encoders.wordpiece(), "narrow")
    for code in ("en", "de"):
        other.save(tmp_path / "aligned" / PARTS / code)
    with pytest.raises(BadInput, match="over an encoder of width 12"):
        open_encoder(str(tmp_path / "aligned"))
