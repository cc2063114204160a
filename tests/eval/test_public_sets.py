"""``longtake eval`` on public data sets, from the command line, with films in place of their videos."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contract.models import make_mcvit
from tests.data.datasets.shared_sets import copied
from tests.e2e.films import write_film
from tests.eval.watcher import Watcher

from longtake import hub, session
from longtake.cli import seeing
from longtake.cli.app import run
from longtake.data.datasets import DATASETS
from longtake.errors import ConfigError, SourceError
from longtake.eval.caption_data import open_public
from longtake.eval.classify_data import open_public_labels
from longtake.eval.question_data import open_questions
from longtake.types import Event


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_film(tmp_path_factory.mktemp("films") / "film.mp4", "rgbx" * 5)


def with_videos(name: str, folder: Path, film: Path, *, split: str | None = None, without: int = 0) -> Path:
    """Our own records with a film for each video but the last ``without``, at the last place it is looked for."""
    copied(name, folder)
    videos = DATASETS[name].open(folder, split).videos
    for video in videos[: len(videos) - without]:
        path = folder / "videos" / video.places[-1].path
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(film, path if path.suffix in (".mp4", ".webm") else path.with_name(f"{path.name}.mp4"))
    return folder


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Watcher:
    watcher = Watcher(lambda question, times: "C" if "\nC." in question else "Yes, 2 times")
    monkeypatch.setattr(hub, "load", lambda name, **options: watcher)
    return watcher


def answer(arguments: list[object], capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], str]:
    assert run([str(one) for one in arguments]) == 0, capsys.readouterr().err
    out, err = capsys.readouterr()
    return json.loads(out), err


def complaint(arguments: list[object], capsys: pytest.CaptureFixture[str]) -> str:
    assert run([str(one) for one in arguments]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err


def test_nextqa_runs_on_the_videos_that_are_there(
    tmp_path: Path, film: Path, model: Watcher, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = with_videos("next-qa", tmp_path / "data", film, without=1)
    report = tmp_path / "report.json"
    command: list[object] = ["eval", "ask", "--dataset", "next-qa", "--data", folder, "--json"]
    found, err = answer([*command, "-o", report], capsys)
    (*there, absent) = [video.name for video in DATASETS["next-qa"].open(folder).videos]
    assert f"longtake: 1 of {len(there) + 1} videos are missing: {absent}\n" in err
    assert (found["dataset"], found["split"], found["videos"], found["missing_videos"]) == ("next-qa", "val", 3, 1)
    questions = [one for one in DATASETS["next-qa"].open(folder).questions if one.video in there]  # type: ignore[union-attr]
    right = sum(question.gold == 2 for question in questions)
    assert found["metrics"]["score"] == found["metrics"]["accuracy"] == pytest.approx(right / len(questions))
    assert set(found["metrics"]["by_group"]) == {question.tags["group"] for question in questions}
    assert found["metrics"]["blind"]["items"] == len(questions)
    assert "last_seconds" not in found["metrics"]
    written = json.loads(report.read_text())
    assert [row["key"] for row in written["answers"]] == [question.key for question in questions]
    assert {row["frames"] for row in written["answers"]} == {20}
    assert written["missing"] == [absent]
    assert answer([*command, "--limit", 1], capsys)[0]["videos"] == 1


def test_table_shows_means_types_and_blind(
    tmp_path: Path, film: Path, model: Watcher, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = with_videos("mlvu", tmp_path / "data", film)
    assert run(["eval", "ask", "--dataset", "MLVU", "--data", str(folder)]) == 0
    out, err = capsys.readouterr()
    for words in ("mean over types", "official reading", "type findNeedle", "the same model, no video"):
        assert words in out
    assert "2 questions are not run" in err


def test_ovo_bench_is_causal_and_has_the_last_seconds_beside(
    tmp_path: Path, film: Path, model: Watcher, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = with_videos("ovo-bench", tmp_path / "data", film)
    report = tmp_path / "report.json"
    command: list[object] = [
        "eval",
        "ask",
        "--dataset",
        "ovo-bench",
        "--data",
        folder,
        "--last",
        2,
        "--json",
        "-o",
        report,
    ]
    found, _ = answer(command, capsys)
    rows = json.loads(report.read_text())["answers"]
    assert len(rows) == found["metrics"]["items"] == 20
    assert all(row["last_frame"] <= row["at"] for row in rows)
    assert all(row["frames"] == min(20, int(row["at"] * 4) + 1) for row in rows)
    assert found["metrics"]["mean_over"] == ["type", "group"]
    by_task: dict[str, list[bool]] = {}
    for row in rows:
        by_task.setdefault(row["type"], []).append(row["right"])
    groups: dict[str, list[float]] = {}
    for task, right in by_task.items():
        group = next(row["group"] for row in rows if row["type"] == task)
        groups.setdefault(group, []).append(sum(right) / len(right))
    means = [sum(tasks) / len(tasks) for tasks in groups.values()]
    assert len(means) == 3
    assert found["metrics"]["score"] == pytest.approx(sum(means) / 3)
    assert found["metrics"]["last_seconds"]["items"] == 20
    assert 0 <= found["metrics"]["official_rule"] <= 1


def test_egoschema_plays_the_part_of_the_source_that_the_clip_was_cut_from(
    tmp_path: Path, film: Path, model: Watcher, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = with_videos("egoschema", tmp_path / "data", film)
    for path in [*folder.rglob("*.json")]:
        if path.name == "uid_to_ego4d.json":
            cuts = json.loads(path.read_text())
            cuts = {uid: cut | {"starting_sec": 1, "ending_sec": 3} for uid, cut in cuts.items()}
            path.write_text(json.dumps(cuts))
    answer(["eval", "ask", "--dataset", "egoschema", "--data", folder, "--limit", 1, "--json"], capsys)
    assert model.asked[0][1].times == tuple(1 + tick / 4 for tick in range(9))


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["ask", "--dataset", "next-qa"], "--data is missing; expected the folder of NExT-QA, had at github"),
        (["ask", "--dataset", "nextqa2"], "unknown data set 'nextqa2', expected toybox or egoschema"),
        (["ask", "--dataset", "youcook2"], "YouCook2 is for 'longtake eval captions'"),
        (["ask", "--dataset", "next-qa", "--data", "DATA"], "4 of 4 videos are missing: "),
        (["ask", "--dataset", "next-qa", "--data", "DATA", "--split", "dev"], "has no split 'dev'"),
        (["ask", "--dataset", "next-qa", "--data", "DATA", "--limit", "0"], "limit is 0, expected at least 1"),
        (["ask", "--dataset", "next-qa", "--data", "ABSENT"], "is no folder; expected one with the files of NExT-QA"),
        (["classify", "--dataset", "mlvu", "--data", "DATA"], "MLVU is for 'longtake eval ask'"),
        (["captions", "--dataset", "vitt"], "--data is missing; expected the folder of ViTT"),
    ],
)
def test_what_cannot_run_is_told_before_a_model_is_loaded(
    arguments: list[str], line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(name: str, **options: object) -> object:
        raise AssertionError("no model is needed to know that")

    for module in (hub, seeing):
        monkeypatch.setattr(module, "load", load)
    folder = copied("next-qa", tmp_path / "data")
    places = {"DATA": str(folder), "ABSENT": str(tmp_path / "absent")}
    assert line in complaint(["eval", *(places.get(one, one) for one in arguments)], capsys)


def test_hidden_answers_cannot_be_marked(tmp_path: Path) -> None:
    folder = copied("perception-test", tmp_path / "data")
    with pytest.raises(ConfigError, match=r"answers of Perception Test's split 'test' are not public.*--split valid"):
        open_questions(DATASETS["perception-test"], folder, split="test")


def test_options_of_public_sets_are_refused_for_toybox(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["eval", "ask", "--dataset", "toybox", "--split", "val"]) == 2
    assert "--split is for the data sets of docs/datasets.md" in capsys.readouterr().err


def test_captions_have_every_annotator(
    tmp_path: Path, film: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = with_videos("activitynet", tmp_path / "data", film, without=1)

    def caption(path: Path, model: object) -> Iterator[Event]:
        yield Event(start_seconds=0.0, end_seconds=5.7, text="Three water bottles stand in a row.")

    class Teller(Watcher):
        pass

    from longtake.types import Caption

    monkeypatch.setattr(
        hub, "load", lambda name, **options: Teller(lambda question, times: "", supports=frozenset({Caption}))
    )
    monkeypatch.setattr(session, "caption", caption)
    command: list[object] = ["eval", "captions", "--dataset", "activitynet", "--data", folder, "--no-java", "--json"]
    found, err = answer(command, capsys)
    assert "1 of 3 videos are missing: v_" in err
    assert (found["videos"], found["counts"]["reference_sets"]) == (2, 2)
    assert found["notes"][0].startswith("1 of 3 videos are missing: v_")
    assert found["metrics"]["f1"] > 0


def test_vitt_tags_end_with_the_file(tmp_path: Path, film: Path) -> None:
    folder = with_videos("vitt", tmp_path / "data", film, split="all")
    lines = [{"id": "ow03", "annotations": [{"timestamp": 1000, "tag": "a"}, {"timestamp": 2500, "tag": "b"}]}]
    lines += [{"id": "ow03", "annotations": [{"timestamp": 4000, "tag": "c"}, {"timestamp": 9000, "tag": "late"}]}]
    (folder / "ViTT-annotations.json").write_text("\n".join(map(json.dumps, lines)))
    (folder / "test_id.txt").write_text("ow03\n")
    data = open_public(DATASETS["vitt"], folder)
    told = [(event.start_seconds, event.end_seconds, event.text) for event in data.references["ow03"]]
    assert told == [(1.0, 2.5, "a"), (2.5, pytest.approx(5.0, abs=0.13), "b")]
    assert data.more_references == (), "its only tag would end after the file does"


def test_captions_that_are_withheld_cannot_be_scored(tmp_path: Path) -> None:
    for name in ("activitynet", "youcook2"):
        folder = copied(name, tmp_path / name)
        with pytest.raises(ConfigError, match="split 'test' are not public, so nothing can be scored"):
            open_public(DATASETS[name], folder, split="test")


def test_diving48_is_classified_with_its_48_dives(tmp_path: Path, film: Path) -> None:
    folder = with_videos("diving48", tmp_path / "data", film, split="train", without=1)
    data = open_public_labels(DATASETS["diving48"], folder, split="train")
    assert (len(data.classes), list(data.labels.values())) == (48, [data.classes[0]])
    assert data.notes[0].startswith("1 of 2 videos are missing: ")
    model: Any = make_mcvit()
    from longtake.eval.classify import classify_all

    (mark,) = classify_all(data, model, labels=data.classes)
    assert len(mark.said) == 48


def test_files_that_are_no_videos_are_left_out_and_named(tmp_path: Path, film: Path) -> None:
    folder = with_videos("diving48", tmp_path / "data", film, split="train")
    first, second = sorted((folder / "videos").iterdir())
    first.write_bytes(b"no film")
    data = open_public_labels(DATASETS["diving48"], folder, split="train", limit=1)
    assert [path.name for path in data.videos.values()] == [second.name], "the limit counts those that can be run"
    assert data.notes[0].startswith("1 videos cannot be read and are left out; the first: ")
    assert first.name in data.notes[0]
    second.write_bytes(b"no film")
    with pytest.raises(SourceError, match="none of 2 videos can be read; the first: "):
        open_public_labels(DATASETS["diving48"], folder, split="train")
