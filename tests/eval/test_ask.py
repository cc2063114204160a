"""Marking answers: what counts as right, intervals over videos, and what words alone can tell."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.contract.models import make_mcvit

from longtake.errors import ConfigError, SourceError
from longtake.eval.ask import Marked, TextOnly, by, difference, metrics, share
from longtake.eval.ask_data import AskData, AskedQuestion, open_recall
from longtake.eval.ask_report import AskReport, markdown, picture
from longtake.eval.ask_run import ask_all, blind_all
from longtake.eval.ask_sweep import Trial, policies_of, read, run_trials, tokens_of, trials, try_all
from longtake.eval.caption_data import render_toybox
from longtake.hub import load
from longtake.methods.statekv import StateKV
from longtake.methods.statekv_config import StateKVConfig
from longtake.train.vlm.build import VLMConfig, build_model, build_processor, save
from longtake.train.words import question_words
from longtake.vlm.families import family_of

SMALL = VLMConfig(
    size=24,
    patch=4,
    vision_dim=16,
    vision_layers=1,
    vision_heads=2,
    vision_inner=16,
    dim=32,
    layers=2,
    heads=4,
    kv_heads=2,
    inner=32,
    listens_after=1,
)


def marked(video: str, said: str, answer: str = "yes", form: str = "whether") -> Marked:
    return Marked(video=video, question=AskedQuestion(type="x", question="?", answer=answer, form=form), said=said)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> AskData:
    folder = tmp_path_factory.mktemp("recall") / "data"
    render_toybox(folder, videos=2, seed=5, seconds=(40, 44))
    return open_recall(folder)


@pytest.fixture(scope="module")
def model() -> StateKV:
    torch.manual_seed(1)
    processor = build_processor(SMALL, question_words())
    family = family_of(build_model(SMALL, processor.tokenizer).eval(), processor, height=24, width=24)
    return StateKV(family, StateKVConfig(policy="full", fps=SMALL.fps, max_new_tokens=4))


def tried(model: StateKV, data: AskData, wanted: list[Trial]) -> dict[Trial, list[Marked]]:
    """As ``run_trials``, in this process."""
    found = [try_all(model, video, path, data.questions[video], wanted) for video, path in data.videos.items()]
    return {trial: [mark for video in found for mark in video[index]] for index, trial in enumerate(wanted)}


@pytest.mark.parametrize(("said", "right"), [("Yes.", True), (" yes ", True), ("yes it did", False), ("", False)])
def test_an_answer_is_right_up_to_case_space_and_full_stop(said: str, right: bool) -> None:
    assert marked("a", said).right is right


def test_intervals_are_over_videos_not_questions() -> None:
    apart = [marked("a", "yes")] * 50 + [marked("b", "no")] * 50
    assert share(apart).accuracy == 0.5
    assert (share(apart).low, share(apart).high) == (0.0, 1.0)
    even = [marked(str(video), said) for video in range(50) for said in ("yes", "no")]
    assert share(even).low == share(even).high == 0.5


def test_the_difference_is_of_the_same_questions() -> None:
    one = [marked(str(video), "yes") for video in range(10)]
    other = [marked(str(video), "yes" if video < 8 else "no") for video in range(10)]
    gap = difference(one, other)
    assert gap.accuracy == pytest.approx(0.2)
    assert gap.low >= 0.0
    assert by(one + other, "form")["whether"].items == 20
    assert metrics(one, other)["without_video"]["accuracy"] == pytest.approx(0.8)  # pyright: ignore[reportIndexIssue]


def test_words_alone_know_the_usual_answer_but_not_the_toy() -> None:
    def asked(name: str, answer: str) -> AskedQuestion:
        return AskedQuestion(type="x", question=f"did the {name} jump?", answer=answer, form="whether")

    words = TextOnly(
        [asked("red car", "yes"), asked("blue cup", "yes"), asked("red cup", "no")], ["red car", "red cup"]
    )
    assert words.answer(asked("blue cup", "?")) == "yes"
    assert words.answer(AskedQuestion(type="x", question="other?", answer="?", form="whether")) == "yes"
    assert words.answer(AskedQuestion(type="x", question="other?", answer="?", form="none")) == ""


def test_a_budget_of_the_whole_video_answers_as_full_attention(model: StateKV, data: AskData) -> None:
    whole = tried(model, data, trials(("statekv", "recency"), (Fraction(1),)))
    said = [[mark.said for mark in marks] for marks in whole.values()]
    assert said[0] == said[1] == said[2]
    video, path = next(iter(data.videos.items()))
    seen = read(path, model)
    with torch.inference_mode():
        state = model.init_state()
        for segment in seen:
            state = model.advance(state, segment)
    assert tokens_of(model, seen) == state.kv.seen_tokens
    assert [mark.said for mark in ask_all(data, model) if mark.video == video] == said[0][: len(data.questions[video])]


def test_mcvit_chooses_and_its_blind_answers_stand_beside(data: AskData) -> None:
    mcvit: Any = make_mcvit()
    marks, blind = ask_all(data, mcvit, choose=True), blind_all(data, mcvit)
    assert [mark.question for mark in blind] == [mark.question for mark in marks]
    assert all(mark.said in mark.question.options for mark in blind)
    again = {mark.question.question: mark.said for mark in blind}
    assert [again[mark.question.question] for mark in blind_all(data, mcvit)] == [mark.said for mark in blind]
    found: Any = metrics(marks, blind=blind)
    assert found["visual"]["accuracy"] == pytest.approx(found["accuracy"] - found["blind"]["accuracy"])
    assert "without_video" not in found


def test_the_report_chooses_on_other_videos_than_it_scores(model: StateKV, data: AskData) -> None:
    found = tried(model, data, trials(("statekv", "random"), (Fraction(1, 16), Fraction(1, 8))))
    better = {
        trial: [marked(mark.video, "yes" if trial.name == "random" else "no") for mark in marks]
        for trial, marks in found.items()
    }
    report = AskReport(valid=better, test=found, blind=next(iter(found.values())))
    assert report.best == "random"
    text = markdown(report, "tiny")
    assert "| statekv | " in text
    assert "random (chosen on other videos)" in text
    assert picture(report, "tiny").startswith(b"\x89PNG")
    assert json.loads(json.dumps(report.to_dict()))["best"] == "random"


def test_folders_that_hold_no_questions_are_refused(tmp_path: Path, data: AskData) -> None:
    with pytest.raises(ConfigError, match=r"no recall\.json"):
        open_recall(tmp_path)
    (tmp_path / "recall.json").write_text('{"a": [{"question": 3}]}')
    with pytest.raises(SourceError, match="no questions by video"):
        open_recall(tmp_path)
    (tmp_path / "recall.json").write_text('{"a": []}')
    with pytest.raises(ConfigError, match="is missing"):
        open_recall(tmp_path)
    with pytest.raises(ConfigError, match="at least 1 video"):
        open_recall(next(iter(data.videos.values())).parents[1], limit=0)


def test_trials_in_processes_give_the_same_answers(model: StateKV, data: AskData, tmp_path: Path) -> None:
    save(model.family.model, model.family.processor, tmp_path / "tiny", SMALL)
    wanted = trials(("sink-recency",), (Fraction(1, 8),))
    apart = run_trials(str(tmp_path / "tiny"), data, wanted)
    loaded = load(str(tmp_path / "tiny"))
    assert isinstance(loaded, StateKV)
    assert apart == tried(loaded, data, wanted)
    with pytest.raises(ConfigError, match="policies are those of a frozen video VLM"):
        policies_of(object(), "x")
