"""Streams that come to the end of their model's positions."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.methods.statekv_models import QUESTION, answered, heard, segments, statekv, watched

from longtake.errors import ConfigError, HorizonReached
from longtake.methods.statekv import StateKV
from longtake.methods.statekv_horizon import Horizon, compacted, reanchored
from longtake.session import Session
from longtake.state.pages import moved, since
from longtake.state.tree import map_tensors


def short(positions: int, name: str = "internvl3", **config: Any) -> StateKV:
    """A model that serves so few positions."""
    model = statekv(name, **config)
    model.horizon = replace(model.horizon, positions=positions)
    return model


def test_room_for_questions_is_set_apart() -> None:
    assert statekv(max_new_tokens=100).horizon == Horizon(positions=4096 - 612)
    assert statekv(max_new_tokens=5000).horizon.positions == 4096 * 3 // 4


def test_stop_ends_the_session_with_a_length_and_others_live(caplog: pytest.LogCaptureFixture) -> None:
    model = short(200)
    stream = segments(model, 60)
    session: Session[Any] = Session(model, source="street.mp4")
    other: Session[Any] = Session(model)
    with caplog.at_level(logging.WARNING):
        steps = list(session.follow(stream))
    assert steps[-1].reason == "length"
    assert [step.reason for step in steps[:-1]] == [""] * (len(steps) - 1)
    assert steps[-1].segment is None
    assert 0 < len(steps) - 1 < 60
    messages = [record.getMessage() for record in caplog.records]
    assert len([text for text in messages if "of 200 positions are used" in text]) == 1, "warned once, at 80 %"
    assert len([text for text in messages if text.startswith("street.mp4: horizon reached")]) == 1
    assert session.ask(QUESTION).text
    assert session.state.position <= 200
    assert [step.reason for step in other.follow(stream[:5])] == [""] * 6
    with pytest.raises(HorizonReached, match="can still be asked"):
        model.advance(session.state, stream[len(steps) - 1])


@pytest.mark.parametrize("name", ["qwen3-vl", "internvl3", "qwen2-vl"])
def test_reanchored_state_sees_everything_as_before(name: str) -> None:
    """Turned keys, shifted positions: the next chunk's keys, its scores and the answers stay as they were."""
    model = statekv(name, double=True, budget=40)
    *stream, following = segments(model, 12)
    state = watched(model, stream)
    kv = reanchored(state.kv, 5, model._turn)
    every_chunk = moved(state.kv.detailed, lambda position: position, lambda start: -5)
    shifted = replace(state, kv=replace(kv, detailed=every_chunk))
    after, expected = watched(model, [following], shifted), watched(model, [following], state)
    assert torch.equal(after.kv.carried.places, expected.kv.carried.places)
    # the model makes its angles in float32
    torch.testing.assert_close(after.kv.carried.values, expected.kv.carried.values, atol=1e-4, rtol=0)
    torch.testing.assert_close(heard(model, after), heard(model, expected), atol=1e-4, rtol=0)
    assert answered(model, after) == answered(model, expected)


@pytest.mark.parametrize("name", ["qwen3-vl", "internvl3", "qwen2-vl"])
@pytest.mark.parametrize("answer", ["whole", "bounded"])
def test_reanchoring_stream_matches_one_without_a_horizon(name: str, answer: str) -> None:
    """With the newest keys only, a stream goes on for ever; only what answers may read is cut."""
    wide = statekv(name, policy="recency", budget=40, answer=answer, at_horizon="reanchor", answer_chunks=100)
    positions = 50 if name == "qwen2-vl" else 130
    tight = short(positions, name, policy="recency", budget=40, answer=answer, at_horizon="reanchor", answer_chunks=100)
    stream = segments(wide, 40)
    expected, state = watched(wide, stream), watched(tight, stream)
    assert state.kv.origin > 0
    assert state.position == expected.position
    assert state.position - state.kv.origin <= positions < state.position
    torch.testing.assert_close(state.kv.carried.values, expected.kv.carried.values, atol=2e-4, rtol=0)
    assert state.kv.detailed.num_chunks < 0.8 * expected.kv.detailed.num_chunks, "what lies before is let go"
    first = state.kv.detailed.all_pages()[0]
    assert first.starts[0] >= state.kv.origin
    kept = replace(expected, kv=replace(expected.kv, detailed=since(expected.kv.detailed, first.starts[0])))
    torch.testing.assert_close(heard(tight, state), heard(wide, kept), atol=5e-4, rtol=0)


