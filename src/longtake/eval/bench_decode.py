"""``longtake bench decode``: does an answer after an hour cost what it cost after two minutes?

In a process of its own with one thread, in CPU time of that thread. A state is a value, so the states of both moments
are kept and asked in turn: a slow moment of the machine hits both. An answer is all of ``converse``, the question's
step and ``words`` tokens, which no end token cuts short. Bounded answers and, beside them, those over the whole
detailed cache, which grow.

Chunks are put into pages by sixty-fours; the late moment is the first one from ``minutes`` on at which as many chunks
wait for theirs as at the early one, so that neither has an advantage.

**Memory** is what a conversation holds: keys and values of the cache that its answer was made from. Beside it, as it
depends on the allocator: by how much the process grew at most while it answered, its heap trimmed before.
"""

from __future__ import annotations

import functools
import json
import logging
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median
from time import thread_time
from typing import Any

import torch
from torch import Tensor

from longtake.errors import ConfigError
from longtake.eval.apart import measured_apart
from longtake.eval.process_memory import peak_growth
from longtake.methods.statekv import StateKV, StateKVState
from longtake.methods.statekv_answer import Conversation
from longtake.methods.statekv_config import StateKVConfig
from longtake.state.pages import PAGE_CHUNKS
from longtake.types import Segment
from longtake.vlm.families import family_of

logger = logging.getLogger(__name__)

BARS: dict[str, tuple[float | None, float | None]] = {
    "late_over_early": (None, 1.10),
    "memory_late_over_early": (None, 1.10),
    "whole_late_over_early": (1.10, None),
    "whole_memory_late_over_early": (1.10, None),
}
"""Least and most that a ratio may be; ``whole`` is there to show that growth would be seen."""
QUESTION = "what did the red car do after the blue cup left?"


@dataclass(frozen=True, kw_only=True)
class DecodeSetting:
    """Two moments of a stream, and what is asked at them."""

    model: str = ""
    """A bundled name or folder; empty: toybox-vlm's sizes with random weights."""
    early_minutes: float = 2.0
    minutes: float = 60.0
    words: int = 4
    """Tokens of an answer."""
    rounds: int = 30
    """Pairs of answers that count."""
    whole_rounds: int = 3


def bench_decode(setting: DecodeSetting, *, tell: Callable[[str], None] | None = None) -> dict[str, Any]:
    """Measure in a process of its own with one thread.

    Raises:
        ConfigError: The two moments are one.
    """
    if not setting.minutes > setting.early_minutes:
        raise ConfigError(
            f"bench decode over {setting.minutes:g} minutes; expected more than the {setting.early_minutes:g} of the "
            "moment that it is compared with"
        )
    (tell or logger.info)(f"taking in {setting.minutes:g} minutes, then asking in turn")
    return measured_apart(__name__, json.dumps(asdict(setting)), threads=1)


def measure_decode(setting: DecodeSetting) -> dict[str, Any]:
    """Measure in this process."""
    model = _model(setting.model)
    counts = moments(model, setting)
    states = watched(model, counts)
    model.family.eos_token_ids = frozenset()
    found = {
        "bounded": compared(model, states, setting.words, setting.rounds, bounded=True),
        "whole": compared(model, states, setting.words, setting.whole_rounds, bounded=False),
    }
    ratios = {
        "late_over_early": found["bounded"]["ratio"],
        "memory_late_over_early": found["bounded"]["memory_ratio"],
        "whole_late_over_early": found["whole"]["ratio"],
        "whole_memory_late_over_early": found["whole"]["memory_ratio"],
    }
    raw = {
        "bars": BARS,
        "setting": asdict(setting),
        "chunks": counts,
        "seen_tokens": [state.kv.seen_tokens for state in states],
        "detailed_bytes": [state.kv.detailed.num_bytes for state in states],
        **found,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }
    return {"name": "decode", "ratios": ratios, "raw": raw}


def moments(model: StateKV, setting: DecodeSetting) -> list[int]:
    """Chunks at the early and the late moment, with equally many beyond full pages."""
    seconds = model.segment_spec.num_frames / model.segment_spec.fps
    early, late = (max(1, round(60 * minutes / seconds)) for minutes in (setting.early_minutes, setting.minutes))
    return [early, late + (early - late) % PAGE_CHUNKS]


