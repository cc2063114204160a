"""Bounded answers against whole ones, and what they read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.methods.statekv_models import QUESTION, answered, family, heard, segments, statekv, watched

from longtake.errors import ConfigError
from longtake.methods.statekv_bounded import BoundedPast
from longtake.state import retrieval as retrieval_module
from longtake.state.pages import PAGE_CHUNKS, Detailed, Summarise, added, chunk_page, moved
from longtake.state.retrieval import NUM_PAGES, PEAKS, RETRIEVALS, Index, peaks
from longtake.state.rows import Rows
from longtake.vlm.horizon import turner

LONG = PAGE_CHUNKS + 10
"""Segments: more than a page."""


def bounded(name: str = "qwen3-vl", **config: Any) -> Any:
    return statekv(name, answer="bounded", **config)


@pytest.mark.parametrize("per_layer", [True, False], ids=["per layer", "per head"])
@pytest.mark.parametrize("name", ["qwen3-vl", "internvl3", "qwen2-vl"])
def test_enough_chunks_match_the_whole_answer(name: str, per_layer: bool) -> None:
    retrieval = replace(RETRIEVALS["peaks"], per_layer=per_layer)
    model = bounded(name, double=name == "qwen3-vl", answer_chunks=100, retrieval=retrieval)
    state = watched(model, segments(model, 20))
    assert state.kv.carried.keys.shape[2] == 24 < state.kv.seen_tokens, "something was dropped"
    tolerance = 1e-9 if name == "qwen3-vl" else 1e-5
    torch.testing.assert_close(heard(model, state), heard(model, state, bounded=False), atol=tolerance, rtol=0)
    turns = (QUESTION, "and then?", "why?")
    assert answered(model, state, *turns) == answered(model, state, *turns, bounded=False)


@pytest.mark.parametrize("policy", ["statekv", "recency", "full"])
def test_read_keys_are_first_newest_chosen_and_carried_each_once(policy: str) -> None:
    """The hidden ones left out, what each head reads is the union, found by number."""
    model = bounded(policy=policy, answer_chunks=3)
    state = watched(model, segments(model, LONG))
    kv = state.kv
    past = BoundedPast(kv, model.retrieval, 3, model._turn, with_carried=policy != "full")
    (query,) = torch.randn(1, family().text_config.num_attention_heads, 5, family().head_dim)
    whole = torch.cat(
        [page.rows.read(1, slice(None), 0, sum(page.lengths))[0] for page in kv.detailed.all_pages()], dim=1
    )
    (keys, _), hidden = past.choose(1, query, 0.25)
    queries = query[:, -1].unflatten(0, (2, -1)) * 0.25
    (chunks,) = past.index.best_chunks(1, queries, model.retrieval, 3)
    assert {0, *range(LONG - 3, LONG + 1)} < set(chunks)
    assert len(chunks) == 1 + 4 + 3
    lengths = [length for page in kv.detailed.all_pages() for length in page.lengths]
    borders = torch.tensor([0, *lengths]).cumsum(0).tolist()
    for head in range(2):
        expected = {place for chunk in chunks for place in range(borders[chunk], borders[chunk + 1])}
        expected |= set() if policy == "full" else set(kv.carried.places[1, head].tolist())
        shown = keys[head] if hidden is None else keys[head][~hidden[head]]
        assert shown.shape[0] == len(expected)
        assert torch.equal(shown.sort(0).values, whole[head][sorted(expected)].sort(0).values)


def test_what_an_answer_holds_does_not_grow() -> None:
    model = bounded(answer_chunks=4)
    stream = segments(model, 2 * LONG)
    short, long = watched(model, stream[:20]), watched(model, stream)
    sizes = []
    for state in (short, long):
        conversation = model.converse(state)
        conversation.answer(QUESTION)
        sizes.append(max(layer.past_length for layer in conversation.cache.layers))
    few = 2 * max(length for page in long.kv.detailed.all_pages() for length in page.lengths)
    assert abs(sizes[0] - sizes[1]) <= few, "chunks differ a little in length, no more"


def test_answer_leaves_the_state_and_other_conversations_alone() -> None:
    model = bounded(answer_chunks=4)
    state = watched(model, segments(model, 20))
    one, other = model.converse(state), model.converse(state)
    with torch.inference_mode():
        first = one.answer(QUESTION).text
        second = one.answer("and then?").text
        assert other.answer(QUESTION).text == first
        assert other.answer("and then?").text == second
    assert answered(model, state, QUESTION, "and then?") == [first, second]


@torch.inference_mode()
def test_cancelled_question_leaves_the_conversation_as_it_was() -> None:
    model = bounded(answer_chunks=4)
    state = watched(model, segments(model, 20))
    straight, broken = model.converse(state), model.converse(state)
    first = straight.answer(QUESTION).text
    assert broken.answer(QUESTION).text == first
    for _ in broken.ask("something else altogether, which is longer?"):
        break
    assert broken.choose("which?", ("a b c", "d")).choice in (0, 1)
    assert broken.answer("and then?").text == straight.answer("and then?").text


def test_each_question_finds_its_own_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[torch.Tensor] = []

    find = Index.best_chunks

    def noting(index: Index, layer: int, queries: torch.Tensor, *more: Any) -> list[list[int]]:
        asked.append(queries)
        return find(index, layer, queries, *more)

    monkeypatch.setattr(Index, "best_chunks", noting)
    model = bounded(answer_chunks=4)
    answered(model, watched(model, segments(model, 20)), QUESTION, "and then?")
    assert len(asked) == 2 * family().num_layers, "once per layer and question, never for the answer's words"


@pytest.mark.parametrize("count", [30, PAGE_CHUNKS * (NUM_PAGES + 3) + 9], ids=["recent", "pages"])
@pytest.mark.parametrize("name", RETRIEVALS)
def test_chunk_that_receives_the_attention_is_found(name: str, count: int) -> None:
    """A few keys of one chunk point where the queries do; all others are noise."""
    retrieval = RETRIEVALS[name]
    noise = torch.Generator().manual_seed(0)
    direction = 2 * torch.randn(16, generator=noise)
    keys = [torch.randn(3, 2, 6 + number % 3, 16, generator=noise) / 2 for number in range(count)]
    keys[11][:, :, 2:4] += direction
    detailed = paged(keys, retrieval.summarise)
    for per_layer in (True, False):
        one = replace(retrieval, per_layer=per_layer)
        for chunks in Index(detailed, unturned).best_chunks(1, direction.expand(2, 3, -1), one, 2):
            assert len(chunks) == 1 + 4 + 2
            assert 11 in chunks


@pytest.mark.parametrize("name", RETRIEVALS)
def test_pages_found_by_their_outlines_are_nearly_as_good_as_all(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks whose keys drift slowly, as those of a video do: most of the best of all are found."""
    retrieval = RETRIEVALS[name]
    noise = torch.Generator().manual_seed(2)
    drift = torch.randn(2, 2, 30 * PAGE_CHUNKS, 16, generator=noise).cumsum(2) / 8
    keys = [
        drift[:, :, number, None] + torch.randn(2, 2, 8, 16, generator=noise) / 4 for number in range(drift.shape[2])
    ]
    index = Index(paged(keys, retrieval.summarise), unturned)
    monkeypatch.setattr(retrieval_module, "NUM_PAGES", 1000)
    everywhere = Index(index.detailed, unturned)
    assert index.outlines is not None
    assert everywhere.outlines is None
    common = 0
    for _ in range(20):
        queries = torch.randn(2, 2, 16, generator=noise)
        (found,), (best,) = (one.best_chunks(0, queries, retrieval, 20) for one in (index, everywhere))
        common += len(set(found) & set(best) - {0})
    assert common > 0.9 * 20 * 24


