"""Training material: what is said where, what is labelled, and that an index always gives the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from longtake.data.toybox import KINDS, make_script, vocabulary
from longtake.data.toybox.world import ACTIONS
from longtake.language.tokenizer import PAD, CaptionTokenizer
from longtake.methods.sts_config import STSConfig
from longtake.methods.sts_time import stream_event
from longtake.train.labels import IGNORED, MEMORY_ANSWERS, labels_of
from longtake.train.material import Taken, ToyboxStage, tokens_of
from longtake.train.sts_recipe import STSStage

MODEL = STSConfig(vocabulary=vocabulary(), size=32)
TOKENIZER = CaptionTokenizer.from_words(MODEL.vocabulary, MODEL.time.num_buckets)
VIDEOS = STSStage(name="videos", data="videos", steps=3, batch_size=2, min_seconds=40, max_seconds=42)


@pytest.mark.parametrize("seed", range(5))
def test_decoding_points_say_every_event_once_at_its_true_time(seed: int) -> None:
    script = make_script(seed, seconds=61.25)
    times = np.arange(int(script.seconds * MODEL.fps)) / MODEL.fps
    said = []
    for index, row in enumerate(tokens_of(script, times, MODEL, TOKENIZER)[0].tolist()):
        border = min((index + 1) * MODEL.num_frames, len(times))
        clock = tuple(frame / MODEL.fps for frame in range(max(border - 32, 0), border + 1))
        events = [stream_event(item, clock, border - index * MODEL.num_frames, 33) for item in TOKENIZER.decode(row)]
        assert None not in events
        said += [(event.start_seconds, event.end_seconds, event.text) for event in events if event]
    expected = [(e.start_seconds, e.end_seconds, e.sentence) for e in script.events if e.end_seconds < len(times) / 4]
    assert sorted(said) == sorted(expected)


def test_whole_video_says_all_events_in_one_row() -> None:
    script = make_script(1, seconds=50)
    times = np.arange(200) / MODEL.fps
    rows = tokens_of(script, times, MODEL, TOKENIZER, whole=True)
    assert rows.shape[1] == 1
    assert len(TOKENIZER.decode(rows[0, 0].tolist())) == len(script.events)


def test_labels_tell_what_ended_and_what_memory_needs() -> None:
    script = make_script(2, seconds=60)
    labels = labels_of(script, np.arange(240) / 4, MODEL)
    for event in script.events:
        at, kind = round(event.end_seconds * 4), KINDS.index(script.cast[event.toy].kind)
        assert ACTIONS[labels.ended[0, at, kind]] == event.action
        assert labels.length[0, at, kind] == round((event.end_seconds - event.start_seconds) * 4)
        if event.memory:
            assert MEMORY_ANSWERS[labels.memory[0, at, kind]] == event.memory[0].word
    assert int((labels.ended > 0).sum()) == len(script.events)
    absent = [index for index, kind in enumerate(KINDS) if kind not in {toy.kind for toy in script.cast}]
    assert bool((labels.action[0, :, absent] == IGNORED).all())


@pytest.mark.parametrize("data", ["frames", "videos"])
def test_an_index_always_gives_the_same_batch(data: str) -> None:
    stage = STSStage(name=data, data=data, steps=3, batch_size=2, min_seconds=40, max_seconds=42)
    first, again, other = (ToyboxStage(stage, MODEL, TOKENIZER, seed, "train", Taken())[1] for seed in (0, 0, 1))
    assert torch.equal(first.frames, again.frames)
    assert torch.equal(first.tokens, again.tokens)
    assert first.frames.shape != other.frames.shape or not torch.equal(first.frames, other.frames)


def test_a_frozen_encoder_sees_the_same_frames_as_training_does() -> None:
    data = ToyboxStage(
        VIDEOS, MODEL, TOKENIZER, 0, "train", Taken(), see=lambda frames: frames[:, :, :1, :1, 0].float()
    )
    plain = ToyboxStage(VIDEOS, MODEL, TOKENIZER, 0, "train", Taken())[0]
    seen = data[0]
    assert seen.frames.shape[1] == 0
    assert torch.equal(seen.seen, plain.frames[:, :, :1, :1, 0].float())


def test_a_share_of_videos_goes_through_a_file() -> None:
    through = ToyboxStage(replace(VIDEOS, file_share=1.0), MODEL, TOKENIZER, 0, "train", Taken())[0].frames
    drawn = ToyboxStage(VIDEOS, MODEL, TOKENIZER, 0, "train", Taken())[0].frames
    assert through.shape == drawn.shape
    difference = (through.float() - drawn.float()).abs().mean()
    assert 0.1 < difference < 12


def test_frames_spread_over_the_video_bring_their_own_history() -> None:
    script = make_script(3, seconds=40)
    item = ToyboxStage(VIDEOS, MODEL, TOKENIZER, 0, "train", Taken(num_frames=8)).video(script)
    assert item.frames.shape == (8, 3, 3, 32, 32)
    assert item.labels.visible.shape[1] == 8
    assert item.tokens.shape[1] == 1
    assert int((item.tokens != PAD).sum()) > 0


def test_what_a_frozen_encoder_saw_is_kept_for_other_runs(tmp_path: Path) -> None:
    drawn: list[int] = []

    def see(frames: torch.Tensor) -> torch.Tensor:
        drawn.append(len(frames))
        return frames[:, :, :1, :1, 0].float()

    first, again = (ToyboxStage(VIDEOS, MODEL, TOKENIZER, 0, "train", Taken(), see, tmp_path)[0] for _ in range(2))
    assert len(drawn) == VIDEOS.batch_size
    assert first.seen is not None
    assert torch.equal(first.seen, again.seen)
    assert torch.equal(first.tokens, again.tokens)
