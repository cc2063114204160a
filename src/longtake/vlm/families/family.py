"""What a family of video models has in common: a chat turn cut into chunks, each run by the model's own forward.

The tokens of ``preamble()``, of every ``frames(...)`` and of the first ``question(...)``, put one after the other, are
those that the family's own processor makes of the whole conversation. Text is only ever cut behind a special token,
where no tokenizer merges.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor
from transformers.cache_utils import Cache
from transformers.video_utils import VideoMetadata

from longtake.errors import ConfigError

ANSWER = "longtake-answer"
"""Stands for an assistant's words where only what follows them is wanted."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chunk:
    """What one forward call takes in: text, or the frames of one step with their marker text."""

    input_ids: Int[Tensor, "1 tokens"]
    position_ids: Tensor
    """``(1, tokens)``, or ``(3, 1, tokens)`` for M-RoPE: time, height, width."""
    next_position: int
    """Where the stream goes on: above every position so far, which for M-RoPE is not the number of tokens."""
    inputs: dict[str, Tensor] = field(default_factory=dict)
    """Further arguments of the model's own forward: this chunk's pixels, their grid."""

    def seen_from(self, origin: int) -> Chunk:
        """The same chunk with positions counted from ``origin``, as the model is told them."""
        return replace(self, position_ids=self.position_ids - origin) if origin else self


