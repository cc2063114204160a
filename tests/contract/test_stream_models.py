"""What every StreamModel must hold, run over all of them: the list is in ``models.py``."""

from __future__ import annotations

import dataclasses
import itertools
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.contract.models import CASES, Case, cut, make_segments
from torch import Tensor

from longtake.errors import LongtakeError, StateError, UnsupportedRequest
from longtake.protocol import StreamModel
from longtake.state.tree import load_state, map_tensors, num_bytes, save_state
from longtake.types import Ask, Caption, Choose, Classify, Embed, Request, Segment

ROOT = Path(__file__).resolve().parents[2]
SAMPLES: dict[type[Request], Request] = {
    Caption: Caption(),
    Ask: Ask(question="how often was it red?"),
    Choose: Choose(question="which came most often?", options=("red", "blue")),
    Classify: Classify(),
    Embed: Embed(),
}


@pytest.fixture(params=CASES, scope="module")
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture(scope="module")
def model(case: Case) -> StreamModel[Any]:
    return case.make()


def tensors(state: object) -> list[Tensor]:
    found: list[Tensor] = []

    def note(tensor: Tensor) -> Tensor:
        found.append(tensor)
        return tensor

    map_tensors(state, note)
    return found


def same(one: object, other: object) -> bool:
    """Equal to the bit, tensors and everything else."""
    left, right = tensors(one), tensors(other)
    if [tensor.shape for tensor in left] != [tensor.shape for tensor in right]:
        return False
    pairs = zip(left, right, strict=True)
    blank_one, blank_other = (dataclasses.astuple(map_tensors(state, torch.zeros_like)) for state in (one, other))
    return all(torch.equal(*pair) for pair in pairs) and str(blank_one) == str(blank_other)


@torch.inference_mode()
def take_in(model: StreamModel[Any], state: Any, segments: list[Segment]) -> tuple[Any, list[str]]:
    """The state after all segments, and everything said on the way, in full precision."""
    said: list[str] = []
    for segment in segments:
        state = model.advance(state, segment)
        for kind in sorted(model.supports, key=lambda kind: kind.__name__):
            said += [str(response) for response in model.respond(state, SAMPLES[kind])]
    return state, said


def test_model_is_a_stream_model_and_says_something(model: StreamModel[Any]) -> None:
    assert isinstance(model, StreamModel)
    assert model.fingerprint == model.fingerprint
    _, said = take_in(model, model.init_state(), make_segments(model.segment_spec, 8))
    assert len(set(said)) >= 3


def test_two_models_have_two_fingerprints_and_equal_ones_have_one(case: Case) -> None:
    assert case.make().fingerprint == case.make().fingerprint != case.make_other().fingerprint


def test_state_is_a_frozen_value_of_tensors_and_plain_things(model: StreamModel[Any]) -> None:
    state = model.init_state()
    assert dataclasses.is_dataclass(state)
    with pytest.raises((dataclasses.FrozenInstanceError, AttributeError)):
        setattr(state, dataclasses.fields(state)[0].name, None)
    assert tensors(state)


@torch.inference_mode()
def test_advance_never_writes_into_what_it_was_handed(model: StreamModel[Any]) -> None:
    state = model.init_state()
    for segment in make_segments(model.segment_spec, 4):
        state_before, pixels_before = map_tensors(state, torch.clone), segment.pixels.clone()
        places = [tensor.data_ptr() for tensor in tensors(state)]
        after = model.advance(state, segment)
        assert same(state, state_before)
        assert torch.equal(segment.pixels, pixels_before)
        assert [tensor.data_ptr() for tensor in tensors(state)] == places
        assert not same(after, state)
        state = after


@torch.inference_mode()
def test_state_does_not_look_into_the_segment(model: StreamModel[Any]) -> None:
    """The reader may use its buffer again: a state that shares it would change later."""
    (segment,) = make_segments(model.segment_spec, 1)
    state = model.advance(model.init_state(), segment)
    before = map_tensors(state, torch.clone)
    segment.pixels.fill_(7)
    assert same(state, before)


def test_respond_leaves_state_unchanged(model: StreamModel[Any]) -> None:
    state, _ = take_in(model, model.init_state(), make_segments(model.segment_spec, 3))
    before = map_tensors(state, torch.clone)
    first, second = ([str(one) for kind in model.supports for one in model.respond(state, SAMPLES[kind])] for _ in "ab")
    assert same(state, before)
    assert first == second


def test_unsupported_request_is_refused(model: StreamModel[Any]) -> None:
    for kind in SAMPLES.keys() - model.supports:
        with pytest.raises(UnsupportedRequest, match=kind.__name__):
            list(model.respond(model.init_state(), SAMPLES[kind]))


def test_caption_of_nothing_seen_is_nothing(model: StreamModel[Any]) -> None:
    assert Caption not in model.supports or list(model.respond(model.init_state(), Caption())) == []


def test_interleaved_sessions_match_separate_ones(model: StreamModel[Any]) -> None:
    one, other = (make_segments(model.segment_spec, 5, seed=seed) for seed in (1, 2))
    separate = [take_in(model, model.init_state(), segments) for segments in (one, other)]
    states, said = [model.init_state(), model.init_state()], [[], []]
    for pair in zip(one, other, strict=True):
        for index, segment in enumerate(pair):
            states[index], more = take_in(model, states[index], [segment])
            said[index] += more
    for index in range(2):
        assert said[index] == separate[index][1]
        assert same(states[index], separate[index][0])


