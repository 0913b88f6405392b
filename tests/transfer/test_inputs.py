"""Items as rows: windows by brute force, pairs as the tokenizer makes them, answers found in the text."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from paired_encoders import TEMPLATES, tokenizer
from tiny_encoders import TEXT, llama

from calque.encoders.tokens import Reader, cut
from calque.errors import BadSetting
from calque.text.labelled.items import Answer, Labelled, Question, TextPair
from calque.transfer.inputs import (
    Inputs,
    QuestionInputs,
    Window,
    owners,
    pair_inputs,
    question_inputs,
    shortened,
    windows,
    word_inputs,
)
from calque.transfer.learning import GoldLabels, Prepared
from calque.transfer.task import Labels, Reading
from calque.transfer.tasks.questions import QuestionTask, answer_places

#: Short and long words of several scripts; BERT makes nothing of the last, and reads x̂ as unknown.
WORDS = ["cat", "it's", "Straßenkehrer", "Кошка", "東京へ行きます", "x\u0302", "Straßenkehrer" * 2, "\u200b"]


def row_of(inputs: Inputs, unit: int) -> tuple[int, list[int], tuple[int, int]]:
    """Which row a unit is in, the row's pieces, and where in it."""
    rows, row = inputs.rows, int(inputs.rows.units.sentence[unit])
    pieces = rows.pieces[rows.offsets[row] : rows.offsets[row + 1]].tolist()
    return row, pieces, (int(rows.units.start[unit]), int(rows.units.end[unit]))


# ----------------------------------------------------------------------------------------------- windows


@st.composite
def cuts(draw: st.DrawFn) -> tuple[int, int, int]:
    room = draw(st.integers(1, 12))
    return draw(st.integers(0, 60)), room, draw(st.integers(0, room - 1))


