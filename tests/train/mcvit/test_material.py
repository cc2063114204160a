"""What MC-ViT is taught: frames of the file, the class, the order so far, and texts that its tower knows."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from longtake.data.toybox import KINDS, make_script
from longtake.data.toybox.routines import ROUTINE_MOVES, ROUTINES, routine_of
from longtake.language.text_encoder import UNKNOWN_TOKEN, word_tokenizer
from longtake.methods.mcvit_config import MCViTConfig
from longtake.train.mcvit.material import Clips, Videos, as_in_file, ranks_of, spread_times, truth_of
from longtake.train.mcvit.recipe import MCViTStage
from longtake.train.mcvit.texts import WORDINGS, class_texts, text_words
from longtake.train.truth import IGNORED, truth_at

MODEL = MCViTConfig.tiny()
STAGE = MCViTStage(
    name="x", data="videos", steps=9, batch_size=2, min_frames=8, max_frames=16, max_seconds=44.0, questions=3
)


def test_batches_follow_from_their_number_and_videos_do_not_from_the_frames() -> None:
    videos = Videos(MODEL, STAGE, 1, "routines")
    one, again, other = videos[3], videos[3], videos[4]
    assert torch.equal(one.frames, again.frames)
    assert one.questions == again.questions
    assert one.frames.shape != other.frames.shape or not torch.equal(one.frames, other.frames)
    few, many = videos.batch(3, 8), videos.batch(3, 16)
    assert torch.equal(few.labels, many.labels)
    assert few.questions == many.questions
    assert few.frames.shape[1] == 8
    assert many.frames.shape[1] == 16


def test_the_last_rank_is_the_class() -> None:
    batch = Videos(MODEL, STAGE, 2, "routines").batch(0, 64)
    assert batch.ranks.shape == (2, 16, 4)
    for video in range(2):
        order = routine_of(ROUTINES[int(batch.labels[video])])
        assert batch.ranks[video, -1].tolist() == [order.index(move) + 1 for move in ROUTINE_MOVES]
        assert batch.ranks[video, 0].tolist() == [0, 0, 0, 0]
        ranks = batch.ranks[video]
        assert bool(((ranks[1:] == ranks[:-1]) | (ranks[:-1] == 0)).all()), "what is done stays done"


def test_other_splits_have_no_class() -> None:
    batch = Videos(MODEL, STAGE, 2, "train").batch(0, 8)
    assert (batch.labels == IGNORED).all()
    assert (batch.ranks == IGNORED).all()
    assert batch.questions
    assert (ranks_of(make_script(1, seconds=40.0), np.array([1.0, 20.0])) == IGNORED).all()


def test_clips_show_what_their_truth_says() -> None:
    batch = Clips(MODEL, MCViTStage(name="x", data="clips", steps=1, batch_size=10), 0)[0]
    assert batch.frames.shape == (10, 4, 3, 16, 16)
    assert batch.truth.kind.shape == (10, 2, 16)
    assert 0.02 < (batch.truth.kind < len(KINDS)).float().mean() < 0.6
    assert (batch.labels == IGNORED).all()
    assert not batch.questions


@pytest.mark.parametrize("count", [16, 64, 256])
def test_frames_lie_evenly_on_those_of_the_file(count: int) -> None:
    script = make_script(1, seconds=41.0, split="routines")
    times = spread_times(script, count)
    assert np.allclose(times * 8, np.round(times * 8))
    assert times[0] >= 0
    assert times[-1] < 41.0
    assert np.abs(times - (np.arange(count) + 0.5) / count * 41.0).max() <= 0.125
    assert as_in_file(script, np.array([-1.0, 99.0])).tolist() == [0.0, 40.875]


def test_a_video_through_a_file_looks_the_same() -> None:
    from dataclasses import replace

    plain = Videos(MODEL, replace(STAGE, batch_size=1), 5, "routines").batch(0, 8)
    filed = Videos(MODEL, replace(STAGE, batch_size=1, file_share=1.0), 5, "routines").batch(0, 8)
    assert torch.equal(plain.labels, filed.labels)
    apart = (plain.frames.float() - filed.frames.float()).abs().mean()
    assert 0 < apart < 12


def test_every_wording_is_known_and_tells_all_classes_apart() -> None:
    tokenizer = word_tokenizer(text_words())
    for wording in range(len(WORDINGS)):
        texts = class_texts(wording)
        assert len(set(texts)) == len(ROUTINES)
        assert all(UNKNOWN_TOKEN not in tokenizer.encode(text).tokens for text in texts)
    assert class_texts(0) == ROUTINES


def test_questions_are_of_known_words() -> None:
    tokenizer = word_tokenizer(text_words())
    batch = Videos(MODEL, STAGE, 3, "routines").batch(0, 8)
    assert len(batch.questions) == 6
    for one in batch.questions:
        assert 0 <= one.right < len(one.texts)
        assert all(UNKNOWN_TOKEN not in tokenizer.encode(text).tokens for text in one.texts)


def test_truth_of_a_tubelet_is_what_a_toy_does_in_any_of_its_frames() -> None:
    script = make_script(3, seconds=40.0, split="routines")
    times = np.arange(160) / 4
    found, frames = truth_of(script, times, MODEL), truth_at(script, times, 4)
    actions = frames.action.unflatten(0, (-1, 2))
    busy = (actions > 0).any(1)
    assert ((found.action > 0) == busy).all()
    assert (found.action[busy][:, None] == actions.movedim(1, 2)[busy]).any(1).all()
    assert 0 < busy.float().mean() < 0.5
    assert torch.equal(found.kind[~busy], frames.kind[1::2][~busy])