class Family:
    """One loaded model and how its prompts are made. Holds nothing of any stream.

    Attributes:
        height: Pixels that frames must have.
        width: Likewise.
        num_layers: Of the decoder; with the next two, the shape of its keys.
        num_kv_heads: Per layer.
        head_dim: Width of one key.
        eos_token_ids: Any of them ends an answer.
    """

    name: ClassVar[str]
    model_types: ClassVar[tuple[str, ...]]
    example: ClassVar[str]
    """A model of the family on the Hub; this and the next four are for people and stand in docs/vlm_support.md."""
    time_marker: ClassVar[str]
    """How the prompt says when a frame was."""
    frame_size: ClassVar[str] = "the vision tower's own"
    """In pixels."""
    tested_with: ClassVar[str] = "real classes"
    """What of transformers the tests run."""
    notes: ClassVar[str] = ""
    """What a user should know."""
    frames_per_chunk: int = 1
    """Frames that the vision tower takes together; only the last chunk of a stream may have fewer."""
    needs_length: ClassVar[bool] = False
    """Whether the prompt states, before the first frame, how many there will be and how long they last."""
    places_from_start: ClassVar[bool] = False
    """Whether frames are placed by their number or time since the first one, not behind the chunk before."""
    needs_frame_before: ClassVar[bool] = False
    """Whether a chunk's tokens depend on the last frame of the chunk before."""

    def __init__(
        self,
        model: Any,
        processor: Any,
        *,
        height: int | None = None,
        width: int | None = None,
        horizon_frames: int | None = None,
        horizon_seconds: float | None = None,
    ) -> None:
        self.model, self.processor = model, processor
        self.horizon_frames, self.horizon_seconds = horizon_frames, horizon_seconds
        text = self.text_config
        self.num_layers: int = text.num_hidden_layers
        self.num_kv_heads: int = text.num_key_value_heads
        self.head_dim: int = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
        self.eos_token_ids = _eos_token_ids(model, text, processor)
        self.height, self.width = self._frame_size(height, width)
        special = sorted((token.content for token in self.tokenizer.added_tokens_decoder.values()), key=len)
        self._special = re.compile("|".join(re.escape(token) for token in reversed(special)))
        before, _ = self._around_video("")
        self._head, self._lead = self._cut(before + self._intro())

    @property
    def text_config(self) -> Any:
        return self.model.config.get_text_config()

    @property
    def tokenizer(self) -> Any:
        return self.processor.tokenizer

    @property
    def device(self) -> torch.device:
        return self.model.device

    @property
    def dtype(self) -> torch.dtype:
        return self.model.dtype

    def preamble(self) -> Chunk | None:
        """The conversation as far as a special token stands before the video; None if none does."""
        return self.words(self._ids(self._head, opens=True), position=0) if self._head else None

    def frames(
        self,
        pixels: UInt8[Tensor, "time 3 height width"],
        pts_seconds: tuple[float, ...],
        *,
        index: int,
        position: int,
        before: UInt8[Tensor, "3 height width"] | None = None,
    ) -> Chunk:
        """The next step of the video.

        Args:
            pixels: At most ``frames_per_chunk`` frames of ``height`` x ``width``.
            pts_seconds: True time of each frame, from the video's first frame.
            index: Number of this chunk in its stream, from 0.
            position: ``next_position`` of the chunk before.
            before: Last frame of the chunk before, for families with ``needs_frame_before``; None for the first chunk.

        Raises:
            ConfigError: Frames of another size, too many of them, or none before where one is needed.
        """
        self._check(pixels, pts_seconds, index, before)
        text, inputs = self._see(pixels, pts_seconds, index, before)
        inputs = {key: value.to(self.dtype) if value.is_floating_point() else value for key, value in inputs.items()}
        ids = self._ids((self._lead if index == 0 else "") + text, opens=index == 0 and not self._head)
        positions, after = self._place(ids, inputs, pts_seconds, index, position)
        return Chunk(input_ids=ids, position_ids=positions, next_position=after, inputs=inputs)

    def question(self, text: str, *, position: int, first: bool = True) -> Chunk:
        """The user's words with all that stands around them, up to where the assistant begins.

        Args:
            text: The question.
            position: ``next_position`` of the chunk before.
            first: The question belongs to the video's own turn. Later ones open with the end of the answer before, so
                the token that ended that answer must not have been taken in.

        Raises:
            ConfigError: The question contains a token that stands for pictures.
        """
        if found := [token for token in self._media_tokens() if token in text]:
            raise ConfigError(
                f"{found[0]!r} stands for pictures in {self.name} and cannot be part of what is asked; remove it"
            )
        if not first:
            return self.words(self._ids(self._later_turn(text)), position=position)
        return self._first_question(self._ids(self._outro() + self._around_video(text)[1]), position)

    def words(self, input_ids: Int[Tensor, "1 tokens"], *, position: int) -> Chunk:
        """Text that is already tokens, for instance an answer's last word."""
        positions = torch.arange(position, position + input_ids.shape[1], device=self.device)[None]
        return Chunk(input_ids=input_ids, position_ids=positions, next_position=position + input_ids.shape[1])

    def forward(self, chunk: Chunk, cache: Cache, *, keep: int = 1) -> Float[Tensor, "1 kept vocabulary"]:
        """Logits of the last ``keep`` tokens (0: of all), after the whole model's own forward over ``cache``."""
        return self.model(
            input_ids=chunk.input_ids,
            position_ids=chunk.position_ids,
            cache=cache,
            use_cache=True,
            logits_to_keep=keep,
            **chunk.inputs,
        ).logits

    # what families say for themselves

    def _frame_size(self, height: int | None, width: int | None) -> tuple[int, int]:
        """Height and width of frames, from what was asked for."""
        raise NotImplementedError

    def _see(
        self, pixels: Tensor, pts_seconds: tuple[float, ...], index: int, before: Tensor | None
    ) -> tuple[str, dict[str, Tensor]]:
        """Marker text with placeholders, and the inputs of the model's forward."""
        raise NotImplementedError

    def _intro(self) -> str:
        """Text that the processor puts before the first frame."""
        return ""

    def _outro(self) -> str:
        """Text that the processor puts after the last frame."""
        return ""

    def _place(
        self, ids: Tensor, inputs: dict[str, Tensor], pts_seconds: tuple[float, ...], index: int, position: int
    ) -> tuple[Tensor, int]:
        """Positions of a chunk of frames, and where the stream goes on."""
        chunk = self.words(ids, position=position)
        return chunk.position_ids, chunk.next_position

    def _first_question(self, ids: Tensor, position: int) -> Chunk:
        return self.words(ids, position=position)

    # what they share

    def check_cuts(self) -> None:
        """Tokenize a short video whole and in pieces.

        Raises:
            ConfigError: The tokens differ, so this tokenizer must not be fed in pieces.
        """
        pixels = torch.zeros(self.frames_per_chunk, 3, self.height, self.width, dtype=torch.uint8)
        times = (0.0,) * self.frames_per_chunk
        first, second = (self._see(pixels, times, index, pixels[0] if index else None)[0] for index in (0, 1))
        texts = [self._head, self._lead + first, second, self._outro() + self._around_video("What?")[1]]
        texts = [text for text in texts if text]
        pieces = [self._ids(text, opens=number == 0) for number, text in enumerate(texts)]
        if not torch.equal(torch.cat(pieces, dim=1), self._ids("".join(texts), opens=True)):
            raise ConfigError(
                f"the tokenizer of this {self.name} joins text over special tokens, so a prompt in pieces differs; "
                "use the model's own tokenizer"
            )

    def _processed(self, pixels: Tensor, pts_seconds: tuple[float, ...]) -> Any:
        """What the family's own video processor makes of frames that are sampled and sized already.

        Times go in as frame numbers at one frame a second, so that whatever the processor computes are our seconds.
        """
        metadata = VideoMetadata(total_num_frames=len(pts_seconds), fps=1.0, frames_indices=list(pts_seconds))  # pyright: ignore[reportArgumentType]
        return self.processor.video_processor(
            [pixels.to(self.device)],
            video_metadata=[metadata],
            do_sample_frames=False,
            do_resize=False,
            return_metadata=True,
            return_tensors="pt",
        )

    def _check(self, pixels: Tensor, pts_seconds: tuple[float, ...], index: int, before: Tensor | None) -> None:
        time, _, height, width = pixels.shape
        if (height, width) != (self.height, self.width):
            raise ConfigError(
                f"frames of {height} x {width} pixels, expected {self.height} x {self.width}, "
                f"as this {self.name} was set up for"
            )
        if not time == len(pts_seconds) <= self.frames_per_chunk:
            raise ConfigError(
                f"{time} frames with {len(pts_seconds)} times; "
                f"{self.name} takes {self.frames_per_chunk} at once, one time each"
            )
        if self.needs_frame_before and index > 0 and before is None:
            raise ConfigError(f"{self.name} drops what did not change since the frame before; pass it as `before`")

    def _around_video(self, text: str) -> tuple[str, str]:
        """The user's first turn as the chat template has it, before and after the video."""
        content = [{"type": "video"}, {"type": "text", "text": text}]
        prompt = self._render([{"role": "user", "content": content}])
        before, token, after = prompt.partition(self._video_token())
        if not token:
            raise ConfigError(
                f"the chat template of this {self.name} has no {self._video_token()!r} for a video; use one that has"
            )
        return before, after

    def _later_turn(self, text: str) -> str:
        def turn(role: str, words: str) -> dict[str, Any]:
            return {"role": role, "content": [{"type": "text", "text": words}]}

        # the video stays in its turn: templates may differ where there is none
        first = {"role": "user", "content": [{"type": "video"}]}
        prompt = self._render([first, turn("assistant", ANSWER), turn("user", text)])
        return prompt.partition(ANSWER)[2]

    def _render(self, conversation: list[dict[str, Any]]) -> str:
        return self.processor.apply_chat_template(conversation, add_generation_prompt=True, tokenize=False)

    def _video_token(self) -> str:
        return self.processor.video_token

    def _media_tokens(self) -> set[str]:
        return {self._video_token(), self.processor.image_token}

    def _cut(self, text: str) -> tuple[str, str]:
        """Text up to behind its last special token, and the rest."""
        ends = [match.end() for match in self._special.finditer(text)]
        return (text[: ends[-1]], text[ends[-1] :]) if ends else ("", text)

    def _ids(self, text: str, *, opens: bool = False) -> Int[Tensor, "1 tokens"]:
        """Tokens of a piece of the prompt; what the tokenizer adds by itself comes with the piece that opens it."""
        bos = self.tokenizer.bos_token
        added = opens and not (bos is not None and text.startswith(bos))
        return self.tokenizer(text, add_special_tokens=added, return_tensors="pt")["input_ids"].long().to(self.device)


def fixed_size(family: str, own: tuple[int, int], height: int | None, width: int | None) -> tuple[int, int]:
    """The only size that a vision tower takes."""
    if (height or own[0], width or own[1]) != own:
        raise ConfigError(
            f"frames of {height} x {width} pixels; this {family} takes {own[0]} x {own[1]} only: leave it out"
        )
    return own


def free_size(family: str, step: int, height: int | None, width: int | None, usual: int = 448) -> tuple[int, int]:
    """Any multiple of ``step`` pixels; by default about ``usual`` x ``usual``."""
    default = max(1, round(usual / step)) * step
    size = height or default, width or default
    if any(side % step for side in size):
        raise ConfigError(f"frames of {size[0]} x {size[1]} pixels; {family} takes multiples of {step}")
    return size


def _eos_token_ids(model: Any, text_config: Any, processor: Any) -> frozenset[int]:
    stated = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    stated = getattr(text_config, "eos_token_id", None) if stated is None else stated
    stated = processor.tokenizer.eos_token_id if stated is None else stated
    if stated is None:
        return frozenset()
    return frozenset(stated if isinstance(stated, list | tuple) else [stated])
