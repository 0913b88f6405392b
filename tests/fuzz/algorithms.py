"""What works on numbers and labels alone: links symmetrised, BIO tags, best trees. Inputs are drawn.

Bytes stand for a case, so that it has a name as other inputs have, and coverage can be a guide.
"""

import random
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise, product
from pathlib import Path

import numpy as np
from frame import Target, drawn, put, text

from calque.errors import BadInput
from calque.links.symmetrise import Symmetrisation, symmetrise
from calque.stats.spans import Repair, Span, repair, spans
from calque.stats.tasks import tag_statistics, type_statistics
from calque.text.labelled.tags import read_ner
from calque.transfer.trees import is_tree, single_root_tree
from calque.types import Bitext, WordPairs
from corners import WHOLE

WORD, SENTENCE = b"\xff", b"\xfe"


class Numbers:
    """Numbers taken from bytes, zeros where these have ended."""

    def __init__(self, data: bytes) -> None:
        self.left = data

    def take(self, count: int, kind: str = "u1") -> np.ndarray:
        size = count * np.dtype(kind).itemsize
        taken, self.left = self.left[:size], self.left[size:]
        return np.frombuffer(taken.ljust(size, b"\0"), kind)


def joined(sentences: Iterable[Iterable[str]]) -> bytes:
    """Strings of any characters as bytes; what divides them is in no UTF-8."""
    return SENTENCE.join(
        WORD.join(word.encode("utf-8", "surrogatepass") for word in words) for words in sentences
    )


def parted(data: bytes) -> list[list[str]]:
    return [[text(word) for word in part.split(WORD)] if part else [] for part in data.split(SENTENCE)]


# ----------------------------------------------------------------------------------------------- links

Links = set[tuple[int, int]]
GROWN = ("grow_diag", "grow_diag_final", "grow_diag_final_and")


def _links(draw: random.Random) -> bytes:
    other = b"\xff" if draw.random() < 0.03 else b"\0"
    return other + b"".join(_linked(draw) for _ in range(draw.choice((1, 1, 2, 4))))


def _linked(draw: random.Random) -> bytes:
    """A sentence linked both ways: as models do, all over, along the diagonal, on one side, not at all."""
    huge = draw.random() < 0.005
    n, m = (draw.randint(100, 255) if huge else draw.choice((0, 1, 2, 3, 5, 9, 14)) for _ in range(2))
    dense = draw.randint(0, 3000 if huge else 30)

    def side(number: int) -> list[tuple[int, int]]:
        one = draw.choice((range(n), range(m)))
        match draw.randrange(6):
            case 0:
                return []
            case 1:
                return [(draw.randrange(n), draw.randrange(m)) for _ in range(dense)]
            case 2:
                return [(k, k + draw.choice((0, 0, 1, -1))) for k in range(1, min(n, m) - 1)]
            case 3:
                return [(k, draw.randrange(m)) for k in range(n) if draw.random() < 0.7]
            case 4:
                return [(draw.randrange(n), k) for k in range(m) if draw.random() < 0.7]
            case _:
                return [(draw.randrange(n), draw.randrange(m))] * len(one)

    sides = [side(number) if n and m else [] for number in range(2)]
    if draw.random() < 0.1:
        sides[1] = sides[0]
    counts = np.array([len(one) for one in sides], "<u2").tobytes()
    return bytes([n, m]) + counts + bytes(k for one in sides for link in one for k in link)


