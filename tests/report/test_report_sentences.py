import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.report.parts import Place
from calque.report.sentences import sentence, spacing


def joined(text: str, language: str) -> str:
    words = text.split(" ")
    return "".join(space + word for space, word in zip(spacing(words, language), words, strict=True))


@pytest.mark.parametrize(
    ("language", "words", "written"),
    [
        ("en", "The price , however , is n't fair !", "The price, however, isn't fair!"),
        ("en", "It 's John 's ( old ) car : red ; fast .", "It's John's (old) car: red; fast."),
        ("en", 'She said " yes " and " no " .', 'She said "yes" and "no".'),
        ("en", "“ Hello ” he said .", "“Hello” he said."),
        ("de", "„ Ja “ , sagte er .", "„Ja“, sagte er."),
        ("es", "¿ Qué hora es ? ¡ Tarde !", "¿Qué hora es? ¡Tarde!"),
        ("fr", "l' heure d' été", "l'heure d'été"),
        ("hi", "यह मेरा घर है । क्या ?", "यह मेरा घर है। क्या?"),
        ("ru", "Он ушёл , а я остался …", "Он ушёл, а я остался…"),
        ("zh", "我 在 银行 （ 中国 ） 工作 。", "我在银行（中国）工作。"),
        ("zh-Hant", "我 用 New York 的 電話", "我用New York的電話"),
        ("ja", "私 は 銀行 に 行く 。", "私は銀行に行く。"),
        ("th", "ฉัน ไป ธนาคาร", "ฉันไปธนาคาร"),
        ("ar", "هل هذا بيتك ؟ نعم ، هو .", "هل هذا بيتك؟ نعم، هو."),
        ("en", "100 % of it", "100% of it"),
    ],
)
def test_sentences_read_as_people_write_them(language: str, words: str, written: str) -> None:
    assert joined(words, language) == written


words = st.lists(st.text(st.characters(exclude_categories=("Cs", "Zs", "Cc")), min_size=1), min_size=1)


@given(words, st.sampled_from(["en", "zh", "fr", "x-odd", ""]), st.data())
def test_no_letter_is_lost_or_added(held: list[str], language: str, data) -> None:
    index = data.draw(st.integers(0, len(held) - 1))
    said = sentence(Place(held[index], tuple(held), index), language)
    whole = said.before + said.word + said.after
    if len(held) <= 15:
        assert whole.replace(" ", "") == "".join(held)
    assert said.word == held[index]


def test_a_sentence_is_cut_around_its_word() -> None:
    held = tuple(f"w{k}" for k in range(60))
    cut = sentence(Place("w30", held, 30), "en")
    assert cut.before == "… " + " ".join(f"w{k}" for k in range(16, 30)) + " "
    assert cut.after == " " + " ".join(f"w{k}" for k in range(31, 45)) + "…"
    chinese = sentence(Place("春天", ("到了", "春天", "，", "绿"), 1), "zh-Hans")
    assert (chinese.before, chinese.word, chinese.after) == ("到了", "春天", "，绿")
    assert sentence(Place("alone"), "en").word == "alone"
