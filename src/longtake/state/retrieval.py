"""Which chunks a question should read: the best few, found by a summary of each chunk's keys.

The question's queries and the keys both carry their positions, so the mean of a chunk's keys gives, times a query,
exactly the mean of the scores that the query has with the chunk's keys: nothing has to be turned back. With the spread
of the keys beside their mean, the attention that the whole chunk would receive is known to the second order
(``expected_share``).

Time: one product of each chunk's mean key with the queries of the question's last token, where a model makes up its
mind, finds ``pool`` candidates; all else looks at those only. ``peaks`` takes all chunks for candidates.

Source: docs/papers.md, StateKV ("bounded answering" is ours).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from longtake.state.pages import Detailed, Page, Summarise

Match: TypeAlias = Callable[
    [
        Float[Tensor, "kv_heads queries head_dim"],
        Float[Tensor, "kv_heads parts chunks head_dim"],
        Int[Tensor, " chunks"],
    ],
    Float[Tensor, "kv_heads chunks"],
]
"""``(queries, summaries, lengths) -> scores``: queries are scaled as attention scales them, lengths count tokens."""
Turn: TypeAlias = Callable[[Tensor, Tensor | int], Tensor]
"""``(keys, by) -> keys`` that lie ``by`` positions further on."""


PEAKS = 4
"""Keys in the summary of a chunk that stand for themselves."""
EVERY = 1 << 40
"""As a ``pool``: all chunks are candidates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval:
    """How chunks are found."""

    summarise: Summarise
    match: Match
    per_layer: bool = True
    """One choice for all KV heads of a layer; False: one per KV head."""
    pool: int = 128
    """So many candidates, by the mean key alone, are matched; all, while there are no more than that."""
    last_only: bool = False
    """Only the queries of the question's last token are matched, not those of all its tokens."""
    are_keys: bool = False
    """Every part of a summary is a key, to be turned where keys have to be; False: only the mean is."""
    num_recent: int = 4
    """So many of the newest chunks, and the first one, are always read."""


# --- summaries, and what makes scores of them


def mean_key(keys: Float[Tensor, "layers kv_heads chunk head_dim"]) -> Float[Tensor, "layers kv_heads 1 head_dim"]:
    return keys.mean(2, keepdim=True)


def mean_score(
    queries: Float[Tensor, "kv_heads queries head_dim"],
    summaries: Float[Tensor, "kv_heads parts chunks head_dim"],
    lengths: Int[Tensor, " chunks"],
) -> Float[Tensor, "kv_heads chunks"]:
    """Sum over the queries of their mean score with the chunk's keys."""
    return (summaries[:, 0] @ queries.sum(1)[..., None])[..., 0]


def mean_and_spread(
    keys: Float[Tensor, "layers kv_heads chunk head_dim"],
) -> Float[Tensor, "layers kv_heads 2 head_dim"]:
    """Mean and variance of each entry."""
    return torch.stack([keys.mean(2), keys.var(2, correction=0)], dim=2)


def expected_share(
    queries: Float[Tensor, "kv_heads queries head_dim"],
    summaries: Float[Tensor, "kv_heads parts chunks head_dim"],
    lengths: Int[Tensor, " chunks"],
) -> Float[Tensor, "kv_heads chunks"]:
    """Attention that each chunk would receive, summed over the queries, were its keys normal and their entries
    independent: log of the sum of exp(score) = log n + mean + variance / 2.
    """
    mean, spread = summaries[:, 0], summaries[:, 1]
    mass = queries @ mean.mT + queries.square() @ spread.mT / 2 + lengths.to(queries.dtype).log()
    return mass.softmax(-1).sum(1)


def mean_and_bounds(
    keys: Float[Tensor, "layers kv_heads chunk head_dim"],
) -> Float[Tensor, "layers kv_heads 3 head_dim"]:
    """Mean, least and greatest of each entry."""
    return torch.stack([keys.mean(2), keys.amin(2), keys.amax(2)], dim=2)


