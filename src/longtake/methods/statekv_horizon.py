"""What happens when a stream comes to the end of the positions that its model was made for.

A stream uses positions from its oldest carried key, or its beginning, to the end of an answer. ``stop`` takes no more
in. ``reanchor`` lets the oldest carried key be the new beginning: all keys are turned by one common shift, which leaves
every attention score as it is; what lies before it is no longer read by answers. It helps policies that let go of the
oldest keys (``recency``); while the first tokens of the stream are carried there is nothing to gain, and the stream
stops. ``compact`` halves every distance to the present, chunk by chunk: nothing is let go, and it is approximate.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Literal

from longtake.errors import HorizonReached
from longtake.methods.statekv_prefill import KVState
from longtake.state.pages import moved, since
from longtake.state.retrieval import Turn

logger = logging.getLogger(__name__)

WARN_AT = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Horizon:
    """How far positions reach, and what comes then."""

    positions: int
    """For the stream; those of a question and its answer are set apart already."""
    at_end: Literal["stop", "reanchor", "compact"] = "stop"

    def room_for(self, kv: KVState, start: int, next_position: int, turn: Turn) -> KVState:
        """The state with room for a chunk from ``start`` to ``next_position``.

        Raises:
            HorizonReached: There is none.
        """
        if self.at_end == "compact":
            while next_position - kv.origin > self.positions and start > kv.origin:
                kv = compacted(kv, start, turn)
        elif self.at_end == "reanchor" and next_position - kv.origin > self.positions and kv.carried.starts.numel():
            kv = reanchored(kv, int(kv.carried.starts.min()), turn)
        if next_position - kv.origin > self.positions:
            raise HorizonReached(self._why(next_position - kv.origin))
        return kv

    def warn(self, kv: KVState, start: int, next_position: int) -> None:
        """Once per stream, with the chunk that passes 80 % of the positions."""
        if not kv.origin and start <= WARN_AT * self.positions < next_position:
            logger.warning(
                "%d of %d positions are used, which is as far as this model's rotary scaling reaches; then: %s "
                "(at_horizon)",
                next_position,
                self.positions,
                self.at_end,
            )

    def _why(self, needed: int) -> str:
        reason = "horizon reached: the stream would use"
        if self.at_end == "reanchor":
            reason = "horizon reached, and keys as old as the stream are still carried: it would use"
        return (
            f"{reason} {needed} positions of {self.positions}; what was seen can still be asked about. Give a longer "
            "horizon to a model whose scaling allows it, lower fps, or choose another at_horizon"
        )


def reanchored(kv: KVState, origin: int, turn: Turn) -> KVState:
    """The same stream with ``origin`` as the model's position 0: exact, for only distances count."""
    by = kv.origin - origin
    if not by:
        return kv
    carried = replace(kv.carried, keys=turn(kv.carried.keys, by))
    detailed = moved(since(kv.detailed, origin), lambda position: position, lambda start: by)
    return replace(kv, carried=carried, detailed=detailed, origin=origin)


def compacted(kv: KVState, now: int, turn: Turn) -> KVState:
    """Every chunk at half its distance to ``now``, as seen from its beginning; inside a chunk all stays as it was."""

    def closer(position: int) -> int:
        return now - (now - position) // 2

    starts = kv.carried.starts
    nearer = now - (now - starts) // 2
    carried = replace(kv.carried, keys=turn(kv.carried.keys, nearer - starts), starts=nearer)
    detailed = moved(kv.detailed, closer, lambda start: closer(start) - start)
    return reanchored(replace(kv, carried=carried, detailed=detailed), closer(kv.origin), turn)
