"""Figures of papers: read as printed, and beside one's own only where they are about the same."""

from collections import Counter

import pytest

from calque.errors import BadSetting
from calque.report.published import AVERAGE, PAPERS, Published, matching, published
from calque.report.tasks import TASKS
from calque.report.transfer import PREFIX
from calque.stats.tasks import METRICS


def test_cells_are_those_of_the_tables() -> None:
    cells = published()
    assert Counter(cell.paper for cell in cells) == {
        "kulshreshtha2020": 70, "cao2020": 164, "wu2020": 880, "efimov2022": 177, "conneau2020": 90,
    }  # fmt: skip
    assert set(PAPERS) == {cell.paper for cell in cells}
    assert len(set(cells)) == len(cells)
    assert all(0 <= cell.value <= 100 for cell in cells if cell.metric != "gain")
    assert all(cell.std is not None for cell in cells if cell.paper == "wu2020")


# Typed from the papers: table 3 of Kulshreshtha et al., 3 of Efimov et al., 3 of Cao et al.
@pytest.mark.parametrize(
    ("paper", "task", "language", "metric", "expected"),
    [
        ("kulshreshtha2020", "ner", "hy", "f1", [62.38, 65.31, 66.56, 63.53, 62.29]),
        ("kulshreshtha2020", "slots", "tr", "f1", [21.15, 31.46, 33.62, 37.38, 38.18, 45.98, 39.43]),
        ("efimov2022", "ner", "hi", "token-f1", [65.24, 68.22, 66.07, 65.12, 66.79, 66.29]),
        ("cao2020", "word-retrieval", "fr", "accuracy", [44.5, 28.3, 31.0, 48.6]),
    ],
)
def test_what_a_paper_printed(
    paper: str, task: str, language: str, metric: str, expected: list[float]
) -> None:
    assert [cell.value for cell in matching(paper, task=task, language=language, metric=metric)] == expected


def every_match(**asked: bool) -> list[Published]:
    codes = {cell.language for cell in published()}
    places = [*codes, *(f"{code}+en" for code in codes), *(f"en+{code}" for code in codes)]
    mine = [(task, metric.name) for task, metrics in METRICS.items() for metric in metrics]
    mine += [("word-retrieval", "accuracy")]
    found = {(task, metric, place): matching(task=task, metric=metric, language=place, **asked)
             for task, metric in mine for place in places}  # fmt: skip
    # A mixed pair of texts is the same either way round, and so is found twice.
    return [cell for (_, _, place), cells in found.items() for cell in cells
            if cell.group != "mixed-language" or place.endswith("+en")]  # fmt: skip


def test_every_cell_is_found_by_one_question_unless_it_must_not_be() -> None:
    found, all_found = Counter(every_match()), Counter(every_match(ceilings=True))
    assert set(found.values()) == set(all_found.values()) == {1}
    lost = [cell for cell in published() if cell not in all_found]
    assert {
        cell.metric == "gain" or bool(cell.breakdown) or cell.group == "non-contextual" for cell in lost
    } == {True}
    ceilings = {(cell.method, cell.group) for cell in all_found if cell not in found}
    assert {method for method, group in ceilings if "check" not in group} == {
        "translate-train",
        "target-train-1400",
    }
    assert {group for _, group in ceilings if "check" in group} == {"monolingual-check-translated-squad"}


def test_nothing_else_stands_beside() -> None:
    ner = matching(task="ner", language="es", metric="f1")
    assert ner and not any(cell.metric == "token-f1" for cell in ner)
    assert matching(task="qa", language="es", metric="em") == []
    assert matching(task="parsing", language="de", metric="uas") == []
    assert matching(task="pos", language="mean", metric="accuracy") == []
    assert matching(task="pos", language="ja", metric="accuracy") == []
    assert matching(task="nli", language="es", metric="f1") == []
    assert matching(task="sentence-retrieval", language="de", metric="accuracy") == []
    assert matching(task="word-retrieval", language="de", metric="accuracy", variant="program") == []
    plain = matching(task="qa", language="es", metric="f1")
    assert {cell.group for cell in plain} == {"monolingual"}


def test_questions_about_paragraphs_in_another_language() -> None:
    there, back = (matching(task="qa", language=code, metric="f1") for code in ("es+en", "en+es"))
    assert {cell.group for cell in there} == {"question-target-paragraph-en"}
    assert {cell.group for cell in back} == {"question-en-paragraph-target"}
    pairs = [matching(task="nli", language=code, metric="accuracy") for code in ("hi+en", "en+hi")]
    assert pairs[0] == pairs[1] and len(pairs[0]) == 3


def test_words_with_and_without_context() -> None:
    by = {name: matching(task="word-retrieval", language="de", metric="accuracy", variant=name)
          for name in ("", "contextual", "first-occurrence")}  # fmt: skip
    assert by[""] == by["contextual"] and {cell.group for cell in by["first-occurrence"]} == {
        "non-contextual"
    }


def test_names_of_results_are_understood() -> None:
    assert matching(task="transfer-ner", language="de-DE", metric="f1") == matching(
        task="ner", language="de", metric="f1"
    )
    assert {PREFIX + task for task in METRICS} <= set(TASKS)
    average = matching("wu2020", task="pos", language=AVERAGE, metric="accuracy")
    assert len(average) == 22 and all(cell.language == AVERAGE for cell in average)


def test_data_are_named() -> None:
    def names(task: str, language: str, metric: str) -> set[str]:
        return {cell.dataset for cell in matching(task=task, language=language, metric=metric)}

    assert names("ner", "es", "f1") == {"CoNLL 2002", "CoNLL 2002, dev", "WikiAnn"}
    assert names("ner", "zh", "f1") == {"WikiAnn", "Chinese entities of SIGHAN 2006, learned from CoNLL 2003"}
    assert names("parsing", "fr", "las") == {
        "Universal Dependencies 2.6 GSD",
        "Universal Dependencies 2.3 GSD",
    }
    assert names("qa", "ru", "f1") == {"XQuAD", "TyDi QA"}
    assert all(cell.dataset and cell.encoder and cell.source for cell in published())


def test_scales_and_names() -> None:
    cell = matching("wu2020", task="nli", language="de", metric="accuracy")[0]
    assert cell.score == pytest.approx(cell.value / 100) and cell.deviation == pytest.approx(cell.std / 100)
    assert (cell.source, cell.encoder, cell.baseline) == ("Wu & Dredze 2020, table 3", "mBERT", True)
    assert PAPERS["kulshreshtha2020"].short == "Kulshreshtha et al. 2020"
    assert PAPERS["wu2020"].full.endswith("Multilingual Encoders? EMNLP 2020.")


def test_an_unknown_paper_is_an_error_that_suggests() -> None:
    with pytest.raises(BadSetting, match="did you mean wu2020"):
        matching("wu2002", task="nli", language="de", metric="accuracy")
