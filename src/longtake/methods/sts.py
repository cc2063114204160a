"""STS: a state-space model with a transfer state that captions a video while it plays.

frames -> vision encoder -> bottleneck (a few tokens per frame) -> S4D stack, whose state crosses segment borders ->
local text decoder, which says the events that ended in the segment just taken in.

State: constant size. Per S4D layer one complex matrix, the last frames the encoder looks back at, the tokens the
decoder reads at the present border, and the clock of the window in which events may have begun.

Source: "Time-Scaling State-Space Models for Dense Video Captioning", sections 3.1 to 3.4; docs/papers.md.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Complex, Float, UInt8
from torch import Tensor, nn

from longtake import hub
from longtake.errors import StateError, UnsupportedRequest
from longtake.language.decoder import CaptionDecoder
from longtake.language.tokenizer import CaptionTokenizer
from longtake.methods.captioning import (
    build_tokenizer,
    check_segment,
    clock_after,
    newest,
    nothing_before,
    stands_before,
)
from longtake.methods.sts_config import STSConfig, sts_large
from longtake.methods.sts_stack import STSStack
from longtake.methods.sts_time import event_of
from longtake.types import Caption, Request, Response, Segment
from longtake.vision import Bottleneck, ConvEncoder, TransformersEncoder, build_encoder

PRESETS: dict[str, Callable[[], STSConfig]] = {"sts-large": sts_large}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class STSState:
    """All that the future of a stream depends on."""

    before: UInt8[Tensor, "batch history 3 height width"]
    """The last frames, for the encoder's differences; what they hold counts only once something was seen."""
    carried: tuple[Complex[Tensor, "rows dim modes"], ...]
    """The transfer state of each S4D layer; rows are streams, times tokens per frame where those run side by side."""
    shown: Float[Tensor, "batch shown dim"]
    """What the decoder reads at the present border."""
    clock: tuple[float, ...]
    """Times of the latest frames, oldest first, then the present border: what time buckets refer to."""
    seen_frames: int
    fresh_frames: int
    """Frames in the segment last taken in."""
    total_seconds: float
    """Length of the video for the ``video`` time encoding; 0 where it is not known."""


