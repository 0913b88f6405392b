"""Vectors of seven families of encoders against a loop over sentences and words."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from tiny_encoders import FAMILIES, SIZES, TEXT, build, marian, wordpiece

from calque.encoders.encoder import EncoderOptions, HuggingFaceEncoder
from calque.encoders.pooling import pool_words
from calque.errors import BadSetting
from calque.types import FIRST_SPECIAL, LAST_SPECIAL, Bitext, Sentences, WordIndex

WORDS = [line.split() for line in TEXT[:5]]
WORDS += [["\u200b", "東京", "cat"], [], ["a"], ["Straßenkehrer", "it's", "猫", "\U0001f600"]]
SENTENCES = Sentences.of("en", WORDS)
PICK = {"first": lambda x: x[:, 0], "last": lambda x: x[:, -1], "mean": lambda x: x.mean(1)}


@pytest.fixture(scope="module", params=[*FAMILIES, "marian"])
def encoder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> HuggingFaceEncoder:
    if request.param != "marian":
        return build(request.param)
    torch.manual_seed(3)
    return HuggingFaceEncoder.from_model(*marian(tmp_path_factory.mktemp("marian")), "marian")


def loop(
    encoder: HuggingFaceEncoder, text: Sentences, layers: list[int], pooling: str
) -> np.ndarray[Any, Any]:
    """One sentence at a time through the model itself, one word at a time through its pieces."""
    vectors = []
    for i in range(len(text)):
        batch = encoder.batch(text.select([i]))
        with torch.no_grad():
            every = encoder.body(batch.pieces, attention_mask=batch.mask.long(), output_hidden_states=True)
        hidden = torch.stack([every.hidden_states[layer][0] for layer in layers])
        for start, end in zip(batch.start, batch.end, strict=True):
            vectors.append(PICK[pooling](hidden[:, start:end]))
    return torch.stack(vectors, 1).numpy()


@pytest.mark.parametrize("pooling", sorted(PICK))
def test_word_vectors_are_the_loop(encoder: HuggingFaceEncoder, pooling: Any) -> None:
    layers = [0, 2, 3, 1]
    found = encoder.word_vectors(SENTENCES, layers=layers, pooling=pooling)
    assert found.layers == (0, 2, 3, 1) and (encoder.depth, encoder.width) == (3, 24)
    assert found.present.sum() == found.vectors.shape[1] > 80
    np.testing.assert_allclose(found.vectors, loop(encoder, SENTENCES, layers, pooling), atol=1e-5)


def test_vectors_do_not_depend_on_batch_mates(encoder: HuggingFaceEncoder) -> None:
    alone, together = (
        HuggingFaceEncoder.from_model(
            encoder.model, encoder.tokenizer, "same", EncoderOptions(batch_tokens=tokens)
        ).word_vectors(SENTENCES, layers=[0, 3])
        for tokens in (1, 100_000)
    )
    np.testing.assert_allclose(alone.vectors, together.vectors, atol=1e-5)


def test_states_are_the_models_own(encoder: HuggingFaceEncoder) -> None:
    """Every layer, and layers above the highest asked for are not run."""
    batch = encoder.batch(SENTENCES)
    every = encoder.body(
        batch.pieces, attention_mask=batch.mask.long(), output_hidden_states=True
    ).hidden_states
    kept = batch.mask
    for layer, hidden in enumerate(encoder.states(batch, range(encoder.depth + 1)).hidden):
        torch.testing.assert_close(hidden[kept], every[layer][kept])
    ran: list[int] = []
    blocks = next(m for m in encoder.body.modules() if isinstance(m, torch.nn.ModuleList) and len(m) == 3)
    hooks = [b.register_forward_hook(lambda *_, n=n: ran.append(n)) for n, b in enumerate(blocks)]
    low = encoder.states(batch, [1]).hidden[0]
    for hook in hooks:
        hook.remove()
    assert ran == [0]
    torch.testing.assert_close(low[kept], every[1][kept])


def test_states_carry_gradients(encoder: HuggingFaceEncoder) -> None:
    batch = encoder.batch(SENTENCES)
    (hidden,) = encoder.states(batch, [2]).hidden
    pool_words(hidden, batch).square().sum().backward()
    moved = [p for p in encoder.body.parameters() if p.grad is not None and p.grad.abs().sum() > 0]
    encoder.model.zero_grad()
    assert len(moved) > 10


def test_special_tokens(encoder: HuggingFaceEncoder) -> None:
    batch = encoder.batch(SENTENCES)
    (hidden,) = encoder.states(batch, [3]).hidden
    rows = np.arange(len(SENTENCES))
    for column, mark in enumerate((FIRST_SPECIAL, LAST_SPECIAL)):
        found = encoder.word_vectors(SENTENCES, WordIndex(rows, np.full(len(rows), mark)), layers=[3])
        places = batch.specials[:, column]
        assert (found.present == (places >= 0)).all()
        expected = hidden[rows[places >= 0], places[places >= 0]].detach().numpy()
        np.testing.assert_allclose(found.layer(3), expected, atol=1e-5)
    ends = batch.mask.sum(1).numpy() - 1
    assert ((batch.specials[:, 1] == ends) | (batch.specials[:, 1] == -1)).all()


def test_asked_words_in_any_order(encoder: HuggingFaceEncoder) -> None:
    every = encoder.word_vectors(SENTENCES, layers=[2])
    index = WordIndex.every(SENTENCES)
    rows = np.flatnonzero(every.present)
    chosen = np.random.default_rng(0).permutation(rows)[:30]
    some = encoder.word_vectors(SENTENCES, WordIndex(index.sentence[chosen], index.word[chosen]), layers=[2])
    np.testing.assert_allclose(some.layer(2), every.layer(2)[np.searchsorted(rows, chosen)], atol=1e-5)


def test_sentence_vectors(encoder: HuggingFaceEncoder) -> None:
    """The mean of all pieces of the text, zero where there is none."""
    ours = encoder.sentence_vectors(SENTENCES, layers=[1, 3])
    pieces = encoder.pieces(SENTENCES)
    parts = encoder.word_vectors(pieces, layers=[1, 3])
    assert parts.present.all()
    owner = WordIndex.every(pieces).sentence
    for i in range(len(SENTENCES)):
        expected = parts.vectors[:, owner == i].mean(1) if (owner == i).any() else np.zeros((2, 24))
        np.testing.assert_allclose(ours[:, i], expected, atol=1e-5)


def test_first_token_of_sentences(encoder: HuggingFaceEncoder) -> None:
    if encoder.batch(SENTENCES).specials[0, 0] < 0:
        with pytest.raises(BadSetting, match="no special token first"):
            encoder.sentence_vectors(SENTENCES, layers=[3], pooling="first")
        return
    ours = encoder.sentence_vectors(SENTENCES, layers=[3], pooling="first")
    full = np.flatnonzero(SENTENCES.lengths > 0)
    asked = WordIndex(full, np.full(len(full), FIRST_SPECIAL))
    np.testing.assert_allclose(ours[0, full], encoder.word_vectors(SENTENCES, asked, layers=[3]).layer(3))
    assert not ours[0, SENTENCES.lengths == 0].any()


def test_empty_text(encoder: HuggingFaceEncoder) -> None:
    nothing = Sentences.of("en", [])
    assert encoder.word_vectors(nothing, layers=[0]).vectors.shape == (1, 0, 24)
    assert encoder.sentence_vectors(nothing, layers=[0]).shape == (1, 0, 24)
    blank = Sentences.of("en", [[], []])
    assert torch.isfinite(encoder.states(encoder.batch(blank), [3]).hidden[0]).all()


def test_truncation_never_shifts() -> None:
    """A long sentence gives the vectors that the tokenizer's own truncation gives."""
    words = [*"abcdefghij", *["Straßenkehrer"] * 3, *"klmnop"]
    limit = 2 + 10 + len(wordpiece().tokenize("Straßenkehrer")) + 1
    encoder = build("bert", max_length=limit)
    found = encoder.word_vectors(Sentences.of("de", [words, ["a"]]), layers=[3])
    inputs = encoder.tokenizer(
        [words], is_split_into_words=True, truncation=True, max_length=limit, return_tensors="pt"
    )
    whole = encoder.tokenizer([words], is_split_into_words=True)
    with torch.no_grad():
        hidden = encoder.model(**inputs).last_hidden_state[0]
    owners = np.array([-1 if word is None else word for word in inputs.word_ids(0)])
    kept = [w for w in range(len(words)) if (owners == w).sum() == whole.word_ids(0).count(w)]
    assert found.present.tolist() == [w in kept for w in range(len(words))] + [True]
    assert found.dropped == {"truncated": len(words) - len(kept), "empty": 0}
    assert (owners == len(kept)).any(), "one word should be cut in two"
    for row, word in enumerate(kept):
        np.testing.assert_allclose(found.layer(3)[row], hidden[owners == word].mean(0), atol=1e-5)


