"""``longtake bench memory``: does an MC-ViT cost late in a stream what it cost once its memory was full?

For the memories that are bounded, ``last`` and ``global``, each in a process of its own with one thread: a ViT-small
with random weights takes in an endless stream through a session, clock and all. No video is decoded, so that what is
measured is the model's.

**Time per segment** is CPU time of that thread, in which what other programs take does not count. A session forks for
free, so those that stand before the early and before the late window are kept, and the windows are taken in again in
turn, segment by segment: a slow moment of the machine hits both. **Memory** is that of the whole process while the
stream runs, at the end against just after the memory was full.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from time import thread_time
from typing import Any

import torch
from torch import Tensor

from longtake.errors import ConfigError
from longtake.eval.apart import measured_apart
from longtake.eval.process_memory import resident_bytes
from longtake.methods.mcvit import MCViT
from longtake.methods.mcvit_config import MCViTConfig, MemoryConfig, MemoryKind
from longtake.session import Session
from longtake.state.tree import num_bytes
from longtake.types import Segment, SegmentSpec
from longtake.vision import TubeletConfig, VideoTransformerConfig

KINDS: tuple[MemoryKind, ...] = ("last", "global")
MOST_MEMORY, MOST_TIME = 1.03, 1.05
BARS: dict[str, tuple[float | None, float | None]] = {
    f"{kind}_{what}_late_over_early": (None, most)
    for kind in KINDS
    for what, most in (("memory", MOST_MEMORY), ("time", MOST_TIME))
}
"""Least and most that a ratio may be."""


@dataclass(frozen=True, kw_only=True)
class MemorySetting:
    """The stream and the model: a ViT-small of patches of 16 pixels."""

    minutes: float = 60.0
    fps: float = 2.0
    num_frames: int = 16
    size: int = 112
    patch: int = 16
    dim: int = 384
    num_layers: int = 12
    num_heads: int = 6
    kept: int = 128
    """Tokens that stand for a segment, the paper's K."""
    segments: int = 16
    """The memory is full after so many."""
    window: int = 10
    """Segments that are early, and as many that are late."""
    rounds: int = 3
    """How often the windows are taken in again."""

    @property
    def num_segments(self) -> int:
        """Of the stream."""
        return int(self.minutes * 60 * self.fps / self.num_frames)

    @property
    def least_minutes(self) -> float:
        """Of a stream in which early and late are apart."""
        return (self.segments + 3 * self.window) * self.num_frames / self.fps / 60


def bench_memory(setting: MemorySetting, *, tell: Callable[[str], None] | None = None) -> dict[str, Any]:
    """Measure both kinds, one after the other.

    Raises:
        ConfigError: The stream is too short to tell early from late.
    """
    if not setting.least_minutes <= setting.minutes < float("inf"):
        raise ConfigError(
            f"bench memory over {setting.minutes:g} minutes; expected {setting.least_minutes:.3g} or more, since late "
            "is compared with the time when the memory was just full"
        )
    found: dict[str, Any] = {}
    for kind in KINDS:
        if tell:
            tell(f"memory of kind {kind}: {setting.num_segments} segments of {setting.num_frames} frames")
        found[kind] = measured_apart(__name__, json.dumps(asdict(setting)), kind, threads=1)
    ratios = {
        f"{kind}_{what}_late_over_early": found[kind][f"{what}_ratio"] for kind in KINDS for what in ("memory", "time")
    }
    return {"name": "memory", "ratios": ratios, "raw": {"bars": BARS, "setting": asdict(setting), **found}}


def measure_memory(setting: MemorySetting, kind: MemoryKind) -> dict[str, Any]:
    """Measure one kind in this process."""
    torch.manual_seed(0)
    model: Any = random_model(setting, kind)
    session: Session[Any] = Session(model, source="noise")
    segment = _segments(session.spec)
    early, late = setting.segments, setting.num_segments - setting.window
    resident: list[int] = []
    seconds: list[float] = []
    before: dict[int, Session[Any]] = {}
    for index in range(setting.num_segments):
        if index in (early, late):
            before[index] = session.fork()
        seconds.append(_timed(session, segment(index)))
        resident.append(resident_bytes())
    pairs = _again(before, segment, setting)
    # the fork before the early window is held from then on: both samples are taken with it, and before the late one
    first, final = resident[early + 5 : early + setting.window], resident[late - setting.window : late]
    tenth = max(1, len(seconds) // 10)
    return {
        "memory_ratio": median(final) / median(first),
        "time_ratio": median(last / start for start, last in pairs),
        "plain_time_ratio": median(seconds[-tenth:]) / median(seconds[early : early + tenth]),
        "segments": setting.num_segments,
        "state_bytes": [num_bytes(one.state) for one in (before[early], session)],
        "resident_bytes": [median(first), median(final), max(resident)],
        "segment_seconds": [median(side) for side in zip(*pairs, strict=True)],
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }


def random_model(setting: MemorySetting, kind: MemoryKind) -> MCViT:
    """The real class with random weights."""
    return MCViT(
        MCViTConfig(
            num_frames=setting.num_frames,
            fps=setting.fps,
            encoder=VideoTransformerConfig(
                tubelet=TubeletConfig(size=setting.size, patch=setting.patch, position_frames=setting.num_frames),
                dim=setting.dim,
                num_layers=setting.num_layers,
                num_heads=setting.num_heads,
                mlp_dim=4 * setting.dim,
            ),
            memory=MemoryConfig(variant="mc-km", kind=kind, size=setting.kept, segments=setting.segments),
        )
    ).eval()


def _again(
    before: dict[int, Session[Any]], segment: Callable[[int], Segment], setting: MemorySetting
) -> Sequence[tuple[float, float]]:
    """CPU seconds of each early segment beside its late one, taken in by turns from the sessions that were kept."""
    (early, first), (late, final) = sorted(before.items())
    pairs: list[tuple[float, float]] = []
    for turn in range(setting.rounds):
        sides = {early: first.fork(), late: final.fork()}
        for number in range(setting.window):
            order = (early, late) if (number + turn) % 2 else (late, early)  # neither always goes first
            taken = {start: _timed(sides[start], segment(start + number)) for start in order}
            pairs.append((taken[early], taken[late]))
    return pairs


def _timed(session: Session[Any], segment: Segment) -> float:
    started = thread_time()
    session.advance(segment)
    return thread_time() - started


def _segments(spec: SegmentSpec) -> Callable[[int], Segment]:
    """Segment number so and so of a stream of noise that repeats itself."""
    shape = (4, spec.num_frames, 3, spec.height, spec.width)
    pictures: Tensor = torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(0))

    def segment(index: int) -> Segment:
        start = index * spec.seconds
        return Segment(
            pixels=pictures[index % len(pictures)],
            pts_seconds=tuple(start + frame / spec.fps for frame in range(spec.num_frames)),
            index=index,
            start_seconds=start,
            end_seconds=start + spec.seconds,
        )

    return segment


if __name__ == "__main__":
    torch.set_num_threads(1)
    wanted, memory_kind = json.loads(sys.argv[1]), sys.argv[2]
    sys.stdout.write(json.dumps(measure_memory(MemorySetting(**wanted), memory_kind)))  # type: ignore[arg-type]
