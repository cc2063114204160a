"""``longtake bench stream``: does an hour cost what its first minute promised, in memory and in time?

A long Toybox video is read as fast as it goes, decoding included, through a model that says its events. The reading
happens in a process of its own, so that its memory is that of a stream and nothing else. Making the video does not
count.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import fmean, median
from time import perf_counter, process_time
from typing import Any

from longtake import hub
from longtake.errors import ConfigError
from longtake.eval.apart import measured_apart
from longtake.eval.process_memory import resident_bytes
from longtake.session import Session, require_captions

logger = logging.getLogger(__name__)

BARS: dict[str, tuple[float | None, float | None]] = {
    "memory_end_over_minute2": (None, 1.03),
    "last_tenth_over_first_tenth": (None, 1.05),
    "realtime_factor": (20.0, None),
}
"""Least and most that a ratio may be."""
WARM_UP_SEGMENTS = 3
"""Left out of the times: the first calls of a model set up its kernels."""
MEMORY_WINDOW = 5
"""Samples whose median is the memory at a moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRun:
    """What was seen of one run, one entry per segment."""

    seen_seconds: list[float] = field(default_factory=list)
    """Video time at the end of the segment."""
    segment_seconds: list[float] = field(default_factory=list)
    """Wall time for reading it, taking it in and saying its events."""
    cpu_seconds: list[float] = field(default_factory=list)
    """Work of all threads in that time."""
    resident_bytes: list[int] = field(default_factory=list)
    state_bytes: list[int] = field(default_factory=list)
    num_events: int = 0
    threads: int = 0


def bench_stream(
    minutes: float, model: str, folder: Path, *, seed: int = 0, tell: Callable[[str], None] | None = None
) -> dict[str, Any]:
    """Make the video if ``folder`` lacks it, read it in a process of its own, and judge.

    ``tell`` is given a line before each part that takes long.

    Raises:
        ConfigError: The video would be too short to judge memory from minute 2 on.
    """
    if not minutes >= 3:
        raise ConfigError(
            f"bench stream over {minutes:g} minutes; expected 3 or more, since memory is judged from minute 2 on"
        )
    require_captions(hub.load(model))  # a wrong name is told before the long work
    tell = tell or logger.info
    tell(f"making sure of a video of {minutes:g} minutes in {folder}")
    video = long_video(folder, minutes, seed)
    tell(f"reading {video.name} as fast as it goes")
    return judge(measure_apart(video, model))


def long_video(folder: Path, minutes: float, seed: int) -> Path:
    """An H.264 Toybox video of that length, made once."""
    from longtake.data.toybox import TOYBOX_VERSION, make_script
    from longtake.data.toybox.write import write_video

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"toybox-v{TOYBOX_VERSION}-{minutes:g}min-seed{seed}.mp4"
    if not path.exists():
        write_video(make_script(seed, seconds=minutes * 60.0, split="test"), path)
    return path


def judge(run: StreamRun) -> dict[str, Any]:
    """Ratios of one run, and what they were made from."""
    times = run.segment_seconds[WARM_UP_SEGMENTS:]
    tenth = max(1, len(times) // 10)
    at_minute2 = next(index for index, seconds in enumerate(run.seen_seconds) if seconds >= 120)
    before, after = _memory(run, at_minute2), _memory(run, len(run.resident_bytes) - 1)
    cpu = run.cpu_seconds[WARM_UP_SEGMENTS:]
    ratios = {
        "memory_end_over_minute2": after / before,
        "last_tenth_over_first_tenth": fmean(times[-tenth:]) / fmean(times[:tenth]),
        "realtime_factor": run.seen_seconds[-1] / sum(run.segment_seconds),
    }
    every = max(1, len(times) // 120)
    raw = {
        "bars": BARS,
        "seen_seconds": run.seen_seconds[-1],
        "wall_seconds": sum(run.segment_seconds),
        "segments": len(run.segment_seconds),
        "events": run.num_events,
        "threads": run.threads,
        "resident_bytes_minute2": before,
        "resident_bytes_end": after,
        "resident_bytes_peak": max(run.resident_bytes),
        "state_bytes_end": run.state_bytes[-1],
        "median_last_tenth_over_first_tenth": median(times[-tenth:]) / median(times[:tenth]),
        "cpu_last_tenth_over_first_tenth": fmean(cpu[-tenth:]) / fmean(cpu[:tenth]),
        "resident_bytes": run.resident_bytes[::every],
        "segment_seconds": [round(seconds, 5) for seconds in run.segment_seconds[::every]],
    }
    return {"name": "stream", "ratios": ratios, "raw": raw}


def measure_apart(video: Path, model: str) -> StreamRun:
    """``measure_stream`` in a process of its own, with the threads that torch chooses there."""
    return StreamRun(**measured_apart(__name__, str(video), model))


def measure_stream(video: Path, model_name: str) -> StreamRun:
    """Read ``video`` in this process."""
    import torch

    from longtake.video import segments

    run = StreamRun(threads=torch.get_num_threads())
    session: Session[Any] = Session(hub.load(model_name), source=str(video))
    num_events = 0
    with segments(video, session.spec) as stream:
        steps = session.follow(stream)
        while True:
            started, worked = perf_counter(), process_time()
            step = next(steps, None)
            if step is None or step.segment is None:
                break
            num_events += len(step.events)
            run.segment_seconds.append(perf_counter() - started)
            run.cpu_seconds.append(process_time() - worked)
            run.seen_seconds.append(step.progress.seen_seconds)
            run.state_bytes.append(step.progress.state_bytes)
            run.resident_bytes.append(resident_bytes())
    return replace(run, num_events=num_events)


def _memory(run: StreamRun, index: int) -> float:
    return median(run.resident_bytes[max(0, index + 1 - MEMORY_WINDOW) : index + 1])


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asdict(measure_stream(Path(sys.argv[1]), sys.argv[2]))))
