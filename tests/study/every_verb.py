"""Verbs that stand outside studies, one after the other: `every_verb.py CORPUS ENCODER OUT`."""

import sys
from pathlib import Path

import torch

from calque.pipeline import align, link, mine, score_bitext


def main() -> None:
    torch.set_num_threads(1)  # training is the same on as many threads; the linkers have their own
    corpus, encoder, out = (Path(one) for one in sys.argv[1:])
    text, links = corpus / "text.tsv", corpus / "links" / "train"
    for linker in ("eflomal", "fast-align", "hmm", "ibm4"):
        link(text, ("en", "de"), out=out / linker, linker=linker, tokenised=True, keep_duplicates=True)
    rows = [line.split("\t") for line in text.read_text(encoding="utf-8").splitlines()]
    for number, language in enumerate(("en", "de")):
        path = out / f"only.{language}"
        path.write_text("".join(f"{row[number]}\n" for row in rows), encoding="utf-8")
    mine(out / "only.en", out / "only.de", ("en", "de"), str(encoder), out=out / "mined")
    score_bitext(text, ("en", "de"), str(encoder), out=out / "scored")
    for method in ("rotation", "iterative-normalisation", "orthogonal-gradient", "l2"):
        align(str(encoder), str(links), out=out / method, method=method)


if __name__ == "__main__":
    main()
