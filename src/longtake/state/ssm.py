"""S4D with a transfer state: a diagonal state-space model whose state can be carried from segment to segment.

Three forms of one recurrence ``h_k = A h_{k-1} + x_k``, ``y_k = 2 Re(C h_k) + D x_k`` (B is folded into C):

- ``step``: one token at a time, the truth the others are tested against;
- ``scan_fft``: the paper's form, kernel by FFT plus echo of the carried state and hidden kernel; kept as reference;
- ``scan_chunked``: the form that runs, training included; matrix products inside chunks, the state between them.

Axis words: ``batch`` independent streams, ``dim`` channels, ``time`` tokens, ``state`` complex modes, half of the
``state`` size N that papers count, since modes come in conjugate pairs.

Equation: 3 to 12 of the STS paper; rows "ssm" of docs/papers.md.
Departs: eq. 7 and 8 print ``A^(L-1) h_0`` and eq. 12 is off by one power; we follow the recurrence, eq. 9 and 10.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, cast

import torch
from jaxtyping import Complex, Float
from torch import Tensor, nn

from longtake.errors import ConfigError, StateError
from longtake.state.layout import channels_first, channels_last

MAX_CHUNK = 32
"""Tokens per chunk; a larger one moves more memory for its Toeplitz matrix, a smaller one carries more often."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SSMWeights:
    """A discretised SSM: constants of one forward pass, or of a whole stream when weights are frozen."""

    log_A: Complex[Tensor, "dim state"]  # noqa: N815
    """Step times continuous A; ``exp`` of it moves the state by one token."""
    C: Complex[Tensor, "dim state"]
    """Output matrix with the discretised B folded in."""
    D: Float[Tensor, " dim"]
    """Skip connection."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChunkOperators:
    """What ``scan_chunked`` multiplies with, for chunks of one length; complex modes as (real, imaginary) pairs."""

    toeplitz: Float[Tensor, "dim chunk chunk"]
    """Inputs of a chunk to its outputs, skip connection included."""
    hidden: Float[Tensor, "dim chunk pairs"]
    """Inputs of a chunk to the state at its end."""
    echo: Float[Tensor, "dim pairs chunk"]
    """State before a chunk to its outputs."""
    powers: Complex[Tensor, "dim chunk_plus_one state"]
    """A to the power of 0 to chunk."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FFTKernels:
    """What ``scan_fft`` multiplies with, for segments of one length."""

    spectrum: Complex[Tensor, "dim frequency"]
    """Of the kernel [CB, CAB, ...]."""
    hidden: Complex[Tensor, "dim state time"]
    """[..., AB, B]: inputs to the state at the end."""
    powers: Complex[Tensor, "dim state time"]
    """A to the power of 1 to ``time``."""


def step(
    inputs: Float[Tensor, "batch dim"],
    weights: SSMWeights,
    carried: Complex[Tensor, "batch dim state"],
) -> tuple[Float[Tensor, "batch dim"], Complex[Tensor, "batch dim state"]]:
    """Advance by one token.

    Raises:
        StateError: ``carried`` was made for another batch size, width, state size or precision.

    Equation: 9 and 10.
    """
    dtype = _check(inputs.unsqueeze(-1), weights, carried)
    with full_precision(inputs):
        x = inputs.to(dtype)
        carried = torch.exp(weights.log_A) * carried + x.unsqueeze(-1)
        outputs = 2 * (weights.C * carried).real.sum(-1) + weights.D * x
    return outputs.to(inputs.dtype), carried


