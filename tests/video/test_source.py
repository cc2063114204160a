"""Frames of files: the right pictures, once each, in order, upright, with true times."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from tests.video.clips import HEIGHT, WIDTH, make_video, number_of, picture, remux

from longtake.errors import ConfigError, SourceError
from longtake.types import Frame
from longtake.video import open_source, probe


def read(path: Path, **options: object) -> list[Frame]:
    with open_source(path, **options) as source:  # type: ignore[arg-type]
        return list(source)


def numbers(frames: list[Frame]) -> list[int]:
    return [number_of(frame.rgb) for frame in frames]


@pytest.mark.parametrize(
    ("name", "codec", "pixel_format"),
    [
        ("a.mp4", "libx264", "yuv420p"),
        ("a.mp4", "libx264", "yuv444p"),
        ("a.mp4", "libx264", "yuv420p10le"),
        ("a.mp4", "libx264", "gray"),
        ("a.mkv", "ffv1", "gray16le"),
        ("a.mkv", "ffv1", "bgra"),
        ("a.mkv", "ffv1", "yuv420p"),
        ("a.webm", "libvpx-vp9", "yuv420p"),
        ("a.ts", "libx264", "yuv420p"),
        ("a.avi", "mpeg4", "yuv420p"),
        ("a.mov", "mpeg4", "yuv420p"),
        ("a.mpg", "mpeg2video", "yuv420p"),
        ("a.flv", "libx264", "yuv420p"),
    ],
)
def test_frames_come_once_in_order_with_their_times(tmp_path: Path, name: str, codec: str, pixel_format: str) -> None:
    frames = read(make_video(tmp_path / name, codec=codec, pixel_format=pixel_format, frames=30))
    assert numbers(frames) == list(range(30))
    assert [frame.pts_seconds for frame in frames] == pytest.approx([number / 25 for number in range(30)], abs=0.002)
    assert all(frame.rgb.dtype == np.uint8 and frame.rgb.shape == (HEIGHT, WIDTH, 3) for frame in frames)


def test_frames_with_b_frames_come_in_order(tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mp4", options={"bf": "3", "b_strategy": "0", "preset": "fast"})
    assert numbers(read(path)) == list(range(50))


def test_times_are_those_of_a_variable_rate(tmp_path: Path) -> None:
    times = [0, 40, 45, 200, 201, 5000, 45_000]
    frames = read(make_video(tmp_path / "a.mp4", times))
    assert [frame.pts_seconds for frame in frames] == pytest.approx([time / 1000 for time in times], abs=1e-9)
    assert probe(tmp_path / "a.mp4").warnings == ()


@pytest.mark.parametrize("start_ms", [3000, 100_000])
@pytest.mark.parametrize("name", ["a.mp4", "a.mkv", "a.ts"])
def test_times_count_from_the_first_frame_wherever_the_media_starts(tmp_path: Path, name: str, start_ms: int) -> None:
    times = [start_ms + 40 * number for number in range(20)]
    path = make_video(tmp_path / name, times)
    assert [frame.pts_seconds for frame in read(path)] == pytest.approx([0.04 * number for number in range(20)])
    assert probe(path).start_time >= start_ms / 1000


@pytest.mark.parametrize("size", [(101, 77), (1, 64), (64, 1), (1, 1), (3, 5)])
def test_odd_sizes_are_kept(tmp_path: Path, size: tuple[int, int]) -> None:
    path = make_video(tmp_path / "a.mov", codec="png", pixel_format="rgb24", size=size, frames=3)
    frames = read(path)
    assert [frame.rgb.shape for frame in frames] == [(size[1], size[0], 3)] * 3
    report = probe(path)
    assert (report.width, report.height) == size


def test_grey_has_three_equal_channels(tmp_path: Path) -> None:
    for frame in read(make_video(tmp_path / "a.mkv", codec="ffv1", pixel_format="gray16le", frames=4)):
        assert (frame.rgb == frame.rgb[..., :1]).all()


def test_rgb_is_exact_where_the_codec_is(tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mkv", codec="ffv1", pixel_format="bgra", frames=3)
    assert all(np.array_equal(frame.rgb, picture(number)) for number, frame in enumerate(read(path)))


def test_a_video_of_one_frame_works(tmp_path: Path) -> None:
    frames = read(make_video(tmp_path / "a.mp4", frames=1))
    assert [(number_of(frame.rgb), frame.pts_seconds) for frame in frames] == [(0, 0.0)]


def test_report_is_final_after_the_last_frame(tmp_path: Path) -> None:
    with open_source(make_video(tmp_path / "a.mp4")) as source:
        assert source.total_seconds == pytest.approx(2.0)
        assert not source.is_live
        assert sum(1 for _ in source) == 50
        report = source.report
    assert (report.frames, report.first_pts, report.last_pts) == (50, 0.0, pytest.approx(1.96))
    assert (report.width, report.height, report.rotation) == (WIDTH, HEIGHT, 0)
    assert (report.duration, report.lost_frames, report.warnings) == (pytest.approx(2.0), 0, ())
    assert source.report == report, "still there after closing"


def test_a_raw_stream_without_times_gets_them_from_its_rate(tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.h264", fps=10, frames=20, options={"x264-params": "force-cfr=1:fps=10"})
    assert len(read(path)) == 20
    report = probe(path)
    assert report.frames == 20
    assert report.last_pts > 0


def test_size_changes_are_fitted_into_the_first_size_with_a_warning(tmp_path: Path) -> None:
    small = make_video(tmp_path / "small.ts", size=(48, 96), frames=10)
    large = make_video(tmp_path / "large.ts", frames=10)
    joined = tmp_path / "joined.ts"
    joined.write_bytes(large.read_bytes() + small.read_bytes())
    frames = read(joined)
    assert {frame.rgb.shape for frame in frames} == {(HEIGHT, WIDTH, 3)}
    bars = frames[-1].rgb[:, : (WIDTH - 24) // 2 - 1]
    assert bars.max() == 0, "kept in proportion between black bars"
    assert number_of(frames[-1].rgb[:, (WIDTH - 24) // 2 : (WIDTH + 24) // 2]) == 9
    assert any("48x96" in line for line in probe(joined).warnings)


def test_sound_longer_than_the_picture_is_no_fault(tmp_path: Path) -> None:
    for name in ("a.mp4", "a.mkv"):
        report = probe(make_video(tmp_path / name, frames=25, sound_seconds=3.0))
        assert (report.frames, report.warnings) == (25, ())


def _damaged(path: Path, *, share: float = 0.05) -> Path:
    data = bytearray(path.read_bytes())
    dice = random.Random(5)
    for place in range(len(data) * 2 // 5, len(data) * 3 // 5):
        if dice.random() < share:
            data[place] = dice.randrange(256)
    path.write_bytes(bytes(data))
    return path


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """Sixty frames, of which the middle ones are damaged; the index is whole."""
    return _damaged(make_video(tmp_path / "damaged.mp4", frames=60, container_options={"movflags": "faststart"}))


def test_skip_leaves_damaged_frames_out_and_counts_them(damaged: Path) -> None:
    frames, report = read(damaged, on_damage="skip"), probe(damaged)
    assert len(frames) == report.frames < 60
    assert report.lost_frames == 60 - report.frames
    assert report.warnings
    assert numbers(frames)[-5:] == [55, 56, 57, 58, 59]


def test_hold_puts_the_frame_before_in_place_of_a_damaged_one(damaged: Path) -> None:
    held, skipped = read(damaged, on_damage="hold"), read(damaged, on_damage="skip")
    assert len(skipped) < len(held) <= 60
    times = [frame.pts_seconds for frame in held]
    assert times == sorted(set(times)), "each moment once"
    by_time = {frame.pts_seconds: frame for frame in held}
    lost = sorted(set(by_time) - {frame.pts_seconds for frame in skipped})
    before = max(time for time in times if time < lost[0])
    assert np.array_equal(by_time[lost[0]].rgb, by_time[before].rgb)


def test_raise_names_the_place_of_the_damage(damaged: Path) -> None:
    with pytest.raises(SourceError, match=r"damaged after \d+\.\d\d s"):
        read(damaged, on_damage="raise")


def test_a_failed_reader_does_not_poison_the_next(damaged: Path, tmp_path: Path) -> None:
    healthy = make_video(tmp_path / "healthy.mp4", frames=20)
    for _ in range(3):
        with pytest.raises(SourceError):
            read(damaged, on_damage="raise")
        assert numbers(read(healthy)) == list(range(20))


def test_a_file_cut_off_gives_what_is_there_and_says_so(tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mp4", frames=100, container_options={"movflags": "faststart"})
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 3 // 5])
    frames, report = read(path), probe(path)
    assert 0 < len(frames) < 100
    assert frames[-1].pts_seconds < 3.9
    assert report.lost_frames == 100 - len(frames)
    assert any("4.0 s" in line for line in report.warnings)


def test_frames_missing_from_a_regular_stream_are_counted(tmp_path: Path) -> None:
    whole = make_video(tmp_path / "whole.mkv", codec="mpeg4", frames=80, group=1)
    report = probe(remux(whole, tmp_path / "holes.mkv", keep=[n for n in range(80) if n not in (30, 31, 50)]))
    assert (report.frames, report.lost_frames) == (77, 3)
    assert any("3 frames missing" in line for line in report.warnings)


def test_a_stream_without_its_first_keyframe_says_so(tmp_path: Path) -> None:
    path = remux(make_video(tmp_path / "whole.mp4"), tmp_path / "cut.mkv", keep=range(3, 50))
    frames, report = read(path), probe(path)
    assert numbers(frames) == list(range(10, 50))
    assert frames[0].pts_seconds == 0.0
    assert report.warnings


@pytest.mark.parametrize(
    ("option", "value"),
    [("timeout_seconds", 0.0), ("image_fps", -1.0), ("max_outage_seconds", -1.0)],
)
def test_a_wrong_option_is_refused_before_anything_is_opened(option: str, value: object, tmp_path: Path) -> None:
    (tmp_path / "a.mp4").touch()
    with pytest.raises(ConfigError, match=option):
        open_source(tmp_path / "a.mp4", **{option: value})  # type: ignore[arg-type]


def test_closing_early_stops_the_thread(tmp_path: Path) -> None:
    source = open_source(make_video(tmp_path / "a.mp4", frames=200))
    next(iter(source))
    source.close()
    deadline = time.monotonic() + 10
    while any(thread.name.startswith("longtake") for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    with pytest.raises(StopIteration):
        next(iter(source))