def highest_share(
    queries: Float[Tensor, "kv_heads queries head_dim"],
    summaries: Float[Tensor, "kv_heads parts chunks head_dim"],
    lengths: Int[Tensor, " chunks"],
) -> Float[Tensor, "kv_heads chunks"]:
    """As ``expected_share``, from an upper bound of the score with any of the chunk's keys (Quest, 2406.10774)."""
    least, greatest = summaries[:, 1], summaries[:, 2]
    return (queries.clamp(max=0) @ least.mT + queries.clamp(min=0) @ greatest.mT).softmax(-1).sum(1)


def mean_and_peaks(
    keys: Float[Tensor, "layers kv_heads chunk head_dim"],
) -> Float[Tensor, "layers kv_heads 5 head_dim"]:
    """The mean, and the keys furthest from it as they are: where most of a chunk is alike, what matters is not."""
    mean = keys.mean(2, keepdim=True)
    apart = (keys - mean).square().sum(-1)
    found = apart.topk(min(PEAKS, keys.shape[2]), dim=2).indices
    found = found[..., torch.arange(PEAKS, device=keys.device).clamp(max=found.shape[2] - 1)]  # of short chunks, again
    return torch.cat([mean, keys.take_along_dim(found[..., None], 2)], dim=2)


def peak_share(
    queries: Float[Tensor, "kv_heads queries head_dim"],
    summaries: Float[Tensor, "kv_heads parts chunks head_dim"],
    lengths: Int[Tensor, " chunks"],
) -> Float[Tensor, "kv_heads chunks"]:
    """As ``expected_share``, of the attention to the peaks alone."""
    scores = torch.einsum("hqd,hpcd->hqpc", queries, summaries[:, 1:])
    return scores.logsumexp(2).softmax(-1).sum(1)


RETRIEVALS: dict[str, Retrieval] = {
    "share": Retrieval(summarise=mean_and_spread, match=expected_share),
    "mean": Retrieval(summarise=mean_key, match=mean_score),
    "bounds": Retrieval(summarise=mean_and_bounds, match=highest_share),
    "peaks": Retrieval(summarise=mean_and_peaks, match=peak_share, pool=EVERY, last_only=True, are_keys=True),
}


# --- the search


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sheet:
    """The summaries of some consecutive chunks."""

    summary: Float[Tensor, "layers kv_heads parts chunks head_dim"]
    turns: Int[Tensor, " chunks"] | None
    """None: none has to be turned."""
    lengths: Int[Tensor, " chunks"]


def sheets_of(detailed: Detailed) -> list[Sheet]:
    """Summaries shelf by shelf; those of the recent chunks are brought together."""
    groups: list[list[Page]] = []
    for page in detailed.pages:
        last = groups[-1][-1] if groups else None
        if last and last.shelf is page.shelf and last.shelf_first + last.num_chunks == page.shelf_first:
            groups[-1].append(page)
        else:
            groups.append([page])
    sheets = [_sheet(group[0].shelf, group[0].shelf_first, group) for group in groups]
    if detailed.recent:
        sheets.append(_sheet(torch.cat([page.shelf for page in detailed.recent], dim=3), 0, list(detailed.recent)))
    return sheets


def _sheet(shelf: Tensor, first: int, pages: list[Page]) -> Sheet:
    turns = [turn for page in pages for turn in page.turns]
    lengths = [length for page in pages for length in page.lengths]
    return Sheet(
        summary=shelf[:, :, :, first : first + len(lengths)],
        turns=torch.tensor(turns, device=shelf.device) if any(turns) else None,
        lengths=torch.tensor(lengths, device=shelf.device),
    )


