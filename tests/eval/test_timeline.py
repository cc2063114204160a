"""The picture of a video's events: bars where the events were, readable for a few, many and none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib import image

from longtake.errors import ConfigError
from longtake.eval.timeline import NAMED_COLOURS, Filmstrip, Picture, check_picture, draw_timeline
from longtake.types import Event, Segment


def event(start: float, end: float, text: str) -> Event:
    return Event(start_seconds=start, end_seconds=end, text=text)


def columns_of(path: Path, colour: str) -> np.ndarray:
    """Which pixel columns of the picture show a colour."""
    pixels = (image.imread(path)[..., :3] * 255).round().astype(int)
    wanted = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)])
    return np.flatnonzero((np.abs(pixels - wanted).max(axis=2) < 6).any(axis=0))


def test_bars_stand_where_the_events_were_in_the_colour_they_name(tmp_path: Path) -> None:
    events = [event(50.0, 60.0, "the blue ball spins"), event(10.0, 30.0, "the red car jumps for the second time")]
    draw_timeline(events, tmp_path / "t.png", title="$ film", seen_seconds=100.0)
    width = image.imread(tmp_path / "t.png").shape[1]
    red, blue = (columns_of(tmp_path / "t.png", NAMED_COLOURS[name]) for name in ("red", "blue"))
    assert red.min() / width == pytest.approx(0.11, abs=0.02)
    assert len(red) / len(blue) == pytest.approx(2.0, abs=0.1)
    assert blue.min() > red.max()


@pytest.mark.parametrize("count", [0, 1, 500])
def test_picture_stays_of_a_reasonable_size_for_any_number_of_events(tmp_path: Path, count: int) -> None:
    events = [event(7.0 * index, 7.0 * index + 9, f"thing {index % 13} happens") for index in range(count)]
    draw_timeline(events, tmp_path / "t.png")
    height, width = image.imread(tmp_path / "t.png").shape[:2]
    assert width > 1000
    assert 100 < height < 3000


def test_strip_shows_the_frames_above_the_bars(tmp_path: Path) -> None:
    frames = [np.full((8, 12, 3), (0, 90, 10 * index), np.uint8) for index in range(9)]
    pictures = [Picture(rgb=rgb, pts_seconds=10.0 * index) for index, rgb in enumerate(frames)]
    draw_timeline([event(1.0, 2.0, "it rains")], tmp_path / "t.png", seen_seconds=90.0, pictures=pictures)
    pixels = (image.imread(tmp_path / "t.png")[..., :3] * 255).round()
    strip = pixels[pixels.shape[0] // 3, :]
    assert (np.abs(strip - (0, 90, 0)).max(axis=1) < 3).any()
    assert (np.abs(strip - (0, 90, 80)).max(axis=1) < 3).any()


def test_filmstrip_keeps_a_bounded_number_of_frames_evenly_spread() -> None:
    strip = Filmstrip(most=8)
    for index in range(1000):
        start, pixels = 2.0 * index, torch.zeros(2, 3, 4, 4, dtype=torch.uint8)
        times = (start, start + 1)
        strip.add(Segment(pixels=pixels, pts_seconds=times, index=index, start_seconds=start, end_seconds=start + 2))
        assert len(strip.pictures) <= 8
    moments = [picture.pts_seconds for picture in strip.pictures]
    assert len(moments) >= 4
    assert moments[0] == 0.0
    assert len(set(np.diff(moments))) == 1
    assert moments[-1] > 1000


def test_picture_can_be_a_drawing_too(tmp_path: Path) -> None:
    draw_timeline([event(0.0, 1.0, "a < b")], tmp_path / "t.svg")
    assert "<svg" in (tmp_path / "t.svg").read_text()


@pytest.mark.parametrize("name", ["t.doc", "t"])
def test_name_that_is_no_picture_is_refused_and_nothing_is_left(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="no name for a picture"):
        check_picture(tmp_path / name)
    assert list(tmp_path.iterdir()) == []
