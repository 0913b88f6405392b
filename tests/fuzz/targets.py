"""Every door through which a file comes in: what to read it with, and valid inputs to begin from.

A target reads bytes that lie in a file, or in one file of a folder whose others are sound.
"""

import gzip
import hashlib
import json
import lzma
import os
import struct
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import algorithms
import folders
import numpy as np
import pieces
from frame import KINDS, Target, every, in_folder, put, text, texts, tried

from calque.encoders.aligned import Beginning, load_maps, save_maps
from calque.encoders.bundled import read_packed
from calque.encoders.specs import by_language, is_by_language, short_name
from calque.encoders.static import StaticEncoder, load_static, save_static
from calque.encoders.tables import WordTable, read_vec
from calque.errors import CalqueError
from calque.files import cache_limit, cache_root, read_json
from calque.links.filters import parse_filter
from calque.links.pharaoh import read_gold, read_links, read_pud
from calque.pipeline import ExtendRecipe, LinkRecipe, MineRecipe, TransferRecipe, WordsRecipe, WorldRecipe
from calque.presets import load_preset
from calque.recipe import parse_layers
from calque.store import load_items, load_pairs, load_results, save_items, save_pairs
from calque.study.recipe import load_study
from calque.text.bitext import read_bitext, read_sentences
from calque.text.conllu import read_conllu
from calque.text.dictionaries import languages_of, read_dictionary
from calque.text.labelled.open import FORMATS, read_labelled
from calque.text.labelled.plain import read_unlabelled
from calque.text.languages import check_language, primary_subtag
from calque.text.lines import read_lines
from calque.text.readers import guess_format, read_pairs
from calque.text.typology import described
from calque.text.words import tokeniser
from calque.types import Bitext, Items, MapKey, Matrix, Shift, SpaceMap, Unit, WordIndex, WordPairs

BREAK = b"\n=====\n"

# ------------------------------------------------------------------------------------------ plain text

SENTENCES = "The cat sat.\tDie Katze saß.\nIt's 5.00, Mr. Smith!\tЯ дома\n\u0e44\u0e17\u0e22\t東京 へ\n"
TSV = texts(
    SENTENCES,
    "1\tA cat\tEine Katze\n2\tTwo\tZwei\n",
    "a b\tc d\t0-0 1-1\nb\tc\t0-0\n",
    "\ufeffeins\tone\r\nzwei\ttwo\r\n",
)
TRIPLE = texts("a b ||| c d\nx ||| y\n\n", "猫 ||| cat\n")
TREE = (
    "# sent_id = 1\n# text = go 5\n1-2\tgo5\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "1\tgo\tgo\tVERB\t_\t_\t0\troot\t_\tEntity=B-PER|Slot=B-date\n1.1\tx\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "2\t5 000\t_\tNUM\t_\t_\t1\tobj:x\t_\tEntity=I-PER\n\n"
    "# intent = a\n1\tb\tb\tNOUN\t_\t_\t2\tnsubj\t_\t_\n2\tc\tc\tVERB\t_\t_\t0\troot\t_\tSlot=B-x\n\n"
)
TMX = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4"><header srclang="en"/><body>\n'
    '<tu><tuv xml:lang="en-US"><seg>A <bpt i="1">x</bpt>cat &amp; dog</seg></tuv>'
    '<tuv xml:lang="de"><seg>Eine Katze</seg></tuv></tu>\n<tu><tuv lang="DE"><seg/></tuv></tu>\n</body>'
    "</tmx>\n"
)


def _lines(data: bytes, folder: Path) -> None:
    """A refusal, or as many lines as there are line feeds, that spell the file."""
    found = list(read_lines(put(folder, "a", data)))
    text = data.removeprefix(b"\xef\xbb\xbf")
    assert len(found) == text.count(b"\n") + (not text.endswith(b"\n") and bool(text or data))
    assert "\n".join(found).encode().replace(b"\r", b"") == text.removesuffix(b"\n").replace(b"\r", b"")


