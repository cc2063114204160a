"""The detailed cache: every key and value of a stream, in pages that forks share.

A chunk comes as a page of its own. Whenever there are ``PAGE_CHUNKS`` of those they are joined, once, into one page. So
what a chunk costs does not depend on how many there were, and sizes are kept rather than counted. A page never changes;
where tokens are no longer read, or lie elsewhere than where they were written, its tables say so. Beside its rows it
has a summary of each chunk's keys, and an outline of the summaries, by which ``longtake.state.retrieval`` finds chunks.

Growth: with every token, up to the limit that ``added`` is given; in memory, or on disk but for the summaries.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from longtake.errors import CapacityError
from longtake.state.consolidate import farthest
from longtake.state.disk import DiskRows, written
from longtake.state.rows import Int8Rows, Rows, in_8_bits, joined

PAGE_CHUNKS = 64
OUTLINE_KEYS = 16
"""Keys in the outline of a page, in each layer and KV head."""

Summarise: TypeAlias = Callable[
    [Float[Tensor, "layers kv_heads chunk head_dim"]], Float[Tensor, "layers kv_heads parts head_dim"]
]
"""Keys that stand for those of a chunk, to find it by."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Page:
    """Consecutive chunks. Its tables have one entry per chunk."""

    rows: Rows | Int8Rows | DiskRows
    summaries: Float[Tensor, "layers kv_heads joined parts head_dim"]
    """Of each chunk that was joined."""
    outline: Int[Tensor, "layers kv_heads outlined"] | None = None
    """Places among the parts of all ``summaries``, chunk by chunk: of any of those, one here is not far. None as long
    as the page is one chunk that waits for others."""
    lengths: tuple[int, ...]
    """Tokens."""
    starts: tuple[int, ...]
    """Position at which the chunk begins."""
    next_positions: tuple[int, ...]
    """Where positions go on after it."""
    turns: tuple[int, ...]
    """By how many positions its keys have to be turned when read."""
    end_seconds: tuple[float, ...]
    """End of the chunk on the stream's clock."""
    first_place: int
    """Number of the first chunk's first token in the stream."""
    skipped_tokens: int = 0
    """Tokens of ``rows`` before the first chunk that is read."""
    skipped_chunks: int = 0
    """Chunks of ``summaries`` before it."""

    @property
    def summary(self) -> Float[Tensor, "layers kv_heads chunks parts head_dim"]:
        """Of the chunks that are read."""
        return self.summaries[:, :, self.skipped_chunks : self.skipped_chunks + self.num_chunks]

    @property
    def num_bytes(self) -> int:
        """Memory."""
        return self.rows.num_bytes + self.found_by_bytes

    @property
    def stored_bytes(self) -> int:
        """Memory and disk."""
        return self.rows.stored_bytes + self.found_by_bytes

    @property
    def found_by_bytes(self) -> int:
        """Memory of what chunks are found by."""
        return self.summaries.nbytes + (0 if self.outline is None else self.outline.nbytes)

    @property
    def num_chunks(self) -> int:
        return len(self.lengths)

    def borders(self) -> list[int]:
        """Where each chunk begins in ``rows``, and where the last one ends."""
        return list(itertools.accumulate(self.lengths, initial=self.skipped_tokens))

    def part(self, first: int, stop: int) -> Page:
        """Chunks ``first`` to ``stop`` of it, on the same rows."""
        gone = sum(self.lengths[:first])
        return replace(
            self,
            lengths=self.lengths[first:stop],
            starts=self.starts[first:stop],
            next_positions=self.next_positions[first:stop],
            turns=self.turns[first:stop],
            end_seconds=self.end_seconds[first:stop],
            first_place=self.first_place + gone,
            skipped_tokens=self.skipped_tokens + gone,
            skipped_chunks=self.skipped_chunks + first,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Detailed:
    """All pages of a stream, oldest first."""

    pages: tuple[Page, ...] = ()
    recent: tuple[Page, ...] = ()
    """Of one chunk each, fewer than ``PAGE_CHUNKS``."""
    outlines: Float[Tensor, "layers kv_heads pages outlined head_dim"] | None = None
    """Keys of all ``pages``' outlines: gathered when one is full, so that a question need not."""
    page_bytes: int = 0
    """Memory of ``pages``."""
    page_stored_bytes: int = 0
    """Memory and disk of ``pages``."""

    @property
    def num_bytes(self) -> int:
        """Memory; ``longtake.state.tree.num_bytes`` takes it from here instead of walking through the pages."""
        return self.page_bytes + self._outline_bytes + sum(page.num_bytes for page in self.recent)

    @property
    def stored_bytes(self) -> int:
        """Memory and disk."""
        return self.page_stored_bytes + self._outline_bytes + sum(page.stored_bytes for page in self.recent)

    @property
    def _outline_bytes(self) -> int:
        return 0 if self.outlines is None else self.outlines.nbytes

    @property
    def num_chunks(self) -> int:
        return sum(page.num_chunks for page in self.pages) + len(self.recent)

    def all_pages(self) -> tuple[Page, ...]:
        return (*self.pages, *self.recent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """Where pages are held."""

    pack: Callable[[Rows], Rows | Int8Rows]
    """For each chunk."""
    put_away: Callable[[Rows | Int8Rows], Rows | Int8Rows | DiskRows]
    """For each full page."""


def as_is(rows: Rows | Int8Rows) -> Rows | Int8Rows:
    return rows


def tier_named(name: str, folder: str | None = None) -> Tier:
    """``memory``, ``int8`` or ``disk``; pages on disk lie in ``folder``, or in a temporary one."""

    def to_disk(rows: Rows | Int8Rows) -> DiskRows:
        assert isinstance(rows, Rows), "chunks of this tier are packed as they are"
        return written(rows, folder)

    tiers = {
        "memory": Tier(pack=lambda rows: rows, put_away=as_is),
        "int8": Tier(pack=in_8_bits, put_away=as_is),
        "disk": Tier(pack=lambda rows: rows, put_away=to_disk),
    }
    return tiers[name]


def no_summary(keys: Float[Tensor, "layers kv_heads chunk head_dim"]) -> Float[Tensor, "layers kv_heads 0 head_dim"]:
    """For caches that are always read whole."""
    return keys[:, :, :0].clone()


MEMORY = tier_named("memory")


def chunk_page(
    rows: Rows,
    *,
    tier: Tier = MEMORY,
    summarise: Summarise = no_summary,
    start: int,
    next_position: int,
    end_seconds: float,
    first_place: int,
) -> Page:
    """A page of one chunk."""
    return Page(
        rows=tier.pack(rows),
        summaries=summarise(rows.keys)[:, :, None],
        lengths=(rows.keys.shape[2],),
        starts=(start,),
        next_positions=(next_position,),
        turns=(0,),
        end_seconds=(end_seconds,),
        first_place=first_place,
    )


def added(detailed: Detailed, page: Page, *, tier: Tier = MEMORY, limit_bytes: int | None = None) -> Detailed:
    """One chunk more.

    Raises:
        CapacityError: It would take more than ``limit_bytes``, or cannot be written to disk.
    """
    size = detailed.stored_bytes + page.stored_bytes
    if limit_bytes is not None and size > limit_bytes:
        raise CapacityError(
            f"the detailed cache would take {size} bytes after {page.end_seconds[-1]:g} s, detailed_bytes allows "
            f"{limit_bytes}; nothing was lost: raise it, lower fps, or hold it in 8 bits or on disk"
        )
    recent = (*detailed.recent, page)
    if len(recent) < PAGE_CHUNKS:
        return replace(detailed, recent=recent)
    full = _put_away(_one_page(recent), tier)
    return Detailed(
        pages=(*detailed.pages, full),
        outlines=_outlines(detailed.outlines, [full]),
        page_bytes=detailed.page_bytes + full.num_bytes,
        page_stored_bytes=detailed.page_stored_bytes + full.stored_bytes,
    )


def until(detailed: Detailed, at_seconds: float) -> Detailed:
    """The chunks that had ended by then."""
    pages: list[Page] = []
    for page in detailed.all_pages():
        count = bisect.bisect_right(page.end_seconds, at_seconds)
        pages += [page.part(0, count)] if count else []
        if count < page.num_chunks:
            break
    return _of_pages(pages)


def since(detailed: Detailed, position: int) -> Detailed:
    """The chunks that begin there or later."""
    pages: list[Page] = []
    for page in detailed.all_pages():
        first = bisect.bisect_left(page.starts, position)
        pages += [page.part(first, page.num_chunks)] if first < page.num_chunks else []
    return _of_pages(pages)


def moved(detailed: Detailed, place: Callable[[int], int], turn: Callable[[int], int]) -> Detailed:
    """Every chunk elsewhere: positions by ``place``, and keys to be turned by ``turn`` of where it began."""

    def tables(page: Page) -> Page:
        return replace(
            page,
            starts=tuple(place(start) for start in page.starts),
            next_positions=tuple(place(position) for position in page.next_positions),
            turns=tuple(before + turn(start) for before, start in zip(page.turns, page.starts, strict=True)),
        )

    pages, recent = (tuple(tables(page) for page in some) for some in (detailed.pages, detailed.recent))
    return replace(detailed, pages=pages, recent=recent)


def settled(detailed: Detailed, tier: Tier) -> Detailed:
    """Pages where the tier holds them, after loading: a snapshot may hold in itself what was on disk.

    Raises:
        StateError: A page on disk is gone or damaged.
    """
    pages: list[Page] = []
    for page in detailed.pages:
        if isinstance(page.rows, DiskRows):
            page.rows.check()
        pages.append(page if isinstance(page.rows, DiskRows) else _put_away(page, tier))
    return _of_pages([*pages, *detailed.recent])


def resummarised(detailed: Detailed, summarise: Summarise) -> Detailed:
    """The same chunks, found by other summaries."""

    def anew(page: Page) -> Page:
        parts: list[Tensor] = []
        for first, stop in itertools.pairwise(page.borders()):
            layers = [page.rows.read(layer, slice(None), first, stop)[0] for layer in range(page.summaries.shape[0])]
            parts.append(summarise(torch.stack(layers)))
        summaries = torch.stack(parts, dim=2)
        outline = None if page.outline is None else outlined(summaries)
        return replace(page, summaries=summaries, outline=outline, skipped_chunks=0)

    return _of_pages([anew(page) for page in detailed.all_pages()])


def outlined(
    summaries: Float[Tensor, "layers kv_heads chunks parts head_dim"],
) -> Int[Tensor, "layers kv_heads outlined"]:
    """Places of keys among all chunks' summaries, spread out as far as can be.

    Source: docs/papers.md, MC-ViT's coreset (equations 6 and 7).
    """
    keys = summaries.flatten(2, 3).float()
    first = torch.zeros(*keys.shape[:2], 1, dtype=torch.int64, device=keys.device)
    return farthest(keys, first, OUTLINE_KEYS) if keys.shape[2] else first[..., :0]


def runs(page: Page, chunks: Sequence[int] | None = None) -> list[tuple[int, int, int]]:
    """``(first, stop, turn)`` of tokens that can be read at once: of all chunks, or of those given in order."""
    borders, found = page.borders(), list[tuple[int, int, int]]()
    for chunk in range(page.num_chunks) if chunks is None else chunks:
        first, stop, turn = borders[chunk], borders[chunk + 1], page.turns[chunk]
        if found and found[-1][1:] == (first, turn):
            found[-1] = (found[-1][0], stop, turn)
        else:
            found.append((first, stop, turn))
    return found


def _put_away(page: Page, tier: Tier) -> Page:
    assert not isinstance(page.rows, DiskRows), "put away already"
    return replace(page, rows=tier.put_away(page.rows))


def _of_pages(pages: list[Page]) -> Detailed:
    """Those of one chunk at the end are the recent ones."""
    full = [page for page in pages if page.outline is not None]
    return Detailed(
        pages=tuple(full),
        recent=tuple(page for page in pages if page.outline is None),
        outlines=_outlines(None, full),
        page_bytes=sum(page.num_bytes for page in full),
        page_stored_bytes=sum(page.stored_bytes for page in full),
    )


def _outlines(before: Tensor | None, pages: Sequence[Page]) -> Tensor | None:
    more = [
        page.summaries.flatten(2, 3).take_along_dim(page.outline[..., None], 2)[:, :, None]
        for page in pages
        if page.outline is not None
    ]
    return torch.cat([*([] if before is None else [before]), *more], dim=2) if more else before


def _one_page(recent: tuple[Page, ...]) -> Page:
    rows = [page.rows for page in recent]
    whole, small = [one for one in rows if isinstance(one, Rows)], [one for one in rows if isinstance(one, Int8Rows)]
    summaries = torch.cat([page.summary for page in recent], dim=2)
    return Page(
        rows=joined(whole or small),
        summaries=summaries,
        outline=outlined(summaries),
        lengths=tuple(page.lengths[0] for page in recent),
        starts=tuple(page.starts[0] for page in recent),
        next_positions=tuple(page.next_positions[0] for page in recent),
        turns=tuple(page.turns[0] for page in recent),
        end_seconds=tuple(page.end_seconds[0] for page in recent),
        first_place=recent[0].first_place,
    )
