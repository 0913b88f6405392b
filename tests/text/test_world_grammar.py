"""Hand-made meanings said in every language, and the words that the languages are made of."""

from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.errors import BadInput
from calque.text.world import CONSTRUCTIONS, construction, far, generate, near
from calque.text.world.coin import coin_words, is_short
from calque.text.world.draws import SPOKEN
from calque.text.world.english import ENGLISH, compared, plural, verb_form
from calque.text.world.lexicon import LEXICON, Lemma, Lexicon, lexicon
from calque.text.world.meaning import THEY, Draw, Node
from calque.text.world.phrases import pronoun, with_case, with_subject
from calque.text.world.surface import Language, Layout, link, side


@pytest.fixture
def d() -> Draw:
    return Draw(lexicon(), 0)


def noun(d: Draw, name: str, rel: str, det: str = "the", *, many: bool = False) -> Node:
    node = d.word(name, "NOUN", rel)
    if many:
        node.plural, node.agreement = True, THEY
    return node.add(d.word(det, "DET", "det")) if det else node


def verb(d: Draw, name: str, tense: str, subject: Node, *parts: Node, rel: str = "root") -> Node:
    node = with_subject(d.word(name, "VERB", rel), subject).add(*parts)
    node.tense = tense
    return node


def no(d: Draw, node: Node) -> Node:
    node.negation = d.word("not", "PART", "advmod")
    return node


def ask(node: Node) -> Node:
    node.inverted = node.question = True
    return node


def said(d: Draw, root: Node, language: str, end: str = ".") -> str:
    whole = root if root.has("punct") else root.add(d.word(end, "PUNCT", "punct"))
    return " ".join(side(Layout(whole, SPOKEN[language]), SPOKEN[language]).words)


# --------------------------------------------------------------------------------------------- golden


def test_a_negated_clause_in_three_languages(d: Draw) -> None:
    hospital = with_case(d, "in", noun(d, "hospital", "obl"))
    root = no(
        d, verb(d, "treat", "past", noun(d, "doctor", "nsubj"), noun(d, "child", "obj", many=True), hospital)
    )
    assert said(d, root, "en") == "The doctor did not treat the children in the hospital ."
    assert said(d, root, "near") == "Me doktor fam vestutiva me stebomos som me vagles ."
    assert said(d, root, "far") == "რუჯერის ხუშეპუშში რუხემოტებუმ ვატარულოთა ።"
    en, near_, far_ = (Layout(root, SPOKEN[name]) for name in ("en", "near", "far"))
    # `did` says nothing of its own; `not` is a prefix of the verb in far, and `in` an ending of the noun.
    assert link(en, near_) == tuple(zip((0, 1, 3, 4, 5, 6, 7, 8, 9, 10), range(10), strict=True))
    assert link(en, far_) == ((1, 0), (3, 3), (4, 3), (6, 2), (7, 1), (9, 1), (10, 4))


def test_a_passive_in_three_languages(d: Draw) -> None:
    by = with_case(d, "by", noun(d, "wolf", "obl:agent"))
    root = verb(d, "eat", "perf", noun(d, "apple", "nsubj:pass", "a"), by)
    root.passive = True
    assert said(d, root, "en") == "An apple has been eaten by the wolf ."
    assert said(d, root, "near") == "Ra aple neglestada desenamado briglisakado da me fotan ."
    assert said(d, root, "far") == "ჯახუკ ქიჩუტოშურ თოდაგუნიმა ።"
    heads = side(Layout(root, SPOKEN["en"]), SPOKEN["en"])
    assert heads.heads == (2, 5, 5, 5, 0, 8, 8, 5, 5)
    assert heads.labels == (
        "det", "nsubj:pass", "aux", "aux:pass", "root", "case", "det", "obl:agent", "punct",
    )  # fmt: skip


