"""More pieces for an encoder that has a vocabulary already, made from text that it cuts too finely."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer

from calque.encoders.spans import ragged
from calque.errors import BadSetting
from calque.pretrain.vocabulary import SPECIALS, Cutting, train_tokenizer
from calque.recipe import Choice
from calque.types import Longs, Sentences, Vocabulary

_MARKS = {"WordPiece": Cutting.WORDPIECE, "Unigram": Cutting.UNIGRAM}
_SPACE, _INNER = "▁", "##"


class Initial(Choice):
    """What a new piece's vector begins as: the mean of the old pieces that it was cut into, or random."""

    MEAN = "mean"
    RANDOM = "random"


@dataclass(frozen=True, eq=False)
class Extended:
    """A tokenizer with more pieces, and the old pieces of each new one (none where it was unknown).

    `first` is the number of the first new piece; a model may have more vectors than that already.
    """

    tokenizer: Any
    pieces: Sequence[str]
    made_of: Sequence[Sequence[int]]
    first: int


def extend_tokenizer(tokenizer: Any, texts: Sequence[Sentences], count: int) -> Extended:
    """At most `count` more pieces of these texts: letters it did not know, then the commonest.

    Old pieces keep their numbers.

    New pieces of a unigram model get scores as the old model would have given them: those that both have say
    by how much the scales differ.
    """
    kind = _kind(tokenizer)
    trained = train_tokenizer(
        [_as_read(tokenizer, text) for text in texts], _room(texts, count), _MARKS[kind]
    )
    known = tokenizer.get_vocab()
    ranked = sorted(trained.get_vocab().items(), key=lambda held: (len(_bare(held[0])) > 1, held[1]))
    new = [piece for piece, _ in ranked if piece not in known and piece not in SPECIALS][:count]
    whole = json.loads(tokenizer.backend_tokenizer.to_str())
    first = len(whole["model"]["vocab"])
    if (behind := 1 + max(known.values()) - first) > 0:
        raise BadSetting(
            f"its tokenizer has {behind} tokens behind its own pieces: new pieces would take their numbers",
            remedy="--pieces 0 trains on without new pieces",
        )
    if kind == "WordPiece":
        whole["model"]["vocab"] |= {piece: first + place for place, piece in enumerate(new)}
    else:
        whole["model"]["vocab"] += _scored(new, whole["model"]["vocab"], trained)
    made_of = [_old_pieces(tokenizer, piece, kind) for piece in new]
    again = type(tokenizer)(tokenizer_object=Tokenizer.from_str(json.dumps(whole)), **_kept(tokenizer))
    return Extended(again, new, made_of, first)


def _kind(tokenizer: Any) -> str:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    kind = json.loads(backend.to_str())["model"]["type"] if backend is not None else "slow tokenizer"
    if kind not in _MARKS:
        raise BadSetting(
            f"pieces cannot be added to a vocabulary of kind {kind}",
            remedy="encoders with WordPiece (mBERT) or a unigram model (XLM-R) can be extended; "
            "--pieces 0 trains on without",
        )
    return str(kind)


def _kept(tokenizer: Any) -> dict[str, Any]:
    """What a tokenizer has beside its pieces."""
    return {"model_max_length": tokenizer.model_max_length, **tokenizer.special_tokens_map}


def _room(texts: Sequence[Sentences], count: int) -> int:
    """A vocabulary large enough to hold so many pieces that are new."""
    letters = {letter for text in texts for word in text.vocabulary for letter in word}
    return 2 * count + len(SPECIALS) + 2 * len(letters) + 1