def best_chunks(
    sheets: list[Sheet],
    layer: int,
    queries: Float[Tensor, "kv_heads group tokens head_dim"],
    retrieval: Retrieval,
    turn: Turn,
    count: int,
) -> list[list[int]]:
    """Numbers of the chunks to read, in order of time: one list for all KV heads, or one for each.

    ``count`` chunks by their match, and those that are always read.
    """
    last = queries[:, :, -1].detach()  # a choice has no gradient, outside of inference mode too
    queries = last if retrieval.last_only else queries.detach().flatten(1, 2)
    total = sum(sheet.lengths.shape[0] for sheet in sheets)
    always = {0, *range(max(0, total - retrieval.num_recent), total)}
    lists = 1 if retrieval.per_layer else queries.shape[0]
    if count + len(always) >= total:
        return [list(range(total))] * lists
    free = torch.ones(total, dtype=torch.bool, device=queries.device)
    free[list(always)] = False
    candidates = _candidates(sheets, layer, last, free, max(retrieval.pool, count), turn)
    scores = _matched(sheets, layer, queries, candidates, retrieval, turn)
    scores = scores.sum(0, keepdim=True) if retrieval.per_layer else scores
    best = candidates[scores.topk(min(count, candidates.shape[0]), dim=-1).indices]
    chosen = cast("list[list[int]]", best.tolist())  # pyright: ignore[reportUnknownMemberType]
    return [sorted({*always, *some}) for some in chosen]


def _candidates(
    sheets: list[Sheet],
    layer: int,
    last: Float[Tensor, "kv_heads group head_dim"],
    free: Bool[Tensor, " chunks"],
    pool: int,
    turn: Turn,
) -> Int[Tensor, " candidates"]:
    """The free chunks whose mean key agrees best with the last token's queries, an equal share of them by each head."""
    numbers = free.nonzero()[:, 0]
    if numbers.shape[0] <= pool:
        return numbers
    # rows times a matrix, faster than a matrix times columns; CPUs multiply so few rows faster in float32
    scores = torch.cat([last.float() @ _means(sheet, layer, turn).float().mT for sheet in sheets], dim=2)
    heads = scores.shape[0] * scores.shape[1]
    best = scores.masked_fill(~free, -torch.inf).topk(max(1, pool // heads), dim=2).indices
    chosen = torch.zeros_like(free)
    chosen[best.flatten()] = True
    return (chosen & free).nonzero()[:, 0]


def _means(sheet: Sheet, layer: int, turn: Turn) -> Float[Tensor, "kv_heads chunks head_dim"]:
    means = sheet.summary[layer, :, 0]
    return means if sheet.turns is None else turn(means, sheet.turns)


def _matched(
    sheets: list[Sheet],
    layer: int,
    queries: Tensor,
    candidates: Int[Tensor, " candidates"],
    retrieval: Retrieval,
    turn: Turn,
) -> Float[Tensor, "kv_heads candidates"]:
    """The mean key is turned where the keys have to be, and what else is a key; the rest is taken as it is.

    Candidates come in order, so each sheet has a stretch of them.
    """
    borders = list(itertools.accumulate((sheet.lengths.shape[0] for sheet in sheets), initial=0))
    cuts = torch.searchsorted(candidates, torch.tensor(borders, device=candidates.device))
    found = cast("list[int]", cuts.tolist())  # pyright: ignore[reportUnknownMemberType]
    picked: list[Tensor] = []
    lengths: list[Tensor] = []
    for sheet, first, (start, stop) in zip(sheets, borders, itertools.pairwise(found), strict=False):
        if start < stop:
            inside = candidates[start:stop] - first
            summaries = sheet.summary[layer].index_select(2, inside)
            if sheet.turns is not None:
                keys = summaries.shape[1] if retrieval.are_keys else 1
                turned = [turn(summaries[:, part], sheet.turns[inside])[:, None] for part in range(keys)]
                summaries = torch.cat([*turned, summaries[:, keys:]], dim=1)
            picked.append(summaries)
            lengths.append(sheet.lengths[inside])
    return retrieval.match(queries, torch.cat(picked, dim=2).to(queries.dtype), torch.cat(lengths))