def scan_fft(
    inputs: Float[Tensor, "batch dim time"],
    weights: SSMWeights,
    carried: Complex[Tensor, "batch dim state"],
    kernels: FFTKernels | None = None,
) -> tuple[Float[Tensor, "batch dim time"], Complex[Tensor, "batch dim state"]]:
    """Run one segment in the paper's form: reference for tests and benchmarks.

    ``kernels`` are those of ``fft_kernels(weights, time)``, built here if not given.

    Raises:
        StateError: ``carried`` was made for another batch size, width, state size or precision.

    Equation: 5 (kernel), 6 (hidden kernel), 7 and 8 (echo), with the powers of eq. 9.
    """
    dtype = _check(inputs, weights, carried)
    time = inputs.shape[-1]
    with full_precision(inputs):
        x = inputs.to(dtype)
        kernels = kernels or fft_kernels(weights, time)
        spectrum = cast(Tensor, torch.fft.rfft(x, n=2 * time)) * kernels.spectrum  # pyright: ignore
        convolved = cast(Tensor, torch.fft.irfft(spectrum, n=2 * time))[..., :time]  # pyright: ignore
        echo = 2 * torch.einsum("bdn,dnt->bdt", weights.C * carried, kernels.powers).real
        outputs = convolved + echo + weights.D.unsqueeze(-1) * x
        hidden = torch.einsum("bdt,dnt->bdn", x.to(carried.dtype), kernels.hidden)
        carried = hidden + kernels.powers[..., -1] * carried
    return outputs.to(inputs.dtype), carried


def fft_kernels(weights: SSMWeights, time: int) -> FFTKernels:
    """Build the kernels of ``scan_fft``; O(dim state time) complex exponentials."""
    exponents = torch.arange(time + 1, dtype=weights.D.dtype, device=weights.D.device)
    powers = torch.exp(weights.log_A.unsqueeze(-1) * exponents)
    kernel = 2 * torch.einsum("dn,dnt->dt", weights.C, powers[..., :time]).real
    # padded to twice the length, since a product of spectra wraps around
    spectrum = cast(Tensor, torch.fft.rfft(kernel, n=2 * time))  # pyright: ignore
    return FFTKernels(spectrum=spectrum, hidden=powers[..., :time].flip(-1), powers=powers[..., 1:])


def scan_chunked(
    inputs: Float[Tensor, "batch dim time"],
    weights: SSMWeights,
    carried: Complex[Tensor, "batch dim state"],
    operators: ChunkOperators | None = None,
) -> tuple[Float[Tensor, "batch dim time"], Complex[Tensor, "batch dim state"]]:
    """Run one segment from the carried state; equal to ``step`` called once per token, differentiable through both.

    ``operators`` are those of ``chunk_operators(weights, chunk)`` for any chunk, built here if not given. Inputs that
    are a transposed "batch time dim" tensor are the fast case; outputs come back in the same layout.

    Raises:
        StateError: ``carried`` was made for another batch size, width, state size or precision.

    Equation: 9 and 10 unrolled over a chunk.
    Departs: never below float32/complex64, also under bf16 autocast.
    """
    dtype = _check(inputs, weights, carried)
    with full_precision(inputs):
        if operators is None:
            operators = chunk_operators(weights, chunk_length(inputs.shape[-1]))
        outputs, carried = _scan(inputs.to(dtype), operators, carried)
    return outputs.to(inputs.dtype), carried


def chunk_length(time: int) -> int:
    """Chunk that suits a segment of ``time`` tokens: a power of two, so that few lengths are ever cached."""
    return min(MAX_CHUNK, 1 << max(0, time.bit_length() - 1))


def chunk_operators(weights: SSMWeights, chunk: int) -> ChunkOperators:
    """Build the matrices of ``scan_chunked``; O(dim chunk (chunk + state)) work and memory."""
    powers = _powers(weights.log_A, chunk)
    # 2 Re(c h) = Re(2c) Re(h) - Im(2c) Im(h), hence the conjugate
    response = torch.view_as_real(((2 * weights.C).unsqueeze(1) * powers).conj_physical_())
    kernel = response[:, :chunk, :, 0].sum(-1)
    kernel = torch.cat([kernel[:, :1] + weights.D.unsqueeze(-1), kernel[:, 1:]], dim=1)
    # row i of the Toeplitz matrix is the kernel moved right by i: windows of the kernel behind zeros, last one first
    windows = nn.functional.pad(kernel, (chunk - 1, 0)).unfold(1, chunk, 1)
    return ChunkOperators(
        toeplitz=windows.flip(1),
        hidden=torch.view_as_real(powers[:, :chunk].flip(1)).flatten(-2),
        echo=response[:, 1:].flatten(-2).mT.contiguous(),
        powers=powers,
    )


