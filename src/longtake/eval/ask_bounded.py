"""Bounded answers compared with whole ones: how far the questions' own choice of chunks costs right answers.

Each video is taken in once per policy, and for every kind of summary in one go: what a summary is does not change what
the decoder sees, so the state of one serves all, with the summaries made anew from its pages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import thread_time

import torch

from longtake.eval.ask import Marked
from longtake.eval.ask_data import AskData
from longtake.eval.ask_sweep import marks, read, taken_in
from longtake.methods.statekv import StateKV, StateKVState
from longtake.state.pages import resummarised
from longtake.state.retrieval import RETRIEVALS

CHUNKS = (8, 16, 32, 64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to answer."""

    policy: str = "statekv"
    """While the video is taken in."""
    retrieve: str = ""
    """Empty: the whole detailed cache is read."""
    per_layer: bool = True
    chunks: int = 0

    @property
    def name(self) -> str:
        """Without the number of chunks."""
        return f"{self.retrieve}, per {'layer' if self.per_layer else 'KV head'}" if self.retrieve else self.policy


FULL = Way(policy="full")
WHOLE = Way()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What was said one way, and the CPU seconds of an answer."""

    marks: Sequence[Marked]
    seconds: float


def ways(chunks: Sequence[int] = CHUNKS, retrievals: Sequence[str] = tuple(RETRIEVALS)) -> list[Way]:
    """Full attention and the whole cache, then every retrieval with so many chunks."""
    found = [
        Way(retrieve=name, per_layer=per_layer, chunks=count)
        for name in retrievals
        for per_layer in (True, False)
        for count in chunks
    ]
    return [FULL, WHOLE, *found]


def run_ways(
    model: StateKV, data: AskData, wanted: Sequence[Way], on_video: Callable[[int], None] = lambda _: None
) -> dict[Way, Answered]:
    """Answers of every way; each video is read once, and taken in once per policy."""
    found: dict[Way, list[Marked]] = {way: [] for way in wanted}
    seconds = dict.fromkeys(wanted, 0.0)
    for done, (video, path) in enumerate(data.videos.items()):
        on_video(done)
        seen = read(path, model)
        for policy in dict.fromkeys(way.policy for way in wanted):
            state = taken_in(_runner(model, Way(policy=policy)), seen)
            mine = [way for way in wanted if way.policy == policy]
            ready = {name: _found_by(state, name) for name in {way.retrieve for way in mine}}
            for way in mine:
                started = thread_time()
                runner, state, asked = _runner(model, way), ready[way.retrieve], data.questions[video]
                found[way] += marks(runner, state, video, asked, bounded=bool(way.retrieve))
                seconds[way] += thread_time() - started
    on_video(len(data.videos))
    return {way: Answered(marks=found[way], seconds=seconds[way] / max(1, len(found[way]))) for way in wanted}


def _runner(model: StateKV, way: Way) -> StateKV:
    if not way.retrieve:
        return StateKV(model.family, replace(model.config, policy=way.policy, answer="whole"))  # pyright: ignore[reportArgumentType]
    config = replace(model.config, policy=way.policy, answer="bounded", answer_chunks=way.chunks)  # pyright: ignore[reportArgumentType]
    return StateKV(model.family, config, retrieval=replace(RETRIEVALS[way.retrieve], per_layer=way.per_layer))


def _found_by(state: StateKVState, retrieve: str) -> StateKVState:
    """The same moment, with what that retrieval finds chunks by."""
    if not retrieve:
        return state
    with torch.inference_mode():
        detailed = resummarised(state.kv.detailed, RETRIEVALS[retrieve].summarise)
    return replace(state, kv=replace(state.kv, detailed=detailed))
