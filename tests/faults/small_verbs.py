"""Every verb that writes, on small data of the invented world: what one types, and where it writes."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_TINY = "--vocabulary 400 --layers 2 --width 16 --heads 2 --inner 16 --batch-tokens 300"
_BOTH = "--encoder world/encoder --encoder aligned --pairs links/test --include-seen"
_NER = (
    "--train en=world/tasks/ner/en.train.tsv --test near=world/tasks/ner/near.test.tsv --epochs 1 --batch 4"
)

STUDY = """
seeds = [0]

[world]
count = 50
width = 8

[encoders]
counts = "world:encoder"

[links]
tokenised = true
linker = "ibm1"
test = 20
text.near = "world:text/en-near.tsv"

[align]
methods = ["centring", "rotation"]

[measure.words]
include_seen = true
rounds = 10
"""


@dataclass(frozen=True)
class Written:
    """A command, and what it writes; `again` is typed after a training was cut off."""

    line: str
    out: str
    again: str = ""

    @property
    def name(self) -> str:
        words = self.line.split()
        return " ".join(words[:2] if words[0] == "measure" else words[:1])


def _verb(line: str, out: str, again: str = "") -> Written:
    return Written(f"{line} --out {out}", out, again)


#: More text, for words of several senses; made once.
LARGER = (
    _verb("world --count 1000 --width 8", "larger"),
    _verb("link larger/text/en-far.tsv --languages en far --tokenised --test 200", "more"),
)
#: In an order in which each finds what it reads.
VERBS: dict[str, Written] = {
    "world": _verb("world --count 80 --tasks 24 --width 8", "world"),
    "link": _verb("link world/text/en-near.tsv --languages en near --tokenised --test 40", "links"),
    "pretrain": _verb(
        f"pretrain --world --sentences 150 --steps 6 --save-every 2 {_TINY}", "model", "--resume"
    ),
    "extend": _verb(
        "extend --encoder model --text far=world/text/far.conllu --pieces 60 --steps 6 --save-every 2"
        " --batch-tokens 300",
        "extended",
        "--resume",
    ),
    "align linear": _verb("align --encoder world/encoder --pairs links/train", "aligned"),
    "align streamed": _verb(
        "align --encoder world/encoder --pairs links/train --method orthogonal-gradient --steps 10",
        "streamed",
    ),
    "align trained": _verb(
        "align --encoder model --pairs links/train --method l2 --steps 6 --batch 4 --save-every 2",
        "tuned",
        "--resume",
    ),
    "encode": _verb("encode world/text/near.conllu --encoder aligned --language near", "vectors"),
    "measure words": _verb(f"measure words {_BOTH} --rounds 10", "words"),
    "measure sentences": _verb(
        "measure sentences --encoder world/encoder --encoder aligned --pairs links/test --rounds 10",
        "retrieved",
    ),
    "measure lexicon": _verb(
        "measure lexicon --encoder world/encoder --encoder aligned --dictionary world/text/en-near.test.txt"
        " --include-seen --rounds 10",
        "lexicon",
    ),
    "measure cka": _verb("measure cka --encoder model --pairs links/test", "alike"),
    "measure distances": _verb("measure distances --encoder model --pairs links/test", "distances"),
    "measure projection": _verb(
        "measure projection --encoder world/encoder --encoder aligned --pairs links/test --types 4", "picture"
    ),
    "measure examples": _verb(
        "measure examples --encoder larger/encoder --pairs more/train --types 4", "examples"
    ),
    "measure all": _verb(f"measure all {_BOTH} --rounds 10", "all"),
    "measure correlation": _verb("measure correlation alike distances --x cka/linear --y auc", "related"),
    "transfer": _verb(f"transfer ner --encoder model {_NER} --seeds 2 --save-every 2", "entities"),
    "transfer frozen": _verb(f"transfer ner --encoder model {_NER} --seeds 2 --regime features", "frozen"),
    "transfer continual": _verb(
        f"transfer ner --encoder model {_NER} --seeds 1 --save-every 2 --continual links/train"
        " --continual-batch 4",
        "continual",
    ),
    "compare": _verb("compare entities frozen", "helped"),
    "predict": _verb("predict world/text/near.conllu --model entities --language near", "labelled.tsv"),
    "mine": _verb(
        "mine world/text/en.conllu world/text/near.conllu --languages en near --encoder aligned --keep 20",
        "mined",
    ),
    "score": _verb("score world/text/en-near.tsv --languages en near --encoder aligned --keep 20", "scored"),
    "export": Written("export model --out exported", "exported"),
    "report": Written("report words", "words/report.html"),
    "demo": _verb("demo --world", "demo"),
    "study": _verb("study study.toml --threads 1", "study"),
    "study workers": _verb("study study.toml --threads 1 --workers 2", "pooled"),
    "report study": Written("report study", "study/report.html"),
    "cache prune": Written("cache prune", "cache/vectors"),
}


#: Verbs that write several folders below their own, of which some may be there.
PARTS = {"study": "cells/[!.]*", "study workers": "cells/[!.]*", "measure all": "[!.]*"}


def argv(verb: Written, *, again: bool = False) -> list[str]:
    """What one types."""
    quiet = [] if verb.line.startswith("cache") else ["--quiet"]
    return ["calque", *shlex.split(f"{verb.line} {verb.again if again else ''}"), *quiet]


def read_by(wanted: Sequence[str]) -> list[Written]:
    """What must be there before the wanted verbs, in order; one of them too where another reads it."""
    found: list[Written] = []
    for verb in reversed([*LARGER, *VERBS.values()]):
        if _read(verb, found) or any(verb is VERBS[name] for name in wanted):
            found.append(verb)
    return [verb for verb in reversed(found) if _read(verb, found)]


def _read(verb: Written, others: Sequence[Written]) -> bool:
    """Whether another verb reads what this one writes."""
    lines = [shlex.split(one.line) for one in others if one is not verb]
    return verb.out in {word.split("=")[-1].split("/")[0] for line in lines for word in line}


def write_study(folder: Path) -> None:
    """The recipe that `study` reads."""
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
