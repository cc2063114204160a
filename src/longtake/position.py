"""Where a session stands: all that the rest of its stream depends on, as one value, and the same in a file.

A snapshot holds the model's state, what the event tracker remembers, the clock, and a digest of the frames seen. It is
refused, with the reason, by another model, another version, or at another source.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, cast

import torch

from longtake.config import from_dict
from longtake.errors import ConfigError, StateError
from longtake.language.tracker import EventTracker, TrackerState
from longtake.protocol import StateT, StreamModel
from longtake.state.tree import load_extra, load_state, map_tensors, save_state
from longtake.types import Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Where a session is in its source."""

    seen_seconds: float = 0.0
    """End of the last segment; the next one starts here or later."""
    last_start_seconds: float = 0.0
    """Start of the last segment, which is read again on resuming, to know the source by its frames."""
    num_segments: int = 0
    num_events: int = 0
    """Events given so far."""
    digest: str = ""
    """Of all frames seen: each segment's digest is made over the one before."""
    digest_before: str = ""
    """The same without the last segment."""

    def after(self, segment: Segment, num_events: int) -> Clock:
        """The clock once ``segment`` is taken in and has given ``num_events``."""
        return Clock(
            seen_seconds=segment.end_seconds,
            last_start_seconds=segment.start_seconds,
            num_segments=self.num_segments + 1,
            num_events=self.num_events + num_events,
            digest=digest_of(self.digest, segment),
            digest_before=self.digest,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Position(Generic[StateT]):
    """Everything that the rest of a stream depends on, but the model and the source."""

    state: StateT
    tracked: TrackerState = field(default_factory=TrackerState)
    clock: Clock = field(default_factory=Clock)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What a snapshot file holds beside the model's state."""

    source: str
    """Name of the source, without user name and password."""
    fps: float
    """Sampling rate."""
    tracker: EventTracker
    tracked: TrackerState
    clock: Clock
    notes: dict[str, Any] = field(default_factory=dict[str, Any])
    """Plain values that the writer left for the reader."""


def write_snapshot(path: str | Path, snapshot: Snapshot, state: object, fingerprint: str) -> None:
    """Write a snapshot, whole or not at all."""
    save_state(path, state, fingerprint=fingerprint, extra={"session": asdict(snapshot)})


def read_snapshot(path: str | Path, model: StreamModel[StateT]) -> tuple[Snapshot, StateT]:
    """Read a snapshot made with ``model``.

    Raises:
        StateError: It is missing or damaged, or of another model or version.
    """
    start = model.init_state()
    state, extra = load_state(path, type(start), fingerprint=model.fingerprint, device=_device_of(start))
    settle = cast("Callable[[StateT], StateT] | None", getattr(model, "settle", None))
    state = settle(state) if settle else state
    session = extra.get("session")
    if not isinstance(session, Mapping):
        raise StateError(f"{path} holds a state without its session; expected a snapshot written by Session.save")
    try:
        return from_dict(Snapshot, cast("Mapping[str, Any]", session), where=str(path)), state
    except ConfigError as error:
        raise StateError(f"{path} holds no session of this version ({error}); start anew") from error


def read_notes(path: str | Path) -> dict[str, Any]:
    """What the writer of a snapshot left for its reader, known before the model is; empty if that is nothing.

    Raises:
        StateError: No snapshot, or one of another version.
    """
    session = load_extra(path).get("session")
    notes = cast("Mapping[str, Any]", session).get("notes") if isinstance(session, Mapping) else None
    return dict(cast("Mapping[str, Any]", notes)) if isinstance(notes, Mapping) else {}


def _device_of(state: object) -> torch.device:
    devices: list[torch.device] = []

    def note(tensor: torch.Tensor) -> torch.Tensor:
        devices.append(tensor.device)
        return tensor

    map_tensors(state, note)
    return devices[0] if devices else torch.device("cpu")


def digest_of(before: str, segment: Segment) -> str:
    """Digest of all frames up to and with ``segment``; times count to the microsecond."""
    times = " ".join(f"{moment:.6f}" for moment in segment.pts_seconds)
    digest = hashlib.sha256(f"{before} {tuple(segment.pixels.shape)} {times}\n".encode())
    digest.update(segment.pixels.detach().cpu().contiguous().numpy().data)
    return digest.hexdigest()


def shifted(segment: Segment, seconds: float) -> Segment:
    """The same frames, ``seconds`` later."""
    return replace(
        segment,
        pts_seconds=tuple(moment + seconds for moment in segment.pts_seconds),
        start_seconds=segment.start_seconds + seconds,
        end_seconds=segment.end_seconds + seconds,
    )


def without_credentials(source: str) -> str:
    """The name of a source as it may be shown and stored: no user name and password."""
    return re.sub(r"(?<=://)[^/@\s]*@", "", source)
