"""The tiled kernel, run by Triton's interpreter, against the plain form."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.vlm.kernel_cases import CASES

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="no Triton here; it comes with torch for Linux")


@pytest.fixture(scope="module")
def found() -> list[list[float]]:
    command = [sys.executable, "-m", "tests.vlm.kernel_cases"]
    done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("number", range(len(CASES)), ids=[str(case) for case in CASES])
def test_kernel_matches_the_plain_form(found: list[list[float]], number: int) -> None:
    outputs, received = found[number]
    assert outputs <= 1e-5
    assert received <= 1e-5
