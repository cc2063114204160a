"""Ctrl-C while the command line is still being loaded."""

from __future__ import annotations

import signal
import subprocess
import sys


def test_interrupt_during_the_imports_is_silent() -> None:
    slow = (
        "import sys, signal\n"
        "sys.modules['longtake.cli.app'] = None\n"
        "try:\n import longtake.cli.entry\nexcept ImportError:\n signal.raise_signal(signal.SIGINT)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", slow], capture_output=True, text=True, preexec_fn=_interruptible, check=False
    )
    assert (result.returncode, result.stderr) == (-signal.SIGINT, "")


def _interruptible() -> None:
    """As in the foreground: jobs in the background ignore it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
