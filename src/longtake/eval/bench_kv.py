"""``longtake bench kv``: does a frame cost the same after an hour, and StateKV's attention little more than products?

In a process of its own with one thread, in CPU time of that thread, so that what other programs take does not count.

**Time per frame.** A small Qwen3-VL with random weights (its real class and processor) takes in a stream by the whole
``advance``: vision tower, decoder, selection, append to the detailed cache. A state is a value, so the states before
frame 50 and before frame 2,900 are both kept and then taken on in turn, frame by frame: a slow moment of the machine
hits both. Nothing is corrected: a later frame's time in words has a token or two more, and that counts.

**Attention.** The decoder of a mid-size Qwen3-VL takes in chunks over a full budget; the calls of its attention
(scores, softmax, the attention each key received, outputs) are timed within its own forward. Beside them, in turn, two
plain products of the same shapes: queries times keys, and a matrix of weights times values. The rate is counted in
floating point operations of these two products, for both sides. That there is no second pass over the scores is not
timed but counted: torch's counter finds in the attention just these two products; a second pass would need a third.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from statistics import fmean, median
from time import perf_counter, thread_time
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode
from transformers import AttentionInterface, Qwen3VLTextConfig, Qwen3VLTextModel

from longtake.eval.apart import measured_apart
from longtake.eval.random_vlm import random_qwen3_vl
from longtake.methods.statekv import StateKV, StateKVState
from longtake.methods.statekv_config import StateKVConfig
from longtake.methods.statekv_prefill import KVState, Selection, take_in
from longtake.state.kv import Carried, statekv
from longtake.types import Segment
from longtake.vlm.attention import attend_and_listen, attention
from longtake.vlm.families import family_of

BARS: dict[str, tuple[float | None, float | None]] = {
    "late_over_early": (None, 1.08),
    "full_late_over_early": (1.08, None),
    "attention_over_products": (0.6, None),
    "counted_over_two_products": (1.0, 1.0),
}
"""Least and most that a ratio may be; ``full`` is there to show that growth would be seen."""


@dataclass(frozen=True, kw_only=True)
class StreamSetting:
    """The stream. Frames are counted from 0; the model takes two at once."""

    frame_pixels: int = 256
    budget: int = 512
    num_frames: int = 100
    """Frames of a window."""
    early: int = 50
    late: int = 2900
    """First frames of the two windows."""
    full_late: int = 500
    """The same for ``full``, which at 2,900 would take many minutes."""
    rounds: int = 3
    """How often the windows are taken in, each time from the same states; ``full`` does it once."""


@dataclass(frozen=True, kw_only=True)
class AttentionSetting:
    """The mid-size decoder and what it attends to."""

    hidden: int = 1024
    heads: int = 16
    kv_heads: int = 8
    head_dim: int = 128
    layers: int = 12
    chunk: int = 256
    budget: int = 4096
    rounds: int = 6

    @property
    def flops(self) -> int:
        """Of two products for one layer, every query with every key."""
        return 2 * 2 * self.heads * self.chunk * (self.budget + self.chunk) * self.head_dim


def bench_kv(stream: StreamSetting | None = None, attending: AttentionSetting | None = None) -> dict[str, Any]:
    """Measure in a process of its own with one thread."""
    settings = [asdict(stream or StreamSetting()), asdict(attending or AttentionSetting())]
    return measured_apart(__name__, json.dumps(settings), threads=1)


def measure_kv(stream: StreamSetting, attending: AttentionSetting) -> dict[str, Any]:
    """Measure in this process."""
    windows = measure_stream("statekv", stream, stream.late, stream.rounds)
    full = measure_stream("full", stream, stream.full_late, 1)
    seconds = measure_attention(attending)
    products = min(("loop", "batch"), key=lambda form: median(seconds[form]))
    pairs = zip(seconds[products], seconds["attention"], strict=True)
    ratios = {
        "late_over_early": windows["ratio"],
        "full_late_over_early": full["ratio"],
        "attention_over_products": median(plain / ours for plain, ours in pairs),
        "counted_over_two_products": counted_flops(attending) / attending.flops,
    }
    raw = {
        "bars": BARS,
        "stream": asdict(stream),
        "statekv": windows,
        "full": full,
        "attention": asdict(attending),
        "fastest_products": products,
        "gflops_per_second": {name: attending.flops / median(taken) / 1e9 for name, taken in seconds.items()},
        "seconds_per_layer": {name: median(taken) for name, taken in seconds.items()},
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }
    return {"name": "kv", "ratios": ratios, "raw": raw}


# --- time per frame


class Taken(NamedTuple):
    """Seconds of one call."""

    cpu: float
    wall: float


def measure_stream(policy: str, setting: StreamSetting, late: int, rounds: int) -> dict[str, Any]:
    """Take in ``late`` frames, then the two windows in turn; ``ratio`` is the median over pairs of late to early.

    ``plain_ratio`` is that of mean times when each window was first taken in, hours of the machine's life apart.
    """
    model = _model(policy, setting)
    pictures = torch.randint(0, 256, (8, model.segment_spec.num_frames, 3, *[setting.frame_pixels] * 2)).byte()
    step = model.segment_spec.num_frames
    windows = [range(first // step, (first + setting.num_frames) // step) for first in (setting.early, late)]
    state, before, run = model.init_state(), {}, [0.0] * windows[1].stop
    for index in range(windows[1].stop):
        if index in (windows[0].start, windows[1].start):
            before[index] = state
        state, spent = _timed_advance(model, state, _segment(pictures, index))
        run[index] = spent.cpu
    taken: list[list[Taken]] = [[], []]
    for turn in range(rounds):
        states = [before[window.start] for window in windows]
        for number, indexes in enumerate(zip(*windows, strict=True)):
            for side in ((0, 1), (1, 0))[(number + turn) % 2]:  # neither always goes first
                states[side], spent = _timed_advance(model, states[side], _segment(pictures, indexes[side]))
                taken[side].append(spent)
    pairs = list(zip(*taken, strict=True))
    early, late_ = ([spent.cpu for spent in side] for side in taken)
    return {
        "ratio": median(last.cpu / first.cpu for first, last in pairs),
        "wall_ratio": median(last.wall / first.wall for first, last in pairs),
        "fastest_ratio": min(late_) / min(early),
        "plain_ratio": fmean(run[slice(windows[1].start, None)]) / fmean(run[windows[0].start : windows[0].stop]),
        "frames": [[window.start * step, window.stop * step] for window in windows],
        "seconds_per_frame": [median(early) / step, median(late_) / step],
        "carried_tokens": [before[window.start].kv.carried.keys.shape[2] for window in windows],
        "seen_tokens": [before[window.start].kv.seen_tokens for window in windows] + [state.kv.seen_tokens],
        "pairs": len(pairs),
    }


def _model(policy: str, setting: StreamSetting) -> StateKV:
    family = family_of(*random_qwen3_vl(), height=setting.frame_pixels, width=setting.frame_pixels)
    return StateKV(family, StateKVConfig(policy=policy, budget=setting.budget))  # pyright: ignore[reportArgumentType]


def _segment(pictures: Tensor, index: int) -> Segment:
    """Frames at one a second."""
    pixels = pictures[index % len(pictures)]
    start = index * len(pixels)
    times = tuple(float(start + number) for number in range(len(pixels)))
    return Segment(
        pixels=pixels,
        pts_seconds=times,
        index=index,
        start_seconds=float(start),
        end_seconds=float(start + len(pixels)),
    )


def _timed_advance(model: StateKV, state: StateKVState, segment: Segment) -> tuple[StateKVState, Taken]:
    wall, cpu = perf_counter(), thread_time()
    state = model.advance(state, segment)
    return state, Taken(cpu=thread_time() - cpu, wall=perf_counter() - wall)


# --- attention


def measure_attention(setting: AttentionSetting) -> dict[str, list[float]]:
    """CPU seconds per layer, an entry for each round: the decoder's attention, and the two products in two forms."""
    config = _text_config(setting)
    with _timed_attention() as (name, calls):
        torch.manual_seed(0)
        decoder = Qwen3VLTextModel(config).eval()
        decoder.config._attn_implementation = name
        products = _products(setting)
        seconds: dict[str, list[float]] = {"attention": [], **{form: [] for form in products}}
        for number in range(setting.rounds + 1):  # the first warms up and does not count
            calls.clear()
            _take_in_chunk(decoder, setting)
            taken = {"attention": fmean(calls)}
            for form, run in products.items():
                started = thread_time()
                for _ in range(setting.layers):
                    run()
                taken[form] = (thread_time() - started) / setting.layers
            for form in taken if number else ():
                seconds[form].append(taken[form])
    return seconds


