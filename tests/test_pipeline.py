"""The verbs as functions, on small Hugging Face encoders with random weights."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from calque.encoders.aligned import AlignedEncoder
from calque.encoders.encoder import HuggingFaceEncoder
from calque.encoders.open import open_encoder
from calque.errors import BadInput, BadSetting
from calque.geometry.solvers import Method
from calque.pipeline import (
    AlignRecipe,
    CorrelationRecipe,
    TransferRecipe,
    WordsRecipe,
    align,
    encode,
    export,
    link,
    measure_sentences,
    measure_words,
)
from calque.pipeline.inputs import check_not_read, named_files
from calque.recipe import Recipe
from calque.store import load_pairs
from calque.types import Sentences


@pytest.mark.parametrize("supervision", ["words", "cls", "cls+sep", "all", "sentences", "dictionary"])
def test_every_supervision_gives_finite_maps(
    supervision: str, corpus: Path, bert: Path, tmp_path: Path
) -> None:
    extra = {"dictionary": [str(corpus / "words.txt")]} if supervision == "dictionary" else {}
    aligned = align(
        str(bert), corpus / "links" / "train", out=tmp_path / "a", supervision=supervision, shrink=0.1,
        layers="1,3", **extra,
    )  # fmt: skip
    assert aligned.layers == (1, 3) and aligned.languages == {"en", "de"}
    found = aligned.word_vectors(Sentences.of("de", [["die", "Katze"]]), layers=(0, 1, 3))
    assert np.isfinite(found.vectors).all()
    counts = aligned.about["coverage"]["en-de"]
    expected = {"cls": 40, "cls+sep": 80, "sentences": 40, "dictionary": 12}
    if supervision in expected:
        assert counts["used"] == expected[supervision]


def test_subwords_are_linked_and_learned_from(corpus: Path, bert: Path, tmp_path: Path) -> None:
    run = link(
        corpus / "text.tsv", ("en", "de"), out=tmp_path / "links", tokenised=True, subwords=True,
        encoder=str(bert), linker="eflomal", keep_duplicates=True,
    )  # fmt: skip
    pairs = run.splits["train"]
    assert pairs.bitext.source.unit == "piece" == load_pairs(tmp_path / "links" / "train").bitext.target.unit
    assert any(word.startswith("##") for word in pairs.bitext.target.vocabulary)
    aligned = align(str(bert), tmp_path / "links" / "train", out=tmp_path / "a", layers="2")
    assert aligned.about["coverage"]["en-de"]["used"] == len(pairs)
    words = set(load_pairs(corpus / "links" / "train").bitext.source.vocabulary)
    seen = aligned.seen_by(("en", "de"))
    known = {"[UNK]", "isn", "'", "t"} | words | {word.lower() for word in words}
    assert {a for a, _ in seen} <= known, "pieces are words again"
    assert not any("##" in word for pair in seen for word in pair)


def test_sentences_that_were_learned_from_are_not_asked(corpus: Path, bert: Path, tmp_path: Path) -> None:
    train, test = corpus / "links" / "train", corpus / "links" / "test"
    settings = {"layers": "3", "rounds": 50}
    for supervision in ("sentences", "words"):
        folder = tmp_path / supervision
        align(str(bert), train, out=folder, supervision=supervision, method="least-squares", shrink=0.1)
        with pytest.raises(BadInput, match="40 of 40 sentence pairs were seen in training: 0 left"):
            measure_sentences([bert, folder], train, out=tmp_path / "x", **settings)
    kept = measure_sentences(
        [bert, tmp_path / "sentences"], train, out=tmp_path / "kept", include_seen=True, **settings
    )
    assert kept.counts["sentences seen in training"] == 40
    assert any(result.group == ("seen", "seen") for result in kept.results)
    fresh = measure_sentences([bert, tmp_path / "sentences"], test, out=tmp_path / "fresh", **settings)
    assert "sentences seen in training" not in fresh.counts


@pytest.mark.parametrize("method", list(Method))
def test_an_aligned_directory_opens_with_its_maps_and_as_a_plain_model(
    method: Method, corpus: Path, bert: Path, tmp_path: Path
) -> None:
    import transformers

    aligned = align(
        str(bert), corpus / "links" / "train", out=tmp_path / "a", method=method, shrink=0.2, layers="last",
        prefix="the", steps=50,
    )  # fmt: skip
    again = open_encoder(str(tmp_path / "a"))
    assert isinstance(again, AlignedEncoder) and again.fingerprint == aligned.fingerprint
    assert isinstance(again.inner, HuggingFaceEncoder) and again.inner.options.prefix == "the"
    plain = transformers.AutoModel.from_pretrained(tmp_path / "a")
    mine = open_encoder(str(bert))
    assert isinstance(mine, HuggingFaceEncoder)
    theirs = dict(plain.named_parameters())
    assert all(np.array_equal(p.detach(), theirs[n].detach()) for n, p in mine.model.named_parameters())
    with pytest.raises(BadSetting, match="aligned already"):
        align(str(tmp_path / "a"), corpus / "links" / "train", out=tmp_path / "b")


def test_measure_uses_the_pooling_the_maps_were_learned_with(
    corpus: Path, bert: Path, tmp_path: Path
) -> None:
    pairs = corpus / "links" / "train"
    for pooling in ("first", "last"):
        align(str(bert), pairs, out=tmp_path / pooling, pooling=pooling, shrink=0.1, layers="last")
    options = {"layers": "3", "include_seen": True, "rounds": 50}
    run = measure_words([bert, tmp_path / "first"], corpus / "links" / "test", out=tmp_path / "w", **options)
    assert all("pooling:first" in result.signature for result in run.results)
    with pytest.raises(BadSetting, match="first, last"):
        measure_words([tmp_path / "first", tmp_path / "last"], corpus / "links" / "test", out=tmp_path / "x")


def test_every_encoder_is_measured_with_the_prefix_the_maps_were_learned_with(
    corpus: Path, bert: Path, tmp_path: Path
) -> None:
    options = {"layers": "3", "include_seen": True, "rounds": 50}
    test = corpus / "links" / "test"
    align(str(bert), corpus / "links" / "train", out=tmp_path / "a", prefix="the", shrink=0.1)
    run = measure_words([bert, tmp_path / "a"], test, out=tmp_path / "w", **options)
    alone = measure_words([bert], test, out=tmp_path / "x", prefix="the", labels=["b"], **options)
    bare = measure_words([tmp_path / "a"], test, out=tmp_path / "y", prefix="", **options)
    before = {
        result.signature.split("encoder:")[1][:12] for result in run.results if result.encoder == bert.name
    }
    assert before == {result.signature.split("encoder:")[1][:12] for result in alone.results}
    assert 'prefix = "the"' in (tmp_path / "w" / "recipe.toml").read_text()
    assert not before & {result.signature.split("encoder:")[1][:12] for result in bare.results}
    align(str(bert), corpus / "links" / "train", out=tmp_path / "b", shrink=0.1)
    with pytest.raises(BadSetting, match="different prefixes"):
        measure_words([tmp_path / "a", tmp_path / "b"], test, out=tmp_path / "z", **options)


def test_seen_pairs_are_left_out_for_every_encoder(corpus: Path, bert: Path, tmp_path: Path) -> None:
    few = load_pairs(corpus / "links" / "train")
    align(str(bert), corpus / "links" / "train", out=tmp_path / "a", shrink=0.1, layers="last")
    assert few.types() >= load_pairs(corpus / "links" / "test").types(), "every pair is seen here"
    from calque.errors import BadInput

    with pytest.raises(BadInput, match="seen in training"):
        measure_words([bert, tmp_path / "a"], corpus / "links" / "test", out=tmp_path / "w")
    run = measure_words(
        [bert, tmp_path / "a"],
        corpus / "links" / "test",
        out=tmp_path / "w",
        include_seen=True,
        rounds=50,
    )
    seen = {result.group for result in run.results if result.group and result.group[0] == "seen"}
    assert seen == {("seen", "seen")}


def test_similarity_links_by_an_encoder(corpus: Path, bert: Path, tmp_path: Path) -> None:
    for method in ("mutual", "iterative", "softmax"):
        run = link(
            corpus / "text.tsv", ("en", "de"), out=tmp_path / method, tokenised=True, linker=method,
            encoder=str(bert), layer="0", keep_duplicates=True,
        )  # fmt: skip
        assert len(run.splits["train"]) and run.splits["train"].linker.startswith(method)


def test_a_kept_linker_links_new_text(corpus: Path, tmp_path: Path) -> None:
    first = link(
        corpus / "text.tsv", ("en", "de"), out=tmp_path / "a", tokenised=True, keep_linker=True,
        keep_duplicates=True,
    )  # fmt: skip
    (tmp_path / "new.tsv").write_text("the dog sat\tdie Hund saß\n", encoding="utf-8")
    run = link(
        tmp_path / "new.tsv", ("en", "de"), out=tmp_path / "b", tokenised=True,
        trained=str(tmp_path / "a" / "linker"),
    )  # fmt: skip
    assert first.splits["train"].linker.endswith("training")
    assert run.splits["train"].linker.endswith("decoded")
    assert run.splits["train"].types() <= {("the", "die"), ("dog", "Hund"), ("sat", "saß")}


def test_encoded_chunks_are_what_one_call_gives(
    corpus: Path, bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = tmp_path / "text.en"
    text.write_text("the cat sat\n\non the mat , isn't it\ndog\n", encoding="utf-8")
    whole = encode(str(bert), text, "en", out=tmp_path / "whole", tokenised=True, layers="all")
    monkeypatch.setattr("calque.encoders.anchors.BLOCK_NUMBERS", 200)
    parts = encode(str(bert), text, "en", out=tmp_path / "parts", tokenised=True, layers="all")
    for layer in range(4):
        assert whole.layer(layer).shape == (10, 24)
        assert np.allclose(whole.layer(layer), parts.layer(layer), atol=1e-5)
    rows = (tmp_path / "parts" / "words.tsv").read_text(encoding="utf-8").splitlines()
    assert rows[1] == "1\t1\tthe" and rows[4] == "3\t1\ton" and len(rows) == 11


@pytest.mark.parametrize(
    "recipe",
    [
        TransferRecipe(task="ner", test=["en=run/a.tsv"]),
        TransferRecipe(task="ner", test=["en=run/a,b=c.tsv"]),
        TransferRecipe(task="ner", mixed=["de=x,en=run/a.tsv"]),
        TransferRecipe(task="ner", original="run"),
        AlignRecipe(encoder="en=x, far=run/a.tsv"),
        AlignRecipe(encoder="x", text=["en,far=run/a.tsv"]),
        AlignRecipe(encoder="linked"),
    ],
)
def test_a_folder_that_holds_what_is_read_is_known(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("run", "run-2", "en"):
        Path(name).mkdir()
    for name in ("a.tsv", "a,b=c.tsv"):
        Path("run", name).touch()
    Path("linked").symlink_to("run")
    with pytest.raises(BadSetting, match="holds what is read"):
        check_not_read(tmp_path / "run", named_files(recipe))
    for free in ("run-2", "en", "run/inside"):
        check_not_read(Path(free), named_files(recipe))


def test_what_is_read_is_not_replaced(corpus: Path, bert: Path, tmp_path: Path) -> None:
    shutil.copytree(corpus, tmp_path / "corpus")
    shutil.copytree(bert, tmp_path / "w" / "encoder")
    encoder, text = str(tmp_path / "w" / "encoder"), tmp_path / "text.en"
    text.write_text("the cat\n", encoding="utf-8")
    for folder in ("w", "corpus"):
        (tmp_path / folder / "finished.json").write_text("{}", encoding="utf-8")
    given = {"overwrite": True}
    with pytest.raises(BadSetting, match=rf"w: holds what is read: {encoder} \(choose another --out\)"):
        encode(encoder, text, "en", out=tmp_path / "w", **given)
    with pytest.raises(BadSetting, match="holds what is read"):
        export(encoder, out=encoder, **given)
    with pytest.raises(BadSetting, match="holds what is read"):
        align(str(bert), tmp_path / "corpus" / "links" / "train", out=tmp_path / "corpus", **given)
    assert (tmp_path / "w" / "encoder" / "config.json").is_file()
    assert (tmp_path / "corpus" / "links" / "test").is_dir()
    first = encode(encoder, text, "en", out=tmp_path / "w" / "vectors")
    assert encode(encoder, text, "en", out=tmp_path / "w" / "vectors", **given).layers == first.layers


def test_rounds_that_make_no_interval_are_refused() -> None:
    for kind, given in ((WordsRecipe, {"encoders": ["x"]}), (CorrelationRecipe, {"run_x": "x"})):
        assert kind.build(**given, rounds=10)
        with pytest.raises(BadSetting, match=r"rounds: should be at least 10 \(given: 9\)"):
            kind.build(**given, rounds=9)


def test_links_are_the_same_whether_the_linker_is_kept_or_not(tmp_path: Path) -> None:
    """Writing a model must not touch the links that it was trained with."""
    import calque.text.world as world

    world.write_world(tmp_path / "text", 150, languages=("en", "near"))
    found = [
        link(tmp_path / "text" / "en-near.tsv", ("en", "near"), tokenised=True, out=tmp_path / name, **more)
        for name, more in (("kept", {"keep_linker": True}), ("not", {}))
    ]
    assert found[0].folder != found[1].folder
    first, second = (load_pairs(tmp_path / name / "train") for name in ("kept", "not"))
    assert len(first) > 300 and first.fingerprint == second.fingerprint
