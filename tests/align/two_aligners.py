"""Run by torchrun in test_finetune.py: trains as one process does, and writes the losses as JSON."""

import json
import os
import sys
from pathlib import Path

from test_finetune import two_processes_task

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    found = {
        loss: [one["losses"] for one in two_processes_task(loss, folder)] for loss in ("weak", "strong", "l2")
    }
    if os.environ["RANK"] == "0":
        (folder / "losses.json").write_text(json.dumps(found))