def test_english_turns(d: Draw) -> None:
    def you() -> Node:
        return pronoun(d, "you", "nsubj")

    question = ask(verb(d, "sing", "pres", noun(d, "girl", "nsubj")))
    assert said(d, question, "en", "?") == "Does the girl sing ?"
    cannot = no(d, verb(d, "swim", "pres", you()))
    cannot.modal = d.word("can", "AUX", "aux")
    assert said(d, cannot, "en") == "You cannot swim ."
    can_you = ask(no(d, verb(d, "swim", "pres", you())))
    can_you.modal = d.word("can", "AUX", "aux")
    assert said(d, can_you, "en", "?") == "Can you not swim ?"
    busy = d.word("busy", "ADJ", "root")
    busy.tense, busy.copula = "past", d.word("be", "AUX", "cop")
    busy.degree = "more"
    than = with_case(d, "than", noun(d, "nurse", "obl"))
    assert said(d, no(d, with_subject(busy, noun(d, "judge", "nsubj", many=True)).add(than)), "en") == (
        "The judges were not busier than the nurse ."
    )
    light = verb(d, "turn on", "fut", you(), noun(d, "light.lamp", "obj"))
    assert said(d, light, "en") == "You will turn on the light ."


def test_near_asks_with_a_particle_and_far_at_the_end(d: Draw) -> None:
    question = ask(verb(d, "sing", "pres", noun(d, "girl", "nsubj")))
    stems = {name: words()[lexicon().word("whether.question", "PART")] for name, words in STEMS.items()}
    assert said(d, question, "near", "?").split()[0].lower() == stems["near"]
    assert said(d, question, "far").split()[-2] == stems["far"]


def test_far_drops_pronouns_and_puts_relative_clauses_first(d: Draw) -> None:
    assert len(said(d, verb(d, "sing", "past", pronoun(d, "she", "nsubj")), "far").split()) == 2
    who = d.word("who", "PRON", "nsubj", "relative")
    boy = noun(d, "boy", "nsubj").add(verb(d, "laugh", "past", who, rel="acl:relcl"))
    root = verb(d, "sing", "past", boy)
    assert said(d, root, "en") == "The boy who laughed sang ."
    assert side(Layout(root, SPOKEN["far"]), SPOKEN["far"]).labels == ("acl:relcl", "nsubj", "root", "punct")


@pytest.mark.parametrize(
    ("name", "forms"),
    [
        ("carry", "carries carried carried carrying"),
        ("write", "writes wrote written writing"),
        ("stop", "stops stopped stopped stopping"),
        ("die", "dies died died dying"),
        ("watch", "watches watched watched watching"),
        ("begin", "begins began begun beginning"),
        ("see", "sees saw seen seeing"),
        ("fix", "fixes fixed fixed fixing"),
        ("agree", "agrees agreed agreed agreeing"),
    ],
)
def test_english_verb_forms(name: str, forms: str) -> None:
    lemma = lexicon().word(name, "VERB")
    assert [verb_form(lemma, form) for form in ("s", "past", "done", "ing")] == forms.split()


def test_english_plurals_and_comparisons() -> None:
    words = lexicon()
    many = {"box": "boxes", "city": "cities", "boy": "boys", "leaf": "leaves", "mouse.animal": "mice"}
    assert {name: plural(words.word(name, "NOUN")) for name in many} == many
    more = {"hot": "hotter", "happy": "happier", "brave": "braver", "clever": "more clever"}
    assert {name: " ".join(compared(words.word(name, "ADJ"), "more")) for name in more} == more


# ---------------------------------------------------------------------------------------------- words

STEMS = {"near": near.stems, "far": far.stems}


@pytest.mark.parametrize("language", STEMS)
def test_no_two_lemmas_ever_share_a_form(language: str) -> None:
    """In a large draw, a string says one lemma only."""
    d, lemmas = Draw(lexicon(), 9), defaultdict(set)
    for _ in range(30):
        for kind in CONSTRUCTIONS.values():
            laid = Layout(kind.build(d), SPOKEN[language])
            for word, node in zip(laid.words, laid.nodes, strict=True):
                lemmas[word].add(node.lemma)
    assert len(lemmas) > 2000
    assert [word for word, said in lemmas.items() if len(said) > 1] == []


