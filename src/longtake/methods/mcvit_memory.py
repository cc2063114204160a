"""What each variant of MC-ViT takes from a segment into memory, and what it keeps of all segments."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from longtake.methods.mcvit_config import MCViTConfig, MemoryConfig
from longtake.state.consolidate import Memory, concatenated, coreset, kmeans, last, random, sampled
from longtake.vision.video_transformer import Keep

CONSOLIDATE: dict[str, Callable[..., Tensor]] = {"mc-r": random, "mc-cs": coreset, "mc-km": kmeans}
"""Variant -> how a segment's tokens become few."""


def keeper(config: MCViTConfig, pools: nn.ModuleList | None, *, times: int, seed: int) -> Keep | None:
    """What the variant keeps of a layer's inputs; None if it has no memory.

    Args:
        pools: ``memvit``'s, one per layer.
        times: Tubelets along time in the segment.
        seed: Of this segment in this stream.
    """
    memory, tubelet = config.memory, config.encoder.tubelet
    if not memory.remembers:
        return None
    if memory.variant == "ma":
        return lambda inputs, layer: inputs.detach()
    if memory.variant == "memvit":
        assert pools is not None
        return lambda inputs, layer: pools[layer](inputs, times, tubelet.size // tubelet.patch)
    return lambda inputs, layer: _consolidated(inputs, memory, seed=mixed(seed, layer))


def _consolidated(inputs: Tensor, memory: MemoryConfig, *, seed: int) -> Tensor:
    """A layer's inputs become few; distances are never taken in bf16 for autocast's sake, which would mix them up."""
    with torch.autocast(inputs.device.type, enabled=False):
        return CONSOLIDATE[memory.variant](inputs[None], memory.size, seed=seed)[0]


def remembered(memory: Memory, kept: list[Tensor], config: MCViTConfig, *, seed: int) -> Memory:
    """The memory after a segment of which ``kept`` was kept, layer by layer."""
    fresh = torch.stack(kept)
    if config.memory.keeps_everything:
        return concatenated(memory, fresh)
    if config.memory.kind == "last":
        return last(memory, fresh, segments=config.memory.segments)
    return sampled(memory, fresh, capacity=config.capacity, seed=seed)


def visible(config: MemoryConfig, num_tokens: int, *, seed: int) -> Tensor | None:
    """Places of the tokens that are left when ``mask`` of them are left out at random; None: all."""
    if not config.mask:
        return None
    count = max(1, round(num_tokens * (1 - config.mask)))
    order = torch.randperm(num_tokens, generator=torch.Generator().manual_seed(seed))
    return order[:count].sort().values


def mixed(seed: int, number: int) -> int:
    """A seed for the ``number``-th draw of those that ``seed`` stands for."""
    return (seed * 1_000_003 + number + 1) % 2**63
