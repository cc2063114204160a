"""One stream: any ``StreamModel`` over any source, with its clock, its decoding points, and snapshots to go on from.

A file and a camera take the same way: after every segment the model is asked for the events that ended in it. A session
points to a ``Position``, which is a value: so ``fork`` is free, a failed ``advance`` changes nothing, and a snapshot is
always whole.
"""

from __future__ import annotations

import copy
import logging
import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar, cast

import torch

from longtake.errors import CapacityError, ConfigError, HorizonReached, StateError, UnsupportedRequest
from longtake.language.tracker import EventTracker
from longtake.position import (
    Clock,
    Position,
    Snapshot,
    digest_of,
    read_snapshot,
    shifted,
    without_credentials,
    write_snapshot,
)
from longtake.protocol import StateT, StreamModel
from longtake.state.tree import num_bytes
from longtake.types import (
    Answer,
    Ask,
    Caption,
    Choose,
    Classify,
    Embed,
    Embedding,
    Event,
    Label,
    Progress,
    Request,
    Segment,
)
from longtake.video import OnLag, segments
from longtake.video.address import parse_address

logger = logging.getLogger(__name__)

ResponseT = TypeVar("ResponseT", Event, Answer, Label, Embedding)
SourceName: TypeAlias = str | os.PathLike[str]

