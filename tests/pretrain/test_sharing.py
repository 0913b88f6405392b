"""What languages share: numbers of pieces, weights that are one tensor or two, and what training changes."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer, BertConfig, BertForMaskedLM

from calque.encoders.bylanguage import LanguageEncoders
from calque.encoders.open import open_encoder
from calque.errors import BadSetting
from calque.pipeline.pretraining import pretrain
from calque.pretrain.sharing import CONDITIONS, Share, sharing_models
from calque.pretrain.vocabulary import SPECIALS, Cutting, Pieces, train_tokenizers
from calque.text.world import world_sentences
from calque.types import Sentences

TEXTS = [world_sentences(400, language, seed=place) for place, language in enumerate(("en", "near"))]
SMALL: dict[str, Any] = {
    "sentences": 60, "vocabulary": 600, "layers": 4, "width": 16, "heads": 2, "inner": 16, "steps": 8,
    "batch_tokens": 256, "max_length": 40,
}  # fmt: skip


# ------------------------------------------------------------------------------------------- pieces


@pytest.mark.parametrize("cutting", list(Cutting))
@pytest.mark.parametrize("pieces", list(Pieces))
def test_words_are_cut_as_by_the_languages_own_tokenizer(cutting: Cutting, pieces: Pieces) -> None:
    cuts = train_tokenizers(TEXTS, 900, cutting, pieces)
    for text, cut in zip(TEXTS, cuts, strict=True):
        alone = train_tokenizers([text], 450, cutting, Pieces.JOINT)[0].tokenizer
        for words in list(text)[:40]:
            found = cut.tokenizer(words, is_split_into_words=True)["input_ids"]
            assert set(found[1:-1]) <= set(np.flatnonzero(cut.own).tolist())
            if pieces is not Pieces.JOINT:
                named = cut.tokenizer.convert_ids_to_tokens(found)
                assert named == alone.convert_ids_to_tokens(
                    alone(words, is_split_into_words=True)["input_ids"]
                )


@pytest.mark.parametrize("cutting", list(Cutting))
def test_equal_pieces_are_one_in_a_union_and_none_apart(cutting: Cutting) -> None:
    names = [
        set(cut.tokenizer.convert_ids_to_tokens(np.flatnonzero(cut.own).tolist()))
        for cut in train_tokenizers(TEXTS, 900, cutting, Pieces.OWN)
    ]
    common = len(names[0] & names[1])
    assert common > 20
    union, apart = (train_tokenizers(TEXTS, 900, cutting, kind) for kind in (Pieces.UNION, Pieces.APART))
    for cuts, shared in ((union, common), (apart, 0)):
        assert int((cuts[0].own & cuts[1].own).sum()) == shared
        assert (
            len(cuts[0].tokenizer) == len(cuts[1].tokenizer) == len(SPECIALS) + sum(map(len, names)) - shared
        )
        for a, b in pairwise(cuts):
            assert a.tokenizer.all_special_ids == b.tokenizer.all_special_ids


def test_a_tokenizer_with_names_of_others_is_read_back_as_it_was(tmp_path: Path) -> None:
    for kind in (Pieces.UNION, Pieces.APART):
        cut = train_tokenizers(TEXTS, 900, Cutting.UNIGRAM, kind)[1]
        cut.tokenizer.save_pretrained(tmp_path / kind)
        again = AutoTokenizer.from_pretrained(tmp_path / kind)
        words = TEXTS[1][5]
        assert again(words, is_split_into_words=True) == cut.tokenizer(words, is_split_into_words=True)


# ------------------------------------------------------------------------------------------- weights


def model(number: int) -> BertForMaskedLM:
    torch.manual_seed(number)
    return BertForMaskedLM(
        BertConfig(
            vocab_size=50 + number, hidden_size=8, num_hidden_layers=8, num_attention_heads=2,
            intermediate_size=8, max_position_embeddings=16,
        )
    )  # fmt: skip


@pytest.mark.parametrize("share", [share for share in Share if not CONDITIONS[share].whole])
def test_separate_parts_are_two_tensors_and_all_else_is_one(share: Share) -> None:
    how = CONDITIONS[share]
    made = sharing_models(
        lambda number: model(number * how.own_embeddings), 2, how.separate(8), softmax=how.own_embeddings
    )
    first, second = (dict(one.named_parameters(remove_duplicate=False)) for one in made)
    own = {name for name in first if first[name] is not second[name]}
    lower = {f"bert.encoder.layer.{n}." for n in range({"3": 3, "6": 6}.get(share[-1], 0))}
    expected = {
        name for name in first
        if any(name.startswith(part) for part in lower)
        or (how.own_embeddings and (name.startswith(("bert.embeddings.", "cls.predictions.decoder"))
                                    or name == "cls.predictions.bias"))
    }  # fmt: skip
    assert own == expected
    for one in made:
        assert one.get_output_embeddings().weight is one.get_input_embeddings().weight


def test_depths_other_than_eight_are_shared_in_proportion() -> None:
    for share, lower in ((Share.NO_LOWER_3, {4: 2, 8: 3, 12: 5}), (Share.NO_LOWER_6, {4: 3, 8: 6, 12: 9})):
        for depth, count in lower.items():
            assert len(CONDITIONS[share].separate(depth)) == count


# ------------------------------------------------------------------------------------------- the verb


@pytest.mark.parametrize("share", list(Share))
def test_every_condition_is_trained_saved_and_read(share: Share, tmp_path: Path) -> None:
    run = pretrain(tmp_path / "model", share=share, languages=("en", "near"), **SMALL)
    assert {one.languages[0] for one in run.results} == {"en", "near"}
    assert all(np.isfinite(one.value) for one in run.results)
    encoder = open_encoder(str(run.folder))
    for language in ("en", "near"):
        text = Sentences.of(language, [["a", "dog"], ["the", "cat", "sleeps"]])
        assert np.isfinite(encoder.word_vectors(text, layers=[0, 4]).vectors).all()
    if share in (Share.ALL, Share.EXTRA_ANCHORS):
        assert AutoModelForMaskedLM.from_pretrained(run.folder).config.num_hidden_layers == 4
        return
    assert isinstance(encoder, LanguageEncoders)
    assert encoder.separate == tuple(CONDITIONS[share].separate(4))
    for language in ("en", "near"):
        AutoModelForMaskedLM.from_pretrained(run.folder / "languages" / language)


def test_separate_parts_learn_from_their_language_alone(tmp_path: Path) -> None:
    """The part of a language that is hardly read hardly moves; what is shared moves with the other."""
    start, end = (
        open_encoder(str(pretrain(tmp_path / str(steps), share="no-embeddings-lower-3",
                                  **SMALL | {"steps": steps, "learning_rate": rate}).folder))
        for steps, rate in ((1, 1e-12), (8, 1e-2))
    )  # fmt: skip
    for part in ("embeddings", "encoder.layer.0", "encoder.layer.3"):
        moved = {
            code: float(sum(
                (a - b).abs().sum()
                for (name, a), (_, b) in zip(start.parts[code].model.named_parameters(),
                                             end.parts[code].model.named_parameters(), strict=True)
                if name.startswith(part)
            ).detach())
            for code in ("en", "far")
        }  # fmt: skip
        assert min(moved.values()) > 0
        assert (moved["en"] == moved["far"]) is (part == "encoder.layer.3")


def test_killed_and_resumed_separate_models_end_with_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from calque.pretrain.masked import MaskedLanguageModel

    settings = {**SMALL, "share": "no-embeddings-lower-3", "steps": 12}
    whole = pretrain(tmp_path / "whole", **settings).folder
    step, done = MaskedLanguageModel.step, 0

    def killed(*args: Any) -> Any:
        nonlocal done
        done += 1
        if done > 8:
            raise KeyboardInterrupt
        return step(*args)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(MaskedLanguageModel, "step", killed)
        pretrain(tmp_path / "again", save_every=5, **settings)
    again = pretrain(tmp_path / "again", resume=True, **settings).folder
    for language in ("en", "far"):
        file = Path("languages", language, "model.safetensors")
        assert (whole / file).read_bytes() == (again / file).read_bytes()


def test_pairs_are_learned_from_beside_single_sentences(tmp_path: Path) -> None:
    import json

    run = pretrain(tmp_path / "model", paired=0.5, **SMALL | {"steps": 30, "sentences": 200})
    steps = [json.loads(line) for line in (run.folder / "artifacts" / "steps.jsonl").read_text().splitlines()]
    kinds = [name for one in steps for name in one["losses"]]
    assert 5 < kinds.count("paired") < 25 and kinds.count("masked") + kinds.count("paired") == 30


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"paired": 0.5, "share": "no-embeddings"}, "cannot stand in one row"),
        ({"share": "most"}, "share"),
        ({"share": "extra-anchors", "rows": "streams"}, "not in streams"),
        ({"dictionary": ["en-far.txt"]}, "a dictionary goes with"),
        ({"bitext": ["en,far=a.tsv"]}, "bitext goes with"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(
    settings: dict[str, Any], told: str, tmp_path: Path
) -> None:
    with pytest.raises(BadSetting, match=told):
        pretrain(tmp_path / "none", **SMALL | settings)
    assert not (tmp_path / "none").exists()
