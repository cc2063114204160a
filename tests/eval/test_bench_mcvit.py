"""The benchmarks of MC-ViT count what runs, see growth where there is some, and print every ratio beside its bar."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch.nn import functional

from longtake.cli.app import run
from longtake.errors import ConfigError
from longtake.eval import bench_mcvit, bench_memory
from longtake.eval.bench_mcvit import inertia, measure_time
from longtake.eval.bench_memory import MemorySetting, measure_memory
from longtake.eval.mcvit_cost import Shapes, counted, expected_flops, random_model, take_in_video
from longtake.eval.process_memory import pages_of_their_own, peak_growth
from longtake.eval.tensor_memory import TensorMemory

SHAPES = Shapes(video_frames=8, num_frames=2, size=16, patch=4, dim=32, num_layers=2, num_heads=2, kept=5)
STREAM = MemorySetting(
    minutes=1.0,
    fps=4.0,
    num_frames=4,
    size=16,
    patch=4,
    dim=32,
    num_layers=2,
    num_heads=2,
    kept=5,
    segments=4,
    window=10,
)


@pytest.mark.parametrize("variant", ["joint", "st", "mc-r", "mc-km"])
def test_counted_operations_match_those_by_hand(variant: str) -> None:
    model = random_model(SHAPES, variant)  # type: ignore[arg-type]
    assert counted(lambda: take_in_video(model, SHAPES)) == expected_flops(SHAPES, variant)  # type: ignore[arg-type]


def test_fused_attention_counts_as_two_products() -> None:
    query, key = torch.randn(1, 2, 300, 8), torch.randn(1, 2, 400, 8)
    with torch.inference_mode():
        assert counted(lambda: functional.scaled_dot_product_attention(query, key, key)) == 2 * 2 * 2 * 300 * 400 * 8


def test_peak_is_what_was_alive_at_once() -> None:
    size = 60 * 2**20

    def two_after_another() -> None:
        for _ in range(2):
            torch.ones(size // 4)

    def two_at_once() -> None:
        held = torch.ones(size // 4)
        torch.ones(size // 4)
        del held

    pages_of_their_own()  # another test of this process may have asked that freed memory be kept
    assert peak_growth(two_at_once) - peak_growth(two_after_another) == pytest.approx(size, rel=0.2)


def test_tensors_alive_at_once_are_counted_once_and_let_go() -> None:
    before = torch.ones(1000)
    with TensorMemory() as memory:
        one = torch.ones(1000)
        two = one.view(10, 100).T
        del one
        assert memory.alive_bytes == 4000
        before.view(10, 100)
        before.add_(1)
        assert memory.alive_bytes == memory.peak_bytes == 4000
        two = two + 1
        assert (memory.alive_bytes, memory.peak_bytes) == (4000, 8000)
        del two
        assert memory.alive_bytes == 0


def test_ratio_of_operations_at_the_shapes_of_vit_b() -> None:
    """Written out: what the benchmark will find, to be read beside its bar."""
    shapes = Shapes()
    assert shapes.num_tokens == 2048
    ratios = {
        size: expected_flops(replace(shapes, size=size), "joint") / expected_flops(replace(shapes, size=size), "mc-km")
        for size in (224, 256)
    }
    assert ratios == {224: pytest.approx(2.38, abs=0.01), 256: pytest.approx(2.75, abs=0.01)}


def test_bench_mcvit_gives_every_ratio() -> None:
    told: list[str] = []
    result = bench_mcvit.bench_mcvit(SHAPES, rounds=1, tell=told.append)
    assert result["name"] == "mcvit"
    assert set(result["ratios"]) == set(bench_mcvit.BARS) == set(result["raw"]["bars"])
    assert all(math.isfinite(ratio) for ratio in result["ratios"].values())
    assert result["ratios"]["joint_over_mc_flops"] == pytest.approx(
        expected_flops(SHAPES, "joint") / expected_flops(SHAPES, "mc-km")
    )
    assert result["raw"]["times"]["threads"] == 1
    assert len(told) == 3


def test_kmeans_is_as_good_as_scikit_learns() -> None:
    pytest.importorskip("sklearn")
    shapes = replace(SHAPES, num_frames=8, size=32, kept=8)
    assert measure_time(shapes, rounds=1)["ratios"]["kmeans_over_scikit_learn_inertia"] == pytest.approx(1, abs=0.05)


def test_inertia_is_the_sum_of_squared_distances() -> None:
    points = torch.tensor([[0.0, 0.0], [2.0, 0.0], [10.0, 1.0]])
    assert inertia(points, torch.tensor([[1.0, 0.0], [10.0, 0.0]])) == pytest.approx(3.0)


@pytest.mark.parametrize("kind", bench_memory.KINDS)
def test_memory_of_a_stream_is_measured_once_it_is_full(kind: str) -> None:
    found = measure_memory(STREAM, kind)  # type: ignore[arg-type]
    assert found["segments"] == STREAM.num_segments == 60
    assert found["state_bytes"][0] == found["state_bytes"][1]
    assert found["memory_ratio"] == pytest.approx(1, abs=0.1)
    assert all(seconds > 0 for seconds in found["segment_seconds"])


def test_stream_too_short_is_refused_before_anything_is_measured() -> None:
    with pytest.raises(ConfigError, match=r"expected 6\.13 or more"):
        bench_memory.bench_memory(MemorySetting(minutes=3))


def test_bench_memory_gives_every_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_memory, "measured_apart", lambda *_, **__: {"memory_ratio": 1.0, "time_ratio": 1.2})
    result = bench_memory.bench_memory(MemorySetting())
    assert set(result["ratios"]) == set(bench_memory.BARS) == set(result["raw"]["bars"])


def test_commands_print_each_ratio_beside_its_bar(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (bench_memory, bench_mcvit):
        name = module.__name__.rpartition(".")[2]
        measured = {"name": name, "ratios": dict.fromkeys(module.BARS, 1.04), "raw": {"bars": module.BARS}}
        monkeypatch.setattr(module, name, lambda *_, measured=measured, **__: measured)
    assert run(["bench", "memory", "--minutes", "20"]) == 0
    rows = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines()[2:]}
    assert rows["last_memory_late_over_early"] == ["1.040", "<=", "1.03", "missed"]
    assert rows["global_time_late_over_early"] == ["1.040", "<=", "1.05", "holds"]
    assert run(["bench", "mcvit"]) == 0
    assert "joint_over_mc_flops" in capsys.readouterr().out
