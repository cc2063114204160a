"""lmms-eval runs a local task on our model, and its score is that of longtake's own evaluation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lmms_eval", reason="lmms-eval is not installed: see docs/dependencies.md")

from lmms_eval.evaluator import simple_evaluate
from lmms_eval.models import get_model
from lmms_eval.protocol import ChatMessages
from lmms_eval.tasks import TaskManager

from longtake import hub
from longtake.errors import ConfigError
from longtake.eval.ask import share
from longtake.eval.ask_data import open_recall
from longtake.eval.ask_run import ask_all
from longtake.eval.caption_data import render_toybox
from longtake.eval.harness import HarnessModel, asked, sampling_of

TASK = """
task: toybox_recall
dataset_path: json
dataset_kwargs:
  data_files:
    test: {items}
  cache_dir: {cache}
test_split: test
output_type: generate_until
doc_to_visual: !function task.video_of
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
generation_kwargs:
  max_new_tokens: 12
process_results: !function task.marked
metric_list:
  - metric: right
    aggregation: mean
    higher_is_better: true
"""
CODE = """
def video_of(item):
    return [item["video"]]


def marked(item, results):
    return {"right": float(results[0].strip() == item["answer"])}
"""


@pytest.mark.skipif("toybox-vlm" not in hub.bundled(), reason="toybox-vlm is not in this checkout")
def test_score_of_a_task_is_longtakes_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    render_toybox(tmp_path / "data", videos=2, seed=5, seconds=(40, 45))
    data = open_recall(tmp_path / "data")
    items = [
        {"video": str(data.videos[video]), "question": question.question, "answer": question.answer}
        for video, questions in data.questions.items()
        for question in questions
    ]
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    folder = tmp_path / "tasks"
    folder.mkdir()
    (folder / "task.py").write_text(CODE)
    (folder / "recall.yaml").write_text(TASK.format(items=tmp_path / "items.jsonl", cache=tmp_path / "cache"))
    found: Any = simple_evaluate(
        model="longtake",
        model_args="pretrained=toybox-vlm,policy=statekv,budget=256",
        tasks=["toybox_recall"],
        task_manager=TaskManager(include_path=str(folder), include_defaults=False),
        device="cpu",
    )
    samples = sorted(found["samples"]["toybox_recall"], key=lambda sample: sample["doc_id"])
    marks = ask_all(data, hub.load("toybox-vlm", policy="statekv", budget=256, device="cpu"))
    assert len(samples) == len(marks) == len(items) > 4
    assert [sample["filtered_resps"][0] for sample in samples] == [mark.said for mark in marks]
    assert found["results"]["toybox_recall"]["right,none"] == pytest.approx(share(marks).accuracy)
    assert share(marks).accuracy > 0


def test_harness_finds_the_model_by_its_name() -> None:
    assert get_model("longtake") is HarnessModel


def test_a_model_without_words_is_refused() -> None:
    with pytest.raises(ConfigError, match="toybox-sts is a STS"):
        HarnessModel("toybox-sts")


def messages(*content: dict[str, Any]) -> ChatMessages:
    return ChatMessages(messages=[{"role": "user", "content": list(content)}])  # pyright: ignore[reportArgumentType]


def test_one_video_and_its_words_are_taken() -> None:
    words = [{"type": "text", "text": "What"}, {"type": "text", "text": "happens?"}]
    assert asked(messages({"type": "video", "url": "a.mp4"}, *words)) == ("a.mp4", "What\nhappens?")


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "text", "text": "What?"}],
        [{"type": "video", "url": "a.mp4"}, {"type": "video", "url": "b.mp4"}],
        [{"type": "video", "url": "a.mp4"}, {"type": "image", "url": "b.png"}],
        [{"type": "video", "url": "a.mp4", "start_time": 1.0}],
        [{"type": "video", "url": ["frame"]}],
    ],
)
def test_other_requests_are_refused(content: list[dict[str, Any]]) -> None:
    with pytest.raises(ConfigError, match="video"):
        asked(messages(*content))


def test_generation_settings_are_the_tasks() -> None:
    greedy = sampling_of({"temperature": 0.7, "do_sample": False, "until": "\n", "num_beams": 1}, 64)
    assert (greedy.max_new_tokens, greedy.temperature, greedy.stop) == (64, 0.0, ("\n",))
    drawn = sampling_of({"temperature": 0.7, "do_sample": True, "max_new_tokens": 5, "top_p": 0.5}, 64)
    assert (drawn.max_new_tokens, drawn.temperature, drawn.top_p) == (5, 0.7, 0.5)
    with pytest.raises(ConfigError, match="beam"):
        sampling_of({"num_beams": 3}, 64)
