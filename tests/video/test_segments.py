"""Segments: the grid, the shape, true times, and the same frames wherever reading starts."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.video.clips import make_video, number_of, remux

from longtake.errors import ConfigError, SourceError
from longtake.types import Segment, SegmentSpec
from longtake.video import open_source, sample, segments

SPEC = SegmentSpec(num_frames=4, fps=5, height=48, width=64)


def read(path: Path, spec: SegmentSpec = SPEC, *, start_seconds: float = 0.0, first_index: int = 0) -> list[Segment]:
    with segments(path, spec, start_seconds=start_seconds, first_index=first_index) as stream:
        return list(stream)


def numbers(cut: list[Segment]) -> list[int]:
    return [number_of(pixels.permute(1, 2, 0).numpy()) for segment in cut for pixels in segment.pixels]


def times(cut: list[Segment]) -> list[float]:
    return [seconds for segment in cut for seconds in segment.pts_seconds]


def test_segments_take_every_grid_frame_once_in_order(tmp_path: Path) -> None:
    cut = read(make_video(tmp_path / "a.mp4", frames=50))
    assert numbers(cut) == list(range(0, 50, 5))
    assert times(cut) == pytest.approx([number / 25 for number in range(0, 50, 5)])
    assert [segment.index for segment in cut] == [0, 1, 2]
    assert [len(segment.pts_seconds) for segment in cut] == [4, 4, 2]
    assert [(segment.start_seconds, segment.end_seconds) for segment in cut] == [(0.0, 0.8), (0.8, 1.6), (1.6, 2.0)]
    assert all(segment.total_seconds == pytest.approx(2.0) for segment in cut)


def test_segments_have_the_shape_that_the_model_wants(tmp_path: Path) -> None:
    spec = SegmentSpec(num_frames=3, fps=10, height=32, width=32)
    cut = read(make_video(tmp_path / "a.mp4", frames=20), spec)
    assert {tuple(segment.pixels.shape[1:]) for segment in cut} == {(3, 32, 32)}
    assert {segment.pixels.dtype for segment in cut} == {torch.uint8}
    assert all(segment.pixels.is_contiguous() for segment in cut)


@pytest.mark.parametrize(("size", "bars"), [((64, 32), "rows"), ((32, 64), "columns"), ((64, 64), "none")])
def test_segments_keep_proportions_between_equal_black_bars(tmp_path: Path, size: tuple[int, int], bars: str) -> None:
    spec = SegmentSpec(num_frames=1, fps=1, height=64, width=64)
    path = make_video(tmp_path / "a.mov", codec="png", pixel_format="rgb24", size=size, frames=1)
    pixels = read(path, spec)[0].pixels[0].amax(dim=0)
    rows, columns = (pixels.amax(dim=1) > 0).nonzero().flatten(), (pixels.amax(dim=0) > 0).nonzero().flatten()
    assert (int(rows[0]), int(rows[-1])) == ((16, 47) if bars == "rows" else (0, 63))
    assert (int(columns[0]), int(columns[-1])) == ((16, 47) if bars == "columns" else (0, 63))


def test_a_picture_one_pixel_wide_still_fits(tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mov", codec="png", pixel_format="rgb24", size=(1, 64), frames=2)
    assert read(path)[0].pixels.shape == (1, 3, 48, 64)


def test_segments_hold_slides(tmp_path: Path) -> None:
    spec = SegmentSpec(num_frames=5, fps=1, height=48, width=64)
    cut = read(make_video(tmp_path / "a.mp4", [0, 10_000, 20_000]), spec)
    assert numbers(cut) == [0] * 10 + [1] * 10 + [2]
    assert times(cut) == [0.0] * 10 + [10.0] * 10 + [20.0]


def test_a_video_of_one_frame_is_one_segment(tmp_path: Path) -> None:
    cut = read(make_video(tmp_path / "a.mp4", frames=1))
    assert [segment.pts_seconds for segment in cut] == [(0.0,)]
    assert (cut[0].start_seconds, cut[0].end_seconds) == (0.0, 0.2)


def test_segments_match_sampled_frames(tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mp4", [0, 90, 100, 480, 520, 700, 1500, 1510, 2600])
    with open_source(path) as source:
        frames = list(sample(source, SPEC.fps))
    cut = read(path)
    assert times(cut) == [frame.pts_seconds for frame in frames]
    pixels = torch.cat([segment.pixels for segment in cut]).permute(0, 2, 3, 1).numpy()
    assert np.array_equal(pixels, np.stack([frame.rgb for frame in frames]))


CONTAINERS = {
    "closed groups": ("a.mp4", {}),
    "B-frames": ("a.mp4", {"bf": "3", "b_strategy": "0", "preset": "fast"}),
    "open groups": ("a.mp4", {"bf": "2", "preset": "fast", "x264-params": "open-gop=1:keyint=12:b-adapt=0"}),
    "intra refresh": ("a.mp4", {"x264-params": "intra-refresh=1:keyint=20"}),
    "one keyframe": ("a.mp4", {"g": "1000"}),
    "matroska": ("a.mkv", {"bf": "2", "preset": "fast"}),
    "matroska with open groups": ("a.mkv", {"bf": "2", "preset": "fast", "x264-params": "open-gop=1:keyint=12"}),
    "transport stream": ("a.ts", {}),
    "flash": ("a.flv", {}),
}


@pytest.fixture(scope="module", params=CONTAINERS)
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Segment]]:
    """A video of 8 s, and all its segments."""
    name, options = CONTAINERS[request.param]
    path = make_video(tmp_path_factory.mktemp("whole") / name, frames=200, group=12, options=options)
    return path, read(path)


@pytest.mark.parametrize("tick", [0, 1, 4, 7, 15, 21, 33, 39, 40, 100])
def test_segments_resume_with_the_frames_of_an_unbroken_run(whole: tuple[Path, list[Segment]], tick: int) -> None:
    path, cut = whole
    rest = read(path, start_seconds=tick / SPEC.fps)
    pixels = torch.cat([segment.pixels for segment in cut])[tick:]
    assert times(rest) == times(cut)[tick:]
    assert len(pixels) == sum(len(segment.pixels) for segment in rest)
    assert all(torch.equal(a, b) for a, b in zip(pixels, itertools.chain(*(s.pixels for s in rest)), strict=True))
    assert not rest or rest[0].start_seconds == pytest.approx(tick / SPEC.fps)


def test_resuming_numbers_segments_from_where_it_is_told(tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mp4", frames=100)
    assert [segment.index for segment in read(path, start_seconds=1.6, first_index=2)] == [2, 3, 4]


def test_resuming_reads_little_of_a_long_file(tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mp4", frames=500)
    with segments(path, SPEC, start_seconds=18.0) as stream:
        assert numbers(list(stream)) == list(range(450, 500, 5))
        assert stream.report.frames < 100


def test_resuming_in_the_middle_does_not_call_the_file_incomplete(tmp_path: Path) -> None:
    with segments(make_video(tmp_path / "a.mp4", frames=200), SPEC, start_seconds=5.0) as stream:
        list(stream)
        assert stream.report.warnings == ()


def test_resuming_in_a_cut_copy_keeps_hidden_frames_hidden(tmp_path: Path) -> None:
    whole = make_video(tmp_path / "whole.mp4", frames=150, group=30)
    path = remux(whole, tmp_path / "cut.mp4", keep=range(30, 150), shift_ticks=0)
    cut, rest = read(path), read(path, start_seconds=3.0)
    assert numbers(rest) == numbers(cut)[15:]


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Frames of uneven length."""
    steps = [20, 60, 33, 33, 34, 500, 1, 1, 100, 40, 40, 900, 40, 40, 40, 250, 250, 10, 10, 700]
    return make_video(tmp_path_factory.mktemp("clip") / "a.mp4", list(itertools.accumulate([0, *steps])))


