"""The static baseline of word retrieval, from two files of vectors to a figure, against a slow twin.

The rotation is learned and applied on the plain vectors of linked words; then each word's vector is joined by
mean, maximum and minimum over the known words of its sentence.
"""

from pathlib import Path

import numpy as np
import pytest

from calque.cli import main
from calque.store import load_pairs, load_results
from calque.types import WordPairs
from planted import orthogonal

TYPES, WIDTH, SENTENCES, TEST = 60, 7, 120, 30


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Vectors, text and links of two languages; some words are unknown, some known in lower case only."""
    folder, rng = tmp_path_factory.mktemp("static"), np.random.default_rng(3)
    meaning = rng.normal(size=(TYPES, WIDTH))
    for code, turn in (("en", np.eye(WIDTH)), ("de", orthogonal(WIDTH, 8))):
        side = (meaning + 0.4 * rng.normal(size=meaning.shape)) @ turn.T
        rows = [f"{code}{k} {' '.join(f'{x:.5f}' for x in row)}" for k, row in enumerate(side) if k % 15 != 7]
        (folder / f"{code}.vec").write_text(f"{len(rows)} {WIDTH}\n" + "\n".join(rows) + "\n")
    drawn = [rng.choice(TYPES, rng.integers(4, 9), replace=False) for _ in range(SENTENCES)]
    order = [rng.permutation(len(words)) for words in drawn]
    with (folder / "text.tsv").open("w") as text, (folder / "gold.links").open("w") as links:
        for words, places in zip(drawn, order, strict=True):
            target = [f"DE{words[i]}" if i == 0 else f"de{words[i]}" for i in places]
            text.write(f"{' '.join(f'en{k}' for k in words)}\t{' '.join(target)}\n")
            links.write(" ".join(f"{i}-{j}" for j, i in enumerate(places)) + "\n")
    return folder


def typed(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    monkeypatch.setattr("sys.argv", ["calque", *map(str, words)])
    try:
        main()
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


# ------------------------------------------------------------------------------------------ the slow twin


def read(path: Path) -> dict[str, np.ndarray]:
    lines = [line.split() for line in path.read_text().splitlines()[1:]]
    return {word: np.array(values, np.float32).astype(np.float64) for word, *values in lines}


def vector(table: dict[str, np.ndarray], word: str) -> np.ndarray | None:
    return table.get(word, table.get(word.lower()))


def learned(tables: dict[str, dict[str, np.ndarray]], pairs: WordPairs) -> np.ndarray:
    """The rotation of German onto English, from all linked words of which both are known."""
    rows = []
    for s, i, j in zip(pairs.sentence, pairs.source, pairs.target, strict=True):
        a = vector(tables["en"], pairs.bitext.source[s][i])
        b = vector(tables["de"], pairs.bitext.target[s][j])
        rows += [(a, b)] if a is not None and b is not None else []
    english, german = (np.array(side) for side in zip(*rows, strict=True))
    u, _, vt = np.linalg.svd(english.T @ german)
    return u @ vt


def augmented(
    table: dict[str, np.ndarray], turn: np.ndarray, sentences: list[list[str]]
) -> dict[tuple[int, int], np.ndarray]:
    """Vectors of the known words of a text, by sentence and place."""
    found = {}
    for s, words in enumerate(sentences):
        held = {i: turn @ v for i, word in enumerate(words) if (v := vector(table, word)) is not None}
        every = np.array([*held.values()])
        for i, own in held.items():
            found[s, i] = np.concatenate([own, every.mean(0), every.max(0), every.min(0)])
    return found


def csls(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    x, y = (z / np.linalg.norm(z, axis=1, keepdims=True) for z in (x, y))
    cos = x @ y.T
    return 2 * cos - np.sort(cos, 1)[:, -10:].mean(1)[:, None] - np.sort(cos, 0)[-10:].mean(0)


def slow_accuracy(
    folder: Path, train: WordPairs, test: WordPairs, *, turned: bool
) -> tuple[float, float, int]:
    tables = {code: read(folder / f"{code}.vec") for code in ("en", "de")}
    turn = learned(tables, train) if turned else np.eye(WIDTH)
    source = augmented(tables["en"], np.eye(WIDTH), [*test.bitext.source])
    target = augmented(tables["de"], turn, [*test.bitext.target])
    scores = csls(np.array([*source.values()]), np.array([*target.values()]))
    links = [
        ((s, i), (s, j))
        for s, i, j in zip(test.sentence.tolist(), test.source.tolist(), test.target.tolist(), strict=True)
        if (s, i) in source and (s, j) in target
    ]
    rows, columns = (
        [list(side).index(link[at]) for link in links] for at, side in enumerate((source, target))
    )
    forward = np.mean(scores[rows].argmax(1) == columns)
    backward = np.mean(scores[:, columns].argmax(0) == rows)
    return float(forward), float(backward), len(links)


def test_the_whole_baseline_is_the_slow_twin(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, links = f"en={made / 'en.vec'},de={made / 'de.vec'}", tmp_path / "links"
    assert not typed(
        monkeypatch, "link", made / "text.tsv", "--languages", "en", "de", "--tokenised", "--test", TEST,
        "--links", made / "gold.links", "--out", links,
    )  # fmt: skip
    assert not typed(
        monkeypatch, "align", "--encoder", spec, "--pairs", links / "train", "--method", "rotation",
        "--out", tmp_path / "aligned",
    )  # fmt: skip
    assert not typed(
        monkeypatch, "measure", "words", "--encoder", spec, "--encoder", tmp_path / "aligned",
        "--label", "before", "--label", "after", "--pairs", links / "test", "--sentence-augmented",
        "--include-seen", "--rounds", 50, "--out", tmp_path / "words",
    )  # fmt: skip
    results = load_results(tmp_path / "words" / "results.jsonl")
    train, test = load_pairs(links / "train"), load_pairs(links / "test")
    for label, turned in (("before", False), ("after", True)):
        forward, backward, count = slow_accuracy(made, train, test, turned=turned)
        found = {
            r.direction: r for r in results if r.encoder == label and r.group is None and r.baseline is None
        }
        assert found["forward"].count == count
        assert found["forward"].value == pytest.approx(forward)
        assert found["backward"].value == pytest.approx(backward)
    assert (
        slow_accuracy(made, train, test, turned=True)[0]
        > 0.8
        > 0.3
        > slow_accuracy(made, train, test, turned=False)[0]
    )


def test_without_the_sentence_words_of_one_type_cannot_be_told_apart(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, links = f"en={made / 'en.vec'},de={made / 'de.vec'}", tmp_path / "links"
    typed(
        monkeypatch, "link", made / "text.tsv", "--languages", "en", "de", "--tokenised", "--test", TEST,
        "--links", made / "gold.links", "--out", links,
    )  # fmt: skip
    typed(monkeypatch, "align", "--encoder", spec, "--pairs", links / "train", "--out", tmp_path / "aligned")
    figures = []
    for flags in ((), ("--sentence-augmented",)):
        out = tmp_path / f"words{len(flags)}"
        typed(
            monkeypatch, "measure", "words", "--encoder", tmp_path / "aligned", "--pairs", links / "test",
            "--include-seen", *flags, "--rounds", 20, "--out", out,
        )  # fmt: skip
        figures += [
            r.value for r in load_results(out / "results.jsonl") if r.direction == "both" and not r.group
        ]
    plain, sentence = figures
    assert sentence > plain + 0.2


MISTAKES = {
    "no such file": ("en=nothing.vec,de={made}/de.vec", "nothing.vec: no such file"),
    "one language": ("en={made}/en.vec", "no vectors for 'de'"),
    "no file": ("en={made}/en.vec,de=", "is not LANGUAGE=FILE"),
    "other widths": ("en={made}/en.vec,de={tmp}/narrow.vec", "tables of one width, not en 7, de 2"),
    "no number": ("en={made}/en.vec,de={tmp}/broken.vec", "broken.vec:2"),
    "empty": ("en={made}/en.vec,de={tmp}/empty.vec", "empty.vec"),
    "not finite": ("en={made}/en.vec,de={tmp}/infinite.vec", "not finite"),
    "strangers": ("en={made}/en.vec,de={tmp}/strangers.vec", "no pairs to learn from"),
}


@pytest.mark.parametrize("mistake", list(MISTAKES))
def test_mistakes_are_answered(
    mistake: str,
    made: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "narrow.vec").write_text("de1 1 2\nde2 3 4\n")
    (tmp_path / "broken.vec").write_text("de1 1 2 3 4 5 6 7\nde2 1 2 3 four 5 6 7\n")
    (tmp_path / "empty.vec").write_text("")
    (tmp_path / "infinite.vec").write_text("de1 1 2 3 4 5 6 1e999\n")
    (tmp_path / "strangers.vec").write_text("xx1 1 2 3 4 5 6 7\n")
    typed(
        monkeypatch, "link", made / "text.tsv", "--languages", "en", "de", "--tokenised", "--quiet",
        "--links", made / "gold.links", "--out", tmp_path / "links",
    )  # fmt: skip
    spec, told = MISTAKES[mistake]
    encoder = spec.format(made=made, tmp=tmp_path)
    capsys.readouterr()
    code = typed(
        monkeypatch,
        "align",
        "--encoder",
        encoder,
        "--pairs",
        tmp_path / "links" / "train",
        "--out",
        tmp_path / "out",
    )
    err = capsys.readouterr().err
    assert code == 2 and told in err and "Traceback" not in err, err
    assert not (tmp_path / "out").exists()