def counted_flops(setting: AttentionSetting) -> int:
    """Of one call of StateKV's attention, by torch's counter on the meta device."""
    keys = setting.budget + setting.chunk
    query = torch.empty(setting.heads, setting.chunk, setting.head_dim, device="meta")
    past = torch.empty(setting.kv_heads, keys, setting.head_dim, device="meta")
    with FlopCounterMode(display=False) as counter:
        attend_and_listen(query, past, past, setting.head_dim**-0.5)
    return counter.get_total_flops()


def _text_config(setting: AttentionSetting) -> Qwen3VLTextConfig:
    eighth = setting.head_dim // 8
    return Qwen3VLTextConfig(
        vocab_size=64,
        hidden_size=setting.hidden,
        intermediate_size=3 * setting.hidden,
        num_hidden_layers=setting.layers,
        num_attention_heads=setting.heads,
        num_key_value_heads=setting.kv_heads,
        head_dim=setting.head_dim,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 1e6,
            "mrope_section": [4 * eighth - 2 * eighth, eighth, eighth],
        },
    )


@contextmanager
def _timed_attention() -> Iterator[tuple[str, list[float]]]:
    """Our attention under another name, and the CPU seconds of its calls."""
    calls: list[float] = []

    def timed(*args: Any, **options: Any) -> tuple[Tensor, None]:
        started = thread_time()
        result = attention(*args, **options)
        calls.append(thread_time() - started)
        return result

    AttentionInterface.register("longtake-timed", timed)
    yield "longtake-timed", calls


