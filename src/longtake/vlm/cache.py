"""Pasts that a model's own forward can read: fixed keys and values before the chunk, and room for what comes.

A cache here lives for one call or one answer; what is kept between calls are tensors (``longtake.state.kv``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional
from transformers.cache_utils import Cache, CacheLayerMixin

Past = tuple[Float[Tensor, "kv_heads _past head_dim"], Float[Tensor, "kv_heads _past head_dim"]]
"""Keys and values of one layer; blocks of one past differ in length."""


class ChunkLayer(CacheLayerMixin):
    """One layer while a chunk is taken in: the chunk sees ``[past ; chunk]``, and its own part is kept apart."""

    def __init__(self, past: Past) -> None:
        super().__init__()
        self.past = past
        self.own: Past | None = None
        self.is_initialized = True

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None: ...

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        self.own = (key_states[0], value_states[0])
        keys, values = (torch.cat(pair, dim=1)[None] for pair in zip(self.past, self.own, strict=True))
        return keys, values

    def get_seq_length(self) -> int:
        return self.past[0].shape[1]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.get_seq_length() + query_length, 0

    def get_max_length(self) -> int:
        return -1


class AnswerLayer(CacheLayerMixin):
    """One layer while an answer is made: the past is copied once into a buffer with room for the words to come."""

    def __init__(self, past: Sequence[Past], room: int) -> None:
        super().__init__()
        self.length = sum(keys.shape[1] for keys, _ in past)
        kv_heads, _, head_dim = past[0][0].shape
        self.keys, self.values = (past[0][0].new_empty(1, kv_heads, self.length + room, head_dim) for _ in range(2))
        at = 0
        for keys, values in past:
            self.keys[0, :, at : at + keys.shape[1]] = keys
            self.values[0, :, at : at + keys.shape[1]] = values
            at += keys.shape[1]
        self.is_initialized = True

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None: ...

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        end = self.length + key_states.shape[2]
        assert self.keys is not None, "made in __init__"
        assert self.values is not None, "made in __init__"
        if end > self.keys.shape[2]:
            wider = [0, 0, 0, max(end - self.keys.shape[2], self.keys.shape[2] // 4)]
            self.keys, self.values = (functional.pad(part, wider) for part in (self.keys, self.values))
        self.keys[:, :, self.length : end] = key_states
        self.values[:, :, self.length : end] = value_states
        self.length = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def get_seq_length(self) -> int:
        return self.length

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.length + query_length, 0

    def get_max_length(self) -> int:
        return -1


def chunk_cache(keys: Float[Tensor, "layers kv_heads past head_dim"], values: Tensor) -> Cache:
    """A cache of which every layer stands before a chunk."""
    return Cache(layers=[ChunkLayer((keys[layer], values[layer])) for layer in range(keys.shape[0])])


def own_part(cache: Cache) -> tuple[Float[Tensor, "layers kv_heads chunk head_dim"], Tensor]:
    """Keys and values of the chunk that has just been taken in."""
    owned = [layer.own for layer in cache.layers if isinstance(layer, ChunkLayer) and layer.own is not None]
    return torch.stack([keys for keys, _ in owned]), torch.stack([values for _, values in owned])


def answer_cache(past: Sequence[Sequence[Past]], room: int) -> Cache:
    """A cache over the whole past, per layer a sequence of blocks, with room for ``room`` tokens."""
    return Cache(layers=[AnswerLayer(blocks, room) for blocks in past])


def cut_back(cache: Cache, length: int) -> None:
    """Forget what an answer's cache took in beyond ``length`` tokens."""
    for layer in cache.layers:
        if isinstance(layer, AnswerLayer):
            layer.length = min(layer.length, length)