def _packed(data: bytes, folder: Path) -> None:
    """The first line says how the rest is packed."""
    suffix, _, rest = data.partition(b"\n")
    name = suffix.decode("latin-1") if suffix in (b".gz", b".xz", b".zst") else ""
    path = put(folder, f"a{name}", rest)
    every(lambda: read_lines(path), lambda: read_labelled("nli", path, "en"))


def _pack() -> list[tuple[str, bytes]]:
    import zstandard

    text = (SENTENCES * 3).encode()
    frames = zstandard.ZstdCompressor().compress(text)
    return [
        ("binary", b".gz\n" + gzip.compress(text, mtime=0) + gzip.compress(b"more\n", mtime=0)),
        ("binary", b".xz\n" + lzma.compress(text)),
        ("binary", b".zst\n" + frames + frames),
        (
            "binary",
            b".zst\n" + zstandard.ZstdCompressor(write_checksum=True).compress(b"a\tb\tneutral\n" * 99),
        ),
    ]


def _tsv(data: bytes, folder: Path) -> None:
    path = str(put(folder, "a.tsv", data))
    every(lambda: read_bitext([path], ("en", "de"), tokenised=True), lambda: read_pairs([path], ("en", "de")))


def _triple(data: bytes, folder: Path) -> None:
    path = str(put(folder, "a.txt", data))
    every(lambda: guess_format([path]), lambda: read_pairs([path], ("en", "de")))


def _two(data: bytes, folder: Path) -> None:
    first, _, second = data.partition(BREAK)
    paths = [str(put(folder, name, part)) for name, part in (("a.en", first), ("a.de", second))]
    found = read_bitext(paths, ("en", "de"), tokenised=True, cleaning=None)
    assert len(found) == len(found.target) == len(found.line)


def _tmx(data: bytes, folder: Path) -> None:
    path = str(put(folder, "a.tmx", data))
    every(lambda: read_pairs([path], ("en", "de")))


def _conllu(data: bytes, folder: Path) -> None:
    path = str(put(folder, "a.conllu", data))
    every(
        lambda: read_conllu(path),
        lambda: read_bitext([path, path], ("en", "de")),
        lambda: read_sentences(path, "en"),
    )


def _dictionary(data: bytes, folder: Path) -> None:
    found = read_dictionary(put(folder, "en-de.txt", data))
    assert all(a and b for a, b in found.pairs) and found.swapped().swapped() == found


# -------------------------------------------------------------------------------------------- labelled

NLI = texts(
    "premise\thypothesis\tlabel\tlanguage\nA b\tc\tneutral\ten\nd\te\tcontradictory\tde\n",
    "a\tb\t0\nc\td\tentailment\nx\ty\t-\n",
)
NLI_JSON = [
    ("jsonl", b'{"sentence1": "a", "sentence2": "b", "gold_label": "neutral", "pairID": "1"}'),
    ("jsonl", b'{"premise": {"en": "a", "de": "b"}, "hypothesis": "c", "label": 0, "language": "en"}'),
    ("jsonl", b'{"premise": "a", "hypothesis": {"language": ["en"], "translation": ["b"]}, "label": 1}'),
]
NER = texts(
    "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\n\nPeter NNP I-NP I-PER\n",
    "en:New\tB-LOC\nen:York\tI-LOC\nen:is\tO\n\nen:a\tO\n",
    "# id = 3\n1\tEU\tB-ORG\tO\n2\tis\tO\tO\n",
    TREE,
)
SLOTS = texts(
    "# intent: alarm\n1\tset\talarm/set\tNoLabel\n2\tnow\talarm/set\tB-datetime\n\n1\ta\tb\tO\n",
    "a O\nb B-x\n",
    TREE,
)
POS = texts("a\tNN\nb\tVB\n\nc\tNN\n", TREE)
SQUAD = {
    "version": "1.1",
    "data": [
        {
            "title": "t",
            "paragraphs": [
                {
                    "context": "It has 308 points, and cafe\u0301 \U0001f600 more.",
                    "qas": [
                        {
                            "id": "q1",
                            "question": "How many?",
                            "answers": [{"text": "308", "answer_start": 7}],
                        },
                        {"id": "q1", "question": "?", "answers": [{"text": "café", "answer_start": 24}]},
                        {"id": "finnish-2", "question": "?", "is_impossible": True, "answers": []},
                    ],
                }
            ],
        }
    ],
}
QA = [("json", json.dumps(SQUAD).encode()), ("json", json.dumps(SQUAD, indent=1).encode())]


