"""Policies and budgets compared: the same questions about the same videos, asked of one frozen model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from fractions import Fraction
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from longtake.errors import ConfigError
from longtake.eval.ask import Marked
from longtake.eval.ask_data import AskData, AskedQuestion
from longtake.eval.caption_data import MAX_PROCESSES
from longtake.hub import load
from longtake.methods.statekv import StateKV, StateKVState
from longtake.types import Segment
from longtake.video import segments

BUDGET_SHARES = (Fraction(1, 32), Fraction(1, 16), Fraction(1, 8), Fraction(1, 4), Fraction(1, 2))
"""Of the tokens of each video."""
REFERENCE = "statekv"
"""The paper's rule: one selection per KV head, by the attention that keys receive."""
FULL = "full"
CHOICES: Mapping[str, Mapping[str, Any]] = {
    REFERENCE: {"select": "kv-head"},
    "statekv, per layer": {"select": "layer"},
    "statekv, per query": {"select": "kv-head", "per_query": True},
    "statekv, 4 sinks": {"select": "kv-head", "sinks": 4},
    "statekv, per layer, 4 sinks": {"select": "layer", "sinks": 4},
    "sink-recency": {"policy": "sink-recency"},
    "recency": {"policy": "recency"},
    "random": {"policy": "random"},
}
"""What is compared, by name: fields of ``StateKVConfig`` that matter, whatever the model's own defaults."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One policy at one budget."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict, compare=False)
    share: Fraction = Fraction(1)
    """Budget as a share of the video's tokens."""


def trials(names: Sequence[str] = tuple(CHOICES), shares: Sequence[Fraction] = BUDGET_SHARES) -> list[Trial]:
    """Full attention, then every policy at every budget."""
    rest = [Trial(name=name, settings=CHOICES[name], share=share) for name in names for share in shares]
    return [Trial(name=FULL, settings={"policy": "full"}), *rest]


def run_trials(
    name: str, data: AskData, wanted: Sequence[Trial], on_video: Callable[[int], None] = lambda _: None
) -> dict[Trial, list[Marked]]:
    """Answers of every trial by the model ``name``; each video is read once, two videos at a time."""
    processes = min(MAX_PROCESSES, os.cpu_count() or 1, len(data.videos))
    found: dict[int, dict[str, list[Marked]]] = {index: {} for index in range(len(wanted))}
    # spawned, not forked: the caller may hold threads of torch
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=_open, initargs=(name,)) as pool:
        jobs = {
            pool.submit(_try, video, path, data.questions[video], wanted): video for video, path in data.videos.items()
        }
        try:
            for done, job in enumerate(as_completed(jobs)):
                on_video(done)
                for index, marks in enumerate(job.result()):
                    found[index][jobs[job]] = marks
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    on_video(len(data.videos))
    return {trial: [mark for video in data.videos for mark in found[n][video]] for n, trial in enumerate(wanted)}


_models: list[StateKV] = []
"""The model of a process that tries."""


def _open(name: str) -> None:
    torch.set_num_threads(1)
    _models.append(policies_of(load(name), name))


def policies_of(model: object, name: str) -> StateKV:
    """The model, if it has policies to compare."""
    if not isinstance(model, StateKV):
        raise ConfigError(
            f"{name} is a {type(model).__name__}, policies are those of a frozen video VLM (StateKV); "
            "give toybox-vlm, or the folder of one"
        )
    return model


def _try(video: str, path: Path, questions: Sequence[AskedQuestion], wanted: Sequence[Trial]) -> list[list[Marked]]:
    return try_all(_models[0], video, path, questions, wanted)


def try_all(
    model: StateKV, video: str, path: Path, questions: Sequence[AskedQuestion], wanted: Sequence[Trial]
) -> list[list[Marked]]:
    """Answers about one video, trial by trial."""
    seen = read(path, model)
    num_tokens = tokens_of(model, seen)
    found: list[list[Marked]] = []
    for trial in wanted:
        budget = max(1, round(trial.share * num_tokens))
        runner = StateKV(model.family, replace(model.config, **{"budget": budget, **trial.settings}))
        found.append(list(marks(runner, taken_in(runner, seen), video, questions)))
    return found


def read(path: Path, model: StateKV) -> list[Segment]:
    """The whole video, as the model takes it."""
    with segments(path, model.segment_spec) as stream:
        return list(stream)


def tokens_of(model: StateKV, seen: Sequence[Segment]) -> int:
    """How many tokens a video has for this model."""
    family, preamble = model.family, model.family.preamble()
    total, position = (preamble.input_ids.shape[1], preamble.next_position) if preamble else (0, 0)
    before = None
    for index, segment in enumerate(seen):
        chunk = family.frames(segment.pixels, segment.pts_seconds, index=index, position=position, before=before)
        total, position, before = total + chunk.input_ids.shape[1], chunk.next_position, segment.pixels[-1]
    return total


def taken_in(model: StateKV, seen: Sequence[Segment]) -> StateKVState:
    """The state at the end of a video."""
    with torch.inference_mode():
        state = model.init_state()
        for segment in seen:
            state = model.advance(state, segment)
    return state


def marks(
    model: StateKV, state: StateKVState, video: str, questions: Sequence[AskedQuestion], *, bounded: bool | None = None
) -> Iterator[Marked]:
    """Every question asked by itself when the video has ended; ``bounded`` as for ``StateKV.converse``."""
    with torch.inference_mode():
        for question in questions:
            answer = model.converse(state, bounded=bounded).answer(question.question)
            yield Marked(video=video, question=question, said=answer.text, flags=answer.flags)
