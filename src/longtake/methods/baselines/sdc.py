"""Streaming DVC (SDC), which STS is compared with: the past is a fixed number of cluster centres and earlier captions.

frames -> vision encoder -> bottleneck -> weighted k-means, frame by frame, into a memory of K tokens -> the decoder of
STS, which at each decoding point reads the memory and, before it speaks, what was said at earlier ones.

State: bounded. At most K tokens with weight and place in time, the last frames the encoder looks back at, what was said
at this border, and as many earlier captions as ``prefix_tokens`` holds.

Source: Zhou et al., "Streaming Dense Video Captioning", as the STS paper compares with it (table 4); docs/papers.md.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from longtake import hub
from longtake.errors import StateError, UnsupportedRequest
from longtake.language.decoder import CaptionDecoder
from longtake.language.tokenizer import CaptionTokenizer, TimedText
from longtake.methods.baselines.sdc_config import SDCConfig, sdc_large
from longtake.methods.captioning import (
    build_tokenizer,
    check_segment,
    clock_after,
    newest,
    nothing_before,
    stands_before,
)
from longtake.methods.sts_config import TimeConfig
from longtake.methods.sts_time import event_of
from longtake.state.clusters import Clusters, merged, no_clusters, shifted
from longtake.types import Caption, Request, Response, Segment
from longtake.vision import Bottleneck, ConvEncoder, TransformersEncoder, build_encoder

PRESETS: dict[str, Callable[[], SDCConfig]] = {"sdc-large": sdc_large}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SDCState:
    """All that the future of a stream depends on."""

    before: UInt8[Tensor, "batch history 3 height width"]
    """The last frames, for the encoder's differences; what they hold counts only once something was seen."""
    memory: Clusters
    """Places are time buckets as of the present border, fractions among them."""
    past: tuple[TimedText, ...]
    """What was said at earlier borders, oldest first, its times as of the present one."""
    said: tuple[TimedText, ...]
    """What was said at the present border."""
    clock: tuple[float, ...]
    """As STS has it."""
    seen_frames: int
    fresh_frames: int
    """Frames in the segment last taken in."""
    total_seconds: float
    """Length of the video for the ``video`` time encoding; 0 where it is not known."""


