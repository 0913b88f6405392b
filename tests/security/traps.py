"""Files that do something when they are read carelessly: each writes a file named after itself."""

import io
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

#: What people find beside weights, and other programs unpickle.
PICKLES = (
    *("pytorch_model.bin", "pytorch_model-00001-of-00002.bin", "adapter_model.bin", "model.pt", "model.pkl"),
    *("training_args.bin", "optimizer.pt", "scheduler.pt", "rng_state.pth", "scaler.pt", "optimiser.bin"),
    *("tokenizer.pkl", "vocab.pkl", "vocab.bin", "1_Pooling/pytorch_model.bin", "2_Dense/pytorch_model.bin"),
    *("events.out.tfevents.1.host.1", "trainer_state.pkl", "embeddings.joblib", "cache.npy", "model.ckpt"),
)
#: Code that is imported by what trusts a directory.
CODE = (
    "modeling_evil.py",
    "configuration_evil.py",
    "tokenization_evil.py",
    "evil.py",
    "conftest.py",
    "setup.py",
)


class Trap:
    """Unpickled, it writes a file."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return exec, (f"open({str(self.mark)!r}, 'w').close()",)


class Traps:
    """Where traps leave their marks; `sprung` are those that did."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.folder = folder

    def mark(self, name: str) -> Path:
        return self.folder / name.replace("/", "_")

    @property
    def sprung(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())

    def pickle(self, path: Path) -> Path:
        """A pickle as `torch.save` of old wrote them: bare."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps(Trap(self.mark(path.name))))
        return path

    def archive(self, path: Path) -> Path:
        """A pickle in an archive, as `torch.save` writes them now."""
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save({"weight": torch.zeros(1), "trap": Trap(self.mark(path.name))}, path)
        return path

    def array(self, path: Path) -> Path:
        """A NumPy array of objects."""
        held = np.empty(1, object)
        held[0] = Trap(self.mark(path.name))
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as handle:
            np.save(handle, held, allow_pickle=True)
        return path

    def arrays(self, path: Path) -> Path:
        """An archive of arrays of objects."""
        inside = io.BytesIO()
        held = np.empty(1, object)
        held[0] = Trap(self.mark(path.name))
        np.save(inside, held, allow_pickle=True)
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("arr_0.npy", inside.getvalue())
        return path

    def code(self, path: Path) -> Path:
        """A module that does it when imported, with the classes that it is imported for."""
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"open({str(self.mark(path.name))!r}, 'w').close()"]
        lines += [f"class Evil{kind}: pass" for kind in ("Model", "Config", "Tokenizer", "Pooling")]
        path.write_text("\n".join(lines), encoding="utf-8")
        return path

    def surround(self, folder: Path) -> None:
        """Put every trap into a model directory, and name the code in its settings."""
        for name in PICKLES:
            (self.archive if name in ("adapter_model.bin", "optimizer.pt") else self.pickle)(folder / name)
        for name in CODE:
            self.code(folder / name)
        code = {"AutoConfig": "configuration_evil.EvilConfig", "AutoModel": "modeling_evil.EvilModel"}
        code["AutoModelForMaskedLM"] = code["AutoModelForSequenceClassification"] = code["AutoModel"]
        change(folder / "config.json", auto_map=code)
        tokens = ["tokenization_evil.EvilTokenizer", "tokenization_evil.EvilTokenizer"]
        change(folder / "tokenizer_config.json", auto_map={"AutoTokenizer": tokens})
        modules = [{"idx": 0, "name": "0", "path": "", "type": "evil.EvilPooling"}]
        (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")


def change(path: Path, **values: Any) -> None:
    """Other settings in a JSON file."""
    held = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    path.write_text(json.dumps({**held, **values}), encoding="utf-8")
