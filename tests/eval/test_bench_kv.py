"""The benchmark of StateKV takes in what a stream takes in and counts what attention does; its times are not tested."""

from __future__ import annotations

import math

import pytest
import torch

from longtake.cli.app import run
from longtake.eval.bench_kv import BARS, AttentionSetting, StreamSetting, bench_kv, counted_flops, measure_stream
from longtake.eval.random_vlm import random_qwen3_vl
from longtake.methods.statekv import StateKV
from longtake.methods.statekv_config import StateKVConfig
from longtake.types import Ask, Segment
from longtake.vlm.families import family_of

STREAM = StreamSetting(frame_pixels=64, budget=40, num_frames=6, early=8, late=20, full_late=16, rounds=2)
ATTENTION = AttentionSetting(hidden=64, heads=4, kv_heads=2, head_dim=16, layers=2, chunk=12, budget=40, rounds=2)


def test_bench_kv_prints_every_ratio_with_one_thread_and_leaves_ours_alone() -> None:
    threads = torch.get_num_threads()
    result = bench_kv(STREAM, ATTENTION)
    assert torch.get_num_threads() == threads
    assert result["name"] == "kv"
    assert set(result["ratios"]) == set(BARS) == set(result["raw"]["bars"])
    assert all(math.isfinite(ratio) and ratio > 0 for ratio in result["ratios"].values())
    raw = result["raw"]
    assert raw["threads"] == 1
    assert raw["statekv"]["frames"] == [[8, 14], [20, 26]]
    assert raw["full"]["frames"] == [[8, 14], [16, 22]]
    assert (raw["statekv"]["pairs"], raw["full"]["pairs"]) == (6, 3)
    assert set(raw["seconds_per_layer"]) == {"attention", "loop", "batch"}
    assert result["ratios"]["counted_over_two_products"] == 1.0


def test_command_prints_each_ratio_beside_its_bar(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = dict.fromkeys(BARS, 1.0)
    monkeypatch.setattr(
        "longtake.eval.bench_kv.bench_kv", lambda: {"name": "kv", "ratios": measured, "raw": {"bars": BARS}}
    )
    assert run(["bench", "kv"]) == 0
    rows = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines()[2:]}
    assert rows["late_over_early"] == ["1.000", "<=", "1.08", "holds"]
    assert rows["full_late_over_early"] == ["1.000", ">=", "1.08", "missed"]
    assert rows["counted_over_two_products"] == ["1.000", "=", "1", "holds"]


def test_windows_are_taken_in_from_kept_states() -> None:
    with torch.inference_mode():
        kept, full = (measure_stream(policy, STREAM, STREAM.late, 1) for policy in ("statekv", "full"))
    assert kept["carried_tokens"] == [40, 40]  # full before either window
    assert full["carried_tokens"] == full["seen_tokens"][:2]
    early, late, end = kept["seen_tokens"]
    assert 0 < early < late < end


def test_attention_without_a_second_pass_has_two_products() -> None:
    assert counted_flops(ATTENTION) == ATTENTION.flops == 2 * 2 * 4 * 12 * 52 * 16


def test_random_model_is_served_like_a_real_one() -> None:
    model, processor = random_qwen3_vl()
    statekv = StateKV(family_of(model, processor, height=64, width=64), StateKVConfig(max_new_tokens=3))
    pixels = torch.zeros(2, 3, 64, 64, dtype=torch.uint8)
    first = Segment(pixels=pixels, pts_seconds=(2900.0, 2901.0), index=0, start_seconds=2900.0, end_seconds=2902.0)
    ids = statekv.family.frames(pixels, first.pts_seconds, index=0, position=0).input_ids
    words = statekv.family.tokenizer.convert_ids_to_tokens(ids[0].tolist())
    assert words[:9] == ["<", "2", "9", "0", "0", ".", "5", "\u0120seconds", ">"]  # as Qwen's own tokenizer splits it
    with torch.inference_mode():
        state = statekv.advance(statekv.init_state(), first)
        (answer,) = statekv.respond(state, Ask(question="What?"))
    assert isinstance(answer.text, str)
