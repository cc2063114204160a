"""A small real ``StreamModel`` for tests: it names the colours a video shows, and remembers how often each was there.

A stretch of one colour is an event, said in the segment in which the next colour begins: "red", then "red for time 2".
So the right events of a made video are known, times and memory words included, and each part of the protocol is used: a
complex carried tensor, counts, tuples, every request.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from longtake.errors import StateError, UnsupportedRequest
from longtake.types import (
    Answer,
    Ask,
    Caption,
    Choose,
    Classify,
    Embed,
    Embedding,
    Event,
    Label,
    Request,
    Response,
    Segment,
    SegmentSpec,
)

NAMES = ("red", "green", "blue", "grey")
GREY = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ColoursState:
    """All that the model remembers."""

    echo: Tensor
    """complex64 (batch, 3): decaying, turning mean colour."""
    counts: Tensor
    """int64 (batch, 4): ended stretches by colour."""
    stretch: tuple[float, int]
    """Start and colour of the stretch that goes on; colour -1 before the first frame."""
    ended: tuple[tuple[float, float, int, int], ...]
    """Start, end, colour and number of the stretches that ended in the last segment."""
    seen_seconds: float


class Colours:
    """Names colours. ``decay`` stands for the weights."""

    supports: frozenset[type[Request]] = frozenset({Caption, Ask, Choose, Classify, Embed})
    fps_range = (1.0, 8.0)

    def __init__(self, *, num_frames: int = 4, fps: float = 4.0, size: int = 16, decay: float = 0.9) -> None:
        self.segment_spec = SegmentSpec(num_frames=num_frames, fps=fps, height=size, width=size)
        self.decay = decay
        self.fingerprint = hashlib.sha256(f"colours {num_frames} {fps} {size} {decay}".encode()).hexdigest()

    def init_state(self, batch: int = 1) -> ColoursState:
        return ColoursState(
            echo=torch.zeros(batch, 3, dtype=torch.complex64),
            counts=torch.zeros(batch, len(NAMES), dtype=torch.int64),
            stretch=(0.0, -1),
            ended=(),
            seen_seconds=0.0,
        )

    def max_state_bytes(self) -> int:
        return 3 * 8 + 4 * 8

    def advance(self, state: ColoursState, segment: Segment) -> ColoursState:
        height, width = self.segment_spec.height, self.segment_spec.width
        if tuple(segment.pixels.shape[1:]) != (3, height, width):
            raise StateError(f"segment has frames of {tuple(segment.pixels.shape[1:])}, expected {(3, height, width)}")
        if not isinstance(state, ColoursState) or state.counts.shape[0] != 1:
            raise StateError(f"state is a {type(state).__name__} of another batch size, expected a stream of its own")
        echo, counts, (start, colour), ended = state.echo, state.counts, state.stretch, []
        turn = torch.polar(torch.tensor(self.decay), torch.tensor(0.1))
        for frame, moment in zip(segment.pixels, segment.pts_seconds, strict=True):
            mean = frame.double().mean(dim=(1, 2))
            echo = echo * turn + mean.to(torch.complex64) / 255
            shown = int(mean.argmax()) if mean.max() - mean.min() > 40 else GREY
            if shown != colour:
                if colour >= 0:
                    counts = counts + torch.nn.functional.one_hot(torch.tensor([colour]), len(NAMES))
                    ended.append((start, moment, colour, int(counts[0, colour])))
                start, colour = moment, shown
        return ColoursState(
            echo=echo, counts=counts, stretch=(start, colour), ended=tuple(ended), seen_seconds=segment.end_seconds
        )

    def respond(self, state: ColoursState, request: Request) -> Iterator[Response]:
        counts = state.counts[0].double()
        shares = (counts + 1) / (counts + 1).sum()
        if isinstance(request, Caption):
            for start, end, colour, number in state.ended:
                text = NAMES[colour] if number == 1 else f"{NAMES[colour]} for time {number}"
                yield Event(start_seconds=start, end_seconds=end, text=text, score=float(shares[colour]))
        elif isinstance(request, Ask):
            name = next((name for name in NAMES if name in request.question), "grey")
            yield Answer(text=str(int(counts[NAMES.index(name)])), at_seconds=state.seen_seconds)
        elif isinstance(request, Choose):
            scores = tuple(float(shares[NAMES.index(option)]) for option in request.options)
            best = max(range(len(scores)), key=scores.__getitem__)
            yield Answer(text=request.options[best], choice=best, probabilities=scores, at_seconds=state.seen_seconds)
        elif isinstance(request, Classify):
            for index in shares.argsort(descending=True)[: request.top].tolist():
                yield Label(name=NAMES[index], probability=float(shares[index]))
        elif isinstance(request, Embed):
            yield Embedding(vector=state.echo[0].real.clone(), start_seconds=0.0, end_seconds=state.seen_seconds)
        else:
            raise UnsupportedRequest(f"Colours was sent {type(request).__name__}")

    def unfamiliar(self, state: ColoursState) -> str | None:
        """Says so after a whole stretch of grey."""
        return "the picture is grey, the model knows red, green and blue" if int(state.counts[0, GREY]) else None
