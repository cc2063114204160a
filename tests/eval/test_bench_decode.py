"""The benchmark of answers asks the moments it says and counts what they hold; its times are not tested."""

from __future__ import annotations

import math

import pytest
import torch

from longtake.cli.app import run
from longtake.errors import ConfigError
from longtake.eval.bench_decode import (
    BARS,
    DecodeSetting,
    answer_timed,
    bench_decode,
    compared,
    moments,
    peak_growth,
    watched,
)
from longtake.eval.random_vlm import random_qwen3_vl
from longtake.methods.statekv import StateKV
from longtake.methods.statekv_config import StateKVConfig
from longtake.vlm.families import family_of


def tiny(**config: object) -> StateKV:
    family = family_of(*random_qwen3_vl(), height=32, width=32)
    return StateKV(family, StateKVConfig(budget=16, answer="bounded", answer_chunks=2, **config))  # pyright: ignore[reportArgumentType]


def test_the_late_moment_has_as_many_chunks_beyond_full_pages() -> None:
    model = tiny()
    assert moments(model, DecodeSetting()) == [60, 1852]  # two frames a second; 1,800 and 52 more
    assert moments(model, DecodeSetting(early_minutes=1, minutes=1 + 64 / 30)) == [30, 94]


def test_bounded_answers_hold_the_same_and_whole_ones_more() -> None:
    model = tiny()
    model.family.eos_token_ids = frozenset()
    with torch.inference_mode():
        states = watched(model, [12, 24])
        bounded, whole = (compared(model, states, 2, 2, bounded=one) for one in (True, False))
        answer = answer_timed(model, states[0], 2, True)
    assert [state.num_chunks for state in states] == [12, 24]
    assert bounded["memory_ratio"] < 1.05
    assert whole["memory_ratio"] > 1.15
    assert answer.held_bytes == bounded["held_bytes"][0]
    assert 0 < answer.first_word_seconds <= answer.seconds
    assert bounded["pairs"] == 2


def test_growth_is_told_where_the_system_tells_it() -> None:
    grown = peak_growth(lambda: torch.ones(4 << 20).sum())
    assert grown >= 12 << 20


def test_one_moment_is_refused() -> None:
    with pytest.raises(ConfigError, match="over 2 minutes"):
        bench_decode(DecodeSetting(minutes=2))


def test_measured_in_a_process_of_its_own(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    setting = DecodeSetting(early_minutes=0.4, minutes=0.5, words=1, rounds=1, whole_rounds=1)
    result = bench_decode(setting)
    assert set(result["ratios"]) == set(BARS)
    assert all(math.isfinite(ratio) and ratio > 0 for ratio in result["ratios"].values())
    assert result["raw"]["chunks"] == [19, 83]
    assert result["raw"]["threads"] == 1
    monkeypatch.setattr("longtake.eval.bench_decode.bench_decode", lambda *_, **__: result)
    assert run(["bench", "decode"]) == 0
    assert "memory_late_over_early" in capsys.readouterr().out
