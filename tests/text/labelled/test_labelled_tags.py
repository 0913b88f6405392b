"""Files with a tag a word: columns, folders, treebanks; what is converted, refused and counted."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.scheme import IOB1, IOB2, Entities

from calque.errors import BadInput, BadSetting
from calque.text.labelled.items import Tagged
from calque.text.labelled.tags import read_ner, read_pos, read_slots
from calque.text.world.doors import write_world
from calque.text.world.draws import generate


def put(folder: Path, text: str, name: str = "a.txt") -> Path:
    path = folder / name
    data = text.encode("utf-8")
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


CONLL = """\
-DOCSTART- -X- -X- O

U.N. NNP I-NP B-ORG
official NN I-NP O
Ekeus NNP I-NP B-PER

-DOCSTART- -X- -X- O

# NN I-NP O
Baghdad NNP I-NP B-LOC
"""


def test_conll(tmp_path: Path) -> None:
    found = read_ner(put(tmp_path, CONLL), "EN")
    assert found.items == (
        Tagged(("U.N.", "official", "Ekeus"), ("B-ORG", "O", "B-PER"), line=3),
        Tagged(("#", "Baghdad"), ("O", "B-LOC"), line=9),
    )
    assert (found.language, found.dropped, found.changed) == ("en", {}, {})
    again = read_ner(put(tmp_path, "\ufeff" + CONLL.replace("\n", "\r\n"), "b.txt.gz"), "en", format="conll")
    assert again.items == found.items
    assert read_ner(put(tmp_path, CONLL), "en", limit=1).items == found.items[:1]


def test_pioner_has_empty_middle_columns(tmp_path: Path) -> None:
    found = read_ner(put(tmp_path, "Սան _ _ B-LOC\nՄարինո _ _ I-LOC\n, _ _ O\n", "test.conll03"), "hy")
    assert found.items[0].tags == ("B-LOC", "I-LOC", "O")


def test_wikiann_with_and_without_languages(tmp_path: Path) -> None:
    plain = "R.H.\tB-ORG\nen:x\tO\n\n#\tO\nNew York\tB-LOC\n"
    prefixed = "".join(f"en:{line}\n" if line else "\n" for line in plain.splitlines())
    found = read_ner(put(tmp_path, plain), "en")
    assert [item.words for item in found.items] == [("R.H.", "en:x"), ("#", "New York")]
    assert read_ner(put(tmp_path, prefixed), "en").items == found.items


def test_comments_with_ids(tmp_path: Path) -> None:
    found = read_ner(put(tmp_path, "# id = 7\n# text = # O\n#\tO\nOslo\tB-LOC\n"), "en")
    assert found.items == (Tagged(("#", "Oslo"), ("O", "B-LOC"), "7", 3),)


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("a\tO\nb\tNOUN\n", 2, "tag 'NOUN' of 'b'"),
        ("a\tO\nb\tS-PER\n", 2, "O, B-x or I-x"),
        ("a\tO\n\nb\tB-\n", 3, "tag 'B-'"),
        ("a\tO\nb\tc\tO\n", 2, "3 columns, where the file began with 2"),
        ("a x O\nb O\n", 2, "2 columns, where the file began with 3"),
        ("a\tO\nb\n", 2, "1 columns"),
        ("a\tO\n\tO\n", 2, "an empty word"),
        ("a\tO\nb\t\n", 2, "an empty tag"),
        ("a\tO\nb\0c\tO\n", 2, "NUL character"),
    ],
)
def test_mistakes_are_placed_or_counted(tmp_path: Path, text: str, line: int, what: str) -> None:
    path = put(tmp_path, text + "\ngood\tB-PER\n" if "\t" in text else text + "\ngood x B-PER\n")
    with pytest.raises(BadInput) as caught:
        read_ner(path, "en")
    assert caught.value.line == line
    assert what in str(caught.value)
    found = read_ner(path, "en", skip_bad=True)
    assert found.items[-1].words == ("good",)
    assert sum(found.dropped.values()) == 1


def test_errors_before_anything_was_read_name_the_formats(tmp_path: Path) -> None:
    path = put(tmp_path, "a\tNOUN\n")
    with pytest.raises(BadInput, match=r"read as conll; for ner --format takes conll, conllu, dataset"):
        read_ner(path, "en")
    with pytest.raises(BadInput) as caught:
        read_ner(path, "en", format="conll")
    assert "--format" not in str(caught.value)
    with pytest.raises(BadInput) as caught:
        read_ner(put(tmp_path, "a\tO\n\na\tNOUN\n"), "en")
    assert "--format" not in str(caught.value)


def test_nothing_left(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no item left: all 2 dropped \(2 tag without BIO\)"):
        read_ner(put(tmp_path, "a\tX\n\nb\tY\n"), "en", skip_bad=True)
    for text in ("", "\n\n", " \n\t\n"):
        with pytest.raises(BadInput, match="an empty file"):
            read_ner(put(tmp_path, text), "en", skip_bad=True)
        with pytest.raises(BadInput, match="no words here"):
            read_ner(put(tmp_path, text), "en", format="conll", skip_bad=True)
    with pytest.raises(BadInput, match="no words here"):
        read_ner(put(tmp_path, "-DOCSTART- O\n"), "en")


def test_settings(tmp_path: Path) -> None:
    path = put(tmp_path, CONLL)
    with pytest.raises(BadSetting, match="limit 0"):
        read_ner(path, "en", limit=0)
    with pytest.raises(BadSetting, match="did you mean conll"):
        read_ner(path, "en", format="connl")
    with pytest.raises(BadSetting, match="unknown language"):
        read_ner(path, "klingonish")


# ------------------------------------------------------------------------------------------------ IOB1


def test_older_tags_are_converted_and_counted(tmp_path: Path) -> None:
    text = "a I-PER\nb I-PER\nc B-PER\nd O\n\ne O\n\nf I-LOC\ng I-ORG\n"
    found = read_ner(put(tmp_path, text), "en")
    expected = [("B-PER", "I-PER", "B-PER", "O"), ("O",), ("B-LOC", "B-ORG")]
    assert [item.tags for item in found.items] == expected
    assert found.changed == {"IOB1 made BIO": 2}


def test_a_lone_inside_tag_stays_in_bio(tmp_path: Path) -> None:
    found = read_ner(put(tmp_path, "a O\nb I-PER\n\nc B-PER\n\nd B-LOC\ne I-PER\n"), "en")
    assert [item.tags for item in found.items] == [("O", "I-PER"), ("B-PER",), ("B-LOC", "I-PER")]
    assert found.changed == {}


tag = st.sampled_from(["O", "B-X", "I-X", "B-Y", "I-Y"])


def older(tags: list[str]) -> list[str]:
    """Spans of any tags, spelled in IOB1: B- only right after a span of the same type."""
    told: list[str] = []
    kind = ""
    for tag in tags:
        begins = tag[0] == "B" or (tag[0] == "I" and kind != tag[2:])
        told.append("O" if tag == "O" else ("B" if begins and kind == tag[2:] else "I") + tag[1:])
        kind = "" if tag == "O" else tag[2:]
    return told


@given(st.lists(st.lists(tag, min_size=1, max_size=8), min_size=1, max_size=4))
def test_conversion_keeps_the_entities_that_seqeval_sees(
    tmp_path_factory: pytest.TempPathFactory, sentences: list[list[str]]
) -> None:
    spelled = [older(tags) for tags in sentences]
    text = "\n".join("".join(f"w {tag}\n" for tag in tags) for tags in spelled)
    found = read_ner(put(tmp_path_factory.getbasetemp(), text, "iob1.txt"), "en")

    def spans(tags: list[list[str]], scheme: type) -> list[list[tuple[object, ...]]]:
        return [[entity.to_tuple() for entity in held] for held in Entities(tags, scheme).entities]

    assert spans([list(item.tags) for item in found.items], IOB2) == spans(spelled, IOB1)


# ----------------------------------------------------------------------------------------------- slots

FACEBOOK = """\
# text: Remind me on thursday
# intent: reminder/set_reminder
# slots: 10:21:datetime
1\tremind\treminder/set_reminder\tNoLabel
2\tme\treminder/set_reminder\tNoLabel
3\ton\treminder/set_reminder\tB-datetime
7\tthursday\treminder/set_reminder\tI-datetime

