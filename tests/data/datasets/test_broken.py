"""Annotations that are damaged, each in its own way: refused in one line that says what, where and what to do."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.data.datasets.shared_sets import change, copied

from longtake.data.datasets import DATASETS
from longtake.errors import LongtakeError

Damage = Callable[[Path], None]
NEXT_QA = "dataset/nextqa/val.csv"
YOUCOOK = "annotations/youcookii_annotations_trainval.json"
OVO = "data/ovo_bench_new.json"


def put(path: str, *keys: str | int, value: Any) -> Damage:
    """Set a value deep in a JSON file."""

    def edit(data: Any) -> None:
        for key in keys[:-1]:
            data = data[key] if key != "*" else next(iter(data.values()))
        data[keys[-1]] = value

    return lambda folder: change(folder / path, edit)


def drop(path: str, *keys: str | int) -> Damage:
    """Leave a key out."""

    def edit(data: Any) -> None:
        for key in keys[:-1]:
            data = data[key] if key != "*" else next(iter(data.values()))
        del data[keys[-1]]

    return lambda folder: change(folder / path, edit)


def whole(path: str, value: Any) -> Damage:
    return lambda folder: change(folder / path, lambda data: value)


def twice(path: str) -> Damage:
    """The first entry of a list again at its end."""
    return lambda folder: change(folder / path, lambda data: [*data, data[0]])


def text(path: str, pattern: str, new: str) -> Damage:
    """Replace the first match in a file."""

    def damage(folder: Path) -> None:
        found = (folder / path).read_text(encoding="utf-8")
        changed = re.sub(pattern, new, found, count=1, flags=re.DOTALL)
        assert changed != found
        (folder / path).write_text(changed, encoding="utf-8")

    return damage


def raw(path: str, content: bytes) -> Damage:
    return lambda folder: (folder / path).write_bytes(content) and None


def gone(*paths: str) -> Damage:
    def damage(folder: Path) -> None:
        for path in paths:
            (folder / path).unlink()

    return damage


BROKEN: list[tuple[str, str, Damage, str]] = [
    # files
    (
        "activitynet",
        "val",
        gone("val_2.json"),
        r"has no val_2\.json or .*ActivityNet Captions; had at cs\.stanford\.edu",
    ),
    ("activitynet", "val", raw("val_1.json", b""), r"val_1\.json: is not valid JSON .*; download it anew from"),
    ("activitynet", "val", raw("val_1.json", b"\xff\xfe{}"), r"val_1\.json is not UTF-8 text"),
    ("activitynet", "val", whole("val_1.json", []), r"val_1\.json: got \[\], expected an object"),
    ("activitynet", "val", whole("val_1.json", {}), r"val_1\.json: got \{\}, expected an object"),
    ("activitynet", "val", raw("val_1.json", b'{"v_a": {}, "v_a": {}}'), r"key 'v_a' stands twice"),
    ("activitynet", "val", raw("val_1.json", b"version https://git-lfs.github.com/spec/v1\n"), "pointer of Git LFS"),
    ("activitynet", "test", gone("test_ids.json"), r"has no test_ids\.json"),
    ("activitynet", "test", whole("test_ids.json", {"a": 1}), r"test_ids\.json: got .*expected a list of ids"),
    # captions
    ("activitynet", "val", drop("val_1.json", "*", "timestamps"), r"'v_[^']+': has no 'timestamps', expected a list"),
    ("activitynet", "val", put("val_1.json", "*", "sentences", value=["one"]), r"15 timestamps and 1 sentences"),
    (
        "activitynet",
        "val",
        put("val_1.json", "*", "duration", value="39"),
        r"duration is '39', expected a number above",
    ),
    ("activitynet", "val", put("val_1.json", "*", "timestamps", 1, value=[3, 1]), r"event 1: its time is \[3, 1\]"),
    ("activitynet", "val", put("val_1.json", "*", "timestamps", 0, value=[1]), r"event 0: its time is \[1\], expected"),
    ("activitynet", "val", put("val_1.json", "*", "timestamps", 0, value=[0, float("nan")]), r"its time is \[0, nan\]"),
    ("activitynet", "val", put("val_1.json", "*", "timestamps", 0, value=[-1, 2]), r"its time is \[-1, 2\]"),
    ("activitynet", "val", put("val_1.json", "*", "sentences", 0, value="  "), r"event 0: its sentence is ' '"),
    ("youcook2", "val", whole(YOUCOOK, {"data": {}}), r"has no 'database', expected .*; it has 'data'"),
    (
        "youcook2",
        "val",
        put(YOUCOOK, "database", "*", "subset", value="dev"),
        r"subset is 'dev', expected one of train",
    ),
    ("youcook2", "test", gone("annotations/youcookii_annotations_test_segments_only.json"), r"has no annotations/you"),
    (
        "youcook2",
        "train",
        put(YOUCOOK, "database", "*", "annotations", 0, "segment", value=[2, 0]),
        r"segment is \[2, 0",
    ),
    ("youcook2", "train", drop(YOUCOOK, "database", "*", "annotations", 1, "sentence"), r"annotations 1: has no 'sent"),
    (
        "youcook2",
        "train",
        put(YOUCOOK, "database", "*", "annotations", value=[]),
        r"annotations is \[\], expected a list",
    ),
    ("vitt", "test", gone("test_id.txt"), r"has no test_id\.txt, .*ViTT; had at storage\.googleapis\.com"),
    ("vitt", "test", raw("test_id.txt", b"\n"), r"test_id\.txt is empty, expected one id a line"),
    ("vitt", "test", raw("test_id.txt", b"zzzz\n"), r"tags for none of the 1 ids of test_id\.txt, such as 'zzzz'"),
    (
        "vitt",
        "test",
        text("ViTT-annotations.json", r'"timestamp": 0', '"timestamp": "0"'),
        r"line 1, annotations 0: time",
    ),
    ("vitt", "test", text("ViTT-annotations.json", r"\}\n", "\n"), r"line 1: is not valid JSON"),
    ("vitt", "test", raw("ViTT-annotations.json", b""), r"is empty, expected one JSON object a line"),
    ("vitt", "test", text("ViTT-annotations.json", r'"id"', '"vid"'), r"line 1: has no 'id', expected text"),
    # labels
    ("diving48", "test", gone("Diving48_vocab.json"), r"has no Diving48_vocab\.json, .*svcl\.ucsd\.edu"),
    ("diving48", "test", put("Diving48_V2_test.json", 0, "label", value=48), r"label is 48, expected .* from 0 to 47"),
    ("diving48", "test", put("Diving48_V2_test.json", 0, "label", value=True), r"label is True, expected"),
    ("diving48", "test", drop("Diving48_V2_test.json", 0, "vid_name"), r"entry 0: has no 'vid_name', expected an id"),
    ("diving48", "train", twice("Diving48_V2_train.json"), r"vid_name 'sam2__01_dog' stands twice"),
    ("diving48", "test", drop("Diving48_vocab.json", 3), r"got 47 entries, expected a list of 48"),
    ("diving48", "test", put("Diving48_vocab.json", 3, value="Back"), r"entry 3: got 'Back', expected \[take-off"),
    # questions
    ("egoschema", "subset", gone("subset_answers.json"), r"has no subset_answers\.json, .*github\.com/egoschema"),
    ("egoschema", "subset", drop("questions.json", 0, "question"), r"has no 'question', .*get the newest"),
    ("egoschema", "subset", drop("questions.json", 0, "option 4"), r"entry 0: has no 'option 4'"),
    (
        "egoschema",
        "subset",
        whole("subset_answers.json", {}),
        "answers none",
    ),
    ("egoschema", "subset", twice("questions.json"), r"q_uid '[0-9a-f-]+' stands twice"),
    ("egoschema", "subset", whole("questions.json", {"a": 1}), r"got \{'a': 1\}, expected a list of questions"),
    ("next-qa", "val", gone(NEXT_QA), r"has no dataset/nextqa/val\.csv or .*had at github\.com/doc-doc/NExT-QA"),
    ("next-qa", "val", gone("dataset/nextqa/map_vid_vidorID.json"), r"has no dataset/nextqa/map_vid_vidorID\.json"),
    ("next-qa", "val", text(NEXT_QA, ",qid,", ",id,"), r"has no column 'qid', expected video,question"),
    ("next-qa", "val", text(NEXT_QA, ",green", ""), r"val\.csv, line 2: has 12 fields, expected 13"),
    (
        "next-qa",
        "val",
        text(NEXT_QA, "first car,2,", "first car,5,"),
        r"line 2: answer is '5', expected .* from 0 to 4",
    ),
    (
        "next-qa",
        "val",
        text(NEXT_QA, "first car,2,", "first car,C,"),
        r"line 2: answer is 'C', expected a whole number",
    ),
    ("next-qa", "val", text(NEXT_QA, ",DO,", ",XX,"), r"type is 'XX', expected one of CW, CH"),
    ("next-qa", "val", text(NEXT_QA, ",green", ","), r"line 2: a4 is '', expected text"),
    ("next-qa", "val", text(NEXT_QA, r"\n.*", "\n"), r"has no rows under its head"),
    ("next-qa", "val", raw(NEXT_QA, b""), r"has no column 'video'"),
    ("next-qa", "val", text(NEXT_QA, r"\n(.*?)\n", r"\n\1\n\1\n"), r"video_qid '.*_0' stands twice"),
    (
        "perception-test",
        "valid",
        put("mc_question_valid.json", "*", "mc_question", 0, "options", value=["a", "b"]),
        r"options is \['a', 'b'\], expected 3 texts",
    ),
    (
        "perception-test",
        "valid",
        put("mc_question_valid.json", "*", "mc_question", 0, "answer_id", value=3),
        r"answer_id is 3, expected a whole number from 0 to 2",
    ),
    (
        "perception-test",
        "valid",
        drop("mc_question_valid.json", "*", "mc_question", 0, "answer_id"),
        r"mc_question 0: has no 'answer_id'",
    ),
    ("perception-test", "valid", put("cut_frame_mapping_valid.json", "video_12", value=0), r"video_12 is 0, expected"),
    (
        "perception-test",
        "valid",
        put("mc_question_valid.json", "video_12", "metadata", "frame_rate", value=0),
        r"frame_rate is 0, expected a number above 0",
    ),
    ("perception-test", "test", gone("mc_question_test.json"), r"has no mc_question_test\.json or all_test\.json"),
    ("video-mme", "test", text("videomme/test.jsonl", '"answer": "D"', '"answer": "E"'), r"line 1: answer is 'E'"),
    ("video-mme", "test", text("videomme/test.jsonl", '"short"', '"93"'), r"line 1: duration is '93', expected one of"),
    ("video-mme", "test", text("videomme/test.jsonl", r'"001-2"', '"001-1"'), r"question_id '001-1' stands twice"),
    (
        "video-mme",
        "test",
        gone("videomme/test.jsonl", "evaluation/output_test_template.json"),
        r"has no videomme/test-00000-of-00001\.parquet or videomme/test\.jsonl",
    ),
    ("mlvu", "dev", gone("json/5_order.json"), r"has no json/5_order\.json or .*had at github\.com/JUNJIE99/MLVU"),
    ("mlvu", "dev", drop("json/4_count.json", 0, "candidates"), r"4_count\.json, entry 0: has no 'candidates'"),
    ("mlvu", "dev", put("json/4_count.json", 0, "candidates", value="five"), r"candidates is 'five', expected a list"),
    ("mlvu", "dev", put("json/4_count.json", 0, "candidates", value=["five", ""]), r"candidates is \['five', ''\]"),
    ("ovo-bench", "test", gone(OVO), r"has no data/ovo_bench_new\.json, .*had at github\.com/JoeLeelyf/OVO-Bench"),
    ("ovo-bench", "test", put(OVO, 0, "gt", value=4), r"entry 0: gt is 4, expected a whole number from 0 to 3"),
    ("ovo-bench", "test", put(OVO, 0, "task", value="XYZ"), r"task is 'XYZ', expected one of EPM"),
    ("ovo-bench", "test", put(OVO, 0, "realtime", value=-1), r"realtime is -1, expected a number, 0 or more"),
    ("ovo-bench", "test", put(OVO, 0, "options", value=["only"]), r"options is \['only'\], expected 2 to 26 texts"),
    ("ovo-bench", "test", put(OVO, 11, "test_info", 0, "count", value="1"), r"test_info 0: count is '1'"),
    ("ovo-bench", "test", put(OVO, 9, "test_info", 0, "type", value=2), r"type is 2, expected .* from 0 to 1"),
    (
        "ovo-bench",
        "test",
        put(OVO, 9, "test_info", value=[]),
        r"entry 9: test_info is \[\], expected a list of moments",
    ),
    ("ovo-bench", "test", twice(OVO), r"id '0' stands twice"),
]


@pytest.mark.parametrize(
    ("name", "split", "damage", "line"), BROKEN, ids=[f"{one[0]}-{number}" for number, one in enumerate(BROKEN)]
)
def test_damage_is_told_in_one_line(name: str, split: str, damage: Damage, line: str, tmp_path: Path) -> None:
    folder = copied(name, tmp_path / "data")
    DATASETS[name].open(folder, split)
    damage(folder)
    with pytest.raises(LongtakeError, match=line) as refused:
        DATASETS[name].open(folder, split)
    assert "\n" not in str(refused.value)
    assert str(refused.value).startswith(str(folder))


def test_mlvu_is_refused_when_no_question_is_left(tmp_path: Path) -> None:
    folder = copied("mlvu", tmp_path / "data")
    for path in (folder / "json").iterdir():
        if path.name[0] in "89":
            path.unlink()
        else:
            change(path, lambda data: [entry | {"answer": "none of them"} for entry in data])
    with pytest.raises(LongtakeError, match=r"answer 'none of them' is none of its candidates; no question is left"):
        DATASETS["mlvu"].open(folder)


def test_parquet_without_pyarrow_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = copied("video-mme", tmp_path / "data")
    (folder / "videomme" / "test.jsonl").unlink()
    (folder / "videomme" / "test-00000-of-00001.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(LongtakeError, match=r"needs pyarrow, .*pip install 'longtake\[datasets\]'"):
        DATASETS["video-mme"].open(folder)


def test_parquet_holds_the_same_as_lines(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="the datasets extra is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    import json

    folder = copied("video-mme", tmp_path / "data")
    lines = folder / "videomme" / "test.jsonl"
    expected = DATASETS["video-mme"].open(folder)
    rows = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
    path = folder / "videomme" / "test-00000-of-00001.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    lines.unlink()
    assert DATASETS["video-mme"].open(folder) == expected
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(LongtakeError, match=r"is no parquet file .*; download it anew"):
        DATASETS["video-mme"].open(folder)


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(LongtakeError, match=r"absent is no folder; expected one with the files of MLVU, had at"):
        DATASETS["mlvu"].open(tmp_path / "absent")
