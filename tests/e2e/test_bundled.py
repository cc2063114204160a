"""The bundled toybox-sts on the demo's video: it speaks, and it is one model online, offline, and after a pause."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import longtake as lt
from longtake.hub import bundled
from longtake.types import Event, Segment

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "assets" / "demo.mp4"

pytestmark = pytest.mark.skipif(
    "toybox-sts" not in bundled() or not DEMO.is_file(), reason="toybox-sts or assets/demo.mp4 is not in this checkout"
)


@pytest.fixture(scope="module")
def model() -> Any:
    return lt.load("toybox-sts", device="cpu")


@pytest.fixture(scope="module")
def segments(model: Any) -> list[Segment]:
    with lt.segments(DEMO, model.segment_spec) as stream:
        return list(stream)


@pytest.fixture(scope="module")
def unbroken(model: Any) -> list[Event]:
    return list(lt.caption(DEMO, model))


def test_demo_has_events_in_order_and_within_the_video(unbroken: list[Event], segments: list[Segment]) -> None:
    assert len(unbroken) >= 5
    assert all(0 <= event.start_seconds < event.end_seconds <= segments[-1].end_seconds for event in unbroken)
    assert [event.end_seconds for event in unbroken] == sorted(event.end_seconds for event in unbroken)


def test_segments_one_by_one_and_a_pause_match_the_whole_file(
    model: Any, segments: list[Segment], unbroken: list[Event], tmp_path: Path
) -> None:
    with lt.Session(model, source=str(DEMO)) as session:
        first = [event for segment in segments[: len(segments) // 2] for event in session.advance(segment)]
        session.save(tmp_path / "state")
    resumed = lt.Session.resume(model, tmp_path / "state")
    rest = [event for step in resumed.watch(DEMO) for event in step.events]
    assert first + rest == unbroken
    assert resumed.progress.state_bytes <= model.max_state_bytes()


def test_command_line_tells_the_same_events(unbroken: list[Event], capfd: pytest.CaptureFixture[str]) -> None:
    from longtake.cli.app import run

    assert run(["caption", str(DEMO), "--format", "jsonl", "--quiet"]) == 0
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [(line["start"], line["end"], line["sentence"]) for line in lines] == [
        (round(event.start_seconds, 3), round(event.end_seconds, 3), event.text) for event in unbroken
    ]


def test_killed_command_goes_on_to_the_same_events(
    unbroken: list[Event], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from longtake.cli.app import run

    state = str(tmp_path / "state")
    command = [sys.executable, "-m", "longtake.cli", "caption", str(DEMO), "--save", state, "--format", "jsonl", "-q"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        for _ in range(3):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert run(["caption", str(DEMO), "--resume", state, "--save", state, "--format", "json", "--quiet"]) == 0
    (told,) = json.loads(capfd.readouterr().out)["results"].values()
    assert [(*one["timestamp"], one["sentence"]) for one in told] == [
        (round(event.start_seconds, 3), round(event.end_seconds, 3), event.text) for event in unbroken
    ]