def test_prefix_is_read_and_belongs_to_no_word() -> None:
    plain, prefixed = build("bert"), build("bert", prefix="the cat: ")
    before = [["the", "cat:", *words] for words in WORDS]
    asked = WordIndex.every(SENTENCES)
    longer = plain.word_vectors(
        Sentences.of("en", before), WordIndex(asked.sentence, asked.word + 2), layers=[3]
    )
    found = prefixed.word_vectors(SENTENCES, layers=[3])
    assert (found.present == longer.present).all()
    np.testing.assert_allclose(found.layer(3), longer.layer(3), atol=1e-5)
    assert plain.fingerprint != prefixed.fingerprint


def test_dropout_is_off_for_vectors_and_training_goes_on() -> None:
    encoder = build("bert")
    encoder.model.train()
    first, second = (encoder.word_vectors(SENTENCES, layers=[3]).vectors for _ in range(2))
    assert (first == second).all() and encoder.model.training
    batch = encoder.batch(SENTENCES)
    one, two = (encoder.states(batch, [3]).hidden[0] for _ in range(2))
    assert not torch.equal(one, two)


def test_layers_that_are_not_there() -> None:
    encoder = build("bert")
    with pytest.raises(BadSetting, match=r"no layer 4 \(bert has layers 0 \(embeddings\) to 3\)"):
        encoder.word_vectors(SENTENCES, layers=[0, 4])
    with pytest.raises(BadSetting, match="no layers"):
        encoder.sentence_vectors(SENTENCES, layers=[])


