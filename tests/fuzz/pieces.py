"""Words and characters laid over the pieces of four tokenizers, with text of any characters.

Three have a fixed vocabulary, since training one is not repeatable and an input has a name; the fourth is
e5's own.
"""

import json
import random
import string
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from algorithms import joined, parted
from frame import Target, drawn, put

from calque.encoders.tokens import Reader
from calque.text.labelled.items import Labelled, Question
from calque.text.labelled.open import read_labelled
from calque.transfer.inputs import QuestionInputs, question_inputs
from calque.transfer.learning import GoldLabels, Prepared
from calque.transfer.task import Labels, Reading
from calque.transfer.tasks.questions import QuestionTask, answer_places
from corners import CORNERS, WHOLE

#: Tokenizers that are made in no time, and the one that takes a quarter of a minute to open.
SMALL, REAL = ("wordpiece", "unigram", "bytes"), "e5"
LETTERS = [
    *string.ascii_lowercase,
    *string.digits,
    *".,!?'-",
    *"äöüßéñ",
    *"абвгдежз",
    *"東京の猫",
    *"اليم",
    *"กิน",
]
PARTS = ["the", "cat", "ing", "er", "Kat", "ze", "кош", "ка", "東京", "ال", "5", "00"]
WORDS = ["cat", "The", "it's", "Straßenkehrer", "кошка", "東京の猫", "اليم", "กิน", "5,000.00", "a", "."]
#: Where odd characters are looked for: marks, scripts from right to left, joined ones, emoji, private ones.
PLANES = ((0x20, 0x7E), (0x300, 0x36F), (0x590, 0x6FF), (0x900, 0xE7F), (0x1100, 0x11FF), (0x2000, 0x206F),
          (0xAC00, 0xD7A3), (0xE000, 0xFFFD), (0x1F1E6, 0x1F9FF), (0xE0000, 0xE01EF), (0x10000, 0x10FFFF),
          (0, 0xD7FF))  # fmt: skip


# ----------------------------------------------------------------------------------------------- tokenizers


def _fast(backend: Any, single: str, **names: str) -> Any:
    from tiny_encoders import fast

    return fast(backend, single, names)


def _wordpiece() -> Any:
    """As BERT's without capitals: letters lose them, and their accents."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    pieces = [*specials, *LETTERS, *PARTS, *(f"##{part}" for part in (*LETTERS, *PARTS))]
    vocabulary = {piece: k for k, piece in enumerate(dict.fromkeys(pieces))}
    backend = Tokenizer(models.WordPiece(vocab=vocabulary, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    backend.add_special_tokens(specials)
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token"), specials, strict=True))
    return _fast(backend, "[CLS] $A [SEP]", **names)


def _unigram() -> Any:
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    specials = ["<s>", "<pad>", "</s>", "<unk>"]
    pieces = dict.fromkeys([*specials, "▁", *LETTERS, *PARTS, *(f"▁{part}" for part in (*LETTERS, *PARTS))])
    scored = [(piece, -len(pieces) / (1 + 9 * len(piece))) for piece in pieces]
    backend = Tokenizer(models.Unigram(scored, unk_id=3))
    backend.normalizer = normalizers.NFKC()
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    backend.add_special_tokens(specials)
    names = dict(zip(("bos_token", "pad_token", "eos_token", "unk_token"), specials, strict=True))
    return _fast(backend, "<s> $A </s>", **names)


def _bytes() -> Any:
    """Byte by byte, with a space inside the piece after it, as GPT's and ModernBERT's are."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("c", "a"), ("ca", "t"), ("Ġ", "cat"), ("t", "h"), ("th", "e"), ("Ġ", "the"), ("Ð", "º")]
    pieces = ["<s>", "</s>", *letters, *("".join(pair) for pair in merges)]
    backend = Tokenizer(models.BPE(vocab={piece: k for k, piece in enumerate(pieces)}, merges=merges))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(["<s>", "</s>"])
    return _fast(backend, "<s> $A </s>", bos_token="<s>", eos_token="</s>")


def _e5() -> Any:
    from transformers import PreTrainedTokenizerFast

    from calque.encoders import bundled

    with tempfile.TemporaryDirectory() as place:
        name = "e5-small-q4"
        packed = bundled.read_packed(bundled._weights_file(name, bundled.BUNDLED[name]))
        bundled._write_tokenizer(Path(place), packed)
        return PreTrainedTokenizerFast.from_pretrained(place)


@cache
def _tokenizer(kind: str) -> Any:
    return {"wordpiece": _wordpiece, "unigram": _unigram, "bytes": _bytes, "e5": _e5}[kind]()


@cache
def _reader(kind: str, limit: int, prefix: str) -> Reader:
    return Reader(_tokenizer(kind), limit=limit, prefix=prefix)


# ---------------------------------------------------------------------------------------------------- words


def _word(draw: random.Random) -> str:
    kind = draw.random()
    if kind < 0.35:
        return draw.choice(WORDS)
    if kind < 0.6:
        return draw.choice(WHOLE)
    if kind < 0.75:
        return "".join(draw.choice((*WHOLE, *LETTERS)) for _ in range(draw.randint(2, 5)))
    if kind < 0.995:
        return "".join(map(chr, (draw.randint(*draw.choice(PLANES)) for _ in range(draw.randint(1, 5)))))
    if kind < 0.999:
        return draw.choice(CORNERS["halves"])
    return draw.choice((*LETTERS, *WHOLE)) * draw.choice((50, 150, 500))


