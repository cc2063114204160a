"""Frames of a script as training sees them: drawn straight away, or through an H.264 file and the reader as in use."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from longtake.data.toybox import Renderer, Script
from longtake.data.toybox.dice import Dice
from longtake.data.toybox.write import write_video
from longtake.types import SegmentSpec
from longtake.video import segments

SHOWN_SECONDS = 0.5
"""Least of an event that is seen where a stretch of video is drawn for it."""


def drawn(renderer: Renderer, times: Sequence[float] | np.ndarray) -> UInt8[Tensor, "time 3 height width"]:
    """The pictures at ``times`` (seconds)."""
    frames = np.stack([renderer.frame(float(time)) for time in times])
    return torch.from_numpy(frames).permute(0, 3, 1, 2).contiguous()


def through_file(script: Script, spec: SegmentSpec) -> UInt8[Tensor, "time 3 height width"]:
    """All frames as the reader delivers them from an mp4: with the traces of the codec and of its own resizing."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "video.mp4"
        write_video(script, path)
        with segments(path, spec) as stream:
            return torch.cat([segment.pixels for segment in stream])


def eventful_start(script: Script, dice: Dice, seconds: float) -> float:
    """Start of a stretch of ``seconds``, mostly where something happens.

    Rare actions come as often as common ones: events follow the story, which has few of some.
    """
    latest = script.seconds - seconds
    if script.events and dice.chance(0.85):
        action = dice.pick(sorted({event.action for event in script.events}))
        event = dice.pick([event for event in script.events if event.action == action])
        first, last = event.start_seconds - seconds + SHOWN_SECONDS, event.end_seconds - SHOWN_SECONDS
        return min(latest, max(0.0, dice.uniform(first, last)))
    return dice.uniform(0.0, latest)
