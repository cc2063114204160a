"""Which chunks a question should read: the best few, found by a few keys of each.

The queries of the question's last token, where a model makes up its mind, are held against the summaries of the chunks;
queries and keys carry their positions, so nothing has to be turned back. The score of a chunk with a query is that of
the best key in its summary, and those chunks are read that would get most attention if there were only these keys.

Time: the summaries of ``NUM_PAGES`` pages and of the newest chunks are looked at, and the outlines of all pages, by
which those are found. Only the latter grows, by a few keys a page (``longtake bench decode``).

Source: docs/papers.md, StateKV ("bounded answering" is ours).
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor

from longtake.state.pages import PAGE_CHUNKS, Detailed, Summarise

Turn: TypeAlias = Callable[[Tensor, Tensor | int], Tensor]
"""``(keys, by) -> keys`` that lie ``by`` positions further on."""

PEAKS = 4
NUM_PAGES = 6
"""Pages of which every chunk is looked at; of more, these are found by their outlines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval:
    """How chunks are found."""

    summarise: Summarise
    per_layer: bool = True
    """One choice for all KV heads of a layer; False: one per KV head."""
    num_recent: int = 4
    """So many of the newest chunks, and the first one, are always read."""


def mean_key(keys: Float[Tensor, "layers kv_heads chunk head_dim"]) -> Float[Tensor, "layers kv_heads 1 head_dim"]:
    """The mean of all keys: a chunk's score is the mean of its tokens' scores."""
    return keys.mean(2, keepdim=True)


def peaks(keys: Float[Tensor, "layers kv_heads chunk head_dim"]) -> Float[Tensor, "layers kv_heads 4 head_dim"]:
    """The keys furthest from the mean, as they are: where most of a chunk is alike, what matters is not."""
    apart = (keys - keys.mean(2, keepdim=True)).square().sum(-1)
    found = apart.topk(min(PEAKS, keys.shape[2]), dim=2).indices
    found = found[..., torch.arange(PEAKS, device=keys.device).clamp(max=found.shape[2] - 1)]  # of short chunks, again
    return keys.take_along_dim(found[..., None], 2)


RETRIEVALS: dict[str, Retrieval] = {
    "peaks": Retrieval(summarise=peaks),
    "mean": Retrieval(summarise=mean_key),
}


# --- the search


class Index:
    """What the chunks of one moment are found by."""

    def __init__(self, detailed: Detailed, turn: Turn) -> None:
        """``turn`` is only called where keys lie elsewhere than where they were made."""
        self.detailed, self.turn = detailed, turn
        self.firsts = list(itertools.accumulate((page.num_chunks for page in detailed.all_pages()), initial=0))
        """Number of each page's first chunk, and how many there are."""
        recent = [page.summary for page in detailed.recent]
        self.recent = torch.cat(recent, dim=2) if recent else None
        self.outlines = self._turned_outlines() if len(detailed.pages) > NUM_PAGES else None

    def best_chunks(
        self, layer: int, queries: Float[Tensor, "kv_heads group head_dim"], retrieval: Retrieval, count: int
    ) -> list[list[int]]:
        """Numbers of the chunks to read, in order of time: one list for all KV heads, or one for each.

        ``count`` chunks by the share of attention that they would get of all, and those that are always read.
        """
        total = self.firsts[-1]
        always = {0, *range(max(0, total - retrieval.num_recent), total)}
        if count + len(always) >= total:
            return [list(range(total))] * (1 if retrieval.per_layer else queries.shape[0])
        queries = queries.detach()  # a choice has no gradient, outside of inference mode too
        looked_at = self._looked_at(layer, queries, count)
        shares = _shares(queries, [keys for _, keys in looked_at])
        shares = shares.sum(0, keepdim=True) if retrieval.per_layer else shares
        borders = list(itertools.accumulate((keys.shape[1] for _, keys in looked_at), initial=0))
        firsts = [first for first, _ in looked_at]
        taken = [
            at + number - first
            for at, after, first in zip(borders, borders[1:], firsts, strict=False)
            for number in always
            if 0 <= number - first < after - at
        ]
        shares[:, taken] = -1.0
        best = _numbers(shares.topk(min(count, borders[-1] - len(taken)), dim=1).indices)

        def number_of(place: int) -> int:
            one = bisect.bisect_right(borders, place) - 1
            return firsts[one] + place - borders[one]

        return [sorted([*always, *map(number_of, some)]) for some in best]

    def _looked_at(self, layer: int, queries: Tensor, count: int) -> list[tuple[int, Tensor]]:
        """Number of the first chunk and summaries ``(kv_heads, chunks, parts, head_dim)``, in order of time."""
        pages, found = self.detailed.pages, list[tuple[int, Tensor]]()
        for number in range(len(pages)) if self.outlines is None else self._promising(layer, queries, count):
            keys = self._turned(pages[number].summary[layer], pages[number].turns)
            found.append((self.firsts[number], keys))
        if self.recent is not None:
            turns = [page.turns[0] for page in self.detailed.recent]
            found.append((self.firsts[len(pages)], self._turned(self.recent[layer], turns)))
        return found

    def _promising(self, layer: int, queries: Tensor, count: int) -> list[int]:
        """The pages whose outlines would get most attention."""
        assert self.outlines is not None
        enough = min(max(NUM_PAGES, -(-2 * count // PAGE_CHUNKS)), self.outlines.shape[2])
        shares = _shares(queries, [self.outlines[layer]]).sum(0, keepdim=True)
        return sorted(_numbers(shares.topk(enough, dim=1).indices)[0])

    def _turned(self, keys: Tensor, turns: Sequence[int]) -> Tensor:
        return self.turn(keys, torch.tensor(turns, device=keys.device)[:, None]) if any(turns) else keys

    def _turned_outlines(self) -> Float[Tensor, "layers kv_heads pages outlined head_dim"] | None:
        pages, outlines = self.detailed.pages, self.detailed.outlines
        if outlines is None or not any(any(page.turns) for page in pages):
            return outlines
        turned: list[Tensor] = []
        for number, page in enumerate(pages):
            assert page.outline is not None, "full pages have one"
            # a key of a chunk that is not read any more is turned as its neighbour is
            chunks = (page.outline // page.summaries.shape[3] - page.skipped_chunks).clamp(0, page.num_chunks - 1)
            turned.append(self.turn(outlines[:, :, number], torch.tensor(page.turns, device=chunks.device)[chunks]))
        return torch.stack(turned, dim=2)


def _shares(
    queries: Float[Tensor, "kv_heads group head_dim"], keys: Sequence[Float[Tensor, "kv_heads _ parts head_dim"]]
) -> Float[Tensor, "kv_heads found"]:
    """Attention to the best part of each, summed over the queries of a KV head."""
    # rows times the transpose of rows: the order that CPUs multiply fastest
    scores = torch.cat([queries @ some.flatten(1, 2).mT for some in keys], dim=2)
    best = scores.view(*queries.shape[:2], -1, keys[0].shape[2]).amax(3)
    return best.softmax(2, dtype=torch.promote_types(best.dtype, torch.float32)).sum(1)


def _numbers(found: Int[Tensor, "lists found"]) -> list[list[int]]:
    return cast("list[list[int]]", found.tolist())  # pyright: ignore[reportUnknownMemberType]
