"""Tiny random StateKV models, and streams for them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
from tests.vlm.families import make, options

from longtake.methods.statekv import StateKV, StateKVState
from longtake.methods.statekv_config import StateKVConfig
from longtake.state.retrieval import Retrieval
from longtake.types import Segment
from longtake.vlm.families import Family, family_of

QUESTION = "what happened after that?"


@functools.cache
def family(name: str = "qwen3-vl", double: bool = False) -> Family:
    """In float64 if ``double``; the same weights each time."""
    model, processor = make(name)
    sizes = options(name) | ({"height": 64, "width": 64} if name.startswith("qwen3") else {})
    return family_of(model.double() if double else model, processor, **sizes)


def statekv(
    name: str = "qwen3-vl", *, double: bool = False, retrieval: Retrieval | None = None, **config: Any
) -> StateKV:
    defaults: dict[str, Any] = {"budget": 24, "max_new_tokens": 6}
    return StateKV(family(name, double), StateKVConfig(**(defaults | config)), retrieval=retrieval)


def segments(model: StateKV, count: int, *, first: int = 0, seed: int = 0) -> list[Segment]:
    """Segment after segment of noise, the same for the same seed, one second a frame."""
    spec, made = model.segment_spec, []
    for index in range(first, first + count):
        generator = torch.Generator().manual_seed(1000 * seed + index)
        shape = (spec.num_frames, 3, spec.height, spec.width)
        start = index * spec.num_frames
        made.append(
            Segment(
                pixels=torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator),
                pts_seconds=tuple(float(start + number) for number in range(spec.num_frames)),
                index=index,
                start_seconds=float(start),
                end_seconds=float(start + spec.num_frames),
            )
        )
    return made


@torch.inference_mode()
def watched(model: StateKV, stream: Sequence[Segment], state: StateKVState | None = None) -> StateKVState:
    """The state after a stream."""
    state = model.init_state() if state is None else state
    for segment in stream:
        state = model.advance(state, segment)
    return state


@torch.inference_mode()
def heard(model: StateKV, state: StateKVState, question: str = QUESTION, **options: Any) -> torch.Tensor:
    """Logits right after a question."""
    return model.converse(state, **options).hear(question)


@torch.inference_mode()
def answered(model: StateKV, state: StateKVState, *questions: str, **options: Any) -> list[str]:
    """Answers of one conversation."""
    conversation = model.converse(state, **options)
    return [conversation.answer(question).text for question in questions or (QUESTION,)]
