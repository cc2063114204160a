"""Help pages in tests/golden and docs/cli.md are what the commands print."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def golden() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_golden", ROOT / "scripts" / "make_golden.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_help_pages_have_not_drifted(golden: ModuleType) -> None:
    pages = golden.help_pages()
    written = {path.stem: path.read_text(encoding="utf-8") for path in golden.HELP.glob("*.txt")}
    assert pages == written, "run make docs, and say in CHANGELOG.md what changed for users"
    assert golden.CLI_PAGE.read_text(encoding="utf-8") == golden.cli_page(pages)
    assert {"longtake", "longtake-models"} <= set(pages)
