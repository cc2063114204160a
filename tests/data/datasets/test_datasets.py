"""The official layouts: every folder under LONGTAKE_SHARED is read, and each number in it found again."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.data.datasets.shared_sets import cases, copied, own

from longtake.data.datasets import DATASETS, DataSet, dataset_named, names_for
from longtake.data.datasets.samples import Captions, Labels, Questions
from longtake.errors import ConfigError, LongtakeError


def is_whole(dataset: DataSet, folder: Path, split: str) -> bool:
    return folder.parent.name == "own"


@pytest.mark.parametrize(("dataset", "folder", "split"), cases())
def test_folder_is_read_or_refused_in_one_line(dataset: DataSet, folder: Path, split: str) -> None:
    try:
        found = dataset.open(folder, split)
    except LongtakeError as error:
        line = str(error)
        assert "\n" not in line
        assert line.startswith(str(folder)), "says which file"
        assert dataset.home in line or "expected" in line, "says where it is had or what was expected"
        assert not is_whole(dataset, folder, split), line
        assert " has no " in line, "a published file that is there is right"
        return
    names = [video.name for video in found.videos]
    assert len(names) == len(set(names)) > 0
    if isinstance(found, Questions):
        assert {question.video for question in found.questions} == set(names)
        assert len({question.key for question in found.questions}) == len(found.questions)
        for question in found.questions:
            assert question.gold is None or question.options[question.gold] == question.answer
            assert not any(re.match(r"[A-F]\. ", option) for option in question.options)
    elif isinstance(found, Labels):
        assert set(found.labels) == set(names)
        assert set(found.labels.values()) <= set(found.classes)
    else:
        assert {video for told in found.references for video in told} <= set(names)


def raw(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_activitynet_has_two_annotators_and_no_stray_blanks(tmp_path: Path) -> None:
    folder = copied("activitynet", tmp_path / "data")
    first = raw(folder / "val_1.json")
    first["v_extra"] = {"duration": 9, "timestamps": [[5, 5], [0.5, 3]], "sentences": ["  He jumps. ", "caf\u00e9"]}
    (folder / "val_1.json").write_text(json.dumps(first))
    found = DATASETS["activitynet"].open(folder)
    assert isinstance(found, Captions)
    assert [set(told) for told in found.references] == [set(first), set(raw(folder / "val_2.json"))]
    extra = [(event.start_seconds, event.end_seconds, event.text) for event in found.references[0]["v_extra"]]
    assert extra == [(5.0, 5.0, "He jumps."), (0.5, 3.0, "caf\u00e9")], "no length, unsorted: as in the file"
    assert found.durations["v_extra"] == 9.0
    assert [place.path for place in found.videos[-1].places] == ["v_extra", "extra"]


def test_youcook2_takes_the_subset_and_test_has_no_words() -> None:
    found = {split: DATASETS["youcook2"].open(own("youcook2"), split) for split in ("train", "val", "test")}
    database = raw(own("youcook2") / "annotations" / "youcookii_annotations_trainval.json")["database"]
    for split, subset in (("train", "training"), ("val", "validation")):
        captions = found[split]
        assert isinstance(captions, Captions)
        wanted = {name: entry for name, entry in database.items() if entry["subset"] == subset}
        told = {
            name: [([event.start_seconds, event.end_seconds], event.text) for event in events]
            for name, events in captions.references[0].items()
        }
        assert told == {
            name: [(step["segment"], step["sentence"]) for step in entry["annotations"]]
            for name, entry in wanted.items()
        }
    assert isinstance(found["test"], Captions)
    assert {event.text for events in found["test"].references[0].values() for event in events} == {""}


def test_vitt_reads_lines_of_milliseconds_and_several_annotators(tmp_path: Path) -> None:
    folder = copied("vitt", tmp_path / "data")
    lines = [
        {"id": "aa00", "annotations": [{"timestamp": 9000, "tag": "end"}, {"timestamp": 260, "tag": "Opening"}]},
        {"id": "aa00", "annotations": [{"timestamp": 500, "tag": ""}, {"timestamp": 700, "tag": "one"}]},
        {"id": "unsp", "annotations": [{"timestamp": 0, "tag": "a"}, {"timestamp": 0, "tag": "b"}]},
    ]
    (folder / "ViTT-annotations.json").write_text("\n".join(json.dumps(line) for line in lines))
    (folder / "test_id.txt").write_text("aa00\nzz99\n")
    found = DATASETS["vitt"].open(folder)
    assert isinstance(found, Captions)
    assert [
        [(event.start_seconds, event.end_seconds, event.text) for event in told["aa00"]] for told in found.references
    ] == [[(0.26, 9.0, "Opening"), (9.0, None, "end")], [(0.7, None, "one")]]
    assert [video.name for video in found.videos] == ["aa00"], "unsp is in no split"
    assert found.notes == ("1 ids of test_id.txt have no tags", "2 tags without words or length are left out")
    assert [video.name for video in DATASETS["vitt"].open(folder, "all").videos] == ["aa00", "unsp"]


def test_diving48_names_the_class_of_each_clip() -> None:
    found = DATASETS["diving48"].open(own("diving48"), "train")
    vocabulary = raw(own("diving48") / "Diving48_vocab.json")
    clips = raw(own("diving48") / "Diving48_V2_train.json")
    assert isinstance(found, Labels)
    assert len(found.classes) == 48
    assert found.labels == {clip["vid_name"]: " ".join(vocabulary[clip["label"]]) for clip in clips}


def test_egoschema_knows_which_answers_are_public() -> None:
    whole, subset = (DATASETS["egoschema"].open(own("egoschema"), split) for split in ("full", "subset"))
    answers = raw(own("egoschema") / "subset_answers.json")
    assert isinstance(whole, Questions)
    assert isinstance(subset, Questions)
    assert {question.key: question.gold for question in subset.questions} == answers
    assert {question.key for question in whole.questions if question.gold is None} | set(answers) == {
        entry["q_uid"] for entry in raw(own("egoschema") / "questions.json")
    }
    clip, source = subset.videos[0].places
    cut = raw(own("egoschema") / "uid_to_ego4d.json")[clip.path]
    assert (source.path, source.start_seconds, source.end_seconds) == tuple(cut.values())


def test_nextqa_counts_tp_as_tn_and_ids_stay_text(tmp_path: Path) -> None:
    folder = copied("next-qa", tmp_path / "data")
    path = folder / "dataset" / "nextqa" / "val.csv"
    head = path.read_text(encoding="utf-8").splitlines()[0]
    path.write_text(f'\ufeff{head}\r\n0012345678,9,1,1,why,4,0,TP,a,b,c,d,"e, and f"')
    (found,) = DATASETS["next-qa"].open(folder).questions  # type: ignore[union-attr]
    assert (found.key, found.video, found.gold, found.answer) == ("0012345678_0", "0012345678", 4, "e, and f")
    assert found.tags == {"type": "TN", "group": "T" and "temporal"}


@pytest.mark.parametrize(
    ("dataset", "folder", "split"),
    cases(
        lambda dataset, folder, split: (
            dataset.name == "next-qa" and (folder / "dataset" / "nextqa" / f"{split}.csv").is_file()
        )
    ),
)
def test_nextqa_rows_are_those_of_the_file(dataset: DataSet, folder: Path, split: str) -> None:
    found = dataset.open(folder, split)
    assert isinstance(found, Questions)
    with (folder / "dataset" / "nextqa" / f"{split}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["video"] + "_" + row["qid"], row["question"], int(row["answer"])) for row in rows] == [
        (question.key, question.question, question.gold) for question in found.questions
    ]
    mapping = raw(folder / "dataset" / "nextqa" / "map_vid_vidorID.json")
    for video in found.videos:
        assert video.places[0].path == mapping.get(video.name, video.name)


def test_perception_test_is_cut_before_the_answer_is_shown() -> None:
    found = DATASETS["perception-test"].open(own("perception-test"))
    folder = own("perception-test")
    entries, cuts = raw(folder / "mc_question_valid.json"), raw(folder / "cut_frame_mapping_valid.json")
    ends = {video.name: video.places[0].end_seconds for video in found.videos}
    for name, frame in cuts.items():
        rate = entries[name]["metadata"]["frame_rate"]
        assert (frame - 1) / rate < ends[name] < frame / rate  # type: ignore[operator]
    assert {name for name, end in ends.items() if end is None} == set(ends) - set(cuts)
    assert found.notes == ()
    assert "videos are seen whole" in DATASETS["perception-test"].open(folder, "train").notes[0]
    hidden = DATASETS["perception-test"].open(folder, "test")
    assert {question.gold for question in hidden.questions} == {None}  # type: ignore[union-attr]


def test_video_mme_is_the_same_from_lines_and_from_the_template(tmp_path: Path) -> None:
    folder = copied("video-mme", tmp_path / "data")
    template = folder / "evaluation" / "output_test_template.json"
    from_lines = DATASETS["video-mme"].open(folder)
    (folder / "videomme" / "test.jsonl").unlink()
    text = template.read_text(encoding="utf-8")
    template.write_text(re.sub(r"([}\]\"])(\s*[}\]])", r"\1,\2", text).replace("Three.", "Three, [a, ] ,}"))
    with pytest.raises(ValueError, match=r"."):
        json.loads(template.read_text())
    loose = DATASETS["video-mme"].open(folder)
    assert isinstance(from_lines, Questions)
    assert isinstance(loose, Questions)
    assert loose.questions[0].options[0] == "Three, [a, ] ,}", "commas in words stay"
    assert from_lines.questions[0].options[0] == "Three."
    assert [(one.key, one.gold, one.tags) for one in loose.questions] == [
        (one.key, one.gold, one.tags) for one in from_lines.questions
    ]
    assert [place.path for place in from_lines.videos[0].places][-1] == "001"


def test_mlvu_leaves_out_what_cannot_be_right_and_says_so(tmp_path: Path) -> None:
    folder = copied("mlvu", tmp_path / "data")
    path = folder / "json" / "4_count.json"
    right = raw(path)[0]
    spoiled = [
        right | {"answer": "six hundred"},
        right | {"question": "", "candidates": ["", "", "", ""], "answer": ""},
        right | {"candidates": ["five", "six", "five", "four"], "duration": 467},
    ]
    path.write_text(json.dumps([right, *spoiled]))
    found = DATASETS["mlvu"].open(folder)
    assert isinstance(found, Questions)
    counted = [question for question in found.questions if question.type == "count"]
    assert [question.key for question in counted] == ["4_count_0", "4_count_3"]
    assert [question.answer for question in counted] == ["five", "five"]
    assert found.notes[0].startswith("2 questions have no right option and are left out: ")
    assert {question.type for question in found.questions if question.kind == "open"} == {"subPlot", "summary"}
    hidden = DATASETS["mlvu"].open(folder, "test").questions  # type: ignore[union-attr]
    assert [(question.gold, len(question.options)) for question in hidden] == [(None, 6)]
    assert found.videos[0].places[0].path.startswith("1_plotQA/")


def test_ovo_bench_trusts_gt_and_asks_at_every_moment(tmp_path: Path) -> None:
    folder = copied("ovo-bench", tmp_path / "data")
    path = folder / "data" / "ovo_bench_new.json"
    records = raw(path)
    records[0]["answer"] = "worded otherwise"
    records[0]["video"] = "YouTube_Games/PLJ3&index=1.mp4"
    path.write_text(json.dumps(records))
    found = DATASETS["ovo-bench"].open(folder)
    assert isinstance(found, Questions)
    first = found.questions[0]
    assert first.answer == records[0]["options"][records[0]["gt"]]
    assert (first.video, first.at_seconds) == ("YouTube_Games/PLJ3&index=1.mp4", 20.0)
    by_task = {task: [one for one in found.questions if one.type == task] for task in ("REC", "SSR", "CRR")}
    moments = {record["task"]: record["test_info"] for record in records if "test_info" in record}
    for task, questions in by_task.items():
        assert [one.at_seconds for one in questions] == [moment["realtime"] for moment in moments[task]]
        assert {one.tags["group"] for one in questions} == {"forward"}
    assert [one.answer for one in by_task["REC"]] == [str(moment["count"]) for moment in moments["REC"]]
    assert [one.answer for one in by_task["CRR"]] == [("No", "Yes")[moment["type"]] for moment in moments["CRR"]]
    assert all(moment["step"] in one.question for one, moment in zip(by_task["SSR"], moments["SSR"], strict=True))


def test_names_are_known_however_they_are_written() -> None:
    assert dataset_named("NExT-QA", "ask") is dataset_named("next_qa", "ask") is DATASETS["next-qa"]
    assert dataset_named("ActivityNet_Captions", "captions") is DATASETS["activitynet"]
    with pytest.raises(ConfigError, match="MLVU is for 'longtake eval ask', not for 'eval captions'"):
        dataset_named("mlvu", "captions")
    with pytest.raises(
        ConfigError, match=r"unknown data set 'egoshema', expected toybox or .*did you mean 'egoschema'"
    ):
        dataset_named("egoshema", "ask", ("toybox",))
    assert set(names_for("captions")) == {"activitynet", "youcook2", "vitt"}
    with pytest.raises(ConfigError, match="NExT-QA has no split 'dev', expected val or test or train"):
        DATASETS["next-qa"].open("anywhere", "dev")