@given(cuts())
def test_windows_cover_the_text_and_share_enough(cut: tuple[int, int, int]) -> None:
    length, room, overlap = cut
    held = windows(*cut)
    assert {k for window in held for k in range(*window)} == set(range(length))
    assert all(window.end - window.start <= room for window in held)
    for one, other in pairwise(held):
        assert one.start < other.start and one.end - other.start >= overlap
    if length > room:
        # No fewer windows would do: each but the first adds at most what is not shared.
        assert len(held) == 1 + -(-(length - room) // (room - overlap))


def test_windows_that_share_all_they_have_are_refused() -> None:
    assert windows(6, 6, 6) == [Window(0, 6)], "nothing is shared where one is enough"
    with pytest.raises(BadSetting, match="windows of 6 pieces share 6"):
        windows(7, 6, 6)


@given(cuts(), st.data())
def test_a_word_is_scored_where_its_context_is_best(cut: tuple[int, int, int], data: st.DataObject) -> None:
    length, held = cut[0], windows(*cut)
    sizes = []
    while sum(sizes) < length:
        sizes.append(data.draw(st.integers(1, min(8, length - sum(sizes)))))
    end = np.cumsum(sizes).astype(np.int64)
    start = end - np.array(sizes, np.int64)
    owned = owners(start, end, held)
    assert (np.diff(owned) >= 0).all(), "words keep their order"
    for a, b, owner in zip(start, end, owned, strict=True):
        whole = [k for k, window in enumerate(held) if window.start <= a and b <= window.end]
        if not whole:
            begun = [window.end - a for window in held if window.start <= a < window.end]
            assert held[owner].start <= a and held[owner].end - a == max(begun), "most of it, begun"
            continue

        def context(k: int, a: int = a, b: int = b) -> float:
            left = np.inf if held[k].start == 0 else a - held[k].start
            return float(min(left, np.inf if held[k].end == length else held[k].end - b))

        assert owner in whole and context(owner) == max(map(context, whole))


# ------------------------------------------------------------------------------------------------- words


@pytest.mark.parametrize("family", ["bert", "xlm-roberta", "modernbert", "llama"])
@given(text=st.lists(st.sampled_from(WORDS), min_size=1, max_size=14), overlap=st.integers(0, 5))
@example(text=[*["cat"] * 3, "it's", "Straßenkehrer", "cat", "Straßenkehrer", *["cat"] * 3], overlap=4)
@settings(max_examples=30)
def test_words_come_back_in_order_from_their_windows(family: str, text: list[str], overlap: int) -> None:
    reader = Reader(tokenizer(family))
    texts = [["cat"], text, ["Кошка", "cat"]]
    inputs = word_inputs(texts, "en", reader, longest=12, overlap=overlap)
    assert sorted(inputs.order) == list(range(sum(map(len, texts)))), "every word is one unit"
    assert inputs.lengths.tolist() == [1, len(text), 2] and inputs.item.tolist() == [0, 1, 2]
    head, tail = reader.frame("en").head.tolist(), reader.frame("en").tail.tolist()
    space = " " if family in ("modernbert", "llama") else ""
    pieces = [cut(reader.tokenizer, [space + word])[0] for word in text]
    flat = [piece for word in pieces for piece in word]
    held = windows(len(flat), 12 - len(head) - len(tail), overlap)
    used = []
    at = 0
    for place, word in enumerate(pieces):
        row, found, (a, b) = row_of(inputs, int(inputs.order[1 + place]))
        window = held[row - 1]
        used.append(row - 1)
        assert found == [*head, *flat[window.start : window.end], *tail]
        assert 0 <= a < b <= len(found)
        if not word:
            # The piece after it; past the text that is the last special token, or the last piece.
            assert found[a] == (*flat, *tail)[at] if at < len(flat) or tail else a == len(found) - 1
        elif any(one.start <= at and at + len(word) <= one.end for one in held):
            blank = len(word) - len(found[a:b])
            assert found[a:b] == word[blank:] and blank in (0, 1), "whole, without a lone mark of space"
            assert a - len(head) + window.start == at + blank, (
                "the word at its own place, not another like it"
            )
        else:
            assert found[a:b] == word[: b - a] or found[a:b] == word[1 : 1 + b - a]
        at += len(word)
    assert used == sorted(used)
    assert inputs.counts.get("words without pieces", 0) == sum(not word for word in pieces)
    assert inputs.counts.get("in several windows", 0) == (len(held) > 1)


def test_words_of_nothing_take_the_piece_after_them() -> None:
    reader = Reader(tokenizer("bert"))
    ids = reader.tokenizer.convert_tokens_to_ids
    short = word_inputs([["\u200b", "cat", "\u200b"], ["\u200b"]], "en", reader, longest=12, overlap=2)
    found = [row_of(short, int(unit)) for unit in short.order]
    assert [row[1][row[2][0]] for row in found] == [ids("cat"), ids("cat"), ids("[SEP]"), ids("[SEP]")]
    assert short.counts == {"words without pieces": 3}
    long = word_inputs([["\u200b", *["cat"] * 13, "\u200b"]], "en", reader, longest=8, overlap=2)
    units = [row_of(long, int(unit)) for unit in long.order]
    assert units[0][0] == 0 and units[0][2] == (1, 2)
    row, pieces, (a, b) = units[-1]
    assert row == len(long.rows) - 1 and (a, b) == (len(pieces) - 1, len(pieces)), (
        "the end of the last window"
    )
    bare = Reader(llama()[1])  # without a special token at the end
    last = row_of(word_inputs([["cat", "\u200b"]], "en", bare, longest=12, overlap=2), 1)
    assert last[2][1] == len(last[1])


def test_a_word_longer_than_a_window_keeps_its_beginning() -> None:
    reader = Reader(tokenizer("xlm-roberta"))
    cat, long, dog = cut(reader.tokenizer, ["cat", "Straßenkehrer", "dog"])
    assert len(cat) == 2 and len(long) > 6, "▁ S t r …"
    inputs = word_inputs([["cat", "Straßenkehrer", "dog"]], "en", reader, longest=8, overlap=2)
    row, pieces, (a, b) = row_of(inputs, int(inputs.order[1]))
    assert row == 0 and (a, b) == (4, 7) and pieces[a:b] == long[1:4], "from its first letter to the edge"
    row, pieces, (a, b) = row_of(inputs, int(inputs.order[2]))
    assert pieces[a:b] == dog[-(b - a) :] and row == len(inputs.rows) - 1


def test_rows_are_bounded_by_the_encoder_too() -> None:
    text = ["cat"] * 40
    by_encoder = word_inputs([text], "en", Reader(tokenizer("bert"), limit=10), longest=99, overlap=3)
    by_setting = word_inputs([text], "en", Reader(tokenizer("bert"), limit=99), longest=10, overlap=3)
    assert by_encoder.rows.fingerprint == by_setting.rows.fingerprint
    assert by_encoder.rows.lengths.max() == 10
    with pytest.raises(BadSetting, match="no room for words"):
        word_inputs([text], "en", Reader(tokenizer("bert")), longest=2, overlap=0)


# ------------------------------------------------------------------------------------------------- pairs


def pair(first: str, second: str, languages: tuple[str, str] = ("en", "de")) -> TextPair:
    return TextPair(first, second, "x", languages)


@pytest.mark.parametrize("family", TEMPLATES)
def test_pairs_are_rows_as_the_tokenizer_makes_them(family: str) -> None:
    known, reader = tokenizer(family), Reader(tokenizer(family))
    texts = [*TEXT[:4], "東京へ行きます。私は学生です", "a", "the  cat\nsat", "e\u0301 \u200b", ""]
    pairs = [pair(a, b) for a, b in product(texts, texts)]
    for longest in (300, 25, 12):
        inputs = pair_inputs(pairs, reader, longest=longest)
        told = known(
            [one.first for one in pairs],
            [one.second for one in pairs],
            truncation="longest_first",
            max_length=longest,
        )
        rows = inputs.rows
        for row, expected in enumerate(told["input_ids"]):
            assert rows.pieces[rows.offsets[row] : rows.offsets[row + 1]].tolist() == expected
        kinds = np.concatenate(told.get("token_type_ids", [np.zeros_like(one) for one in told["input_ids"]]))
        assert (rows.kind == kinds).all()
        assert (rows.units.start == 0).all() and (rows.units.end == 1).all() and len(inputs) == len(pairs)
        whole = [len(known([one.first], [one.second])["input_ids"][0]) for one in pairs]
        cut_off = sum(size > longest for size in whole)
        assert inputs.counts == ({"pairs cut to fit": cut_off} if cut_off else {})


def test_the_longer_text_is_cut_as_fast_tokenizers_do() -> None:
    known = tokenizer("bert", limit=99)  # its own, for a limit stays with it
    for first, second, room in product(range(9), range(1, 9), range(2, 12)):
        told = known(["a " * first], ["b " * second], truncation="longest_first", max_length=room + 3)
        sizes = [told["input_ids"][0].count(piece) for piece in cut(known, ["a b"])[0]]
        assert shortened(first, second, room) == tuple(sizes), (first, second, room)


def test_every_piece_is_of_the_language_of_its_text() -> None:
    reader = Reader(tokenizer("xlm-roberta"))
    pairs = [pair("the cat", "die Katze"), pair("Кошка", "it", ("ru", "en"))]
    inputs = pair_inputs(pairs, reader, longest=40, every_piece=True)
    assert inputs.languages == ("en", "de", "ru")
    for number, one in enumerate(pairs):
        spoken = inputs.spoken[inputs.first[number] : inputs.first[number + 1]]
        a, b = (len(cut(reader.tokenizer, [text])[0]) for text in (one.first, one.second))
        expected = [one.languages[0]] * (1 + a + 2) + [one.languages[1]] * (b + 1)
        assert [inputs.languages[code] for code in spoken] == expected
    assert (inputs.lengths == inputs.rows.lengths).all()
    single = pair_inputs(pairs, reader, longest=40)
    assert [single.languages[code] for code in single.spoken] == ["en", "ru"], "the first token opens a text"


def test_two_texts_need_room() -> None:
    with pytest.raises(BadSetting, match="no room for two texts"):
        pair_inputs([pair("a", "b")], Reader(tokenizer("bert")), longest=4)


# --------------------------------------------------------------------------------------------- questions


def asked(question: str, context: str, *answers: tuple[str, int]) -> Question:
    told = tuple(Answer(text, start) for text, start in answers)
    return Question(question, context, told, ("en", "de"), "1")


def said(read: QuestionInputs, start: np.ndarray, end: np.ndarray, question: Question, sure: int) -> str:
    """What is answered when window `sure` is certain of these pieces and the others of none."""
    scores = []
    for number, size in enumerate(read.inputs.lengths.tolist()):
        sides = [np.full(size, -30.0 - number), np.full(size, -30.0 - number)]
        if number == sure:
            sides[0][start[number]] = sides[1][end[number]] = -0.1
        scores.append((sides[0], sides[1]))
    prepared = Prepared(read.inputs, GoldLabels({}, {}), read)
    reading = Reading(longest_answer=1000)
    return QuestionTask().predictions(Labelled("de", (question,)), prepared, scores, Labels(()), reading)[0]


paragraphs = st.lists(
    st.tuples(
        st.sampled_from(["cat", "it's", "Straße", "Кошка", "東京へ行きます", "e\u0301", "ก\u0e34น", "(1)"]),
        st.sampled_from([" ", "  ", "\n", " \n"]),
    ),
    min_size=1,
    max_size=12,
).map(lambda parts: "".join(word + space for word, space in parts))


@pytest.mark.parametrize("family", ["bert", "xlm-roberta", "modernbert"])
@given(text=paragraphs, data=st.data())
@settings(max_examples=40)
def test_answers_are_found_again_where_a_window_holds_them(
    family: str, text: str, data: st.DataObject
) -> None:
    first = data.draw(st.sampled_from([k for k, one in enumerate(text) if not one.isspace()]))
    last = data.draw(st.sampled_from([k for k in range(first, len(text)) if not text[k].isspace()]))
    answer = text[first : last + 1]
    question = asked("it", text, (answer, first), ("cat", 0))
    reader = Reader(tokenizer(family))
    read = question_inputs([question], reader, longest=18, overlap=3)
    start, end = answer_places(read, [question])
    pieces, places = reader.characters(text)
    asks = len(cut(reader.tokenizer, ["it"])[0])
    held = windows(len(pieces), 18 - reader.pair.size - asks, 3)
    assert len(held) == len(read.inputs) and (read.inputs.item == 0).all()
    # Where pieces begin and end, spaces that they take with them left aside.
    edges = [(a + len(text[a:b]) - len(text[a:b].lstrip()), b) for a, b in places.tolist()]
    for number, window in enumerate(held):
        inside = places[window.start : window.end].tolist()
        seen = {k for a, b in inside for k in range(a, b)}
        if {k for k in range(first, last + 1) if not text[k].isspace()} <= seen:
            assert 0 < start[number] <= end[number]
            found = said(read, start, end, question, number)
            assert answer in found
            if not any(a < k < b for a, b in edges for k in (first, last + 1)):
                assert found == answer, "it begins and ends where pieces do"
        else:
            assert start[number] == end[number] == 0


def test_a_window_shows_the_question_and_its_part_of_the_paragraph() -> None:
    reader = Reader(tokenizer("xlm-roberta"))
    text = TEXT[1]
    questions = [asked("Wer saß?", text, ("Katze", 4)), asked("it", "a b", ("b", 2)), asked("it", text)]
    read = question_inputs(questions, reader, longest=20, overlap=4)
    pieces, places = reader.characters(text)
    inputs = read.inputs
    assert inputs.item.tolist() == sorted(inputs.item.tolist()) and set(inputs.item) == {0, 1, 2}
    assert inputs.counts == {"paragraphs in several windows": 2}
    for number in np.flatnonzero(inputs.item != 1).tolist():
        query = cut(reader.tokenizer, [questions[inputs.item[number]].question])[0]
        first, last = inputs.first[number : number + 2]
        row = inputs.rows.pieces[inputs.rows.offsets[number] : inputs.rows.offsets[number + 1]].tolist()
        assert last - first == len(row) <= 20, "every piece is a unit"
        begin = 1 + len(query) + 2
        assert row[:begin] == [0, *query, 2, 2] and row[-1] == 2
        allowed = read.allowed[first:last]
        assert allowed.tolist() == [k == 0 or begin <= k < len(row) - 1 for k in range(len(row))]
        at = next(k for k in range(len(pieces)) if [*pieces[k : k + len(row) - begin - 1]] == row[begin:-1])
        spans = np.stack([read.begin[first:last], read.end[first:last]], 1)
        assert [text[a:b] for a, b in spans[begin:-1]] == [
            text[a:b] for a, b in places[at:][: len(row) - begin - 1]
        ]
        assert not spans[:begin].any() and not spans[-1].any()
        spoken = [inputs.languages[code] for code in inputs.spoken[first:last]]
        assert spoken == ["en"] * begin + ["de"] * (len(row) - begin)
    start, end = answer_places(read, questions)
    assert (start[inputs.item == 2] == -1).all() and (end[inputs.item == 2] == -1).all(), "no answer is known"
    assert (start[inputs.item != 2] >= 0).all()


def test_long_questions_are_cut_and_windows_stay_few() -> None:
    reader = Reader(tokenizer("bert"))
    question = asked("cat " * 90, "the dog " * 40, ("dog", 4))
    read = question_inputs([question], reader, longest=100, overlap=8)
    assert read.inputs.counts == {"questions cut to fit": 1, "paragraphs in several windows": 1}
    row = read.inputs.rows.pieces[: read.inputs.rows.offsets[1]].tolist()
    assert row.count(cut(reader.tokenizer, ["cat"])[0][0]) == 64 and len(row) == 100
    wide = question_inputs([question], reader, longest=100, overlap=99)
    assert len(wide.inputs) <= 8, "more to share than there is room for shares half, not all but one piece"
    with pytest.raises(BadSetting, match="leave 7 for a paragraph"):
        question_inputs([question], reader, longest=74, overlap=2)


def test_characters_that_no_piece_holds_are_not_missed_in_an_answer() -> None:
    reader = Reader(tokenizer("bert"))
    for text, answer in (
        ("\u200bcat sat", "\u200bcat"),
        ("cat sat\ufeff", "sat\ufeff"),
        ("\u200bcat", "\u200b"),
    ):
        question = asked("it", text, (answer, text.index(answer)))
        read = question_inputs([question], reader, longest=30, overlap=4)
        start, end = answer_places(read, [question])
        held = answer.strip("\u200b\ufeff")
        assert (said(read, start, end, question, 0) if held else "") == held
        assert (start[0] > 0) == (end[0] > 0) == bool(held)


def test_spaces_around_an_answer_and_empty_paragraphs_do_no_harm() -> None:
    reader = Reader(tokenizer("bert"))
    spaced = asked("it", " the cat ", (" the cat ", 0))
    read = question_inputs([spaced], reader, longest=30, overlap=4)
    start, end = answer_places(read, [spaced])
    assert said(read, start, end, spaced, 0) == "the cat"
    nothing = asked("it", "\u200b", ("\u200b", 0))
    read = question_inputs([nothing], reader, longest=30, overlap=4)
    assert [side.tolist() for side in answer_places(read, [nothing])] == [[0], [0]]
    assert said(read, np.array([0]), np.array([0]), nothing, 0) == ""
