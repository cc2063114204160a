"""METEOR 1.5 of tokenised pairs: the alignment comes from the jar, the formula is ours.

The jar prints 23 numbers per pair; pair scores, the corpus score that the dense-captioning evaluators take per video,
and SODA's role-swapped score all follow from them. So every distinct pair is aligned once, whatever it is needed for.

Denkowski and Lavie 2014, "Meteor Universal", with the English ranking parameters (``-l en -norm``).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType

import numpy as np

from longtake.eval.meteor_process import PAIRS_IN_FLIGHT, MeteorProcess, Pair, Statistics

ALPHA, BETA, GAMMA, DELTA = 0.85, 0.20, 0.60, 0.75
MODULE_WEIGHTS = np.array([1.0, 0.6, 0.8, 0.6])
"""Exact, stem, synonym, paraphrase."""
PAIRS_PER_PROCESS = 4096
"""Another process is worth its start, which takes some ten seconds of a core, from so many pairs on."""


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
    """The jar in one child process per core, started as there are pairs for them; a context manager that ends them.

    Not for use from several threads. After an error the processes are gone and the next call starts fresh ones.
    """

    def __init__(self, *, timeout_seconds: float = 300.0, processes: int | None = None) -> None:
        """Find the tools; nothing is started yet.

        Args:
            timeout_seconds: longest wait for 64 pairs, loading the paraphrase table (about 10 s) included.
            processes: at most so many; by default as many as there are cores. Each takes up to 2 GB.

        Raises:
            JavaError: Java, the jar or its paraphrase table is missing.
        """
        count = processes or os.cpu_count() or 1
        self._processes = [MeteorProcess(timeout_seconds=timeout_seconds) for _ in range(count)]
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
            JavaError: a process failed or gave no answer in time.
        """
        wanted = list(dict.fromkeys(pairs))
        unknown = [pair for pair in wanted if pair not in self._known]
        self._align([unknown[start : start + PAIRS_IN_FLIGHT] for start in range(0, len(unknown), PAIRS_IN_FLIGHT)])
        return {pair: self._known[pair] for pair in wanted}

    def close(self) -> None:
        """End the processes; they hold nothing that would need time to be put away."""
        for process in self._processes:
            process.close()

    def _align(self, batches: Sequence[Sequence[Pair]]) -> None:
        over = threading.Event()

        def align(process: MeteorProcess, mine: Sequence[Sequence[Pair]]) -> None:
            for batch in mine:
                if over.is_set():
                    return
                self._known.update(zip(batch, process.align(batch), strict=True))

        count = max(1, min(len(self._processes), len(batches) * PAIRS_IN_FLIGHT // PAIRS_PER_PROCESS))
        with ThreadPoolExecutor(count) as pool:
            try:
                shares = (batches[number::count] for number in range(count))
                for _ in pool.map(align, self._processes[:count], shares):
                    pass
            except BaseException:
                over.set()
                self.close()  # whoever waits for an answer waits no longer
                raise
