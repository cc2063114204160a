"""The command line in a process of its own, with ``Colours`` for every model: real but for the weights.

DELAY_SECONDS in the environment makes each segment take that long, so that there is time to kill.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def start(*arguments: str | Path, delay_seconds: float = 0.0) -> Iterator[subprocess.Popen[str]]:
    """``longtake ARGUMENTS``, running; it does not outlive the block."""
    environment = os.environ | {"DELAY_SECONDS": str(delay_seconds), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.e2e.standin", *map(str, arguments)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, env=environment, text=True, stdout=pipe, stderr=pipe) as process:
        try:
            yield process
        finally:
            process.kill()


def slowed(model: Any, seconds: float) -> Any:
    advance: Callable[..., Any] = model.advance

    def slow(*arguments: Any) -> Any:
        time.sleep(seconds)
        return advance(*arguments)

    model.advance = slow
    return model


def main() -> None:
    import torch
    from tests.contract.colours import Colours

    from longtake import hub
    from longtake.cli.app import run

    torch.set_num_threads(1)
    delay_seconds = float(os.environ["DELAY_SECONDS"])
    hub.load = lambda name: slowed(Colours(), delay_seconds)  # type: ignore[assignment]
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
