"""A data set on disk: the layout, the same bytes for the same seed, nothing half made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from longtake.cli.toybox import app
from longtake.data.toybox import TOYBOX_VERSION, make_script
from longtake.data.toybox.dataset import make_dataset, script_of
from longtake.data.toybox.routines import ROUTINES
from longtake.errors import ConfigError


def read(folder: Path, name: str) -> dict[str, object]:
    return json.loads((folder / f"{name}.json").read_text())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("toybox") / "data"
    make_dataset(folder, 2, 7, 20.0)
    return folder


def test_dataset_has_all_files(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == [
        "captions.json",
        "memory.json",
        "questions.json",
        "recall.json",
        "videos",
        "world.json",
    ]
    names = [f"test_0000{index}" for index in range(2)]
    assert sorted(path.name for path in (folder / "videos").iterdir()) == [f"{name}.mp4" for name in names]
    for file in ("captions", "memory", "questions"):
        assert list(read(folder, file)) == names
    world = read(folder, "world")
    assert (world["toybox_version"], world["split"], world["seed"], world["seconds"]) == (
        TOYBOX_VERSION,
        "test",
        7,
        20.0,
    )


def test_captions_are_in_activitynet_layout_and_memory_marks_point_into_them(folder: Path) -> None:
    captions, memory = read(folder, "captions"), read(folder, "memory")
    for index, name in enumerate(captions):
        script = script_of("test", 7, index, 20.0)
        entry = captions[name]
        assert entry["duration"] == 20.0
        assert entry["timestamps"] == [[event.start_seconds, event.end_seconds] for event in script.events]
        assert entry["sentences"] == [event.sentence for event in script.events]
        for number, marks in memory[name].items():
            beside = entry["memory"][int(number)]
            for mark, short in zip(marks, beside, strict=True):
                start, end = mark["span"]
                assert entry["sentences"][int(number)][start:end] == mark["word"]
                assert {key: mark[key] for key in short} == short
        assert sum(map(bool, entry["memory"])) == len(memory[name])


def test_questions_are_complete_on_disk(folder: Path) -> None:
    for questions in read(folder, "questions").values():
        assert len(questions) >= 30
        for question in questions:
            assert set(question) == {"type", "question", "options", "answer", "answer_index", "span"}
            if question["options"]:
                assert question["options"][question["answer_index"]] == question["answer"]
            else:
                assert question["answer_index"] is None


def test_dataset_is_the_same_again(folder: Path, tmp_path: Path) -> None:
    make_dataset(tmp_path / "again", 2, 7, 20.0)
    for path in sorted(folder.rglob("*.*")):
        assert (tmp_path / "again" / path.relative_to(folder)).read_bytes() == path.read_bytes(), path.name


def test_routines_come_with_labels(tmp_path: Path) -> None:
    make_dataset(tmp_path / "data", 1, 0, 40.0, "routines")
    labels = read(tmp_path / "data", "labels")
    assert labels["classes"] == list(ROUTINES)
    assert labels["videos"] == {"routines_00000": script_of("routines", 0, 0, 40.0).label}


def test_empty_folder_is_filled_and_full_one_refused(tmp_path: Path) -> None:
    make_dataset(tmp_path, 1, 0, 10.0)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ConfigError, match="not empty"):
        make_dataset(tmp_path, 1, 0, 10.0)
    assert sorted(tmp_path.rglob("*")) == before
    with pytest.raises(ConfigError, match="is a file"):
        make_dataset(tmp_path / "world.json", 1, 0, 10.0)


@pytest.mark.parametrize(
    ("videos", "seconds", "split", "message"),
    [
        (0, None, "test", "at least 1"),
        (1, 2.0, "test", "at least 10 s"),
        (1, 20.0, "routines", "at least 40 s"),
        (1, None, "../up", "letters, digits"),
        (1, None, "", "letters, digits"),
    ],
)
def test_bad_values_are_refused_before_anything_is_made(
    tmp_path: Path, videos: int, seconds: float | None, split: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        make_dataset(tmp_path / "data", videos, 0, seconds, split)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_when_making_is_interrupted(tmp_path: Path) -> None:
    def stop(done: float) -> None:
        if done > 1.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_dataset(tmp_path / "data", 2, 0, 10.0, on_progress=stop)
    assert list(tmp_path.iterdir()) == []


def test_splits_and_seeds_share_no_script() -> None:
    scripts = [script_of(split, seed, index) for split in ("train", "test") for seed in (0, 1) for index in range(10)]
    assert len({script.events for script in scripts}) == len(scripts)
    assert scripts[0] == make_script(scripts[0].seed, split="train")


def test_command_makes_a_data_set(tmp_path: Path) -> None:
    arguments = ["make", str(tmp_path / "data"), "--videos", "1", "--seed", "5", "--seconds", "10", "--split", "val"]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    assert result.stdout == ""
    assert "1 videos of split val (seed 5)" in result.stderr
    assert (tmp_path / "data" / "videos" / "val_00000.mp4").is_file()
