"""``longtake score captions`` and ``eval captions``, without Java and with a model that says what it is told."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from longtake import hub, session
from longtake.cli.app import run
from longtake.errors import ConfigError
from longtake.eval import read_references
from longtake.eval.caption_data import open_toybox, render_toybox
from longtake.types import Caption, Event, Request, Response, Segment, SegmentSpec

ENTERS, BACK, JUMPS = (
    "a red car enters from the left",
    "the red car comes back from the left",
    "the red car jumps for the first time",
)
STORY = {
    "duration": 60.0,
    "timestamps": [[0.0, 4.0], [10.0, 14.0], [20.0, 24.0]],
    "sentences": [ENTERS, JUMPS, BACK],
    "memory": [
        [{"kind": "first_back", "word": "enters", "needs_memory": False}],
        [{"kind": "count", "word": "first", "needs_memory": False}],
        [{"kind": "first_back", "word": "comes back", "needs_memory": True}],
    ],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data set of two videos, which no one will open."""
    (tmp_path / "data" / "videos").mkdir(parents=True)
    for video in ("v", "w"):
        (tmp_path / "data" / "videos" / f"{video}.mp4").touch()
    (tmp_path / "data" / "captions.json").write_text(json.dumps({"v": STORY, "w": STORY}), encoding="utf-8")
    (tmp_path / "data" / "world.json").write_text(json.dumps({"seed": 7}), encoding="utf-8")
    return tmp_path / "data"


