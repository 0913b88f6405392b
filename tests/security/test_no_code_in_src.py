"""The source reads no pickle, runs no code of others, and has one door to the hub: read from its syntax."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import calque

SOURCE = Path(calque.__file__).parent
#: Modules whose reading runs code, unpacks archives, expands entities or reaches the network.
BANNED = frozenset([
    "pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal", "dbm",
    "tarfile", "zipfile", "zipimport", "lxml", "xml.etree", "xml.sax", "xml.dom", "socket", "http",
    "ftplib", "urllib.request", "requests", "httpx", "aiohttp", "torch.hub", "runpy", "pandas",
])  # fmt: skip
CALLS = frozenset(["eval", "exec", "compile", "__import__", "os.system", "os.popen", "shutil.unpack_archive"])
CALLS |= {"torch.load", "torch.hub.load", "yaml.load", "yaml.unsafe_load", "yaml.full_load", "np.loadtxt"}
CALLS |= {"np.fromfile", "pd.read_pickle", "np.lib.format.read_array", "jsonpickle.decode"}
#: What only one file may call.
DOORS = {"snapshot_download": "encoders/hub.py", "hf_hub_download": "encoders/hub.py"}
DOORS |= {"load_dataset": "text/readers.py", "load_from_disk": "text/readers.py"}


def name_of(node: ast.AST) -> str:
    """A name with its dots, such as `np.load`."""
    if isinstance(node, ast.Attribute):
        return f"{name_of(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def given(call: ast.Call, tables: dict[str, ast.Dict]) -> dict[str, object]:
    """Constants among the keywords of a call, those of `**name` too where name is a table written nearby."""
    found = {one.arg: one.value for one in call.keywords if one.arg}
    for one in call.keywords:
        if one.arg is None and (table := tables.get(name_of(one.value))):
            found |= {
                getattr(key, "value", ""): value
                for key, value in zip(table.keys, table.values, strict=True)
                if key
            }
    return {name: value.value for name, value in found.items() if isinstance(value, ast.Constant)}


def wrong_call(call: ast.Call, tables: dict[str, ast.Dict], where: str) -> str | None:
    name, told = name_of(call.func), given(call, tables)
    last = call.func.attr if isinstance(call.func, ast.Attribute) else name
    if name in CALLS:
        return f"calls {name}"
    if name in ("np.load", "np.save"):
        return None if told.get("allow_pickle") is False else f"{name} without allow_pickle=False"
    if last in ("from_pretrained", "from_config") and told.get("trust_remote_code") is not False:
        return f"{name} without trust_remote_code=False"
    if last == "from_pretrained":
        weights = not name.startswith(("AutoTokenizer", "AutoConfig"))
        if weights and told.get("use_safetensors") is not True:
            return f"{name} without use_safetensors=True"
        return None if told.get("local_files_only") is True else f"{name} without local_files_only=True"
    if last in DOORS and where != DOORS[last]:
        return f"{last} belongs in {DOORS[last]}"
    return f"{name} with shell" if "shell" in told and told["shell"] is not False else None


def wrong(text: str, where: str = "x.py") -> Iterator[str]:
    """Everything in a source that this forbids."""
    tree = ast.parse(text)
    tables = {
        name_of(node.targets[0]): node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)
    }
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(f"{node.module}.{one.name}" for one in node.names)]
        yield from (f"imports {n}" for n in names if any(n == b or n.startswith(f"{b}.") for b in BANNED))
        if isinstance(node, ast.Call) and (told := wrong_call(node, tables, where)):
            yield told
        pairs = [(node.arg, node.value)] if isinstance(node, ast.keyword) else []
        if isinstance(node, ast.Dict):
            pairs = [
                (getattr(key, "value", None), one) for key, one in zip(node.keys, node.values, strict=True)
            ]
        for name, value in pairs:
            if name in ("trust_remote_code", "weights_only", "allow_pickle"):
                right = name == "weights_only"
                if not (isinstance(value, ast.Constant) and value.value is right):
                    yield f"{name} is not {right}"


def test_no_source_file_runs_code_that_it_reads() -> None:
    files = {path.relative_to(SOURCE).as_posix(): path.read_text("utf-8") for path in SOURCE.rglob("*.py")}
    found = {where: list(wrong(text, where)) for where, text in files.items()}
    assert len(found) > 200 and {where: told for where, told in found.items() if told} == {}


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from joblib import load",
        "import xml.etree.ElementTree as tree",
        "from xml import sax",
        "import tarfile",
        "from urllib import request",
        "torch.load(path)",
        "torch.load(path, weights_only=True)",
        "np.load(path)",
        "np.load(path, allow_pickle=True)",
        "np.save(path, array)",
        "AutoModel.from_pretrained(path)",
        "AutoModel.from_pretrained(path, trust_remote_code=False, local_files_only=True)",
        "AutoModel.from_pretrained(path, trust_remote_code=x, use_safetensors=True, local_files_only=True)",
        "AutoTokenizer.from_pretrained(path, trust_remote_code=False)",
        "AutoTokenizer.from_pretrained(path, **some)",
        "AutoModel.from_config(config)",
        "load(path, trust_remote_code=flag)",
        "options = {'trust_remote_code': flag}",
        "eval(text)",
        "yaml.load(text)",
        "subprocess.run(line, shell=True)",
        "snapshot_download(name)",
        "datasets.load_dataset(name)",
    ],
)
def test_what_is_forbidden_is_found(text: str) -> None:
    assert list(wrong(text))


def test_what_is_allowed_is_not() -> None:
    text = """
local = {"local_files_only": True, "trust_remote_code": False}
AutoTokenizer.from_pretrained(path, **local)
AutoModel.from_pretrained(path, use_safetensors=True, **local)
np.load(path, mmap_mode="r", allow_pickle=False)
re.compile("a")
"""
    assert not list(wrong(text))