@given(num_frames=st.integers(1, 9), fps=st.sampled_from([0.5, 1.0, 2.0, 5.0, 12.5, 30.0]))
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_cut_gives_the_same_frames_once_in_order(clip: Path, num_frames: int, fps: float) -> None:
    spec = SegmentSpec(num_frames=num_frames, fps=fps, height=48, width=64)
    cut = read(clip, spec)
    with open_source(clip) as source:
        frames = list(sample(source, fps))
    assert times(cut) == [frame.pts_seconds for frame in frames]
    assert numbers(cut) == [number_of(frame.rgb) for frame in frames]
    assert [len(segment.pts_seconds) for segment in cut[:-1]] == [num_frames] * (len(cut) - 1)
    assert all(a.end_seconds == b.start_seconds for a, b in itertools.pairwise(cut))
    assert [segment.index for segment in cut] == list(range(len(cut)))


@given(places=st.lists(st.integers(1, 16), max_size=4))
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_pauses_give_the_frames_of_an_unbroken_run(clip: Path, places: list[int]) -> None:
    whole, parts, tick = read(clip), [], 0
    for place in sorted(set(places)):
        with segments(clip, SPEC, start_seconds=tick / SPEC.fps) as stream:
            for segment in stream:
                parts.append(segment)
                tick = round(segment.end_seconds * SPEC.fps)
                if tick >= place:
                    break
    parts += read(clip, start_seconds=tick / SPEC.fps)
    assert times(parts) == times(whole)
    assert numbers(parts) == numbers(whole)


@pytest.mark.parametrize(("option", "value"), [("start_seconds", -1.0), ("start_seconds", float("nan"))])
def test_a_wrong_option_is_refused(tmp_path: Path, option: str, value: float) -> None:
    with pytest.raises(ConfigError, match=option):
        segments(make_video(tmp_path / "a.mp4"), SPEC, **{option: value})  # type: ignore[arg-type]


def test_a_source_without_a_frame_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(b"nothing to see")
    with pytest.raises(SourceError, match="not a video"):
        segments(tmp_path / "a.mp4", SPEC)


def test_files_have_no_lag_and_drop_nothing(tmp_path: Path) -> None:
    with segments(make_video(tmp_path / "a.mp4"), SPEC, on_lag="drop") as stream:
        assert len(list(stream)) == 3
        assert (stream.is_live, stream.lag_seconds, stream.dropped_frames) == (False, 0.0, 0)
