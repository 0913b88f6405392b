"""Inputs that are nearly right: valid ones, broken a little, by bytes, by lines and by the shape of JSON.

Everything is drawn from one `random.Random`, so that a seed and a number name an input for good.
"""

import json
import random
import re
import struct
import tomllib
from collections.abc import Callable
from typing import Any

import tomli_w

from corners import CORNERS, WHOLE

LONGEST = 1 << 16

#: Characters that readers stumble over, with halves of characters among them.
ODD = [odd.encode("utf-8", "surrogatepass") for held in CORNERS.values() for odd in held]
#: Numbers that do not fit, and what is no number.
_NUMBERS = (
    "0 -1 1 -0 00 1e999 -1e999 1e-999 1e39 nan NaN inf Infinity -Infinity 2147483648 4294967295 "
    "9223372036854775807 9223372036854775808 18446744073709551616 1000000000000 0x10 1_0 ٣ ² 0.1.1 1e5"
)
NUMBERS = [*_NUMBERS.split(" "), "9" * 5000, "-" + "9" * 400]
#: What opens and never closes, what means something to one format or another.
_TOKENS = (
    "{ } [ ] \" ' \\ : , = # | ||| - p ? _ < > & ; % \\ud800 \\udc00 \\u0000 \\ud83d\\ude00 null true "
    "B-x I-x O B- I- -DOCSTART- # <seg> </seg> <tu> <!DOCTYPE &a; ]]> xml:lang 1-2 1.1 hf: en= ,"
)
TOKENS = [
    *_TOKENS.split(" "),
    "[" * 5000,
    '{"a":' * 5000,
    "a." * 3000 + "a",
    "(" * 3000,
    "x" * 20000,
    "\xff",
    " ||| ",
    "# id = ",
]
BROKEN = (
    b"\xff",
    b"\xfe\xff",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
)
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, -(2**63) - 1, 10**400, 1.5, -0.0, 1e308, float("nan"),
    float("inf"), "", " ", "\0", "\ud800", "\u2028", "\x85", "a\nb", "a\tb", "x" * 3000, [], {}, [[]], [None],
    [1], ["a", "b"], {"": 0}, {"a": {"b": []}}, "en", "0", "2", "-1",
)  # fmt: skip

Mutation = Callable[[random.Random, bytes], bytes]


# ------------------------------------------------------------------------------------- bytes and lines


def _cut(draw: random.Random, data: bytes) -> tuple[int, int]:
    a, b = sorted((draw.randint(0, len(data)), draw.randint(0, len(data))))
    return a, min(b, a + draw.choice((1, 2, 8, 64, 1 << 16)))


def _drop(draw: random.Random, data: bytes) -> bytes:
    a, b = _cut(draw, data)
    return data[:a] + data[b:]


def _repeat(draw: random.Random, data: bytes) -> bytes:
    a, b = _cut(draw, data)
    return data[:b] + data[a:b] * draw.choice((1, 1, 2, 3, 50)) + data[b:]


def _truncate(draw: random.Random, data: bytes) -> bytes:
    return data[: draw.randint(0, len(data))]


def _flip(draw: random.Random, data: bytes) -> bytes:
    if not data:
        return b"\0"
    at = draw.randrange(len(data))
    return (
        data[:at]
        + bytes([draw.choice((data[at] ^ 1 << draw.randrange(8), draw.randrange(256)))])
        + data[at + 1 :]
    )


def _insert(draw: random.Random, data: bytes) -> bytes:
    kind = draw.random()
    if kind < 0.4:
        piece = draw.choice(ODD)
    elif kind < 0.8:
        piece = draw.choice(TOKENS).encode("utf-8", "surrogatepass")
    elif kind < 0.95:
        piece = draw.choice(NUMBERS).encode()
    else:
        piece = draw.choice(BROKEN)
    at = draw.randint(0, len(data))
    return data[:at] + piece + data[at:]


def _number(draw: random.Random, data: bytes) -> bytes:
    found = list(re.finditer(rb"-?\d+(\.\d+)?", data[:LONGEST]))
    if not found:
        return _insert(draw, data)
    one = draw.choice(found)
    return data[: one.start()] + draw.choice(NUMBERS).encode() + data[one.end() :]


def _word(draw: random.Random, data: bytes) -> bytes:
    found = list(re.finditer(rb"[^\s\"',:\[\]{}=|<>]+", data[:LONGEST]))
    if not found:
        return _insert(draw, data)
    one = draw.choice(found)
    piece = draw.choice((draw.choice(ODD), draw.choice(found)[0], draw.choice(NUMBERS).encode(), b""))
    return data[: one.start()] + piece + data[one.end() :]


def _lines(draw: random.Random, data: bytes) -> bytes:
    lines = data.split(b"\n")
    at, other = draw.randrange(len(lines)), draw.randrange(len(lines))
    match draw.randrange(6):
        case 0:
            del lines[at]
        case 1:
            lines.insert(other, lines[at])
        case 2:
            lines[at], lines[other] = lines[other], lines[at]
        case 3:
            lines.insert(at, draw.choice((b"", b" ", b"\t", b"#", b"\xe2\x80\xa8")))
        case 4:
            cells = lines[at].split(b"\t")
            cells.insert(draw.randint(0, len(cells)), draw.choice(cells))
            lines[at] = b"\t".join(cells)
        case _:
            cells = lines[at].split(b"\t")
            del cells[draw.randrange(len(cells))]
            lines[at] = b"\t".join(cells)
    return b"\n".join(lines)


