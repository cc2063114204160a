"""The one protocol. ``session.py`` calls these members and no others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, TypeVar, runtime_checkable

from longtake.types import Request, Response, Segment, SegmentSpec

StateT = TypeVar("StateT")


@runtime_checkable
class StreamModel(Protocol[StateT]):
    """A model that takes in a video segment by segment and can be asked at any border.

    State is a value: a frozen dataclass of tensors, tuples and numbers. ``advance`` returns a new one and never
    writes into the one it was handed; ``respond`` never changes it. So asking forks for free and many streams share
    one model.
    """

    segment_spec: SegmentSpec
    """What ``video/`` must deliver."""
    supports: frozenset[type[Request]]
    """Requests that ``respond`` serves."""
    fingerprint: str
    """Digest of config and weights; a saved state is refused by a model with another one."""

    def init_state(self) -> StateT:
        """The state of a stream of which nothing has been seen."""
        ...

    def max_state_bytes(self) -> int:
        """Documented bound on ``num_bytes(state)`` at any time in any stream."""
        ...

    def advance(self, state: StateT, segment: Segment) -> StateT:
        """Take in one segment. Raises StateError for a state of another model or batch size."""
        ...

    def respond(self, state: StateT, request: Request) -> Iterator[Response]:
        """Answer from what has been seen. Raises UnsupportedRequest for a kind not in ``supports``."""
        ...