def _take_in_chunk(decoder: Qwen3VLTextModel, setting: AttentionSetting) -> None:
    """One chunk over a full budget, with all that StateKV does."""
    shape = (setting.layers, setting.kv_heads, setting.budget)
    keys, values = torch.randn(2, *shape, setting.head_dim)
    places = torch.arange(setting.budget).expand(shape)
    carried = Carried(keys=keys, values=values, places=places, starts=places)
    positions = torch.arange(setting.budget, setting.budget + setting.chunk).expand(3, 1, -1)
    embeds = torch.randn(1, setting.chunk, setting.hidden)
    take_in(
        KVState(carried=carried, seen_tokens=setting.budget),
        lambda cache: decoder(inputs_embeds=embeds, position_ids=positions, cache=cache, use_cache=True),
        Selection(budget=setting.budget, rule=statekv),
    )


def _products(setting: AttentionSetting) -> dict[str, Callable[[], object]]:
    """Queries times keys and weights times values: head by head, and all KV heads at once. The faster one counts."""
    rows, keys = setting.heads // setting.kv_heads * setting.chunk, setting.budget + setting.chunk
    query = torch.randn(setting.kv_heads, rows, setting.head_dim)
    key, value = torch.randn(2, setting.kv_heads, keys, setting.head_dim)
    weights = torch.rand(setting.kv_heads, rows, keys)

    def loop() -> None:
        for head in range(setting.kv_heads):
            torch.mm(query[head], key[head].T)
            torch.mm(weights[head], value[head])

    def batch() -> None:
        torch.bmm(query, key.transpose(1, 2))
        torch.bmm(weights, value)

    return {"loop": loop, "batch": batch}


if __name__ == "__main__":
    torch.set_num_threads(1)
    stream, attending = json.loads(sys.argv[1])
    with torch.inference_mode():
        sys.stdout.write(json.dumps(measure_kv(StreamSetting(**stream), AttentionSetting(**attending))))