def watched(model: StateKV, counts: list[int]) -> list[StateKVState]:
    """The states after so many chunks of noise."""
    spec = model.segment_spec
    torch.manual_seed(0)
    pictures = torch.randint(0, 256, (8, spec.num_frames, 3, spec.height, spec.width)).byte()
    state, kept = model.init_state(), dict[int, StateKVState]()
    for index in range(max(counts)):
        first = index * spec.num_frames
        times = tuple((first + number) / spec.fps for number in range(spec.num_frames))
        state = model.advance(
            state,
            Segment(
                pixels=pictures[index % len(pictures)],
                pts_seconds=times,
                index=index,
                start_seconds=times[0],
                end_seconds=(first + spec.num_frames) / spec.fps,
            ),
        )
        if index + 1 in counts:
            kept[index + 1] = state
    return [kept[count] for count in counts]


def compared(model: StateKV, states: list[StateKVState], words: int, rounds: int, *, bounded: bool) -> dict[str, Any]:
    """Answers from both states in turn; ``ratio`` is the median over pairs of late to early."""
    answers: list[list[float]] = [[], []]
    firsts: list[list[float]] = [[], []]
    held = [0, 0]
    for number in range(rounds + 1):  # the first warms up and does not count
        for side in ((0, 1), (1, 0))[number % 2]:  # neither always goes first
            spent = answer_timed(model, states[side], words, bounded)
            held[side] = spent.held_bytes
            if number:
                answers[side].append(spent.seconds)
                firsts[side].append(spent.first_word_seconds)
    grown = [peak_growth(functools.partial(answer_timed, model, state, words, bounded)) for state in states]
    return {
        "ratio": _ratio(answers),
        "first_word_ratio": _ratio(firsts),
        "memory_ratio": held[1] / held[0],
        "seconds": [median(side) for side in answers],
        "first_word_seconds": [median(side) for side in firsts],
        "held_bytes": held,
        "peak_growth_bytes": grown,
        "pairs": rounds,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What one answer took: CPU seconds until its first word is known and until its last one is, and bytes held."""

    first_word_seconds: float
    seconds: float
    held_bytes: int


def answer_timed(model: StateKV, state: StateKVState, words: int, bounded: bool) -> Spent:
    """One conversation of one question."""
    started, first = thread_time(), 0.0
    talk = model.converse(state, bounded=bounded)
    logits = talk.hear(QUESTION)
    for number in range(words):
        token = int(logits.argmax())
        first = first if number else thread_time() - started
        logits = talk.step(token) if number + 1 < words else logits
    return Spent(first_word_seconds=first, seconds=thread_time() - started, held_bytes=held_bytes(talk))


def held_bytes(talk: Conversation) -> int:
    """Of the tensors of its cache, each once."""
    tensors: list[Tensor] = []
    for layer in talk.cache.layers:
        tensors += [value for value in vars(layer).values() if isinstance(value, Tensor)]
    return sum({tensor.data_ptr(): tensor.nbytes for tensor in tensors}.values())


def _ratio(sides: list[list[float]]) -> float:
    return median(late / early for early, late in zip(*sides, strict=True))


def _model(name: str) -> StateKV:
    from longtake.hub import load

    if not name:
        return random_model()
    model = load(name, device="cpu", answer="bounded")
    if not isinstance(model, StateKV):
        raise ConfigError(f"{name} is a {type(model).__name__}; bench decode asks a frozen video VLM (StateKV)")
    return model


def random_model() -> StateKV:
    """toybox-vlm's sizes with random weights: for measuring time, not for answers."""
    from longtake.train.vlm.build import VLMConfig, build_model, build_processor
    from longtake.train.words import question_words

    torch.manual_seed(0)
    sizes = VLMConfig()
    processor = build_processor(sizes, question_words())
    family = family_of(build_model(sizes, processor.tokenizer).eval(), processor, height=sizes.size, width=sizes.size)
    return StateKV(family, StateKVConfig(fps=sizes.fps, budget=192, answer="bounded"))


if __name__ == "__main__":
    torch.set_num_threads(1)
    with torch.inference_mode():
        sys.stdout.write(json.dumps(measure_decode(DecodeSetting(**json.loads(sys.argv[1])))))