def _labelled(task: str) -> Callable[[bytes, Path], None]:
    formats = [None, *(name for name in FORMATS[task] if name not in ("dataset", "folder"))]

    def run(data: bytes, folder: Path) -> None:
        path = put(folder, "a", data)
        chosen = formats[len(data) % len(formats)]
        every(
            lambda: read_labelled(task, path, "en", format=chosen, skip_bad=True).fingerprint,
            lambda: read_labelled(task, path, "en"),
            lambda: read_unlabelled(task, path, "en", skip_bad=bool(len(data) % 2)).fingerprint,
        )

    return run


def _slot_folder(data: bytes, folder: Path) -> None:
    words, _, tags = data.partition(BREAK)
    put(folder, "seq.in", words)
    put(folder, "seq.out", tags)
    read_labelled("slots", folder, "en")


# ----------------------------------------------------------------------------------------------- links

BITEXT = Bitext.of(("en", "de"), [["a", "b"], ["c"], ["d", "e", "f"]], [["x"], ["y", "z"], ["u", "v", "w"]])
PHARAOH = texts(
    "0-0 1-0\n0-0:0.5\n0p0 1?1 2-2:1e-3\n", "1 1 1 S\n1 2 1 P\n3 3 3\n", "a b\tx\t0-0\nc\ty z\t0-1\n\n"
)
PUD = [("json", b'[{"1": ["1"], "X": ["2"]}, {"1": ["1", "X"]}]')]
WORDS = "1\t{}\t_\tNOUN\t_\t_\t0\troot\t_\t_\n2\tb\t_\tX\t_\t_\t1\tobj\t_\t_\n\n"


def _links(data: bytes, folder: Path) -> None:
    path = put(folder, "a.links", data)
    for one_based in (False, True):
        try:
            found = read_links(path, BITEXT, one_based=one_based)
            assert np.isfinite(found.score).all()
        except CalqueError:
            pass
    read_gold(path, BITEXT)


def _pud(data: bytes, folder: Path) -> None:
    inside = folder / "en-ru"
    if not inside.exists():
        inside.mkdir()
        for name in ("en.conllu", "target.conllu"):
            put(inside, name, (WORDS.format("a") * 2).encode())
    put(inside, "alignment.json", data)
    read_pud(inside)


# --------------------------------------------------------------------------------------------- vectors

VEC = texts("3 2\nthe 0.1 -2e-3\ncat 1 2\nNew York 3 4\n", "the 0.1 0.2 0.3\ncat 1 2 3\n")


def _binary_vectors(ended: bool) -> bytes:
    rows = (w.encode() + b" " + np.float32([1.5, -2]).tobytes() + b"\n" * ended for w in ("the", "cat", "a"))
    return b"3 2\n" + b"".join(rows)


def _vec(data: bytes, folder: Path) -> None:
    for name in ("a.vec", "a.vec.gz"):
        packed = gzip.compress(data, 1) if name.endswith("gz") else data
        found = read_vec(put(folder, name, packed))
        assert found.vectors.shape == (len(found), found.width) and np.isfinite(found.vectors).all()


def _bin(data: bytes, folder: Path) -> None:
    found = read_vec(put(folder, "a.bin", data))
    assert np.isfinite(found.vectors).all()