# text: rain
# intent: weather/find
# slots:
1\train\tweather/find\tB-weather/noun
"""


def test_facebook_and_xsid(tmp_path: Path) -> None:
    """A number that skips stands in xSID's English file, so numbers are not relied upon."""
    path = put(tmp_path, FACEBOOK, "eval-en.conllu")
    found = read_slots(path, "en")
    assert found.items == (
        Tagged(("remind", "me", "on", "thursday"), ("O", "O", "B-datetime", "I-datetime"), line=4),
        Tagged(("rain",), ("B-weather/noun",), line=12),
    )
    xsid = FACEBOOK.replace("NoLabel", "O").replace("# text: ", "# id = 5\n# text = ", 1)
    again = read_slots(put(tmp_path, xsid, "en.conll"), "en")
    assert [item.tags for item in again.items] == [item.tags for item in found.items]
    assert [item.id for item in again.items] == ["5", ""]
    with pytest.raises(BadInput, match="names intents: slots, not entities"):
        read_ner(path, "en")


def folder(path: Path, words: str, tags: str) -> Path:
    path.mkdir(parents=True)
    put(path, words, "seq.in")
    put(path, tags, "seq.out")
    put(path, "x\n" * 2, "label")
    return path


def test_folders(tmp_path: Path) -> None:
    path = folder(tmp_path / "snips" / "valid", "add this  track \nplay\n\n", "O O B-item \nO\n\n")
    found = read_slots(path, "en")
    expected = (
        Tagged(("add", "this", "track"), ("O", "O", "B-item"), line=1),
        Tagged(("play",), ("O",), line=2),
    )
    assert found.items == expected
    with pytest.raises(BadInput, match=r"no seq.in in this folder \(give one of its folders: valid"):
        read_slots(path.parent, "en")
    with pytest.raises(BadInput, match="a folder: not a file for ner"):
        read_ner(path, "en")


