"""Bounded and whole answers compared: one state serves every retrieval, and enough chunks answer as the whole."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.eval.test_ask import SMALL

from longtake.eval.ask_bounded import FULL, WHOLE, Way, run_ways, ways
from longtake.eval.ask_bounded_report import BoundedReport, markdown, picture
from longtake.eval.ask_data import AskData, open_recall
from longtake.eval.ask_sweep import read
from longtake.eval.caption_data import render_toybox
from longtake.methods.statekv import StateKV
from longtake.methods.statekv_config import StateKVConfig
from longtake.state.pages import resummarised
from longtake.state.retrieval import RETRIEVALS
from longtake.train.vlm.build import build_model, build_processor
from longtake.train.words import question_words
from longtake.vlm.families import family_of


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> AskData:
    folder = tmp_path_factory.mktemp("bounded") / "data"
    render_toybox(folder, videos=1, seed=5, seconds=(100, 100))  # 81 chunks: more than a page
    found = open_recall(folder)
    return replace(found, questions={video: asked[:4] for video, asked in found.questions.items()})


@pytest.fixture(scope="module")
def model() -> StateKV:
    torch.manual_seed(1)
    processor = build_processor(SMALL, question_words())
    family = family_of(build_model(SMALL, processor.tokenizer).eval(), processor, height=24, width=24)
    return StateKV(family, StateKVConfig(budget=64, fps=SMALL.fps, max_new_tokens=4))


def test_enough_chunks_answer_as_the_whole_cache_does(model: StateKV, data: AskData) -> None:
    wanted = [FULL, WHOLE, *(Way(retrieve=name, per_layer=False, chunks=100) for name in RETRIEVALS)]
    found = run_ways(model, data, wanted)
    assert list(found) == wanted
    said = {way: [mark.said for mark in answered.marks] for way, answered in found.items()}
    assert all(said[way] == said[WHOLE] for way in wanted if way.retrieve)


def test_summaries_made_anew_are_those_made_on_the_way(model: StateKV, data: AskData) -> None:
    (path,) = data.videos.values()
    seen = read(Path(path), model)
    states = []
    with torch.inference_mode():
        for name in ("peaks", "mean"):
            runner = StateKV(model.family, replace(model.config, answer="bounded", retrieve=name))
            state = runner.init_state()
            for segment in seen:
                state = runner.advance(state, segment)
            states.append(state.kv.detailed)
        made = resummarised(states[0], RETRIEVALS["mean"].summarise)
    assert made.pages
    assert made.recent
    assert (made.num_bytes, made.stored_bytes) == (states[1].num_bytes, states[1].stored_bytes)
    for one, other in zip(made.all_pages(), states[1].all_pages(), strict=True):
        torch.testing.assert_close(one.summary, other.summary, atol=0, rtol=0)


def test_report_has_a_row_per_retrieval_and_a_column_per_number(model: StateKV, data: AskData) -> None:
    found = run_ways(model, data, ways((2, 8), ("peaks", "mean")))
    report = BoundedReport(found=found, blind=found[FULL].marks)
    text = markdown(report, "tiny")
    assert "| chunks found by | 2 | 8 |" in text
    for row in ("peaks, per layer", "peaks, per KV head", "mean, per layer", "mean, per KV head"):
        assert f"| {row} | " in text
    assert len(report.to_dict()["ways"]) == len(found) == 10  # pyright: ignore[reportArgumentType]
    assert picture(report, "tiny").startswith(b"\x89PNG")
