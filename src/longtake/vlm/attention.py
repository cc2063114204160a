"""Attention of one chunk over its past and itself, which also tells how much attention each key received.

Every query of a chunk sees all of the past (the keys before the chunk's own) and, of the chunk, itself and what comes
before it. ``attend`` is the plain form; ``register`` makes it an attention implementation of transformers, so that a
model's own unmodified forward runs on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional
from transformers import AttentionInterface
from transformers.cache_utils import Cache

from longtake.vlm.cache import ChosenLayer

IMPLEMENTATION = "longtake"
"""Name under which transformers knows this attention."""

_received: ContextVar[dict[int, Tensor] | None] = ContextVar("received", default=None)
_answering: ContextVar[Cache | None] = ContextVar("answering", default=None)


@contextmanager
def listening() -> Iterator[dict[int, Float[Tensor, "kv_heads keys"]]]:
    """Within the block, each layer's received attention is written into the dict it gives, by layer."""
    received: dict[int, Tensor] = {}
    token = _received.set(received)
    try:
        yield received
    finally:
        _received.reset(token)


@contextmanager
def looking_back(cache: Cache) -> Iterator[None]:
    """Within the block, layers of ``cache`` that choose their past are told the queries: transformers tells a cache
    only keys and values."""
    token = _answering.set(cache)
    try:
        yield
    finally:
        _answering.reset(token)


def attend_and_listen(
    query: Float[Tensor, "heads chunk head_dim"],
    key: Float[Tensor, "kv_heads keys head_dim"],
    value: Float[Tensor, "kv_heads keys head_dim"],
    scaling: float,
) -> tuple[Float[Tensor, "heads chunk head_dim"], Float[Tensor, "kv_heads keys"]]:
    """Outputs, and the attention that each key received: summed over the chunk's queries and the query heads of its
    group, which follow each other (softmax in float32 at least).

    The plain form, and the one that runs on CPUs. One KV head at a time: its scores are computed once and stay in the
    processor's cache, and no matrix of all heads is ever made. ``longtake bench kv`` measures it against bare products.
    """
    (heads, chunk, _), (kv_heads, keys, _) = query.shape, key.shape
    group = heads // kv_heads
    precise = torch.float64 if query.dtype == torch.float64 else torch.float32
    ahead = torch.ones(chunk, chunk, dtype=torch.bool, device=query.device).triu(1)
    rows = (query * scaling).unflatten(0, (kv_heads, group)).flatten(1, 2)
    outputs = value.new_empty(kv_heads, group * chunk, value.shape[-1])
    received = query.new_empty(kv_heads, keys, dtype=precise)
    scores, weights = query.new_empty(
        2, group * chunk, keys, dtype=precise
    )  # once: new memory costs as much as softmax
    for head in range(kv_heads):
        if precise == query.dtype:
            torch.mm(rows[head], key[head].T, out=scores)
        else:
            scores.copy_(rows[head] @ key[head].T)
        scores.unflatten(0, (group, chunk))[..., keys - chunk :].masked_fill_(ahead, -torch.inf)
        torch.softmax(scores, -1, out=weights)
        torch.sum(weights, 0, out=received[head])
        torch.mm(weights.to(value.dtype), value[head], out=outputs[head])
    return outputs.unflatten(1, (group, chunk)).flatten(0, 1), received


def on_device(device: torch.device) -> Callable[..., tuple[Tensor, Tensor]]:
    """The form that runs there: the tiled kernel on CUDA, else the plain one."""
    if device.type != "cuda":
        return attend_and_listen
    from longtake.vlm import kernel

    return kernel.attend_and_listen


def attend(
    query: Float[Tensor, "heads chunk head_dim"],
    key: Float[Tensor, "kv_heads keys head_dim"],
    value: Float[Tensor, "kv_heads keys head_dim"],
    scaling: float,
    hidden: Bool[Tensor, "kv_heads past"] | None = None,
) -> Float[Tensor, "heads chunk head_dim"]:
    """Outputs alone, by torch's fused attention; no query sees the ``hidden`` ones of the first keys."""
    chunk, keys = query.shape[1], key.shape[1]
    mask = None
    if chunk > 1 or hidden is not None:
        mask = torch.ones(chunk, keys, dtype=torch.bool, device=query.device).tril(keys - chunk)
    if mask is not None and hidden is not None:
        shown = functional.pad(~hidden, (0, keys - hidden.shape[1]), value=True)
        mask = (mask & shown.repeat_interleave(query.shape[0] // key.shape[0], dim=0)[:, None])[None]
    out = functional.scaled_dot_product_attention(
        query[None], key[None], value[None], attn_mask=mask, scale=scaling, enable_gqa=True
    )
    return out[0]


def attention(
    module: nn.Module,
    query: Float[Tensor, "1 heads chunk head_dim"],
    key: Float[Tensor, "1 kv_heads keys head_dim"],
    value: Float[Tensor, "1 kv_heads keys head_dim"],
    attention_mask: Tensor | None,
    scaling: float | None = None,
    **_: object,
) -> tuple[Float[Tensor, "1 chunk heads head_dim"], None]:
    """The signature that transformers calls; ``attention_mask`` is None, since the rule needs none."""
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    received, answering, number = _received.get(), _answering.get(), int(module.layer_idx)  # pyright: ignore[reportArgumentType]
    layer = answering.layers[number] if answering is not None else None
    if received is not None:
        out, heard = on_device(query.device)(query[0], key[0], value[0], scale)
        received[number] = heard
    elif isinstance(layer, ChosenLayer):
        keys, values, hidden = layer.look_back(query[0], scale)
        out = attend(query[0], keys, values, scale, hidden)
    else:
        out = attend(query[0], key[0], value[0], scale)
    return out.transpose(0, 1)[None], None


def register() -> None:
    """Tell transformers of this attention; a model then runs on it with ``attn_implementation="longtake"``."""
    AttentionInterface.register(IMPLEMENTATION, attention)