def e5_file(layers: int = 1, width: int = 32) -> bytes:
    """A packed encoder of the smallest size."""
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "▁a", "b"]
    blob = [piece.encode() for piece in pieces]
    cuts = np.cumsum([0, *map(len, blob)]).astype("<u4")
    out = struct.pack("<4sI7ifi", b"E5S1", 1, width, layers, 2, 64, len(pieces), 8, 1, 1e-5, 32)
    out += struct.pack("<5iQ", len(pieces), 0, 2, 1, 3, int(cuts[-1]))
    out += cuts.tobytes() + np.zeros(len(pieces), "<f4").tobytes() + b"".join(blob)
    out += struct.pack("<iI", 1, 1) + struct.pack("<IBI", ord("Ａ"), 1, ord("A"))
    out += struct.pack("<i", 1) + struct.pack("<H", 8) + b"emb.word" + struct.pack("<BIQQ", 0, 2, 0, 64)
    return out


# -------------------------------------------------------------------------------------------- settings

RECIPE = b"""verb = "link"
paths = ["a.tsv"]
languages = ["en", "de"]
seed = 3
threshold = 0.001
filters = ["one-to-one", "score>=0.5"]
limit = 100

[inputs]
text = "abc"
"""
STUDY = b"""about = "Does alignment help?"
seeds = [0, 1]

[encoders]
e5 = "e5-small-q4"
mine = {text = ["en=a.tsv"], steps = 5}

[links]
test = 5
text.de = "news.en-de.tsv"

[align]
methods = ["centring", "weak"]
weak.steps = 200
vary.size = [10, 20]

[measure.words]
layers = "last"

[transfer.ner]
train.en = "a.tsv"
test.de = "b.tsv"

[world]
count = 10
"""
PRESET = (
    b'about = "x"\nbase = "wu2020-l2"\n\n[align]\nmethod = "weak"\nsteps = 10\n\n[link]\nlinker = "hmm"\n'
)


def _recipe(data: bytes, folder: Path) -> None:
    path = put(folder, "recipe.toml", data)
    kinds = (LinkRecipe, WordsRecipe, TransferRecipe, MineRecipe, WorldRecipe, ExtendRecipe)
    for kind in kinds:
        if kind is LinkRecipe or f'verb = "{kind.verb}"'.encode() in data:
            kind.load(path).digest()


def _study(data: bytes, folder: Path) -> None:
    load_study(put(folder, "a.toml", data)).recipe.to_toml()


def _plan(data: bytes, folder: Path) -> None:
    from calque.study.checking import check_study

    for name in ("news.en-de.tsv", "a.tsv", "b.tsv"):
        if not (folder / name).exists():
            put(folder, name, b"a\tb\n")

    check_study(put(folder, "a.toml", data))


def _change(data: bytes, folder: Path) -> None:
    path = folder / "a.toml"
    if not path.exists():
        put(folder, "a.toml", STUDY)
    load_study(path, [text(data)])


def _preset(data: bytes, folder: Path) -> None:
    load_preset(put(folder, "a.toml", data))


def _names(data: bytes, folder: Path) -> None:
    """All that reads a word of the command line."""
    given = text(data)
    tried(
        lambda: check_language(given),
        lambda: languages_of(f"{given}-de.txt"),
        lambda: parse_filter(given),
        lambda: parse_layers(given, 12),
        lambda: by_language(given) and short_name(given) if is_by_language(given) else None,
        lambda: described(given),
        lambda: guess_format([given]) if "/" not in given and "\0" not in given else None,
    )
    primary_subtag(given)


def _environment(data: bytes, folder: Path) -> None:
    given = data.replace(b"\0", b"").decode("utf-8", "surrogateescape")
    before = {name: os.environ.get(name) for name in ("CALQUE_CACHE_GB", "CALQUE_CACHE")}
    os.environ["CALQUE_CACHE_GB"] = os.environ["CALQUE_CACHE"] = given
    try:
        every(lambda: cache_limit() >= 0 or 1 / 0, cache_root)
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value


# --------------------------------------------------------------------------------------------- folders