@pytest.mark.parametrize("language", STEMS)
def test_no_stem_begins_with_another(language: str) -> None:
    stems = sorted(
        word for lemma, word in STEMS[language]().items() if lemma.upos in ("NOUN", "VERB", "ADJ", "ADV")
    )
    assert len(set(stems)) == len(stems)
    assert not [(a, b) for a, b in pairwise(stems) if b.startswith(a)]


def test_function_words_are_shorter_than_all_others() -> None:
    for words in STEMS.values():
        for lemma, word in words().items():
            if lemma.upos not in ("PROPN", "PUNCT", "NUM"):
                assert (len(word) <= 3) == is_short(lemma)


def plain(text: str, upos: str = "NOUN") -> Lemma:
    return Lemma(text, "", upos, "", {})


@given(st.lists(st.text("abcdefgh ", min_size=1), unique=True, max_size=30))
def test_coined_words_are_distinct_and_depend_on_the_lemma(texts: list[str]) -> None:
    first = [plain(text) for text in texts]
    coined = coin_words(first, far.SOUNDS, lambda lemma: None)
    assert len(set(coined.values())) == len(texts)
    again = coin_words([plain(text) for text in texts], far.SOUNDS, lambda lemma: None)
    assert list(again.values()) == list(coined.values())


def test_a_new_lemma_leaves_the_other_words_alone(tmp_path: Path) -> None:
    longer = tmp_path / "lexicon.txt"
    longer.write_text(
        LEXICON.read_text(encoding="utf-8").replace("[noun pet]\n", "[noun pet]\ngerbil\n"), "utf-8"
    )
    before, after = Lexicon().lemmas, Lexicon(longer).lemmas
    assert set(after) - set(before) == {"gerbil NOUN"}
    old, new = (coin_words(held.values(), far.SOUNDS, far._adopt) for held in (before, after))
    assert all(new[after[key]] == old[before[key]] for key in before)


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("dog\n", 1, "a word before any [section]"),
        ("[noun pet]\ndog plural\n", 2, "'plural' is not a setting"),
        ("[nuon pet]\ndog\n", 2, "unknown section [nuon]"),
        (
            "[noun pet]\nmouse plural=mice\n\n[noun wild]\nmouse plural=mouses\n",
            5,
            "mouse had other forms before",
        ),
    ],
)
def test_mistakes_in_a_lexicon_are_named_with_their_line(
    tmp_path: Path, text: str, line: int, told: str
) -> None:
    path = tmp_path / "lexicon.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadInput) as caught:
        Lexicon(path)
    assert (caught.value.line, told in str(caught.value)) == (line, True)


def test_a_missing_class_is_named() -> None:
    with pytest.raises(BadInput, match="no word for noun dragon"):
        lexicon().pool("noun", "dragon")


# ------------------------------------------------------------------------------------------ extending


def test_a_construction_is_one_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("calque.text.world.constructions.CONSTRUCTIONS", registered := {})
    monkeypatch.setattr("calque.text.world.draws.CONSTRUCTIONS", registered)

    @construction(end="?")
    def barking(d: Draw) -> Node:
        return ask(verb(d, "bark", "past", noun(d, "dog", "nsubj")))

    sentence = next(generate(1))
    assert (sentence.construction, sentence.sides["en"].words) == (
        "barking",
        ("Did", "the", "dog", "bark", "?"),
    )


def test_a_language_is_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    order = {place: -rank for place, rank in ENGLISH.order.items()}
    monkeypatch.setitem(SPOKEN, "mirror", Language(order, ENGLISH.dress, lambda words: words))
    for sentence in generate(50, languages=("en", "mirror")):
        linked = dict(sentence.links["en", "mirror"])
        assert linked[len(sentence.sides["en"].words) - 1] == 0  # the full stop comes first
