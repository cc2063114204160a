"""Fresh Toybox material for training: item ``index`` of a stage depends on the run's seed and the index alone.

So a run that was killed goes on with exactly the items it would have seen.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor
from torch.utils.data import Dataset

from longtake.data.toybox import KINDS, Renderer, Script, frame_labels, make_script
from longtake.language.tokenizer import PAD, CaptionTokenizer, TimedText
from longtake.methods.sts_config import STSConfig
from longtake.methods.sts_time import stream_bucket, video_bucket
from longtake.train.recipe import StageConfig

IGNORED = -100
MEMORY_KINDS = ("first_back", "count", "place")
MEMORY_ANSWERS = (
    "enters",
    "comes back",
    "first",
    "second",
    "third",
    "fourth",
    "to a new place",
    "back to where it started",
    "to the left",
    "to the right",
)
MOST_COUNTS = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Labels:
    """What is true at each frame of each kind of toy; integer labels are IGNORED where nothing is to be learned."""

    visible: Float[Tensor, "batch time kinds"]
    colour: Int[Tensor, "batch time kinds"]
    action: Int[Tensor, "batch time kinds"]
    place: Float[Tensor, "batch time kinds 3"]
    """x, y and scale."""
    cell: Int[Tensor, "batch time rows columns"]
    """Kind of the toy whose middle lies there, ``len(KINDS)`` for none."""
    elapsed: Int[Tensor, "batch time kinds"]
    """Ticks since the present action began."""
    counts: Int[Tensor, "batch time kinds counted"]
    home: Int[Tensor, "batch time kinds"]
    ended: Int[Tensor, "batch time kinds"]
    """Action of the event that ended at this frame, 0 for none."""
    length: Int[Tensor, "batch time kinds"]
    """Ticks that event took."""
    memory: Int[Tensor, "batch time kinds"]
    """Index into MEMORY_ANSWERS of the words of that event's sentence."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """Material of one step."""

    frames: UInt8[Tensor, "batch time 3 height width"]
    labels: Labels
    tokens: Int[Tensor, "batch segments length"]
    """What is said at each decoding point, padded with PAD; no segments for ``frames`` stages."""
    scripts: tuple[Script, ...] = ()
    seen: Float[Tensor, "batch time tokens dim"] | None = None
    """Kept tokens of the frames, where a frozen encoder has already run (beside the process that trains)."""

    def to(self, device: torch.device) -> Batch:
        labels = Labels(**{name: getattr(self.labels, name).to(device) for name in Labels.__slots__})
        seen = None if self.seen is None else self.seen.to(device)
        tokens = self.tokens.to(device)
        return Batch(frames=self.frames.to(device), labels=labels, tokens=tokens, scripts=self.scripts, seen=seen)


