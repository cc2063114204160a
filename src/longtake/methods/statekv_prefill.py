"""StateKV's prefill: chunk by chunk through a frozen decoder, with a bounded past and a detailed cache to answer from.

Source: docs/papers.md, StateKV.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor
from transformers.cache_utils import Cache

from longtake.state.kv import Carried, Rule, carry_on, empty_carried, per_query
from longtake.vlm.attention import listening
from longtake.vlm.cache import Past, chunk_cache, own_part

OutputT = TypeVar("OutputT")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Block:
    """All keys and values of one chunk."""

    keys: Float[Tensor, "layers kv_heads chunk head_dim"]
    values: Float[Tensor, "layers kv_heads chunk head_dim"]
    end_seconds: float = 0.0
    """End of the chunk on the stream's clock."""
    next_position: int = 0
    """Where positions go on after it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KVState:
    """A stream as the decoder knows it."""

    carried: Carried
    detailed: tuple[Block, ...] = ()
    """Every chunk; read for answers only."""
    seen_tokens: int = 0
    """Not the number of kept ones."""


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
    end_seconds: float = 0.0,
    next_position: int = 0,
) -> tuple[KVState, OutputT]:
    """One chunk: ``forward`` runs the decoder on it, once, over the cache it is handed."""
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
        budget=selection.budget,
        rule=selection.rule,
    )
    grown = KVState(
        carried=after,
        detailed=(
            *state.detailed,
            Block(keys=keys, values=values, end_seconds=end_seconds, next_position=next_position),
        ),
        seen_tokens=state.seen_tokens + keys.shape[2],
    )
    return grown, output


def whole_past(state: KVState) -> list[list[Past]]:
    """The detailed cache by layer, as an answer reads it."""
    layers = state.carried.keys.shape[0]
    return [[(block.keys[layer], block.values[layer]) for block in state.detailed] for layer in range(layers)]