CLOCK_SLACK_SECONDS = 1e-6
"""Two grid times closer than this are the same moment."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Step:
    """What ``Session.follow`` gives after each segment, and once more at the end of the stream."""

    segment: Segment | None
    """None at the end of the stream."""
    events: tuple[Event, ...]
    progress: Progress
    reason: str = ""
    """Why the stream ended before its source did: ``length`` if the model cannot take in more."""


class Session(Generic[StateT]):
    """One stream through one model; many sessions may share a model."""

    def __init__(
        self,
        model: StreamModel[StateT],
        *,
        source: str = "",
        fps: float | None = None,
        tracker: EventTracker | None = None,
        tells_events: bool = True,
    ) -> None:
        """Stand before the first frame.

        Args:
            source: Name of the source, kept in snapshots and messages.
            fps: Sampling rate other than the model's, if the model has a ``fps_range`` that allows it.
            tracker: Rules by which what the model says becomes events.
            tells_events: Ask the model for events at each decoding point; False for who only wants answers.

        Raises:
            ConfigError: The model does not run at that rate.
        """
        self.model = model
        self.source = without_credentials(source)
        self.spec = replace(model.segment_spec, fps=_allowed_fps(model, fps))
        """What ``longtake.segments`` must deliver."""
        self.tracker = tracker or EventTracker()
        self.tells_events = tells_events and Caption in model.supports
        self.notes: dict[str, Any] = {}
        """What the writer of the snapshot left, after ``resume``."""
        with torch.inference_mode():
            self._at = Position(state=model.init_state())
        self._pace = Progress(seen_seconds=0.0)
        self._work_seconds = self._taken_seconds = 0.0
        if getattr(model, "training", False):
            logger.warning("%s is in training mode, its answers may be random; call .eval()", type(model).__name__)

    def __enter__(self) -> Session[StateT]:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to close: a session holds values only."""

    @property
    def clock(self) -> Clock:
        """Where the session is in its source."""
        return self._at.clock

    @property
    def state(self) -> StateT:
        """The model's state after the last segment: a value, safe to keep."""
        return self._at.state

    @property
    def progress(self) -> Progress:
        """How far the session is, and how fast."""
        rate = self._taken_seconds / self._work_seconds if self._work_seconds > 0 else 0.0
        seen, size = self.clock.seen_seconds, num_bytes(self.state)
        return replace(self._pace, seen_seconds=seen, realtime_factor=rate, state_bytes=size)

    # --- the stream

    def advance(self, segment: Segment) -> list[Event]:
        """Take in one segment; the events that ended in it. On an error the session stays where it was.

        Raises:
            StateError: The segment begins before the end of the one before.
            CapacityError: The state grew beyond what the model promises.
        """
        started = time.perf_counter()
        self._check_order(segment)
        with torch.inference_mode():
            state = self.model.advance(self.state, segment)
            said = self._respond(state, Caption(), Event) if self.tells_events else []
        self._check_size(state, segment)
        tracked, events = self.tracker.track(self._at.tracked, said, now_seconds=segment.end_seconds)
        self._at = Position(state=state, tracked=tracked, clock=self.clock.after(segment, len(events)))
        self._work_seconds += time.perf_counter() - started
        self._taken_seconds += segment.end_seconds - segment.start_seconds
        return events

    def finish(self) -> list[Event]:
        """The stream has ended: the events that were held back, and what the model has still to tell."""
        state, said = self.state, list[Event]()
        tell = cast("Callable[[StateT], tuple[StateT, list[Event]]] | None", getattr(self.model, "last_words", None))
        if tell and self.tells_events:
            with torch.inference_mode():
                state, said = tell(state)
        tracked, told = self._at.tracked, list[Event]()
        if said:
            tracked, told = self.tracker.track(tracked, said, now_seconds=self.clock.seen_seconds)
        tracked, events = self.tracker.finish(tracked)
        events = [*told, *events]
        clock = replace(self.clock, num_events=self.clock.num_events + len(events))
        self._at = Position(state=state, tracked=tracked, clock=clock)
        return events

    def follow(self, stream: Iterable[Segment]) -> Generator[Step, None, None]:
        """Take in a stream, or any segments in order, step by step, to its end or to the model's horizon."""
        parts = iter(stream)
        live = bool(getattr(stream, "is_live", False))
        shift_seconds = None
        while True:
            started = time.perf_counter()
            segment = next(parts, None)
            if not live:
                self._work_seconds += time.perf_counter() - started  # a camera is waited for, a file is worked on
            self._pace = _pace_of(stream)
            if live and segment:
                # a camera has no past to go back to: opened again, its time goes on from where the session stands
                if shift_seconds is None:
                    shift_seconds = max(0.0, self.clock.seen_seconds - segment.start_seconds)
                segment = shifted(segment, shift_seconds)
            reason = ""
            try:
                events = self.advance(segment) if segment else self.finish()
            except HorizonReached as error:
                logger.warning("%s: %s", self.source or "stream", error)
                segment, reason, events = None, "length", self.finish()
            yield Step(segment=segment, events=tuple(events), progress=self.progress, reason=reason)
            if segment is None:
                return

    def watch(
        self, source: SourceName, *, on_lag: OnLag = "wait", timeout_seconds: float = 10.0
    ) -> Generator[Step, None, None]:
        """Open a source and follow it: from its start, or from where this session stands.

        ``timeout_seconds`` is the longest wait without a sign of life from the source.

        Raises:
            SourceError: It cannot be opened or read.
            StateError: The session saw another source.
        """
        again = self.clock.num_segments > 0 and not parse_address(source).is_live
        start_seconds = self.clock.last_start_seconds if again else 0.0
        index = self.clock.num_segments - int(again)
        with segments(
            source,
            self.spec,
            on_lag=on_lag,
            start_seconds=start_seconds,
            first_index=index,
            timeout_seconds=timeout_seconds,
        ) as stream:
            if again:
                self.check_source(next(stream, None), name=str(source))
            yield from self.follow(stream)
            for warning in stream.report.warnings:
                logger.warning("%s: %s", without_credentials(str(source)), warning)

    def check_source(self, segment: Segment | None, *, name: str = "") -> None:
        """Raise StateError unless ``segment`` has the frames that this session took in last."""
        if segment is None or digest_of(self.clock.digest_before, segment) != self.clock.digest:
            found = "no frames" if segment is None else "other frames"
            raise StateError(
                f"state was saved at {self.clock.seen_seconds:g} s of {self.source or 'its source'}, but "
                f"{without_credentials(name) or 'this source'} has {found} there; give the source it was saved with"
            )

    # --- questions: they do not disturb the stream

    def ask(self, question: str, options: Iterable[str] = ()) -> Answer:
        """Answer a question from what has been seen; with ``options``, choose one of them."""
        return self.choose(question, options) if options else self._answer(Ask(question=question), Answer)[0]

    def choose(self, question: str, options: Iterable[str]) -> Answer:
        """Choose one of the options from what has been seen."""
        return self._answer(Choose(question=question, options=tuple(options)), Answer)[0]

    def classify(self, labels: Iterable[str] = (), *, top: int = 5, prompt: str | None = None) -> list[Label]:
        """The most probable labels; without ``labels``, of those the model was trained with.

        ``prompt`` says how a label is put as text, ``{}`` in its place; None: the model's own way.
        """
        return self._answer(Classify(labels=tuple(labels), top=top, prompt=prompt), Label)

    def embed(self) -> Embedding:
        """One vector for what has been seen, since the last ``begin_stretch`` if there was one."""
        return self._answer(Embed(), Embedding)[0]

    def begin_stretch(self) -> None:
        """From here on the model's answers are about what comes now; what came before stays in its memory.

        Raises:
            UnsupportedRequest: The model sees a video as a whole only.
        """
        begin = cast("Callable[[StateT], StateT] | None", getattr(self.model, "begin_stretch", None))
        if begin is None:
            raise UnsupportedRequest(f"{type(self.model).__name__} has no vectors for stretches of a video")
        self._at = replace(self._at, state=begin(self.state))

    def unfamiliar(self) -> str | None:
        """Why what was seen looks unlike what the model was trained on, if the model can tell."""
        tell = cast("Callable[[StateT], str | None] | None", getattr(self.model, "unfamiliar", None))
        with torch.inference_mode():
            return tell(self.state) if tell else None

    # --- copy, pause, go on

    def fork(self) -> Session[StateT]:
        """A session of its own that stands where this one does."""
        return copy.copy(self)

    def save(self, path: str | Path, *, notes: Mapping[str, Any] | None = None) -> None:
        """Write a snapshot, whole or not at all; ``notes`` are plain values for whoever resumes."""
        snapshot = Snapshot(
            source=self.source,
            fps=self.spec.fps,
            tracker=self.tracker,
            tracked=self._at.tracked,
            clock=self.clock,
            notes=dict(notes or {}),
        )
        write_snapshot(path, snapshot, self.state, self.model.fingerprint)

    @classmethod
    def resume(cls, model: StreamModel[StateT], path: str | Path, *, tells_events: bool = True) -> Session[StateT]:
        """A session that stands where the saved one did; ``tells_events`` as for a new one.

        Raises:
            StateError: The snapshot is missing or damaged, or of another model or version.
        """
        snapshot, state = read_snapshot(path, model)
        session = cls(
            model, source=snapshot.source, fps=snapshot.fps, tracker=snapshot.tracker, tells_events=tells_events
        )
        session.notes = snapshot.notes
        session._at = Position(state=state, tracked=snapshot.tracked, clock=snapshot.clock)
        return session

    # --- checks, and the one place where a model is asked

    def _answer(self, request: Request, kind: type[ResponseT]) -> list[ResponseT]:
        with torch.inference_mode():
            return self._respond(self.state, request, kind)

    def _respond(self, state: StateT, request: Request, kind: type[ResponseT]) -> list[ResponseT]:
        name, asked = type(self.model).__name__, type(request)
        if asked not in self.model.supports:
            served = ", ".join(sorted(one.__name__ for one in self.model.supports))
            raise UnsupportedRequest(f"{name} does not serve {asked.__name__}, it serves {served}; load another model")
        responses = [one for one in self.model.respond(state, request) if isinstance(one, kind)]
        if not responses and kind in (Answer, Embedding):
            raise StateError(f"{name} gave no answer to {asked.__name__}; was anything seen yet?")
        return responses

    def _check_order(self, segment: Segment) -> None:
        if segment.start_seconds < self.clock.seen_seconds - CLOCK_SLACK_SECONDS:
            raise StateError(
                f"segment {segment.index} starts at {segment.start_seconds:g} s but the stream is already at "
                f"{self.clock.seen_seconds:g} s; segments must come in order of time (a new Session starts at 0)"
            )

    def _check_size(self, state: StateT, segment: Segment) -> None:
        size, most = num_bytes(state), self.model.max_state_bytes()
        if size > most:
            raise CapacityError(
                f"state has {size} bytes after segment {segment.index}, {type(self.model).__name__} promises {most} "
                "at most; this is a fault of the model"
            )


