"""The rules of the layout, read from the source: who may import whom, and how large a file or a function may be."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "longtake"
FILES = sorted(PACKAGE.rglob("*.py"))

STAGES = ("video", "vision", "state", "language", "vlm")
STAGE_MAY_IMPORT = {"types", "errors"}
WAYS_IN = ("cli", "server")
MAY_IMPORT_AV = ("video", "data", "cli")
"""video/ reads, data/ writes Toybox's videos, the doctor prints the version."""
MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 80
MAX_FOLDER_LEVELS = 2
SHAPELESS_NAMES = {"utils", "helpers", "common", "misc"}


def relative(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def room_of(path: Path) -> str:
    """First folder or, in the top folder, the file's own name."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_rooms(tree: ast.AST) -> set[str]:
    """First part below longtake of everything a file imports, at its top or inside functions."""
    rooms: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            rooms |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("longtake.")}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            parts = node.module.split(".")
            if parts[0] == "longtake":
                rooms |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
    return rooms


def imported_packages(tree: ast.AST) -> set[str]:
    """First part of every absolute import, at the file's top or inside functions."""
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    return {name.split(".")[0] for name in names}


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_file_imports_only_the_rooms_it_may(path: Path) -> None:
    room, rooms = room_of(path), imported_rooms(parse(path))
    if room in STAGES:
        assert rooms <= STAGE_MAY_IMPORT | {room}
    if room == "session":
        assert "methods" not in rooms
    for way_in in WAYS_IN:
        assert room == way_in or way_in not in rooms, f"nobody imports {way_in}/"


@pytest.mark.parametrize("path", [path for path in FILES if room_of(path) not in MAY_IMPORT_AV], ids=relative)
def test_only_the_video_rooms_import_av(path: Path) -> None:
    assert "av" not in imported_packages(parse(path))


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_file_and_functions_stay_small(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_FILE_LINES
    long = [node.name for node in functions(parse(path)) if node.end_lineno - node.lineno + 1 > MAX_FUNCTION_LINES]
    assert not long


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_file_is_in_its_place_and_named_for_what_it_is(path: Path) -> None:
    assert len(path.relative_to(PACKAGE).parts) - 1 <= MAX_FOLDER_LEVELS
    assert path.stem not in SHAPELESS_NAMES
    tree = parse(path)
    assert ast.get_docstring(tree) or not tree.body, "a file says in its docstring what it is"


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_library_neither_prints_nor_sets_up_logging(path: Path) -> None:
    if room_of(path) in WAYS_IN:
        return
    called = {ast.unparse(node.func) for node in ast.walk(parse(path)) if isinstance(node, ast.Call)}
    assert not called & {"print", "logging.basicConfig", "logging.disable"}
    assert not any(name.endswith(".addHandler") for name in called)


@pytest.mark.parametrize("path", sorted((PACKAGE / "cli").glob("*.py")), ids=relative)
def test_command_file_imports_nothing_heavy_at_its_top(path: Path) -> None:
    heavy = {"torch", "torchvision", "av", "transformers", "numpy", "matplotlib", "huggingface_hub", "accelerate"}
    tops = set()
    for node in parse(path).body:
        if isinstance(node, ast.Import):
            tops |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            tops.add(node.module.split(".")[0])
    assert not tops & heavy


def test_rule_reader_finds_imports_wherever_they_stand() -> None:
    source = "import longtake.cli.app\ndef f():\n    from longtake.video import probe\n    from longtake import hub\n"
    assert imported_rooms(ast.parse(source)) == {"cli", "video", "hub"}
    assert imported_packages(ast.parse("def f():\n    import av.video\n    from torch.nn import Module\n")) == {
        "av",
        "torch",
    }
