"""What a person may write as a source."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from longtake.errors import SourceError
from longtake.video.address import parse_address


@pytest.mark.parametrize(
    ("text", "kind", "is_live"),
    [
        ("http://host/a.mp4", "http", False),
        ("HTTPS://host/a.mp4?x=1&y=2", "http", False),
        ("rtsp://host:554/cam", "stream", True),
        ("rtmp://host/app/key", "stream", True),
        ("udp://127.0.0.1:5000", "stream", True),
        ("tcp://127.0.0.1:5000", "stream", True),
        ("srt://host:9000", "stream", True),
    ],
)
def test_urls_are_told_apart(text: str, kind: str, is_live: bool) -> None:
    address = parse_address(text)
    assert (address.kind, address.is_live, address.target) == (kind, is_live, text)


def test_live_can_be_asked_for_and_refused() -> None:
    assert parse_address("http://host/stream", live=True).is_live
    assert not parse_address("tcp://host:1", live=False).is_live


def test_credentials_reach_the_server_and_nobody_else() -> None:
    address = parse_address("rtsp://admin:p%40ss@10.0.0.7/cam")
    assert address.target == "rtsp://admin:p%40ss@10.0.0.7/cam"
    assert address.text == "rtsp://10.0.0.7/cam"


@pytest.mark.parametrize("name", ["a:b.mp4", "-dash-.mp4", "100% %d.mp4", "ünïcode 図.mp4", "a b#c?d.mp4", "http:x"])
def test_awkward_names_are_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    address = parse_address(name)
    assert (address.kind, address.target) == ("file", f"file:{name}")
    assert parse_address(tmp_path / name).kind == "file"
    assert parse_address(f"file://{tmp_path / name}").kind == "file"


def test_a_folder_is_a_folder(tmp_path: Path) -> None:
    assert parse_address(tmp_path).kind == "folder"


def test_a_link_is_followed_and_a_broken_one_explained(tmp_path: Path) -> None:
    (tmp_path / "real.mp4").touch()
    (tmp_path / "link.mp4").symlink_to(tmp_path / "real.mp4")
    (tmp_path / "broken.mp4").symlink_to(tmp_path / "gone.mp4")
    assert parse_address(tmp_path / "link.mp4").kind == "file"
    with pytest.raises(SourceError, match=r"broken link.*gone\.mp4"):
        parse_address(tmp_path / "broken.mp4")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_named_pipe_is_read_from_the_front(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert parse_address(tmp_path / "pipe").kind == "pipe"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("nowhere/a.mp4", "no such file"),
        ("gopher://host/a", "gopher"),
        ("webcam:97", "webcam:97"),
        ("a\0b", "null"),
    ],
)
def test_what_cannot_be_a_source_is_refused_in_one_line(text: str, says: str) -> None:
    with pytest.raises(SourceError, match=says) as caught:
        parse_address(text)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(sys.platform != "linux", reason="device paths of Linux")
def test_a_device_is_live() -> None:
    address = parse_address("/dev/null")
    assert (address.kind, address.is_live) == ("device", True)
    assert address.format_name == "video4linux2,v4l2"


@pytest.mark.parametrize(("platform", "target"), [("darwin", "0"), ("win32", "video=0")])
def test_webcams_have_the_names_of_their_system(monkeypatch: pytest.MonkeyPatch, platform: str, target: str) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    assert parse_address("webcam:0").target == target