def _sides(data: bytes) -> tuple[list[tuple[int, int]], list[list[list[tuple[int, int]]]]]:
    """Lengths of the sentences, and the links of both directions, some of them twice."""
    numbers, lengths, links = Numbers(data), [], []
    while numbers.left:
        n, m = numbers.take(2).tolist()
        counts = numbers.take(2, "<u2").tolist()
        pairs = [numbers.take(2 * min(k, len(numbers.left) // 2)).reshape(-1, 2) for k in counts]
        lengths.append((n, m))
        links.append([[(i % n, j % m) for i, j in one.tolist()] if n and m else [] for one in pairs])
    return lengths, links


def _direction(bitext: Bitext, links: Sequence[Sequence[tuple[int, int]]], weight: float) -> WordPairs:
    rows = [(k, i, j, weight / (1 + i + j)) for k, held in enumerate(links) for i, j in held]
    return WordPairs.of(bitext, *np.array(rows, np.float64).reshape(-1, 4).T)


def _symmetrised(data: bytes, folder: Path) -> None:
    """Every rule keeps what it says, and links of real growth are thot's."""
    lengths, links = _sides(data[1:])
    text, other = (
        Bitext.of(("aa", "bb"), [["x"] * n for n, _ in lengths], [[word] * m for _, m in lengths])
        for word in ("y", "z" if data[:1] == b"\xff" else "y")
    )
    forward = _direction(text, [one for one, _ in links], 0.8)
    backward = _direction(other, [one for _, one in links], 0.4)
    found = {how: symmetrise(forward, backward, how) for how in Symmetrisation}
    for sentence, sides in enumerate(links):
        one, two = map(set, sides)
        kept = {how.value.replace("-", "_"): _kept(pairs, sentence) for how, pairs in found.items()}
        assert kept.pop("intersection") == one & two and kept.pop("union") == one | two
        assert one & two <= kept["grow_diag"] <= kept["grow_diag_final"] & kept["grow_diag_final_and"]
        assert kept["grow_diag_final"] | kept["grow_diag_final_and"] <= one | two
        if one | two:
            assert kept == {name: _by_thot(lengths[sentence], one, two, name) for name in kept} or not _thot()
    for how, pairs in found.items():
        again = symmetrise(pairs, pairs, how)
        assert again.fingerprint == pairs.fingerprint, "links that agree stay as they are"
    union = found[Symmetrisation.UNION]
    expected = [
        ((0.8 if (i, j) in one else 0) + (0.4 if (i, j) in two else 0)) / 2 / (1 + i + j)
        for one, two in (map(set, sides) for sides in links)
        for i, j in sorted(one | two)
    ]
    np.testing.assert_allclose(union.score, np.array(expected, np.float32), rtol=1e-6)


def _kept(pairs: WordPairs, sentence: int) -> Links:
    rows = slice(*np.searchsorted(pairs.sentence, [sentence, sentence + 1]))
    held = list(zip(pairs.source[rows].tolist(), pairs.target[rows].tolist(), strict=True))
    assert held == sorted(set(held))
    return set(held)


@cache
def _thot() -> object:
    """thot, which has no wheel for Linux on ARM."""
    try:
        import thot.common as found
    except ImportError:
        return None
    return found


def _by_thot(lengths: tuple[int, int], forward: Links, backward: Links, rule: str) -> Links:
    matrices = []
    for links in (forward, backward):
        matrix = _thot().WordAlignmentMatrix(*lengths)
        for i, j in links:
            matrix[i, j] = True
        matrices.append(matrix)
    getattr(matrices[0], rule)(matrices[1])
    return set(map(tuple, np.argwhere(matrices[0].to_numpy()).tolist()))


# ------------------------------------------------------------------------------------------------ tags

TYPES = ("PER", "LOC", "X", "date-time", "-", "B-X", "I", "O", *WHOLE)
#: What is no BIO tag: other schemes, other cases, halves of a tag.
OTHERS = (
    "S-PER",
    "E-PER",
    "L-X",
    "U-X",
    "b-X",
    "B",
    "I-",
    "B-",
    "-",
    "",
    "O ",
    "O-X",
    "o",
    "\ud800",
    "BX",
    "B_X",
)


def _labels(draw: random.Random) -> bytes:
    types = draw.sample(TYPES, 3)
    broken = draw.random() < 0.1
    length = draw.choice((0, 1, 2, 5, 9, 14, 40))

    def sentence() -> list[str]:
        tags = []
        for _ in range(length if draw.random() < 0.98 else length + 1):
            tag = draw.choice(("O", "B-", "I-", "I-"))
            tags.append(tag if tag == "O" else tag + draw.choice((types[0], *types)))
        if broken and tags:
            tags[draw.randrange(len(tags))] = draw.choice(OTHERS)
        return tags

    return joined([sentence(), sentence()])


def _tags(data: bytes, folder: Path) -> None:
    """Tags are refused, or their spans are those of the definitions and of seqeval, whatever reads them."""
    sentences = parted(data)
    gold, said = sentences[0], sentences[-1]
    sound = all(_is_bio(tag) for tags in (gold, said) for tag in tags)
    try:
        for how in Repair:
            counts = tag_statistics(gold, said, repair=how)
            by_type = type_statistics(gold, said, repair=how)
            _counted(counts, _begun(gold), set(_spans_of(repair(said, how))))
            assert sum(one["span_hits"] for one in by_type.values()) == counts["span_hits"]
    except BadInput:
        assert not sound or len(gold) != len(said)
        raise
    assert sound and len(gold) == len(said)
    for tags in (gold, said):
        _repaired(tags)
    _read_back([gold, said], folder)


def _is_bio(tag: str) -> bool:
    return tag == "O" or (tag[:2] in ("B-", "I-") and len(tag) > 2)


def _counted(counts: dict[str, float], gold: set[Span], said: set[Span]) -> None:
    columns = [counts[f"span_{name}"] for name in ("hits", "predicted", "gold")]
    assert columns == [len(gold & said), len(said), len(gold)]


def _begun(tags: Sequence[str]) -> set[Span]:
    """Spans by their definition: a word that begins one, and all that go on with its type."""
    found = set()
    for start, (before, tag) in enumerate(pairwise(("O", *tags))):
        if tag[0] == "B" or (tag[0] == "I" and before[2:] != tag[2:]):
            end = start + 1
            while end < len(tags) and tags[end] == "I" + tag[1:]:
                end += 1
            found.add(Span(start, end, tag[2:]))
    return found


def _spans_of(tags: Sequence[str]) -> set[Span]:
    return {span for span in _begun(tags) if tags[span.start][0] == "B"}


def _repaired(tags: list[str]) -> None:
    assert spans(tags) == _begun(tags)
    new, last, strict = (repair(tags, how) for how in (Repair.NEW_SPAN, Repair.LAST_TYPE, Repair.DISCARD))
    for how, mended in zip(
        (Repair.NEW_SPAN, Repair.LAST_TYPE, Repair.DISCARD), (new, last, strict), strict=True
    ):
        assert len(mended) == len(tags) and repair(mended, how) == mended
        assert spans(mended) == _spans_of(mended) == _begun(mended), "every span begins with B-"
        assert all((a == "O") == (b == "O") for a, b in zip(tags, mended, strict=True)) or mended is strict
        assert repair(_plain(tags), how) == _plain(tags, mended), "names of types decide nothing"
    assert spans(new) == _begun(tags) and spans(strict) == _spans_of(tags)
    assert last == [_by_last_type(tags, place) for place in range(len(tags))]
    by_seqeval, strictly = _by_seqeval(_plain(tags))
    assert spans(_plain(tags)) == by_seqeval and spans(_plain(tags, strict)) == strictly


def _by_last_type(tags: Sequence[str], place: int) -> str:
    """What one word's tag becomes: its stretch of B I I ... is looked up in both directions."""
    if tags[place] == "O":
        return "O"
    first = last = place
    while tags[first][0] == "I" and first > 0 and tags[first - 1] != "O":
        first -= 1
    while last + 1 < len(tags) and tags[last + 1][0] == "I":
        last += 1
    return ("B" if place == first else "I") + tags[last][1:]


def _plain(tags: Sequence[str], renamed: Sequence[str] | None = None) -> list[str]:
    """The tags, or others with these types, with types T0, T1 ... which any program and any file can hold."""
    types = {kind: f"T{k}" for k, kind in enumerate(dict.fromkeys(tag[2:] for tag in tags if tag != "O"))}
    return [tag if tag == "O" else tag[:2] + types[tag[2:]] for tag in renamed or tags]


def _by_seqeval(tags: list[str]) -> tuple[set[Span], set[Span]]:
    """Spans in its default mode, and in its strict mode with IOB2."""
    from seqeval.metrics.sequence_labeling import get_entities
    from seqeval.scheme import IOB2, Entities

    (strict,) = Entities([tags], IOB2).entities
    default = {Span(start, last + 1, kind) for kind, start, last in get_entities(tags)}
    return default, {Span(one.start, one.end, one.tag) for one in strict}


def _read_back(sentences: Sequence[Sequence[str]], folder: Path) -> None:
    """A file of tags as they are, of BIO, and of the older kind holds the same spans."""
    held = [_plain(tags) for tags in sentences if tags]
    for tags in (held, [repair(one) for one in held], [_older(repair(one)) for one in held]):
        lines = "\n\n".join("\n".join(f"w\t{tag}" for tag in one) for one in tags)
        if tags:
            read = read_ner(put(folder, "a.tsv", lines.encode()), "en", format="conll").items
            assert [spans(one.tags) for one in read] == [_begun(one) for one in held]


def _older(tags: Sequence[str]) -> list[str]:
    """BIO tags with B- only between two neighbours of a type."""
    return [
        "I" + tag[1:] if tag[0] == "B" and before[2:] != tag[2:] else tag
        for before, tag in pairwise(("O", *tags))
    ]


# ----------------------------------------------------------------------------------------------- trees

KINDS = ("<f8", "<f4", "<f2", "<i8", "i1")
#: Numbers of words for which all trees are looked at.
SMALL = 5


def _scores(draw: random.Random) -> bytes:
    rng = np.random.default_rng(draw.getrandbits(64))
    n = draw.choice((1, 2, 3, 4, 5, 5, 5, 8, 13, 40))
    kind = draw.choice(KINDS)
    shape = (n + 1, n + 1)
    match draw.randrange(7):
        case 0:
            scores = rng.normal(size=shape)
        case 1:
            scores = rng.integers(0, 3, shape)
        case 2:
            scores = np.full(shape, draw.choice((0, -1, 1e-300, 6e4, -1e308)))
        case 3:
            scores = rng.choice([1, -1], shape) * 10.0 ** rng.integers(-320, 308, shape)
        case 4:
            scores = 2.0**45 + rng.integers(0, 4, shape)
        case 5:
            scores = rng.choice([1.7e308, -1.7e308, 0.0, 1.0, -0.0, 5e-324], shape)
        case _:
            scores = rng.normal(size=shape) + 5 * np.eye(n + 1)[rng.integers(0, n + 1, n + 1)]
    if draw.random() < 0.4:
        scores = np.where(rng.random(shape) < draw.random(), -np.inf, scores)
    if draw.random() < 0.1:
        scores = np.where(rng.random(shape) < 0.05, draw.choice((np.nan, np.inf)), scores)
    with np.errstate(all="ignore"):
        held = scores.astype(kind) if kind[-2] == "f" else np.nan_to_num(scores).clip(-99, 99).astype(kind)
    heads = rng.integers(-1 if draw.random() < 0.1 else 0, n + 1, n).astype("i1").tobytes()
    odd = 255 if draw.random() < 0.02 else KINDS.index(kind)
    return bytes([n, odd]) + heads + held.tobytes()


def _tree(data: bytes, folder: Path) -> None:
    """The best tree of scores, and whether some heads are one."""
    numbers = Numbers(data)
    n, kind = (int(k) for k in numbers.take(2))
    n = 1 + (n - 1) % 40
    heads = numbers.take(n, "i1").tolist()
    told = is_tree(heads)
    assert (told is None) == _reaches_root(heads), (heads, told)
    scores = numbers.take((n + 1) ** 2, KINDS[kind % len(KINDS)]).reshape(n + 1, n + 1)
    arcs = scores[1:].astype(np.float64)
    np.fill_diagonal(arcs[:, 1:], -np.inf)
    refused = kind == 255 or not (arcs < np.inf).all()
    try:
        found = single_root_tree(scores[:, 1:] if kind == 255 else scores)
    except BadInput:
        assert refused
        raise
    assert not refused and _reaches_root(found.tolist()) and is_tree(found) is None
    largest = np.abs(arcs[np.isfinite(arcs)]).max(initial=0) or 1.0
    arcs /= largest
    if n <= SMALL:
        _no_tree_is_better(arcs, found)
    else:
        _no_arc_is_better(arcs, found)
        _order_is_nothing(arcs, found, len(data))


def _reaches_root(heads: Sequence[int]) -> bool:
    """One word hangs from the root, and every word comes to it in at most n steps."""
    if not all(0 <= head <= len(heads) for head in heads):
        return False
    above = np.array([0, *heads])
    at = np.arange(len(above))
    for _ in heads:
        at = above[at]
    return list(heads).count(0) == 1 and not at.any()


@cache
def _all_trees(n: int) -> np.ndarray:
    """Shape: (n^(n−1), n)."""
    return np.array([heads for heads in product(range(n + 1), repeat=n) if _reaches_root(heads)])


def _worth(arcs: np.ndarray, heads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many arcs of trees are forbidden, and the sum of the others. Shape: heads (..., n) to (...,)."""
    taken = arcs[np.arange(len(arcs)), heads]
    return np.isneginf(taken).sum(-1), np.where(np.isneginf(taken), 0, taken).sum(-1)


def _no_tree_is_better(arcs: np.ndarray, found: np.ndarray) -> None:
    forbidden, worth = _worth(arcs, _all_trees(len(arcs)))
    own, total = _worth(arcs, found)
    assert own == forbidden.min() and total >= worth[forbidden == own].max() - 1e-12


def _no_arc_is_better(arcs: np.ndarray, found: np.ndarray) -> None:
    """No word does better with another head that leaves a tree, which is any but those below it."""
    n = len(arcs)
    above = np.array([0, *found.tolist()])
    below, at = np.eye(n + 1, dtype=bool), np.arange(n + 1)  # below[k, head]: k hangs from head, at last
    for _ in range(n):
        at = above[at]
        below[np.arange(n + 1), at] = True
    may = ~below.T[1:]
    may[:, 0] = False
    may[found == 0] = False
    cost = np.where(np.isneginf(arcs), 1, 0)
    own = np.arange(n), found
    gain = np.where(np.isneginf(arcs), 0, arcs) - np.where(cost[own], 0, arcs[own])[:, None]
    fewer = cost - cost[own][:, None]
    assert not (may & ((fewer < 0) | ((fewer == 0) & (gain > 1e-11)))).any()


def _order_is_nothing(arcs: np.ndarray, found: np.ndarray, seed: int) -> None:
    """The words in another order have a tree of the same worth."""
    order = np.random.default_rng(seed).permutation(len(arcs))
    moved = arcs[np.ix_(order, [0, *(order + 1)])]
    other = _worth(moved, single_root_tree(np.pad(moved, ((1, 0), (0, 0)))))
    own = _worth(arcs, found)
    assert own[0] == other[0] and abs(own[1] - other[1]) <= 1e-11


def algorithms() -> dict[str, Target]:
    return {
        "symmetrise": drawn(_symmetrised, _links),
        "tags": drawn(_tags, _labels),
        "trees": drawn(_tree, _scores),
    }
