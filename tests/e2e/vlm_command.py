"""The real command line on a tiny video model's folder: in this process, and in one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SHOWN = "rrrrrgggggggbbbbbbbbrrrrrrggggggbbbbrrrrbbbbgggg"
"""12 seconds."""
QUESTION = "what happened first?"


@contextmanager
def start(*arguments: str | Path, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """``longtake ARGUMENTS``, running; it does not outlive the block."""
    command = [sys.executable, "-m", "longtake.cli", *map(str, arguments)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    pipes.setdefault("text", True)
    with subprocess.Popen(command, env=environment, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()
