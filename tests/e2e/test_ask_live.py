"""``longtake ask`` on sources whose end nobody knows: a live stream, a pipe, and a person who has waited enough."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.e2e.conftest import Result
from tests.e2e.films import write_film
from tests.e2e.vlm_command import QUESTION, SHOWN, start
from tests.video.servers import send, send_and_hang, tcp_server

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = write_film(tmp_path_factory.mktemp("films") / "street.ts", SHOWN, codec="mpeg2video")
    return path.read_bytes()


def test_live_source_is_read_for_the_seconds_given(command: Run, tiny_vlm: Path, stream: bytes) -> None:
    released = threading.Event()
    with tcp_server(send_and_hang(stream, released)) as url:
        result = command("ask", url, QUESTION, "--model", tiny_vlm, "--seconds", "4", "--json")
        released.set()
    assert result.status == 0, result.err
    line = json.loads(result.out)
    assert (line["seen_seconds"], line["at"]) == (4.0, 4.0)
    assert line["answer"]


def test_live_source_is_read_until_the_moment_asked_about(command: Run, tiny_vlm: Path, stream: bytes) -> None:
    released = threading.Event()
    with tcp_server(send_and_hang(stream, released)) as url:
        result = command("ask", url, QUESTION, "--model", tiny_vlm, "--at", "3", "--json")
        released.set()
    line = json.loads(result.out)
    assert (line["seen_seconds"], line["at"]) == (3.0, 3.0)


@pytest.mark.parametrize(("how", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupt_of_a_live_source_stops_reading_and_answers(
    tiny_vlm: Path, stream: bytes, tmp_path: Path, how: signal.Signals, status: int
) -> None:
    released, state = threading.Event(), tmp_path / "state"
    with (
        tcp_server(send_and_hang(stream, released)) as url,
        start("ask", url, QUESTION, "--model", tiny_vlm, "--json", "--save", state, "--timeout", "100") as process,
    ):
        wait_for(state)
        process.send_signal(how)
        out, errors = process.communicate()
        released.set()
    assert process.returncode == status, errors
    line = json.loads(out)
    assert line["answer"]
    assert 0 < line["seen_seconds"] <= 12
    assert "Traceback" not in errors


def test_interrupt_before_the_moment_asked_about_is_no_usage_error(
    tiny_vlm: Path, stream: bytes, tmp_path: Path
) -> None:
    released, state = threading.Event(), tmp_path / "state"
    how = ("--model", tiny_vlm, "--at", "500", "--save", state, "--timeout", "100")
    with tcp_server(send_and_hang(stream, released)) as url, start("ask", url, QUESTION, *how) as process:
        wait_for(state)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate()
        released.set()
    assert (process.returncode, out) == (130, ""), errors
    assert "--at 500 was not reached" in errors


def test_interrupt_of_an_endless_pipe_answers_too(tiny_vlm: Path, stream: bytes, tmp_path: Path) -> None:
    state = tmp_path / "state"
    with start("ask", "-", QUESTION, "--model", tiny_vlm, "--save", state, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        os.write(process.stdin.fileno(), stream[: len(stream) * 3 // 4])
        wait_for(state)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate()
    assert process.returncode == 130, errors
    assert out.strip()
    assert re.search(r"longtake: stdin: [\d.]+ s seen", errors)


def test_interrupt_before_anything_was_seen_answers_nothing(tiny_vlm: Path, tmp_path: Path) -> None:
    released = threading.Event()
    connected = threading.Event()

    def silent(connection: object) -> None:
        connected.set()
        released.wait(100)

    with (
        tcp_server(silent) as url,
        start("ask", url, QUESTION, "--model", tiny_vlm, "--timeout", "100") as process,
    ):
        assert connected.wait(100)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate()
        released.set()
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in errors


def test_live_source_that_goes_away_is_told_and_what_was_seen_is_answered(
    command: Run, tiny_vlm: Path, stream: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    from longtake.errors import SourceError
    from longtake.session import Session

    watch = Session.watch

    def breaks_off(self: Session[object], *arguments: object, **options: object) -> object:
        for number, step in enumerate(watch(self, *arguments, **options)):  # type: ignore[arg-type]
            if number == 3:
                raise SourceError("the camera is gone at 3 s; plug it in again")
            yield step

    monkeypatch.setattr(Session, "watch", breaks_off)
    with tcp_server(send(stream)) as url:
        result = command("ask", url, QUESTION, "--model", tiny_vlm, "--json")
    assert result.status == 1
    line = json.loads(result.out)
    assert (line["seen_seconds"], line["flags"]) == (4.0, ["length", "incomplete"])
    assert result.err.splitlines()[-1] == "longtake: the camera is gone at 3 s; plug it in again"


def test_film_through_standard_input_gives_the_files_answer(
    command: Run, tiny_vlm: Path, stream: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "film.ts"
    path.write_bytes(stream)
    expected = command("ask", path, QUESTION, "--model", tiny_vlm, "--json").out
    with start("ask", "-", QUESTION, "--model", tiny_vlm, "--json", stdin=subprocess.PIPE, text=False) as process:
        out, errors = process.communicate(stream)
    assert process.returncode == 0, errors
    assert out.decode() == expected


def test_interrupt_of_a_file_keeps_the_state_and_answers_nothing(
    command: Run, tiny_vlm: Path, stream: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from longtake.methods.statekv import StateKV

    path, state, advance = tmp_path / "film.ts", tmp_path / "state", StateKV.advance
    path.write_bytes(stream)

    def tired(self: StateKV, before: object, segment: object) -> object:
        if segment.index == 7:  # type: ignore[attr-defined]
            raise KeyboardInterrupt
        return advance(self, before, segment)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(StateKV, "advance", tired)
        result = command("ask", path, QUESTION, "--model", tiny_vlm, "--save", state)
    assert (result.status, result.out) == (130, "")
    rest = command("ask", path, QUESTION, "--resume", state, "--json", "--seconds", "0")
    assert json.loads(rest.out)["seen_seconds"] == 7.0, "all that was taken in is kept"


@pytest.mark.parametrize(("how", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupt_while_a_long_file_is_read_ends_at_once_in_one_line(
    command: Run, tiny_vlm: Path, tmp_path: Path, how: signal.Signals, status: int
) -> None:
    film, state = write_film(tmp_path / "long.mp4", SHOWN * 40), tmp_path / "state"
    with start("ask", film, QUESTION, "--model", tiny_vlm, "--save", state) as process:
        wait_for(state)
        process.send_signal(how)
        out, errors = process.communicate(timeout=60)
    assert (process.returncode, out, errors.count("\n")) == (status, "", 1), errors
    assert re.search(
        rf"longtake: stopped at [\d.]+ s of long, nothing was answered; go on with --resume {state}", errors
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["long.mp4", "state"]
    rest = command("ask", film, QUESTION, "--resume", state, "--seconds", "0", "--json")
    assert 0 < json.loads(rest.out)["seen_seconds"] < 480


def wait_for(state: Path) -> None:
    """Until something has been taken in and saved."""
    waited = threading.Event()
    for _ in range(3000):
        if state.exists():
            return
        waited.wait(0.02)
    raise AssertionError(f"{state} was never written")
