"""``longtake probe`` as a person runs it: a process, its output, its exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO

import pytest
from tests.video.clips import make_video
from tests.video.servers import HttpFile, http_server

ROOT = Path(__file__).resolve().parents[2]
KEYS = [
    "frames",
    "first_pts",
    "last_pts",
    "start_time",
    "duration",
    "width",
    "height",
    "rotation",
    "lost_frames",
    "warnings",
]


def run(*arguments: str, stdin: IO[bytes] | None = None) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "COLUMNS": "200", "PYTHONWARNINGS": "error"}
    return subprocess.run(
        [sys.executable, "-m", "longtake.cli", "probe", *arguments],
        stdin=stdin if stdin is not None else subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=environment,
        cwd=ROOT,
        timeout=240,
        check=False,
    )


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seconds, with the index at the end of the file."""
    return make_video(tmp_path_factory.mktemp("probe") / "näme %d.mp4")


def test_probe_prints_one_json_object_with_the_agreed_keys(clip: Path) -> None:
    done = run(str(clip), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1
    report = json.loads(done.stdout)
    assert list(report) == KEYS
    assert report == {
        "frames": 50,
        "first_pts": 0.0,
        "last_pts": 1.96,
        "start_time": 0.0,
        "duration": 2.0,
        "width": 64,
        "height": 48,
        "rotation": 0,
        "lost_frames": 0,
        "warnings": [],
    }


def test_probe_prints_a_panel_for_people(clip: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.ts"
    data = make_video(tmp_path / "whole.ts").read_bytes()
    cut.write_bytes(data[: len(data) // 2])
    done = run(str(cut))
    assert done.returncode == 0
    for word in ("cut.ts", "frames", "time", "size", "64x48", "warnings"):
        assert word in done.stdout


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("empty.mp4", b"", "file is empty (0 bytes)"),
        ("page.mp4", b"<html><body>hello</body></html>", "not a video file"),
        ("missing.mp4", None, "no such file"),
    ],
)
def test_probe_of_a_bad_source_is_one_line_and_status_1(
    tmp_path: Path, name: str, content: bytes | None, says: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    for arguments in ((str(path),), (str(path), "--json")):
        done = run(*arguments)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(f"longtake: {path}: ")
        assert says in done.stderr
        assert done.stderr.count("\n") == 1


def test_probe_without_a_source_is_wrong_usage() -> None:
    assert run().returncode == 2


def test_probe_reads_a_file_from_standard_input(clip: Path) -> None:
    with clip.open("rb") as file:
        done = run("-", "--json", stdin=file)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["frames"] == 50


def test_probe_reads_a_pipe_from_standard_input(tmp_path: Path) -> None:
    data = make_video(tmp_path / "a.ts").read_bytes()
    out, into = os.pipe()

    def feed() -> None:
        with os.fdopen(into, "wb") as pipe:
            pipe.write(data)

    thread = threading.Thread(target=feed)
    thread.start()
    with os.fdopen(out, "rb") as pipe:
        done = run("-", "--json", stdin=pipe)
    thread.join()
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert (report["frames"], report["warnings"]) == (50, [])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_probe_reads_a_named_pipe(tmp_path: Path) -> None:
    data = make_video(tmp_path / "a.mkv").read_bytes()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    thread = threading.Thread(target=pipe.write_bytes, args=(data,))
    thread.start()
    done = run(str(pipe), "--json")
    thread.join()
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["frames"] == 50


def test_probe_reads_over_http(clip: Path) -> None:
    with http_server(HttpFile(clip.read_bytes())) as url:
        done = run(url, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["frames"] == 50
