"""The three forms of the SSM are one recurrence, for any split of the sequence, in both precisions."""

from __future__ import annotations

import copy
import pickle
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from longtake.errors import ConfigError, StateError
from longtake.state.ssm import (
    MAX_CHUNK,
    SSM,
    S4DLayer,
    SSMWeights,
    chunk_operators,
    optimizer_groups,
    scan_chunked,
    scan_fft,
    ssm_parameters,
    step,
)

TOLERANCE = {torch.float64: 1e-10, torch.float32: 2e-5}
PRECISIONS = pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
FORMS = pytest.mark.parametrize("form", [scan_fft, scan_chunked])


def difference(got: Tensor, expected: Tensor) -> float:
    """Largest error relative to the largest value."""
    return ((got - expected).abs().max() / expected.abs().max()).item()


def make(dtype: torch.dtype, batch: int = 3, dim: int = 12, time: int = 150) -> tuple[SSM, Tensor, Tensor]:
    """A model with slow and fast modes, inputs, and a carried state that is not zero."""
    model = SSM(dim, 16, dt_min=1e-3, dt_max=0.5).to(dtype)
    carried = torch.randn(batch, dim, 8, dtype=dtype.to_complex())
    return model, torch.randn(batch, dim, time, dtype=dtype), carried


def run_steps(inputs: Tensor, weights: SSMWeights, carried: Tensor) -> tuple[Tensor, Tensor]:
    """The truth: one token at a time."""
    outputs: list[Tensor] = []
    for index in range(inputs.shape[-1]):
        output, carried = step(inputs[..., index], weights, carried)
        outputs.append(output)
    return torch.stack(outputs, dim=-1), carried


@PRECISIONS
def test_step_matches_recurrence_written_out_for_one_channel(dtype: torch.dtype) -> None:
    log_A = torch.tensor([[-0.1 + 0.3j, -0.05 + 1.1j]], dtype=dtype.to_complex())
    weights = SSMWeights(log_A=log_A, C=log_A * 2 + 1, D=torch.tensor([0.7], dtype=dtype))
    inputs = [0.5, -2.0, 1.5]
    state = [0.2 + 0.1j, -0.4j]
    carried = torch.tensor([[state]], dtype=dtype.to_complex()).reshape(1, 1, 2)
    for x in inputs:
        output, carried = step(torch.tensor([[x]], dtype=dtype), weights, carried)
        state = [torch.exp(log_A[0, n]).item() * state[n] + x for n in range(2)]
        expected = 2 * sum((weights.C[0, n].item() * state[n]).real for n in range(2)) + 0.7 * x
        assert output.item() == pytest.approx(expected, rel=1e-5)
        assert carried[0, 0].tolist() == pytest.approx(state, rel=1e-5)


@PRECISIONS
@FORMS
@pytest.mark.parametrize("time", [1, 2, 8, 31, 32, 33, 64, 150, 1024])
def test_scan_matches_step(form: object, dtype: torch.dtype, time: int) -> None:
    model, inputs, carried = make(dtype, batch=2, dim=6, time=time)
    weights = model.weights()
    expected, expected_state = run_steps(inputs, weights, carried)
    outputs, state = form(inputs, weights, carried)  # type: ignore[operator]
    assert difference(outputs, expected) < TOLERANCE[dtype]
    assert difference(state, expected_state) < TOLERANCE[dtype]


@PRECISIONS
@FORMS
@given(borders=st.lists(st.integers(0, 150), max_size=6))
def test_split_scan_matches_whole_scan(form: object, dtype: torch.dtype, borders: list[int]) -> None:
    torch.manual_seed(0)
    model, inputs, carried = make(dtype)
    weights = model.weights()
    expected, expected_state = scan_fft(inputs, weights, carried)
    outputs: list[Tensor] = []
    for start, end in pairwise(sorted({0, *borders, 150})):
        output, carried = form(inputs[..., start:end], weights, carried)  # type: ignore[operator]
        outputs.append(output)
    assert difference(torch.cat(outputs, dim=-1), expected) < TOLERANCE[dtype]
    assert difference(carried, expected_state) < TOLERANCE[dtype]