def _as_read(tokenizer: Any, text: Sentences) -> Sentences:
    """The same text in the words that this tokenizer cuts: in its normal form, without punctuation's."""
    backend = tokenizer.backend_tokenizer
    known: dict[str, int] = {}
    parts = []
    for word in text.vocabulary:
        normal = backend.normalizer.normalize_str(word) if backend.normalizer else word
        split = backend.pre_tokenizer.pre_tokenize_str(normal) if backend.pre_tokenizer else [(normal, None)]
        words = [part.lstrip(_SPACE) for part, _ in split]
        parts.append([known.setdefault(part, len(known)) for part in words if part])
    count = np.array([len(part) for part in parts], np.int64)
    flat = np.array([number for part in parts for number in part], np.int32)
    ids = np.asarray(text.ids)
    place = ragged((np.cumsum(count) - count)[ids], count[ids])[1]
    edges = np.concatenate([[0], np.cumsum(count[ids])])
    return replace(
        text, ids=flat[place], offsets=edges[text.offsets], vocabulary=Vocabulary.of(known), tags=None
    )


def _scored(new: Sequence[str], old: Sequence[tuple[str, float]], trained: Any) -> list[list[Any]]:
    own = dict(json.loads(trained.backend_tokenizer.to_str())["model"]["vocab"])
    held = dict(old)
    common = [held[piece] - own[piece] for piece in own if piece in held and piece not in SPECIALS]
    shift = float(np.median(common)) if common else 0.0
    return [[piece, own[piece] + shift] for piece in new]


def _old_pieces(tokenizer: Any, piece: str, kind: str) -> list[int]:
    """What the old tokenizer makes of a new piece, as far as it knows it."""
    known = tokenizer.get_vocab()
    begins = piece.startswith(_SPACE) if kind == "Unigram" else not piece.startswith(_INNER)
    cut = list(tokenizer.tokenize(_bare(piece)))
    if not begins and cut:
        first = cut[0].removeprefix(_SPACE)
        inner = first if kind == "Unigram" else f"{_INNER}{first}"
        cut[:1] = [inner] if inner in known else cut[:1] if first else []
    return [known[one] for one in cut if one in known and one != tokenizer.unk_token]


def _bare(piece: str) -> str:
    return piece.removeprefix(_SPACE).removeprefix(_INNER)


def extend_model(model: Any, extended: Extended, *, initial: Initial, seed: int = 0) -> None:
    """Give a model with a masked-language-modelling head vectors for new pieces, behind the old ones.

    Where a model has more vectors than its tokenizer had pieces, new pieces take the spare ones first.
    A piece of which nothing was known begins at random, with the spread that the old vectors have.
    """
    from calque.encoders.hub import quiet

    first, made_of = extended.first, extended.made_of
    if first + len(made_of) > model.get_input_embeddings().num_embeddings:
        with quiet():
            model.resize_token_embeddings(first + len(made_of), mean_resizing=False)
    rng = np.random.default_rng(seed)
    output = model.get_output_embeddings()
    tables = {id(one): one for one in (model.get_input_embeddings().weight, output.weight)}.values()
    bias = getattr(output, "bias", None)
    with torch.no_grad():
        for table in (*tables, *([] if bias is None else [bias])):
            _fill(table, first, made_of if initial is Initial.MEAN else [()] * len(made_of), rng)


def _fill(table: torch.Tensor, old: int, made_of: Sequence[Sequence[int]], rng: np.random.Generator) -> None:
    """New rows: the mean of old ones, or drawn with their mean and spread."""
    known = table[:old].float()
    middle, spread = known.mean(0), known.std(0)
    for place, pieces in enumerate(made_of):
        if pieces:
            table[old + place] = known[list(pieces)].mean(0)
        else:
            noise = torch.from_numpy(rng.standard_normal(tuple(middle.shape)).astype(np.float32))
            table[old + place] = middle + spread * noise.to(table.device)


def pieces_per_word(tokenizer: Any, text: Sentences) -> float:
    """How finely words are cut: pieces divided by words."""
    words = text.vocabulary.strings
    cut = tokenizer(words, add_special_tokens=False, verbose=False)["input_ids"]
    count: Longs = np.array([len(pieces) for pieces in cut], np.int64)
    return float(count[np.asarray(text.ids)].mean())