class STS(nn.Module, hub.Published):
    """An STS model; implements ``StreamModel``."""

    supports: frozenset[type[Request]] = frozenset({Caption})

    def __init__(self, config: STSConfig) -> None:
        super().__init__()
        self.config = config
        self.segment_spec = config.segment_spec
        self.encoder: ConvEncoder | TransformersEncoder = build_encoder(config.encoder, config.size, config.size)
        self.bottleneck = Bottleneck(config.bottleneck, self.encoder.dim)
        self.stack = STSStack(config.stack, config.bottleneck.dim)
        self.frame_position = nn.Parameter(torch.randn(config.num_frames, config.bottleneck.dim) * 0.1)
        self.token_position = nn.Parameter(torch.randn(config.bottleneck.num_tokens, config.bottleneck.dim) * 0.1)
        self.decoder = CaptionDecoder(config.decoder, config.vocab_size, config.bottleneck.dim)

    @classmethod
    def from_config(cls, fields: dict[str, Any]) -> STS:
        """Build the model with random weights from ``STSConfig.to_dict()``."""
        return cls(STSConfig.from_dict(fields))

    @functools.cached_property
    def tokenizer(self) -> CaptionTokenizer:
        return build_tokenizer(self.config)

    @functools.cached_property
    def fingerprint(self) -> str:
        """Digest of config and weights as they are when first asked for."""
        return hub.fingerprint(self)

    # --- the protocol

    def init_state(self, batch: int = 1) -> STSState:
        """The state of ``batch`` streams of which nothing has been seen."""
        weight = self.frame_position
        return STSState(
            before=nothing_before(self.config, self.encoder.history, batch, weight.device),
            carried=self.stack.init_carried(batch, self.config.bottleneck.num_tokens),
            shown=torch.zeros(batch, 0, self.config.bottleneck.dim, dtype=weight.dtype, device=weight.device),
            clock=(),
            seen_frames=0,
            fresh_frames=0,
            total_seconds=0.0,
        )

    def max_state_bytes(self) -> int:
        """Bytes of the state of one stream after any number of segments: they depend on the config alone."""
        config = self.config
        before = self.encoder.history * 3 * config.size**2
        rows = config.bottleneck.num_tokens if config.stack.order == "side-by-side" else 1
        carried = config.stack.num_layers * rows * config.bottleneck.dim * (config.stack.state // 2) * 8
        shown = config.num_frames * config.bottleneck.num_tokens * config.bottleneck.dim * 4
        wide = 2 if self.frame_position.dtype == torch.float64 else 1
        return before + wide * (carried + shown) + 8 * (config.time.num_buckets + 2) + 64

    def advance(self, state: STSState, segment: Segment) -> STSState:
        """Take in one segment of one stream.

        Raises:
            StateError: the state is not of this model, or the segment has more frames or another size than agreed.
        """
        self._check(state, segment)
        frames = segment.pixels.to(self.frame_position.device).unsqueeze(0)
        before = state.before if state.seen_frames else stands_before(frames, self.encoder.history)
        outputs, carried = self.take_in(frames, before, state.carried)
        return STSState(
            before=newest(before, frames),
            carried=carried,
            shown=self.show(outputs),
            clock=clock_after(state.clock, segment, self.config.time),
            seen_frames=state.seen_frames + frames.shape[1],
            fresh_frames=frames.shape[1],
            total_seconds=segment.total_seconds or state.total_seconds,
        )

    def respond(self, state: STSState, request: Request) -> Iterator[Response]:
        """Say the events that ended in the segment last taken in.

        Raises:
            UnsupportedRequest: STS answers ``Caption`` alone.
        """
        if not isinstance(request, Caption):
            raise UnsupportedRequest(
                f"an STS model was sent {type(request).__name__}, it serves Caption only; use a StateKV or MC-ViT model"
            )
        if state.fresh_frames == 0:
            return iter(())
        said = self.decoder.generate(state.shown, self.tokenizer, event_bias=self.config.event_bias)[0]
        time = self.config.time
        events = (event_of(item, time, state.clock, state.fresh_frames, state.total_seconds) for item in said)
        return iter([event for event in events if event])

    # --- the parts, in the order in which a frame passes them (training calls these)

    def take_in(
        self,
        frames: UInt8[Tensor, "batch time 3 height width"],
        before: UInt8[Tensor, "batch history 3 height width"],
        carried: tuple[Complex[Tensor, "rows dim modes"], ...],
    ) -> tuple[Float[Tensor, "batch time tokens dim"], tuple[Complex[Tensor, "rows dim modes"], ...]]:
        """Frames through encoder, bottleneck and stack."""
        if not self.config.stack.carry:
            carried = self.stack.init_carried(frames.shape[0], self.config.bottleneck.num_tokens)
        tokens = self.bottleneck(self.encoder(frames, before).flatten(0, 1)).unflatten(0, frames.shape[:2])
        return self.stack(tokens, carried)

    def show(self, outputs: Float[Tensor, "batch time tokens dim"]) -> Float[Tensor, "batch shown dim"]:
        """What the decoder reads of one segment; places count from the segment's end, so a short segment fits too."""
        time, tokens = outputs.shape[1:3]
        placed = outputs + self.frame_position[-time:, None] + self.token_position
        if self.config.shown == "all":
            return placed.flatten(1, 2)
        return placed[:, -1] if self.config.shown == "last-frame" else placed[:, -1, tokens - 1 :]

    def _check(self, state: STSState, segment: Segment) -> None:
        check_segment(self.config, segment, state.total_seconds)
        config = self.config
        if state.before.shape[0] != 1 or len(state.carried) != config.stack.num_layers:
            raise StateError(
                f"state of {state.before.shape[0]} streams and {len(state.carried)} layers, expected 1 stream and "
                f"{config.stack.num_layers} layers; use this model's init_state"
            )


def parameter_counts(model: STS) -> dict[str, int]:
    """Parameters by part."""
    parts = {"vision": model.encoder, "bottleneck": model.bottleneck, "ssm": model.stack, "decoder": model.decoder}
    counts = {name: sum(p.numel() for p in part.parameters()) for name, part in parts.items()}
    return counts | {"total": sum(p.numel() for p in model.parameters())}
