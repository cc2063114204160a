"""``longtake eval classify``: marks, intervals and the table by class, on rendered routines and on folders of films."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.contract.models import make_mcvit
from tests.e2e.films import write_film

from longtake import hub
from longtake.cli.app import run
from longtake.data.toybox.dataset import script_of
from longtake.data.toybox.routines import ROUTINES
from longtake.errors import ConfigError, SourceError
from longtake.eval.caption_data import render_toybox
from longtake.eval.classify import Classified, classify_all, labels_for, metrics
from longtake.eval.classify_data import open_labelled
from longtake.types import Classify


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    hub.save(make_mcvit(), folder)  # type: ignore[arg-type]
    return folder


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    for name, shown in {"red": "rrrrrrrr", "green": "gggggggg", "blue": "bbbbbbbb"}.items():
        (tmp_path / "data" / name).mkdir(parents=True)
        for number in range(2):
            write_film(tmp_path / "data" / name / f"{number}.mp4", shown)
    return tmp_path / "data"


def answer(arguments: list[object], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert run([str(one) for one in arguments]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def test_marks_become_accuracy_first_few_and_a_row_for_each_class() -> None:
    said = {"a": ("x", "y", "z"), "b": ("x", "y", "z"), "c": ("y", "x", "z"), "d": ("z", "y", "x")}
    truth = {"a": "x", "b": "y", "c": "y", "d": "x"}
    marks = [Classified(video=video, label=truth[video], said=said[video], probability=0.5) for video in said]
    blind = [Classified(video=video, label=truth[video], said=("x", "y", "z")) for video in said]
    found: Any = metrics(marks, ("x", "y", "z"), blind=blind, top=(1, 2, 5))
    assert (found["accuracy"], found["items"]) == (0.5, 4)
    assert 0 <= found["low"] <= 0.5 <= found["high"] <= 1
    assert {count: row["accuracy"] for count, row in found["top"].items()} == {"1": 0.5, "2": 0.75}
    assert list(found["by_class"]) == ["x", "y"]
    assert found["by_class"]["x"] | {"low": 0, "high": 0} == {
        "accuracy": 0.5,
        "low": 0,
        "high": 0,
        "items": 2,
        "taken_for": "z",
        "taken": 1,
    }
    assert (found["blind"]["accuracy"], found["visual"], found["chance"]) == (0.5, 0.0, 1 / 3)


def test_folders_of_videos_are_a_data_set(folders: Path, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(["eval", "classify", "--dataset", "folders", "--data", folders, "--model", model, "--json"], capsys)
    assert list(found) == ["task", "model", "settings", "dataset", "videos", "seed", "metrics"]
    assert (found["task"], found["dataset"], found["videos"], found["seed"]) == ("classify", "folders", 6, None)
    data, loaded = open_labelled("folders", folders), hub.load(model, device="cpu")
    marks = classify_all(data, loaded, labels=labels_for(loaded, data))
    assert found["metrics"]["accuracy"] == sum(mark.right for mark in marks) / 6
    assert set(found["metrics"]["by_class"]) == {"red", "green", "blue"}


def test_report_holds_every_video_and_the_table_is_for_people(
    folders: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["eval", "classify", "--dataset", "folders", "--data", folders, "--model", model, "--limit", "3"]
    assert run([str(one) for one in [*arguments, "-o", tmp_path / "report.json"]]) == 0
    table = capsys.readouterr().out
    assert "3 videos" in " ".join(table.split())
    assert "without the video" in table
    report = json.loads((tmp_path / "report.json").read_text())
    assert [row["video"] for row in report["labels"]] == ["blue/0", "blue/1", "green/0"]
    assert set(report["labels"][0]) == {"video", "expected", "said", "probability", "right"}


def test_unseen_routines_are_rendered_with_their_labels(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--limit", "2", "--seconds", "40", "--seed", "5", "--set", "fps=0.5", "--json"]
    found = answer(["eval", "classify", "--dataset", "toybox", "--model", model, *options], capsys)
    assert (found["videos"], found["seed"]) == (2, 5)
    metrics: Any = found["metrics"]
    assert metrics["items"] == 2
    assert set(metrics["by_class"]) == {script_of("routines", 5, index).label for index in range(2)}
    assert metrics["chance"] == pytest.approx(1 / 24)


def test_rendered_folder_is_what_toybox_make_writes(tmp_path: Path) -> None:
    render_toybox(tmp_path / "a", videos=1, seed=3, seconds=(40, 40), split="routines")
    data = open_labelled("toybox", tmp_path / "a")
    assert (data.classes, data.seed) == (ROUTINES, 3)
    assert (
        run(
            [
                "toybox",
                "make",
                str(tmp_path / "b"),
                "--videos",
                "1",
                "--seed",
                "3",
                "--split",
                "routines",
                "--seconds",
                "40",
            ]
        )
        == 0
    )
    other = open_labelled("toybox", tmp_path / "b")
    assert (other.labels, other.classes) == (data.labels, data.classes)


def test_classes_that_a_linear_head_does_not_know_are_refused(folders: Path) -> None:
    from dataclasses import replace

    from longtake.methods.mcvit import MCViT
    from longtake.methods.mcvit_config import MCViTConfig

    (folders / "yellow").mkdir()
    data = open_labelled("folders", folders)
    linear = MCViT(replace(MCViTConfig.tiny(), text=None))
    with pytest.raises(ConfigError, match="lack class 'yellow'"):
        labels_for(linear, data)
    words: Any = make_mcvit()
    assert labels_for(words, data) == ("blue", "green", "red", "yellow")
    words.check(Classify(labels=labels_for(words, data)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dataset", "kinetics"], "unknown data set 'kinetics', expected toybox or folders"),
        (["--dataset", "folders"], "--data is missing"),
        (["--dataset", "folders", "--data", "."], "holds 0 folders with 0 files"),
        (["--dataset", "toybox", "--data", "."], "has no labels.json"),
        (["--dataset", "toybox", "--model", "toybox-sts"], "gives no labels"),
    ],
)
def test_what_cannot_be_run_is_told_in_one_line(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["eval", "classify", *arguments]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err


@pytest.mark.parametrize("content", ["[]", '{"classes": ["a"], "videos": {"v": "b"}}', '{"videos": {}}'])
def test_labels_that_are_damaged_are_told(content: str, tmp_path: Path) -> None:
    (tmp_path / "labels.json").write_text(content)
    with pytest.raises(SourceError, match="make the data anew"):
        open_labelled("toybox", tmp_path)


def test_progress_counts_videos(folders: Path, model: Path) -> None:
    told: list[int] = []
    show: Callable[[int], None] = told.append
    classify_all(open_labelled("folders", folders, limit=2), hub.load(model, device="cpu"), on_progress=show)
    assert told == [0, 1, 2]
