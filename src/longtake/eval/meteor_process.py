"""METEOR's jar as a child process that is sent pairs and answers with numbers."""

from __future__ import annotations

import subprocess
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

import numpy as np
from jaxtyping import Float

from longtake.eval.java import METEOR_DATA, METEOR_JAR, JavaError, jar_file, java_command

NUM_STATISTICS = 23

Pair = tuple[str, str]
"""Hypothesis and reference, tokenised."""
Statistics = Float[np.ndarray, " statistics"]
"""Hypothesis and reference length, function words of each; four numbers per module; chunks, matched words of each."""

PAIRS_IN_FLIGHT = 64
"""So few that the answers fit the pipe: the jar never waits for us while we wait for it."""


class MeteorProcess:
    """The jar, started when the first pairs are sent; after an error it is gone, and the next call starts another."""

    def __init__(self, *, timeout_seconds: float = 300.0) -> None:
        """Find the tools; nothing is started yet.

        Args:
            timeout_seconds: longest wait for 64 pairs, loading the paraphrase table (about 10 s) included.

        Raises:
            JavaError: Java, the jar or its paraphrase table is missing.
        """
        jar_file(METEOR_DATA)  # without it the process dies at its first word
        jar = jar_file(METEOR_JAR)
        self._command = [*java_command(max_heap="2G"), "-jar", str(jar), "-", "-", "-stdio", "-l", "en", "-norm"]
        self._timeout_seconds = timeout_seconds
        self._process: subprocess.Popen[str] | None = None
        self._errors: IO[bytes] | None = None

    def align(self, batch: Sequence[Pair]) -> list[Statistics]:
        """The numbers of at most ``PAIRS_IN_FLIGHT`` pairs.

        Raises:
            JavaError: the process failed or gave no answer in time.
        """
        if self._process is None:
            self._process = self._start()
        process = self._process
        assert process.stdin
        assert process.stdout
        late = threading.Event()
        watchdog = threading.Timer(self._timeout_seconds, lambda: (late.set(), process.kill()))
        watchdog.daemon = True
        watchdog.start()
        try:
            process.stdin.write("".join(_request(pair) for pair in batch))
            process.stdin.flush()
            return [_parse(process.stdout.readline()) for _ in batch]
        except BaseException as error:
            # Answers left unread would be taken for those of the next pairs, so the process ends with any error.
            reason = f"gave no answer within {self._timeout_seconds:g} s" if late.is_set() else self._last_words(error)
            self.close()
            if isinstance(error, OSError | EOFError | ValueError):
                raise JavaError(f"METEOR {reason}") from error
            raise
        finally:
            watchdog.cancel()

    def close(self) -> None:
        """End the process; it holds nothing that would need time to be put away."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(OSError):  # what was not yet written is of no use to a dead process
                        pipe.close()
        if self._errors is not None:
            self._errors.close()
            self._errors = None

    def _start(self) -> subprocess.Popen[str]:
        # stderr goes to a file: a pipe that nobody reads would stall the process once full.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed in close)
        return subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            encoding="utf-8",
            bufsize=-1,
        )

    def _last_words(self, error: BaseException) -> str:
        assert self._process
        assert self._errors
        if isinstance(error, ValueError):
            return str(error)
        self._process.kill()
        self._process.wait()
        self._errors.seek(0)
        said = " ".join(self._errors.read().decode(errors="replace").split())
        return f"stopped: {said[:200] or 'no reason given'}"


def _request(pair: Pair) -> str:
    hypothesis, reference = (" ".join(text.replace("|||", " ").split()) for text in pair)
    return f"SCORE ||| {reference} ||| {hypothesis}\n"


def _parse(line: str) -> Statistics:
    if not line:
        raise EOFError
    try:
        numbers = np.array([float(number) for number in line.split()])
    except ValueError:
        numbers = np.array([])
    if len(numbers) != NUM_STATISTICS:
        raise ValueError(f"answered {line.strip()[:80]!r}, expected {NUM_STATISTICS} numbers")
    return numbers
