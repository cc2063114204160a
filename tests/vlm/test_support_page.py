"""docs/vlm_support.md is what the families say of themselves."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from longtake.vlm.families import FAMILIES

ROOT = Path(__file__).resolve().parents[2]


def test_support_page_has_not_drifted() -> None:
    spec = importlib.util.spec_from_file_location("make_vlm_support", ROOT / "scripts" / "make_vlm_support.py")
    assert spec is not None
    assert spec.loader is not None
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    written = maker.PAGE.read_text(encoding="utf-8")
    assert written == maker.page(), "run make docs"
    assert all(f"| {kind.name} |" in written for kind in FAMILIES)
