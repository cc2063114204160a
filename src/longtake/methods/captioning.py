"""What STS and the streams it is compared with do alike: frames looked back at, the clock, refusals, the tokenizer."""

from __future__ import annotations

import torch
from jaxtyping import UInt8
from torch import Tensor

from longtake.errors import ConfigError, StateError
from longtake.language.tokenizer import CaptionTokenizer
from longtake.methods.sts_config import CaptionerConfig, TimeConfig
from longtake.types import Segment


def nothing_before(
    config: CaptionerConfig, history: int, batch: int, device: torch.device
) -> UInt8[Tensor, "batch history 3 height width"]:
    """Room for the frames that the encoder looks back at; what is in it counts only once something was seen."""
    return torch.zeros(batch, history, 3, config.size, config.size, dtype=torch.uint8, device=device)


def stands_before(
    frames: UInt8[Tensor, "batch time 3 height width"], history: int
) -> UInt8[Tensor, "batch history 3 height width"]:
    """Nothing came before the first frame of a stream, so that frame stands for it."""
    return frames[:, :1].expand(-1, history, -1, -1, -1)


def newest(
    before: UInt8[Tensor, "batch history 3 height width"], frames: UInt8[Tensor, "batch time 3 height width"]
) -> UInt8[Tensor, "batch history 3 height width"]:
    """The frames that the encoder looks back at next."""
    both = torch.cat([before, frames], dim=1)
    return both[:, both.shape[1] - before.shape[1] :].clone()


def clock_after(clock: tuple[float, ...], segment: Segment, time: TimeConfig) -> tuple[float, ...]:
    """Times of the latest frames, oldest first, then the segment's end: what time buckets refer to."""
    window = time.num_buckets - 1
    return (*(*clock[:-1], *segment.pts_seconds)[-window:], segment.end_seconds)


def check_segment(config: CaptionerConfig, segment: Segment, total_seconds: float) -> None:
    """Refuse frames of another size or number than agreed, and a source without a length where times are parts of it.

    Raises:
        StateError: The frames.
        ConfigError: The length, which is known neither from the segment nor from before (``total_seconds``).
    """
    expected = (3, config.size, config.size)
    if tuple(segment.pixels.shape[1:]) != expected or segment.pixels.shape[0] > config.num_frames:
        raise StateError(
            f"segment {segment.index} has shape {tuple(segment.pixels.shape)}, expected at most "
            f"{config.num_frames} frames of {expected}; cut it with this model's segment_spec"
        )
    if config.time.encoding == "video" and not (segment.total_seconds or total_seconds):
        raise ConfigError(
            "this model says times as parts of the video's length, and this source has none; "
            "use a file, or a model with the 'stream' time encoding"
        )


def build_tokenizer(config: CaptionerConfig) -> CaptionTokenizer:
    """The tokenizer that ``config`` names."""
    if config.vocabulary:
        return CaptionTokenizer.from_words(config.vocabulary, config.time.num_buckets)
    from tokenizers import Tokenizer

    name = config.text_tokenizer
    text = Tokenizer.from_str(name) if name.lstrip().startswith("{") else Tokenizer.from_pretrained(name)
    if text.get_vocab_size() > config.text_vocab_size:
        raise ConfigError(
            f"tokenizer {name[:40]!r} has {text.get_vocab_size()} tokens, "
            f"the model has room for {config.text_vocab_size}; set text_vocab_size"
        )
    return CaptionTokenizer(text, config.time.num_buckets)