@pytest.fixture
def predictions(tmp_path: Path) -> Path:
    said = [
        {"sentence": text, "timestamp": time}
        for text, time in zip([ENTERS, JUMPS, ENTERS], STORY["timestamps"], strict=True)
    ]  # type: ignore[arg-type]
    path = tmp_path / "said.json"
    path.write_text(json.dumps({"version": "1", "results": {"v": said, "w": said}}), encoding="utf-8")
    return path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Put a model in place that says the true story; what it was loaded with and shown."""
    log: list[object] = []

    class Teller:
        segment_spec = SegmentSpec(num_frames=8, fps=4.0, height=16, width=16)
        supports = frozenset({Caption})
        fingerprint = "teller"

        def init_state(self) -> int:
            return 0

        def max_state_bytes(self) -> int:
            return 0

        def advance(self, state: int, segment: Segment) -> int:
            raise AssertionError("nothing is shown to this model")

        def respond(self, state: int, request: Request) -> Iterator[Response]:
            raise AssertionError("nothing is asked of this model")

    def load(name: str, **options: object) -> Teller:
        log.append((name, options))
        return Teller()

    def caption(source: Path, model: Teller) -> Iterator[Event]:
        log.append(source.stem)
        for (start, end), text in zip(STORY["timestamps"], STORY["sentences"], strict=True):  # type: ignore[arg-type]
            yield Event(start_seconds=start, end_seconds=end, text=text)

    monkeypatch.setattr(hub, "load", load)
    monkeypatch.setattr(session, "caption", caption)
    return log


def answer(arguments: Sequence[object], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Run a command that must succeed, with --json and without Java."""
    assert run([*map(str, arguments), "--no-java", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def complaint(arguments: Sequence[object], capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command that must fail with one line."""
    assert run([*map(str, arguments), "--no-java"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err


def test_score_prints_json(folder: Path, predictions: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["score", "captions", "--references", folder / "captions.json", "--predictions", predictions]
    data = answer(command, capsys)
    assert (data["task"], data["videos"], data["protocol"]) == ("captions", 2, "pdvc2021")
    assert data["metrics"]["f1"] == pytest.approx(1.0)
    assert data["metrics"]["exact"] == pytest.approx(2 / 3)
    assert data["metrics"]["memory_words"] == {"count": 1.0, "first_back": 0.5}
    assert data["metrics"]["meteor"] == "unavailable"
    assert "per_video" not in data
    assert set(answer([*command, "--per-video"], capsys)["per_video"]) == {"v", "w"}


def test_score_takes_several_references_and_a_protocol(
    folder: Path, predictions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["score", "captions", "--predictions", predictions, "--protocol", "scenic"]
    data = answer([*command, *["--references", folder / "captions.json"] * 2], capsys)
    assert data["protocol"] == "scenic"
    assert data["counts"]["reference_sets"] == 2


def test_score_prints_a_table(folder: Path, predictions: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["score", "captions", "--references", folder / "captions.json", "--predictions", predictions, "--no-java"]
    assert run(list(map(str, command))) == 0
    out, err = capsys.readouterr()
    assert err == ""
    for words in ("tIoU 0.9", "METEOR", "unavailable", "4 of 6 matches", "memory words: first_back", "would reach 50%"):
        assert words in out


def test_score_refuses_bad_files_in_one_line(
    folder: Path, predictions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("{", encoding="utf-8")
    good = folder / "captions.json"
    for told, said, words in (
        (broken, predictions, "is not valid JSON"),
        (good, broken, "is not valid JSON"),
        (tmp_path / "absent.json", predictions, "cannot read"),
        (good, good, "has no 'results'"),
        (predictions, predictions, "expected"),
    ):
        command = ["score", "captions", "--references", told, "--predictions", said]
        assert words in complaint(command, capsys)


def test_eval_runs_a_model_over_the_videos(
    folder: Path, asked: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    data = answer(["eval", "captions", "--dataset", "toybox", "--data", folder, "--model", "teller"], capsys)
    assert asked == [("teller", {}), "v", "w"]
    expected = {"task": "captions", "model": "teller", "dataset": "toybox", "videos": 2, "seed": 7}
    assert {key: data[key] for key in expected} == expected
    metrics = data["metrics"]
    assert [metrics[name] for name in ("f1", "miou", "exact")] == pytest.approx([1.0] * 3)
    assert metrics["memory_words"] == {"count": 1.0, "first_back": 1.0}


def test_eval_takes_the_first_videos_only(
    folder: Path, asked: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    data = answer(["eval", "captions", "--dataset", "toybox", "--data", folder, "--limit", 1], capsys)
    assert asked == [("toybox-sts", {}), "v"]
    assert data["videos"] == data["counts"]["videos"] == 1


def test_eval_writes_a_report_and_goes_on_from_it(
    folder: Path, asked: list[object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.json"
    command = ["eval", "captions", "--dataset", "toybox", "--data", folder, "-o", report]
    answer([*command, "--limit", 1], capsys)
    asked.clear()
    answer(command, capsys)
    assert asked == [("toybox-sts", {}), "w"]
    written = json.loads(report.read_text(encoding="utf-8"))
    assert set(written["per_video"]) == {"v", "w"}
    assert written["model"] == "toybox-sts"


def test_eval_refuses_to_go_on_from_another_model_before_it_renders(
    asked: list[object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "r.predictions.jsonl").write_text('{"model": "other", "fingerprint": "x"}\n', encoding="utf-8")
    line = complaint(["eval", "captions", "--dataset", "toybox", "-o", tmp_path / "r.json"], capsys)
    assert "holds predictions of 'other', not of this model" in line
    assert not (tmp_path / "r.json").exists()


def test_eval_sets_fields_of_the_models_config(
    folder: Path, asked: list[object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {"method": "sts", "config": {"size": 128, "stack": {"carry": True, "state": 16}}}
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    command = ["eval", "captions", "--dataset", "toybox", "--data", folder, "--model", tmp_path / "model"]
    data = answer([*command, "--set", "stack.carry=false"], capsys)
    assert asked[0] == (str(tmp_path / "model"), {"stack": {"carry": False, "state": 16}})
    assert data["settings"] == ["stack.carry=false"]


def test_eval_scores_predictions_that_are_there(
    folder: Path, predictions: Path, asked: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["eval", "captions", "--dataset", "toybox", "--data", folder, "--predictions", predictions]
    assert answer(command, capsys)["metrics"]["exact"] == pytest.approx(2 / 3)
    assert asked == []


def test_eval_refuses_what_it_cannot_run_before_loading_a_model(
    folder: Path, asked: list[object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    toybox = ["eval", "captions", "--dataset", "toybox"]
    assert "unknown data set 'kinetics'" in complaint(["eval", "captions", "--dataset", "kinetics"], capsys)
    assert "has no captions.json" in complaint([*toybox, "--data", tmp_path / "absent"], capsys)
    assert "limit is 0" in complaint([*toybox, "--data", folder, "--limit", 0], capsys)
    assert "unknown protocol" in complaint([*toybox, "--data", folder, "--protocol", "x"], capsys)
    assert "cannot write" in complaint([*toybox, "--data", folder, "-o", folder / "captions.json" / "r"], capsys)
    (folder / "videos" / "w.mp4").unlink()
    assert "w.mp4 is missing" in complaint([*toybox, "--data", folder], capsys)
    assert asked == []


def test_rendered_videos_are_those_of_toybox_make(tmp_path: Path) -> None:
    from longtake.data.toybox.annotate import captions_of
    from longtake.data.toybox.dataset import script_of

    done: list[int] = []
    render_toybox(tmp_path / "fresh", videos=1, seed=5, on_progress=done.append)
    data = open_toybox(tmp_path / "fresh")
    assert (list(data.videos), data.seed, done) == (["test_00000"], 5, [1])
    assert data.videos["test_00000"].stat().st_size > 10_000
    script = script_of("test", 5, 0)
    assert [event.text for event in data.references["test_00000"]] == captions_of(script)["sentences"]
    assert read_references(tmp_path / "fresh" / "captions.json") == data.references
    with pytest.raises(ConfigError, match="limit is 0"):
        render_toybox(tmp_path / "none", videos=0, seed=5)
    assert not (tmp_path / "none").exists()
