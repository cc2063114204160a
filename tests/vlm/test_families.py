"""Each family chunk by chunk against its own processor and its own model in one call."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch
from tests.vlm.families import NAMES, make, options
from tokenizers import processors
from torch import Tensor
from transformers.video_utils import VideoMetadata

from longtake.errors import ConfigError
from longtake.methods.statekv_prefill import KVState, Selection, empty_state, take_in, whole_past
from longtake.state.kv import rule_named
from longtake.vlm.cache import answer_cache
from longtake.vlm.families import Chunk, Family, family_of

QUESTION = "\nwhat happened after that?"
EVEN = (0.0, 0.7, 1.4, 2.1, 2.8, 3.5, 4.2)
UNEVEN = (0.0, 0.5, 0.9, 2.0, 2.4, 5.0, 6.1)
WHOLE = Selection(budget=10**9, rule=rule_named("statekv"))


@functools.cache
def family(name: str) -> Family:
    return family_of(*make(name), **options(name))


@functools.cache
def untouched(name: str) -> Any:
    """The same weights with the attention they came with."""
    return make(name)[0]


@functools.cache
def video(height: int, width: int) -> Tensor:
    """Seven frames; their left half moves, the right one changes twice."""
    frames = torch.randint(0, 256, (7, 3, height, width), dtype=torch.uint8, generator=torch.Generator().manual_seed(5))
    frames[1:3, :, :, width // 2 :] = frames[0, :, :, width // 2 :]
    frames[4:, :, :, width // 2 :] = frames[3, :, :, width // 2 :]
    return frames


def pictures(one: Family) -> Tensor:
    return video(one.height, one.width)


def at_once(one: Family, pts_seconds: tuple[float, ...], text: str = QUESTION) -> dict[str, Tensor]:
    """What the family's own processor makes of it all; times go in as frame numbers of a 10 fps video."""
    numbers = [round(pts * 10) for pts in pts_seconds]
    total = round((pts_seconds[-1] + pts_seconds[1]) * 10) if pts_seconds == EVEN else 66
    metadata = VideoMetadata(total_num_frames=total, fps=10.0, frames_indices=numbers, duration=6.6)
    content = [{"type": "video", "video": pictures(one)}, {"type": "text", "text": text}]
    made = one.processor.apply_chat_template(
        [{"role": "user", "content": content}],
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
        return_tensors="pt",
        processor_kwargs={"video_metadata": [metadata], "do_sample_frames": False, "do_resize": False},
    )
    return {name: value for name, value in made.items() if name != "token_type_ids"}


def step_by_step(one: Family, pts_seconds: tuple[float, ...], text: str = QUESTION) -> list[Chunk]:
    """Preamble, steps of the video, question."""
    opening = one.preamble()
    chunks = [] if opening is None else [opening]
    step = one.frames_per_chunk
    for index, start in enumerate(range(0, 7, step)):
        chunks.append(
            one.frames(
                pictures(one)[start : start + step],
                pts_seconds[start : start + step],
                index=index,
                position=chunks[-1].next_position if chunks else 0,
                before=pictures(one)[start - 1] if one.needs_frame_before and index else None,
            )
        )
    return [*chunks, one.question(text, position=chunks[-1].next_position)]


@torch.no_grad()
def prefilled(one: Family, chunks: list[Chunk]) -> KVState:
    state = empty_state(one.num_layers, one.num_kv_heads, one.head_dim, dtype=one.dtype, device=one.device)
    for chunk in chunks:
        state, _ = take_in(state, lambda cache, chunk=chunk: one.forward(chunk, cache), WHOLE)
    return state