def caption(
    source: SourceName, model: StreamModel[Any] | str | Path, *, on_lag: OnLag = "wait", fps: float | None = None
) -> Iterator[Event]:
    """The events of a video or a stream, each as soon as it has ended.

    Args:
        source: A file, ``http(s)://``, ``rtsp://``, ``webcam:0``, a folder of images, or ``-``.
        model: A loaded model, or what ``longtake.load`` takes.
        on_lag: What to do when a live source is faster than the model.
        fps: As for ``Session``.

    Raises:
        UnsupportedRequest: The model says no events.
    """
    if isinstance(model, (str, Path)):
        from longtake.hub import load

        model = load(model)
    require_captions(model)
    session: Session[Any] = Session(model, source=str(source), fps=fps)
    return (event for step in session.watch(source, on_lag=on_lag) for event in step.events)


def require_captions(model: StreamModel[Any]) -> None:
    """Raise UnsupportedRequest unless the model says events."""
    if Caption not in model.supports:
        raise UnsupportedRequest(f"{type(model).__name__} says no events (Caption), only answers; load another model")


def _pace_of(stream: object) -> Progress:
    """What a ``SegmentStream`` knows of its source; segments without one are never late."""
    return Progress(
        seen_seconds=0.0,
        lag_seconds=getattr(stream, "lag_seconds", 0.0),
        dropped_frames=getattr(stream, "dropped_frames", 0),
        total_seconds=getattr(stream, "total_seconds", None),
    )


def _allowed_fps(model: StreamModel[Any], fps: float | None) -> float:
    usual = model.segment_spec.fps
    low, high = cast("tuple[float, float]", getattr(model, "fps_range", (usual, usual)))
    if fps is None or low <= fps <= high:
        return usual if fps is None else fps
    allowed = f"{usual:g} fps only" if low == high else f"{low:g} to {high:g} fps"
    raise ConfigError(f"sampling rate is {fps:g} fps, {type(model).__name__} runs at {allowed}; leave the rate out")
