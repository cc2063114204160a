"""The status line on a real (pseudo) terminal: shown there alone, and out of the way of what is printed."""

from __future__ import annotations

import logging
import os
import re
import select
from collections.abc import Iterator

import pytest

from longtake.cli.terminal import StatusLine, clock, summary
from longtake.types import Progress

PROGRESS = Progress(
    seen_seconds=42.0, lag_seconds=2.5, realtime_factor=12.34, state_bytes=24_500, dropped_frames=3, total_seconds=80.0
)


class Terminal:
    """A pseudo-terminal that can stand for stderr."""

    def __init__(self) -> None:
        self._ours, theirs = os.openpty()
        self.stderr = os.fdopen(theirs, "w", encoding="utf-8")

    def written(self) -> str:
        """What was written there since the last call; the kernel hands it over piece by piece."""
        self.stderr.flush()
        pieces: list[bytes] = []
        while select.select([self._ours], [], [], 0.2)[0]:
            pieces.append(os.read(self._ours, 10_000))
        return b"".join(pieces).decode()

    def close(self) -> None:
        self.stderr.close()
        os.close(self._ours)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal = Terminal()
    yield terminal
    terminal.close()


def plain(written: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", written)


def test_status_line_shows_all_of_progress_in_one_line(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", terminal.stderr)
    StatusLine().show("", PROGRESS)
    line = plain(terminal.written())
    assert line.startswith("\r\x1b[2K0:42 / 1:20  ")
    assert "12.3x  lag 2.5 s  dropped 3  state 24.5 kB" in line
    assert "\n" not in line


def test_status_line_is_cut_at_the_width_of_the_terminal(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", terminal.stderr)
    monkeypatch.setenv("COLUMNS", "30")
    StatusLine().show("a long name [with brackets]", PROGRESS)
    line = plain(terminal.written()).removeprefix("\r\x1b[2K")
    assert 0 < len(line) <= 30


def test_status_line_gives_way_to_a_message_and_to_a_log_record(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr", terminal.stderr)
    handler = logging.StreamHandler(terminal.stderr)
    monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
    status = StatusLine()
    status.show("", PROGRESS)
    assert terminal.written()
    status.say("something")
    assert terminal.written() == "\r\x1b[2Klongtake: something\r\n"
    status.show("", PROGRESS)
    assert terminal.written()
    logging.getLogger("longtake").error("something else")
    assert terminal.written() == "\r\x1b[2Ksomething else\r\n"


def test_status_line_is_not_drawn_when_not_wanted(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", terminal.stderr)
    status = StatusLine(shown=False)
    status.show("", PROGRESS)
    status.say("end")
    assert terminal.written() == "longtake: end\r\n"


def test_status_line_in_a_pipe_draws_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    status = StatusLine()
    status.show("", PROGRESS)
    status.say("end")
    assert capsys.readouterr() == ("", "longtake: end\n")


def test_summary_tells_how_it_went() -> None:
    assert summary(PROGRESS, 1) == "42.0 s seen, 1 event, 12.3x real time, state 24.5 kB, 3 frames dropped"


def test_clock_has_hours_only_when_there_are_some() -> None:
    assert [clock(seconds) for seconds in (0, 59.6, 3599.4, 3600)] == ["0:00", "1:00", "59:59", "1:00:00"]