@pytest.mark.parametrize("pts", [EVEN, UNEVEN], ids=["even", "uneven"])
@pytest.mark.parametrize("name", NAMES)
def test_chunks_have_the_tokens_of_the_processor(name: str, pts: tuple[float, ...]) -> None:
    one = family(name)
    chunks = step_by_step(one, pts)
    mine = torch.cat([chunk.input_ids for chunk in chunks], dim=1)
    assert mine.tolist() == at_once(one, pts)["input_ids"].tolist()
    assert len(chunks) == 2 + -(-7 // one.frames_per_chunk)


@pytest.mark.parametrize("name", NAMES)
def test_positions_match_the_models_own(name: str) -> None:
    one, whole = family(name), at_once(family(name), EVEN)
    chunks = step_by_step(one, EVEN)
    mine = torch.cat([chunk.position_ids for chunk in chunks], dim=-1)
    if hasattr(getattr(one.model, "model", None), "get_rope_index"):
        theirs, _ = one.model.model.get_rope_index(**{key: value for key, value in whole.items() if "pixel" not in key})
    else:
        theirs = torch.arange(whole["input_ids"].shape[1])[None]
    assert mine.tolist() == theirs.tolist()
    assert chunks[-1].next_position == int(theirs.max()) + 1


@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_chunked_prefill_matches_one_call(name: str) -> None:
    one, expected = family(name), untouched(name)(**at_once(family(name), EVEN)).logits
    *seen, question = step_by_step(one, EVEN)
    state = prefilled(one, seen)
    tokens = question.input_ids.shape[1]
    logits = one.forward(question, answer_cache(whole_past(state), room=tokens), keep=0)
    torch.testing.assert_close(logits, expected[:, -tokens:], atol=1e-4, rtol=0)
    assert expected[:, -tokens:].std() > 0.05, "an answer that everything fits says nothing"


@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_words_match_those_of_generate(name: str) -> None:
    one, whole = family(name), at_once(family(name), EVEN)
    expected = untouched(name).generate(**whole, max_new_tokens=8, do_sample=False)[0, whole["input_ids"].shape[1] :]
    *seen, chunk = step_by_step(one, EVEN)
    cache = answer_cache(whole_past(prefilled(one, seen)), room=chunk.input_ids.shape[1] + 8)
    words: list[int] = []
    while len(words) < 8 and not set(words[-1:]) & one.eos_token_ids:
        words.append(int(one.forward(chunk, cache)[0, -1].argmax()))
        chunk = one.words(torch.tensor([words[-1:]]), position=chunk.next_position)
    assert words == expected.tolist()


SMOLVLM_INTRO = "User: You are provided the following series of seven frames from a 0:00:06 [H:MM:SS] video.\n"
SMOLVLM_PICTURE = "<fake_token_around_image><global-img>|<fake_token_around_image>"
MARKERS = {
    "qwen2-vl": [""] * 4,
    "qwen2.5-vl": [""] * 4,
    "qwen3-vl": [f"<{mean} seconds><|vision_start|>|<|vision_end|>" for mean in ("0.2", "1.4", "3.7", "6.1")],
    "qwen3-vl-moe": [f"<{mean} seconds><|vision_start|>|<|vision_end|>" for mean in ("0.2", "1.4", "3.7", "6.1")],
    "internvl3": ["user\nFrame1: <img>|</img>", *(f"\nFrame{number}: <img>|</img>" for number in range(2, 8))],
    "llava-onevision": ["user |", *[""] * 6],
    "smolvlm": [
        f"{SMOLVLM_INTRO}\nFrame from 00:00:{SMOLVLM_PICTURE}",
        *(f"\nFrame from 00:0{second}:{SMOLVLM_PICTURE}" for second in (0, 0, 2, 2, 5, 6)),
    ],
    "videollama3": ["user\nTime 0.0s:|", *(f",Time {pts}s:|" for pts in UNEVEN[1:])],
    "perception-lm": ["\n\n|", *[""] * 6],
    "eagle2.5": [
        "user\nThe first video: Frame 1 sample at 0.00s: <img>|</img>",
        *(f"Frame {number} sample at {pts:.2f}s: <img>|</img>" for number, pts in enumerate(UNEVEN[1:], 2)),
    ],
}
"""Text of each step of the uneven video; ``|`` stands for its pictures, and no text but pictures is written empty."""


@pytest.mark.parametrize("name", NAMES)
def test_marker_text_says_the_true_times(name: str) -> None:
    one = family(name)
    picture = (
        one.processor.image_token_id if name in ("internvl3", "smolvlm", "eagle2.5") else one.processor.video_token_id
    )
    said = []
    for chunk in step_by_step(one, UNEVEN)[1:-1]:
        ids = chunk.input_ids[0].tolist()
        first, last = ids.index(picture), len(ids) - ids[::-1].index(picture)
        assert set(ids[first:last]) == {picture}
        said.append("|".join(one.tokenizer.decode(part) for part in (ids[:first], ids[last:])).removesuffix("|"))
    assert said == [marker.removesuffix("|") for marker in MARKERS[name]]


def test_smolvlm_counts_minutes_past_the_hour() -> None:
    one = family("smolvlm")
    chunk = one.frames(pictures(one)[:1], (3725.9,), index=5, position=0)
    assert "Frame from 62:05:" in one.tokenizer.decode(chunk.input_ids[0])


def test_qwen25_vl_places_steps_at_their_true_seconds() -> None:
    one = family("qwen2.5-vl")
    opening, *steps = step_by_step(one, UNEVEN)[:-1]
    origin = opening.next_position
    # two positions a second, by the first frame of each pair
    assert [int(step.position_ids[0].unique()) - origin for step in steps] == [0, 1, 4, 12]
    assert [step.next_position - origin for step in steps] == [3, 3, 5, 13]


def test_videollama3_leaves_out_what_did_not_change() -> None:
    one = family("videollama3")
    pictures_in = [
        int((chunk.input_ids == one.processor.video_token_id).sum()) for chunk in step_by_step(one, EVEN)[1:-1]
    ]
    # six tokens a frame; the right half (columns 1.5 to 3 of 3) rests in frames 1, 2, 4, 5 and 6
    assert pictures_in == [6, 4, 4, 6, 4, 4, 4]


@pytest.mark.parametrize("name", NAMES)
def test_later_questions_close_the_answer_before(name: str) -> None:
    one = family(name)
    chunk = one.question("And then?", position=50, first=False)
    assert chunk.position_ids.flatten()[0] == 50
    assert chunk.next_position == 50 + chunk.input_ids.shape[1]
    ids = chunk.input_ids[0].tolist()
    assert ids[0] in one.eos_token_ids
    conversation = [
        {"role": "user", "content": [{"type": "video"}, {"type": "text", "text": "What?"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Red."}]},
        {"role": "user", "content": [{"type": "text", "text": "And then?"}]},
    ]
    whole = one.processor.apply_chat_template(conversation, add_generation_prompt=True)
    assert whole.endswith("Red." + one.tokenizer.decode(ids))


@pytest.mark.parametrize("name", NAMES)
def test_question_with_a_picture_token_is_refused(name: str) -> None:
    one = family(name)
    with pytest.raises(ConfigError, match="stands for pictures"):
        one.question(f"What is {one.processor.video_token}?", position=0)


@pytest.mark.parametrize("name", NAMES)
def test_frames_of_another_size_or_number_are_refused(name: str) -> None:
    one = family(name)
    with pytest.raises(ConfigError, match=f"expected {one.height} x {one.width}"):
        one.frames(torch.zeros(1, 3, one.height + 1, one.width, dtype=torch.uint8), (0.0,), index=0, position=0)
    with pytest.raises(ConfigError, match="one time each"):
        one.frames(torch.zeros(3, 3, one.height, one.width, dtype=torch.uint8), (0.0,) * 3, index=0, position=0)


def test_videollama3_asks_for_the_frame_before() -> None:
    one = family("videollama3")
    with pytest.raises(ConfigError, match="pass it as `before`"):
        one.frames(pictures(one)[:1], (1.0,), index=1, position=9)


@pytest.mark.parametrize("name", ["internvl3", "llava-onevision", "smolvlm", "perception-lm", "eagle2.5"])
def test_fixed_size_is_kept(name: str) -> None:
    with pytest.raises(ConfigError, match="only: leave it out"):
        family_of(*make(name), **options(name) | {"height": 112})


@pytest.mark.parametrize(("name", "step"), [("qwen2.5-vl", 28), ("qwen3-vl", 32), ("videollama3", 28)])
def test_free_size_is_a_multiple_and_near_448_by_default(name: str, step: int) -> None:
    with pytest.raises(ConfigError, match=f"takes multiples of {step}"):
        family_of(*make(name), height=100)
    one = family_of(*make(name))
    assert (one.height, one.width) == (448, 448)


@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_half_precision_models_take_their_frames(name: str) -> None:
    model, processor = make(name)
    one = family_of(model.to(torch.bfloat16), processor, **options(name))
    chunks = step_by_step(one, EVEN)
    state = prefilled(one, chunks[:3])
    assert state.carried.keys.dtype == torch.bfloat16
    assert state.seen_tokens == sum(chunk.input_ids.shape[1] for chunk in chunks[:3])


class AfterTime:
    """A model that lets text follow the last step, as transformers did up to version 4."""

    def __init__(self, inner: Any) -> None:
        self.get_vision_position_ids = inner.get_vision_position_ids

    def get_rope_index(self, ids: Tensor, kinds: Tensor, video_grid_thw: Tensor) -> tuple[Tensor, None]:
        steps = int(video_grid_thw[0, 0])
        return torch.arange(steps + 1).expand(3, 1, -1), None


def test_question_follows_the_installed_rule_of_positions() -> None:
    model, processor = make("qwen2-vl")
    beside = family_of(model, processor, **options("qwen2-vl"))
    model.model.get_rope_index = AfterTime(model.model).get_rope_index
    after = family_of(model, processor, **options("qwen2-vl"))
    opening, *_, last, question = step_by_step(after, EVEN)
    assert int(question.position_ids.min()) == last.next_position == opening.next_position + 4
    # 5.24: beside the steps, above their three columns
    question = step_by_step(beside, EVEN)[-1]
    assert int(question.position_ids.min()) == opening.next_position + 3


BARE_TEMPLATE = "user: {% for content in messages[0]['content'] %}{{ content['text'] or '<video>' }}{% endfor %}"


@pytest.mark.parametrize("template", [None, BARE_TEMPLATE], ids=["own", "bare"])
def test_tokens_match_when_the_tokenizer_opens_the_prompt_itself(template: str | None) -> None:
    """With a template whose first special token is a picture's, the opening comes with the first frame."""
    model, processor = make("internvl3")
    processor.chat_template = template or processor.chat_template
    start = "<|endoftext|>"
    processor.tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{start} $A", special_tokens=[(start, processor.tokenizer.convert_tokens_to_ids(start))]
    )
    one = family_of(model, processor)
    chunks = step_by_step(one, EVEN)
    assert (one.preamble() is None) == bool(template)
    whole = at_once(one, EVEN)["input_ids"]
    assert torch.cat([chunk.input_ids for chunk in chunks], dim=1).tolist() == whole.tolist()
    assert whole[0].tolist().count(processor.tokenizer.convert_tokens_to_ids(start)) == 1
