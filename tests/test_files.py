"""Files appear whole or not at all, and never in place of something that is no file."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from longtake import files
from longtake.errors import ConfigError


def test_write_whole_leaves_nothing_when_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "events.srt"
    target.write_text("old")

    def interrupt(path: Path, target: Path) -> None:
        assert path.read_text() == "new"
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        files.write_whole(target, "new")
    assert [path.name for path in tmp_path.iterdir()] == ["events.srt"]
    assert target.read_text() == "old"


def test_write_whole_makes_folders_and_keeps_a_link(tmp_path: Path) -> None:
    real = tmp_path / "real.txt"
    (tmp_path / "link.txt").symlink_to(real)
    files.write_whole(tmp_path / "link.txt", "one")
    files.write_whole(tmp_path / "new" / "ünïcode 図.txt", "two")
    assert real.read_text() == "one"
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "new" / "ünïcode 図.txt").read_text() == "two"


def test_write_whole_gives_a_new_file_the_usual_permissions(tmp_path: Path) -> None:
    files.write_whole(tmp_path / "a.txt", "")
    (tmp_path / "b.txt").write_text("")
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == stat.S_IMODE((tmp_path / "b.txt").stat().st_mode)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_write_whole_never_replaces_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    files.write_whole(pipe, "through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("place", ["a folder", "file/below.srt"])
def test_write_whole_says_why_it_cannot(tmp_path: Path, place: str) -> None:
    (tmp_path / "a folder").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"cannot write .*; choose another output"):
        files.write_whole(tmp_path / place, "text")


@pytest.mark.parametrize("place", ["a folder", "file/below.srt", "x" * 300 + "/a.srt"])
def test_check_writable_says_beforehand_what_write_whole_would(tmp_path: Path, place: str) -> None:
    (tmp_path / "a folder").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot write"):
        files.check_writable(tmp_path / place)


@pytest.mark.parametrize("place", ["new.srt", "new folder/deeper/new.srt", "there.srt", "/dev/null"])
def test_check_writable_leaves_nothing_behind(tmp_path: Path, place: str) -> None:
    (tmp_path / "there.srt").write_text("old")
    files.check_writable(tmp_path / place)
    assert [path.name for path in tmp_path.iterdir()] == ["there.srt"]
    assert (tmp_path / "there.srt").read_text() == "old"
