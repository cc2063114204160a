"""What is taught is what will be run: the same tokens, positions, pixels and logits as the engine's, chunk by chunk."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from longtake.data.toybox import KINDS, make_script
from longtake.data.toybox.recall import Recall
from longtake.data.toybox.story import REGIONS
from longtake.data.toybox.world import ACTIONS
from longtake.methods.statekv import StateKV
from longtake.methods.statekv_config import StateKVConfig
from longtake.train.truth import IGNORED, truth_at
from longtake.train.vlm.build import VLMConfig, build_model, build_processor
from longtake.train.vlm.material import Films, Layout, patches_of, replaced
from longtake.train.vlm.objective import (
    LONG_AGO,
    RECALLING,
    Looking,
    VLMObjective,
    looking_loss,
    toys_looking,
)
from longtake.train.words import question_words
from longtake.types import Segment
from longtake.vlm.families import family_of

CONFIG = VLMConfig(
    size=48,
    patch=8,
    vision_dim=32,
    vision_layers=2,
    vision_heads=2,
    vision_inner=48,
    dim=64,
    layers=3,
    heads=4,
    kv_heads=2,
    inner=96,
    listens_after=2,
)


@pytest.fixture(scope="module")
def built() -> tuple[VLMObjective, object]:
    torch.manual_seed(0)
    processor = build_processor(CONFIG, question_words())
    return VLMObjective(build_model(CONFIG, processor.tokenizer), CONFIG).eval(), processor


def engine(objective: VLMObjective, processor: object) -> StateKV:
    """The same weights in the engine that answers: a model of its own, since training changes the attention."""
    model = build_model(CONFIG, processor.tokenizer)  # pyright: ignore[reportAttributeAccessIssue]
    model.load_state_dict(objective.model.state_dict())
    family = family_of(model.eval(), processor, height=CONFIG.size, width=CONFIG.size)
    family.check_cuts()
    return StateKV(family, StateKVConfig(policy="full", fps=CONFIG.fps))


def segment(frames: torch.Tensor, index: int) -> Segment:
    first = index * CONFIG.frames_per_step
    times = tuple((first + frame) / CONFIG.fps for frame in range(CONFIG.frames_per_step))
    return Segment(
        index=index,
        pixels=frames[first : first + CONFIG.frames_per_step],
        pts_seconds=times,
        start_seconds=times[0],
        end_seconds=times[0] + CONFIG.step_seconds,
    )


def test_patches_match_the_processor(built: tuple[VLMObjective, object]) -> None:
    frames = np.random.default_rng(0).integers(0, 256, (10, CONFIG.size, CONFIG.size, 3), dtype=np.uint8)
    seen = built[1].video_processor(  # pyright: ignore[reportAttributeAccessIssue]
        [torch.from_numpy(frames).permute(0, 3, 1, 2)], do_sample_frames=False, do_resize=False, return_tensors="pt"
    )
    mine = patches_of(frames, CONFIG).flatten(0, 1).float() / 127.5 - 1
    torch.testing.assert_close(mine, seen["pixel_values_videos"], atol=1e-6, rtol=0)


def test_layout_matches_the_engine(built: tuple[VLMObjective, object]) -> None:
    family = engine(*built).family
    preamble = family.preamble()
    assert preamble is not None
    ids, places, position = [preamble.input_ids], [preamble.position_ids], preamble.next_position
    frames = torch.zeros(45, 3, CONFIG.size, CONFIG.size, dtype=torch.uint8)
    for index in range(9):
        piece = segment(frames, index)
        chunk = family.frames(piece.pixels, piece.pts_seconds, index=index, position=position)
        ids.append(chunk.input_ids)
        places.append(chunk.position_ids)
        position = chunk.next_position
    mine, ends, positions = Layout(CONFIG, family.tokenizer).ids(9)
    assert mine == torch.cat(ids, dim=1)[0].tolist()
    assert ends[-1] == len(mine)
    assert torch.equal(torch.tensor(positions), torch.cat(places, dim=2)[:, 0])


def test_branches_match_the_engine_asked_at_that_moment(built: tuple[VLMObjective, object]) -> None:
    objective, processor = built
    films = Films(CONFIG, processor.tokenizer, seed=3, batch_size=2, steps=(12, 12), questions=6, moments=3)  # pyright: ignore[reportAttributeAccessIssue]
    batch = films[0]
    with torch.no_grad():
        hidden, _ = objective.read(batch, objective.see(batch))
        said = objective.answer_logits(hidden, batch)
    model = engine(objective, processor)
    row = 0
    for video in range(2):
        patches = batch.patches.unflatten(0, (2, 12))[video]
        frames = unpatched(patches)
        for number in range(6):
            with torch.inference_mode():
                state = model.init_state()
                while state.kv.seen_tokens < batch.seen[video, number]:
                    state = model.advance(state, segment(frames, state.num_chunks))
                ids = batch.branches[video, number][batch.branches[video, number] != processor.tokenizer.pad_token_id]  # pyright: ignore[reportAttributeAccessIssue]
                chunk = model.family.words(ids[None], position=state.position)
                logits = model.family.forward(chunk, model.converse(state).cache, keep=0)[0]
            wanted = (batch.targets[video, number] != IGNORED).nonzero()[:, 0]
            torch.testing.assert_close(said[row : row + len(wanted)], logits[wanted], atol=1e-4, rtol=1e-4)
            row += len(wanted)
    assert row == len(said)


def test_a_thinned_video_keeps_what_shows_a_toy_at_its_place(built: tuple[VLMObjective, object]) -> None:
    tokenizer = built[1].tokenizer  # pyright: ignore[reportAttributeAccessIssue]
    whole, thin = (
        Films(CONFIG, tokenizer, seed=3, batch_size=2, steps=(20, 20), questions=6, thinned=share)[0]
        for share in (0.0, 0.7)
    )
    placeholder = int(tokenizer.convert_tokens_to_ids("<|video_pad|>"))
    assert thin.prefix.shape[1] < 0.7 * whole.prefix.shape[1]
    for video in range(2):
        kept = thin.kept[video]
        assert (kept.diff() > 0).all()
        shows = (thin.truth.kind[video].flatten() < len(KINDS)).nonzero()[:, 0]
        assert torch.isin(shows, kept).all()
        visual = whole.prefix[video] == placeholder
        assert torch.equal(
            thin.positions[:, video, thin.prefix[video] == placeholder], whole.positions[:, video, visual][:, kept]
        )
        assert torch.equal(thin.points[video], whole.points[video][:, kept])
        for before, (start, seen) in enumerate(zip(thin.starts[video], thin.seen[video], strict=True)):
            assert start == whole.starts[video, before]
            assert seen == (thin.positions[0, video] < start).sum()


def test_what_a_thinned_video_shows_is_read_at_its_token(built: tuple[VLMObjective, object]) -> None:
    objective, processor = built
    films = Films(CONFIG, processor.tokenizer, seed=3, batch_size=2, steps=(12, 12), questions=4, thinned=0.6)  # pyright: ignore[reportAttributeAccessIssue]
    batch = films[0]
    with torch.no_grad():
        seen = objective.see(batch)
        known, _ = objective.read(batch, seen)
        other = seen.clone()
        step, token = divmod(int(batch.kept[1, -1]), seen.shape[2])
        other[1, step, token] += 1.0
        changed, _ = objective.read(batch, other)
    moved = (known != changed).any(-1)
    at = int((batch.prefix[1] == objective.model.config.video_token_id).nonzero()[-1, 0])
    assert not moved[0].any()
    assert not moved[1, :at].any()
    assert moved[1, at]


def unpatched(patches: torch.Tensor) -> torch.Tensor:
    """Frames ``time 3 height width`` from the patches of one video."""
    side, patch = CONFIG.side, CONFIG.patch
    pixels = patches.unflatten(1, (side, side, 2, 2)).unflatten(5, (3, CONFIG.frames_per_step, patch, patch))
    # step, row, column, row in two, column in two, colour, frame, y, x
    return pixels.permute(0, 6, 5, 1, 3, 7, 2, 4, 8).flatten(0, 1).flatten(2, 4).flatten(3, 5)


def test_the_answer_is_what_is_to_be_said(built: tuple[VLMObjective, object]) -> None:
    tokenizer = built[1].tokenizer  # pyright: ignore[reportAttributeAccessIssue]
    batch = Films(CONFIG, tokenizer, seed=1, batch_size=1, steps=(40, 40), questions=8)[0]
    for number in range(8):
        answer = tokenizer.decode(batch.targets[0, number][batch.targets[0, number] != IGNORED])
        whole = tokenizer.decode(batch.branches[0, number])
        assert answer.endswith("<|end|>")
        assert f"?<|assistant|>{answer}" in whole
        assert "<|unknown|>" not in whole


def test_half_of_the_questions_are_asked_at_the_end(built: tuple[VLMObjective, object]) -> None:
    tokenizer = built[1].tokenizer  # pyright: ignore[reportAttributeAccessIssue]
    asked = 16
    batch = Films(CONFIG, tokenizer, seed=2, batch_size=2, steps=(60, 60), questions=asked, moments=4)[0]
    for seen in batch.seen:
        at_end = int((seen == batch.prefix.shape[1]).sum())
        assert asked // 2 <= at_end < asked
        assert (seen > batch.prefix.shape[1] // 4).all()


def test_looks_weigh_by_how_much_they_matter() -> None:
    found = torch.tensor([[[0.25, 0.75], [0.5, 0.5], [0.1, 0.9]]]).log()
    right = torch.tensor([[[True, False], [True, True], [False, False]]])
    weight = torch.tensor([[3.0, 1.0, 100.0]])
    assert looking_loss([found], right).item() == pytest.approx(np.log(4) / 2)
    assert looking_loss([found], right, weight).item() == pytest.approx(np.log(4) * 3 / 4)
    assert looking_loss([found], right, 7 * weight).item() == pytest.approx(np.log(4) * 3 / 4)


def test_what_was_long_ago_counts_more() -> None:
    """A toy ended its first deed 3 and 60 steps before: looking at it is told 1 + ago / LONG_AGO times."""
    steps = 64
    every = torch.arange(steps)[None]
    during, ended = torch.full((1, steps), IGNORED), torch.full((1, steps), -1)
    during[0, 0], ended[0, 3], ended[0, 60] = 5, 5, 5
    real = replaced(truth_at(make_script(5, seconds=90.0, split="train"), np.arange(steps) + 0.5, 1)).of(every)
    shown = replace(real, during=during, ended=ended, kind=torch.zeros_like(during), colour=torch.zeros_like(during))
    logits = torch.zeros(1, 2, steps)
    logits[0, 0, 0] = 2.0
    looking = Looking(
        listens_after=1,
        rows=torch.zeros(1, 1, dtype=torch.int64),
        columns=every,
        lookers=torch.tensor([3, 60]),
        seen=torch.zeros(1, 1, dtype=torch.int64),
    )
    looking.recalled.append(logits.log_softmax(-1))
    told = toys_looking(looking, shown, step_of=every)["recalling"]
    near, far = -logits.log_softmax(-1)[0, :, 0]
    share = torch.tensor([1 + 3 / LONG_AGO, 1 + 60 / LONG_AGO])
    wanted = RECALLING * (share[0] * near + share[1] * far) / share.sum()
    assert told.item() == pytest.approx(wanted.item(), rel=1e-5)


def test_truth_names_the_toy_under_each_token() -> None:
    script = make_script(5, seconds=90.0, split="train")
    times = np.arange(0.5, 88.0, 1.25)
    truth = truth_at(script, times, 3)
    kinds = {KINDS.index(toy.kind): toy for toy in script.cast}
    shown = truth.kind < len(KINDS)
    assert 0.1 < shown.float().mean() < 0.9
    assert {int(kind) for kind in truth.kind[shown].unique()} <= set(kinds)
    recall = Recall(script)
    for step, token in shown.nonzero().tolist():
        toy = script.cast.index(kinds[int(truth.kind[step, token])])
        ended = [deed.action for deed in recall.deeds[toy] if deed.end_seconds <= times[step] + 1e-6]
        assert int(truth.before[step, token]) == (ACTIONS.index(ended[-1]) if ended else 0)
    assert (truth.colour[~shown] == IGNORED).all()
    assert replace(truth).offset.abs().max() <= 3.0


def test_regions_are_those_of_the_questions() -> None:
    script = make_script(7, seconds=60.0, split="train")
    times = np.arange(0.5, 58.0, 1.25)
    truth, recall = truth_at(script, times, 3), Recall(script)
    found = 0
    for step, token in (truth.kind < len(KINDS)).nonzero().tolist():
        toy = next(t for t, m in enumerate(script.cast) if KINDS.index(m.kind) == int(truth.kind[step, token]))
        region = recall.story.region(toy, float(times[step]))
        if region is not None:
            assert REGIONS[int(truth.region[step, token])] == region
            found += 1
    assert found > 20
