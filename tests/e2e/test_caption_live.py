"""``longtake caption`` in a process of its own, on a source that arrives slowly or breaks off: a real HTTP server."""

from __future__ import annotations

import http.server
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.e2e import standin
from tests.e2e.conftest import Result
from tests.e2e.films import expected_events, write_film

Run = Callable[..., Result]
SHOWN = "rrrrrggggrrbbbbb" * 6


class Slow(http.server.BaseHTTPRequestHandler):
    """Sends half of a film, and the rest only once it is allowed to; or breaks off there."""

    film: bytes
    may_go_on: threading.Event
    breaks_off: bool

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "video/mp2t")
        self.send_header("Content-Length", str(len(self.film)))
        self.end_headers()
        half = len(self.film) // 2
        self.wfile.write(self.film[:half])
        self.wfile.flush()
        if self.may_go_on.wait(250) and not self.breaks_off:
            self.wfile.write(self.film[half:])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, type[Slow]]]:
    """Address of the film, and its handler."""

    class Handler(Slow):
        film = write_film(tmp_path / "film.ts", SHOWN, codec="mpeg2video").read_bytes()
        may_go_on = threading.Event()
        breaks_off = False

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.daemon_threads = True
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_address[1]}/street.ts?token=1", Handler
        Handler.may_go_on.set()
        running.shutdown()


def test_events_come_while_the_video_is_still_being_read(server: tuple[str, type[Slow]]) -> None:
    address, handler = server
    with standin.start("caption", address, "--format", "jsonl") as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        assert not handler.may_go_on.is_set(), "the second half has not even been sent"
        assert process.poll() is None
        handler.may_go_on.set()
        rest, errors = process.communicate()
    assert process.returncode == 0, errors
    lines = [first, *map(json.loads, rest.splitlines())]
    assert [line["sentence"] for line in lines] == [text for *_, text in expected_events(SHOWN)]
    assert first["video"] == "street"


def test_http_source_that_breaks_off_is_told_in_one_line_and_what_came_is_kept(
    server: tuple[str, type[Slow]], longtake: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    address, handler = server
    handler.breaks_off = True
    handler.may_go_on.set()
    result = longtake("caption", address, "-o", tmp_path / "out.json")
    assert result.status == 0
    assert "12.0 s seen" in result.err
    (warning,) = caplog.messages
    assert warning.startswith(f"{address}: ")
    results = json.loads((tmp_path / "out.json").read_text())["results"]["street"]
    expected = [one for one in expected_events(SHOWN) if one[1] < 12]
    assert [(*one["timestamp"], one["sentence"]) for one in results] == expected


def test_interrupt_while_waiting_for_the_source_exits_130_and_can_be_resumed(
    server: tuple[str, type[Slow]], longtake: Run, tmp_path: Path
) -> None:
    address, handler = server
    state, out = tmp_path / "state", tmp_path / "out.json"
    with standin.start("caption", address, "--save", state, "-o", out) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "0:00.00-0:01.25  red\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert not out.exists()
    handler.may_go_on.set()
    assert longtake("caption", address, "--resume", state, "-o", out, "-q").status == 0
    results = json.loads(out.read_text())["results"]["street"]
    assert [(*one["timestamp"], one["sentence"]) for one in results] == expected_events(SHOWN)
    assert {path.name for path in tmp_path.iterdir()} == {"film.ts", "out.json", "state", "state.events.jsonl"}


def test_reader_of_stdout_may_leave_early(tmp_path: Path) -> None:
    film = write_film(tmp_path / "film.mp4", SHOWN)
    with standin.start("caption", film, delay_seconds=0.05) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()
        process.wait()
    assert process.returncode == 1
    assert "Traceback" not in errors


def test_film_through_standard_input_gives_its_events(tmp_path: Path, longtake: Run) -> None:
    film = write_film(tmp_path / "film.mp4", SHOWN)
    before = os.dup(0)
    try:
        with film.open("rb") as file:
            os.dup2(file.fileno(), 0)
            result = longtake("caption", "-", "--format", "jsonl")
    finally:
        os.dup2(before, 0)
        os.close(before)
    lines = [json.loads(line) for line in result.out.splitlines()]
    assert [line["sentence"] for line in lines] == [text for *_, text in expected_events(SHOWN)]
    assert lines[0]["video"] == "stdin"
