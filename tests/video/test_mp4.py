"""Facts that only the boxes of an MP4 tell."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from tests.video.clips import make_video

from longtake.errors import SourceError
from longtake.video import probe
from longtake.video.mp4 import read_mp4_facts

FRAGMENTED = {"movflags": "frag_keyframe+empty_moov"}


def patch(path: Path, box: bytes, offset: int, value: int) -> None:
    """Overwrite 32 bits behind each box of a kind."""
    data = bytearray(path.read_bytes())
    place = data.find(box)
    while place >= 0:
        struct.pack_into(">I", data, place + 4 + offset, value)
        place = data.find(box, place + 4)
    path.write_bytes(bytes(data))


def test_other_files_have_no_boxes(tmp_path: Path) -> None:
    assert read_mp4_facts(make_video(tmp_path / "a.mkv", frames=2)) is None


def test_an_ordinary_file(tmp_path: Path) -> None:
    facts = read_mp4_facts(make_video(tmp_path / "a.mp4"))
    assert facts is not None
    assert (facts.has_index, facts.is_encrypted, facts.num_movies, facts.fragment_seconds) == (True, False, 1, None)


def test_a_fragmented_file_without_a_duration_is_healthy(tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mp4", container_options=FRAGMENTED)
    report = probe(path)
    assert (report.frames, report.warnings) == (50, ())


def test_a_wrong_duration_of_a_fragmented_file_is_warned_of(tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mp4", container_options=FRAGMENTED)
    patch(path, b"mdhd", 16, 0xFFFFFFFF)
    report = probe(path)
    assert report.frames == 50
    assert report.last_pts == pytest.approx(1.96)
    assert any("declared duration" in line for line in report.warnings)


@pytest.mark.parametrize("value", [0, 0xFFFFFFFF])
def test_a_wrong_duration_beside_a_whole_index_does_no_harm(tmp_path: Path, value: int) -> None:
    path = make_video(tmp_path / "a.mp4")
    patch(path, b"mvhd", 16, value)
    patch(path, b"mdhd", 16, value)
    report = probe(path)
    assert (report.frames, report.last_pts, report.warnings) == (50, pytest.approx(1.96), ())


def test_an_edit_list_that_hides_everything_is_ignored_with_a_warning(tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mp4")
    patch(path, b"elst", 8, 0)
    report = probe(path)
    assert (report.frames, report.last_pts) == (50, pytest.approx(1.96))
    assert any("edit list" in line for line in report.warnings)


def test_a_second_movie_behind_the_first_is_warned_of(tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mp4")
    path.write_bytes(path.read_bytes() * 2)
    report = probe(path)
    assert report.frames == 50
    assert any("2 movies" in line for line in report.warnings)


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_a_missing_index_is_an_error_that_names_it(tmp_path: Path, share: float) -> None:
    path = make_video(tmp_path / "a.mp4")
    data = path.read_bytes()
    path.write_bytes(data[: int(data.find(b"moov") * share)])
    with pytest.raises(SourceError, match=r"index \(moov\) missing"):
        probe(path)


@pytest.mark.parametrize("size", [(0, 0), (65_535, 65_535)])
def test_a_wrong_size_in_the_index_is_not_believed(tmp_path: Path, size: tuple[int, int]) -> None:
    path = make_video(tmp_path / "a.mp4")
    patch(path, b"avc1", 24, size[0] << 16 | size[1])
    report = probe(path)
    assert (report.frames, report.width, report.height) == (50, 64, 48)