def test_shared_layers_fall_back_to_the_models_account() -> None:
    """ALBERT runs one block many times: there is no stack to tap."""
    tokenizer = wordpiece()
    config = transformers.AlbertConfig(vocab_size=len(tokenizer), embedding_size=8, **SIZES)
    torch.manual_seed(0)
    encoder = HuggingFaceEncoder.from_model(transformers.AlbertModel(config), tokenizer, "albert")
    assert encoder.depth == 3
    found = encoder.word_vectors(SENTENCES, layers=[0, 1, 3], pooling="mean")
    np.testing.assert_allclose(found.vectors, loop(encoder, SENTENCES, [0, 1, 3], "mean"), atol=1e-5)


def test_pieces_of_a_bitext_share_a_vocabulary() -> None:
    encoder = build("xlm-roberta")
    bitext = Bitext.of(("en", "de"), [["the", "cat"], ["a"]], [["die", "Katze"], ["a", "猫"]])
    pieces = encoder.bitext_pieces(bitext)
    assert pieces.languages == ("en", "de") and pieces.source.unit == pieces.target.unit == "piece"
    assert pieces.source.vocabulary is pieces.target.vocabulary
    assert list(pieces.source) == list(encoder.pieces(bitext.source))
    assert list(pieces.target) == list(encoder.pieces(bitext.target))


def test_real_tokenizer_gives_its_own_spans(e5_directory: Path) -> None:
    """XLM-R's quarter of a million pieces, against word_ids() in ten scripts."""
    from calque.encoders.tokens import Reader

    tokenizer = transformers.AutoTokenizer.from_pretrained(e5_directory)
    scripts = "Hello , wörld Привет 你好世界 नमस्ते مرحبا สวัสดี გამარჯობა 안녕하세요 こんにちは שלום Γειά"
    words = f"{scripts} ﬁn ２３ ； \u200b".split()
    text = Sentences.of("en", [words])
    layout = Reader(tokenizer).layout(text)
    found = layout.find(WordIndex.every(text))
    theirs = tokenizer([words], is_split_into_words=True)
    assert layout.rows(np.array([0]), 1)[0][0].tolist() == theirs["input_ids"][0]
    row = 0
    for word in range(len(words)):
        places = [i for i, owner in enumerate(theirs.word_ids(0)) if owner == word]
        if places and theirs.tokens(0)[places[0]] == "▁":
            places = places[1:]
        assert found.present[word] == bool(places)
        if places:
            assert [found.spans.start[row], found.spans.end[row]] == [places[0], places[-1] + 1]
            row += 1
