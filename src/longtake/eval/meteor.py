"""METEOR 1.5 of tokenised pairs: the alignment comes from the jar, the formula is ours.

The jar prints 23 numbers per pair; pair scores, the corpus score that the dense-captioning evaluators take per video,
and SODA's role-swapped score all follow from them. So every distinct pair is aligned once, whatever it is needed for.

Denkowski and Lavie 2014, "Meteor Universal", with the English ranking parameters (``-l en -norm``).
"""

from __future__ import annotations

import subprocess
import tempfile
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import IO

import numpy as np
from jaxtyping import Float

from longtake.eval.java import METEOR_DATA, METEOR_JAR, JavaError, jar_file, java_command

ALPHA, BETA, GAMMA, DELTA = 0.85, 0.20, 0.60, 0.75
MODULE_WEIGHTS = np.array([1.0, 0.6, 0.8, 0.6])
"""Exact, stem, synonym, paraphrase."""
NUM_STATISTICS = 23

Pair = tuple[str, str]
"""Hypothesis and reference, tokenised."""
Statistics = Float[np.ndarray, " statistics"]
"""Hypothesis and reference length, function words of each; four numbers per module; chunks, matched words of each."""

_PAIRS_IN_FLIGHT = 64
"""So few that the answers fit the pipe: the jar never waits for us while we wait for it."""


def pair_score(statistics: Statistics) -> float:
    """METEOR of one pair, or of summed statistics.

    Equation: F (1 - gamma frag^beta), F from P and R weighted by module and by content against function words.
    """
    hypothesis_words, reference_words, hypothesis_function, reference_function = statistics[:4]
    content, function = (DELTA, 1 - DELTA)
    matches = MODULE_WEIGHTS @ statistics[4:20].reshape(4, 4)  # content-hyp, content-ref, function-hyp, function-ref
    chunks, hypothesis_matched, reference_matched = statistics[20:]
    hypothesis_weight = content * (hypothesis_words - hypothesis_function) + function * hypothesis_function
    reference_weight = content * (reference_words - reference_function) + function * reference_function
    if not (hypothesis_weight > 0 and reference_weight > 0):
        return 0.0
    precision = (content * matches[0] + function * matches[2]) / hypothesis_weight
    recall = (content * matches[1] + function * matches[3]) / reference_weight
    if not (precision > 0 and recall > 0):
        return 0.0
    fragmentation = chunks / ((hypothesis_matched + reference_matched) / 2)
    if chunks == 1 and hypothesis_matched == hypothesis_words and reference_matched == reference_words:
        fragmentation = 0.0
    f_mean = 1.0 / ((1 - ALPHA) / precision + ALPHA / recall)
    return float(f_mean * (1 - GAMMA * fragmentation**BETA))


def corpus_score(rows: Sequence[Statistics]) -> float:
    """METEOR of a set of pairs: the formula applied once to their summed statistics; not the mean of their scores.

    A pair that is matched whole in one chunk adds no chunk to the sum.
    """
    if not rows:
        return 0.0
    table = np.array(rows)
    whole = (table[:, 20] == 1) & (table[:, 21] == table[:, 0]) & (table[:, 22] == table[:, 1])
    table[whole, 20] = 0
    return pair_score(table.sum(axis=0))


class Meteor:
    """The jar as one child process, started when the first pair is asked for; a context manager that ends it.

    Not for use from several threads. After an error the process is gone and the next call starts a fresh one.
    """

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
        self._known: dict[Pair, Statistics] = {}

    def __enter__(self) -> Meteor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def statistics(self, pairs: Iterable[Pair]) -> dict[Pair, Statistics]:
        """The jar's numbers for every distinct pair, aligned once in the life of this object.

        Raises:
            JavaError: the process failed or gave no answer in time.
        """
        wanted = list(dict.fromkeys(pairs))
        unknown = [pair for pair in wanted if pair not in self._known]
        for start in range(0, len(unknown), _PAIRS_IN_FLIGHT):
            batch = unknown[start : start + _PAIRS_IN_FLIGHT]
            self._known.update(zip(batch, self._align(batch), strict=True))
        return {pair: self._known[pair] for pair in wanted}

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

    def _align(self, batch: Sequence[Pair]) -> list[Statistics]:
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
