"""``longtake bench scan``: the form of the SSM that runs against the paper's FFT form and against a linear layer.

Everything is timed in turn within one process with one thread, so that a slow moment of the machine hits all alike,
and in CPU time of that thread, so that what other programs take does not count.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from statistics import median
from time import thread_time
from typing import Any

import torch

from longtake.eval.apart import measured_apart
from longtake.state.ssm import SSM, SSMWeights, chunk_length, chunk_operators, fft_kernels, scan_chunked, scan_fft

LENGTHS = (256, 1024, 4096)
BARS: dict[str, tuple[float | None, float | None]] = {
    "fft_over_chunked_1024": (20.0, None),
    "linear_over_chunked_kept_1024": (1.0, None),
}
"""Least and most that a ratio may be."""
_ROUNDS = {256: 11, 1024: 9, 4096: 5}
_CALLS = 3
"""Calls of the fast candidates per round; the FFT form is called once."""


def bench_scan(lengths: tuple[int, ...] = LENGTHS, dim: int = 768, state: int = 16) -> dict[str, Any]:
    """Measure in a process of its own, which alone is set to one thread; the caller's threads stay as they are."""
    return measured_apart(__name__, json.dumps([lengths, dim, state]), threads=1)


def measure_scan(lengths: tuple[int, ...], dim: int, state: int) -> dict[str, Any]:
    """Time all candidates in this process.

    ``ratios`` are medians over medians, above 1 where the chunked form is faster. ``fft_over_chunked_T``: both start
    from the discretised weights and build their own kernels or matrices within the time, as in training.
    ``..._kept_T``: both have them ready, as in a stream; so has, in its way, the linear layer over the same T tokens.
    """
    ratios: dict[str, float] = {}
    seconds: dict[str, dict[str, float]] = {}
    differences: dict[str, float] = {}
    for length in lengths:
        candidates, differences[str(length)] = _candidates(length, dim, state)
        timed = _interleaved(candidates, _ROUNDS.get(length, 5))
        seconds[str(length)] = timed
        ratios[f"fft_over_chunked_{length}"] = timed["fft"] / timed["chunked"]
        ratios[f"fft_kept_over_chunked_kept_{length}"] = timed["fft_kept"] / timed["chunked_kept"]
        ratios[f"linear_over_chunked_kept_{length}"] = timed["linear"] / timed["chunked_kept"]
    raw = {
        "seconds": seconds,
        "max_relative_difference": differences,
        "dim": dim,
        "state": state,
        "chunk": {str(length): chunk_length(length) for length in lengths},
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "bars": BARS,
    }
    return {"name": "scan", "ratios": ratios, "raw": raw}


def _candidates(length: int, dim: int, state: int) -> tuple[dict[str, Callable[[], object]], float]:
    """What is timed, each given its inputs in the layout it likes best, and the error of the chunked form."""
    torch.manual_seed(0)
    model = SSM(dim, state).eval()
    weights, carried = model.weights(), model.init_carried(1) + 1
    tokens = torch.randn(1, length, dim)
    channels = tokens.transpose(1, 2).contiguous()
    linear = torch.nn.Linear(dim, dim)
    kernels, operators = fft_kernels(weights, length), chunk_operators(weights, chunk_length(length))
    candidates: dict[str, Callable[[], object]] = {
        "fft": lambda: scan_fft(channels, weights, carried),
        "fft_kept": lambda: scan_fft(channels, weights, carried, kernels),
        "chunked": lambda: scan_chunked(tokens.transpose(1, 2), weights, carried),
        "chunked_kept": lambda: scan_chunked(tokens.transpose(1, 2), weights, carried, operators),
        "linear": lambda: linear(tokens),
    }
    return candidates, _difference(channels, weights, carried)


def _difference(inputs: torch.Tensor, weights: SSMWeights, carried: torch.Tensor) -> float:
    """Largest difference of outputs and states, each relative to its largest value."""
    pairs = zip(scan_chunked(inputs, weights, carried), scan_fft(inputs, weights, carried), strict=True)
    return max(((got - expected).abs().max() / expected.abs().max()).item() for got, expected in pairs)


def _interleaved(candidates: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median CPU seconds of each; the first round, which warms up, does not count."""
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for index in range(rounds + 1):
        for name, run in candidates.items():
            for _ in range(1 if name.startswith("fft") else _CALLS):
                started = thread_time()
                run()
                if index:
                    times[name].append(thread_time() - started)
    return {name: median(taken) for name, taken in times.items()}


if __name__ == "__main__":
    torch.set_num_threads(1)
    with torch.inference_mode():
        sys.stdout.write(json.dumps(measure_scan(*json.loads(sys.argv[1]))))
