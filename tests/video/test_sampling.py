"""The time grid: nearest frame, ties to the earlier one, held over gaps, nothing past the end."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtake.errors import ConfigError
from longtake.types import Frame
from longtake.video import sample
from longtake.video.sampling import sample_ticks

PIXEL = np.zeros((1, 1, 3), np.uint8)


def frames_at(*seconds: float) -> list[Frame]:
    return [Frame(rgb=PIXEL, pts_seconds=moment) for moment in seconds]


def sampled(seconds: list[float], fps: float, start: float = 0.0) -> list[float]:
    return [frame.pts_seconds for frame in sample(frames_at(*seconds), fps, start)]


def even(fps: float, count: int) -> list[float]:
    return [number / fps for number in range(count)]


def nearest_by_search(seconds: list[float], fps: float, start: float) -> list[float]:
    """What ``sample`` must give, looked up among all frames for each grid point."""
    half_step = 0.5 / fps
    last_gap = seconds[-1] - seconds[-2] if len(seconds) > 1 else 0.0
    chosen: list[float] = []
    for tick in itertools.count(max(0, math.ceil(start * fps - 1e-6))):
        moment = tick / fps
        if moment > seconds[-1] and moment >= seconds[-1] + min(half_step, last_gap / 2):
            return chosen
        usable = [time for time in seconds if time <= moment or time - moment <= half_step + 1e-9] or seconds[:1]
        best = min(abs(time - moment) for time in usable)
        chosen.append(next(time for time in usable if abs(time - moment) <= best + 1e-9))
    raise AssertionError


def test_sample_takes_the_nearest_frame() -> None:
    assert sampled([0.0, 0.3, 0.6, 0.9, 1.2, 1.5], 2) == [0.0, 0.6, 0.9, 1.5]


def test_sample_takes_the_earlier_frame_on_a_tie() -> None:
    assert sampled([0.0, 0.48, 0.52, 1.0], 2) == [0.0, 0.48, 1.0]


def test_sample_does_not_take_all_frames_of_240_fps() -> None:
    assert sampled(even(240, 961), 2) == pytest.approx([0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4])


def test_sample_holds_slides_of_one_in_ten_seconds() -> None:
    taken = sampled([0.0, 10.0, 20.0], 1)
    assert taken == [0.0] * 10 + [10.0] * 10 + [20.0]


def test_sample_holds_the_last_frame_over_a_gap_of_40_seconds() -> None:
    taken = sampled([0.0, 1.0, 1.901, 41.934, 43.0], 1)
    assert taken[20] == taken[30] == taken[41] == 1.901
    assert taken[42:] == [41.934, 43.0]


def test_sample_ends_with_the_video() -> None:
    assert len(sampled(even(25, 250), 1)) == 10
    assert len(sampled(even(8, 320), 2)) == 80
    assert len(sampled(even(30, 300), 30)) == 300


def test_sample_takes_a_grid_point_that_rounds_to_the_last_frame() -> None:
    assert len(sampled([round(moment, 3) for moment in even(24, 24)], 24)) == 24


@pytest.mark.parametrize("fps", [0.1, 1.0, 25.0])
def test_sample_of_one_frame_is_that_frame(fps: float) -> None:
    assert sampled([0.0], fps) == [0.0]


def test_sample_of_nothing_is_nothing() -> None:
    assert sampled([], 2) == []


@pytest.mark.parametrize("fps", [0.0, -1.0, math.nan])
def test_sample_refuses_a_rate_that_is_none(fps: float) -> None:
    with pytest.raises(ConfigError, match="fps"):
        sampled([0.0], fps)


vfr = st.lists(st.integers(1, 3000), max_size=40).map(
    lambda steps: [0.0, *(total / 1000 for total in itertools.accumulate(steps))]
)
rates = st.sampled_from([0.1, 0.5, 1.0, 2.0, 3.0, 8.0, 25.0, 29.97])


@given(vfr, rates, st.floats(0, 20))
def test_sample_matches_a_search_over_all_frames(seconds: list[float], fps: float, start: float) -> None:
    assert sampled(seconds, fps, start) == nearest_by_search(seconds, fps, start)


@given(vfr, rates, st.integers(0, 50))
def test_sample_from_a_grid_point_is_the_rest_of_the_whole(seconds: list[float], fps: float, tick: int) -> None:
    whole = sampled(seconds, fps)
    assert sampled(seconds, fps, tick / fps) == whole[tick:]


@given(vfr, rates)
def test_sample_looks_ahead_by_one_frame_only(seconds: list[float], fps: float) -> None:
    taken = 0

    def source() -> Iterator[Frame]:
        nonlocal taken
        for frame in frames_at(*seconds):
            taken += 1
            yield frame

    for tick, frame in sample_ticks(source(), fps):
        needed = sum(moment < tick / fps for moment in seconds) + 1
        assert taken <= needed, f"frame {frame.pts_seconds} needed {needed} frames"
