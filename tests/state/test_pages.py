"""The detailed cache: pages, sizes, tiers."""

from __future__ import annotations

import dataclasses
import gc
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from longtake.errors import CapacityError, StateError
from longtake.state import pages as pages_module
from longtake.state.disk import DiskRows, written
from longtake.state.pages import (
    OUTLINE_KEYS,
    PAGE_CHUNKS,
    Detailed,
    added,
    chunk_page,
    moved,
    runs,
    since,
    tier_named,
    until,
)
from longtake.state.retrieval import mean_key
from longtake.state.rows import Rows, in_8_bits
from longtake.state.tree import load_state, map_tensors, num_bytes, save_state

LAYERS, HEADS, DIM = 2, 2, 4


@dataclasses.dataclass(frozen=True, kw_only=True)
class Holder:
    """A state with a detailed cache in it."""

    detailed: Detailed


def grown(lengths: list[int], tier: str = "memory", **options: Any) -> tuple[Detailed, torch.Tensor]:
    """A cache of chunks of so many tokens, and all keys in a row."""
    folder, detailed, keys = options.pop("folder", None), Detailed(), []
    made = tier_named(tier, folder)
    for number, length in enumerate(lengths):
        rows = Rows(keys=torch.randn(LAYERS, HEADS, length, DIM), values=torch.randn(LAYERS, HEADS, length, DIM))
        place = sum(lengths[:number])
        page = chunk_page(
            rows,
            tier=made,
            summarise=mean_key,
            start=place,
            next_position=place + length,
            end_seconds=number + 1.0,
            first_place=place,
        )
        detailed = added(detailed, page, tier=made, **options)
        keys.append(rows.keys)
    return detailed, torch.cat(keys, dim=2) if keys else torch.zeros(LAYERS, HEADS, 0, DIM)


def read(detailed: Detailed, layer: int = 1) -> torch.Tensor:
    parts = [
        page.rows.read(layer, slice(None), first, stop)[0]
        for page in detailed.all_pages()
        for first, stop, _ in runs(page)
    ]
    return torch.cat(parts, dim=1) if parts else torch.zeros(HEADS, 0, DIM)


def walked_bytes(detailed: Detailed) -> int:
    """The size counted tensor by tensor."""
    storages: dict[int, int] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    map_tensors(detailed, note)
    return sum(storages.values())


@pytest.mark.parametrize("tier", ["memory", "int8", "disk"])
def test_size_is_what_counting_gives(tier: str) -> None:
    for count in (0, 1, PAGE_CHUNKS - 1, PAGE_CHUNKS, 2 * PAGE_CHUNKS + 3):
        detailed, keys = grown([1 + number % 5 for number in range(count)], tier)
        assert num_bytes(Holder(detailed=detailed)) == detailed.num_bytes == walked_bytes(detailed)
        assert detailed.num_chunks == count
        assert len(detailed.pages) == count // PAGE_CHUNKS
        if tier != "int8":
            summaries = count * LAYERS * HEADS * DIM * 4
            outlines = len(detailed.pages) * LAYERS * HEADS * OUTLINE_KEYS * (DIM * 4 + 8)
            assert detailed.stored_bytes == 2 * keys.nbytes + summaries + outlines


def test_outline_is_never_far_from_a_summary() -> None:
    """Greedy spreading comes within twice the best radius; two clusters are both in it."""
    detailed, keys = grown([1] * PAGE_CHUNKS)
    (page,) = detailed.pages
    assert page.outline is not None
    assert page.outline.shape == (LAYERS, HEADS, OUTLINE_KEYS)
    outline = page.summary[:, :, :, 0].take_along_dim(page.outline[..., None], 2)
    assert detailed.outlines is not None
    assert torch.equal(outline, detailed.outlines[:, :, 0])
    reach = torch.cdist(keys, outline).amin(-1).amax(-1)
    apart = torch.cdist(outline, outline) + 1e9 * torch.eye(OUTLINE_KEYS)
    assert bool((reach <= apart.amin((-1, -2)) + 1e-5).all())