def _sentences(draw: random.Random) -> bytes:
    """A byte that chooses the limit, and sentences of words."""
    sentences = [[_word(draw) for _ in range(draw.randint(0, 8))] for _ in range(draw.randint(1, 4))]
    return bytes([draw.randrange(6)]) + joined(sentences)


def _spans(kind: str) -> Callable[[bytes, Path], None]:
    """Words to pieces."""

    def run(data: bytes, folder: Path) -> None:
        from span_laws import sound, windowed

        chosen = data[0] if data else 0
        reader = _reader(kind, (6, 14, 512)[chosen % 3], "query: " if chosen % 2 and chosen % 3 else "")
        text = parted(data[1:])
        sound(reader, text)
        windowed(reader, text, longest=14, overlap=chosen % 2)

    return run


# -------------------------------------------------------------------------------------------------- answers


def _asked(draw: random.Random) -> bytes:
    """A file as SQuAD's: a paragraph, and parts of it as answers, some said to be a little elsewhere."""
    between = (" ", " ", " ", "  ", "\n", "\r\n", "", "\u00a0")
    context = "".join(_word(draw) + draw.choice(between) for _ in range(draw.choice((1, 4, 12, 40))))
    questions = []
    shown = [k for k, character in enumerate(context) if not character.isspace()] or [0]
    for number in range(draw.choice((1, 1, 2))):
        start, size = draw.choice(shown), draw.choice((1, 2, 5, 12, 50))
        shift = draw.choice((0, 0, 0, 0, 0, 1, -1, 3))
        answer = {"text": context[start : start + size], "answer_start": start + shift}
        question = " ".join(_word(draw) for _ in range(draw.randint(1, 5)))
        questions.append({"id": str(number), "question": question, "answers": [answer]})
    held = {"data": [{"paragraphs": [{"context": context, "qas": questions}]}]}
    return json.dumps(held, ensure_ascii=draw.random() < 0.5).encode("utf-8", "surrogatepass")


def _answers(kind: str) -> Callable[[bytes, Path], None]:
    """Answers to pieces, and back to text."""

    def run(data: bytes, folder: Path) -> None:
        from span_laws import placed

        held = read_labelled("qa", put(folder, "a.json", data), "en", format="squad")
        reader = _reader(kind, 512, "query: " if len(data) % 2 else "")
        longest, overlap = ((40, 0), (90, 8), (300, 64))[len(data) % 3]
        read = question_inputs(held.items, reader, longest=longest, overlap=overlap, question_pieces=12)
        places = {text: placed(reader, text)[1] for text in {question.context for question in held.items}}
        ends = answer_places(read, held.items)
        found = [
            _found(read, item, asked, places[asked.context], ends) for item, asked in enumerate(held.items)
        ]
        _said(held, read, ends, found)

    return run


def _found(
    read: QuestionInputs, item: int, asked: Question, places: np.ndarray, ends: tuple[np.ndarray, np.ndarray]
) -> str:
    """The answer, found in just those windows that hold all of it that pieces hold; nothing if none does."""
    from span_laws import covered

    answer, length = asked.answers[0], len(asked.context)
    whole = np.arange(length) - answer.start - len(answer.text) + len(answer.text.lstrip())
    inside = covered(places, length)
    wanted = np.flatnonzero(inside & (whole >= 0) & (whole < len(answer.text.strip())))
    seen, found = np.zeros(length, bool), ""
    for row in np.flatnonzero(read.inputs.item == item).tolist():
        units = slice(*read.inputs.first[row : row + 2])
        own = np.stack([read.begin[units], read.end[units]], 1)
        may = read.allowed[units] & (np.arange(len(own)) > 0)
        here = covered(own[may], length)
        seen |= here
        start, end = ends[0][row], ends[1][row]
        if not len(wanted) or not here[wanted].all():
            assert start == end == 0
            continue
        found = asked.context[wanted[0] : wanted[-1] + 1]
        assert 0 < start <= end and may[start] and may[end]
        assert own[start, 0] <= wanted[0] < own[start, 1], "no piece too many at the beginning"
        assert own[end, 0] <= wanted[-1] < own[end, 1], "nor at the end"
    assert (seen == inside).all(), "windows hold the whole paragraph"
    return found


def _said(
    held: Labelled[Question], read: QuestionInputs, ends: tuple[np.ndarray, np.ndarray], found: list[str]
) -> None:
    """Where a window holds an answer, the text that is said from its pieces holds it too."""
    sure = [
        tuple(np.where(np.arange(size) == place, 0.0 if place else -50.0, -99.0) for place in both)
        for size, *both in zip(read.inputs.lengths.tolist(), *ends, strict=True)
    ]
    prepared = Prepared(read.inputs, GoldLabels({}, {}), read)
    reading = Reading(longest_answer=1000)
    texts = QuestionTask().predictions(held, prepared, sure, Labels(()), reading)
    for question, text, answer in zip(held.items, texts, found, strict=True):
        assert text in question.context and answer.strip() in text


def pieces() -> dict[str, Target]:
    every = [(f"spans-{kind}", drawn(_spans(kind), _sentences)) for kind in (*SMALL, REAL)]
    return dict(every + [(f"answers-{kind}", drawn(_answers(kind), _asked)) for kind in (*SMALL, REAL)])