class SDC(nn.Module, hub.Published):
    """A Streaming DVC model; implements ``StreamModel``. Each border between segments is a decoding point."""

    supports: frozenset[type[Request]] = frozenset({Caption})

    def __init__(self, config: SDCConfig) -> None:
        super().__init__()
        self.config = config
        self.segment_spec = config.segment_spec
        self.encoder: ConvEncoder | TransformersEncoder = build_encoder(config.encoder, config.size, config.size)
        self.bottleneck = Bottleneck(config.bottleneck, self.encoder.dim)
        self.time_position = nn.Parameter(torch.randn(config.time.num_buckets, config.bottleneck.dim) * 0.1)
        self.decoder = CaptionDecoder(config.decoder, config.vocab_size, config.bottleneck.dim)

    @classmethod
    def from_config(cls, fields: dict[str, Any]) -> SDC:
        """Build the model with random weights from ``SDCConfig.to_dict()``."""
        return cls(SDCConfig.from_dict(fields))

    @functools.cached_property
    def tokenizer(self) -> CaptionTokenizer:
        return build_tokenizer(self.config)

    @functools.cached_property
    def fingerprint(self) -> str:
        """Digest of config and weights as they are when first asked for."""
        return hub.fingerprint(self)

    # --- the protocol

    def init_state(self, batch: int = 1) -> SDCState:
        """The state of ``batch`` streams of which nothing has been seen."""
        return SDCState(
            before=nothing_before(self.config, self.encoder.history, batch, self.time_position.device),
            memory=no_clusters(batch, self.time_position),
            past=(),
            said=(),
            clock=(),
            seen_frames=0,
            fresh_frames=0,
            total_seconds=0.0,
        )

    def max_state_bytes(self) -> int:
        """Bytes of the state of one stream after any number of segments: they depend on the config alone."""
        config = self.config
        before = self.encoder.history * 3 * config.size**2
        # the centres and their places share a storage
        memory = config.memory.size * (config.bottleneck.dim + 2) * self.time_position.element_size()
        return before + memory + 64

    def advance(self, state: SDCState, segment: Segment) -> SDCState:
        """Take in one segment of one stream and say what ended in it, which later captions depend on.

        Raises:
            StateError: the state is not of this model, or the segment has more frames or another size than agreed.
        """
        self._check(state, segment)
        total_seconds, time = segment.total_seconds or state.total_seconds, self.config.time
        frames = segment.pixels.to(self.time_position.device).unsqueeze(0)
        before = state.before if state.seen_frames else stands_before(frames, self.encoder.history)
        tokens = self.bottleneck(self.encoder(frames, before).flatten(0, 1)).unflatten(0, frames.shape[:2])
        shares = [seconds / total_seconds for seconds in segment.pts_seconds] if time.encoding == "video" else None
        memory = self.remember(state.memory, tokens, shares)
        past = self.prefix(state.past, state.said, frames.shape[1])
        return SDCState(
            before=newest(before, frames),
            memory=memory,
            past=past,
            said=tuple(self.say(memory, past)),
            clock=clock_after(state.clock, segment, time),
            seen_frames=state.seen_frames + frames.shape[1],
            fresh_frames=frames.shape[1],
            total_seconds=total_seconds,
        )

    def respond(self, state: SDCState, request: Request) -> Iterator[Response]:
        """The events that ended in the segment last taken in.

        Raises:
            UnsupportedRequest: SDC answers ``Caption`` alone.
        """
        if not isinstance(request, Caption):
            raise UnsupportedRequest(
                f"an SDC model was sent {type(request).__name__}, it serves Caption only; use a StateKV or MC-ViT model"
            )
        time = self.config.time
        events = (event_of(item, time, state.clock, state.fresh_frames, state.total_seconds) for item in state.said)
        return iter([event for event in events if event])

    # --- the parts (training calls these)

    def remember(
        self, memory: Clusters, tokens: Float[Tensor, "batch time tokens dim"], shares: Sequence[float] | None
    ) -> Clusters:
        """Merge frame after frame into the memory.

        Args:
            shares: Where each frame lies in its video, 0 to 1; None: times count back from the border.
        """
        kept, last = self.config.memory, self.config.time.num_buckets - 1
        for index, frame in enumerate(tokens.to(memory.tokens.dtype).unbind(1)):
            if shares is None:
                memory, place = shifted(memory, -1), float(last - 1)
            else:
                place = min(max(shares[index], 0.0), 1.0) * last
            memory = merged(
                memory,
                frame,
                place,
                count=kept.size,
                iterations=kept.iterations,
                place_weight=kept.place_weight,
            )
        return memory

    def show(self, memory: Clusters) -> Float[Tensor, "batch clusters dim"]:
        """What the decoder reads: the centres, each with its place in time, between the vectors of two buckets."""
        lower = memory.places.floor().clamp(max=self.time_position.shape[0] - 2)
        share = (memory.places - lower).unsqueeze(-1)
        index = lower.long()
        return memory.tokens + torch.lerp(self.time_position[index], self.time_position[index + 1], share)

    def say(self, memory: Clusters, past: Sequence[TimedText]) -> list[TimedText]:
        """What the decoder says of one stream at one border."""
        prefix = torch.tensor([self.prefix_ids(past)], dtype=torch.long, device=self.time_position.device)
        bias = self.config.event_bias
        return self.decoder.generate(self.show(memory), self.tokenizer, event_bias=bias, prefix=prefix)[0]

    def prefix(self, past: Sequence[TimedText], said: Sequence[TimedText], num_frames: int) -> tuple[TimedText, ...]:
        """The past at the border ``num_frames`` later: as many of the newest captions as ``prefix_tokens`` holds."""
        later = [restated(item, self.config.time, num_frames) for item in (*past, *said)]
        while later and len(self.prefix_ids(later)) > self.config.prefix_tokens:
            later = later[1:]
        return tuple(later)

    def prefix_ids(self, past: Sequence[TimedText]) -> list[int]:
        """What the decoder is given before it speaks: earlier captions and an end of sequence, or nothing."""
        return self.tokenizer.encode(past) if past else []

    def _check(self, state: SDCState, segment: Segment) -> None:
        check_segment(self.config, segment, state.total_seconds)
        batch, _, width = state.memory.tokens.shape
        if batch != 1 or width != self.config.bottleneck.dim:
            raise StateError(
                f"state of {batch} streams with tokens of {width}, expected 1 stream with tokens of "
                f"{self.config.bottleneck.dim}; use this model's init_state"
            )


def restated(said: TimedText, time: TimeConfig, num_frames: int) -> TimedText:
    """A caption with its times as of a border ``num_frames`` later; the window's bucket 0 stands for all before it."""
    if time.encoding == "video":
        return said
    start, end = (max(bucket - num_frames, 0) for bucket in (said.start_bucket, said.end_bucket))
    return replace(said, start_bucket=start, end_bucket=end)


def parameter_counts(model: SDC) -> dict[str, int]:
    """Parameters by part."""
    parts = {"vision": model.encoder, "bottleneck": model.bottleneck, "decoder": model.decoder}
    counts = {name: sum(p.numel() for p in part.parameters()) for name, part in parts.items()}
    return counts | {"total": sum(p.numel() for p in model.parameters())}