@pytest.mark.parametrize("pages", [1, NUM_PAGES + 2], ids=["all looked at", "outlined"])
@pytest.mark.parametrize("name", RETRIEVALS)
def test_keys_that_lie_elsewhere_now_are_found_there(name: str, pages: int) -> None:
    """Where keys are to be turned, the choice is that among keys which were turned before."""
    retrieval, turn = RETRIEVALS[name], turner(family().model)
    noise = torch.Generator().manual_seed(1)
    keys = [torch.randn(2, 2, 4, 16, generator=noise) for _ in range(pages * PAGE_CHUNKS + 10)]
    by = [7 if number < PAGE_CHUNKS // 2 else 3000 for number in range(len(keys))]
    detailed = paged(keys, retrieval.summarise)
    later = moved(detailed, lambda start: start, lambda start: by[start // 4])
    queries = torch.randn(2, 2, 16, generator=noise)
    found, still = (Index(one, turn).best_chunks(0, queries, retrieval, 5) for one in (later, detailed))
    assert found != still
    index = Index(later, turn)
    shown = dict(index._looked_at(0, queries, 5))
    for number, page in enumerate(later.pages):
        first = index.firsts[number]
        turned = torch.stack([turn(page.summary[:, :, at], by[first + at]) for at in range(PAGE_CHUNKS)], 2)
        if first in shown:
            torch.testing.assert_close(shown[first], turned[0], atol=1e-5, rtol=0)
        if index.outlines is not None:
            away = torch.cdist(index.outlines[:, :, number], turned.flatten(2, 3)).amin(-1)
            assert float(away.max()) < 0.01, "each is one of the keys, where that lies now"


def test_peaks_are_the_keys_furthest_from_the_mean() -> None:
    alike = torch.zeros(1, 1, 9, 8)
    alike[0, 0, [2, 7], [1, 3]] = torch.tensor([5.0, -4.0])
    assert {5.0, -4.0} <= set(peaks(alike).flatten().tolist())
    short = torch.randn(1, 2, 3, 8)
    shown = peaks(short)
    assert shown.shape == (1, 2, PEAKS, 8), "of a chunk with fewer keys some stand twice"
    assert all({*shown[0, head, :, 0].tolist()} == {*short[0, head, :, 0].tolist()} for head in range(2))


def paged(keys: list[torch.Tensor], summarise: Summarise) -> Detailed:
    """A cache of these chunks."""
    detailed, at = Detailed(), 0
    for chunk in keys:
        after = at + chunk.shape[2]
        page = chunk_page(
            Rows(keys=chunk, values=chunk),
            summarise=summarise,
            start=at,
            next_position=after,
            end_seconds=float(after),
            first_place=at,
        )
        detailed, at = added(detailed, page), after
    return detailed


def unturned(keys: torch.Tensor, by: torch.Tensor | int) -> torch.Tensor:
    raise AssertionError("nothing lies elsewhere")


def test_tiers_read_the_same_chunks(tmp_path: Any) -> None:
    stream, logits = segments(statekv(), LONG), {}
    for tier, folder in (("memory", None), ("disk", str(tmp_path)), ("int8", None)):
        model = bounded(detailed=tier, detailed_folder=folder, answer_chunks=4)
        logits[tier] = heard(model, watched(model, stream))
    assert torch.equal(logits["disk"], logits["memory"])
    assert 0 < float((logits["int8"] - logits["memory"]).abs().max()) < 0.05 * float(logits["memory"].std())


def test_answers_as_of_a_moment_read_nothing_later() -> None:
    model = bounded(answer_chunks=100, policy="recency")
    stream = segments(model, 20)
    early, late = watched(model, stream[:7]), watched(model, stream)
    at = model.as_of(late, early.seen_seconds)
    torch.testing.assert_close(heard(model, at), heard(model, early), atol=1e-5, rtol=0)


def test_whole_states_cannot_be_asked_boundedly() -> None:
    model = statekv()
    with pytest.raises(ConfigError, match="answer = 'bounded'"):
        model.converse(watched(model, segments(model, 2)), bounded=True)
