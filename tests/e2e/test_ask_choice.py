"""``longtake ask --choice`` with an MC-ViT: the nearest text, blind too, paused and resumed, and what it cannot do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.conftest import Result
from tests.e2e.films import write_film
from tests.e2e.vlm_command import SHOWN

import longtake as lt

Run = Callable[..., Result]
QUESTION = "which came most often ?"
CHOICES = ("--choice", "red", "--choice", "blue", "--choice", "green")
KEYS = ["question", "answer", "choice", "probabilities", "at", "policy", "budget", "seen_seconds", "flags"]


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_film(tmp_path_factory.mktemp("films") / "street.mp4", SHOWN)


@pytest.fixture
def ask(command: Run, film: Path, tiny_mcvit: Path) -> Run:
    """``longtake ask`` about the film; further arguments follow."""
    return lambda *arguments: command("ask", film, *arguments, "--model", tiny_mcvit)


def told(result: Result) -> dict[str, Any]:
    assert result.status == 0, result.err
    (line,) = map(json.loads, result.out.splitlines())
    return line


def test_nearest_text_is_chosen(ask: Run, film: Path, tiny_mcvit: Path) -> None:
    session: lt.Session[Any] = lt.Session(lt.load(tiny_mcvit, device="cpu"))
    for _ in session.watch(film):
        pass
    answer = session.choose(QUESTION, ("red", "blue", "green"))
    line = told(ask(QUESTION, *CHOICES, "--json", "--quiet"))
    assert list(line) == KEYS
    assert (line["answer"], line["choice"]) == (answer.text, answer.choice)
    assert line["probabilities"] == pytest.approx(answer.probabilities, abs=1e-5)
    rest = {"at": 12.0, "policy": "mc-km", "budget": 15, "seen_seconds": 12.0, "flags": []}
    assert {key: line[key] for key in rest} == rest


def test_text_shows_the_choice_and_every_share(ask: Run) -> None:
    result = ask(QUESTION, *CHOICES)
    chosen, *shares = result.out.splitlines()
    assert chosen in ("red", "blue", "green")
    assert [line.split()[1] for line in shares] == ["red", "blue", "green"]


def test_blind_reads_no_video(command: Run, ask: Run, tiny_mcvit: Path, tmp_path: Path) -> None:
    line = told(ask(QUESTION, *CHOICES, "--json", "--blind"))
    assert (line["flags"], line["seen_seconds"], line["at"]) == (["blind"], 0.0, 0.0)
    other = write_film(tmp_path / "other.mp4", "gggg")
    again = told(command("ask", other, QUESTION, *CHOICES, "--json", "--blind", "--model", tiny_mcvit))
    assert again == line
    assert line["probabilities"] != told(ask(QUESTION, *CHOICES, "--json"))["probabilities"]
    assert "no video was read" in ask(QUESTION, *CHOICES, "--blind").err


def test_paused_film_goes_on_to_the_same_choice(command: Run, ask: Run, film: Path, tmp_path: Path) -> None:
    state = tmp_path / "half.state"
    assert ask(QUESTION, *CHOICES, "--seconds", "5", "--save", state).status == 0
    line = told(command("ask", film, QUESTION, *CHOICES, "--resume", state, "--json"))
    assert line == told(ask(QUESTION, *CHOICES, "--json"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([QUESTION], "is an MC-ViT and answers no questions in words; give it two or more --choice"),
        ([QUESTION, *CHOICES, "--at", "3"], "--at changes nothing"),
        ([QUESTION, *CHOICES, "--budget", "30"], "--budget changes nothing"),
        ([QUESTION, *CHOICES, "--horizon", "30"], "--horizon changes nothing"),
        ([QUESTION, *CHOICES, "--choose-by", "generation"], "--choose-by generation changes nothing"),
        ([QUESTION, *CHOICES, "--set", "memory.sizes=3"], "unknown key 'sizes'; did you mean 'size'?"),
        ([QUESTION, "--choice", "red"], "got one --choice"),
    ],
)
def test_what_it_cannot_do_is_told_in_one_line(ask: Run, arguments: list[str], message: str) -> None:
    result = ask(*arguments)
    assert (result.status, result.out, result.err.count("\n")) == (1, "", 1)
    assert message in result.err


def test_model_without_a_text_tower_chooses_nothing(command: Run, film: Path, linear_mcvit: Path) -> None:
    result = command("ask", film, QUESTION, *CHOICES, "--model", linear_mcvit)
    assert (result.status, result.out, result.err.count("\n")) == (1, "", 1)
    assert "chooses nothing (it has no text tower)" in result.err


def test_blind_is_refused_for_a_video_language_model(command: Run, film: Path, tiny_vlm: Path) -> None:
    result = command("ask", film, QUESTION, *CHOICES, "--blind", "--model", tiny_vlm)
    assert (result.status, result.err.count("\n")) == (1, 1)
    assert "--blind goes with --choice and an MC-ViT model" in result.err
