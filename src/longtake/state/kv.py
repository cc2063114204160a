"""What StateKV carries from chunk to chunk, and the rules by which it is chosen.

A stream is taken in chunk by chunk (a frame's tokens, or text). In each layer and KV head at most ``budget`` keys and
values are carried into the next chunk: those that the present chunk's queries attended to most (``statekv``), or by a
rule of the baselines. Rules are functions from scores to slots; slots lie in order of time: ``recency`` needs no more.

Source: docs/papers.md, StateKV; the reference implementation's rule is ``statekv`` with one selection per KV head.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from longtake.errors import ConfigError

NUM_SINKS = 4
"""First tokens of the stream that ``sink-recency`` keeps (StreamingLLM)."""

Rule: TypeAlias = Callable[[Float[Tensor, "layers kv_heads keys"], int, int], Int[Tensor, "layers kv_heads kept"]]
"""``(scores, budget, seed) -> slots``: which keys go on, oldest first; ``seed`` differs from chunk to chunk."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Carried:
    """The past that the next chunk's queries see, oldest first."""

    keys: Float[Tensor, "layers kv_heads kept head_dim"]
    """Rotated once, at their own positions."""
    values: Float[Tensor, "layers kv_heads kept head_dim"]
    places: Int[Tensor, "layers kv_heads kept"]
    """Number of each key's token in its stream, from 0."""
    starts: Int[Tensor, "layers kv_heads kept"]
    """Position at which the chunk of each key begins."""


def empty_carried(
    layers: int, kv_heads: int, head_dim: int, *, dtype: torch.dtype, device: torch.device | str
) -> Carried:
    """Nothing has been seen."""
    nothing = torch.zeros(layers, kv_heads, 0, head_dim, dtype=dtype, device=device)
    places = torch.zeros(layers, kv_heads, 0, dtype=torch.int64, device=device)
    return Carried(keys=nothing, values=nothing, places=places, starts=places)


def carry_on(
    carried: Carried,
    keys: Float[Tensor, "layers kv_heads chunk head_dim"],
    values: Float[Tensor, "layers kv_heads chunk head_dim"],
    scores: Float[Tensor, "layers kv_heads keys"] | None,
    *,
    first_place: int,
    start: int,
    budget: int,
    rule: Rule,
) -> Carried:
    """The carried part after a chunk: of what was carried and the chunk's own, what ``rule`` chooses.

    Args:
        carried: Before the chunk.
        keys: The chunk's own, rotated.
        values: Likewise.
        scores: Attention that each carried and new key received; None for rules that do not look at it.
        first_place: Number of the chunk's first token in its stream.
        start: Position at which the chunk begins.
        budget: Most keys per layer and KV head.
        rule: One of ``RULES``.
    """
    layers, kv_heads, chunk = keys.shape[:3]
    places = torch.arange(first_place, first_place + chunk, device=keys.device).expand(layers, kv_heads, -1)
    every = Carried(
        keys=torch.cat([carried.keys, keys], dim=2),
        values=torch.cat([carried.values, values], dim=2),
        places=torch.cat([carried.places, places], dim=2),
        starts=torch.cat([carried.starts, torch.full_like(places, start)], dim=2),
    )
    total = every.keys.shape[2]
    if total <= budget:
        return every
    if scores is None:
        scores = torch.zeros(layers, kv_heads, total, device=keys.device)
    return kept(every, rule(scores, budget, first_place))


def kept(every: Carried, slots: Int[Tensor, "layers kv_heads kept"]) -> Carried:
    """The chosen slots, gathered anew."""
    rows = slots[..., None].expand(-1, -1, -1, every.keys.shape[-1])
    return Carried(
        keys=every.keys.gather(2, rows),
        values=every.values.gather(2, rows),
        places=every.places.gather(2, slots),
        starts=every.starts.gather(2, slots),
    )


def statekv(
    scores: Float[Tensor, "layers kv_heads keys"],
    budget: int,
    seed: int = 0,
    *,
    per_layer: bool = False,
    num_sinks: int = 0,
) -> Int[Tensor, "layers kv_heads kept"]:
    """The ``budget`` keys that received most attention.

    Args:
        scores: Attention received, per KV head.
        budget: Keys to keep.
        seed: Not used.
        per_layer: One selection per layer, by the scores of all its heads together, instead of one per KV head.
        num_sinks: First tokens of the stream that are kept whatever they received.
    """
    if per_layer:
        scores = scores.sum(1, keepdim=True).expand_as(scores)
    if num_sinks:
        scores = scores.clone()
        scores[..., :num_sinks] = torch.inf
    return scores.topk(budget, dim=-1, sorted=False).indices.sort(-1).values


def recency(
    scores: Float[Tensor, "layers kv_heads keys"], budget: int, seed: int = 0
) -> Int[Tensor, "layers kv_heads kept"]:
    """The newest keys (ReKV's prefill)."""
    total = scores.shape[-1]
    newest = torch.arange(total - budget, total, device=scores.device)
    return newest.expand(*scores.shape[:-1], -1)


def sink_recency(
    scores: Float[Tensor, "layers kv_heads keys"], budget: int, seed: int = 0
) -> Int[Tensor, "layers kv_heads kept"]:
    """The first tokens of the stream and the newest (StreamingLLM)."""
    total, sinks = scores.shape[-1], min(NUM_SINKS, budget)
    slots = [*range(sinks), *range(total - budget + sinks, total)]
    return torch.tensor(slots, device=scores.device).expand(*scores.shape[:-1], -1)


def at_random(
    scores: Float[Tensor, "layers kv_heads keys"], budget: int, seed: int = 0
) -> Int[Tensor, "layers kv_heads kept"]:
    """Any keys, the same ones for the same seed."""
    noise = torch.rand(scores.shape, generator=torch.Generator().manual_seed(seed)).to(scores.device)
    return noise.topk(budget, dim=-1, sorted=False).indices.sort(-1).values


def everything(
    scores: Float[Tensor, "layers kv_heads keys"], budget: int, seed: int = 0
) -> Int[Tensor, "layers kv_heads kept"]:
    """All keys, whatever the budget: full attention."""
    return torch.arange(scores.shape[-1], device=scores.device).expand(*scores.shape[:-1], -1)


RULES: dict[str, Rule] = {
    "statekv": statekv,
    "sink-recency": sink_recency,
    "recency": recency,
    "random": at_random,
    "full": everything,
}
"""By the names of ``--policy``."""


def rule_named(policy: str, *, per_layer: bool = False, num_sinks: int = 0) -> Rule:
    """The rule for a policy, with those of the options that it has. Raises ConfigError for a name it does not know."""
    if policy not in RULES:
        raise ConfigError(f"policy is {policy!r}, expected one of {', '.join(RULES)}")
    if policy != "statekv":
        return RULES[policy]
    return lambda scores, budget, seed: statekv(scores, budget, seed, per_layer=per_layer, num_sinks=num_sinks)


def per_query(scores: Float[Tensor, "layers kv_heads keys"], num_chunk: int) -> Float[Tensor, "layers kv_heads keys"]:
    """Scores divided by the number of the chunk's queries that could see the key: all see a carried one, later ones
    fewer."""
    could_see = torch.full((scores.shape[-1],), float(num_chunk), device=scores.device)
    could_see[-num_chunk:] = torch.arange(num_chunk, 0, -1, device=scores.device)
    return scores / could_see
