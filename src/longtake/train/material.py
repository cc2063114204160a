"""Fresh Toybox material for training: item ``index`` of a stage depends on the run's seed and the index alone.

So a run that was killed goes on with exactly the items it would have seen.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from safetensors.torch import load_file, save
from torch import Tensor
from torch.utils.data import Dataset

from longtake.data.toybox import Renderer, Script, make_script
from longtake.files import write_whole
from longtake.language.tokenizer import PAD, CaptionTokenizer, TimedText
from longtake.methods.sts_config import CaptionerConfig
from longtake.methods.sts_time import stream_bucket, video_bucket
from longtake.train.film import drawn, through_file
from longtake.train.labels import Labels, labels_of
from longtake.train.sts_recipe import STSStage

NUM_LENGTHS = 10
"""Different lengths of video in a stage: enough to leave last segments of any size, few enough that blocks of memory
are used again instead of piling up (measured: 15 GB against 5 GB)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """Material of one step."""

    frames: UInt8[Tensor, "items frames 3 height width"]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What is taken of a video in experiments; the defaults are what the bundled model gets: all of it, as a stream."""

    num_frames: int = 0
    """Frames spread evenly over the video, each with the encoder's earlier frames just before it; 0: the time grid."""
    whole: bool = False
    """All events are said at the end."""


class ToyboxStage(Dataset[Batch]):
    """Batches of a stage by index."""

    def __init__(
        self,
        stage: STSStage,
        model: CaptionerConfig,
        tokenizer: CaptionTokenizer,
        seed: int,
        split: str,
        taken: Taken,
        see: Callable[[Tensor], Tensor] | None = None,
        seen_folder: Path | None = None,
    ) -> None:
        self.taken = taken
        self.see = see
        """Frames of one whole video to kept tokens, where the encoder is frozen."""
        self.seen_folder = seen_folder
        """Where those tokens are kept for other runs with the same encoder."""
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
        lengths = np.linspace(self.stage.min_seconds, self.stage.max_seconds, NUM_LENGTHS)
        seconds = round(4 * float(chooser.choice(list(lengths)))) / 4
        return stack([self.video(make_script(seed, seconds=seconds, split=self.split)) for seed in seeds])

    def video(self, script: Script) -> Batch:
        """One video as this stage takes it, encoded already where the encoder is frozen."""
        times = frame_times(script, self.model, self.taken)
        if self.see is None:
            return told(script, times, self.model, self.tokenizer, self.taken, self.film(script, times))
        # Once encoded, the frames themselves are no longer needed.
        no_frames = torch.zeros(1, 0, 3, self.model.size, self.model.size, dtype=torch.uint8)
        item = told(script, times, self.model, self.tokenizer, self.taken, no_frames)
        return replace(item, seen=self.seen(script, times))

    def seen(self, script: Script, times: np.ndarray) -> Float[Tensor, "1 time tokens dim"]:
        assert self.see is not None, "only a frozen encoder sees ahead"
        if self.seen_folder is None:
            return self.see(self.film(script, times))
        path = self.seen_folder / f"{script.split}-{script.seed}-{script.seconds:g}.safetensors"
        if not path.exists():
            write_whole(path, save({"seen": self.see(self.film(script, times)).to(torch.bfloat16)}))
        # Read back in any case, so that the first run sees what later ones see.
        return load_file(path)["seen"].float()

    def film(self, script: Script, times: np.ndarray) -> UInt8[Tensor, "items time 3 height width"]:
        """The frames at those times, each with its earlier ones where they are spread; some through a file."""
        if random.Random(f"file/{script.split}/{script.seed}").random() < self.stage.file_share:
            return through_file(script, self.model.segment_spec)[: len(times)].unsqueeze(0)
        renderer = Renderer(script, size=self.model.size)
        if not self.taken.num_frames:
            return drawn(renderer, times).unsqueeze(0)
        back = np.arange(self.model.encoder.history, -1, -1) / self.model.fps
        return torch.stack([drawn(renderer, np.maximum(time - back, 0.0)) for time in times])


def moments(seed: int, split: str, model: CaptionerConfig, num_moments: int = 4, num_labelled: int = 2) -> list[Batch]:
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
        found.append(Batch(frames=drawn(renderer, times).unsqueeze(0), labels=kept, tokens=no_tokens))
    return found


def frame_times(script: Script, model: CaptionerConfig, taken: Taken) -> np.ndarray:
    """Times of the frames in seconds: the model's time grid, or spread evenly over the video."""
    if taken.num_frames:
        return (np.arange(taken.num_frames) + 0.5) / taken.num_frames * script.seconds
    return np.arange(int(script.seconds * model.fps)) / model.fps


def told(
    script: Script, times: np.ndarray, model: CaptionerConfig, tokenizer: CaptionTokenizer, taken: Taken, frames: Tensor
) -> Batch:
    """A batch of one video: its frames with what is true at each and what is to be said at each decoding point."""
    return Batch(
        frames=frames,
        labels=labels_of(script, times, model),
        tokens=tokens_of(script, times, model, tokenizer, whole=taken.whole),
        scripts=(script,),
    )


def tokens_of(
    script: Script, times: np.ndarray, model: CaptionerConfig, tokenizer: CaptionTokenizer, *, whole: bool = False
) -> Int[Tensor, "1 segments length"]:
    """Token ids per segment: the events whose end lies in it, in order of their ends; ``whole``: all in one row."""
    num_frames, size = len(times), len(times) if whole else model.num_frames
    said: list[list[TimedText]] = [[] for _ in range(-(-num_frames // size))]
    for event in sorted(script.events, key=lambda event: (event.end_seconds, event.start_seconds)):
        start, end = (int(np.searchsorted(times, t - 1e-6)) for t in (event.start_seconds, event.end_seconds))
        if end >= num_frames and not whole:
            continue
        segment = 0 if whole else end // size
        border, buckets = min((segment + 1) * size, num_frames), model.time.num_buckets
        if model.time.encoding == "video":
            places = [video_bucket(t, script.seconds, buckets) for t in (event.start_seconds, event.end_seconds)]
        else:
            places = [stream_bucket(frame, border, buckets) for frame in (start, end)]
        said[segment].append(TimedText(start_bucket=places[0], end_bucket=places[1], text=event.sentence))
    rows = [tokenizer.encode(events) for events in said]
    tokens = torch.full((1, len(rows), max(map(len, rows))), PAD)
    for index, row in enumerate(rows):
        tokens[0, index, : len(row)] = torch.tensor(row)
    return tokens


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
