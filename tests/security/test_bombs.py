"""Small files that stand for enormous ones, and memories without end: refused in little memory."""

import gzip
import lzma
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from calque.encoders.tables import read_vec
from calque.errors import BadInput
from calque.text import lines, readers
from calque.text.labelled.open import read_labelled
from calque.text.lines import read_lines
from calque.text.readers import read_pairs

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "xz": lzma.compress,
    "zst": lambda data: zstandard.ZstdCompressor().compress(data),
}


def bomb(path: Path, part: bytes, times: int, before: bytes = b"", after: bytes = b"") -> Path:
    """A packed file of a part again and again: all three forms may stand one after the other."""
    pack = PACKERS[path.suffix.removeprefix(".")]
    path.write_bytes(pack(before) + pack(part) * times + pack(after))
    return path


#: Reads a file and prints what was said of it, and by how many MiB the process has grown.
READ = """
import resource, sys
from calque.errors import BadInput
from calque.text import lines
from calque.text.readers import read_pairs
lines.LONGEST_LINE = int(sys.argv[2])
def grown(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before = grown()
try:
    for _ in read_pairs([sys.argv[1]], ("en", "de")): pass
except BadInput as error:
    print(grown() - before, error)
"""


def growth(path: Path, longest: int = lines.LONGEST_LINE) -> tuple[float, str]:
    line = [sys.executable, "-c", READ, path, str(longest)]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    size, _, told = done.stdout.partition(" ")
    return float(size), told


@pytest.mark.parametrize("ending", list(PACKERS))
def test_a_line_without_end_does_not_fill_the_memory(ending: str, tmp_path: Path) -> None:
    """A file of at most 17 MB that holds 16 GiB in one line."""
    path = bomb(tmp_path / f"a.tsv.{ending}", bytes(1 << 24), 1024)
    assert path.stat().st_size < 17.2e6
    longest = lines.LONGEST_LINE if ending == "gz" else 1 << 25
    size, told = growth(path, longest)
    assert f"holds a line of over {longest >> 20} MiB" in told and size < max(4 * longest >> 20, 300)


@pytest.mark.parametrize("ending", list(PACKERS))
def test_many_lines_are_read_one_by_one(ending: str, tmp_path: Path) -> None:
    """What unpacks to a thousand times its size is read to its end where it is made of lines."""
    path = bomb(tmp_path / f"a.{ending}", b"word word\n" * 100_000, 20)
    assert sum(1 for _ in read_lines(path)) == 2_000_000


def test_zst_unpacks_little_by_little(tmp_path: Path) -> None:
    """One frame that unpacks by 30,000: no step may unpack all of it."""
    path = bomb(tmp_path / "a.tsv.zst", bytes(1 << 30), 1)
    assert path.stat().st_size < 200_000
    size, _ = growth(path)
    assert size < 1000


@pytest.mark.parametrize("ending", list(PACKERS))
def test_what_is_read_whole_is_bounded(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LARGEST", 1 << 20)
    monkeypatch.setattr(lines, "RATIO", 2)
    path = bomb(tmp_path / f"a.json.{ending}", b"\n" * (1 << 20), 3, b'{"data":\n[')
    with pytest.raises(BadInput, match="holds more of over 1 MiB"):
        read_labelled("qa", path, "en", format="squad")


def test_so_are_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LARGEST", 1 << 20)
    monkeypatch.setattr(lines, "RATIO", 2)
    monkeypatch.setattr(lines, "LONGEST_LINE", 1 << 20)
    bomb(tmp_path / "a.gz", bytes(1 << 21), 4, b"5 4\na ")
    for name in ("a.vec.gz", "a.bin.gz"):
        (tmp_path / name).write_bytes((tmp_path / "a.gz").read_bytes())
        with pytest.raises(BadInput, match="unpacked it holds"):
            read_vec(tmp_path / name)


# --------------------------------------------------------------------------------------------------- tmx

HEAD = '<?xml version="1.0"?>{}<tmx version="1.4"><header/><body>'
UNIT = '<tu><tuv xml:lang="en"><seg>{}</seg></tuv><tuv xml:lang="de"><seg>b</seg></tuv></tu>'
END = "</body></tmx>"
LAUGHS = "".join(f'<!ENTITY l{k} "{f"&l{k - 1};" * 10}">' for k in range(1, 10))
ENTITIES = {
    "billion laughs": (f'<!DOCTYPE tmx [<!ENTITY l0 "ha">{LAUGHS}]>', "&l9;"),
    "quadratic": (f'<!DOCTYPE tmx [<!ENTITY a "{"a" * 50_000}">]>', "&a;" * 50_000),
    "a file": ('<!DOCTYPE tmx [<!ENTITY a SYSTEM "file:///etc/passwd">]>', "&a;"),
    "a page": ('<!DOCTYPE tmx [<!ENTITY a SYSTEM "http://127.0.0.1:9/a">]>', "&a;"),
    "a parameter": ('<!DOCTYPE tmx [<!ENTITY % a SYSTEM "file:///etc/passwd"> %a;]>', ""),
    "parameters": ("<!DOCTYPE tmx [<!ENTITY % a \"<!ENTITY b 'x'>\"> %a;]>", "&b;"),
}


@pytest.mark.parametrize("name", list(ENTITIES))
def test_entities_of_a_translation_memory_are_refused(name: str, tmp_path: Path) -> None:
    declared, used = ENTITIES[name]
    path = tmp_path / "a.tmx"
    path.write_text(HEAD.format(declared) + UNIT.format(used) + END, encoding="utf-8")
    with pytest.raises(BadInput, match="declares XML entities"):
        list(read_pairs([str(path)], ("en", "de")))


def test_a_document_type_elsewhere_is_not_fetched(tmp_path: Path) -> None:
    """Many translation memories name one; what it would declare is not there, and nothing of it is read."""
    (tmp_path / "tmx14.dtd").write_text('<!ENTITY secret "told">', encoding="utf-8")
    declared = f'<!DOCTYPE tmx SYSTEM "{tmp_path}/tmx14.dtd">'
    path = tmp_path / "a.tmx"
    path.write_text(HEAD.format(declared) + UNIT.format("a &secret; &amp;") + END, encoding="utf-8")
    (pair,) = read_pairs([str(path)], ("en", "de"))
    assert "told" not in pair.source and pair.source.startswith("a")


ENDLESS = {
    "text": ("<tu><tuv xml:lang='en'><seg>", "words and words\n"),
    "nesting": ("<tu><tuv xml:lang='en'><seg>", "<ph>"),
    "a tag": ("<tu a='", "aaaaaaa\n"),
    "a comment": ("<!-- ", "aaaaaaa\n"),
    "languages": ("<tu>", "<tuv xml:lang='en'><seg>a</seg></tuv>\n"),
}


@pytest.mark.parametrize("name", list(ENDLESS))
def test_a_translation_memory_without_end_is_refused(name: str, tmp_path: Path) -> None:
    begin, part = ENDLESS[name]
    times = (1 << 24) // len(part)
    path = bomb(tmp_path / "a.tmx.gz", (part * times).encode(), 16, (HEAD.format("") + begin).encode())
    size, told = growth(path)
    assert "no translation unit in 4 MiB" in told and size < 600


def test_a_large_translation_memory_is_read(tmp_path: Path) -> None:
    many = (UNIT.format("a " * 500) * 100).encode()
    path = bomb(tmp_path / "a.tmx.gz", many, 80, HEAD.format("").encode(), END.encode())
    assert (
        sum(1 for _ in read_pairs([str(path)], ("en", "de"))) == 8000
        and 80 * len(many) > readers.LARGEST_UNIT
    )
