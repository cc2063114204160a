"""Pasts that a model's own forward can read: fixed keys and values before the chunk, and room for what comes.

A cache here lives for one call or one answer; what is kept between calls are tensors (``longtake.state.kv``). The past
of an answer is given whole, or chosen layer by layer once the question's queries are there (``looking_back``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional
from transformers.cache_utils import Cache, CacheLayerMixin

Past = tuple[Float[Tensor, "kv_heads _past head_dim"], Float[Tensor, "kv_heads _past head_dim"]]
"""Keys and values of one layer; blocks of one past differ in length."""
Choose: TypeAlias = Callable[
    [Float[Tensor, "heads chunk head_dim"], float], tuple[Past, Bool[Tensor, "kv_heads past"] | None]
]
"""From a question's queries in one layer and the scale of their scores: a past, and which of it is not to be seen."""


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
        self._fill(past, room)
        self.is_initialized = True

    def _fill(self, past: Sequence[Past], room: int) -> None:
        self.length = sum(keys.shape[1] for keys, _ in past)
        kv_heads, _, head_dim = past[0][0].shape
        made, at = [past[0][0].new_empty(1, kv_heads, self.length + room, head_dim) for _ in range(2)], 0
        for keys, values in past:
            made[0][0, :, at : at + keys.shape[1]] = keys
            made[1][0, :, at : at + keys.shape[1]] = values
            at += keys.shape[1]
        self.keys, self.values = made

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

    def cut_back(self, length: int) -> None:
        """Forget what came after ``get_seq_length`` was ``length``."""
        self.length = min(self.length, length)

    def get_seq_length(self) -> int:
        return self.length

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.length + query_length, 0

    def get_max_length(self) -> int:
        return -1


class ChosenLayer(AnswerLayer):
    """One layer whose past is chosen anew by each question; ``get_seq_length`` counts the conversation alone."""

    def __init__(self, choose: Choose, empty: Past, room: int) -> None:
        super().__init__([empty], room)
        self.choose, self.room = choose, room
        self.past_length = 0
        self.hidden: Bool[Tensor, "kv_heads past"] | None = None
        self.asked_anew = True

    def look_back(
        self, query: Float[Tensor, "heads chunk head_dim"], scaling: float
    ) -> tuple[Float[Tensor, "kv_heads keys head_dim"], Tensor, Bool[Tensor, "kv_heads past"] | None]:
        """Keys and values that the chunk just taken in shall see, and which of the past it shall not."""
        assert self.keys is not None, "made in __init__"
        assert self.values is not None, "made in __init__"
        if self.asked_anew:
            past, self.hidden = self.choose(query, scaling)
            said = slice(self.past_length, self.length)
            self._fill([past, (self.keys[0, :, said], self.values[0, :, said])], self.room)
            self.past_length, self.asked_anew = past[0].shape[1], False
        return self.keys[0, :, : self.length], self.values[0, :, : self.length], self.hidden

    def cut_back(self, length: int) -> None:
        super().cut_back(self.past_length + length)

    def get_seq_length(self) -> int:
        return self.length - self.past_length


def chunk_cache(keys: Float[Tensor, "layers kv_heads past head_dim"], values: Tensor) -> Cache:
    """A cache of which every layer stands before a chunk."""
    return Cache(layers=[ChunkLayer((keys[layer], values[layer])) for layer in range(keys.shape[0])])


def own_part(cache: Cache) -> tuple[Float[Tensor, "layers kv_heads chunk head_dim"], Tensor]:
    """Keys and values of the chunk that has just been taken in."""
    owned = [layer.own for layer in cache.layers if isinstance(layer, ChunkLayer) and layer.own is not None]
    return torch.stack([keys for keys, _ in owned]), torch.stack([values for _, values in owned])


def answer_cache(past: Iterable[Sequence[Past]], room: int) -> Cache:
    """A cache over the whole past, per layer a sequence of blocks, with room for ``room`` tokens."""
    return Cache(layers=[AnswerLayer(blocks, room) for blocks in past])


def chosen_cache(choose: Sequence[Choose], empty: Past, room: int) -> Cache:
    """A cache whose past each layer's ``choose`` finds once it knows the question's queries.

    Each question begins with ``ask_anew``; the forward runs within ``longtake.vlm.attention.looking_back``.
    """
    return Cache(layers=[ChosenLayer(one, empty, room) for one in choose])


def ask_anew(cache: Cache) -> None:
    """The next chunk is a question: layers that choose their past shall choose it by that chunk."""
    for layer in cache.layers:
        if isinstance(layer, ChosenLayer):
            layer.asked_anew = True


def cut_back(cache: Cache, length: int) -> None:
    """Forget what an answer's cache took in beyond ``length`` tokens."""
    for layer in cache.layers:
        if isinstance(layer, AnswerLayer):
            layer.cut_back(length)
