"""Questions of public data sets: what an answer means, what was seen by then, and how each set is scored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.e2e.films import write_film
from tests.eval.watcher import Watcher
from tests.methods.statekv_models import statekv

from longtake.data.datasets import DATASETS
from longtake.data.datasets.samples import Question
from longtake.data.datasets.videos import Clip
from longtake.eval.question_answer import edit_distance, official_right, option_said, word_said
from longtake.eval.question_data import QuestionData
from longtake.eval.question_run import GREY, MarkedQuestion, ask_blind, ask_questions
from longtake.eval.question_score import mean_score, metrics
from longtake.session import Session
from longtake.types import Choose

OPTIONS = ("to draw on the wall", "to leave the building", "to close the window")


def asked(at: float | None = None, key: str = "q", **fields: Any) -> Question:
    defaults = {"question": f"why {key}?", "options": OPTIONS, "gold": 0, "answer": OPTIONS[0], "tags": {"type": "x"}}
    return Question(key=key, video="v", at_seconds=at, **(defaults | fields))


def data_of(*questions: Question, path: Path, start: float = 0.0, end: float | None = None) -> QuestionData:
    return QuestionData(
        dataset=DATASETS["ovo-bench"],
        split="test",
        clips={"v": Clip(path=path, start_seconds=start, end_seconds=end)},
        questions={"v": questions},
        missing=(),
        notes=(),
    )


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five seconds, eight frames each."""
    return write_film(tmp_path_factory.mktemp("films") / "-v&a=1.mp4", "rgbx" * 5)


# --- what an answer means


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("B", (1, "")),
        ("(c) something", (2, "")),
        ("The answer is A.", (0, "")),
        ("he wanted to leave the building", (1, "")),
        ("leaving the bulding", (1, "nearest")),
        ("close windows", (2, "nearest")),
        ("", (None, "no-answer")),
        ("...", (None, "no-answer")),
    ],
)
def test_answer_means_the_option_it_names_or_the_nearest(text: str, expected: tuple[int | None, str]) -> None:
    assert option_said(text, OPTIONS) == expected


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [("", "", 0), ("", "abc", 3), ("kitten", "sitting", 3), ("abc", "abc", 0), ("ab", "ba", 2)],
)
def test_edit_distance_counts_letters(one: str, other: str, apart: int) -> None:
    assert edit_distance(one, other) == edit_distance(other, one) == apart


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("It was done three times.", "count", "3"),
        ("02", "count", "2"),
        ("many", "count", ""),
        ("Yes, it is.", "yes-no", "Yes"),
        ("no", "yes-no", "No"),
        ("I do not know", "yes-no", ""),
    ],
)
def test_numbers_and_yes_or_no_are_read_from_words(text: str, kind: str, expected: str) -> None:
    assert word_said(text, kind) == expected


@pytest.mark.parametrize(
    ("rule", "text", "right"),
    [
        ("anywhere", "Answer: B", True),  # its A is enough
        ("anywhere", "b or c", False),
        ("bracket", "A) red", True),
        ("bracket", "(A) red", True),
        ("bracket", "A", True),
        ("bracket", "the first", False),
        ("first-letter", "A red cup, so B", True),
        ("first-letter", "D", False),
    ],
)
def test_official_rules_read_answers_as_the_scripts_do(rule: str, text: str, right: bool) -> None:
    assert official_right(rule, text, asked()) is right


def test_official_counting_joins_all_digits() -> None:
    twelve, yes = asked(kind="count", gold=None, answer="12"), asked(kind="yes-no", gold=None, answer="Yes")
    assert official_right("anywhere", "1 or 2", twelve)
    assert not official_right("anywhere", "twelve", twelve)
    assert [official_right("anywhere", text, yes) for text in ("Yes.", "Y", "yes", "No")] == [True, True, False, False]


# --- what was seen by then


@pytest.mark.parametrize("moments", [(0.0,), (1.6, 0.99), (2.0, 2.0, 3.1), (0.1, 99.0)])
def test_model_sees_every_frame_up_to_the_moment_and_none_after(film: Path, moments: tuple[float, ...]) -> None:
    model = Watcher(lambda question, times: "A")
    questions = [asked(at, key=str(number)) for number, at in enumerate(moments)]
    run = ask_questions(data_of(*questions, path=film), model)
    assert [mark.question for mark in run.marks] == questions, "in the order of the annotations"
    for mark, at in zip(run.marks, moments, strict=True):
        (state,) = [state for question, state in model.asked if question.startswith(mark.question.question)]
        assert state.times == tuple(tick / 4 for tick in range(20) if tick / 4 <= at)
        assert (mark.frames, mark.last_frame_seconds) == (len(state.times), state.times[-1])
        assert state.total_seconds is None, "a stream does not know how long it will be"


def test_asking_in_between_leaves_the_stream_as_it_was(film: Path) -> None:
    model = Watcher(lambda question, times: "A")
    ask_questions(data_of(asked(1.3, key="mid"), asked(key="end"), path=film), model)
    assert [len(state.times) for _, state in model.asked] == [6, 20]