def _ends(draw: random.Random, data: bytes) -> bytes:
    return data.replace(b"\n", draw.choice((b"\r\n", b"\r", b"\x0b", "\u2028".encode(), "\x85".encode())))


def _coded(draw: random.Random, data: bytes) -> bytes:
    text = data.decode("utf-8", "replace")
    return draw.choice(
        (
            lambda: b"\xef\xbb\xbf" + data,
            lambda: text.encode("utf-16"),
            lambda: text.encode("utf-16-be"),
            lambda: text.encode("latin-1", "replace"),
        )
    )()


BY_BYTES: tuple[Mutation, ...] = (
    _drop, _repeat, _truncate, _flip, _insert, _insert, _number, _word, _word, _lines, _lines, _ends, _coded,
)  # fmt: skip
BINARY: tuple[Mutation, ...] = (_drop, _repeat, _truncate, _flip, _flip, _flip, _number)


# -------------------------------------------------------------------------------------------- shapes


def _places(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Every (holder, key) inside a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found.append((value, key))
        _places(inner, found)
    return found


def reshape(draw: random.Random, value: Any) -> Any:
    """The value with one place in it changed; it is changed itself."""
    places = _places(value, [])
    if not places:
        return draw.choice(VALUES)
    holder, key = draw.choice(places)
    match draw.randrange(8):
        case 0:
            del holder[key]
        case 1:
            holder[key] = [holder[key]]
        case 2:
            holder[key] = {str(key): holder[key]}
        case 3:
            other, name = draw.choice(places)
            holder[key] = json.loads(json.dumps(other[name])) if name in _keys(other) else None
        case 4 if isinstance(holder, dict):
            holder[draw.choice(("", "a", "\u2028", "\ud800", str(key) + " ", str(key).upper()))] = holder[key]
        case 4:
            holder.append(holder[key])
        case _:
            holder[key] = draw.choice(draw.choice((VALUES, VALUES, WHOLE)))
    return value


def _keys(holder: Any) -> Any:
    return holder.keys() if isinstance(holder, dict) else range(len(holder))


def as_json(draw: random.Random, data: bytes) -> bytes:
    value = reshape(draw, json.loads(data))
    return json.dumps(value, ensure_ascii=draw.random() < 0.5, indent=draw.choice((None, 1))).encode(
        "utf-8", "surrogatepass"
    )


def as_json_lines(draw: random.Random, data: bytes) -> bytes:
    lines = data.split(b"\n")
    at = draw.randrange(len(lines))
    value = reshape(draw, json.loads(lines[at]))
    lines[at] = json.dumps(value, ensure_ascii=draw.random() < 0.5).encode("utf-8", "surrogatepass")
    return b"\n".join(lines)


def as_toml(draw: random.Random, data: bytes) -> bytes:
    return tomli_w.dumps(reshape(draw, tomllib.loads(data.decode()))).encode()


def as_safetensors(draw: random.Random, data: bytes) -> bytes:
    """The header's JSON changed, its length made right again."""
    (size,) = struct.unpack_from("<Q", data)
    header = as_json(draw, data[8 : 8 + size])
    return struct.pack("<Q", len(header)) + header + data[8 + size :]


def as_array(draw: random.Random, data: bytes) -> bytes:
    """A .npy file of another type or shape."""
    old, new = draw.choice(
        (
            (b"<i4", b"<i8"), (b"<i8", b"<i4"), (b"<i8", b"<f8"), (b"<i4", b"<u4"), (b"|u1", b"|b1"),
            (b"<f4", b"<i4"), (b"<i4", b"<f4"), (b"<i8", b"|O8"), (b"(", b"(1, "), (b",)", b", 1)"),
            (b",)", b")"), (b"False", b"True "),
        )
    )  # fmt: skip
    return data.replace(old, new, 1) if old in data else _number(draw, data)


SHAPES: dict[str, Mutation] = {
    "json": as_json,
    "jsonl": as_json_lines,
    "toml": as_toml,
    "safetensors": as_safetensors,
    "array": as_array,
}


def mutate(draw: random.Random, seeds: list[tuple[str, bytes]]) -> bytes:
    """One input: a valid one changed once to a few times. A seed is the kind of its shape, and its bytes."""
    kind, data = draw.choice(seeds)
    if kind.startswith("named "):
        name, _, rest = data.partition(b"\n")
        others = [(kind.removeprefix("named "), rest)]
        others += [("binary", one.partition(b"\n")[2]) for _, one in seeds if draw.random() < 0.02]
        return name + b"\n" + mutate(draw, others)
    rounds = draw.choice((1, 1, 1, 2, 3, 6))
    others = BINARY if kind in ("binary", "array", "safetensors") else BY_BYTES
    for _ in range(rounds):
        if kind in SHAPES and draw.random() < 0.6:
            try:
                data = SHAPES[kind](draw, data)
                continue
            except (
                ValueError,
                TypeError,
                KeyError,
                IndexError,
                AttributeError,
                RecursionError,
                struct.error,
            ):
                pass  # no longer of this shape
        elif draw.random() < 0.05:
            other = draw.choice(seeds)[1]
            data = data[: draw.randint(0, len(data))] + other[draw.randint(0, len(other)) :]
        else:
            data = draw.choice(others)(draw, data)
        data = data[:LONGEST]
    return data
