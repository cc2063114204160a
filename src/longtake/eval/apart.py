"""Measuring in a process of its own: with its own threads and memory, and nothing of ours in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from longtake.errors import LongtakeError


def measured_apart(module: str, *arguments: str, threads: int | None = None) -> Any:
    """What ``python -m module arguments`` prints, which must be JSON; the caller's threads stay as they are.

    Args:
        module: Run as a program.
        arguments: Of the command line.
        threads: Of torch in that process; None: what torch chooses there.

    Raises:
        LongtakeError: The process failed.
    """
    counts = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(threads)) if threads else {}
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, env=os.environ | counts, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LongtakeError(f"the measuring process ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout)
