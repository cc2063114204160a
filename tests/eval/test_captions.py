"""Reports: what counts, what is named, what is unavailable; no Java needed here."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from longtake.errors import ConfigError
from longtake.eval import PROTOCOLS, CaptionReport, TextTools, caption_scores, evaluate_captions, text_tools
from longtake.eval.annotations import TimedSentence
from longtake.eval.dense import FIXED_FILLER, caption_pairs, make_case
from longtake.eval.java import JavaError

CAR, FISH, STAR = "the red car jumps high", "the blue fish spins fast", "the pink star leaves to the left"


def told(*events: tuple[float, float, str]) -> dict[str, Any]:
    return {"timestamps": [list(event[:2]) for event in events], "sentences": [event[2] for event in events]}


def said(*events: tuple[float, float, str]) -> list[dict[str, Any]]:
    return [{"timestamp": list(event[:2]), "sentence": event[2]} for event in events]


STORY = (0.0, 10.0, CAR), (20.0, 30.0, FISH), (40.0, 50.0, STAR)
REFERENCES = {"v": told(*STORY), "w": told(*STORY)}


def report(references: object, predictions: object, protocol: str = "pdvc2021", **changes: Any) -> CaptionReport:
    rules = replace(PROTOCOLS[protocol], **changes)
    with TextTools(java=False) as tools:
        return evaluate_captions(references, predictions, protocol=rules, tools=tools)


def test_a_perfect_copy_scores_full_marks() -> None:
    found = report(REFERENCES, {"v": said(*STORY), "w": said(*STORY)})
    for name in ("f1", "precision", "recall", "exact", "f1_of_means", "rouge_l"):
        assert found.metrics[name] == pytest.approx(1.0)
    assert found.metrics["cider"] == pytest.approx(10.0)
    assert found.metrics["miou"] == found.metrics["soda_d"] == pytest.approx(1.0)
    assert found.counts["matches"] == found.counts["exact"] == 6


@pytest.mark.parametrize(
    ("protocol", "videos", "recall", "soda_d"),
    [("pdvc2021", 2, 0.5, 1.0), ("vidchapters", 1, 1.0, 1.0), ("longtake", 2, 0.5, 0.5), ("scenic", 2, 0.5, 0.5)],
)
def test_a_missing_video_counts_as_the_protocol_says(protocol: str, videos: int, recall: float, soda_d: float) -> None:
    found = report(REFERENCES, {"v": said(*STORY), "x": said(*STORY)}, protocol)
    assert found.missing_videos == ("w",)
    assert found.extra_videos == ("x",)
    assert found.counts["videos"] == videos
    assert found.metrics["recall"] == pytest.approx(recall)
    assert found.metrics["soda_d"] == pytest.approx(soda_d)


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
def test_an_empty_list_counts_zero_everywhere(protocol: str) -> None:
    found = report(REFERENCES, {"v": said(*STORY), "w": []}, protocol)
    assert found.counts["videos"] == 2
    assert found.metrics["recall"] == found.metrics["precision"] == pytest.approx(0.5)
    assert found.metrics["cider"] == pytest.approx(5.0)
    assert found.metrics["soda_d"] == pytest.approx(0.5)


def test_f1_is_the_mean_of_thresholds_of_averaged_precision_and_recall() -> None:
    found = report({"v": told(*STORY)}, {"v": said((0, 10, CAR), (20, 36, FISH))})
    at_half, above = 2 * 1 * (2 / 3) / (1 + 2 / 3), 2 * 0.5 * (1 / 3) / (0.5 + 1 / 3)
    assert found.per_threshold["f1"] == pytest.approx((at_half, at_half, above, above))
    assert found.metrics["f1"] == pytest.approx((at_half + above) / 2)
    assert found.metrics["miou"] == pytest.approx((1 + 0.625 + 0) / 3)


def test_only_the_first_proposals_are_read() -> None:
    found = report({"v": told(*STORY)}, {"v": said(*STORY)}, max_proposals=1)
    assert found.counts["predictions"] == 1
    assert found.counts["predictions_not_read"] == 2
    assert found.metrics["recall"] == pytest.approx(1 / 3)
    assert found.metrics["soda_d"] == pytest.approx(1.0)  # SODA knows no such limit


def test_two_annotators_are_each_scored() -> None:
    other = {"v": told((100.0, 110.0, CAR))}
    found = report([{"v": told(*STORY)}, other], {"v": said(*STORY)})
    assert found.counts["reference_sets"] == 2
    assert found.metrics["precision"] == found.metrics["recall"] == pytest.approx(1.0)
    assert found.metrics["soda_d"] == found.metrics["miou"] == pytest.approx(0.5)


def test_start_distances_are_strict() -> None:
    found = report({"v": told((10.0, 20.0, CAR))}, {"v": said((11.0, 20.0, CAR))}, "vidchapters")
    assert found.metrics["f1_start_1s"] == 0.0
    assert found.metrics["f1_start_3s"] == 1.0


def test_a_prediction_that_matches_nothing_is_paired_with_a_filler_of_its_own() -> None:
    unmatched = TimedSentence(start_seconds=90.0, end_seconds=95.0, text=CAR)
    matched = replace(unmatched, start_seconds=0.0, end_seconds=10.0)
    story = (replace(matched, text=FISH), replace(matched, text=STAR))
    case = make_case("v", (unmatched, matched), [story], PROTOCOLS["pdvc2021"])
    (first, filler), *rest = caption_pairs(case, 0.5, PROTOCOLS["pdvc2021"])
    assert (first, rest) == (CAR, [(CAR, FISH), (CAR, STAR)])
    assert filler.isalpha()
    assert filler not in CAR
    assert caption_pairs(case, 0.5, PROTOCOLS["pdvc2018"])[0] == (CAR, FIXED_FILLER)


def test_metrics_that_need_java_are_unavailable_and_never_zero_without_it() -> None:
    found = report(REFERENCES, {"v": said(*STORY)})
    data = found.to_dict()
    for name in ("meteor", "soda_a", "soda_b", "soda_c"):
        assert data["metrics"][name] == "unavailable"  # type: ignore[index]
        assert found.unavailable[name]
    assert found.tokenizer == "python"


def test_java_that_fails_leaves_a_report_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> Any:
        raise JavaError("no java program on PATH")

    monkeypatch.setattr(text_tools, "tokenize_with_java", fail)
    monkeypatch.setattr(text_tools, "Meteor", fail)
    found = evaluate_captions(REFERENCES, {"v": said(*STORY), "w": said(*STORY)})
    assert found.metrics["meteor"] is None
    assert found.unavailable["meteor"] == "no java program on PATH"
    assert found.tokenizer == "python"
    assert found.metrics["cider"] == pytest.approx(10.0)
    assert "no METEOR: no java program on PATH" in caplog.text


def test_report_is_plain_json_with_and_without_videos() -> None:
    found = report(REFERENCES, {"v": said(*STORY)})
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert set(data["per_video"]) == {"v", "w"}
    assert data["per_video"]["w"]["recall"] == [0.0] * 4
    assert data["counts"]["videos"] == 2
    assert "per_video" not in found.to_dict(per_video=False)


def test_memory_words_are_in_the_report_by_kind() -> None:
    marks = [[{"kind": "count", "word": "first"}], [{"kind": "count", "word": "second"}], []]
    references = {
        "v": {
            **told(*((*event[:2], text) for event, text in zip(STORY, ("first", "second", "x"), strict=True))),
            "memory": marks,
        }
    }
    data = report(references, {"v": said((0, 10, "first"), (20, 30, "first"))}).to_dict()
    assert data["metrics"]["memory_words"] == {"count": 0.5}  # type: ignore[index]
    assert data["memory_words"]["count"]["items"] == 2  # type: ignore[index]


def test_quick_scores_need_no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_tools, "tokenize_with_java", None)
    monkeypatch.setattr(text_tools, "Meteor", None)
    scores = caption_scores(REFERENCES, {"v": said(*STORY), "w": []})
    assert scores["f1"] == pytest.approx(0.5)
    assert scores["exact"] == 1.0
    assert "meteor" not in scores


def test_scores_do_not_depend_on_the_order_of_videos() -> None:
    predictions = {"v": said((0, 9, CAR), (60, 70, FISH)), "w": said((1, 10, STAR), (20, 30, FISH))}
    forward = report(REFERENCES, predictions).metrics
    backward = report(dict(reversed(REFERENCES.items())), dict(reversed(predictions.items()))).metrics
    assert forward == pytest.approx(backward)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: evaluate_captions(REFERENCES, {"x": []}), "none of the 1 predicted videos is among the 2"),
        (lambda: evaluate_captions(REFERENCES, {}), "none of the 0 predicted videos"),
        (lambda: evaluate_captions([], {"v": []}), "got no references"),
        (lambda: evaluate_captions(REFERENCES, {"v": []}, protocol="pdvc"), "unknown protocol 'pdvc', expected one of"),
    ],
)
def test_what_cannot_be_scored_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        call()
