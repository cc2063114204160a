"""``--save`` and ``--resume``: the session's snapshot, and beside it a journal of the events said so far.

For each segment the events are first put in the journal, then shown, then the snapshot is written, with the journal's
length in it. So at any moment, also after SIGKILL, snapshot and journal together are one whole: what the journal holds
beyond that length was said after the snapshot and will be said again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from longtake.cli.sources import JOURNAL_SUFFIX
from longtake.config import from_dict
from longtake.errors import ConfigError, StateError
from longtake.files import write_whole
from longtake.session import Session
from longtake.types import Event

PATIENCE = 20
"""A snapshot that follows no event waits until this many times its cost has passed."""


def journal_of(state: Path) -> Path:
    """The journal beside a snapshot."""
    return state.with_name(state.name + JOURNAL_SUFFIX)


def said_before(state: Path, session: Session[Any]) -> list[Event]:
    """The events that a resumed session said before it was saved.

    Raises:
        StateError: The journal is missing, or is not that of this snapshot.
    """
    path, length = journal_of(state), session.notes.get("journal_bytes")
    try:
        text = path.read_bytes()[:length].decode()
        lines = (json.loads(line, parse_constant=_refuse_constant) for line in text.splitlines())
        events = [from_dict(Event, line, where=path.name) for line in lines]
    except (OSError, ValueError, ConfigError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise StateError(f"journal {path} of the state cannot be read ({reason}); keep the two side by side") from error
    if len(text.encode()) != length or len(events) != session.clock.num_events:
        raise StateError(
            f"journal {path} has {len(events)} events, its state said {session.clock.num_events}; "
            "they do not belong together"
        )
    return events


class Pace:
    """Decides when a snapshot is worth its cost, and writes it."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._saved_at = self._cost = 0.0

    def save(self, session: Session[Any], notes: Mapping[str, Any], *, now: bool) -> None:
        """Write the snapshot; unless ``now``, only if it is cheap for the time since the last one."""
        started = time.monotonic()
        if not (now or started - self._saved_at >= PATIENCE * self._cost):
            return
        session.save(self._state, notes=notes)
        self._saved_at = time.monotonic()
        self._cost = self._saved_at - started


class Snapshots:
    """Keeps snapshot and journal of one running session."""

    def __init__(self, state: Path, *, said: Iterable[Event] = (), resumed: Path | None = None) -> None:
        """Nothing is written before the first segment has gone well.

        Args:
            said: Events from before the pause.
            resumed: The snapshot that the session was resumed from.
        """
        self._state = state
        self._said = list(said)
        self._same = resumed is not None and resumed.resolve() == state.resolve()
        self._journal: IO[str] | None = None
        self._pace = Pace(state)

    def record(self, events: Iterable[Event]) -> None:
        """Put events in the journal, before they are shown."""
        if self._journal is None:
            self._journal = self._begin()
        self._journal.writelines(_line(event) for event in events)
        self._journal.flush()

    def save(self, session: Session[Any], *, now: bool) -> None:
        """Write the snapshot; unless ``now``, only if it is cheap for the time since the last one."""
        if self._journal is not None:
            self._pace.save(session, session.notes | {"journal_bytes": self._journal.tell()}, now=now)

    def __enter__(self) -> Snapshots:
        return self

    def __exit__(self, *_: object) -> None:
        if self._journal is not None:
            self._journal.close()

    def _begin(self) -> IO[str]:
        if not self._same:
            self._state.unlink(missing_ok=True)  # an old snapshot does not fit the new journal
        journal = journal_of(self._state)
        write_whole(journal, "".join(_line(event) for event in self._said))
        file = journal.open("a", encoding="utf-8", newline="\n")
        file.seek(0, 2)
        return file


def _refuse_constant(name: str) -> float:
    raise ValueError(f"it holds {name}")


def _line(event: Event) -> str:
    return json.dumps(asdict(event)) + "\n"
