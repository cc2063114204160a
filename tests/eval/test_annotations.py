"""What is read, and what is refused with one clear line."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from longtake.errors import ConfigError, LongtakeError, SourceError
from longtake.eval import read_predictions, read_references
from longtake.eval.annotations import MemoryMark, TimedSentence, predictions_from, references_from

EVENT = {"sentence": "a car", "timestamp": [1, 2.5]}
TOLD = {"duration": 9, "timestamps": [[1, 2.5]], "sentences": ["a car"]}
SAID = TimedSentence(start_seconds=1.0, end_seconds=2.5, text="a car")


def write(folder: Path, text: str, name: str = "file.json") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_references_are_read_in_file_order(tmp_path: Path) -> None:
    path = write(tmp_path, json.dumps({"b": TOLD, "a": TOLD}))
    assert list(read_references(path).items()) == [("b", (SAID,)), ("a", (SAID,))]


def test_memory_marks_are_read_beside_sentences() -> None:
    marks = [[{"kind": "count", "word": "third", "needs_memory": False}, {"kind": "place", "word": "back"}]]
    (event,) = references_from({"v": {**TOLD, "memory": marks}})["v"]
    assert event.memory == (
        MemoryMark(kind="count", word="third", needed=False),
        MemoryMark(kind="place", word="back", needed=True),
    )


@pytest.mark.parametrize("data", [{"version": "1", "results": {"v": [EVENT]}}, {"v": [EVENT]}])
def test_predictions_are_read_with_or_without_their_envelope(data: dict[str, object]) -> None:
    assert predictions_from(data) == {"v": (SAID,)}


def test_predictions_may_be_events_of_a_model() -> None:
    event = SimpleNamespace(start_seconds=1.0, end_seconds=2.5, text="a car", score=0.5)
    assert predictions_from({"v": [event], "w": []}) == {"v": (SAID,), "w": ()}


def test_predictions_are_read_from_json_lines(tmp_path: Path) -> None:
    lines = [
        {"model": "m", "fingerprint": "f"},
        {"video": "v", "start": 1, "end": 2.5, "sentence": "a car", "score": 0.9},
        {"video": "w", "events": [EVENT], "reference": "0"},
        {"video": "x", "events": []},
    ]
    text = "\n".join(map(json.dumps, lines)) + "\n\n"
    assert read_predictions(write(tmp_path, text, "p.jsonl")) == {"v": (SAID,), "w": (SAID,), "x": ()}


def test_inverted_segments_are_kept_for_the_protocol_to_judge() -> None:
    (event,) = predictions_from({"v": [{"sentence": "a", "timestamp": [5, -1]}]})["v"]
    assert (event.start_seconds, event.end_seconds) == (5.0, -1.0)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "expected references"),
        ({}, "holds no videos"),
        ({"v": []}, 'expected "timestamps" and "sentences"'),
        ({"v": {"sentences": []}}, 'has no "timestamps"'),
        ({"v": {"timestamps": "x", "sentences": []}}, "\"timestamps\" is 'x'"),
        ({"v": {"timestamps": [[0, 1]], "sentences": []}}, "1 timestamps, 0 sentences"),
        ({"v": {"timestamps": [], "sentences": []}}, "has no events"),
        ({"v": {"timestamps": [[0, 1, 2]], "sentences": ["a"]}}, "video 'v', event 0: its time is"),
        ({"v": {"timestamps": [["0", "1"]], "sentences": ["a"]}}, "its time holds '0'"),
        ({"v": {"timestamps": [[True, 1]], "sentences": ["a"]}}, "its time holds True"),
        ({"v": {"timestamps": [[float("nan"), 1]], "sentences": ["a"]}}, "its time holds nan"),
        ({"v": {"timestamps": [[0, float("inf")]], "sentences": ["a"]}}, "its time holds inf"),
        ({"v": {"timestamps": [[0, 1]], "sentences": [None]}}, "its sentence is None"),
        ({"v": {**TOLD, "memory": [{}]}}, "expected memory marks"),
        ({"v": {**TOLD, "memory": [[{"kind": "count"}]]}}, "expected memory marks"),
        ({"v": {**TOLD, "memory": []}}, "0 memory marks"),
    ],
)
def test_bad_references_are_refused_in_one_line(data: object, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        references_from(data, origin="R.json")
    assert message in str(caught.value)
    assert str(caught.value).startswith("R.json")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([EVENT], "expected predictions"),
        ({"results": []}, '"results": got []'),
        ({"version": "1"}, "has no 'results'"),
        ({"v": TOLD}, "has no 'results'"),
        ({"results": {"v": {"sentence": "a"}}}, "expected a list of events"),
        ({"results": {"v": "abc"}}, "expected a list of events"),
        ({"results": {"v": [{"sentence": "a"}]}}, 'has no "timestamp"'),
        ({"results": {"v": [{"timestamp": [0, 1]}]}}, 'has no "sentence"'),
        ({"results": {"v": [{"sentence": "a", "timestamp": ["0", 1]}]}}, "its time holds '0'"),
        ({"results": {"v": [{"sentence": 3, "timestamp": [0, 1]}]}}, "its sentence is 3"),
        ({"results": {"v": [7]}}, "got 7"),
    ],
)
def test_bad_predictions_are_refused_in_one_line(data: object, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        predictions_from(data, origin="P.json")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", '{"v": ', "[" * 100_000, "\ufffe{"])
def test_text_that_is_not_json_is_refused_in_one_line(text: str, tmp_path: Path) -> None:
    for read in (read_references, read_predictions):
        with pytest.raises(SourceError) as caught:
            read(write(tmp_path, text))
        assert "is not valid JSON" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    for name in ("absent.json", "binary.json", "absent.jsonl"):
        with pytest.raises(SourceError, match=f"cannot read .*{name}"):
            read_predictions(tmp_path / name)


@pytest.mark.parametrize(
    ("line", "message"),
    [('{"video": "v"}', 'line 1: has no "start"'), ("nonsense", "line 1: is not valid JSON"), ("3", "line 1: got 3")],
)
def test_bad_json_lines_are_named_by_number(line: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(LongtakeError) as caught:
        read_predictions(write(tmp_path, line, "p.jsonl"))
    assert message in str(caught.value)
