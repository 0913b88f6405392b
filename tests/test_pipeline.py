"""The verbs as functions, on small Hugging Face encoders with random weights."""

from pathlib import Path

import numpy as np
import pytest

from calque.encoders.aligned import AlignedEncoder
from calque.encoders.encoder import HuggingFaceEncoder
from calque.encoders.open import open_encoder
from calque.errors import BadSetting
from calque.geometry.solvers import Method
from calque.pipeline import align, encode, link, measure_words
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