def test_clip_is_the_part_that_is_meant(film: Path) -> None:
    model = Watcher(lambda question, times: "B")
    (mark,) = ask_questions(data_of(asked(), path=film, end=2.25 - 0.06), model).marks
    assert model.asked[0][1].times == tuple(tick / 4 for tick in range(9))
    assert not mark.right
    ask_questions(data_of(asked(), path=film, start=1.0, end=2.0), model)
    assert model.asked[1][1].times == (1.0, 1.25, 1.5, 1.75, 2.0)


def test_last_seconds_only_is_a_stream_of_its_own(film: Path) -> None:
    model = Watcher(lambda question, times: "A")
    run = ask_questions(
        data_of(asked(3.3), asked(key="end"), asked(0.6, key="early"), path=film), model, last_seconds=1.0
    )
    assert [mark.question.key for mark in run.marks] == ["q", "early"]
    assert [state.times for _, state in model.asked] == [(2.5, 2.75, 3.0, 3.25), (0.0, 0.25, 0.5)]


def test_blind_model_has_seen_grey_only(film: Path) -> None:
    model = Watcher(lambda question, times: "A")
    run = ask_questions(data_of(asked(), path=film), model)
    (mark,) = ask_blind(run.marks, model)
    assert set(model.asked[1][1].shades) == {GREY} != set(model.asked[0][1].shades)
    assert mark.right


def test_model_that_only_chooses_is_shown_no_letters(film: Path) -> None:
    model = Watcher(lambda question, times: "B", supports=frozenset({Choose}))
    count = asked(key="n", kind="count", options=(), gold=None, answer="2")
    run = ask_questions(data_of(asked(), count, path=film), model)
    assert [(mark.answer, mark.flags) for mark in run.marks] == [(OPTIONS[0], ()), ("", ("no-answer",))]
    assert model.asked[0][0] == "why q?"


def test_unreadable_video_is_named_and_the_others_go_on(film: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.mp4").write_bytes(b"no film")
    data = data_of(asked(), path=film)
    clips = {"bad": Clip(path=tmp_path / "bad.mp4"), **data.clips}
    both = QuestionData(
        dataset=data.dataset,
        split="test",
        clips=clips,
        questions={"bad": (asked(),), **data.questions},
        missing=(),
        notes=(),
    )
    run = ask_questions(both, Watcher(lambda question, times: "A"))
    assert len(run.marks) == 1
    assert run.unreadable[0].startswith("bad: ")


def test_statekv_answers_at_a_moment_as_it_does_afterwards(film: Path) -> None:
    model = statekv(fps=2.0)
    moment = 2 * model.segment_spec.num_frames / 2.0 - 0.25  # between the last frame of a segment and the next one
    (mark,) = ask_questions(data_of(asked(moment), path=film), model).marks
    session: Session[Any] = Session(model, tells_events=False)
    for _ in session.watch(film):
        pass
    from longtake.methods.statekv_choice import lettered

    with torch.inference_mode():
        state = model.as_of(session.state, 2 * model.segment_spec.seconds)
        assert mark.said == model.converse(state).answer(lettered("why q?", OPTIONS)).text


# --- scores


def marks(*found: tuple[str, str, int, int]) -> list[MarkedQuestion]:
    """From group, type, right answers and wrong ones."""
    return [
        MarkedQuestion(
            video=f"{kind}{number}",
            question=asked(tags={"type": kind, "group": group}),
            said="",
            answer=OPTIONS[0] if number < right else OPTIONS[1],
        )
        for group, kind, right, wrong in found
        for number in range(right + wrong)
    ]


def test_scores_are_means_as_each_data_set_takes_them() -> None:
    found = marks(("a", "x", 3, 1), ("a", "y", 0, 1), ("b", "z", 1, 1))
    assert mean_score(found, ()) == pytest.approx(4 / 7)
    assert mean_score(found, ("type",)) == pytest.approx((0.75 + 0 + 0.5) / 3)
    assert mean_score(found, ("type", "group")) == pytest.approx(((0.75 + 0) / 2 + 0.5) / 2)
    assert mean_score([], ("type",)) == 0.0
    whole: Any = metrics(found, ("type",), blind=marks(("a", "x", 0, 1)))
    assert (whole["score"], whole["accuracy"], whole["items"]) == (pytest.approx(1.25 / 3), pytest.approx(4 / 7), 7)
    assert whole["by_type"]["x"]["accuracy"] == 0.75
    assert whole["by_group"]["a"]["items"] == 5
    assert whole["blind"]["score"] == 0.0


def test_options_of_the_same_words_are_the_same_answer() -> None:
    same = asked(options=("five", "six", "five"), gold=2, answer="five")
    assert MarkedQuestion(video="v", question=same, said="A", answer="five").right
    assert not MarkedQuestion(video="v", question=same, said="", answer="").right
