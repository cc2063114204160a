"""``longtake ask --save`` and ``--resume``: killed and gone on with, the answers are those of an unbroken run."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.e2e.conftest import Result
from tests.e2e.films import write_film
from tests.e2e.vlm_command import QUESTION, SHOWN, start

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """In a container that can be read from a pipe."""
    return write_film(tmp_path_factory.mktemp("films") / "street.ts", SHOWN, codec="mpeg2video")


@pytest.fixture
def unbroken(command: Run, film: Path, tiny_vlm: Path) -> str:
    return answer(command("ask", film, QUESTION, "--model", tiny_vlm, "--json"))


@pytest.fixture
def halfway(command: Run, film: Path, tiny_vlm: Path, tmp_path: Path) -> Path:
    state = tmp_path / "half.state"
    result = command("ask", film, QUESTION, "--model", tiny_vlm, "--save", state, "--seconds", "5")
    assert result.status == 0, result.err
    return state


def answer(result: Result) -> str:
    assert result.status == 0, result.err
    (line,) = map(json.loads, result.out.splitlines())
    return line["answer"]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_killed_run_resumes_to_the_same_answer(
    command: Run, film: Path, tiny_vlm: Path, tmp_path: Path, unbroken: str, how: signal.Signals
) -> None:
    """Half of the film comes through a pipe; then the process is killed; another one goes on with the file."""
    state, data = tmp_path / "state", film.read_bytes()
    arguments = ("ask", "-", QUESTION, "--model", tiny_vlm, "--save", state)
    with start(*arguments, stdin=subprocess.PIPE, pass_fds=()) as process:
        assert process.stdin is not None
        os.write(process.stdin.fileno(), data[: len(data) * 3 // 4])
        deadline = time.monotonic() + 60
        while not state.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(how)
        _, errors = process.communicate()
    assert process.returncode == {signal.SIGKILL: -9, signal.SIGTERM: 143}[how], errors
    assert state.exists()
    assert "Traceback" not in errors
    assert answer(command("ask", film, QUESTION, "--resume", state, "--json")) == unbroken


def test_finished_state_answers_without_reading_and_from_elsewhere(
    command: Run, film: Path, tiny_vlm: Path, tmp_path: Path, unbroken: str
) -> None:
    state = tmp_path / "state"
    command("ask", film, "something else?", "--model", tiny_vlm, "--save", state)
    before = state.read_bytes()
    assert answer(command("ask", film, QUESTION, "--resume", state, "--json")) == unbroken
    moved = shutil.copy(film, tmp_path / "moved.ts")
    assert answer(command("ask", moved, QUESTION, "--resume", state, "--json")) == unbroken
    assert answer(command("ask", "gone.ts", QUESTION, "--resume", state, "--json", "--seconds", "0")) == unbroken
    assert state.read_bytes() == before


def test_resumed_run_reads_on_and_may_save_in_place(command: Run, film: Path, halfway: Path, unbroken: str) -> None:
    first = command("ask", film, QUESTION, "--resume", halfway, "--save", halfway, "--seconds", "3", "--json")
    assert json.loads(first.out)["seen_seconds"] == 8.0
    rest = command("ask", film, QUESTION, "--resume", halfway, "--save", halfway, "--json")
    assert json.loads(rest.out)["seen_seconds"] == 12.0
    assert answer(rest) == unbroken
    again = command("ask", film, QUESTION, "--resume", halfway, "--at", "5", "--json")
    assert json.loads(again.out)["at"] == 5.0


def test_state_brings_its_model_and_its_options(command: Run, film: Path, tiny_vlm: Path, tmp_path: Path) -> None:
    state, options = tmp_path / "state", ("--policy", "recency", "--budget", "20", "--fps", "1")
    saved = command("ask", film, QUESTION, "--model", tiny_vlm, *options, "--save", state, "--json")
    resumed = command("ask", film, QUESTION, "--resume", state, "--json")
    assert resumed.out == saved.out
    assert json.loads(resumed.out)["policy"] == "recency"
    same = command("ask", film, QUESTION, "--resume", state, "--json", "--model", tiny_vlm, *options)
    assert same.out == saved.out
    longer = command("ask", film, QUESTION, "--resume", state, "--json", "--max-new-tokens", "20")
    assert answer(longer) != answer(saved)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--policy", "recency"), "was saved with policy statekv, got recency"),
        (("--budget", "32"), "was saved with budget 48, got 32"),
        (("--fps", "1"), "was saved with fps 2.0, got 1.0"),
        (("--select", "layer"), "was saved with select kv-head, got layer"),
    ],
)
def test_resume_refuses_other_options(
    command: Run, film: Path, halfway: Path, option: tuple[str, str], message: str
) -> None:
    result = command("ask", film, QUESTION, "--resume", halfway, *option)
    assert (result.status, result.out, result.err.count("\n")) == (1, "", 1)
    assert message in result.err
    assert "leave that out" in result.err


def test_resume_refuses_another_model(command: Run, film: Path, halfway: Path, other_vlm: Path) -> None:
    result = command("ask", film, QUESTION, "--resume", halfway, "--model", other_vlm)
    assert (result.status, result.out, result.err.count("\n")) == (1, "", 1)
    assert "was saved by model" in result.err


@pytest.mark.parametrize("shown", ["g" * 48, SHOWN[:8]])
def test_resume_refuses_another_source_and_leaves_the_state_alone(
    command: Run, halfway: Path, tmp_path: Path, shown: str
) -> None:
    before, other = halfway.read_bytes(), write_film(tmp_path / "other.mp4", shown)
    result = command("ask", other, QUESTION, "--resume", halfway, "--save", halfway)
    assert (result.status, result.out, result.err.count("\n")) == (1, "", 1)
    assert "give the source it was saved with" in result.err
    assert halfway.read_bytes() == before


@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[:-50], lambda data: b"x" * 200])
def test_resume_refuses_a_damaged_state(
    command: Run, film: Path, halfway: Path, damage: Callable[[bytes], bytes]
) -> None:
    halfway.write_bytes(damage(halfway.read_bytes()))
    result = command("ask", film, QUESTION, "--resume", halfway)
    assert (result.status, result.out, result.err.count("\n")) == (1, "", 1)
    assert "half.state" in result.err


def test_state_of_captions_can_be_asked_and_that_of_questions_captioned(
    command: Run, film: Path, tiny_vlm: Path, tmp_path: Path, halfway: Path, unbroken: str
) -> None:
    state = tmp_path / "captions.state"
    assert command("caption", film, "--model", tiny_vlm, "--save", state, "-q").status == 0
    assert answer(command("ask", film, QUESTION, "--resume", state, "--json", "--model", tiny_vlm)) == unbroken
    result = command("caption", film, "--model", tiny_vlm, "--resume", halfway, "--format", "jsonl")
    assert result.status == 0
    assert [json.loads(line)["end"] for line in result.out.splitlines()] == [6.0, 8.0, 10.0, 12.0]
