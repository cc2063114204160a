"""Bounded answers against whole ones, and what they read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.methods.statekv_models import QUESTION, answered, family, heard, segments, statekv, watched

from longtake.errors import ConfigError
from longtake.methods.statekv_bounded import BoundedPast
from longtake.state.pages import PAGE_CHUNKS
from longtake.state.retrieval import RETRIEVALS, Retrieval, best_chunks, sheets_of

LONG = PAGE_CHUNKS + 10
"""Segments: more than a page."""


def bounded(name: str = "qwen3-vl", **config: Any) -> Any:
    return statekv(name, answer="bounded", **config)


@pytest.mark.parametrize("per_layer", [True, False], ids=["per layer", "per head"])
@pytest.mark.parametrize("name", ["qwen3-vl", "internvl3", "qwen2-vl"])
def test_enough_chunks_match_the_whole_answer(name: str, per_layer: bool) -> None:
    retrieval = replace(RETRIEVALS["share"], per_layer=per_layer)
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
    queries = (query * 0.25).unflatten(0, (2, -1))
    (chunks,) = best_chunks(past.sheets, 1, queries, model.retrieval, model._turn, 3)
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


def test_each_question_finds_its_own_chunks() -> None:
    asked: list[torch.Tensor] = []

    def noting(queries: torch.Tensor, summaries: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        asked.append(queries)
        return RETRIEVALS["mean"].match(queries, summaries, lengths)

    model = bounded(answer_chunks=4, retrieval=replace(RETRIEVALS["mean"], match=noting))
    answered(model, watched(model, segments(model, 20)), QUESTION, "and then?")
    assert len(asked) == 2 * family().num_layers, "once per layer and question, never for the answer's words"


@pytest.mark.parametrize("retrieval", RETRIEVALS.values(), ids=RETRIEVALS)
def test_every_retrieval_finds_the_chunk_that_receives_the_attention(retrieval: Retrieval) -> None:
    """One chunk's keys are made to look like the queries; the others are noise."""
    model = bounded(retrieval=retrieval)
    state = watched(model, segments(model, 30))
    target, layer = 11, 1
    sheets = sheets_of(state.kv.detailed)
    queries = 20 * sheets[0].summary[layer, :, 0, target][:, None].expand(-1, 5, -1)
    for per_layer in (True, False):
        one = replace(retrieval, per_layer=per_layer)
        for chunks in best_chunks(sheets, layer, queries[:, None], one, model._turn, 2):
            assert len(chunks) == 1 + 4 + 2
        scores = retrieval.match(queries, sheets[0].summary[layer], sheets[0].lengths)
        assert scores.shape == (2, 31)
        assert bool(scores.isfinite().all())
    keys = torch.randn(3, 2, 40, 8)
    keys[:, :, 20:] += 5  # the second chunk
    summaries = torch.stack([retrieval.summarise(part)[1] for part in (keys[:, :, :20], keys[:, :, 20:])], dim=2)
    scores = retrieval.match(torch.ones(2, 3, 8), summaries, torch.tensor([20, 20]))
    assert bool((scores[:, 1] > scores[:, 0]).all())


def test_expected_share_is_exact_for_equal_keys() -> None:
    """Without spread, the attention that a chunk receives follows from its mean and its length."""
    retrieval = RETRIEVALS["share"]
    means, lengths, queries = (
        torch.randn(2, 6, 8).double(),
        torch.tensor([3, 1, 4, 1, 5, 9]),
        torch.randn(2, 7, 8).double(),
    )
    chunks = [means[:, number, None].expand(-1, int(length), -1) for number, length in enumerate(lengths)]
    attention = (queries @ torch.cat(chunks, dim=1).mT).softmax(-1).sum(1)
    expected = torch.stack([part.sum(1) for part in attention.split(lengths.tolist(), dim=1)], dim=1)
    summaries = torch.stack([retrieval.summarise(chunk[None])[0] for chunk in chunks], dim=2)
    torch.testing.assert_close(retrieval.match(queries, summaries, lengths), expected, atol=1e-12, rtol=0)


def test_pool_by_mean_key_keeps_the_best() -> None:
    """With the mean score itself, a small pool finds what matching all finds."""
    model = bounded(retrieval=RETRIEVALS["mean"])
    sheets = sheets_of(watched(model, segments(model, LONG)).kv.detailed)
    for layer in range(family().num_layers):
        queries = torch.randn(2, 1, 1, 16)
        narrow, wide = (
            best_chunks(sheets, layer, queries, replace(RETRIEVALS["mean"], pool=pool, per_layer=False), model._turn, 5)
            for pool in (12, 1000)
        )
        assert narrow == wide


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