@pytest.mark.parametrize(
    ("words", "tags", "what"),
    [
        ("a b\nc\n", "O\nO\n", r"seq.in:1: 2 words, but 1 tags"),
        ("a\nc\n", "O\n", r"seq.in: 2 lines, but seq.out has 1"),
        ("a\nc\n", "O\ndate\n", r"seq.out:2: tag 'date' of 'c'"),
    ],
)
def test_broken_folders(tmp_path: Path, words: str, tags: str, what: str) -> None:
    with pytest.raises(BadInput, match=what):
        read_slots(folder(tmp_path / "f", words, tags), "en")


# ------------------------------------------------------------------------------------------- treebanks


def test_the_world(tmp_path: Path) -> None:
    """What is read from the world's files is what the world has drawn."""
    write_world(tmp_path / "w", 300, languages=("en", "far"), seed=3)
    drawn = list(generate(300, seed=3, languages=("en", "far")))
    asked = [sentence for sentence in drawn if sentence.intent]
    for language in ("en", "far"):
        path = tmp_path / "w" / f"{language}.conllu"
        sides, requests = ([s.sides[language] for s in some] for some in (drawn, asked))
        entities, slots, parts = (read(path, language) for read in (read_ner, read_slots, read_pos))
        assert [(i.words, i.tags) for i in entities.items] == [
            (tuple(s.words), tuple(s.entities)) for s in sides
        ]
        assert [(i.words, i.tags) for i in slots.items] == [
            (tuple(s.words), tuple(s.slots)) for s in requests
        ]
        assert [i.tags for i in parts.items] == [tuple(s.upos) for s in sides]
        assert slots.dropped == {"no intent": len(drawn) - len(asked)}
        assert entities.items[0].id == "1"


def words(*rows: tuple[str, str, str]) -> str:
    lines = [
        f"{at}\t{word}\t_\t{upos}\t_\t_\t{at - 1}\t{'root' if at == 1 else 'dep'}\t_\t{misc}\n"
        for at, (word, upos, misc) in enumerate(rows, 1)
    ]
    return "".join(lines) + "\n"


def test_entities_that_are_not_bio(tmp_path: Path) -> None:
    text = words(("a", "X", "_"), ("b", "X", "SpaceAfter=No|Entity=(person-1)"))
    with pytest.raises(BadInput, match=r":2: tag '\(person-1\)' of 'b'"):
        read_ner(put(tmp_path, text, "a.conllu"), "en")
    with pytest.raises(BadInput, match=r"no Slot= in its last column .*--format"):
        read_slots(put(tmp_path, text, "a.conllu"), "en")


def test_parts_of_speech(tmp_path: Path) -> None:
    good, bad, none = (words(("a b", "DET", "_"), ("c", upos, "_")) for upos in ("NOUN", "NOUNS", "_"))
    path = put(tmp_path, good + bad + none + "1\tx\n\n", "a.conllu")
    with pytest.raises(BadInput, match=r":4: 'c' has the part of speech 'NOUNS' .*did you mean NOUN\?"):
        read_pos(path, "en")
    found = read_pos(path, "en", skip_bad=True)
    assert found.items == (Tagged(("a b", "c"), ("DET", "NOUN"), line=1),)
    assert found.dropped == {"not CoNLL-U": 1, "part of speech": 2}


def test_parts_of_speech_in_two_columns(tmp_path: Path) -> None:
    found = read_pos(put(tmp_path, "the\tDT\n5 000\tCD\n\ngo\tVB\n", "a.tsv"), "en")
    assert found.items == (Tagged(("the", "5 000"), ("DT", "CD"), line=1), Tagged(("go",), ("VB",), line=4))
    with pytest.raises(BadInput, match=r"tags B-PER, O: entities or slots, not parts of speech"):
        read_pos(put(tmp_path, "a\tO\nb\tB-PER\n"), "en")
    with pytest.raises(BadInput, match="3 columns, where each word has its tag"):
        read_pos(put(tmp_path, "a\tb\tc\n"), "en")
    with pytest.raises(BadInput, match="columns with word numbers: not a file for pos"):
        read_pos(put(tmp_path, FACEBOOK), "en")
