"""MC-ViT as a model: one path for streams and training, variants against each other, answers and refusals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from longtake import hub
from longtake.errors import ConfigError, HorizonReached, StateError, UnsupportedRequest
from longtake.methods.mcvit import MCViT, MCViTState, adapted, parameter_counts
from longtake.methods.mcvit_blind import without_video
from longtake.methods.mcvit_config import MCViTConfig
from longtake.state.tree import num_bytes
from longtake.types import Answer, Choose, Classify, Embed, Embedding, Label, Segment

STREAMED = ("st", "ma", "mc-r", "mc-cs", "mc-km", "memvit", "late")
VARIANTS = ("joint", *STREAMED)
KINDS = ("concat", "last", "global")


def build(config: MCViTConfig | None = None, **memory: Any) -> MCViT:
    torch.manual_seed(0)
    model = MCViT(config or MCViTConfig.tiny(**memory)).double().eval()
    for weights in model.encoder.parameters():
        weights.data *= 2
    return model


def film(num_frames: int, batch: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, 256, (batch, num_frames, 3, 16, 16), dtype=torch.uint8, generator=generator)


def segments(frames: Tensor, *, total: bool = True) -> list[Segment]:
    """Segments of 4 frames, 4 frames per second, of one stream."""
    count = frames.shape[1]
    return [
        Segment(
            pixels=frames[0, at : at + 4],
            pts_seconds=tuple(frame / 4 for frame in range(at, min(at + 4, count))),
            index=at // 4,
            start_seconds=at / 4,
            end_seconds=min(at + 4, count) / 4,
            total_seconds=count / 4 if total else None,
        )
        for at in range(0, count, 4)
    ]


@torch.no_grad()
def taken_in(model: MCViT, frames: Tensor, *, total: bool = True) -> MCViTState:
    state = model.init_state()
    for segment in segments(frames, total=total):
        state = model.advance(state, segment)
    return state


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("variant", VARIANTS)
@torch.no_grad()
def test_segments_match_the_whole_video(variant: str, kind: str) -> None:
    """One path: a stream, segment by segment, is what training sees, for each video of a batch."""
    model, frames = build(variant=variant, kind=kind), film(14, batch=2)
    outputs = model(frames)
    for row in range(2):
        state = taken_in(model, frames[row : row + 1])
        torch.testing.assert_close(model.head(model.vector(state))[0], outputs[row], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("variant", ["st", "ma", "mc-r", "mc-cs", "mc-km", "memvit"])
@torch.no_grad()
def test_one_segment_matches_joint_attention(variant: str) -> None:
    joint, frames = build(variant="joint"), film(4)
    model = adapted(joint, MCViTConfig.tiny(variant=variant))
    torch.testing.assert_close(model(frames), joint(frames), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("variant", ["mc-r", "mc-cs", "mc-km"])
@torch.no_grad()
def test_memory_of_all_tokens_matches_memory_augmentation(variant: str) -> None:
    """K = N: nothing is consolidated; and nothing dropped is the same for every kind of memory."""
    frames, everything = film(12), build(variant="ma")
    for kind in KINDS:
        model = adapted(everything, MCViTConfig.tiny(variant=variant, kind=kind, size=32, segments=3))
        torch.testing.assert_close(model(frames), everything(frames), rtol=1e-10, atol=1e-10)


@torch.no_grad()
def test_memory_holds_the_inputs_of_its_layer() -> None:
    """Equation 4: layer l remembers what went into layer l, not what came out."""
    model, frames = build(variant="ma"), film(4)
    state = taken_in(model, frames)
    hidden = model.encoder.embed(frames, torch.arange(2.0))
    for layer, block in enumerate(model.encoder.blocks):
        torch.testing.assert_close(state.memory.tokens[layer], hidden, rtol=1e-12, atol=1e-12)
        hidden = block(hidden, hidden)


@pytest.mark.parametrize("variant", VARIANTS)
@torch.no_grad()
def test_only_variants_with_a_memory_know_the_past(variant: str) -> None:
    """Whether what the last segment adds depends on the first one."""
    model, frames = build(variant=variant), film(8)
    if variant in ("joint", "late"):
        return  # there is no last segment on its own
    other = frames.clone()
    other[:, :4] = 0
    added = []
    for video in (frames, other):
        first, both = taken_in(model, video[:, :4], total=False), taken_in(model, video, total=False)
        added.append(2 * both.mean - first.mean)
    assert torch.allclose(*added) == (variant == "st")


@torch.no_grad()
def test_vector_is_the_mean_over_segments_weighted_by_their_frames() -> None:
    model, frames = build(variant="st"), film(10)
    parts = [model.take_in(model.init_state(), part) for part in frames.split(4, dim=1)]
    expected = sum(part.mean * part.seen_frames for part in parts) / 10
    state = taken_in(model, frames, total=False)
    torch.testing.assert_close(state.mean, expected, rtol=1e-10, atol=1e-10)


@torch.no_grad()
def test_positions_span_a_video_of_known_length_and_repeat_in_a_stream() -> None:
    model, frames = build(variant="st"), film(4)
    twice = torch.cat([frames, frames], dim=1)
    first, both = (taken_in(model, video, total=False) for video in (frames, twice))
    torch.testing.assert_close(both.mean, first.mean, rtol=1e-12, atol=1e-12)
    assert not torch.allclose(taken_in(model, twice).mean, first.mean)
    repeating = adapted(model, replace(model.config, positions="repeat"))
    torch.testing.assert_close(taken_in(repeating, twice).mean, first.mean, rtol=1e-12, atol=1e-12)


@torch.no_grad()
def test_masked_joint_attention_leaves_out_the_same_part_each_time() -> None:
    model, frames = build(variant="joint", mask=0.25), film(8)
    assert torch.equal(model(frames), model(frames))
    assert not torch.equal(model(frames), model(frames, seed=1))
    lengths = []
    model.encoder.blocks[0].register_forward_hook(lambda _, inputs, __: lengths.append(inputs[0].shape[1]))
    model(frames)
    assert lengths == [48]


@pytest.mark.parametrize("variant", ["mc-r", "mc-cs", "mc-km"])
@torch.no_grad()
def test_seeds_repeat_and_differ(variant: str) -> None:
    model, frames = build(variant=variant), film(12)
    assert torch.equal(model(frames, seed=3), model(frames, seed=3))
    assert not torch.equal(model(frames, seed=3), model(frames, seed=4))


@pytest.mark.parametrize("variant", VARIANTS)
def test_training_reaches_every_weight_and_never_flows_through_memory(variant: str) -> None:
    model, frames = build(variant=variant), film(12, batch=2)
    texts = model.embed_text(["red", "green blue"])
    model.similarity(model(frames), texts).log_softmax(-1).diagonal().sum().backward()
    without = [name for name, weight in model.named_parameters() if weight.grad is None or not weight.grad.any()]
    # BERT's words that did not occur have rows without a gradient, no weight as a whole
    assert [name for name in without if not name.endswith("norm.bias")] == []
    if variant in ("ma", "mc-km"):
        state = model.take_in(model.init_state(2, total_frames=12), frames[:, :4])
        assert not state.memory.tokens.requires_grad


@torch.no_grad()
def test_equal_size_comparison_with_memvit() -> None:
    pooled = MCViTConfig.tiny(variant="memvit", pool=(2, 2, 2))
    assert pooled.kept_per_segment == 4
    state = taken_in(build(pooled), film(4))
    same = taken_in(build(variant="mc-km", size=pooled.kept_per_segment), film(4))
    assert state.memory.tokens.shape == same.memory.tokens.shape


@torch.no_grad()
def test_memvit_begins_as_the_mean_of_its_tubelets() -> None:
    state = taken_in(build(variant="memvit", pool=(2, 4, 4)), film(4))
    everything = taken_in(build(variant="ma"), film(4))
    expected = everything.memory.tokens.mean(2, keepdim=True)
    torch.testing.assert_close(state.memory.tokens, expected, rtol=1e-10, atol=1e-10)


@torch.no_grad()
def test_class_token_is_the_vector_and_not_in_memory() -> None:
    config = MCViTConfig.tiny(variant="ma")
    encoder = replace(config.encoder, tubelet=replace(config.encoder.tubelet, class_token=True))
    model, frames = build(replace(config, encoder=encoder)), film(4)
    state = taken_in(model, frames)
    outputs, _ = model.encoder(frames, torch.arange(2.0))
    assert state.memory.tokens.shape[2] == outputs.shape[1] - 1 == 32
    torch.testing.assert_close(model.vector(state), outputs[:, 0], rtol=1e-12, atol=1e-12)


@torch.no_grad()
def test_adapted_model_begins_with_positions_stretched_over_longer_videos() -> None:
    model = build(variant="mc-km")
    tubelet = replace(model.config.encoder.tubelet, position_frames=16)
    longer = adapted(model, replace(model.config, encoder=replace(model.config.encoder, tubelet=tubelet)))
    assert longer.encoder.embed.position.shape[0] == 8
    torch.testing.assert_close(longer(film(16)), model(film(16)), rtol=1e-10, atol=1e-10)
    with pytest.raises(ConfigError, match="asks for"):
        adapted(model, replace(model.config, embed_dim=9))


# --- answers


def test_answers_of_the_contrastive_head() -> None:
    model = build()
    state = taken_in(model, film(8))
    labels = [one for one in model.respond(state, Classify(top=2)) if isinstance(one, Label)]
    assert [one.probability for one in labels] == sorted((one.probability for one in labels), reverse=True)
    assert len(labels) == 2
    asked = [one for one in model.respond(state, Classify(labels=("red", "which"))) if isinstance(one, Label)]
    assert {one.name for one in asked} == {"red", "which"}
    assert sum(one.probability for one in asked) == pytest.approx(1)
    (answer,) = model.respond(state, Choose(question="which came most often?", options=("red", "blue", "green")))
    assert isinstance(answer, Answer)
    assert answer.choice == max(range(3), key=answer.probabilities.__getitem__)
    (embedding,) = model.respond(state, Embed())
    assert isinstance(embedding, Embedding)
    assert float(embedding.vector.norm()) == pytest.approx(1)
    assert (embedding.start_seconds, embedding.end_seconds) == (0.0, 2.0)


def test_nearest_text_wins() -> None:
    """A label whose text is made the video's own vector is chosen."""
    model = build()
    state = taken_in(model, film(8))
    model.embed_text = lambda texts: torch.cat([-model.head(state.mean), model.head(state.mean)])  # type: ignore
    (answer,) = model.respond(state, Choose(question="?", options=("red", "blue")))
    assert isinstance(answer, Answer)
    assert answer.text == "blue"


