"""Verbs run with every socket shut and secrets all around: nothing is asked of the network but what a person
names, and nothing that a person did not name is written down."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tiny_encoders import build

from small_corpus import INTO

#: Shuts every socket but those between processes of one machine, and notes who wanted out.
SHUT = """
import socket, sys
asked = []

def shut(*given, **named):
    asked.append(str(given))
    raise OSError("shut")

def connect(self, address):
    shut(address) if self.family != getattr(socket, "AF_UNIX", None) else was(self, address)

was = socket.socket.connect
socket.socket.connect = socket.socket.connect_ex = connect
socket.create_connection = socket.getaddrinfo = socket.gethostbyname = shut
socket.gethostname = lambda: "machine-of-somebody"
"""

#: What lies in the environment of a person, and is nobody's business.
SECRETS = {
    "HF_TOKEN": "hf_planted0token",
    "HUGGING_FACE_HUB_TOKEN": "hf_planted1token",
    "AWS_ACCESS_KEY_ID": "AKIAPLANTED",
    "AWS_SECRET_ACCESS_KEY": "planted/secret/key",
    "HTTPS_PROXY": "http://somebody:planted-password@127.0.0.1:9",
    "USER": "somebody-by-name",
    "LOGNAME": "somebody-by-name",
    "HOSTNAME": "machine-of-somebody",
    "API_KEY": "planted-api-key",
}

VERBS = """
import json, threading
from pathlib import Path
from calque import pipeline
from calque.encoders.encoder import EncoderOptions
from calque.encoders.hub import read_masked
from calque.encoders.open import open_encoder
from calque.errors import CalqueError
from calque.pipeline.taskmodels import opened_model

given = {"tokenised": True, "test": 10, "keep_duplicates": True}
pipeline.link("text.tsv", ("en", "de"), out="links", links="gold.links", **given)
linking = {"linker": "mutual", "encoder": "model", "layer": "2", "tokenised": True}
pipeline.link("text.tsv", ("en", "de"), out="similar", **linking)
pipeline.align("model", "links/train", out="runs/aligned", shrink=0.1, layers="last")
pipeline.align("model", "links/train", out="runs/trained", method="l2", steps=1)
pipeline.measure_words(["model", "runs/aligned"], "links/test", out="words", include_seen=True, rounds=10)
pipeline.export("runs/trained", out="exported")
pipeline.encode("model", "lines.txt", out="vectors", language="en")
pipeline.report("words")
print(json.dumps({"asked": asked, "threads": [one.name for one in threading.enumerate()]}))
"""

NAMES = """
import json
from calque.encoders.encoder import EncoderOptions
from calque.encoders.open import open_encoder
from calque.errors import CalqueError
from calque.pipeline.taskmodels import opened_model
from calque.text.readers import read_pairs

def told(door, *given):
    before = len(asked)
    try:
        door(*given)
    except CalqueError as error:
        return [len(asked) - before, str(error)]

found = {name: told(open_encoder, name) for name in json.loads(sys.argv[1])}
found["task model"] = told(opened_model, "task", EncoderOptions())
found["bitext"] = told(lambda: list(read_pairs(["no/such.tsv"], ("en", "de"))))
found["named"] = told(open_encoder, "some/encoder")
print(json.dumps(found))
"""


def run(script: str, folder: Path, *given: str, **more: str) -> Any:
    """What a script prints that runs where only files are, as on a machine that may use the hub."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    # A cache of one's own: what was fetched on this machine before is not there.
    variables |= {"HF_HOME": str(folder / "hf"), "CALQUE_CACHE": str(folder / "cache"), **more}
    done = subprocess.run(
        [sys.executable, "-c", SHUT + script, *given],
        cwd=folder, env=variables, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in somebody's home, with a model and a bitext."""
    tmp_path = tmp_path_factory.mktemp("home-of-somebody") / "work"
    build("bert").save(tmp_path / "model")
    words = list(INTO)
    rows = [[words[(k + j) % 12] for j in range(6)] for k in range(30)]
    text = "".join(f"{' '.join(row)}\t{' '.join(INTO[word] for word in row)}\n" for row in rows)
    (tmp_path / "text.tsv").write_text(text, encoding="utf-8")
    (tmp_path / "lines.txt").write_text("".join(f"{' '.join(row)}\n" for row in rows), encoding="utf-8")
    (tmp_path / "gold.links").write_text(f"{' '.join(f'{i}-{i}' for i in range(6))}\n" * 30)
    return tmp_path


@pytest.fixture(scope="module")
def told(folder: Path) -> Any:
    """What verbs asked for that ran among secrets."""
    return run(VERBS, folder, HOME=str(folder.parent), **SECRETS)


def test_verbs_ask_nothing_of_the_network(told: Any) -> None:
    """Nor do threads that a dependency starts and leaves running, such as one that converts weights."""
    assert told["asked"] == []
    assert not [name for name in told["threads"] if "conversion" in name]


def test_verbs_write_no_secrets(told: Any, folder: Path) -> None:
    """In no file of a run, packed or not; nor where it ran: paths are as they were given."""
    runs = ("links", "similar", "runs", "words", "exported", "vectors")
    files = [file for name in runs for file in (folder / name).rglob("*") if file.is_file()]
    assert len(files) > 50 and {"environment.json", "recipe.toml", "cost.json"} <= {
        file.name for file in files
    }
    planted = {*SECRETS.values(), "planted", "somebody", str(folder.parent)}
    for file in files:
        held = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        assert not [one for one in planted if one.encode() in held or one in file.name], file


def test_a_mistyped_path_is_no_name_on_the_hub(folder: Path) -> None:
    """Only what can be a name there is asked for, and not what a file names."""
    (folder / "models" / "mini").mkdir(parents=True)
    task = {"task": "ner", "ordinary": False, "regime": "features"}
    task |= {"encoder": "stranger/model", "fingerprint": "0"}
    (folder / "task").mkdir()
    (folder / "task" / "task.json").write_text(json.dumps({**task, "labels": ["a"]}), encoding="utf-8")
    wrong = [
        "./modle",
        "../modle",
        "models/mini-1",
        "runs/alinged",
        "a/b/c",
        "C:\\model",
        "~/modle",
        "modle/",
    ]
    wrong.append("en=./modle,de=models/x")
    found = run(NAMES, folder, json.dumps(wrong))
    for name in wrong:
        requests, told = found[name]
        assert requests == 0 and "no such directory" in told, (name, told)
    assert "did you mean models/mini?" in found["models/mini-1"][1]
    assert found["task model"][0] == 0 and "never fetched" in found["task model"][1]
    assert found["bitext"][0] == 0
    assert found["named"][0] > 0, "sockets are watched: what is named is asked for"


def test_dependencies_do_not_report(folder: Path) -> None:
    """Unless a person has said that they may."""
    script = "import calque, os, json; from huggingface_hub import constants as c; print(json.dumps("
    script += "[c.HF_HUB_DISABLE_TELEMETRY, os.environ['RAY_USAGE_STATS_ENABLED']]))"
    assert run(script, folder) == [True, "0"]
    assert run(script, folder, HF_HUB_DISABLE_TELEMETRY="0", RAY_USAGE_STATS_ENABLED="1") == [False, "1"]
