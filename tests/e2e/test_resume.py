"""Kill it, resume it: what is said then is what an unbroken run would have said, and files hold everything once."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.contract.colours import Colours
from tests.e2e import standin
from tests.e2e.conftest import Result
from tests.e2e.films import expected_events, write_film

Run = Callable[..., Result]
SHOWN = "rrrggbbbbrrggggbbrrrrggbbbrrrgggbbrrgg" * 2
EVENTS = expected_events(SHOWN)


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_film(tmp_path_factory.mktemp("films") / "street.mp4", SHOWN)


def told(lines: str) -> list[tuple[float, float, str]]:
    return [(line["start"], line["end"], line["sentence"]) for line in map(json.loads, lines.splitlines())]


def kill_after(lines: int, how: signal.Signals, *arguments: str | Path) -> tuple[str, int]:
    """Start a slow run, kill it once it has said so many events; what it said, and its exit status."""
    with standin.start("caption", *arguments, "--format", "jsonl", delay_seconds=0.15) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(lines)]
        process.send_signal(how)
        said += process.stdout.readlines()
        process.wait()
    return "".join(said), process.returncode


def test_killed_run_resumes_with_the_events_that_remain(longtake: Run, film: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    said, status = kill_after(7, signal.SIGKILL, film, "--save", state)
    assert status == -signal.SIGKILL
    first = told(said)
    assert 7 <= len(first) < len(EVENTS)
    result = longtake("caption", film, "--resume", state, "--save", state, "--format", "jsonl", "-q")
    assert result.status == 0
    rest = told(result.out)
    # the kill may have come between saying a segment's events and saving: then those are said again
    repeated = len(first) + len(rest) - len(EVENTS)
    assert 0 <= repeated <= 4
    assert first + rest[repeated:] == EVENTS
    assert rest[:repeated] == first[len(first) - repeated :]
    whole = longtake("caption", film, "--resume", state, "--format", "json", "-q")
    assert [(*one["timestamp"], one["sentence"]) for one in json.loads(whole.out)["results"]["street"]] == EVENTS


@pytest.fixture
def halfway(longtake: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, film: Path) -> Path:
    """A state saved after six segments, as a kill would leave it."""

    class Tired(Colours):
        left = 6

        def advance(self, *arguments: object) -> object:
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt
            return super().advance(*arguments)  # type: ignore[arg-type]

    assert longtake("caption", film, "--save", tmp_path / "halfway", model=Tired()).status == 130
    return tmp_path / "halfway"


def test_resumed_file_holds_all_events_once(longtake: Run, film: Path, halfway: Path, tmp_path: Path) -> None:
    unbroken = longtake("caption", film, "-o", tmp_path / "unbroken.vtt", "-o", tmp_path / "unbroken.jsonl")
    resumed = longtake("caption", film, "--resume", halfway, "-o", tmp_path / "a.vtt", "-o", tmp_path / "a.jsonl")
    assert (tmp_path / "a.vtt").read_text() == (tmp_path / "unbroken.vtt").read_text()
    assert (tmp_path / "a.jsonl").read_text() == (tmp_path / "unbroken.jsonl").read_text()
    assert unbroken.out.endswith(resumed.out)
    assert resumed.out.count("\n") < unbroken.out.count("\n")


def test_journal_beyond_the_state_is_cut_off(longtake: Run, film: Path, halfway: Path, tmp_path: Path) -> None:
    """As after a kill between the journal and the snapshot."""
    journal = halfway.with_name("halfway.events.jsonl")
    journal.write_text(journal.read_text() + journal.read_text().splitlines()[0] + '\n{"start_se')
    result = longtake("caption", film, "--resume", halfway, "--save", halfway, "-o", tmp_path / "out.jsonl", "-q")
    assert result.status == 0
    assert told((tmp_path / "out.jsonl").read_text()) == EVENTS
    assert len(journal.read_text().splitlines()) == len(EVENTS)


def test_resume_may_save_elsewhere_and_leaves_the_old_state_alone(
    longtake: Run, film: Path, halfway: Path, tmp_path: Path
) -> None:
    before = halfway.read_bytes()
    assert longtake("caption", film, "--resume", halfway, "--save", tmp_path / "new", "-q").status == 0
    assert halfway.read_bytes() == before
    result = longtake("caption", film, "--resume", tmp_path / "new", "--format", "json", "-q")
    assert len(json.loads(result.out)["results"]["street"]) == len(EVENTS)


def test_finished_state_says_nothing_more(longtake: Run, film: Path, tmp_path: Path) -> None:
    longtake("caption", film, "--save", tmp_path / "state")
    result = longtake("caption", film, "--resume", tmp_path / "state")
    assert (result.status, result.out) == (0, "")


def test_moved_film_is_the_same_source(longtake: Run, film: Path, halfway: Path, tmp_path: Path) -> None:
    shutil.copy(film, tmp_path / "moved.mp4")
    assert longtake("caption", tmp_path / "moved.mp4", "--resume", halfway).status == 0


@pytest.mark.parametrize("shown", ["g" * 40, SHOWN[:8]])
def test_resume_refuses_another_source(longtake: Run, halfway: Path, tmp_path: Path, shown: str) -> None:
    other = write_film(tmp_path / "other.mp4", shown)
    result = longtake("caption", other, "--resume", halfway, "-o", tmp_path / "out.json")
    assert (result.status, result.out) == (1, "")
    assert "state was saved at 6 s of" in result.err
    assert "give the source it was saved with" in result.err
    assert result.err.count("\n") == 1
    assert not (tmp_path / "out.json").exists()


def test_resume_refuses_another_model(longtake: Run, film: Path, halfway: Path) -> None:
    result = longtake("caption", film, "--resume", halfway, model=Colours(decay=0.5))
    assert (result.status, result.out) == (1, "")
    assert "was saved by model" in result.err


def test_resume_refuses_another_rate(longtake: Run, film: Path, halfway: Path) -> None:
    result = longtake("caption", film, "--resume", halfway, "--fps", "2")
    assert result.status == 1
    assert "saved at 4 fps, got --fps 2" in result.err


@pytest.mark.parametrize("damage", [lambda text: None, lambda text: text[: len(text) // 2], lambda text: "x" + text])
def test_resume_refuses_a_journal_of_another_state(
    longtake: Run, film: Path, halfway: Path, damage: Callable[[str], str | None], tmp_path: Path
) -> None:
    journal = halfway.with_name("halfway.events.jsonl")
    text = damage(journal.read_text())
    journal.unlink()
    if text is not None:
        journal.write_text(text)
    result = longtake("caption", film, "--resume", halfway, "-o", tmp_path / "out.json")
    assert result.status == 1
    assert "journal" in result.err
    # lines alone need no journal: what remains can still be told
    assert longtake("caption", film, "--resume", halfway).status == 0


def test_source_that_fails_leaves_an_old_state_alone(longtake: Run, halfway: Path, tmp_path: Path) -> None:
    before = halfway.read_bytes()
    assert longtake("caption", tmp_path / "missing.mp4", "--save", halfway).status == 1
    assert halfway.read_bytes() == before
