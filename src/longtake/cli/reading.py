"""A source taken in to its end, with progress shown and snapshots kept: what ask, classify and embed share."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longtake.cli.snapshots import Pace
from longtake.cli.sources import short_name
from longtake.cli.terminal import StatusLine
from longtake.errors import CapacityError, LongtakeError, StateError
from longtake.session import Session, Step
from longtake.video import OnLag
from longtake.video.address import parse_address


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a source is read, and how far."""

    source: str
    name: str = ""
    """Shown beside the progress; empty where there is but one source."""
    seconds: float | None = None
    """At most so much now."""
    until: float | None = None
    """At most to this moment of the video."""
    save: Path | None = None
    on_lag: OnLag = "wait"
    timeout_seconds: float = 10.0


def read(
    session: Session[Any], how: Reading, status: StatusLine, *, on_step: Callable[[Step], None] | None = None
) -> str:
    """Take the source in, as far as it is wanted; whatever happens, ``how.save`` has what was taken in.

    What is given is the reason why the model took in no more, or nothing.
    """
    reason = ""
    if how.seconds == 0:
        return reason
    pace, began = Pace(how.save) if how.save else None, session.clock.seen_seconds
    try:
        steps = session.watch(how.source, on_lag=how.on_lag, timeout_seconds=how.timeout_seconds)
        with closing(steps):
            for step in steps:
                if pace:
                    pace.save(session, session.notes, now=False)
                status.show(how.name, step.progress)
                reason = step.reason
                if on_step is not None:
                    on_step(step)
                if _is_enough(how, session, began):
                    break
    except StateError:
        raise  # another source than the state's: nothing was taken in
    except (LongtakeError, KeyboardInterrupt):
        if pace and session.clock.num_segments:
            pace.save(session, session.notes, now=True)
        raise
    finally:
        status.clear()
    if pace:
        pace.save(session, session.notes, now=True)
    return reason


def can_answer(error: BaseException, source: str, session: Session[Any]) -> bool:
    """Whether what was seen until reading stopped is worth an answer.

    A camera has no end that could be missed; of a video too long for the model there is nothing better to be had.
    """
    if isinstance(error, StateError) or not session.clock.num_segments:
        return False
    return isinstance(error, CapacityError) or is_endless(source)


def stopped(source: str, session: Session[Any], save: Path | None, *, what: str = "answered") -> str:
    """What is left of a run that was interrupted."""
    seen = session.clock.seen_seconds
    kept = f"; go on with --resume {save}" if save and session.clock.num_segments else ""
    return f"stopped at {seen:g} s of {short_name(source)}, nothing was {what}{kept}"


def is_endless(source: str) -> bool:
    """A camera or a pipe."""
    try:
        address = parse_address(source)
    except LongtakeError:
        return False
    return address.is_live or address.kind == "pipe"


def lasting(name: str) -> str:
    """A model's name as it will still be found from another folder."""
    return str(Path(name).resolve()) if Path(name).expanduser().is_dir() else name


def _is_enough(how: Reading, session: Session[Any], began: float) -> bool:
    seen = session.clock.seen_seconds
    if how.seconds is not None and seen - began >= how.seconds - 1e-6:
        return True
    # a segment that ends later is not needed for this moment, nor is the rest
    return how.until is not None and seen >= how.until - 1e-6
