"""Predictions of a whole data set, kept so that a killed run goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from longtake.errors import ConfigError, SourceError
from longtake.eval import read_predictions
from longtake.eval.annotations import TimedSentence
from longtake.eval.caption_data import CaptionData
from longtake.eval.predict import PredictionFile, predict
from longtake.types import Event

VIDEOS = ("a", "b", "c")


class Model:
    """Says one event per video and remembers which videos it saw."""

    def __init__(self, *, dies_at: str = "") -> None:
        self.seen: list[str] = []
        self.dies_at = dies_at

    def caption(self, path: Path) -> Iterator[Event]:
        self.seen.append(path.stem)
        yield Event(start_seconds=0.1, end_seconds=2.0, text=f"toy {path.stem} jumps")
        if path.stem == self.dies_at:
            raise KeyboardInterrupt


@pytest.fixture
def data() -> CaptionData:
    told = TimedSentence(start_seconds=0.0, end_seconds=2.0, text="toy a jumps")
    return CaptionData(
        name="toybox",
        videos={video: Path(f"{video}.mp4") for video in VIDEOS},
        references=dict.fromkeys(VIDEOS, (told,)),
        digests={video: f"digest of {video}" for video in VIDEOS},
        seed=3,
    )


def kept(folder: Path, fingerprint: str = "f") -> PredictionFile:
    return PredictionFile(folder / "out" / "r.predictions.jsonl", model="m", fingerprint=fingerprint)


def test_every_video_is_captioned_in_order(data: CaptionData) -> None:
    model, done = Model(), list[int]()
    stories = predict(data, model.caption, on_progress=done.append)
    assert model.seen == list(stories) == list(VIDEOS)
    assert stories["b"] == (TimedSentence(start_seconds=0.1, end_seconds=2.0, text="toy b jumps"),)
    assert done == [0, 1, 2, 3]


def test_a_killed_run_goes_on_with_the_video_it_was_in(data: CaptionData, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        predict(data, Model(dies_at="b").caption, kept=kept(tmp_path))
    model = Model()
    stories = predict(data, model.caption, kept=kept(tmp_path))
    assert model.seen == ["b", "c"]
    assert stories == predict(data, Model().caption)
    assert read_predictions(kept(tmp_path).path) == stories


@pytest.mark.parametrize("lost", [1, 5, 40])
def test_a_line_cut_off_by_a_kill_is_said_again(lost: int, data: CaptionData, tmp_path: Path) -> None:
    whole = predict(data, Model().caption, kept=kept(tmp_path))
    path = kept(tmp_path).path
    path.write_bytes(path.read_bytes()[:-lost])
    model = Model()
    assert predict(data, model.caption, kept=kept(tmp_path)) == whole
    assert model.seen == ["c"]
    assert read_predictions(path) == whole


def test_a_cut_off_head_begins_anew(data: CaptionData, tmp_path: Path) -> None:
    kept(tmp_path).path.parent.mkdir()
    kept(tmp_path).path.write_text('{"mod', encoding="utf-8")
    predict(data, Model().caption, kept=kept(tmp_path))
    assert list(read_predictions(kept(tmp_path).path)) == list(VIDEOS)


def test_predictions_of_another_model_are_refused(data: CaptionData, tmp_path: Path) -> None:
    predict(data, Model().caption, kept=kept(tmp_path))
    with pytest.raises(ConfigError, match="holds predictions of 'm', not of this model"):
        predict(data, Model().caption, kept=kept(tmp_path, "another"))


def test_predictions_of_another_video_of_that_name_are_refused(data: CaptionData, tmp_path: Path) -> None:
    kept(tmp_path).add("b", "another digest", ())
    with pytest.raises(ConfigError, match="another video called 'b'"):
        predict(data, Model().caption, kept=kept(tmp_path))


def test_predictions_beyond_the_data_are_left_alone(data: CaptionData, tmp_path: Path) -> None:
    kept(tmp_path).add("z", "digest of z", ())
    assert list(predict(data, Model().caption, kept=kept(tmp_path))) == list(VIDEOS)


@pytest.mark.parametrize("damage", ["nonsense\n", "3\n"])
def test_damaged_predictions_are_refused(damage: str, data: CaptionData, tmp_path: Path) -> None:
    predict(data, Model().caption, kept=kept(tmp_path))
    path = kept(tmp_path).path
    path.write_text(path.read_text(encoding="utf-8") + damage, encoding="utf-8")
    with pytest.raises(SourceError, match="is damaged"):
        predict(data, Model().caption, kept=kept(tmp_path))
