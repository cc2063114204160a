"""A Qwen3-VL with random weights and its real processor, made from nothing: for measuring time, not for answers."""

from __future__ import annotations

from typing import Any

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    PreTrainedTokenizerFast,
    Qwen2VLImageProcessor,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
    Qwen3VLProcessor,
    Qwen3VLVideoProcessor,
)

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
VISION = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
SPLIT = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+"
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{% for content in message['content'] %}"
    "{% if content['type'] == 'video' %}<|vision_start|><|video_pad|><|vision_end|>{% else %}{{ content['text'] }}"
    "{% endif %}{% endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TEXT = {
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": [4, 6, 6]},
}
TOWER = {
    "depth": 3,
    "hidden_size": 64,
    "num_heads": 2,
    "intermediate_size": 128,
    "out_hidden_size": 256,
    "num_position_embeddings": 256,
    "deepstack_visual_indexes": [0, 1],
}


def random_qwen3_vl() -> tuple[Any, Any]:
    """A small model (3 M parameters, always the same) in eval mode, and its processor."""
    words = _tokenizer()
    ids = [words.convert_tokens_to_ids(token) for token in VISION]
    names = ("vision_start_token_id", "vision_end_token_id", "image_token_id", "video_token_id")
    config = Qwen3VLConfig(
        text_config=TEXT | {"vocab_size": len(words)},
        vision_config=TOWER,
        **dict(zip(names, ids, strict=True)),
    )
    torch.manual_seed(0)
    model = Qwen3VLForConditionalGeneration(config).eval()
    model.generation_config.eos_token_id = words.eos_token_id
    video = Qwen3VLVideoProcessor(do_sample_frames=False)
    return model, Qwen3VLProcessor(Qwen2VLImageProcessor(), words, video, chat_template=TEMPLATE)


def _tokenizer() -> Any:
    """Bytes, split as Qwen's; `` seconds`` is one token as in Qwen's, so that a time has as many tokens as there."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    word = "\u0120seconds"  # the byte-level letter for a space
    merges = [(word[:end], word[end]) for end in range(1, len(word))]
    tokens = [*alphabet, *(left + right for left, right in merges)]
    made = Tokenizer(models.BPE(vocab={token: number for number, token in enumerate(tokens)}, merges=merges))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([*SPECIAL, *VISION])
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|im_end|>", pad_token="<|endoftext|>")