def _make_pairs(folder: Path) -> None:
    pairs = WordPairs.of(BITEXT, [0, 0, 2], [0, 1, 2], [0, 0, 2], [0.5, 1, 1], "hmm")
    tags = np.array([1, 2, 3, 4, 5, 6], np.uint8)
    from dataclasses import replace

    tagged = replace(BITEXT, source=replace(BITEXT.source, tags=tags))
    save_pairs(folder, replace(pairs, bitext=tagged))


def _read_pairs(folder: Path) -> None:
    """All that the loaded pairs are asked for later must be there."""
    pairs = load_pairs(folder)
    pairs.types(), pairs.bitext.fingerprint, pairs.fingerprint
    for side in (pairs.bitext.source, pairs.bitext.target):
        side.at(WordIndex.every(side))
        list(side)
        assert side.tags is None or (len(side.tags) == len(side.ids) and int(side.tags.max(initial=0)) < 18)
    assert len(pairs.bitext.line) == len(pairs.bitext)
    assert np.isfinite(pairs.score).all()


RESULT = {
    "task": "words", "metric": "accuracy", "languages": ["en", "de"], "encoder": "e5", "layer": 3,
    "value": 0.5, "low": 0.4, "high": 0.6, "signature": "s", "items": "abc", "seed": 1,
    "group": ["pos", "NOUN"],
}  # fmt: skip


def _results(data: bytes, folder: Path) -> None:
    from calque.store import result_line, save_results

    found = load_results(put(folder, "results.jsonl", data))
    save_results(folder / "again.jsonl", found)
    # Parts of a signature that say nothing go.
    whole = (replace(one, signature="|".join(filter(None, one.signature.split("|")))) for one in found)
    again = [result_line(one) for one in load_results(folder / "again.jsonl")]
    assert again == sorted(map(result_line, whole))


def _items(data: bytes, folder: Path) -> None:
    """Items are named by what they hold."""
    digest = hashlib.sha256(data).hexdigest()[:16]
    path = put(folder, f"{digest}.safetensors", data)
    try:
        load_items(folder, digest)
    finally:
        path.unlink()


def _items_seeds() -> list[tuple[str, bytes]]:
    keys, values = {"word": np.array([1, 2], np.int64)}, {"hit": np.array([True, False])}
    with tempfile.TemporaryDirectory() as place:
        digest = save_items(Path(place), Items(keys, np.array([0, 1], np.int64), values))
        return [("safetensors", Path(place, f"{digest}.safetensors").read_bytes())]


def _make_static(folder: Path) -> None:
    tables = {code: WordTable.of(["a", "b"], np.eye(2) + k) for k, code in enumerate(("en", "de"))}
    save_static(folder, StaticEncoder(tables))


def _read_static(folder: Path) -> None:
    found = load_static(folder)
    for side in (BITEXT.source, BITEXT.target):
        found.word_vectors(side, layers=[0])
    found.fingerprint, found.name + "", found.languages


class _Inner:
    """An encoder of which only the size is asked."""

    name, width, depth, languages, fingerprint = "inner", 2, 1, None, "f"


def _make_aligned(folder: Path) -> None:
    from calque.encoders.aligned import AlignedEncoder

    folder.mkdir(exist_ok=True)
    maps = {
        MapKey("de", "en", 1): SpaceMap(
            (Unit(), Shift(np.ones(2, np.float32)), Matrix(np.eye(2, dtype=np.float32)))
        ),
        MapKey("en", "en", 1): SpaceMap(),
    }
    seen = {("en", "de"): frozenset({("a", "b"), ("c", "d")})}
    about = {"method": "centring", "encoder": {"name": "inner", "prefix": "query: ", "max_length": 8}}
    save_maps(folder, AlignedEncoder(_Inner(), maps, "en", "mean", seen, about))  # type: ignore[arg-type]


