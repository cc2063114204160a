"""Which file is meant by an id, and which videos are missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from longtake.data.datasets import find_videos
from longtake.data.datasets.samples import Place, Video, video_at
from longtake.errors import ConfigError


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"film")


def test_videos_are_found_wherever_they_lie_and_whatever_their_ending(tmp_path: Path) -> None:
    put(tmp_path, "a/_8V-x.MP4", "b/c/-dash.mkv", "v_abc.webm", "1.2.mp4", "notes/007.txt", ".hidden/009.mp4")
    (tmp_path / "empty.mp4").touch()
    names = ("_8V-x", "-dash", "v_abc.mp4", "1.2", "007", "009", "empty")
    found = find_videos([video_at(name) for name in names], tmp_path)
    assert {name: clip.path.name for name, clip in found.clips.items()} == {
        "_8V-x": "_8V-x.MP4",
        "-dash": "-dash.mkv",
        "v_abc.mp4": "v_abc.webm",
        "1.2": "1.2.mp4",
    }
    assert found.missing == ("007", "009", "empty")
    assert found.said() == "3 of 7 videos are missing: 007, 009, empty"


def test_a_path_is_met_by_its_end_and_by_no_other_folder(tmp_path: Path) -> None:
    put(tmp_path, "src/AutoEvalMetaData/106.mp4", "chunked/106.mp4", "Games/PL&index=1.mp4")
    names = ("AutoEvalMetaData/106.mp4", "COIN/106.mp4", "Games/PL&index=1.mp4", "EvalMetaData/106.mp4")
    found = find_videos([video_at(name) for name in names], tmp_path)
    assert list(found.clips) == ["AutoEvalMetaData/106.mp4", "Games/PL&index=1.mp4"]
    assert found.clips["AutoEvalMetaData/106.mp4"].path == tmp_path / "src" / "AutoEvalMetaData" / "106.mp4"
    assert found.missing == ("COIN/106.mp4", "EvalMetaData/106.mp4")


def test_the_first_place_with_a_file_is_taken_with_its_part(tmp_path: Path) -> None:
    put(tmp_path, "source.mp4", "both.mp4", "cut.mp4")
    parts = [
        Video(name=name, places=(Place(path=name), Place(path="source", start_seconds=3.0, end_seconds=9.0)))
        for name in ("cut", "other")
    ]
    found = find_videos(parts, tmp_path).clips
    assert (found["cut"].path.name, found["cut"].end_seconds) == ("cut.mp4", None)
    assert (found["other"].path.name, found["other"].start_seconds, found["other"].end_seconds) == ("source.mp4", 3, 9)


def test_links_are_followed_and_circles_end(tmp_path: Path) -> None:
    put(tmp_path, "far/away/x.mp4")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "videos").symlink_to(tmp_path / "far")
    (tmp_path / "far" / "back").symlink_to(tmp_path / "far")
    assert list(find_videos([video_at("x")], tmp_path / "data").clips) == ["x"]


def test_many_missing_videos_are_counted_and_some_named(tmp_path: Path) -> None:
    found = find_videos([video_at(str(number)) for number in range(9)], tmp_path)
    assert found.said() == "9 of 9 videos are missing: 0, 1, 2, ..."
    put(tmp_path, *(f"{number}.mp4" for number in range(9)))
    assert find_videos([video_at(str(number)) for number in range(9)], tmp_path).said() == ""
    with pytest.raises(ConfigError, match="absent is no folder; expected one with videos"):
        find_videos([], tmp_path / "absent")
