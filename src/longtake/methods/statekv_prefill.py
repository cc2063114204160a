"""StateKV's prefill: chunk by chunk through a frozen decoder, with a bounded past and a detailed cache to answer from.

Source: docs/papers.md, StateKV.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

import torch
from torch import Tensor
from transformers.cache_utils import Cache

from longtake.state.kv import Carried, Rule, carry_on, empty_carried, per_query
from longtake.state.pages import MEMORY, Detailed, Summarise, Tier, added, chunk_page, no_summary, runs
from longtake.state.retrieval import Turn
from longtake.state.rows import Rows
from longtake.vlm.attention import listening
from longtake.vlm.cache import Past, chunk_cache, own_part

OutputT = TypeVar("OutputT")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KVState:
    """A stream as the decoder knows it."""

    carried: Carried
    detailed: Detailed = field(default_factory=Detailed)
    """Every chunk; read for answers only."""
    seen_tokens: int = 0
    """Not the number of kept ones."""
    origin: int = 0
    """The position that the model is told as 0: above 0 once the stream has gone beyond the horizon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """Where the detailed cache is held, and how much of it."""

    tier: Tier = MEMORY
    limit_bytes: int | None = None
    """Most that it may take in memory and on disk."""
    summarise: Summarise = no_summary
    """What is kept to find chunks by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which keys go on, and how many."""

    budget: int
    """Keys per layer and KV head."""
    rule: Rule
    listens: bool = True
    """Whether the rule looks at the attention that keys receive."""
    per_query: bool = False
    """Divide what a key received by the number of queries that could see it."""


def empty_state(layers: int, kv_heads: int, head_dim: int, *, dtype: torch.dtype, device: torch.device) -> KVState:
    return KVState(carried=empty_carried(layers, kv_heads, head_dim, dtype=dtype, device=device))


def take_in(
    state: KVState,
    forward: Callable[[Cache], OutputT],
    selection: Selection,
    *,
    holding: Holding = Holding(),
    start: int = 0,
    next_position: int = 0,
    end_seconds: float = 0.0,
) -> tuple[KVState, OutputT]:
    """One chunk: ``forward`` runs the decoder on it, once, over the cache it is handed.

    Args:
        state: Before the chunk; it stays as it is.
        forward: Of the model.
        selection: Which keys go on.
        holding: How all of them are held.
        start: Position at which the chunk begins.
        next_position: Where positions go on after it.
        end_seconds: End of the chunk on the stream's clock.

    Raises:
        CapacityError: There is no room left for the chunk.
    """
    carried = state.carried
    cache = chunk_cache(carried.keys, carried.values)
    scores: Tensor | None = None
    if selection.listens:
        with listening() as received:
            output = forward(cache)
        scores = torch.stack([received[layer] for layer in range(carried.keys.shape[0])])
    else:
        output = forward(cache)
    keys, values = own_part(cache)
    if scores is not None and selection.per_query:
        scores = per_query(scores, keys.shape[2])
    after = carry_on(
        carried,
        keys,
        values,
        scores,
        first_place=state.seen_tokens,
        start=start,
        budget=selection.budget,
        rule=selection.rule,
    )
    page = chunk_page(
        Rows(keys=keys, values=values),
        tier=holding.tier,
        summarise=holding.summarise,
        start=start,
        next_position=next_position,
        end_seconds=end_seconds,
        first_place=state.seen_tokens,
    )
    detailed = added(state.detailed, page, tier=holding.tier, limit_bytes=holding.limit_bytes)
    seen = state.seen_tokens + keys.shape[2]
    return replace(state, carried=after, detailed=detailed, seen_tokens=seen), output


def whole_past(state: KVState, turn: Turn | None = None) -> Iterator[list[Past]]:
    """The detailed cache layer by layer, as an answer reads it; ``turn`` is needed beyond the horizon."""
    dtype = state.carried.keys.dtype
    for layer in range(state.carried.keys.shape[0]):
        yield [
            _typed(turned_pair(page.rows.read(layer, slice(None), first, stop), by, turn), dtype)
            for page in state.detailed.all_pages()
            for first, stop, by in runs(page)
        ]


def _typed(pair: Past, dtype: torch.dtype) -> Past:
    return pair[0].to(dtype), pair[1].to(dtype)


def turned_pair(pair: Past, by: int, turn: Turn | None) -> Past:
    """Keys at the positions where they lie now."""
    if not by:
        return pair
    assert turn is not None, "a stream beyond its horizon is read with a turn"
    return turn(pair[0], by), pair[1]