class SSM(nn.Module):
    """Parameters of one diagonal SSM per channel, S4D-Lin initialised, and their discretisation.

    Equation: 1 to 4, zero-order hold.
    """

    def __init__(self, dim: int, state: int = 16, dt_min: float = 1e-3, dt_max: float = 1e-1) -> None:
        super().__init__()
        if state < 2 or state % 2:
            raise ConfigError(f"SSM state is {state}, expected an even number above 0 (conjugate pairs)")
        if not 0 < dt_min <= dt_max:
            raise ConfigError(f"SSM steps are dt_min {dt_min} and dt_max {dt_max}, expected 0 < dt_min <= dt_max")
        self.dim = dim
        self.state = state
        modes = state // 2
        spread = torch.rand(dim) * (math.log(dt_max) - math.log(dt_min)) + math.log(dt_min)
        self.log_dt = nn.Parameter(spread)
        self.log_A_real = nn.Parameter(torch.full((dim, modes), math.log(0.5)))
        self.A_imag = nn.Parameter(math.pi * torch.arange(modes, dtype=torch.get_default_dtype()).repeat(dim, 1))
        self.C = nn.Parameter(torch.randn(dim, modes, 2) * math.sqrt(0.5))
        self.D = nn.Parameter(torch.randn(dim))
        self._cache: tuple[object, SSMWeights, dict[int, ChunkOperators]] | None = None

    def weights(self) -> SSMWeights:
        """Discretise by zero-order hold; differentiable, never below float32."""
        dtype = torch.promote_types(self.log_dt.dtype, torch.float32)
        dt = torch.exp(self.log_dt.to(dtype)).unsqueeze(-1)
        A_real, A_imag = -torch.exp(self.log_A_real.to(dtype)), self.A_imag.to(dtype)
        C = torch.view_as_complex(self.C.to(dtype))
        held = _complex_expm1(dt * A_real, dt * A_imag) / torch.complex(A_real, A_imag)
        return SSMWeights(log_A=torch.complex(dt * A_real, dt * A_imag), C=C * held, D=self.D.to(dtype))

    def init_carried(self, batch: int) -> Complex[Tensor, "batch dim state"]:
        """State of streams of which nothing has been seen."""
        dtype = torch.promote_types(self.log_dt.dtype, torch.float32).to_complex()
        # Stored with channels first, as scan_chunked computes and returns it.
        return torch.zeros(self.dim, batch, self.state // 2, dtype=dtype, device=self.log_dt.device).permute(1, 0, 2)

    def forward(
        self, inputs: Float[Tensor, "batch dim time"], carried: Complex[Tensor, "batch dim state"]
    ) -> tuple[Float[Tensor, "batch dim time"], Complex[Tensor, "batch dim state"]]:
        """``scan_chunked`` with these parameters; matrices are kept between calls where no gradient is wanted."""
        if torch.is_grad_enabled() or self.training:
            return scan_chunked(inputs, self.weights(), carried)
        weights, cached = self._frozen()
        chunk = chunk_length(inputs.shape[-1])
        if chunk not in cached:
            cached[chunk] = chunk_operators(weights, chunk)
        return scan_chunked(inputs, weights, carried, cached[chunk])

    def train(self, mode: bool = True) -> SSM:
        """Set the mode and forget the matrices of the frozen weights."""
        self._cache = None
        return super().train(mode)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_cache": None}

    def _frozen(self) -> tuple[SSMWeights, dict[int, ChunkOperators]]:
        """Weights and matrices of the present parameters; an in-place or other replacement of one is noticed.

        Writing through ``parameter.data`` is not: call ``train`` or ``eval`` after it.
        """
        parameters = (self.log_dt, self.log_A_real, self.A_imag, self.C, self.D)
        # parameters made under inference_mode have no version
        key = tuple((id(p), p.data_ptr(), 0 if p.is_inference() else p._version, p.dtype) for p in parameters)
        if self._cache is None or self._cache[0] != key:
            self._cache = (key, self.weights(), {})
        return self._cache[1], self._cache[2]


class S4DLayer(nn.Module):
    """Pre-norm residual block around an SSM, as in S4D: norm, SSM, GELU, gated projection, dropout, residual.

    With ``mlp_ratio`` above 0 a second pre-norm residual block follows: linear, GELU, linear.
    """

    def __init__(
        self,
        dim: int,
        state: int = 16,
        dt_min: float = 1e-3,
        dt_max: float = 1e-1,
        dropout: float = 0.0,
        mlp_ratio: float = 0.0,
    ) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.ssm = SSM(dim, state, dt_min, dt_max)
        self.gate = nn.Linear(dim, 2 * dim)
        self.dropout = nn.Dropout(dropout)
        self.mlp = _mlp(dim, round(dim * mlp_ratio), dropout) if mlp_ratio else None

    def init_carried(self, batch: int) -> Complex[Tensor, "batch dim state"]:
        """State of streams of which nothing has been seen."""
        return self.ssm.init_carried(batch)

    def forward(
        self, inputs: Float[Tensor, "batch time dim"], carried: Complex[Tensor, "batch dim state"]
    ) -> tuple[Float[Tensor, "batch time dim"], Complex[Tensor, "batch dim state"]]:
        """Take in one segment of tokens."""
        mixed, carried = self.ssm(self.norm(inputs).transpose(1, 2), carried)
        mixed = nn.functional.gelu(mixed.transpose(1, 2))
        outputs = inputs + self.dropout(nn.functional.glu(self.gate(mixed), dim=-1))
        return (outputs if self.mlp is None else outputs + self.mlp(outputs)), carried


def ssm_parameters(module: nn.Module) -> Iterator[nn.Parameter]:
    """A and dt of every SSM in ``module``: no weight decay and a smaller learning rate for these."""
    for part in module.modules():
        if isinstance(part, SSM):
            yield from (part.log_dt, part.log_A_real, part.A_imag)


def optimizer_groups(
    module: nn.Module, *, learning_rate: float, weight_decay: float, ssm_scale: float = 0.3
) -> list[dict[str, Any]]:
    """Parameter groups for an optimizer: matrices decay, vectors do not, A and dt learn slower and do not decay."""
    slow = {id(parameter) for parameter in ssm_parameters(module)}
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    groups: list[tuple[Callable[[nn.Parameter], bool], float, float]] = [
        (lambda p: id(p) not in slow and p.ndim > 1, learning_rate, weight_decay),
        (lambda p: id(p) not in slow and p.ndim <= 1, learning_rate, 0.0),
        (lambda p: id(p) in slow, learning_rate * ssm_scale, 0.0),
    ]
    chosen = [([p for p in trained if belongs(p)], lr, decay) for belongs, lr, decay in groups]
    return [{"params": members, "lr": lr, "weight_decay": decay} for members, lr, decay in chosen if members]


def _scan(
    inputs: Float[Tensor, "batch dim time"], operators: ChunkOperators, carried: Complex[Tensor, "batch dim state"]
) -> tuple[Float[Tensor, "batch dim time"], Complex[Tensor, "batch dim state"]]:
    """Chunks of the operators' length, then one shorter chunk for what is left."""
    time, chunk = inputs.shape[-1], operators.toeplitz.shape[-1]
    x, state = channels_first(inputs), carried.permute(1, 0, 2).contiguous()
    whole = time - time % chunk
    if whole in (0, time):
        outputs, state = _run_chunks(x, operators if whole else _shortened(operators, time), state)
    else:
        head, state = _run_chunks(x[..., :whole], operators, state)
        tail, state = _run_chunks(x[..., whole:], _shortened(operators, time - whole), state)
        outputs = torch.cat([head, tail], dim=-1)
    outputs = channels_last(outputs) if inputs.stride(1) == 1 else outputs.permute(1, 0, 2)
    return outputs, state.permute(1, 0, 2)


def _run_chunks(
    x: Float[Tensor, "dim batch time"], operators: ChunkOperators, state: Complex[Tensor, "dim batch state"]
) -> tuple[Float[Tensor, "dim batch time"], Complex[Tensor, "dim batch state"]]:
    """Whole chunks only. Two products over all chunks at once, a cheap loop between chunks, one more product."""
    dim, batch, time = x.shape
    chunk = operators.toeplitz.shape[-1]
    count = time // chunk
    rows = x.reshape(dim, batch * time).contiguous().view(dim, batch * count, chunk)
    gains = torch.view_as_complex(torch.bmm(rows, operators.hidden).view(dim, batch, count, -1, 2))
    before, state = _carry(gains, operators.powers[:, -1:].contiguous(), state)
    pairs = torch.view_as_real(before).view(dim, batch * count, -1)
    outputs = torch.bmm(rows, operators.toeplitz).baddbmm_(pairs, operators.echo)
    return outputs.view(dim, batch, time), state


def _carry(
    gains: Complex[Tensor, "dim batch count state"],
    decay: Complex[Tensor, "dim 1 state"],
    state: Complex[Tensor, "dim batch state"],
) -> tuple[Complex[Tensor, "dim batch count state"], Complex[Tensor, "dim batch state"]]:
    """States before each chunk, and after the last. Without gradients, ``gains`` is overwritten by the states."""
    before = [state]
    for gain in gains.unbind(2):
        if torch.is_grad_enabled():
            before.append(torch.addcmul(gain, decay, before[-1]))
        else:
            before.append(gain.addcmul_(decay, before[-1]))
    return torch.stack(before[:-1], dim=2), before[-1].clone(memory_format=torch.contiguous_format)


def _shortened(operators: ChunkOperators, chunk: int) -> ChunkOperators:
    """Operators of a shorter chunk are corners of the longer one's."""
    return ChunkOperators(
        toeplitz=operators.toeplitz[:, :chunk, :chunk],
        hidden=operators.hidden[:, -chunk:],
        echo=operators.echo[..., :chunk],
        powers=operators.powers[:, : chunk + 1],
    )


def _powers(log_A: Complex[Tensor, "dim state"], largest: int) -> Complex[Tensor, "dim powers state"]:
    """A to the power of 0 to ``largest``, as products of eighth powers and powers below: few exponentials."""
    exponents = torch.arange(largest + 1, dtype=log_A.dtype.to_real(), device=log_A.device).unsqueeze(-1)
    coarse, fine = exponents[::8] * log_A.unsqueeze(1), exponents[:8] * log_A.unsqueeze(1)
    products = _complex_exp(coarse).unsqueeze(2) * _complex_exp(fine).unsqueeze(1)
    return products.flatten(1, 2)[:, : largest + 1]


def _complex_exp(exponent: Complex[Tensor, "*axes"]) -> Complex[Tensor, "*axes"]:
    return torch.polar(exponent.real.exp(), exponent.imag)


def _complex_expm1(real: Float[Tensor, "*axes"], imag: Float[Tensor, "*axes"]) -> Complex[Tensor, "*axes"]:
    """``exp(z) - 1`` without cancellation at the small steps that slow modes need."""
    return torch.complex(
        torch.expm1(real) * torch.cos(imag) - 2 * torch.sin(imag / 2).square(), torch.exp(real) * torch.sin(imag)
    )


def _mlp(dim: int, hidden: int, dropout: float) -> nn.Sequential:
    return nn.Sequential(
        nn.LayerNorm(dim), nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim), nn.Dropout(dropout)
    )


def full_precision(inputs: Tensor) -> AbstractContextManager[object]:
    """Autocast would run the matrix products in bf16 and lose a state."""
    device = inputs.device.type
    return torch.autocast(device, enabled=False) if torch.amp.is_autocast_available(device) else nullcontext()


def _check(inputs: Tensor, weights: SSMWeights, carried: Tensor) -> torch.dtype:
    """Refuse what does not fit; returns the real dtype to compute in."""
    batch, dim, time = inputs.shape
    dtype = weights.D.dtype
    if dim != weights.D.shape[0] or time < 1 or torch.promote_types(inputs.dtype, dtype) != dtype:
        raise StateError(
            f"inputs are {inputs.dtype}, width {dim}, {time} steps; "
            f"expected {dtype} (as the weights) or less precise, width {weights.D.shape[0]}, at least 1 step"
        )
    expected = (batch, *weights.log_A.shape)
    if tuple(carried.shape) != expected or carried.dtype != dtype.to_complex():
        raise StateError(
            f"carried state is {carried.dtype} {tuple(carried.shape)}, expected {dtype.to_complex()} {expected} "
            "(batch, width, modes); start from init_carried or pass the state of this very stream and model"
        )
    return dtype