@PRECISIONS
def test_scan_matches_step_when_segments_have_one_token(dtype: torch.dtype) -> None:
    model, inputs, carried = make(dtype, time=40)
    weights = model.weights()
    expected, _ = scan_fft(inputs, weights, carried)
    for index in range(40):
        output, carried = scan_chunked(inputs[..., index : index + 1], weights, carried)
        assert difference(output, expected[..., index : index + 1]) < 10 * TOLERANCE[dtype]


@pytest.mark.parametrize("chunk", [1, 5, 16, 64, 128])
def test_scan_matches_step_for_operators_of_any_chunk(chunk: int) -> None:
    model, inputs, carried = make(torch.float64)
    weights = model.weights()
    expected, expected_state = run_steps(inputs, weights, carried)
    outputs, state = scan_chunked(inputs, weights, carried, chunk_operators(weights, chunk))
    assert difference(outputs, expected) < 1e-10
    assert difference(state, expected_state) < 1e-10


@pytest.mark.parametrize("time", [5, 33, 64])
def test_scan_matches_itself_when_inputs_are_a_transposed_view(time: int) -> None:
    model, inputs, carried = make(torch.float64, time=time)
    view = inputs.transpose(1, 2).contiguous().transpose(1, 2)
    outputs, state = scan_chunked(view, model.weights(), carried)
    expected, expected_state = scan_chunked(inputs, model.weights(), carried)
    assert outputs.transpose(1, 2).is_contiguous()
    assert torch.equal(outputs, expected)
    assert torch.equal(state, expected_state)


@PRECISIONS
@pytest.mark.parametrize("time", [1, 8, 75])
def test_gradients_match_those_of_step(dtype: torch.dtype, time: int) -> None:
    model, inputs, carried = make(dtype, dim=5, time=time)
    wanted = [inputs.requires_grad_(), carried.requires_grad_(), *model.parameters()]

    def gradients(form: object) -> tuple[Tensor, ...]:
        outputs, state = form(inputs, model.weights(), carried)  # type: ignore[operator]
        loss = outputs.square().mean() + (state.abs().square() * torch.arange(8)).mean()
        return torch.autograd.grad(loss, wanted)

    for got, expected in zip(gradients(scan_chunked), gradients(run_steps), strict=True):
        assert difference(got, expected) < TOLERANCE[dtype]


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("time", [1, 5, MAX_CHUNK + 5])
def test_chunked_scan_passes_gradcheck_with_carried_state(time: int, transposed: bool) -> None:
    model, inputs, carried = make(torch.float64, batch=2, dim=2, time=time)
    if transposed:
        inputs = inputs.transpose(1, 2).contiguous().transpose(1, 2)
    parameters = tuple(model.parameters())

    def run(inputs: Tensor, carried: Tensor, *_: Tensor) -> tuple[Tensor, Tensor]:
        return scan_chunked(inputs, model.weights(), carried)

    assert torch.autograd.gradcheck(
        run, (inputs.requires_grad_(), carried.requires_grad_(), *parameters), fast_mode=time > 8
    )


def test_discretisation_matches_matrix_exponential_of_held_input() -> None:
    model = SSM(3, 4).double()
    weights = model.weights()
    dt, A = model.log_dt.exp()[:, None], torch.complex(-model.log_A_real.exp(), model.A_imag)
    for channel in range(3):
        for mode in range(2):
            system = torch.zeros(2, 2, dtype=torch.complex128)  # d/dt (h, x) with x held over the step
            system[0, 0], system[0, 1] = A[channel, mode], 1
            moved = torch.linalg.matrix_exp(system * dt[channel])
            torch.testing.assert_close(weights.log_A.exp()[channel, mode], moved[0, 0])
            C = torch.view_as_complex(model.C)[channel, mode]
            torch.testing.assert_close(weights.C[channel, mode], C * moved[0, 1])


def test_discretisation_keeps_its_precision_for_the_smallest_steps() -> None:
    model = SSM(64, 16, dt_min=1e-6, dt_max=1e-5)
    exact = SSM(64, 16).double()
    exact.load_state_dict(model.double().state_dict())
    expected = exact.weights().C
    assert difference(model.float().weights().C.to(torch.complex128), expected) < 1e-6


