"""Bounded answers: what a question reads does not grow with the stream.

Per layer: the first chunk, the newest few, those that fit the question's queries best, and the carried keys, each once.
The model's own attention tells the queries (``longtake.vlm.attention.looking_back``), so nothing is computed twice.
"""

from __future__ import annotations

import bisect
import functools
import itertools
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from transformers.cache_utils import Cache

from longtake.methods.statekv_prefill import KVState, turned_pair
from longtake.state.pages import Page, runs
from longtake.state.retrieval import Index, Retrieval, Turn
from longtake.vlm.cache import Past, chosen_cache

Span = tuple[Page, int, int, int]
"""Tokens of a page: first and stop within it, and by how much to turn their keys."""


class BoundedPast:
    """Chooses, for one moment of a stream, what a question reads in each layer."""

    def __init__(self, kv: KVState, retrieval: Retrieval, num_chunks: int, turn: Turn, *, with_carried: bool) -> None:
        """``num_chunks`` is how many to find, beside those that are always read."""
        self.kv, self.retrieval, self.num_chunks, self.turn = kv, retrieval, num_chunks, turn
        self.with_carried = with_carried
        self.pages = kv.detailed.all_pages()
        self.index = Index(kv.detailed, turn)

    def cache(self, room: int) -> Cache:
        """A cache for a conversation that begins at that moment."""
        carried = self.kv.carried
        choose: Sequence[Callable[[Tensor, float], tuple[Past, Tensor | None]]] = [
            functools.partial(self.choose, layer) for layer in range(carried.keys.shape[0])
        ]
        return chosen_cache(choose, (carried.keys[0, :, :0], carried.values[0, :, :0]), room)

    def choose(
        self, layer: int, query: Float[Tensor, "heads question head_dim"], scaling: float
    ) -> tuple[Past, Bool[Tensor, "kv_heads past"] | None]:
        """Keys and values for a question, and which of them each KV head is not to see."""
        kv_heads = self.kv.carried.keys.shape[1]
        queries = query[:, -1].unflatten(0, (kv_heads, -1)) * scaling
        lists = self.index.best_chunks(layer, queries, self.retrieval, self.num_chunks)
        spans = [self._spans(chunks) for chunks in lists]
        keys, values, hidden = self._read(layer, spans)
        if self.with_carried:
            carried = self.kv.carried
            keys, values = (
                torch.cat(pair, 1) for pair in ((keys, carried.keys[layer]), (values, carried.values[layer]))
            )
            hidden = torch.cat([hidden, self._read_already(layer, spans)], dim=1)
        return (keys, values), hidden if hidden.any() else None

    def _spans(self, chunks: list[int]) -> list[Span]:
        found, firsts = list[Span](), self.index.firsts
        for number, group in itertools.groupby(chunks, lambda chunk: bisect.bisect_right(firsts, chunk) - 1):
            page, first = self.pages[number], firsts[number]
            found += [(page, *run) for run in runs(page, [chunk - first for chunk in group])]
        return found

    def _read(self, layer: int, spans: list[list[Span]]) -> tuple[Tensor, Tensor, Bool[Tensor, "kv_heads past"]]:
        """The spans' keys and values; heads that read fewer tokens than others do not see what fills them up."""
        like = self.kv.carried.keys[layer]
        lengths = [sum(stop - first for _, first, stop, _ in some) for some in spans]
        kv_heads, longest = like.shape[0], max(lengths)
        keys, values = (like.new_zeros(kv_heads, longest, like.shape[-1]) for _ in range(2))
        for number, some in enumerate(spans):
            heads, at = slice(None) if len(spans) == 1 else slice(number, number + 1), 0
            for page, first, stop, by in some:
                there = slice(at, at := at + stop - first)
                keys[heads, there], values[heads, there] = turned_pair(
                    page.rows.read(layer, heads, first, stop), by, self.turn
                )
        filled = torch.tensor(lengths, device=like.device).expand(kv_heads)
        return keys, values, torch.arange(longest, device=like.device) >= filled[:, None]

    def _read_already(self, layer: int, spans: list[list[Span]]) -> Bool[Tensor, "kv_heads kept"]:
        """Carried keys that stand in the spans too, or came after this moment."""
        places = self.kv.carried.places[layer]
        rows = [
            self._covered(some, places if len(spans) == 1 else places[head : head + 1])
            for head, some in enumerate(spans)
        ]
        return torch.cat(rows) | (places >= self._end_place())

    def _end_place(self) -> int:
        last = self.pages[-1]
        return last.first_place + sum(last.lengths)

    def _covered(self, spans: list[Span], places: Tensor) -> Tensor:
        firsts = [page.first_place - page.skipped_tokens + first for page, first, _, _ in spans]
        stops = [page.first_place - page.skipped_tokens + stop for page, _, stop, _ in spans]
        borders = torch.tensor([firsts, stops], device=places.device)
        number = torch.searchsorted(borders[0], places.contiguous(), right=True) - 1
        return (number >= 0) & (places < borders[1][number.clamp(min=0)])
