"""The benchmark of a long stream sees growth where there is some, and measures what a session does."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.contract.models import make_captioner

from longtake import hub
from longtake.data.toybox import make_script
from longtake.data.toybox.write import write_video
from longtake.errors import ConfigError, LongtakeError
from longtake.eval.bench_stream import BARS, StreamRun, bench_stream, judge, long_video, measure_apart
from longtake.session import caption

MIB = 2**20


def run_of(resident: list[float], seconds: list[float]) -> StreamRun:
    """One segment a second, with the given memory in MiB and wall time."""
    return StreamRun(
        seen_seconds=[float(index + 1) for index in range(len(seconds))],
        segment_seconds=seconds,
        cpu_seconds=seconds,
        resident_bytes=[int(size * MIB) for size in resident],
        state_bytes=[64] * len(seconds),
    )


def holds(result: dict[str, dict[str, float]]) -> set[str]:
    """Names of the bars that are cleared."""
    limits = {name: (least or 0.0, most or float("inf")) for name, (least, most) in BARS.items()}
    return {name for name, (least, most) in limits.items() if least <= result["ratios"][name] <= most}


def test_steady_run_clears_every_bar() -> None:
    result = judge(run_of([300.0] * 600, [0.01] * 600))
    assert holds(result) == set(BARS)
    assert result["ratios"]["realtime_factor"] == pytest.approx(100)


def test_memory_that_creeps_misses_its_bar() -> None:
    result = judge(run_of([300 + index * 0.03 for index in range(600)], [0.01] * 600))
    assert holds(result) == set(BARS) - {"memory_end_over_minute2"}
    assert result["ratios"]["memory_end_over_minute2"] == pytest.approx(
        (300 + 597 * 0.03) / (300 + 117 * 0.03), rel=1e-4
    )


def test_memory_is_compared_with_minute_2_and_not_with_the_start() -> None:
    result = judge(run_of([100.0] * 60 + [300.0] * 540, [0.01] * 600))
    assert result["ratios"]["memory_end_over_minute2"] == 1.0


def test_segments_that_slow_down_miss_their_bar() -> None:
    result = judge(run_of([300.0] * 600, [0.01 + index * 1e-6 for index in range(600)]))
    assert holds(result) == set(BARS) - {"last_tenth_over_first_tenth"}


def test_slow_first_call_does_not_hide_segments_that_slow_down() -> None:
    result = judge(run_of([300.0] * 600, [5.0] + [0.01] * 300 + [0.02] * 299))
    assert result["ratios"]["last_tenth_over_first_tenth"] == pytest.approx(2)


def test_run_below_20_times_real_time_misses_its_bar() -> None:
    assert holds(judge(run_of([300.0] * 600, [0.06] * 600))) == set(BARS) - {"realtime_factor"}


def test_video_too_short_to_judge_is_refused_before_it_is_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="3 or more"):
        bench_stream(2, "toybox-sts", tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_long_video_is_made_once(tmp_path: Path) -> None:
    path = long_video(tmp_path, 0.7, seed=3)
    made = path.stat().st_mtime_ns
    assert long_video(tmp_path, 0.7, seed=3) == path
    assert path.stat().st_mtime_ns == made


def test_measuring_process_sees_what_a_caption_run_sees(tmp_path: Path) -> None:
    write_video(make_script(5, seconds=16.0), tmp_path / "video.mp4")
    models = (make_captioner("sts", seed) for seed in range(30))  # some random models never speak
    model, said = next((model, said) for model in models if (said := list(caption(tmp_path / "video.mp4", model))))
    hub.save(model, tmp_path / "model")
    run = measure_apart(tmp_path / "video.mp4", str(tmp_path / "model"))
    assert run.seen_seconds[-1] == pytest.approx(16.0)
    assert len(run.segment_seconds) == len(run.seen_seconds) == len(run.resident_bytes) == len(run.state_bytes)
    assert min(run.resident_bytes) > 50 * MIB  # torch alone is more
    assert len(set(run.state_bytes)) == 1
    assert run.num_events == len(said)


def test_measuring_process_that_fails_is_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = tmp_path / "python"
    failing.write_text("#!/bin/sh\necho no memory left >&2\nexit 7\n")
    failing.chmod(0o700)
    monkeypatch.setattr("sys.executable", str(failing))
    with pytest.raises(LongtakeError, match="measuring process ended with 7: no memory left"):
        measure_apart(tmp_path / "video.mp4", "model")
