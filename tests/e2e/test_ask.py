"""``longtake ask`` on a film: text and JSON, many questions, choices, moments, policies, and what can be wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.e2e.conftest import Result
from tests.e2e.films import write_film
from tests.e2e.vlm_command import QUESTION, SHOWN
from tests.video.shared import SHARED

import longtake as lt
from longtake.types import Answer
from longtake.vlm.decode import Sampling

Run = Callable[..., Result]
KEYS = ["question", "answer", "choice", "probabilities", "at", "policy", "budget", "seen_seconds", "flags"]
OTHER = "what is it now?"


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_film(tmp_path_factory.mktemp("films") / "street.mp4", SHOWN)


@pytest.fixture
def ask(command: Run, film: Path, tiny_vlm: Path) -> Run:
    """``longtake ask`` about the film; further arguments follow."""
    return lambda *arguments: command("ask", film, *arguments, "--model", tiny_vlm)


@pytest.fixture(scope="module")
def session(film: Path, tiny_vlm: Path) -> lt.Session[Any]:
    """The same by hand."""
    model = lt.load(tiny_vlm, device="cpu")
    session = lt.Session(model, tells_events=False)
    for _ in session.watch(film):
        pass
    return session


def told(result: Result) -> list[dict[str, Any]]:
    assert result.status == 0, result.err
    return [json.loads(line) for line in result.out.splitlines()]


def test_answer_is_text_on_stdout_and_all_else_on_stderr(ask: Run, session: lt.Session[Any]) -> None:
    result = ask(QUESTION)
    assert result.status == 0
    expected = "".join(letter if letter.isprintable() else "\ufffd" for letter in session.ask(QUESTION).text)
    assert result.out == expected + "\n"
    seen, advice = result.err.splitlines()
    assert re.fullmatch(r"longtake: street: 12\.0 s seen, [\d.]+x real time, state [\d.]+ kB", seen)
    assert advice == "longtake: the answer was cut, it had reached its longest; raise --max-new-tokens"


def test_json_has_exactly_the_keys_of_the_contract(ask: Run, session: lt.Session[Any]) -> None:
    result = ask(QUESTION, OTHER, "--json", "--quiet")
    lines = told(result)
    assert [list(line) for line in lines] == [KEYS, KEYS]
    assert [line["question"] for line in lines] == [QUESTION, OTHER]
    assert [line["answer"] for line in lines] == [session.ask(QUESTION).text, session.ask(OTHER).text]
    rest = {"choice": None, "probabilities": [], "at": 12.0, "policy": "statekv", "budget": 48, "seen_seconds": 12.0}
    assert {key: lines[0][key] for key in rest} == rest
    assert lines[0]["flags"] == ["length"]
    assert result.err == ""


def test_several_questions_stand_above_their_answers_and_do_not_hear_each_other(ask: Run) -> None:
    alone = [ask(question).out for question in (QUESTION, OTHER)]
    assert ask(QUESTION, OTHER).out == f"# {QUESTION}\n{alone[0]}# {OTHER}\n{alone[1]}"


def test_follow_up_is_a_further_turn(ask: Run, session: lt.Session[Any]) -> None:
    with torch.inference_mode():
        talk = session.model.converse(session.state)  # type: ignore[attr-defined]
        turns = [talk.answer(QUESTION).text, talk.answer(OTHER).text]
    lines = told(ask(QUESTION, OTHER, "--follow-up", "--json"))
    assert [line["answer"] for line in lines] == turns
    assert turns[1] != session.ask(OTHER).text


def test_choice_by_likelihood_gives_probabilities(ask: Run, session: lt.Session[Any]) -> None:
    options = ("red", "blue", "a green car")
    choices = [word for option in options for word in ("--choice", option)]
    (line,) = told(ask(QUESTION, *choices, "--json"))
    answer = session.choose(QUESTION, options)
    assert (line["choice"], line["answer"]) == (answer.choice, answer.text)
    assert line["probabilities"] == [round(share, 6) for share in answer.probabilities]
    assert sum(line["probabilities"]) == pytest.approx(1, abs=1e-5)
    text = ask(QUESTION, *choices).out.splitlines()
    assert text[0] == answer.text
    assert text[1:] == [f"  {share:.3f}  {option}" for option, share in zip(options, answer.probabilities, strict=True)]


def test_choice_by_generation_is_what_the_model_names(ask: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    choices = ("--choice", "red", "--choice", "blue", "--choose-by", "generation")
    (line,) = told(ask(QUESTION, *choices, "--json"))
    assert (line["choice"], line["probabilities"]) == (None, [])
    assert "no-choice" in line["flags"]
    asked: list[str] = []

    def say(self: object, question: str) -> Any:
        asked.append(question)
        return Answer(text="(B)", at_seconds=12.0)

    monkeypatch.setattr("longtake.methods.statekv_answer.Conversation.answer", say)
    (line,) = told(ask(QUESTION, *choices, "--json"))
    assert (line["choice"], line["answer"], line["flags"]) == (1, "blue", [])
    assert asked == [f"{QUESTION}\nA. red\nB. blue\nAnswer with the letter of the right option."]


def test_answer_as_of_a_moment_is_that_of_a_film_read_so_far(ask: Run) -> None:
    (then,) = told(ask(QUESTION, "--at", "5.4", "--json"))
    (early,) = told(ask(QUESTION, "--seconds", "5", "--json"))
    (late,) = told(ask(QUESTION, "--json"))
    assert then["answer"] == early["answer"] != late["answer"]
    assert (then["at"], early["at"], late["at"]) == (5.0, 5.0, 12.0)
    assert then["seen_seconds"] == 6.0, "the rest of the film is not read for this"


def test_text_says_the_moment_that_it_is_really_as_of(ask: Run) -> None:
    told_as_of = "longtake: answered as of 5 s, the last step that was complete by 5.4 s"
    assert told_as_of in ask(QUESTION, "--at", "5.4", "--quiet").err.splitlines()
    assert "as of" not in ask(QUESTION, "--at", "5", "--quiet").err


def test_answer_without_a_word_is_flagged(ask: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformers.PreTrainedTokenizerBase.decode", lambda self, tokens, **_: " \n")
    (line,) = told(ask(QUESTION, "--json", "--max-new-tokens", "3"))
    assert (line["answer"], line["flags"]) == ("", ["length", "empty"])
    assert "longtake: the answer is empty: " in ask(QUESTION, "--max-new-tokens", "3").err


def test_budget_that_lets_nothing_go_is_told(ask: Run) -> None:
    assert "a budget of 9999999 lets nothing go, as --policy full does" in ask(QUESTION, "--budget", "9999999").err
    assert "lets nothing go" not in ask(QUESTION, "--budget", "24").err


@pytest.mark.parametrize("policy", ["statekv", "sink-recency", "recency", "random", "full"])
def test_every_policy_answers(ask: Run, policy: str) -> None:
    budget = () if policy == "full" else ("--budget", "24")
    (line,) = told(ask(QUESTION, "--policy", policy, *budget, "--json"))
    assert (line["policy"], line["budget"]) == (policy, 48 if policy == "full" else 24)
    assert line["answer"]


def test_options_of_the_stream_reach_the_model(ask: Run, film: Path, tiny_vlm: Path) -> None:
    given = {"select": "layer", "sinks": 3, "budget": 20, "fps": 1.0, "height": 96, "width": 64}
    words = [word for key, value in given.items() for word in (f"--{key}", value)]
    (line,) = told(ask(QUESTION, *words, "--horizon", "60", "--json"))
    model = lt.load(tiny_vlm, device="cpu", horizon_seconds=60.0, **given)
    session = lt.Session(model, tells_events=False)
    for _ in session.watch(film):
        pass
    assert line["answer"] == session.ask(QUESTION).text


def test_film_too_long_for_the_model_is_answered_as_far_as_it_was_seen(ask: Run) -> None:
    result = ask(QUESTION, "--json", "--set", "detailed_bytes=80000")
    assert result.status == 1
    line = json.loads(result.out)
    assert 0 < line["seen_seconds"] < 12
    assert line["flags"][-1] == "incomplete"
    assert "the detailed cache would take " in result.err


def test_stream_that_its_model_ended_is_answered_and_flagged(ask: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = lt.Session.watch

    def ends(self: Any, *arguments: Any, **options: Any) -> Any:
        for number, step in enumerate(watch(self, *arguments, **options)):
            yield replace(step, reason="length" if number == 4 else "")
            if number == 4:
                return

    monkeypatch.setattr(lt.Session, "watch", ends)
    (line,) = told(ask(QUESTION, "--json"))
    assert (line["seen_seconds"], line["flags"]) == (5.0, ["length", "incomplete"])


def test_any_setting_of_the_model_can_be_given(ask: Run) -> None:
    (given,) = told(ask(QUESTION, "--json", "--set", "budget=20", "--set", "select=layer"))
    (flagged,) = told(ask(QUESTION, "--json", "--budget", "20", "--select", "layer"))
    assert given == flagged


def test_sampling_options_reach_the_decoder(ask: Run, session: lt.Session[Any]) -> None:
    words = ("--temperature", "1.5", "--top-k", "40", "--top-p", "0.9", "--max-new-tokens", "6")
    sampling = Sampling(temperature=1.5, top_k=40, top_p=0.9, max_new_tokens=6, seed=4)
    with torch.inference_mode():
        expected = session.model.converse(session.state, sampling).answer(QUESTION)  # type: ignore[attr-defined]
    answers = [told(ask(QUESTION, *words, "--seed", seed, "--json"))[0]["answer"] for seed in (4, 4, 5)]
    assert answers[0] == answers[1] == expected.text
    assert answers[2] != answers[0]


def test_answer_ends_before_a_stop_string(ask: Run) -> None:
    (whole,) = told(ask(QUESTION, "--json"))
    stop = whole["answer"][3:5]
    (cut,) = told(ask(QUESTION, "--stop", stop, "--json"))
    assert cut["answer"] == whole["answer"][: whole["answer"].index(stop)].strip()
    assert cut["flags"] == []


def test_answer_that_repeats_itself_is_stopped_and_flagged(ask: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longtake.vlm.decode.chooser", lambda sampling: lambda tokens, logits: 70)
    result = ask(QUESTION, "--json", "--max-new-tokens", "100")
    assert told(result)[0]["flags"] == ["repeats"]
    assert "the answer began to repeat itself" in ask(QUESTION, "--max-new-tokens", "100").err


def test_words_of_a_model_cannot_steer_the_terminal(ask: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "transformers.PreTrainedTokenizerBase.decode", lambda self, tokens, **_: "red\x1b[2J\rblue"[: 4 * len(tokens)]
    )
    assert ask(QUESTION).out == "red\ufffd[2J\ufffdblue\n"


def test_transport_stream_can_be_asked_about(command: Run, tiny_vlm: Path, tmp_path: Path) -> None:
    film = write_film(tmp_path / "film.ts", SHOWN, codec="mpeg2video")
    (line,) = told(command("ask", film, QUESTION, "--json", "--model", tiny_vlm))
    assert line["seen_seconds"] == 12.0


@pytest.mark.skipif(not (SHARED / "videos").is_dir(), reason="no shared videos (LONGTAKE_SHARED names their folder)")
@pytest.mark.parametrize("name", ["interactive-examples__flower.mp4", "rails__rotated_video.mp4"])
def test_real_clip_can_be_asked_about(command: Run, tiny_vlm: Path, name: str) -> None:
    clip = SHARED / "videos" / name
    lines = told(command("ask", clip, QUESTION, "--json", "--model", tiny_vlm, "--seconds", "4"))
    assert 0 < lines[0]["seen_seconds"] <= 4.0
    assert lines[0]["answer"]


# --- what can be wrong


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([""], "question 1 is empty; put it in words"),
        ([QUESTION, "  \n"], "question 2 is empty"),
        (["what\0now?"], r"question 1 contains '\x00', which is not text"),
        (["what\x1bnow?"], r"question 1 contains '\x1b'"),
        (["what? " * 200_000], "question 1 has 1200000 characters, expected at most 20000"),
        (
            ["is <|video_pad|> red?"],
            "'<|video_pad|>' stands for pictures in Qwen3-VL and cannot be part of what is asked",
        ),
        ([QUESTION, "--choice", "red"], "got one --choice, expected two or more"),
        ([QUESTION, "--choice", "red", "--choice", ""], "choice 2 is empty"),
        ([QUESTION, "--choice", "red", "--choice", " Red "], "choice 'red' is given twice"),
        ([QUESTION, "--choice", "a", "--choice", "<|image_pad|>"], "'<|image_pad|>' stands for pictures"),
        ([QUESTION, "--follow-up", "--choice", "a", "--choice", "b"], "use --choose-by generation"),
        ([QUESTION, "--at", "-1"], "--at is -1, expected a number of seconds, 0 or more"),
        ([QUESTION, "--at", "nan"], "--at is nan"),
        ([QUESTION, "--at", "0.2"], "asked about 0.2 s, there is nothing to answer about before 1 s"),
        ([QUESTION, "--at", "0"], "the first step is complete then); ask about 1 s or later"),
        ([QUESTION, "--at", "99"], "--at 99 lies beyond the end: street is 12 s long"),
        ([QUESTION, "--at", "9", "--seconds", "4"], "--at 9 lies beyond --seconds 4, where reading stops"),
        ([QUESTION, "--policy", "full", "--budget", "9"], "budget is given, but policy is full, for which it changes"),
        ([QUESTION, "--policy", "recency", "--select", "kv-head"], "select is given, but policy is recency"),
        ([QUESTION, "--set", "answer_chunks=3"], "answer_chunks is given, but answer is whole"),
        ([QUESTION, "--budget", "1000000000000"], "budget is 1000000000000, expected at most 10000000"),
        ([QUESTION, "--max-new-tokens", "1000000000"], "max_new_tokens is 1000000000, expected at most 32768"),
        ([QUESTION, "--fps", "1000"], "fps is 1000.0, expected at most 60"),
        ([QUESTION, "--fps", "0.001"], "fps is 0.001, expected at least one frame a minute"),
        ([QUESTION, "--height", "100000"], "height is 100000, expected at most 8192"),
        ([QUESTION, "--horizon", "1e18"], "horizon_seconds is 1e+18, expected at most 100000000"),
        ([QUESTION, "--temperature", "1e-300"], "temperature is 1e-300, expected 0 (greedy) or 0.001 to 100.0"),
        ([QUESTION, "--temperature", "1", "--seed", str(1 << 70)], "expected 0 or more, of at most 63 bits"),
        ([QUESTION, "--set", "policy.x=1"], 'policy is {"x": 1} (dict); expected one of statekv'),
        ([QUESTION, "--set", "budget=abc"], 'budget is "abc" (str), expected int'),
        ([QUESTION, "--seconds", "-2"], "--seconds is -2"),
        ([QUESTION, "--seconds", "0"], "it goes with --resume"),
        ([QUESTION, "--budget", "-5"], "budget is -5, expected more than 0"),
        ([QUESTION, "--budget", "8", "--sinks", "8"], "expected fewer than the budget of 8"),
        ([QUESTION, "--sinks", "48"], "fewer than the budget of 48"),
        ([QUESTION, "--policy", "recency", "--sinks", "2"], "sinks is given, but policy is recency"),
        ([QUESTION, "--set", "bugdet=3"], "unknown key 'bugdet'; did you mean 'budget'?"),
        ([QUESTION, "--set", "budget"], "expected key=value"),
        ([QUESTION, "--horizon", "0"], "horizon_seconds is 0.0, expected more than 0"),
        ([QUESTION, "--fps", "0"], "fps is 0.0, expected more than 0"),
        ([QUESTION, "--height", "50"], "Qwen3-VL takes multiples of 32"),
        ([QUESTION, "--max-new-tokens", "0"], "max_new_tokens is 0, expected 1 or more"),
        ([QUESTION, "--temperature", "-1"], "temperature is -1.0"),
        ([QUESTION, "--top-p", "1.5", "--temperature", "1"], "top_p is 1.5"),
        ([QUESTION, "--stop", ""], "a stop string is empty"),
        ([QUESTION, "--save", "/proc/none/state"], "cannot write /proc/none/state"),
        ([QUESTION, "--save", "/dev/null"], "cannot save a state as /dev/null: it is a device or a pipe"),
        ([QUESTION, "--set", "detailed=disk", "--set", "detailed_folder=/proc/x"], "cannot write /proc/x/page.kv"),
        ([QUESTION, "--set", "budget=9", "--set", "budget=8"], "budget is given twice"),
        ([QUESTION, "--resume", "missing.state"], "no state file missing.state"),
    ],
)
def test_what_cannot_be_answered_is_told_in_one_line(ask: Run, arguments: list[str], message: str) -> None:
    result = ask(*arguments, "--quiet")
    assert (result.status, result.out) == (1, "")
    assert message in result.err
    assert result.err.count("\n") == 1
    assert result.err.startswith("longtake: ")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        [QUESTION, "--policy", "newest"],
        [QUESTION, "--budget", "many"],
        [QUESTION, "--choose-by", "dice"],
        [QUESTION, "--set", "budget=9", "--budget", "8"],
    ],
)
def test_wrong_usage_exits_two(ask: Run, arguments: list[str]) -> None:
    result = ask(*arguments)
    assert (result.status, result.out) == (2, "")
    assert "Traceback" not in result.err


@pytest.mark.parametrize("content", [b"", b"no film at all"])
def test_source_without_video_is_told_in_one_line(command: Run, tiny_vlm: Path, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.mp4"
    path.write_bytes(content)
    result = command("ask", path, QUESTION, "--model", tiny_vlm, "--save", tmp_path / "state")
    assert (result.status, result.out) == (1, "")
    assert result.err.count("\n") == 1
    assert not (tmp_path / "state").exists()


def test_question_may_be_written_from_right_to_left(ask: Run) -> None:
    assert ask("\u202bmah zeh?\u202c", "--json").status == 0


def test_state_of_another_model_whose_settings_do_not_fit_is_told(
    command: Run, film: Path, tiny_vlm: Path, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    assert command("ask", film, QUESTION, "--model", tiny_vlm, "--save", state).status == 0
    result = command("ask", film, QUESTION, "--model", "toybox-vlm", "--resume", state)
    assert result.status == 1
    assert f"was saved with model {tiny_vlm}" in result.err


def test_source_that_is_missing_is_told_before_the_model_is_loaded(command: Run, tmp_path: Path) -> None:
    result = command("ask", tmp_path / "missing.mp4", QUESTION, "--model", tmp_path / "no-model")
    assert result.status == 1
    assert "missing.mp4: no such file" in result.err


def test_model_that_answers_no_questions_is_told_so(command: Run, film: Path) -> None:
    result = command("ask", film, QUESTION, "--model", "toybox-sts")
    assert (result.status, result.err.count("\n")) == (1, 1)
    assert "toybox-sts is a STS and answers no questions in words" in result.err


def test_state_is_not_saved_over_the_source(ask: Run, film: Path) -> None:
    before = film.read_bytes()
    result = ask(QUESTION, "--save", film)
    assert result.status == 1
    assert "is the source, which would be overwritten" in result.err
    assert film.read_bytes() == before
