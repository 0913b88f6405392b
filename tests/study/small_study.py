"""A study whose cells take moments: count vectors of the world, three linear methods, two measures."""

from pathlib import Path

RECIPE = """
about = "Does alignment help count vectors?"
seeds = [0, 1]

[world]
count = 80
width = 8

[encoders]
counts = "world:encoder"

[links]
tokenised = true
linker = "ibm1"
test = 30
text.near = "world:text/en-near.tsv"
text.far = "world:text/en-far.tsv"

[align]
methods = ["centring", "rotation", "gradient"]
gradient.method = "orthogonal-gradient"
gradient.steps = 20

[measure.words]
include_seen = true
rounds = 10

[measure.sentences]
rounds = 10
"""

#: With a task: a tiny language model that is fine-tuned on a few names.
TASK = """
seeds = [0, 1, 2]

[world]
count = 80
tasks = 24

[encoders]
mlm = { languages = ["en", "near"], sentences = 100, vocabulary = 400, layers = 1, width = 16, heads = 2, inner = 16, steps = 2 }

[links]
tokenised = true
linker = "ibm1"
text.near = "world:text/en-near.tsv"

[align]
methods = ["centring", "weak"]
weak.steps = 2
weak.batch = 4

[transfer.ner]
epochs = 1
train.en = "world:tasks/ner/en.train.tsv"
test.near = "world:tasks/ner/near.test.tsv"

[compare]
rounds = 20
"""  # noqa: E501


def write(folder: Path, text: str = RECIPE) -> Path:
    """The recipe as a file."""
    path = folder / "small.toml"
    path.write_text(text, encoding="utf-8")
    return path
