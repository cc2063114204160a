"""A folder of images is a video: in order of number, with gaps where pictures are missing or damaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from av.video.frame import VideoFrame
from tests.video.clips import number_of, picture

from longtake.errors import SourceError
from longtake.video import open_source, probe
from longtake.video.folder import place


def save(folder: Path, name: str, number: int, **size: int) -> Path:
    path = folder / name
    VideoFrame.from_ndarray(picture(number, **size), format="rgb24").save(path)
    return path


def read(folder: Path, **options: float) -> list[tuple[int, float]]:
    with open_source(folder, **options) as source:  # type: ignore[arg-type]
        return [(number_of(frame.rgb), round(frame.pts_seconds, 4)) for frame in source]


def test_pictures_come_in_order_of_number_at_the_rate_given(tmp_path: Path) -> None:
    for number in range(12):
        save(tmp_path, f"frame_{number}.png", number)
    assert read(tmp_path, image_fps=4.0) == [(number, number / 4) for number in range(12)]
    assert read(tmp_path)[-1] == (11, 0.44), "25 a second by default"
    report = probe(tmp_path)
    assert (report.frames, report.warnings, report.duration) == (12, (), None)


def test_other_files_are_passed_over(tmp_path: Path) -> None:
    save(tmp_path, "0001.jpg", 1)
    save(tmp_path, "0002.jpg", 2).rename(tmp_path / "0002.JPG")
    for name in ("Thumbs.db", ".DS_Store", "notes.txt", "._0001.jpg"):
        (tmp_path / name).write_bytes(b"junk")
    (tmp_path / "0003.jpg").mkdir()
    assert [number for number, _ in read(tmp_path)] == [1, 2]
    assert probe(tmp_path).warnings == ()


def test_missing_and_damaged_pictures_leave_gaps_and_are_named(tmp_path: Path) -> None:
    for number in range(10):
        if number != 3:
            save(tmp_path, f"a{number:03}.jpg", number, width=160, height=120)
    damaged = tmp_path / "a006.jpg"
    damaged.write_bytes(damaged.read_bytes()[: damaged.stat().st_size // 2])
    (tmp_path / "a008.jpg").write_bytes(b"")
    frames = read(tmp_path, image_fps=10.0)
    assert frames == [(number, number / 10) for number in (0, 1, 2, 4, 5, 7, 9)]
    report = probe(tmp_path)
    assert report.lost_frames == 2
    text = "\n".join(report.warnings)
    assert "missing: 3" in text
    assert "a006.jpg, a008.jpg" in text


def test_damage_is_held_or_raised_as_in_files(tmp_path: Path) -> None:
    for number in range(4):
        save(tmp_path, f"{number}.png", number)
    (tmp_path / "2.png").write_bytes(b"junk")
    with open_source(tmp_path, on_damage="hold") as source:
        assert [number_of(frame.rgb) for frame in source] == [0, 1, 1, 3]
    with open_source(tmp_path, on_damage="raise") as source, pytest.raises(SourceError, match="damaged"):
        list(source)


def test_a_percent_sign_in_a_name_is_no_pattern(tmp_path: Path) -> None:
    folder = tmp_path / "50%d"
    folder.mkdir()
    save(folder, "%03d 1.png", 7)
    save(folder, "%03d 2.png", 8)
    assert [number for number, _ in read(folder)] == [7, 8]


def test_another_size_is_fitted_with_a_warning(tmp_path: Path) -> None:
    save(tmp_path, "1.png", 1)
    save(tmp_path, "2.png", 2, width=32, height=24)
    with open_source(tmp_path) as source:
        assert {frame.rgb.shape for frame in source} == {(48, 64, 3)}
    assert any("32x24" in line for line in probe(tmp_path).warnings)


@pytest.mark.parametrize("content", [[], ["a.txt"], [".hidden.png"]])
def test_a_folder_without_pictures_is_an_error(tmp_path: Path, content: list[str]) -> None:
    for name in content:
        (tmp_path / name).write_bytes(b"x")
    with pytest.raises(SourceError, match="is a directory without pictures"):
        open_source(tmp_path)


def test_a_folder_of_damaged_pictures_only_is_an_error(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.jpg").write_bytes(np.random.default_rng(number).bytes(100))
    with pytest.raises(SourceError, match="no frame could be decoded"):
        probe(tmp_path)


@pytest.mark.parametrize(
    ("names", "slots", "missing"),
    [
        (["f1", "f2", "f4"], [0, 1, 3], [3]),
        (["f10", "f20", "f40"], [0, 1, 3], [30]),
        (["f1", "f1000000", "f2000000"], [0, 1, 2], []),
        (["a1", "b1", "c1"], [0, 1, 2], []),
        (["a", "b"], [0, 1], []),
        (["f5"], [0], []),
    ],
)
def test_numbers_are_times_only_where_they_can_be(names: list[str], slots: list[int], missing: list[int]) -> None:
    assert place([Path(f"{name}.png") for name in names]) == (slots, missing)
