"""A bitext small enough for encoders with random weights, and what is known of it."""

from pathlib import Path

import numpy as np

from calque.pipeline import link

INTO = {
    "the": "die", "cat": "Katze", "sat": "saß", "on": "auf", "mat": "Matte", "dog": "Hund", "life": "Leben",
    "child": "Kind", "laughed": "lachte", "street": "Straße", "and": "und", "isn't": "nicht",
}  # fmt: skip


def write(folder: Path) -> Path:
    """`text.tsv`, `gold.links`, `words.txt` and `links` with 40 sentences to learn from, 20 to score."""
    rng = np.random.default_rng(0)
    drawn = [rng.choice(list(INTO), rng.integers(5, 9)).tolist() for _ in range(60)]
    lines = [f"{' '.join(words)}\t{' '.join(INTO[word] for word in words)}\n" for words in drawn]
    (folder / "text.tsv").write_text("".join(lines), encoding="utf-8")
    gold = [" ".join(f"{i}-{i}" for i in range(len(words))) + "\n" for words in drawn]
    (folder / "gold.links").write_text("".join(gold))
    (folder / "words.txt").write_text("".join(f"{a} {b}\n" for a, b in INTO.items()), encoding="utf-8")
    given = {"tokenised": True, "test": 20, "links": str(folder / "gold.links"), "keep_duplicates": True}
    link(folder / "text.tsv", ("en", "de"), out=folder / "links", **given)
    return folder