class ToyboxStage(Dataset[Batch]):
    """Batches of a stage by index."""

    def __init__(
        self,
        stage: StageConfig,
        model: STSConfig,
        tokenizer: CaptionTokenizer,
        seed: int,
        split: str,
        see: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        self.see = see
        """Frames of one whole video to kept tokens, where the encoder is frozen."""
        self.stage = stage
        self.model = model
        self.tokenizer = tokenizer
        self.seed = seed
        self.split = split

    def __len__(self) -> int:
        return self.stage.steps

    def __getitem__(self, index: int) -> Batch:
        # torch threads in a process that draws would only compete with the one that trains.
        torch.set_num_threads(1)
        first = index * self.stage.batch_size
        seeds = [self.seed * 1_000_000_007 + first + item for item in range(self.stage.batch_size)]
        if self.stage.data == "frames":
            return stack([item for seed in seeds for item in moments(seed, self.split, self.model)])
        chooser = random.Random(f"{self.seed}/{self.stage.name}/{index}")
        seconds = round(4 * chooser.uniform(self.stage.min_seconds, self.stage.max_seconds)) / 4
        videos = [
            video(make_script(seed, seconds=seconds, split=self.split), self.model, self.tokenizer) for seed in seeds
        ]
        return stack(videos if self.see is None else [seen_by(item, self.see) for item in videos])


def seen_by(item: Batch, see: Callable[[Tensor], Tensor]) -> Batch:
    """The batch with its frames already encoded; the frames themselves are no longer needed."""
    return replace(item, frames=item.frames[:, :0], seen=see(item.frames))


def moments(seed: int, split: str, model: STSConfig, num_moments: int = 4, num_labelled: int = 2) -> list[Batch]:
    """Short runs of frames of one video, more often while something happens than not.

    Several of one video, since setting the scene costs more than drawing a frame.
    """
    chooser = random.Random(f"moments/{split}/{seed}")
    script = make_script(seed, seconds=chooser.choice((40, 60, 80)), split=split)
    renderer = Renderer(script, size=model.size)
    history = model.encoder.history
    count = history + num_labelled
    found: list[Batch] = []
    for _ in range(num_moments):
        if chooser.random() < 0.8 and script.events:
            event = chooser.choice(script.events)
            at = chooser.uniform(event.start_seconds, event.end_seconds)
        else:
            at = chooser.uniform(1.0, script.seconds - 1.0)
        last = max(round(at * model.fps) + num_labelled, count)
        times = np.arange(last - count, last) / model.fps
        labels = labels_of(script, times, model)
        kept = Labels(**{name: getattr(labels, name)[:, history:] for name in Labels.__slots__})
        no_tokens = torch.zeros(1, 0, 0, dtype=torch.long)
        found.append(Batch(frames=draw(renderer, times), labels=kept, tokens=no_tokens))
    return found


def video(script: Script, model: STSConfig, tokenizer: CaptionTokenizer) -> Batch:
    """A whole video on the model's time grid, with what is to be said at each decoding point."""
    times = np.arange(int(script.seconds * model.fps)) / model.fps
    return Batch(
        frames=draw(Renderer(script, size=model.size), times),
        labels=labels_of(script, times, model),
        tokens=tokens_of(script, len(times), model, tokenizer),
        scripts=(script,),
    )


def draw(renderer: Renderer, times: np.ndarray) -> UInt8[Tensor, "1 time 3 height width"]:
    frames = np.stack([renderer.frame(float(time)) for time in times])
    return torch.from_numpy(frames).permute(0, 3, 1, 2).unsqueeze(0).contiguous()


def tokens_of(
    script: Script, num_frames: int, model: STSConfig, tokenizer: CaptionTokenizer
) -> Int[Tensor, "1 segments length"]:
    """Token ids per segment: the events whose end lies in it, in order of their ends."""
    num_segments = -(-num_frames // model.num_frames)
    said: list[list[TimedText]] = [[] for _ in range(num_segments)]
    for event in sorted(script.events, key=lambda event: (event.end_seconds, event.start_seconds)):
        end, start = round(event.end_seconds * model.fps), round(event.start_seconds * model.fps)
        segment = end // model.num_frames
        if end >= num_frames:
            continue
        border = min((segment + 1) * model.num_frames, num_frames)
        buckets = model.time.num_buckets
        if model.time.encoding == "video":
            places = [video_bucket(t, script.seconds, buckets) for t in (event.start_seconds, event.end_seconds)]
        else:
            places = [stream_bucket(frame, border, buckets) for frame in (start, end)]
        said[segment].append(TimedText(start_bucket=places[0], end_bucket=places[1], text=event.sentence))
    rows = [tokenizer.encode(events) for events in said]
    tokens = torch.full((1, num_segments, max(map(len, rows))), PAD)
    for index, row in enumerate(rows):
        tokens[0, index, : len(row)] = torch.tensor(row)
    return tokens


def labels_of(script: Script, times: np.ndarray, model: STSConfig) -> Labels:
    truth = frame_labels(script, times)
    visible = truth.visible.astype(bool)
    present = truth.colour >= 0

    def where(values: np.ndarray, mask: np.ndarray) -> Tensor:
        return torch.from_numpy(np.where(mask, values, IGNORED).astype(np.int64))[None]

    ended, length, memory = ended_labels(script, times, model.fps)
    place = np.stack([truth.x, truth.y, truth.scale], axis=-1).astype(np.float32)
    counts = np.minimum(truth.counts, MOST_COUNTS)
    return Labels(
        visible=torch.from_numpy(visible.astype(np.float32))[None],
        colour=where(truth.colour, visible),
        action=where(truth.action, present),
        place=torch.from_numpy(place)[None],
        cell=torch.from_numpy(cells(truth.x, truth.y, visible, model.size // 8))[None],
        elapsed=where(np.minimum(truth.elapsed_ticks, 31), present & (truth.action > 0)),
        counts=where(counts, np.broadcast_to(present[..., None], counts.shape)),
        home=where(truth.at_home, visible),
        ended=where(ended, present),
        length=where(length, ended > 0),
        memory=where(memory, memory >= 0),
    )


def ended_labels(script: Script, times: np.ndarray, fps: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """At the first frame of rest after an event: its action, its length in ticks, and its memory words' index (or -1)."""
    from longtake.data.toybox.world import ACTIONS

    first = round(float(times[0]) * fps)
    shape = (len(times), len(KINDS))
    ended, length, memory = np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.full(shape, -1, np.int64)
    for event in script.events:
        at = round(event.end_seconds * fps) - first
        if 0 <= at < len(times):
            kind = KINDS.index(script.cast[event.toy].kind)
            ended[at, kind] = ACTIONS.index(event.action)
            length[at, kind] = min(round((event.end_seconds - event.start_seconds) * fps), 31)
            if event.memory:
                memory[at, kind] = MEMORY_ANSWERS.index(event.memory[0].word)
    return ended, length, memory


def cells(x: np.ndarray, y: np.ndarray, visible: np.ndarray, side: int) -> np.ndarray:
    """Kind of toy per cell of a ``side`` x ``side`` grid."""
    grid = np.full((x.shape[0], side, side), len(KINDS), np.int64)
    time, kind = np.nonzero(visible & (x >= 0) & (x < 1) & (y >= 0) & (y < 1))
    column, row = (x[time, kind] * side).astype(int), (y[time, kind] * side).astype(int)
    grid[time, row, column] = kind
    return grid


def stack(items: list[Batch]) -> Batch:
    """One batch of items of the same length."""
    longest = max(item.tokens.shape[-1] for item in items)
    tokens = [torch.nn.functional.pad(item.tokens, (0, longest - item.tokens.shape[-1]), value=PAD) for item in items]
    labels = Labels(**{name: torch.cat([getattr(item.labels, name) for item in items]) for name in Labels.__slots__})
    return Batch(
        frames=torch.cat([item.frames for item in items]),
        labels=labels,
        tokens=torch.cat(tokens),
        seen=None if items[0].seen is None else torch.cat([item.seen for item in items if item.seen is not None]),
        scripts=tuple(script for item in items for script in item.scripts),
    )
