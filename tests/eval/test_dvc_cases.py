"""Our protocols against the numbers of the public evaluators: every case under LONGTAKE_SHARED, whatever its name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.eval.dvc_fixtures import DvcCase, case_at, cases

from longtake.eval import PROTOCOLS, CaptionReport, TextTools, evaluate_captions

TOLERANCE = 1e-9
TEXT = {"METEOR": "meteor", "CIDEr": "cider", "ROUGE_L": "rouge_l"} | {f"Bleu_{n}": f"bleu_{n}" for n in range(1, 5)}
PLACE = {"Precision": "precision", "Recall": "recall"}

every_case = pytest.mark.parametrize("folder", cases())
_reports: dict[tuple[object, ...], CaptionReport] = {}


def report_of(case: DvcCase, protocol: str, tools: TextTools, reference: int | None = None) -> CaptionReport:
    """Our report on a case, with all of its reference sets or one of them."""
    key = (id(case), protocol, reference if len(case.references) > 1 else None)
    if key not in _reports:
        rules = replace(PROTOCOLS[protocol], max_proposals=case.max_proposals)
        references = case.references if reference is None else case.references[reference]
        _reports[key] = evaluate_captions(references, case.predictions, protocol=rules, tools=tools)
    return _reports[key]


def soda_types(case: DvcCase, mode: str) -> dict[str, dict[str, float]]:
    """Official SODA scores by type, those left out that a defect changed."""
    by_type = case.protocols["soda_repo"].get(mode, {})
    types = {name[-1]: scores for name, scores in by_type.items() if "error" not in scores}
    return {kind: scores for kind, scores in types.items() if kind == "d" or not case.loses_lines}


def close(expected: object) -> Any:
    return pytest.approx(expected, abs=TOLERANCE, rel=0)


@every_case
@pytest.mark.parametrize("protocol", ["pdvc2018", "pdvc2021"])
def test_protocol_matches_pdvc(folder: Path, protocol: str, tools: TextTools) -> None:
    case = case_at(folder)
    report, expected = report_of(case, protocol, tools), case.protocols[protocol]
    expected = expected.get("captions_only", expected)
    names = ({} if case.loses_lines else TEXT) | ({} if case.has_empty_list else PLACE)
    for official, ours in names.items():
        assert report.per_threshold[ours] == close(tuple(expected[official])), official
        assert report.metrics[ours] == close(expected["mean_over_tious"][official]), official
    if not case.has_empty_list:
        assert report.metrics["f1_of_means"] == close(expected["derived_F1_of_mean_precision_and_recall"])


def none_to_zero(values: object) -> object:
    """Official numbers are None for a video without predictions, which counts 0."""
    return [value or 0.0 for value in values] if isinstance(values, list) else values or 0.0


@pytest.mark.parametrize(
    "folder", cases(lambda case: case.per_video is not None and not case.loses_lines and not case.has_empty_list)
)
def test_videos_match_pdvc_one_by_one(folder: Path, tools: TextTools) -> None:
    case = case_at(folder)
    assert case.per_video
    ours = {year: report_of(case, f"pdvc{year}", tools).per_video for year in (2018, 2021)}
    for video, expected in case.per_video["pdvc"].items():
        assert ours[2018][video]["meteor"] == close(none_to_zero(expected["METEOR_2018"]))
        assert ours[2021][video]["meteor"] == close(none_to_zero(expected["METEOR_2021"]))
        for official, name in (PLACE | {"CIDEr": "cider"}).items():
            assert ours[2021][video][name] == close(none_to_zero(expected[official])), official
    for number, path in enumerate(case.reference_files):
        scored = report_of(case, "pdvc2021", tools, number).per_video
        for video, by_file in case.per_video["soda_c"].items():
            if path.name in by_file:
                assert scored[video]["soda_c"] == close(by_file[path.name]["f1"]), video


@pytest.mark.parametrize(
    "folder", cases(lambda case: "error" not in case.protocols["pdvc_eval_soda"] and not case.loses_lines)
)
def test_soda_c_matches_pdvc_wrapper(folder: Path, tools: TextTools) -> None:
    case = case_at(folder)
    expected = case.protocols["pdvc_eval_soda"]
    assert report_of(case, "pdvc2021", tools).metrics["soda_c"] == close(expected["soda_c"])
    for number, scores in enumerate(expected["per_reference"]):
        one = report_of(case, "pdvc2021", tools, number)
        assert one.soda["c"] == close((scores["precision"], scores["recall"], scores["f1"]))


@pytest.mark.parametrize("folder", cases(lambda case: bool(soda_types(case, "merged_references"))))
def test_soda_types_match_soda_repository(folder: Path, tools: TextTools) -> None:
    case = case_at(folder)
    report = report_of(case, "soda", tools)
    for kind, scores in soda_types(case, "merged_references").items():
        assert report.soda[kind] == close((scores["precision"], scores["recall"], scores["f1"])), kind


@pytest.mark.parametrize("folder", cases(lambda case: bool(soda_types(case, "best_reference"))))
def test_soda_types_match_soda_repository_when_best_reference_counts(folder: Path, tools: TextTools) -> None:
    case = case_at(folder)
    report = report_of(case, "soda-best", tools)
    for kind, scores in soda_types(case, "best_reference").items():
        assert report.soda[kind] == close((scores["precision"], scores["recall"], scores["f1"])), kind


@every_case
def test_protocol_matches_vidchapters(folder: Path, tools: TextTools) -> None:
    case = case_at(folder)
    report, expected = report_of(case, "vidchapters", tools), case.protocols["vidchapters"]
    for official, value in expected.items():
        name, _, at = official.lower().replace("rouge-l", "rouge_l").partition("@")
        text = name in TEXT.values() or name == "soda_c"
        if name == "per_tiou" or (text and case.loses_lines) or (name == "soda_c" and case.too_deep):
            continue
        if at.endswith("s"):
            assert report.metrics[f"{name}_start_{at}"] == close(value), official
        elif at:
            assert report.per_threshold[name][report.thresholds.index(float(at))] == close(value), official
        else:
            assert report.metrics[name] == close(value), official


@pytest.mark.parametrize("folder", cases(lambda case: "error" not in case.protocols["scenic_vid2seq"]))
def test_protocol_matches_scenic(folder: Path, tools: TextTools) -> None:
    case = case_at(folder)
    expected = case.protocols["scenic_vid2seq"]
    names = {"Precision_Mean": "precision", "Recall_Mean": "recall", "F1_Score": "f1"}
    if not case.loses_lines:
        names |= {"CIDER": "cider", "METEOR": "meteor"}
        names |= {"SODA_c": "soda_c"} if case.scenic_matches_in_order else {}
    report = report_of(case, "scenic", tools)
    for official, ours in names.items():
        assert report.metrics[ours] == close(expected[official]), official


@every_case
def test_miou_matches_mean_best_tiou(folder: Path, tools: TextTools) -> None:
    case = case_at(folder)
    expected = case.expected["not_official_mean_best_iou_per_reference"]
    for number, by_set in enumerate(expected):
        assert report_of(case, "pdvc2021", tools, number).metrics["miou"] == close(by_set["all_gt_videos"])
        assert report_of(case, "vidchapters", tools, number).metrics["miou"] == close(by_set["predicted_videos_only"])