def test_initial_parameters_are_s4d_lin() -> None:
    model = SSM(400, 16, dt_min=1e-3, dt_max=1e-1)
    assert torch.allclose(model.log_A_real.exp(), torch.tensor(0.5))
    assert torch.allclose(model.A_imag[7], torch.pi * torch.arange(8.0))
    dt = model.log_dt.exp()
    assert 1e-3 <= dt.min() < 1.3e-3
    assert 0.8e-1 < dt.max() <= 1e-1
    assert abs(model.log_dt.mean().item() + 4.605) < 0.25  # log-uniform: centred on 1e-2


@pytest.mark.parametrize("form", [scan_fft, scan_chunked, SSM.forward])
def test_state_stays_in_full_precision_under_bf16_autocast(form: object) -> None:
    model, inputs, carried = make(torch.float32, time=70)
    inputs = inputs.bfloat16()
    first = model if form is SSM.forward else inputs
    arguments = (inputs, carried) if form is SSM.forward else (model.weights(), carried)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        outputs, state = form(first, *arguments)  # type: ignore[operator]
    expected, expected_state = run_steps(inputs.float(), model.weights(), carried)
    assert outputs.dtype == torch.bfloat16
    assert state.dtype == torch.complex64
    assert difference(state, expected_state) < 2e-5
    assert difference(outputs.float(), expected) < 2**-8


def test_bf16_parameters_still_carry_a_full_precision_state() -> None:
    model = SSM(4).bfloat16()
    outputs, state = model(torch.randn(1, 4, 10).bfloat16(), model.init_carried(1))
    assert (outputs.dtype, state.dtype) == (torch.bfloat16, torch.complex64)


