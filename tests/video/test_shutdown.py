"""A process that has read bad sources ends by itself, and at once."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.video.clips import make_video

ROOT = Path(__file__).resolve().parents[2]
READ = """
import sys
from longtake.errors import SourceError
from longtake.video import open_source
try:  # an error may be known on opening, or only while reading
    print(sum(1 for _ in open_source(sys.argv[1], timeout_seconds=float(sys.argv[2]))))
except SourceError as error:
    print(error)
    raise SystemExit(1)
"""


def run(path: Path, timeout_seconds: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", READ, str(path), str(timeout_seconds)],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_process_ends_though_its_reader_hangs(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # and nobody ever writes into it
    done = run(tmp_path / "pipe", 0.5)
    assert done.returncode == 1
    assert "no frame within 0.5 s" in done.stderr + done.stdout


def test_a_process_ends_after_damage_read_on_several_threads(tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mp4", frames=24, size=(1280, 720), container_options={"movflags": "faststart"})
    data = bytearray(path.read_bytes())
    dice = random.Random(1)
    for place in range(len(data) // 2, len(data) * 4 // 5):
        if dice.random() < 0.05:
            data[place] = dice.randrange(256)
    path.write_bytes(bytes(data))
    done = run(path, 100.0)
    assert (done.returncode, done.stderr) == (0, "")
    assert 0 < int(done.stdout) < 24


def test_a_writer_into_standard_input_may_pause(tmp_path: Path) -> None:
    data = make_video(tmp_path / "a.ts", frames=50, container_format="mpegts").read_bytes()
    command = [sys.executable, "-c", READ, "-", "0.3"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for part in (data[: len(data) // 2], data[len(data) // 2 :]):
            time.sleep(1.0)
            process.stdin.write(part)
            process.stdin.flush()
        process.stdin.close()
        told = process.stdout.read()
    assert (process.returncode, told.strip()) == (0, b"50")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_an_mp4_with_its_index_at_the_end_says_so_where_it_cannot_be_read_twice(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    # Larger than what FFmpeg keeps of a pipe to look back at.
    data = make_video(tmp_path / "a.mp4", frames=50, size=(640, 480), options={"crf": "0"}).read_bytes()
    command = [sys.executable, "-c", READ, str(tmp_path / "pipe"), "60"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        (tmp_path / "pipe").write_bytes(data)
        assert process.stdout is not None
        told = process.stdout.read()
    assert process.returncode == 1
    assert "index stands at its end" in told
