"""Peak memory does not depend on the length of the video, nor on how slowly it is taken in."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import weakref
from pathlib import Path

import pytest
from tests.video.clips import make_video

from longtake.types import SegmentSpec
from longtake.video import open_source, segments

ROOT = Path(__file__).resolve().parents[2]
MEASURE = """
import json, resource, sys
from longtake.types import SegmentSpec
from longtake.video import segments
spec = SegmentSpec(num_frames=8, fps=25, height=224, width=224)
peaks = []
for path in sys.argv[1:]:
    with segments(path, spec) as stream:
        frames = sum(len(segment.pts_seconds) for segment in stream)
    peaks.append([frames, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss])
print(json.dumps(peaks))
"""


def test_frames_alive_stay_few(tmp_path: Path) -> None:
    with open_source(make_video(tmp_path / "a.mp4", frames=300)) as source:
        alive: list[weakref.ref[object]] = []
        most = 0
        for frame in source:
            alive = [one for one in alive if one() is not None] + [weakref.ref(frame.rgb)]
            most = max(most, len(alive))
    assert most <= 3


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read as Linux gives it")
def test_peak_memory_does_not_grow_with_the_length(tmp_path: Path) -> None:
    size = (320, 240)
    short = make_video(tmp_path / "short.mp4", frames=250, size=size)
    long = make_video(tmp_path / "long.mp4", frames=2500, size=size)
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(short), str(short), str(long)],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=280,
        check=True,
    )
    (few, _), (_, before), (many, after) = json.loads(done.stdout)
    assert (few, many) == (250, 2500)
    all_kilobytes = many * 224 * 224 * 3 // 1024
    assert after - before < all_kilobytes * 8 // 100, "a few segments wait, the others are gone"


def test_a_consumer_that_stops_holds_a_few_segments_only(tmp_path: Path) -> None:
    spec = SegmentSpec(num_frames=4, fps=25, height=48, width=64)
    with segments(make_video(tmp_path / "a.mp4", frames=400), spec) as stream:
        next(stream)
        before = stream.report.frames
        gc.collect()
        assert stream.report.frames <= max(before, 4 * (1 + 2 + 2))
