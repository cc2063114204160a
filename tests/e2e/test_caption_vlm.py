"""``longtake caption`` by a video model that only talks: timed events, every format, paused and resumed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.conftest import Result
from tests.e2e.films import write_film
from tests.e2e.vlm_command import SHOWN

from longtake.methods.statekv import StateKV

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """12.25 seconds: the last segment is a short one."""
    return write_film(tmp_path_factory.mktemp("films") / "street.mp4", SHOWN + "r")


def told(text: str) -> list[tuple[float, float, str]]:
    return [(line["start"], line["end"], line["sentence"]) for line in map(json.loads, text.splitlines())]


def test_captions_cover_the_film_to_its_last_moment(command: Run, film: Path, tiny_vlm: Path, tmp_path: Path) -> None:
    files = [tmp_path / f"out{suffix}" for suffix in (".vtt", ".srt", ".json", ".jsonl")]
    outputs = [word for file in files for word in ("-o", file)]
    result = command("caption", film, "--model", tiny_vlm, *outputs)
    assert result.status == 0
    events = told(files[-1].read_text())
    assert [(start, end) for start, end, _ in events] == [
        (0.0, 2.0), (2.0, 4.0), (4.0, 6.0), (6.0, 8.0), (8.0, 10.0), (10.0, 12.0), (12.0, 12.5)
    ]  # fmt: skip
    assert len({text for *_, text in events}) > 1
    assert len(result.out.splitlines()) == 7
    assert files[0].read_text().count(" --> ") == files[1].read_text().count(" --> ") == 7
    assert len(json.loads(files[2].read_text())["results"]["street"]) == 7
    assert "12.5 s seen, 7 events" in result.err


def test_paused_captions_go_on_as_if_never_stopped(
    command: Run, film: Path, tiny_vlm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = command("caption", film, "--model", tiny_vlm, "--format", "jsonl", "-q").out
    state, advance = tmp_path / "state", StateKV.advance

    def tired(self: StateKV, before: Any, segment: Any) -> Any:
        if segment.index == 7:
            raise KeyboardInterrupt
        return advance(self, before, segment)

    with monkeypatch.context() as patch:
        patch.setattr(StateKV, "advance", tired)
        first = command("caption", film, "--model", tiny_vlm, "--save", state, "--format", "jsonl", "-q")
    assert (first.status, len(told(first.out))) == (130, 3)
    rest = command("caption", film, "--model", tiny_vlm, "--resume", state, "--save", state, "--format", "jsonl", "-q")
    assert first.out + rest.out == whole
    again = command("caption", film, "--model", tiny_vlm, "--resume", state, "-o", tmp_path / "all.jsonl")
    assert again.out == ""
    assert (tmp_path / "all.jsonl").read_text() == whole


def test_rate_of_captions_can_be_chosen(command: Run, film: Path, tiny_vlm: Path) -> None:
    result = command("caption", film, "--model", tiny_vlm, "--fps", "4", "--format", "jsonl", "-q")
    assert [end for _, end, _ in told(result.out)] == [2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 12.25]


def test_settings_of_the_model_can_be_given(command: Run, film: Path, tiny_vlm: Path) -> None:
    arguments = ("caption", film, "--model", tiny_vlm, "--format", "jsonl", "-q", "--set")
    assert [end for _, end, _ in told(command(*arguments, "caption_seconds=6").out)] == [6.0, 12.0, 12.5]
    result = command(*arguments, "caption_second=6")
    assert result.status == 1
    assert "did you mean 'caption_seconds'?" in result.err