def test_saved_state_resumes_identically(model: StreamModel[Any], tmp_path: Path) -> None:
    segments = make_segments(model.segment_spec, 6)
    unbroken_state, unbroken = take_in(model, model.init_state(), segments)
    state, first = take_in(model, model.init_state(), segments[:3])
    save_state(tmp_path / "state", state, fingerprint=model.fingerprint, extra={})
    loaded, _ = load_state(tmp_path / "state", type(state), fingerprint=model.fingerprint)
    assert same(loaded, state)
    end, second = take_in(model, loaded, segments[3:])
    assert first + second == unbroken
    assert same(end, unbroken_state)


def test_state_of_a_killed_process_resumes_identically(case: Case, model: StreamModel[Any], tmp_path: Path) -> None:
    """Another process saves after each segment and is killed with SIGKILL; this one goes on."""
    state_file = tmp_path / "state"
    command = [sys.executable, "-m", "tests.contract.victim", case.name, str(state_file), "3"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    segments = make_segments(model.segment_spec, 6)
    state, extra = load_state(state_file, type(model.init_state()), fingerprint=model.fingerprint)
    assert extra == {"segments": 3}
    _, second = take_in(model, state, segments[3:])
    _, unbroken = take_in(model, model.init_state(), segments)
    assert first + second == unbroken


def test_state_bytes_grow_as_documented(case: Case, model: StreamModel[Any]) -> None:
    state, sizes = model.init_state(), []
    for segment in make_segments(model.segment_spec, 40):
        state, _ = take_in(model, state, [segment])
        sizes.append(num_bytes(state))
    assert max(sizes) <= model.max_state_bytes()
    if case.keeps_everything:
        growth = [after - before for before, after in itertools.pairwise(sizes)]
        # a time in words may have a letter more
        assert max(growth[20:]) <= 1.2 * max(growth[10:20]), "a later segment costs more than an early one"
    else:
        assert sizes[-1] <= max(sizes[:20]), "the state still grows"


def test_segments_of_one_frame_work(model: StreamModel[Any]) -> None:
    segments = make_segments(model.segment_spec, 2 * model.segment_spec.num_frames, num_frames=1)
    state, _ = take_in(model, model.init_state(), segments)
    assert num_bytes(state) <= model.max_state_bytes()


@pytest.mark.parametrize("lengths", [(1,) * 12, (1, 3, 2, 4, 2), (4, 1, 4, 3)])
@pytest.mark.parametrize("name", [case.name for case in CASES.values() if case.carried is not None])
def test_carried_state_does_not_depend_on_the_cuts(name: str, lengths: tuple[int, ...]) -> None:
    """Of the methods that promise it."""
    case, model = CASES[name], CASES[name].make()
    assert case.carried is not None
    spec = model.segment_spec
    whole = make_segments(spec, 12 // spec.num_frames)
    frames = torch.cat([segment.pixels for segment in whole])
    borders = [0, *itertools.accumulate(lengths)]
    pieces = [cut(frames, spec, start, stop, index) for index, (start, stop) in enumerate(itertools.pairwise(borders))]
    one, other = (take_in(model, model.init_state(), segments)[0] for segments in (whole, pieces))
    for left, right in zip(case.carried(one), case.carried(other), strict=True):
        torch.testing.assert_close(left, right, rtol=2e-5, atol=2e-5)


def test_last_segment_may_be_shorter(model: StreamModel[Any]) -> None:
    full = make_segments(model.segment_spec, 2)
    short = dataclasses.replace(full[1], pixels=full[1].pixels[:2], pts_seconds=full[1].pts_seconds[:2])
    state, _ = take_in(model, model.init_state(), [full[0], short])
    assert num_bytes(state) <= model.max_state_bytes()


@torch.inference_mode()
def test_frames_of_another_size_are_refused(model: StreamModel[Any]) -> None:
    (segment,) = make_segments(model.segment_spec, 1)
    wrong = dataclasses.replace(segment, pixels=segment.pixels[:, :, 1:])
    with pytest.raises(LongtakeError, match=r"expected"):
        model.advance(model.init_state(), wrong)


@torch.inference_mode()
def test_stale_batch_size_is_refused(case: Case, model: StreamModel[Any]) -> None:
    (segment,) = make_segments(model.segment_spec, 1)
    with pytest.raises(StateError, match=r"expected"):
        model.advance(case.make_batch(model), segment)


def test_state_of_other_weights_is_refused(case: Case, model: StreamModel[Any], tmp_path: Path) -> None:
    save_state(tmp_path / "state", model.init_state(), fingerprint=model.fingerprint, extra={})
    other = case.make_other()
    with pytest.raises(StateError, match="saved by"):
        load_state(tmp_path / "state", type(other.init_state()), fingerprint=other.fingerprint)


def test_state_of_another_kind_of_model_is_refused(case: Case, model: StreamModel[Any], tmp_path: Path) -> None:
    save_state(tmp_path / "state", model.init_state(), fingerprint=model.fingerprint, extra={})
    one_of_each = {name.partition("-")[0]: other for name, other in CASES.items()}
    for other in one_of_each.values():
        stranger = other.make()
        if type(stranger) is not type(model):
            with pytest.raises(StateError, match="use the kind of model that saved it"):
                load_state(tmp_path / "state", type(stranger.init_state()), fingerprint=stranger.fingerprint)
