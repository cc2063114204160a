"""The model to be trained: Qwen3-VL's classes at a small size, with a tokenizer of words made here."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from longtake.errors import ConfigError
from longtake.files import write_whole
from longtake.methods.statekv_load import SETTINGS_FILE

SPECIAL = {"pad": "<|endoftext|>", "user": "<|user|>", "assistant": "<|assistant|>", "end": "<|end|>"}
VISION = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
UNKNOWN = "<|unknown|>"
SPLIT = r" ?[a-z]+|\.\d seconds>|\s|[^\sa-z]"
"""Words with the space before them; the end of a time marker is one token, all else goes by characters."""
TEMPLATE = (
    "{% for message in messages %}{% if message['role'] == 'assistant' %}<|assistant|>{% else %}<|user|>{% endif %}"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for content in message['content'] %}"
    "{% if content['type'] == 'video' %}<|video_pad|>{% elif content['type'] == 'image' %}<|image_pad|>"
    "{% elif content['type'] == 'text' %}{{ content['text'] }}{% endif %}{% endfor %}{% endif %}"
    "{% if message['role'] == 'assistant' %}<|end|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


@dataclass(frozen=True, kw_only=True)
class VLMConfig:
    """Sizes of the model, and how it looks at video."""

    fps: float = 4.0
    frames_per_step: int = 5
    """Frames that the vision tower takes together (its temporal patch)."""
    size: int = 72
    """Side of the square frames in pixels."""
    patch: int = 12
    """Side of a patch in pixels; two by two patches make one visual token."""
    vision_dim: int = 192
    vision_layers: int = 4
    vision_heads: int = 6
    vision_inner: int = 512
    dim: int = 256
    layers: int = 6
    heads: int = 8
    kv_heads: int = 4
    inner: int = 640
    listens_after: int = 3
    """Decoder layers under the training heads that say what each toy has done so far."""
    max_positions: int = 65536
    budget: int = 192
    """Keys carried per layer and KV head when it is run; training knows no budget."""

    def __post_init__(self) -> None:
        if self.size % (2 * self.patch):
            raise ConfigError(f"size is {self.size}, expected a multiple of {2 * self.patch} (two patches)")
        if not 0 < self.listens_after <= self.layers:
            raise ConfigError(f"listens_after is {self.listens_after}, expected 1 to {self.layers}")

    @property
    def side(self) -> int:
        """Visual tokens in a row of a step."""
        return self.size // (2 * self.patch)

    @property
    def step_seconds(self) -> float:
        return self.frames_per_step / self.fps


def build_tokenizer(words: list[str]) -> Any:
    """A word-level tokenizer: every word with and without a space before it, digits and signs by themselves."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    special = [*SPECIAL.values(), *VISION, UNKNOWN]
    pieces = [*"0123456789<>?.,:'-\n ", *(f".{digit} seconds>" for digit in range(10))]
    pieces += [spelled for word in sorted(set(words)) for spelled in (word, f" {word}")]
    vocabulary = {token: index for index, token in enumerate([*special, *dict.fromkeys(pieces)])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(SPLIT), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=SPECIAL["end"],
        pad_token=SPECIAL["pad"],
        unk_token=UNKNOWN,
        additional_special_tokens=[SPECIAL["user"], SPECIAL["assistant"], *VISION],
        clean_up_tokenization_spaces=False,
    )


def build_processor(config: VLMConfig, words: list[str]) -> Any:
    """Qwen3-VL's own processor around that tokenizer."""
    from transformers import Qwen2VLImageProcessor, Qwen3VLProcessor, Qwen3VLVideoProcessor

    tokenizer = build_tokenizer(words)
    tokenizer.image_token, tokenizer.video_token = VISION[2], VISION[3]
    tokenizer.vision_bos_token, tokenizer.vision_eos_token = VISION[0], VISION[1]
    sizes = {
        "patch_size": config.patch,
        "merge_size": 2,
        "temporal_patch_size": config.frames_per_step,
        "size": {"shortest_edge": config.size**2, "longest_edge": config.size**2 * 4096},
    }
    return Qwen3VLProcessor(
        image_processor=Qwen2VLImageProcessor(**sizes),
        tokenizer=tokenizer,
        video_processor=Qwen3VLVideoProcessor(**sizes),
        chat_template=TEMPLATE,
    )


def build_model(config: VLMConfig, tokenizer: Any) -> Any:
    """The model with fresh weights."""
    from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

    def token(name: str) -> int:
        return int(tokenizer.convert_tokens_to_ids(name))

    head_dim = config.dim // config.heads
    pairs = head_dim // 2
    text = {
        "vocab_size": len(tokenizer),
        "hidden_size": config.dim,
        "intermediate_size": config.inner,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": head_dim,
        "max_position_embeddings": config.max_positions,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 100_000.0,
            "mrope_section": [pairs - 2 * (pairs // 4), pairs // 4, pairs // 4],
            "mrope_interleaved": True,
        },
        "eos_token_id": token(SPECIAL["end"]),
        "pad_token_id": token(SPECIAL["pad"]),
    }
    vision = {
        "depth": config.vision_layers,
        "hidden_size": config.vision_dim,
        "num_heads": config.vision_heads,
        "intermediate_size": config.vision_inner,
        "patch_size": config.patch,
        "spatial_merge_size": 2,
        "temporal_patch_size": config.frames_per_step,
        "out_hidden_size": config.dim,
        "num_position_embeddings": (config.size // config.patch) ** 2,
        "deepstack_visual_indexes": [],
    }
    names = ("vision_start_token_id", "vision_end_token_id", "image_token_id", "video_token_id")
    tokens: dict[str, Any] = {name: token(spelled) for name, spelled in zip(names, VISION, strict=True)}
    whole = Qwen3VLConfig(text_config=text, vision_config=vision, tie_word_embeddings=True, **tokens)
    model = Qwen3VLForConditionalGeneration(whole)
    model.generation_config.eos_token_id = token(SPECIAL["end"])
    model.generation_config.pad_token_id = token(SPECIAL["pad"])
    return model


def save(model: Any, processor: Any, folder: Path, config: VLMConfig) -> None:
    """A folder as transformers knows it, weights in bfloat16, with ``longtake.json``: how the model looks at video."""
    weights = {name: tensor.detach().to(torch.bfloat16) for name, tensor in model.state_dict().items()}
    weights.pop("lm_head.weight", None)
    model.save_pretrained(folder, state_dict=weights)
    processor.save_pretrained(folder)
    settings = {"fps": config.fps, "height": config.size, "width": config.size, "max_new_tokens": 16}
    write_whole(folder / SETTINGS_FILE, json.dumps(settings | {"budget": config.budget}, indent=2) + "\n")