def _read_aligned(folder: Path) -> None:
    began = Beginning.read(folder)
    assert began is None or began.max_length is None or began.max_length == int(began.max_length)
    found = load_maps(folder, _Inner())  # type: ignore[arg-type]
    assert len(found.fingerprint) == 64 and found.name and found.layers is not None
    found.seen_by(("en", "de"))
    moved = found.map_for("de", 1).apply(np.ones((3, 2), np.float32))
    assert moved.shape == (3, 2)


def _json(data: bytes, folder: Path) -> None:
    json.dumps(read_json(put(folder, "a.json", data)), ensure_ascii=False).encode()


def _words(data: bytes, folder: Path) -> None:
    """Words of six languages hold neither spaces nor nothing, and spell what was said."""
    said = data.decode("utf-8", "replace")
    for code in ("en", "de", "zh", "th", "ja", "fr"):
        words = tokeniser(code)(said)
        assert all(word and word == "".join(word.split()) for word in words), (code, words)
        assert len("".join(words)) <= len(said) + 8 * said.count(".")


@cache
def targets() -> dict[str, Target]:
    """Every target by name."""
    return {
        "lines": Target(_lines, TSV),
        "compressed": Target(_packed, _pack()),
        "tsv": Target(_tsv, TSV),
        "triple": Target(_triple, TRIPLE),
        "two-files": Target(_two, [("text", b"a b\nc\n" + BREAK + b"x\ny z\n")]),
        "tmx": Target(_tmx, texts(TMX, TMX.replace("UTF-8", "ISO-8859-1").replace("Katze", "Katz"))),
        "conllu": Target(_conllu, texts(TREE)),
        "dictionary": Target(_dictionary, texts("cat Katze\nbank\tdas Ufer\n\nbank Bank\n")),
        "nli": Target(_labelled("nli"), NLI + NLI_JSON),
        "ner": Target(_labelled("ner"), NER),
        "slots": Target(_labelled("slots"), SLOTS),
        "slot-folder": Target(_slot_folder, [("text", b"set it now\na\n" + BREAK + b"O O B-x\nO\n")]),
        "pos": Target(_labelled("pos"), POS),
        "parsing": Target(_labelled("parsing"), texts(TREE)),
        "qa": Target(_labelled("qa"), QA + texts("?\ta b\n")),
        "links": Target(_links, PHARAOH),
        "pud": Target(_pud, PUD),
        "vec": Target(_vec, VEC),
        "word2vec": Target(_bin, [("binary", _binary_vectors(True)), ("binary", _binary_vectors(False))]),
        "e5": Target(lambda data, folder: read_packed(put(folder, "e5.bin", data)), [("binary", e5_file())]),
        "recipe": Target(_recipe, [("toml", RECIPE), ("text", RECIPE)]),
        "study": Target(_study, [("toml", STUDY), ("text", STUDY)]),
        "plan": Target(_plan, [("toml", STUDY)]),
        "change": Target(
            _change, texts("align.methods=centring,weak", "seeds=[0, 1]", "about=text", "links.x.y={a=1}")
        ),
        "preset": Target(_preset, [("toml", PRESET), ("text", PRESET)]),
        "names": Target(
            _names, texts("en", "zh-Hant", "score>=0.5", "last4,0,3-5", "en=a.vec,de=b.vec", "hf:a:b:train")
        ),
        "environment": Target(_environment, texts("20", "0.5", "1e3")),
        "results": Target(_results, [("jsonl", json.dumps(RESULT).encode())]),
        "items": Target(_items, _items_seeds()),
        "pairs": in_folder(_make_pairs, _read_pairs, KINDS),
        "static": in_folder(_make_static, _read_static, KINDS),
        "aligned": in_folder(_make_aligned, _read_aligned, KINDS),
        "json": Target(_json, [("json", json.dumps(SQUAD).encode())]),
        "words": Target(
            _words,
            texts(
                SENTENCES,
                "Mr. Smith's e-mail costs $5.00, doesn't it?",
                *map(str, ("东京 を... ok", "ไทย ภาษา")),
            ),
        ),
        **folders.folders(),
        **algorithms.algorithms(),
        **pieces.pieces(),
    }