def test_answers_of_the_linear_head() -> None:
    model = build(replace(MCViTConfig.tiny(), text=None))
    state = taken_in(model, film(8))
    labels = [one for one in model.respond(state, Classify()) if isinstance(one, Label)]
    expected = model(film(8))[0].softmax(-1)
    assert {one.name: pytest.approx(one.probability) for one in labels} == dict(
        zip(model.config.labels, expected.tolist(), strict=True)
    )
    with pytest.raises(ConfigError, match="'car' is none of the 3"):
        list(model.respond(state, Classify(labels=("car",))))
    with pytest.raises(UnsupportedRequest, match="Choose"):
        model.respond(state, Choose(question="?", options=("red", "blue")))


def test_nothing_seen_is_no_answer() -> None:
    model = build()
    for request in (Embed(), Classify(), Choose(question="?", options=("red",))):
        assert list(model.respond(model.init_state(), request)) == []


def test_prompt_of_a_request_takes_the_place_of_the_models() -> None:
    model = build()
    state = taken_in(model, film(8))
    labels = ("red", "blue")
    plain = {one.name: one.probability for one in model.respond(state, Classify(labels=labels))}  # type: ignore
    asked = Classify(labels=labels, prompt="which came {} most often?")
    prompted = {one.name: one.probability for one in model.respond(state, asked)}  # type: ignore
    other = adapted(model, replace(model.config, prompt="which came {} most often?"))
    same = {one.name: one.probability for one in other.respond(state, Classify(labels=labels))}  # type: ignore
    assert prompted == pytest.approx(same)
    assert prompted != pytest.approx(plain)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (Classify(top=0), "top is 0"),
        (Classify(prompt="a video"), "expected a text with {}"),
        (Choose(question="which?", options=()), "got no options"),
    ],
)
def test_request_that_cannot_be_answered_is_refused_before_anything_is_seen(asked: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build().check(asked)


@torch.no_grad()
def test_any_number_of_texts_goes_through_the_text_tower() -> None:
    model = build()
    texts = ["red", "green blue", "which came most often?"] * 100
    vectors = model.embed_text(texts)
    torch.testing.assert_close(vectors[-3:], model.embed_text(texts[:3]), rtol=1e-10, atol=1e-10)


def test_texts_that_are_read_in_part_are_told() -> None:
    model = build()
    assert model.half_read(["red", "Green blue?", "a red zebra", "red " * 20]) == ["a red zebra", "red " * 20]


@pytest.mark.parametrize("variant", ["st", "ma", "mc-km", "memvit"])
@torch.no_grad()
def test_stretches_of_a_video_make_up_the_whole(variant: str) -> None:
    """A new stretch forgets what was told, not what is remembered: the parts' vectors average to the whole's."""
    model, frames = build(variant=variant), film(14)
    whole, state, parts = taken_in(model, frames), model.init_state(), []
    for number, segment in enumerate(segments(frames)):
        if number == 2:
            parts.append(state)
            state = model.begin_stretch(state)
            assert list(model.respond(state, Embed())) == []
        state = model.advance(state, segment)
    parts.append(state)
    assert [part.mean_frames for part in parts] == [8, 6]
    average = sum(part.mean * part.mean_frames for part in parts) / 14
    torch.testing.assert_close(average, whole.mean, rtol=1e-10, atol=1e-10)
    assert torch.equal(state.memory.tokens, whole.memory.tokens)
    (embedding,) = model.respond(state, Embed())
    assert (embedding.start_seconds, embedding.end_seconds) == (2.0, 3.5)  # type: ignore[union-attr]


@pytest.mark.parametrize("variant", ["joint", "late"])
def test_video_seen_as_a_whole_has_no_stretches(variant: str) -> None:
    model = build(variant=variant)
    with pytest.raises(UnsupportedRequest, match="as a whole"):
        model.begin_stretch(model.init_state())


@pytest.mark.parametrize("variant", VARIANTS)
def test_blind_answer_is_that_of_a_grey_segment(variant: str) -> None:
    model = build(variant=variant)
    state = without_video(model)
    assert not any(weights.grad_fn for weights in (state.mean, state.memory.tokens))
    grey = torch.full((1, 4, 3, 16, 16), 128, dtype=torch.uint8)
    expected = model.label_scores(model.vector(taken_in(model, grey)), ("red", "blue"))[0].softmax(-1)
    shares = {one.name: one.probability for one in model.respond(state, Classify(labels=("red", "blue")))}  # type: ignore
    assert [shares["red"], shares["blue"]] == pytest.approx(expected.tolist())
    (answer,) = model.respond(state, Choose(question="which?", options=("red", "blue")))
    assert (answer.at_seconds, sum(answer.probabilities)) == (0.0, pytest.approx(1))  # type: ignore[union-attr]


# --- bounds, refusals, checkpoints


@pytest.mark.parametrize("variant", ["joint", "ma", "late"])
def test_growing_state_stops_at_its_horizon(variant: str) -> None:
    model = build(variant=variant, max_segments=2)
    state = taken_in(model, film(8))
    assert num_bytes(state) <= model.max_state_bytes()
    with pytest.raises(HorizonReached, match="at most 2 segments"):
        model.advance(state, segments(film(4))[0])
    assert list(model.respond(state, Embed()))


def test_state_of_other_sizes_is_refused() -> None:
    model, other = (
        build(),
        build(replace(MCViTConfig.tiny(), encoder=replace(MCViTConfig.tiny().encoder, num_layers=1))),
    )
    with pytest.raises(StateError, match="expected 1 stream"):
        model.advance(other.init_state(), segments(film(4))[0])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"variant": "mc-x"}, "mc-x"),
        ({"kind": "first"}, "first"),
        ({"size": 0}, "size is 0"),
        ({"mask": 0.25, "variant": "st"}, "with 'joint'"),
        ({"pool": (0, 1, 1)}, "from 1 on"),
    ],
)
def test_memories_that_cannot_work_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        MCViTConfig.tiny(**fields)


@pytest.mark.parametrize("variant", VARIANTS)
def test_saved_model_loads_the_same_and_runs_as_another_variant(variant: str, tmp_path: Path) -> None:
    model = MCViT(MCViTConfig.tiny(variant=variant)).eval()
    hub.save(model, tmp_path)
    loaded: Any = hub.load(tmp_path, device="cpu")
    assert loaded.fingerprint == model.fingerprint
    with torch.no_grad():
        torch.testing.assert_close(loaded(film(8)), model(film(8)))
    if variant not in ("memvit", "late"):
        other: Any = hub.load(tmp_path, device="cpu", memory={"variant": "st"})
        assert torch.equal(other.encoder.blocks[0].out.weight, model.encoder.blocks[0].out.weight)


def test_parameters_are_counted_by_part() -> None:
    counts = parameter_counts(build(variant="memvit"))
    assert set(counts) == {"vision", "text", "memory", "total"}
    assert counts["total"] == sum(p.numel() for p in build(variant="memvit").parameters())
