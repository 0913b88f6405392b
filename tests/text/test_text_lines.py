"""Lines of files: compression, encodings, line ends."""

import builtins
import gzip
import lzma
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calque.errors import BadInput, MissingExtra
from calque.pipeline.runs import input_digests
from calque.text.lines import bare_suffix, read_lines

zstandard = pytest.importorskip("zstandard")
PACK: dict[str, Callable[[bytes], bytes]] = {
    "": lambda data: data,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: zstandard.ZstdCompressor().compress(data),
}
TEXT = "eins\nzwei\u2028drei\x85vier\x0bfünf\r\n\nsechs"


@pytest.mark.parametrize("suffix", PACK)
def test_every_compression_gives_the_same_lines(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"text.txt{suffix}"
    path.write_bytes(PACK[suffix](b"\xef\xbb\xbf" + TEXT.encode()))
    assert list(read_lines(path)) == ["eins", "zwei\u2028drei\x85vier\x0bfünf", "", "sechs"]


@settings(deadline=None)
@given(st.lists(st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]))))
def test_what_is_written_line_by_line_is_read_back(lines: list[str]) -> None:
    import tempfile

    if lines and lines[0].startswith("\ufeff"):
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "text")
        path.write_bytes("".join(line + "\n" for line in lines).encode())
        assert list(read_lines(path)) == lines


@pytest.mark.parametrize("suffix", PACK)
def test_broken_utf8_is_placed(tmp_path: Path, suffix: str) -> None:
    data = b"\xef\xbb\xbfgut\nB\xc3\xa4r, b\xe4r\nmehr\n" * 2
    path = tmp_path / f"latin1.txt{suffix}"
    path.write_bytes(PACK[suffix](data))
    offset = data.index(b"\xe4r")
    with pytest.raises(BadInput, match=f"latin1.txt.*:2: byte 0xe4 at offset {offset} "):
        list(read_lines(path))


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
@pytest.mark.parametrize("keep", [0.5, 0.999])
def test_a_file_cut_short_is_told(tmp_path: Path, suffix: str, keep: float) -> None:
    path = tmp_path / f"cut{suffix}"
    packed = PACK[suffix]("".join(f"{i * i}\n" for i in range(20000)).encode())
    path.write_bytes(packed[: int(len(packed) * keep)])
    with pytest.raises(BadInput, match=r"cut\.\w+: broken compressed file"):
        list(read_lines(path))


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_a_wrong_suffix_is_told(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"plain{suffix}"
    path.write_text("not compressed at all")
    with pytest.raises(BadInput, match="broken compressed file"):
        list(read_lines(path))


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_files_joined_by_cat_are_read_whole(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"two{suffix}"
    path.write_bytes(PACK[suffix](b"a\nb\n") + PACK[suffix](b"c\n" * 300000))
    assert sum(1 for _ in read_lines(path)) == 300002


def test_missing_files_and_folders(tmp_path: Path) -> None:
    for suffix in PACK:
        with pytest.raises(BadInput, match="no such file"):
            list(read_lines(tmp_path / f"nothing{suffix}"))
    with pytest.raises(BadInput, match="cannot be read"):
        list(read_lines(tmp_path))


def test_zst_without_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.zst"
    path.write_bytes(PACK[".zst"](b"a\n"))
    real = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name == "zstandard":
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=r"calque\[zstd\]"):
        list(read_lines(path))


def test_suffixes() -> None:
    assert [bare_suffix(name) for name in ("a.b.tmx.zst", "a.gz", "a.CONLLU", "dir.d/a")] == [
        ".tmx",
        "",
        ".conllu",
        "",
    ]


@pytest.mark.parametrize("name", ["a\0b", "a\ud800"])
def test_names_that_no_file_can_have(name: str) -> None:
    with pytest.raises(BadInput, match="not a name that a file can have"):
        list(read_lines(name))


def test_utf16_is_told_and_no_line_is_lost(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes("eins\nzwei\n".encode("utf-16"))
    with pytest.raises(BadInput, match=r":1: byte 0xff at offset 0 is not UTF-8"):
        list(read_lines(tmp_path / "a"))
    (tmp_path / "b").write_bytes(b"\xef\xbb\xbfa\xff\n")
    with pytest.raises(BadInput, match=r":1: byte 0xff at offset 4 "):
        list(read_lines(tmp_path / "b"))


@pytest.mark.parametrize("read", [lambda path: list(read_lines(path)), lambda path: input_digests([path])])
def test_a_pipe_is_refused_for_its_beginning_would_be_lost(read: Callable[[str], Any]) -> None:
    out, into = os.pipe()
    os.write(into, b"eins\nzwei\n")
    os.close(into)
    try:
        with pytest.raises(
            BadInput, match=r"/dev/fd/\d+: is a pipe or a device.*more than once \(write it to a file"
        ):
            read(f"/dev/fd/{out}")
    finally:
        os.close(out)


def test_lines_that_end_at_carriage_returns_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for text in (b"eins\rzwei\rdrei", b"eins\rzwei"):
        path.write_bytes(text)
        with pytest.raises(BadInput, match=r"carriage returns only.*convert its line ends"):
            list(read_lines(path))
    for text, lines in ((b"a\rb\rc\nd", ["a\rb\rc", "d"]), (b"one\r", ["one"])):
        path.write_bytes(text)
        assert list(read_lines(path)) == lines