def test_reanchoring_stops_while_the_beginning_is_carried() -> None:
    model = short(200, at_horizon="reanchor", sinks=4)
    with pytest.raises(HorizonReached, match="as old as the stream"):
        watched(model, segments(model, 60))


def test_state_handed_to_a_reanchoring_or_compacting_advance_stays() -> None:
    for how, policy in (("reanchor", "recency"), ("compact", "statekv")):
        model = short(130, policy=policy, at_horizon=how)
        state, origins = model.init_state(), []
        for segment in segments(model, 30):
            before = map_tensors(state, torch.clone)
            after = watched(model, [segment], state)
            assert torch.equal(before.kv.carried.keys, state.kv.carried.keys)
            assert heard(model, after).isfinite().all()
            state = after
            origins.append(state.kv.origin)
        assert len(set(origins)) > 3


@pytest.mark.parametrize("answer", ["whole", "bounded"])
@pytest.mark.parametrize("name", ["qwen3-vl", "internvl3"])
def test_compacting_stream_goes_on_with_all_it_has_seen(name: str, answer: str) -> None:
    model = short(130, name, at_horizon="compact", answer=answer, answer_chunks=100)
    state = watched(model, segments(model, 60))
    assert state.kv.origin > 0
    assert state.position - state.kv.origin <= 130
    assert state.kv.detailed.num_chunks == 60 + 1
    starts = [start for page in state.kv.detailed.all_pages() for start in page.starts]
    assert starts == sorted(starts)
    assert starts[0] >= state.kv.origin
    if answer == "bounded":
        torch.testing.assert_close(heard(model, state), heard(model, state, bounded=False), atol=1e-4, rtol=0)
    assert model.as_of(state, state.seen_seconds / 2).position < state.position


def test_compacted_keys_are_those_made_at_half_the_distance() -> None:
    """Carried and detailed keys agree, and equal the unturned ones turned by what their chunk moved."""
    model = statekv("internvl3", budget=30)
    state = watched(model, segments(model, 12))
    now = state.position
    kv = compacted(state.kv, now, model._turn)
    assert kv.origin == now - now // 2
    by = (now - (now - state.kv.carried.starts) // 2) - state.kv.carried.starts - kv.origin
    torch.testing.assert_close(kv.carried.keys, model._turn(state.kv.carried.keys, by), atol=1e-5, rtol=0)
    turns = torch.tensor([turn for page in kv.detailed.all_pages() for turn in page.turns])
    starts = torch.tensor([start for page in state.kv.detailed.all_pages() for start in page.starts])
    assert torch.equal(turns, now - (now - starts) // 2 - starts - kv.origin)


def test_compact_is_refused_where_positions_count_from_the_beginning() -> None:
    with pytest.raises(ConfigError, match="at_horizon 'stop' or 'reanchor'"):
        statekv("qwen2-vl", at_horizon="compact")


def test_reanchored_session_resumes(tmp_path: Any) -> None:
    model = short(130, policy="recency", at_horizon="reanchor", answer="bounded")
    stream = segments(model, 40)
    session: Session[Any] = Session(model)
    list(session.follow(stream[:30]))
    session.save(tmp_path / "state")
    resumed: Session[Any] = Session.resume(model, tmp_path / "state")
    for one in (session, resumed):
        list(one.follow(stream[30:]))
    assert resumed.ask(QUESTION) == session.ask(QUESTION)
