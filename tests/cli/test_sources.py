"""Sources as typed, and the names they get in the output."""

from __future__ import annotations

from pathlib import Path

import pytest

from longtake.cli.sources import expand, short_name


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("films/street.mp4", "street"),
        ("v_a.b.MKV", "v_a.b"),
        ("https://host/a/le%20film.mp4?token=1#t=3", "le film"),
        ("http://host:80/", "http://host:80/"),
        ("rtsp://anna:secret@cam:554/1", "rtsp://cam:554/1"),
        ("https://anna:secret@host/", "https://host/"),
        ("webcam:0", "webcam:0"),
        ("/dev/video0", "/dev/video0"),
        ("-", "stdin"),
    ],
)
def test_source_has_a_short_name_without_secrets(source: str, name: str) -> None:
    assert short_name(source) == name


def test_folder_of_videos_stands_for_its_videos_in_order(tmp_path: Path) -> None:
    for name in ("b.mp4", "a.WEBM", ".hidden.mp4", "notes.txt"):
        (tmp_path / name).touch()
    (tmp_path / "folder.mp4").mkdir()
    assert expand([str(tmp_path)]) == {"a": f"{tmp_path}/a.WEBM", "b": f"{tmp_path}/b.mp4"}


def test_folder_of_images_is_one_source_named_for_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "shots"
    folder.mkdir()
    (folder / "1.png").touch()
    assert expand([str(folder), f"{folder}/"]) == {str(folder): str(folder), f"{folder}/": f"{folder}/"}
    assert expand([f"{folder}/"]) == {"shots": f"{folder}/"}


def test_sources_of_one_name_are_told_apart_and_a_repeated_one_is_numbered() -> None:
    assert expand(["x/a.mp4", "y/a.mp4", "b.mp4"]) == {"x/a.mp4": "x/a.mp4", "y/a.mp4": "y/a.mp4", "b": "b.mp4"}
    assert list(expand(["a.mp4", "a.mp4", "a.mp4"])) == ["a.mp4", "a.mp4-2", "a.mp4-3"]
