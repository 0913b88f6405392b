"""An encoder as mteb's: maps by the language of a subset, and real tasks of mteb where it is installed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tiny_encoders
import torch

from calque.encoders.aligned import AlignedEncoder
from calque.encoders.static import StaticEncoder, WordTable
from calque.errors import BadSetting
from calque.pipeline import MtebEncoder
from calque.types import Encoder, Floats, MapKey, Matrix, Sentences, Shift, SpaceMap, Vocabulary

SIDES = {
    "de": ["die Katze saß auf der Matte", "das Kind lachte", "über den Straßenkehrer", "a b c", "Hund"],
    "en": ["the cat sat on the mat", "the child laughed", "at the mat", "a b c", "dog's life"],
}
METADATA = SimpleNamespace(
    name="Made-up",
    hf_subsets_to_langscripts={
        "default": ["deu-Latn"], "de-en": ["deu-Latn", "eng-Latn"], "zh": ["cmn-Hans"], "fr": ["fra-Latn"],
        "three": ["deu-Latn", "eng-Latn", "fra-Latn"],
    },
)  # fmt: skip


@pytest.fixture(scope="module")
def aligned() -> AlignedEncoder:
    """Random maps for three languages at the last layer, in a space of English."""
    inner, rng = tiny_encoders.build("bert"), np.random.default_rng(0)
    turn = {
        code: np.linalg.qr(rng.normal(size=(24, 24)))[0].astype(np.float32) for code in ("de", "en", "zh")
    }
    maps = {
        MapKey(code, "en", 3): SpaceMap((Shift(np.full(24, 0.1, np.float32)), Matrix(matrix)))
        for code, matrix in turn.items()
    }
    return AlignedEncoder(inner, maps, "en", about={"method": "rotation"})


def encode(model: MtebEncoder, texts: list[str], subset: str, **more: Any) -> Floats:
    batches = [{"text": texts[:2]}, {"text": texts[2:]}]
    return model.encode(batches, task_metadata=METADATA, hf_split="test", hf_subset=subset, **more)


def wanted(encoder: Encoder, language: str, texts: list[str], layer: int = 3) -> Floats:
    text = Sentences.of(language, [one.split() for one in texts])
    return encoder.sentence_vectors(text, layers=[layer])[0]


def test_the_language_is_that_of_the_subset(aligned: AlignedEncoder) -> None:
    model, texts = MtebEncoder(aligned), SIDES["de"]
    np.testing.assert_array_equal(encode(model, texts, "default"), wanted(aligned, "de", texts))
    np.testing.assert_array_equal(encode(model, texts, "zh"), wanted(aligned, "zh", texts))
    np.testing.assert_array_equal(encode(model, texts, "eng_Latn"), wanted(aligned, "en", texts))
    given = MtebEncoder(aligned, language="deu")
    np.testing.assert_array_equal(encode(given, texts, "three"), wanted(aligned, "de", texts))
    assert not np.allclose(wanted(aligned, "de", texts), wanted(aligned, "en", texts))


def test_two_languages_are_told_apart_by_order_if_so_wished(aligned: AlignedEncoder) -> None:
    with pytest.raises(BadSetting, match=r"does not say in which of them.*in_order=True"):
        encode(MtebEncoder(aligned), SIDES["de"], "de-en")
    model = MtebEncoder(aligned, in_order=True)
    for _ in range(2):
        for code, texts in SIDES.items():
            np.testing.assert_array_equal(encode(model, texts, "de-en"), wanted(aligned, code, texts))
    with pytest.raises(BadSetting, match=r"language='de' for all texts\)"):
        encode(model, SIDES["de"], "de-en", prompt_type="query")
    with pytest.raises(BadSetting, match=r"has nothing for language 'fr' .*known: de, en, zh"):
        encode(model, SIDES["de"], "three")


def test_what_has_no_map_is_refused(aligned: AlignedEncoder) -> None:
    with pytest.raises(BadSetting, match="has nothing for language 'fr'"):
        encode(MtebEncoder(aligned), SIDES["de"], "fr")
    with pytest.raises(BadSetting, match="names no language"):
        encode(MtebEncoder(aligned), SIDES["de"], "part one")
    with pytest.raises(BadSetting, match="has nothing for language 'fr'"):
        MtebEncoder(aligned, language="fr")
    with pytest.raises(BadSetting, match="no maps at layer 1"):
        MtebEncoder(aligned, layer="1")
    with pytest.raises(BadSetting, match="has its prefix"):
        MtebEncoder(aligned, prefix="query: ")


def test_an_encoder_for_all_languages_takes_any_subset() -> None:
    plain = tiny_encoders.build("bert")
    for subset in ("default", "de-en", "part one"):
        found = encode(MtebEncoder(plain, layer="2"), SIDES["de"], subset)
        np.testing.assert_array_equal(found, wanted(plain, "de", SIDES["de"], 2))


def test_words_of_static_vectors_are_split_from_what_stands_beside_them() -> None:
    table = WordTable(Vocabulary.of(["cat", "dog"]), np.array([[1, 0], [0, 1]], np.float32))
    found = encode(MtebEncoder(StaticEncoder({"de": table})), ["dog,", "cat!", "(cat)"], "default")
    assert found.tolist() == [[0, 1], [1, 0], [1, 0]]


def test_similarities_are_cosines(aligned: AlignedEncoder) -> None:
    rng, model = np.random.default_rng(1), MtebEncoder(aligned)
    a, b = rng.normal(size=(2, 4, 24))
    cosine = (a @ b.T) / np.outer(np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1))
    np.testing.assert_allclose(model.similarity(a, torch.tensor(b)), cosine, atol=1e-6)
    np.testing.assert_allclose(model.similarity_pairwise(a, b), np.diag(cosine), atol=1e-6)
    np.testing.assert_allclose(model.similarity(a[0], b), cosine[:1], atol=1e-6)


# -------------------------------------------------------------------------------------- the real mteb


def found_share(queries: Floats, corpus: Floats) -> float:
    """How many queries find their own number, by cosine."""
    a, b = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (queries, corpus))
    return float(((a @ b.T).argmax(1) == np.arange(len(a))).mean())


def mining_task(parallel: bool) -> Any:
    """A bitext mining task of mteb over sentences that lie here."""
    from datasets import Dataset, DatasetDict
    from mteb.abstasks.task_metadata import TaskMetadata
    from mteb.abstasks.text.bitext_mining import AbsTaskBitextMining

    pair = "deu_Latn-eng_Latn" if parallel else "de-en"
    columns = ("deu_Latn", "eng_Latn") if parallel else ("sentence1", "sentence2")
    unknown = ("reference", "date", "license", "annotations_creators", "sample_creation", "bibtex_citation")

    class Made(AbsTaskBitextMining):  # type: ignore[misc]
        parallel_subsets = parallel
        metadata = TaskMetadata(
            type="BitextMining", name="MadeUp", description="made up", category="t2t", modalities=["text"],
            dataset={"path": "none", "revision": "1"}, eval_splits=["test"], main_score="accuracy",
            eval_langs={pair: ["deu-Latn", "eng-Latn"]}, domains=[], task_subtypes=[], dialect=[],
            **dict.fromkeys(unknown),
        )  # fmt: skip

        def load_data(self, *args: Any, **kwargs: Any) -> None:
            split = DatasetDict({"test": Dataset.from_dict(dict(zip(columns, SIDES.values(), strict=True)))})
            self.dataset = split if parallel else {pair: split}
            self.data_loaded = True

    return Made()


@pytest.mark.parametrize("parallel", [True, False])
def test_a_task_of_mteb_is_solved_by_a_map_that_solves_it(parallel: bool) -> None:
    mteb = pytest.importorskip("mteb")
    from mteb.models.models_protocols import EncoderProtocol

    inner = tiny_encoders.build("bert")
    de, en = (wanted(inner, code, texts) for code, texts in SIDES.items())
    onto = SpaceMap((Matrix((np.linalg.pinv(de) @ en).T),))
    maps = {MapKey("de", "en", 3): onto, MapKey("en", "en", 3): SpaceMap()}
    aligned = AlignedEncoder(inner, maps, "en", about={"method": "least-squares"})
    swapped = wanted(aligned, "en", SIDES["de"]), wanted(aligned, "de", SIDES["en"])
    assert found_share(de, en) < 1 and found_share(*swapped) < 1, "each language must have its own map"
    model = MtebEncoder(aligned, in_order=not parallel)
    assert isinstance(model, EncoderProtocol)
    assert model.mteb_model_meta.name == "calque/bert+least-squares" and model.mteb_model_meta.embed_dim == 24
    for encoder, share in ((model, 1.0), (MtebEncoder(inner), found_share(de, en))):
        run = mteb.evaluate(
            encoder, mining_task(parallel), cache=None, show_progress_bar=False, co2_tracker=False
        )
        (score,) = run.task_results[0].scores["test"]
        assert score["accuracy"] == pytest.approx(share)
