"""Run by torchrun in test_pretraining.py: one of several processes that pretrain together."""

import json
import sys

from calque.pipeline.pretraining import pretrain

if __name__ == "__main__":
    assert pretrain(sys.argv[1], device="cpu", processes=2, **json.loads(sys.argv[2])).results
