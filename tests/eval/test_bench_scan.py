"""The benchmark of the SSM compares equal results, alone and with one thread; how fast they are is not tested."""

from __future__ import annotations

import math

import torch

from longtake.eval.bench_scan import BARS, LENGTHS, bench_scan


def test_bench_scan_compares_equal_results_with_one_thread_and_leaves_ours_alone() -> None:
    threads = torch.get_num_threads()
    result = bench_scan(lengths=(40, 64), dim=8, state=4)
    assert torch.get_num_threads() == threads
    assert result["name"] == "scan"
    assert result["raw"]["threads"] == 1
    assert set(result["raw"]["max_relative_difference"]) == {"40", "64"}
    assert all(0 < difference < 2e-5 for difference in result["raw"]["max_relative_difference"].values())
    seconds = result["raw"]["seconds"]["40"]
    assert result["ratios"]["fft_over_chunked_40"] == seconds["fft"] / seconds["chunked"]
    assert result["ratios"]["linear_over_chunked_kept_40"] == seconds["linear"] / seconds["chunked_kept"]
    assert all(math.isfinite(ratio) and ratio > 0 for ratio in result["ratios"].values())


def test_every_bar_belongs_to_a_ratio_that_is_measured() -> None:
    names = {f"{kind}_{n}" for kind in ("fft_over_chunked", "linear_over_chunked_kept") for n in LENGTHS}
    assert set(BARS) <= names