@pytest.mark.parametrize("time", [8, 75])
def test_frozen_model_matches_training_form(time: int) -> None:
    model, inputs, carried = make(torch.float64, time=time)
    expected, expected_state = model(inputs, carried)
    model.eval()
    for _ in range(2):  # the second call uses the kept matrices
        with torch.inference_mode():
            outputs, state = model(inputs, carried)
        torch.testing.assert_close(outputs, expected, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(state, expected_state, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("change", ["optimizer", "load", "assign", "double"])
def test_frozen_model_notices_changed_parameters(change: str) -> None:
    model, inputs, carried = make(torch.float32, time=20)
    other = SSM(12).state_dict()
    model.eval()
    with torch.inference_mode():
        before, _ = model(inputs, carried)
    if change == "optimizer":
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
        torch.optim.SGD(model.parameters(), lr=0.1).step()
    elif change == "double":
        model.double()
        inputs, carried = inputs.double(), carried.to(torch.complex128)
    else:
        model.load_state_dict(other, assign=change == "assign")
    with torch.inference_mode():
        after, _ = model(inputs, carried)
    expected, _ = scan_fft(inputs, model.weights(), carried)
    assert difference(after, expected.detach()) < 2e-5
    assert change == "double" or difference(after, before) > 1e-3


def test_model_made_under_inference_mode_runs() -> None:
    with torch.inference_mode():
        model = SSM(4).eval()
        outputs, _ = model(torch.randn(1, 4, 9), model.init_carried(1))
    assert outputs.isfinite().all()


def test_copies_do_not_drag_the_kept_matrices_along() -> None:
    model, inputs, carried = make(torch.float32)
    fresh = len(pickle.dumps(model.eval()))
    with torch.inference_mode():
        expected, _ = model(inputs, carried)
        outputs, _ = copy.deepcopy(model)(inputs, carried)
    assert torch.equal(outputs, expected)
    assert len(pickle.dumps(model)) == fresh


def test_scan_leaves_its_arguments_and_the_thread_count_alone() -> None:
    model, inputs, carried = make(torch.float32)
    kept, kept_carried, threads = inputs.clone(), carried.clone(), torch.get_num_threads()
    with torch.inference_mode():
        model.eval()(inputs, carried)
    assert torch.equal(inputs, kept)
    assert torch.equal(carried, kept_carried)
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("form", [scan_fft, scan_chunked])
@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ((2, 12, 8), torch.complex64),
        ((3, 11, 8), torch.complex64),
        ((3, 12, 4), torch.complex64),
        ((3, 12, 8), torch.complex128),
        ((12, 8), torch.complex64),
    ],
)
def test_carried_state_of_another_shape_or_precision_is_refused(
    form: object, shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    model, inputs, _ = make(torch.float32)
    unchecked = getattr(form, "__wrapped__", form)  # the test run's shape checks would refuse it first
    with pytest.raises(StateError) as refusal:
        unchecked(inputs, model.weights(), torch.zeros(shape, dtype=dtype))
    message = str(refusal.value)
    assert str(shape) in message
    assert str(dtype) in message
    assert "torch.complex64 (3, 12, 8)" in message
    assert "\n" not in message


def test_layer_matches_itself_when_split() -> None:
    layer = S4DLayer(16, dropout=0.1, mlp_ratio=2.0).double().eval()
    inputs = torch.randn(2, 50, 16, dtype=torch.float64)
    whole, _ = layer(inputs, layer.init_carried(2))
    first, carried = layer(inputs[:, :13], layer.init_carried(2))
    second, _ = layer(inputs[:, 13:], carried)
    assert difference(torch.cat([first, second], dim=1), whole) < 1e-10


def test_layer_remembers_only_through_the_carried_state() -> None:
    layer = S4DLayer(16, dt_max=0.5).eval()
    past, present = torch.randn(1, 8, 16), torch.randn(1, 8, 16)
    _, carried = layer(past, layer.init_carried(1))
    fresh, _ = layer(present, layer.init_carried(1))
    assert difference(layer(present, carried)[0], fresh) > 1e-3
    assert torch.equal(layer(present, layer.init_carried(1))[0], fresh)


def test_dropout_acts_in_training_only() -> None:
    layer = S4DLayer(16, dropout=0.5)
    inputs, carried = torch.randn(1, 8, 16), layer.init_carried(1)
    assert not torch.equal(layer(inputs, carried)[0], layer(inputs, carried)[0])
    layer.eval()
    assert torch.equal(layer(inputs, carried)[0], layer(inputs, carried)[0])


def test_optimizer_groups_cover_every_parameter_once_and_spare_the_dynamics() -> None:
    layer = S4DLayer(8, mlp_ratio=2.0)
    groups = optimizer_groups(layer, learning_rate=1e-3, weight_decay=0.1, ssm_scale=0.25)
    ids = [id(parameter) for group in groups for parameter in group["params"]]
    assert sorted(ids) == sorted(id(parameter) for parameter in layer.parameters())
    dynamics = {id(parameter) for parameter in ssm_parameters(layer)}
    assert dynamics == {id(layer.ssm.log_dt), id(layer.ssm.log_A_real), id(layer.ssm.A_imag)}
    slow = [group for group in groups if {id(parameter) for parameter in group["params"]} & dynamics]
    assert [(group["lr"], group["weight_decay"], len(group["params"])) for group in slow] == [(2.5e-4, 0.0, 3)]
    decayed = [p for group in groups if group["weight_decay"] for p in group["params"]]
    assert all(parameter.ndim > 1 for parameter in decayed)


def test_training_learns_to_recall_across_a_cut_gradient() -> None:
    """Truncated back-propagation: the state is cut between segments, yet what it holds is used."""
    layer = S4DLayer(16, dt_max=0.5)
    head = torch.nn.Linear(16, 1)
    optimizer = torch.optim.AdamW([*layer.parameters(), *head.parameters()], lr=1e-2)
    pattern = torch.randn(16)
    first = last = 0.0
    for index in range(60):
        sign = torch.randint(0, 2, (32, 1, 1)) * 2.0 - 1
        _, carried = layer((sign * pattern).expand(32, 4, 16), layer.init_carried(32))
        outputs, _ = layer(torch.ones(32, 4, 16), carried.detach())
        loss = (head(outputs[:, -1]) - sign[:, 0]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        first, last = (loss.item() if index == 0 else first), loss.item()
    assert last < 0.1 * first


@pytest.mark.parametrize(
    ("state", "dt_min", "dt_max"), [(15, 1e-3, 1e-1), (0, 1e-3, 1e-1), (16, 0.0, 0.1), (16, 0.2, 0.1)]
)
def test_impossible_sizes_are_refused(state: int, dt_min: float, dt_max: float) -> None:
    with pytest.raises(ConfigError, match="expected"):
        SSM(4, state, dt_min, dt_max)
