"""Every shared video, faulty or not: the reader does what the manifest says a good reader does."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest
from tests.video.shared import SHARED, bounds, cases, sizes

from longtake.errors import SourceError
from longtake.types import SegmentSpec
from longtake.video import probe, segments

FAULTY = cases("videos_faulty")
HEALTHY = cases("videos")
SPEC = SegmentSpec(num_frames=4, fps=1, height=32, width=32)
STOP_WORDS = {
    "cannot",
    "could",
    "file",
    "is",
    "a",
    "an",
    "the",
    "no",
    "not",
    "only",
    "missing",
    "be",
    "of",
    "or",
    "and",
}

needs_faulty = pytest.mark.skipif(
    not FAULTY, reason=f"no {SHARED / 'videos_faulty'} (LONGTAKE_SHARED names its folder)"
)
needs_healthy = pytest.mark.skipif(not HEALTHY, reason=f"no {SHARED / 'videos'} (LONGTAKE_SHARED names its folder)")


def name(row: dict[str, Any]) -> str:
    return row["file"]


@needs_faulty
@pytest.mark.parametrize("row", [row for row in FAULTY if row["verdict"] == "error"], ids=name)
def test_an_unreadable_source_is_one_clear_error(row: dict[str, Any]) -> None:
    path = SHARED / "videos_faulty" / row["file"]
    for read in (probe, lambda source: list(segments(source, SPEC))):
        with pytest.raises(SourceError) as caught:
            read(path)
        message = str(caught.value)
        assert message.startswith(f"{path}: ")
        assert "\n" not in message
        words = set(re.findall(r"[a-z]+", row["expected"].get("error", "").lower())) - STOP_WORDS
        said = set(re.findall(r"[a-z]+", message.removeprefix(str(path)).lower()))
        assert len(words & said) >= len(words) / 2, f"{message!r} does not say {row['expected'].get('error')!r}"


@needs_faulty
@pytest.mark.parametrize("row", [row for row in FAULTY if row["verdict"] != "error"], ids=name)
def test_a_readable_source_gives_its_frames_and_warns_if_it_should(row: dict[str, Any]) -> None:
    expected = row["expected"]
    report = probe(SHARED / "videos_faulty" / row["file"])
    assert bool(report.warnings) == (row["verdict"] == "warn"), report.warnings
    assert report.first_pts == 0.0
    if "frames" in expected:
        assert report.frames in bounds(expected["frames"], slack=0.02)
    if "last_s" in expected:
        assert report.last_pts in bounds(expected["last_s"], slack=0.05)
    if sizes(expected):
        assert (report.width, report.height) in sizes(expected)
    total = re.search(r"(\d+) of (\d+)", str(expected.get("frames", "")))
    if total:
        assert report.lost_frames == int(total[2]) - report.frames


@needs_faulty
@pytest.mark.parametrize("row", [row for row in FAULTY if row["verdict"] != "error"], ids=name)
def test_segments_of_a_readable_source_cover_it_once(row: dict[str, Any]) -> None:
    with segments(SHARED / "videos_faulty" / row["file"], SPEC) as stream:
        cut = list(stream)
        last = stream.report.last_pts
    assert cut
    assert all(a.end_seconds == b.start_seconds for a, b in itertools.pairwise(cut))
    times = [seconds for segment in cut for seconds in segment.pts_seconds]
    assert times == sorted(times)
    assert times[-1] <= last
    assert len(times) <= last * SPEC.fps + 2, "bounded by the media time, not by what a header says"


@needs_healthy
@pytest.mark.parametrize("row", HEALTHY, ids=name)
def test_a_healthy_video_is_read_whole_and_without_complaint(row: dict[str, Any]) -> None:
    report = probe(SHARED / "videos" / row["file"])
    assert (report.frames, report.warnings, report.lost_frames) == (row["frames_decoded"], (), 0)
    assert report.start_time == pytest.approx(row["first_frame_s"], abs=2e-3)
    assert report.last_pts == pytest.approx(row["last_frame_s"] - row["first_frame_s"], abs=2e-3)
    turned = row["rotation_deg_pyav"][0] % 180 != 0
    size = (row["width"], row["height"])
    assert (report.width, report.height) == (size[::-1] if turned else size)
    assert report.rotation == -row["rotation_deg_pyav"][0] % 360
