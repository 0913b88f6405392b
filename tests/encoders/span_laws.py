"""What holds of pieces and the places of words in them, whatever the words are."""

import unicodedata
from typing import Any

import numpy as np

from calque.encoders.spans import Layout
from calque.encoders.tokens import Reader
from calque.transfer.inputs import windows, word_inputs
from calque.types import Sentences, WordIndex

#: What stands for a space in pieces, by what puts them together again.
MARKS = {"Metaspace": "▁", "ByteLevel": "Ġ"}


def sound(reader: Reader, text: list[list[str]]) -> None:
    """Spans are in order, apart, inside the pieces of their sentence, and where the tokenizer says."""
    held = Sentences.of("en", text)
    layout = reader.layout(held)
    found = layout.find(WordIndex.every(held))
    assert found.present.sum() + sum(found.dropped.values()) == len(found.present) == sum(map(len, text))
    frame, spans = layout.frame, found.spans
    assert (spans.start < spans.end).all() and (spans.start >= len(frame.head)).all()
    assert (spans.end <= len(frame.head) + layout.kept[spans.sentence]).all()
    same = spans.sentence[1:] == spans.sentence[:-1]
    assert (spans.start[1:] >= spans.end[:-1])[same].all()
    rows, mask = layout.rows(np.arange(len(text)), 0)
    assert mask.sum() == np.maximum(layout.lengths, 1).sum() and rows.shape[1] <= max(frame.limit, 1)
    as_told(reader, text, layout, rows)


def as_told(reader: Reader, text: list[list[str]], layout: Layout, rows: np.ndarray) -> None:
    """Pieces and runs are those of the tokenizer's own `is_split_into_words`, without white space before."""
    backend, space = reader.tokenizer.backend_tokenizer, reader._space
    mark = MARKS.get(type(backend.decoder).__name__, "")
    given = [[space + word for word in words] for words in text]
    told = backend.encode_batch(given, is_pretokenized=True, add_special_tokens=False)
    head, empty, truncated = len(layout.frame.head), 0, 0
    expected = []
    for number, (words, one) in enumerate(zip(text, told, strict=True)):
        kept = one.ids[: layout.frame.room]
        assert rows[number, head : head + len(kept)].tolist() == kept
        runs: dict[int, list[int]] = {}
        for place, word in enumerate(one.word_ids):
            runs.setdefault(word, []).append(place)
        for word in range(len(words)):
            run = runs.get(word, [])
            assert run == list(range(run[0], run[0] + len(run))) if run else True
            while run and not backend.id_to_token(one.ids[run[0]]).strip(mark).strip():
                run = run[1:]
            empty += not run
            truncated += bool(run) and run[-1] >= layout.frame.room
            if run and run[-1] < layout.frame.room:
                expected.append((number, run[0] + head, run[-1] + 1 + head))
    every = WordIndex(
        np.repeat(np.arange(len(text)), list(map(len, text))).astype(np.int32),
        np.array([word for words in text for word in range(len(words))], np.int32),
    )
    found = layout.find(every)
    spans = found.spans
    assert (
        list(zip(spans.sentence.tolist(), spans.start.tolist(), spans.end.tolist(), strict=True)) == expected
    )
    assert found.dropped == {"truncated": truncated, "empty": empty}


def windowed(reader: Reader, text: list[list[str]], longest: int, overlap: int) -> None:
    """Read in windows, every word is one unit inside a row, whole where a window holds it."""
    layout = reader.layout(Sentences.of("en", text))
    inputs = word_inputs(text, "en", reader, longest=longest, overlap=overlap)
    rows, frame = inputs.rows, layout.frame
    assert sorted(inputs.order.tolist()) == list(range(sum(map(len, text))))
    assert inputs.lengths.tolist() == list(map(len, text)) and (rows.lengths <= longest).all()
    row, start, end = (
        column[inputs.order] for column in (rows.units.sentence, rows.units.start, rows.units.end)
    )
    assert (start < end).all() and (start >= 0).all() and (end <= rows.lengths[row]).all()
    room = min(longest, reader.limit) - len(frame.head) - len(frame.tail)
    first = 0
    for number in range(len(text)):
        words = slice(layout.words[number], layout.words[number + 1])
        pieces = layout.pieces[layout.offsets[number] : layout.offsets[number + 1]]
        begins, ends = (side[words] - len(frame.head) for side in (layout.start, layout.end))
        held = windows(len(pieces), room, overlap)
        for word, a, b in zip(range(words.start, words.stop), begins, ends, strict=True):
            if any(one.start <= a and b <= one.end for one in held) and a < b:
                own = rows.pieces[rows.offsets[row[word]] :][start[word] : end[word]]
                assert own.tolist() == pieces[a:b].tolist()
                assert a - (start[word] - len(frame.head)) == held[row[word] - first].start
        first += len(held)
    assert first == len(rows)


def placed(reader: Reader, text: str) -> tuple[np.ndarray, np.ndarray]:
    """Pieces of a whole text lie inside it, in order, and no letter or digit is in none."""
    pieces, places = reader.characters(text)
    assert places.shape == (len(pieces), 2) and pieces.tolist() == reader.read([text])[0].tolist()
    assert (places >= 0).all() and (places <= len(text)).all() and (places[:, 0] <= places[:, 1]).all()
    assert (np.diff(places[:, 0]) >= 0).all()
    missed = np.flatnonzero(~covered(places, len(text)))
    assert not [k for k in missed if unicodedata.category(text[k])[0] in "LN"]
    return pieces, places


def covered(places: Any, length: int) -> np.ndarray:
    """Which characters are in a piece. Shape: (pieces, 2) to (length,)."""
    steps = np.zeros(length + 1, np.int64)
    np.add.at(steps, places[:, 0], 1)
    np.add.at(steps, places[:, 1], -1)
    return np.cumsum(steps)[:-1] > 0