def test_parts_of_a_page_keep_its_summaries() -> None:
    detailed, keys = grown([1] * (PAGE_CHUNKS * 3 + 5))
    first, stop = PAGE_CHUNKS + 7, 3 * PAGE_CHUNKS - 3
    part = since(until(detailed, float(stop)), first)
    assert torch.equal(
        torch.cat([page.summary[:, :, :, 0] for page in part.all_pages()], dim=2), keys[:, :, first:stop]
    )
    assert num_bytes(Holder(detailed=part)) == part.num_bytes == walked_bytes(part)
    assert part.stored_bytes == walked_bytes(part)


def test_work_for_a_chunk_does_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Joins are counted: each chunk is copied once, when its page is full."""
    joins: list[int] = []
    join = pages_module._one_page
    monkeypatch.setattr(pages_module, "_one_page", lambda recent: (joins.append(len(recent)), join(recent))[1])
    grown([1] * (5 * PAGE_CHUNKS + 1))
    assert joins == [PAGE_CHUNKS] * 5


def test_forks_share_pages_and_do_not_see_each_other() -> None:
    trunk, keys = grown([2] * (PAGE_CHUNKS + 2))
    before = read(trunk).clone()
    page = chunk_page(
        Rows(keys=torch.ones(LAYERS, HEADS, 1, DIM), values=torch.ones(LAYERS, HEADS, 1, DIM)),
        summarise=mean_key,
        start=0,
        next_position=0,
        end_seconds=999.0,
        first_place=keys.shape[2],
    )
    one, other = added(trunk, page), added(added(trunk, page), page)
    assert one.pages[0] is other.pages[0] is trunk.pages[0]
    assert [read(some).shape[1] - before.shape[1] for some in (trunk, one, other)] == [0, 1, 2]
    assert torch.equal(read(trunk), before)


@given(lengths=st.lists(st.integers(1, 4), min_size=1, max_size=2 * PAGE_CHUNKS + 5), data=st.data())
def test_parts_of_a_stream_are_read_as_they_were(lengths: list[int], data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(lengths) - 1))
    stop = data.draw(st.integers(first + 1, len(lengths)))
    more = data.draw(st.integers(0, PAGE_CHUNKS + 1))
    detailed, keys = grown(lengths)
    place = sum(lengths[:first])
    part = until(since(detailed, place), stop + 0.5)
    assert part.num_chunks == stop - first
    assert torch.equal(read(part), keys[1, :, place : sum(lengths[:stop])])
    assert part.all_pages()[0].first_place == place
    # and it goes on
    extra = torch.full((LAYERS, HEADS, 1, DIM), 7.0)
    for number in range(more):
        page = chunk_page(
            Rows(keys=extra, values=extra),
            summarise=mean_key,
            start=sum(lengths) + number,
            next_position=sum(lengths) + number + 1,
            end_seconds=1000.0,
            first_place=sum(lengths[:stop]) + number,
        )
        part = added(part, page)
    assert torch.equal(read(part)[:, : -more or None], keys[1, :, place : sum(lengths[:stop])])
    assert bool((read(part)[:, read(part).shape[1] - more :] == 7).all())
    outlines = 0 if part.outlines is None else part.outlines.nbytes
    assert part.num_bytes == outlines + sum(page.num_bytes for page in part.all_pages())


def test_moved_chunks_say_by_how_much_to_turn() -> None:
    detailed, _ = grown([2] * (PAGE_CHUNKS + 1))
    twice = moved(moved(detailed, lambda at: at + 3, lambda at: 3), lambda at: at, lambda at: -1)
    assert {turn for page in twice.all_pages() for turn in page.turns} == {2}
    assert twice.all_pages()[0].starts[:3] == (3, 5, 7)
    assert twice.pages[0].rows is detailed.pages[0].rows


@pytest.mark.parametrize("tier", ["memory", "int8", "disk"])
def test_limit_is_exact_and_nothing_is_lost(tier: str) -> None:
    lengths = [3] * (PAGE_CHUNKS + 2)
    size = grown(lengths, tier)[0].stored_bytes
    assert grown(lengths, tier, limit_bytes=size)[0].num_chunks == len(lengths)
    with pytest.raises(CapacityError, match=f"{size} bytes") as caught:
        grown(lengths, tier, limit_bytes=size - 1)
    assert "\n" not in str(caught.value)


# --- 8 bits


@given(scale=st.sampled_from([1e-6, 1.0, 3e4]), seed=st.integers(0, 50))
def test_8_bits_are_within_half_a_step(scale: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    keys = scale * torch.randn(LAYERS, HEADS, 5, DIM, generator=generator)
    keys[0, 0, 0] = 0
    small = in_8_bits(Rows(keys=keys, values=-keys))
    for layer in range(LAYERS):
        decoded, _ = small.read(layer, slice(None), 0, 5)
        step = keys[layer].abs().amax(-1, keepdim=True) / 127
        assert bool(((decoded - keys[layer]).abs() <= step * 0.5001).all())


# --- disk


def test_disk_gives_back_every_bit(tmp_path: Path) -> None:
    detailed, keys = grown([3] * (2 * PAGE_CHUNKS + 1), "disk", folder=str(tmp_path))
    assert torch.equal(read(detailed), keys[1])
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".kv", ".kv"]
    assert all(path.stat().st_mode & 0o77 == 0 for path in tmp_path.iterdir())
    assert detailed.num_bytes < detailed.stored_bytes / 2


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_disk_holds_every_type(dtype: torch.dtype) -> None:
    rows = Rows(keys=torch.randn(1, 2, 3, 4).to(dtype), values=torch.randn(1, 2, 3, 4).to(dtype))
    keys, values = written(rows, None).read(0, slice(1, 2), 1, 3)
    assert torch.equal(keys, rows.keys[0, 1:2, 1:3])
    assert torch.equal(values, rows.values[0, 1:2, 1:3])


def test_temporary_pages_go_with_the_last_state_that_needs_them() -> None:
    detailed, _ = grown([2] * PAGE_CHUNKS, "disk")
    (page,) = detailed.pages
    assert isinstance(page.rows, DiskRows)
    path, copy = Path(page.rows.path), map_tensors(detailed, torch.clone)
    del detailed, page
    gc.collect()
    assert path.exists()
    assert read(copy).shape[1] == 2 * PAGE_CHUNKS
    del copy
    gc.collect()
    assert not path.exists()


def test_snapshot_takes_temporary_pages_in(tmp_path: Path) -> None:
    detailed, keys = grown([2] * (3 * PAGE_CHUNKS + 1), "disk")
    save_state(tmp_path / "state", Holder(detailed=detailed), fingerprint="f", extra={})
    for page in detailed.pages:
        Path(page.rows.path).unlink()  # type: ignore[union-attr] on disk
    loaded, _ = load_state(tmp_path / "state", Holder, fingerprint="f")
    assert torch.equal(read(loaded.detailed), keys[1])
    settled = pages_module.settled(loaded.detailed, tier_named("disk"))
    assert all(isinstance(page.rows, DiskRows) for page in settled.pages)
    assert torch.equal(read(settled), keys[1])
    assert settled.num_bytes == detailed.num_bytes


def test_snapshot_refers_to_pages_in_a_folder_of_the_users(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    detailed, keys = grown([2] * PAGE_CHUNKS, "disk", folder=str(folder))
    save_state(tmp_path / "state", Holder(detailed=detailed), fingerprint="f", extra={})
    del detailed
    gc.collect()
    loaded, _ = load_state(tmp_path / "state", Holder, fingerprint="f")
    tier = tier_named("disk", str(folder))
    assert torch.equal(read(pages_module.settled(loaded.detailed, tier)), keys[1])
    (file,) = folder.iterdir()
    content = bytearray(file.read_bytes())
    content[5] ^= 1
    file.write_bytes(content)
    with pytest.raises(StateError, match="is damaged"):
        pages_module.settled(loaded.detailed, tier)
    file.write_bytes(content[:-1])
    with pytest.raises(StateError, match="bytes, expected"):
        read(loaded.detailed)
    file.unlink()
    with pytest.raises(StateError, match="put its folder back"):
        read(loaded.detailed)


def test_disk_that_cannot_be_written_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CapacityError, match="nothing was lost") as caught:
        grown([2] * PAGE_CHUNKS, "disk", folder=str(tmp_path / "file"))
    assert "\n" not in str(caught.value)
