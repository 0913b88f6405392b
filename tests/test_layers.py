"""Imports point down only; rooms of floor 3 never import each other."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import calque

ROOT = Path(calque.__file__).parent
FLOORS = [
    {
        "circumstances",
        "documents",
        "errors",
        "files",
        "locks",
        "presets",
        "progress",
        "recipe",
        "stopping",
        "store",
        "types",
        "",
    },
    {"text", "stats", "geometry", "demo"},
    {"encoders", "training"},
    {"links", "align", "pretrain", "measure", "transfer"},
    {"report"},
    {"study", "pipeline"},
    {"cli", "__main__"},
]
FLOOR = {room: level for level, rooms in enumerate(FLOORS) for room in rooms}
NO_TORCH = {"text", "stats", "report", "demo"} | FLOORS[0]


def room(path: Path) -> str:
    name = path.relative_to(ROOT).parts[0].removesuffix(".py")
    return "" if name == "__init__" else name


def imports(path: Path) -> set[str]:
    """Every module imported anywhere in a file, but for imports that only type checkers see."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = {
        child
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for child in ast.walk(node)
    }
    found = set()
    for node in ast.walk(tree):
        if node in typing_only:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def test_imports_point_down() -> None:
    wrong = []
    for path in ROOT.rglob("*.py"):
        here = room(path)
        assert here in FLOOR, f"{path}: no floor for this room"
        for module in imports(path):
            parts = module.split(".")
            there = parts[1] if parts[0] == "calque" and len(parts) > 1 and parts[1] in FLOOR else None
            if there is None or there == here:
                continue
            if FLOOR[there] > FLOOR[here] or (FLOOR[there] == FLOOR[here] == 3):
                wrong.append(f"{path.relative_to(ROOT)} imports {module}")
    assert not wrong, "\n".join(wrong)


def test_light_rooms_load_no_torch() -> None:
    heavy = {"torch", "transformers", "accelerate"}
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in ROOT.rglob("*.py")
        if room(path) in NO_TORCH
        for module in imports(path)
        if module.split(".")[0] in heavy
    ]
    assert not wrong, "\n".join(wrong)


def test_every_verb_is_found_and_reads_no_other_verbs() -> None:
    import calque.pipeline as verbs

    assert set(verbs._HOME) == set(verbs.__all__)
    for name, module in verbs._HOME.items():
        assert getattr(verbs, name) is getattr(importlib.import_module(f"calque.pipeline.{module}"), name)
    code = "import sys, calque.pipeline.linking; sys.exit('transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
