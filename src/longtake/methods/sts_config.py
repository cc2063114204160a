"""Every size of an STS model, those that its baselines share with it, and the two presets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from longtake.config import from_dict, to_dict
from longtake.errors import ConfigError
from longtake.language.decoder import DecoderConfig
from longtake.language.tokenizer import FIRST_TIME
from longtake.types import SegmentSpec
from longtake.vision import BottleneckConfig, EncoderConfig


@dataclass(frozen=True, kw_only=True)
class StackConfig:
    """The stack of S4D layers."""

    num_layers: int = 4
    state: int = 16
    """State size N as in S4D: N / 2 complex modes per channel."""
    dt_min: float = 1e-3
    """Smallest step: the slow modes are the memory."""
    dt_max: float = 0.5
    """Largest step."""
    mlp_ratio: int = 2
    """Width of each layer's MLP in units of its width; 0: no MLP."""
    dropout: float = 0.0
    order: Literal["one-by-one", "side-by-side"] = "one-by-one"
    """``one-by-one``: the tokens of a frame follow each other in one sequence (the paper's). ``side-by-side``: the
    n-th tokens of all frames form a sequence of their own, with its own carried state; one token then can stand for
    one thing."""
    carry: bool = True
    """False: the state is reset at each segment (a baseline)."""

    def __post_init__(self) -> None:
        if self.order not in ("one-by-one", "side-by-side"):
            raise ConfigError(f"stack order is {self.order!r}, expected 'one-by-one' or 'side-by-side'")
        if self.state < 2 or self.state % 2:
            raise ConfigError(f"stack state is {self.state}, expected an even number from 2 on")


@dataclass(frozen=True, kw_only=True)
class TimeConfig:
    """How the decoder says times."""

    encoding: Literal["stream", "video"] = "stream"
    """``stream``: buckets count grid steps back from the segment's end; ``video``: they divide the known duration."""
    num_buckets: int = 33
    """``stream``: the window is ``num_buckets - 1`` grid steps; ``video``: the paper has 32."""

    def __post_init__(self) -> None:
        if self.encoding not in ("stream", "video"):
            raise ConfigError(f"time encoding is {self.encoding!r}, expected 'stream' or 'video'")


@dataclass(frozen=True, kw_only=True)
class CaptionerConfig:
    """What STS and the streams it is compared with share: frames, encoder, bottleneck, decoder, times and words."""

    num_frames: int = 8
    """Frames per segment."""
    fps: float = 4.0
    size: int = 64
    """Height and width of a frame in pixels."""
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    bottleneck: BottleneckConfig = field(default_factory=BottleneckConfig)
    decoder: DecoderConfig = field(default_factory=DecoderConfig)
    time: TimeConfig = field(default_factory=TimeConfig)
    vocabulary: tuple[str, ...] = ()
    """Words the decoder can say (a closed vocabulary); empty: ``text_tokenizer`` is used."""
    text_tokenizer: str = ""
    """Hub id or folder of a ``tokenizers`` tokenizer, or the JSON text of one."""
    text_vocab_size: int = 0
    """Size of that tokenizer's vocabulary, so that the model can be built before it is loaded."""
    event_bias: float = 0.0
    """Added to the score of saying one more event; chosen on validation videos."""

    def __post_init__(self) -> None:
        if self.time.encoding == "stream" and self.time.num_buckets <= self.num_frames:
            raise ConfigError(
                f"{self.time.num_buckets} time buckets cannot hold a segment of {self.num_frames} frames; use more"
            )
        if not self.vocabulary and not self.text_vocab_size:
            raise ConfigError("a captioner needs a vocabulary, or text_tokenizer and text_vocab_size")

    @property
    def segment_spec(self) -> SegmentSpec:
        return SegmentSpec(num_frames=self.num_frames, fps=self.fps, height=self.size, width=self.size)

    @property
    def vocab_size(self) -> int:
        """Of the decoder: pad, end, event, times, and the words with ``<unk>``."""
        words = len(self.vocabulary) + 1 if self.vocabulary else self.text_vocab_size
        return FIRST_TIME + self.time.num_buckets + words

    def to_dict(self) -> dict[str, Any]:
        return to_dict(self)


@dataclass(frozen=True, kw_only=True)
class STSConfig(CaptionerConfig):
    """A whole STS model."""

    stack: StackConfig = field(default_factory=StackConfig)
    shown: Literal["all", "last-frame", "last-token"] = "all"
    """Tokens of the segment that the decoder reads (the paper's table 5)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shown not in ("all", "last-frame", "last-token"):
            raise ConfigError(f"shown is {self.shown!r}, expected 'all', 'last-frame' or 'last-token'")

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> STSConfig:
        return from_dict(cls, fields)

    @classmethod
    def tiny(cls) -> STSConfig:
        """A model of real classes small enough for tests."""
        return cls(
            num_frames=4,
            size=16,
            encoder=EncoderConfig(dim=16, stem_dim=8, depth=1),
            bottleneck=BottleneckConfig(num_tokens=3, dim=16, num_heads=2),
            stack=StackConfig(num_layers=2, state=4),
            decoder=DecoderConfig(dim=16, num_layers=1, num_heads=2, mlp_dim=32, max_tokens=24),
            time=TimeConfig(num_buckets=17),
            vocabulary=("a", "red", "car", "enters", "jumps"),
        )


def sts_large() -> STSConfig:
    """The paper's model: about 300 M (vision), 128 M (bottleneck), 46 M (SSM) and 128 M (decoder) parameters."""
    return STSConfig(
        num_frames=16,
        fps=1.0,
        size=352,
        encoder=EncoderConfig(
            kind="transformers",
            dim=1024,
            model_config={
                "model_type": "vit",
                "hidden_size": 1024,
                "num_hidden_layers": 24,
                "num_attention_heads": 16,
                "intermediate_size": 4096,
                "image_size": 352,
                "patch_size": 16,
            },
        ),
        bottleneck=BottleneckConfig(num_tokens=16, dim=1024, num_layers=10, num_heads=16, mlp_ratio=4),
        stack=StackConfig(num_layers=22, state=16, dt_max=0.1, mlp_ratio=0),
        decoder=DecoderConfig(dim=768, num_layers=11, num_heads=12, mlp_dim=3072, dropout=0.1, max_tokens=256),
        time=TimeConfig(encoding="video", num_buckets=32),
        shown="last-frame",
        text_tokenizer="google-t5/t5-base",
        text_vocab_size=32128,
    )
