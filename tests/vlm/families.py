"""Tiny random models of each family's real classes, with its real processor and a tokenizer made here.

``make(name)`` gives ``(model, processor)``; the same name always gives the same weights. Chat templates have the
structure of the families' own, special tokens their real spelling. The tokenizer splits as Qwen's does and has merges
over line ends, so that a prompt cut in a wrong place shows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import nn
from transformers import (
    GenerationMixin,
    GotOcr2ImageProcessor,
    InternVLConfig,
    InternVLForConditionalGeneration,
    InternVLProcessor,
    InternVLVideoProcessor,
    LlavaOnevisionConfig,
    LlavaOnevisionForConditionalGeneration,
    LlavaOnevisionImageProcessor,
    LlavaOnevisionProcessor,
    LlavaOnevisionVideoProcessor,
    PerceptionLMConfig,
    PerceptionLMForConditionalGeneration,
    PerceptionLMImageProcessor,
    PerceptionLMProcessor,
    PerceptionLMVideoProcessor,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2_5_VLProcessor,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen2VLConfig,
    Qwen2VLForConditionalGeneration,
    Qwen2VLImageProcessor,
    Qwen2VLProcessor,
    Qwen2VLVideoProcessor,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
    Qwen3VLMoeConfig,
    Qwen3VLMoeForConditionalGeneration,
    Qwen3VLProcessor,
    Qwen3VLVideoProcessor,
    SiglipVisionConfig,
    SiglipVisionModel,
    SmolVLMConfig,
    SmolVLMForConditionalGeneration,
    SmolVLMImageProcessor,
    SmolVLMProcessor,
    SmolVLMVideoProcessor,
    VideoLlama3Config,
    VideoLlama3ForConditionalGeneration,
    VideoLlama3ImageProcessor,
    VideoLlama3Processor,
    VideoLlama3VideoProcessor,
)
from transformers.models.smolvlm import processing_smolvlm

Pair = tuple[Any, Any]

QWEN_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CHATML = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
QWEN_VISION = ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
TEXT = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 4096,
    "initializer_range": 0.2,
}
MROPE = {"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": [2, 3, 3]}
SIGLIP = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}

QWEN2_TEMPLATE = (
    "{% for message in messages %}{% if loop.first and message['role'] != 'system' %}<|im_start|>system\n"
    "You are a helpful assistant.<|im_end|>\n{% endif %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}<|im_end|>\n{% else %}"
    "{% for content in message['content'] %}{% if content['type'] == 'image' %}"
    "<|vision_start|><|image_pad|><|vision_end|>{% elif content['type'] == 'video' %}"
    "<|vision_start|><|video_pad|><|vision_end|>{% elif 'text' in content %}{{ content['text'] }}"
    "{% endif %}{% endfor %}<|im_end|>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
QWEN3_TEMPLATE = QWEN2_TEMPLATE.replace(
    "{% if loop.first and message['role'] != 'system' %}<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
    "{% endif %}",
    "",
)
INTERNVL_TEMPLATE = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n'}}{% if message['content'] is string %}"
    "{{ message['content'] }}{% else %}{% for content in message['content'] %}{% if content['type'] == 'image' %}"
    "{{ '<IMG_CONTEXT>\n' }}{% elif content['type'] == 'video' %}{{ '<video>\n' }}{% elif content['type'] == 'text' %}"
    "{{ content['text'] }}{% endif %}{% endfor %}{% endif %}{{'<|im_end|>\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{'<|im_start|>assistant\n' }}{% endif %}"
)
LLAVA_TEMPLATE = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + ' '}}"
    "{% for content in message['content'] | selectattr('type', 'equalto', 'image') %}{{ '<image>' }}{% endfor %}"
    "{% for content in message['content'] | selectattr('type', 'equalto', 'video') %}{{ '<video>' }}{% endfor %}"
    "{% for content in message['content'] | selectattr('type', 'equalto', 'text') %}{{ '\n' + content['text'] }}"
    "{% endfor %}{{'<|im_end|>'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
VIDEOLLAMA3_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' }}{% for content in message['content'] %}"
    "{% if content['type'] == 'image' %}{{ '<|image_pad|>\n' }}{% elif content['type'] == 'video' %}"
    "{{ '<|video_pad|>\n' }}{% elif content['type'] == 'text' %}{{ content['text'] }}{% endif %}{% endfor %}"
    "{{ '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
PERCEPTION_TEMPLATE = (
    "{{- bos_token }}{{- '<|start_header_id|>system<|end_header_id|>\n\nYou are a helpful assistant.<|eot_id|>' }}"
    "{%- for message in messages %}{{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' }}"
    "{%- for content in message['content'] | selectattr('type', 'equalto', 'video') %}{{ '<|video|>' }}{%- endfor %}"
    "{%- for content in message['content'] | selectattr('type', 'equalto', 'text') %}{{- content['text'] | trim }}"
    "{%- endfor %}{{ '<|eot_id|>' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{%- endif %}"
)
EAGLE_TEMPLATE = INTERNVL_TEMPLATE.replace("<video>\n", "<video-1>")


def make(name: str) -> Pair:
    """A model of ``NAMES`` in eval mode with random weights, and its processor."""
    state = torch.get_rng_state()
    torch.manual_seed(3)
    model, processor = MAKERS[name]()
    torch.set_rng_state(state)
    model.generation_config.eos_token_id = processor.tokenizer.eos_token_id
    model.generation_config.pad_token_id = processor.tokenizer.pad_token_id
    return model.eval(), processor


def options(name: str) -> dict[str, Any]:
    """What ``family_of`` needs to be told about a video of 7 frames in 6.6 seconds, at a size that is quick."""
    size = {"height": 56, "width": 84} if name in ("qwen2-vl", "qwen2.5-vl", "videollama3") else {}
    size = {"height": 64, "width": 96} if name.startswith("qwen3-vl") else size
    return size | ({"horizon_frames": 7, "horizon_seconds": 6.6} if name == "smolvlm" else {})


def tokenizer(special: list[str], named: dict[str, str] | None = None, **roles: str) -> Any:
    """Byte-level BPE with a few merges; ``named`` become attributes of the tokenizer, as in the families' own files."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(QWEN_SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
        special_tokens=special,
    )
    corpus = ["a user asks\n\nthe assistant seconds Frame from Time User:\n\nis.\n\nwhat happened,Time"] * 3
    made.train_from_iterator(corpus, trainer)
    roles = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"} | roles
    return PreTrainedTokenizerFast(tokenizer_object=made, extra_special_tokens=named or {}, **roles)


def _vision(kind: type, **fields: Any) -> Any:
    """A video processor that neither samples nor resizes unless told to."""
    return kind(do_sample_frames=False, **fields)


def _qwen(
    model: type, config: type, processor: type, video: Any, vision: dict[str, Any], template: str, **text: Any
) -> Pair:
    words = tokenizer([*CHATML, *QWEN_VISION])
    ids = {
        f"{kind}_token_id": words.convert_tokens_to_ids(token)
        for kind, token in zip(("vision_start", "vision_end", "image", "video"), QWEN_VISION, strict=True)
    }
    made = config(
        text_config=TEXT | {"vocab_size": len(words), "rope_parameters": dict(MROPE), "head_dim": 16} | text,
        vision_config=vision,
        **ids,
    )
    return model(made), processor(Qwen2VLImageProcessor(), words, video, chat_template=template)


def _qwen2_vl() -> Pair:
    vision = {"depth": 2, "embed_dim": 32, "hidden_size": 64, "num_heads": 2, "mlp_ratio": 2}
    return _qwen(
        Qwen2VLForConditionalGeneration,
        Qwen2VLConfig,
        Qwen2VLProcessor,
        _vision(Qwen2VLVideoProcessor),
        vision,
        QWEN2_TEMPLATE,
    )


def _qwen25_vl() -> Pair:
    vision = {"depth": 2, "hidden_size": 32, "num_heads": 2, "intermediate_size": 48, "out_hidden_size": 64}
    vision |= {"fullatt_block_indexes": [1], "window_size": 56, "tokens_per_second": 2}
    return _qwen(
        Qwen2_5_VLForConditionalGeneration,
        Qwen2_5_VLConfig,
        Qwen2_5_VLProcessor,
        _vision(Qwen2VLVideoProcessor),
        vision,
        QWEN2_TEMPLATE,
    )


QWEN3_VISION = {"depth": 3, "hidden_size": 32, "num_heads": 2, "intermediate_size": 48, "out_hidden_size": 64}
QWEN3_VISION |= {"num_position_embeddings": 36, "deepstack_visual_indexes": [0, 1]}


def _qwen3_vl() -> Pair:
    video = _vision(Qwen3VLVideoProcessor)
    return _qwen(
        Qwen3VLForConditionalGeneration, Qwen3VLConfig, Qwen3VLProcessor, video, dict(QWEN3_VISION), QWEN3_TEMPLATE
    )


def _qwen3_vl_moe() -> Pair:
    experts = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
    return _qwen(
        Qwen3VLMoeForConditionalGeneration,
        Qwen3VLMoeConfig,
        Qwen3VLProcessor,
        _vision(Qwen3VLVideoProcessor),
        dict(QWEN3_VISION),
        QWEN3_TEMPLATE,
        **experts,
    )


def _internvl() -> Pair:
    named = {"start_image_token": "<img>", "end_image_token": "</img>", "context_image_token": "<IMG_CONTEXT>"}
    named |= {"video_token": "<video>"}
    words = tokenizer([*CHATML, *named.values()], named)
    config = InternVLConfig(
        text_config=TEXT | {"model_type": "qwen2", "vocab_size": len(words)},
        vision_config=SIGLIP | {"image_size": 56, "patch_size": 14},
        image_token_id=words.context_image_token_id,
        image_seq_length=4,
    )
    video = _vision(InternVLVideoProcessor, size={"height": 56, "width": 56})
    processor = InternVLProcessor(
        GotOcr2ImageProcessor(), words, video, image_seq_length=4, chat_template=INTERNVL_TEMPLATE
    )
    return InternVLForConditionalGeneration(config), processor


def _llava_onevision() -> Pair:
    named = {"image_token": "<image>", "video_token": "<video>"}
    words = tokenizer([*CHATML, *named.values()], named)
    config = LlavaOnevisionConfig(
        text_config=TEXT | {"model_type": "qwen2", "vocab_size": len(words)},
        vision_config=SIGLIP
        | {"model_type": "siglip_vision_model", "image_size": 70, "patch_size": 14, "vision_use_head": False},
        image_token_index=words.image_token_id,
        video_token_index=words.video_token_id,
    )
    processor = LlavaOnevisionProcessor(
        LlavaOnevisionImageProcessor(),
        words,
        _vision(LlavaOnevisionVideoProcessor, size={"height": 70, "width": 70}),
        num_image_tokens=25,
        vision_feature_select_strategy="full",
        chat_template=LLAVA_TEMPLATE,
    )
    return LlavaOnevisionForConditionalGeneration(config), processor


def _smolvlm() -> Pair:
    named = {
        "fake_image_token": "<fake_token_around_image>",
        "image_token": "<image>",
        "global_image_token": "<global-img>",
    }
    named |= {"end_of_utterance_token": "<end_of_utterance>", "video_token": "<video>"}
    words = tokenizer([*CHATML, *named.values()], named, eos_token="<end_of_utterance>")
    config = SmolVLMConfig(
        text_config=TEXT | {"model_type": "llama", "vocab_size": len(words), "pad_token_id": words.pad_token_id},
        vision_config=SIGLIP | {"image_size": 56, "patch_size": 14},
        image_token_id=words.image_token_id,
        scale_factor=2,
    )
    video = _vision(SmolVLMVideoProcessor, max_image_size={"longest_edge": 56}, size={"longest_edge": 56})
    if processing_smolvlm.num2words is None:  # not installed here, and without it there is no processor
        processing_smolvlm.num2words = lambda count: {7: "seven", 8: "eight"}.get(count, str(count))
    processor = SmolVLMProcessor(SmolVLMImageProcessor(), words, video, image_seq_len=4)
    return SmolVLMForConditionalGeneration(config), processor


def _videollama3() -> Pair:
    words = tokenizer([*CHATML, "<|image_pad|>", "<|video_pad|>"])
    config = VideoLlama3Config(
        text_config=TEXT | {"model_type": "qwen2", "vocab_size": len(words)},
        vision_config=SIGLIP | {"patch_size": 14},
        image_token_id=words.convert_tokens_to_ids("<|image_pad|>"),
        video_token_id=words.convert_tokens_to_ids("<|video_pad|>"),
    )
    processor = VideoLlama3Processor(
        VideoLlama3ImageProcessor(), words, _vision(VideoLlama3VideoProcessor), chat_template=VIDEOLLAMA3_TEMPLATE
    )
    return VideoLlama3ForConditionalGeneration(config), processor


def _perception_lm() -> Pair:
    """Its own vision tower is timm's, which is not installed here: SigLIP's stands in, in the real model class."""
    named = {"image_token": "<|image|>", "video_token": "<|video|>"}
    special = ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
    words = tokenizer(
        [*special, *named.values()],
        named,
        bos_token="<|begin_of_text|>",
        eos_token="<|eot_id|>",
        pad_token="<|end_of_text|>",
    )
    vision = SiglipVisionConfig(**SIGLIP, image_size=56, patch_size=14, vision_use_head=False)
    vision.model_args = {"embed_dim": 32}
    config = PerceptionLMConfig(
        text_config=TEXT | {"model_type": "llama", "vocab_size": len(words)},
        vision_config=vision,
        vision_use_cls_token=False,
        projector_pooling_ratio=2,
        image_token_id=words.image_token_id,
        video_token_id=words.video_token_id,
    )
    video = _vision(PerceptionLMVideoProcessor, size={"height": 56, "width": 56})
    processor = PerceptionLMProcessor(
        video, PerceptionLMImageProcessor(), words, patch_size=14, pooling_ratio=2, chat_template=PERCEPTION_TEMPLATE
    )
    return PerceptionLMForConditionalGeneration(config), processor


class EagleConfig(PreTrainedConfig):
    """The fields of Eagle2.5's config that are read."""

    model_type = "eagle_2_5_vl"
    sub_configs: ClassVar[dict[str, Any]] = {"text_config": Qwen2Config, "vision_config": SiglipVisionConfig}

    def __init__(self, text_config: Any = None, vision_config: Any = None, **rest: Any) -> None:
        self.text_config, self.vision_config = text_config or Qwen2Config(), vision_config or SiglipVisionConfig()
        self.downsample_ratio = 0.5
        super().__init__(**rest)


class EagleShape(PreTrainedModel, GenerationMixin):
    """A model of Eagle2.5's shape, whose own code is not here: SigLIP, pixel shuffle, MLP, Qwen2."""

    config_class = EagleConfig
    config: Any
    _supports_sdpa = True

    def __init__(self, config: EagleConfig) -> None:
        super().__init__(config)
        self.vision_model = SiglipVisionModel(config.vision_config)
        self.mlp1 = nn.Linear(4 * config.vision_config.hidden_size, config.text_config.hidden_size)
        self.language_model = Qwen2ForCausalLM(config.text_config)
        self.post_init()

    def extract_feature(self, pixel_values: torch.Tensor) -> torch.Tensor:
        seen = self.vision_model(pixel_values).last_hidden_state
        side = int(seen.shape[1] ** 0.5) // 2
        tiles = seen.unflatten(1, (side, 2, side, 2)).transpose(2, 3)
        return self.mlp1(tiles.flatten(3, 5).flatten(1, 2))

    def forward(self, input_ids: torch.Tensor, pixel_values: torch.Tensor | None = None, **rest: Any) -> Any:
        embeds = self.language_model.get_input_embeddings()(input_ids)
        pictures = (input_ids == self.config.image_token_index)[..., None]
        if pixel_values is not None and pictures.any():
            embeds = embeds.masked_scatter(pictures, self.extract_feature(pixel_values))
        return self.language_model(inputs_embeds=embeds, **rest)


class EagleShapeProcessor(InternVLProcessor):
    """InternVL's, with Eagle's words around each frame."""

    videos_kwargs: ClassVar[dict[str, Any]] = {"return_tensors": "pt", "return_metadata": True}

    # the mixin reads the names of its parts from here
    def __init__(
        self, image_processor: Any, tokenizer: Any, video_processor: Any, image_seq_length: int, chat_template: str
    ) -> None:
        super().__init__(image_processor, tokenizer, video_processor, image_seq_length, chat_template)
        self.video_placeholder, self.image_start_token, self.image_end_token = "video", "<img>", "</img>"

    def replace_video_token(self, video_inputs: dict[str, Any], video_idx: int, **_: Any) -> str:
        times = video_inputs["video_metadata"][video_idx].timestamps
        picture = f"<img>{self.image_token * self.image_seq_length}</img>"
        frames = [f"Frame {number} sample at {pts:.2f}s: {picture}" for number, pts in enumerate(times, 1)]
        return "The first video: " + "".join(frames)


def _eagle() -> Pair:
    named = {"start_image_token": "<img>", "end_image_token": "</img>", "context_image_token": "<IMG_CONTEXT>"}
    words = tokenizer([*CHATML, *named.values()], named | {"video_token": "<video-1>"})
    config = EagleConfig(
        text_config=Qwen2Config(**TEXT, vocab_size=len(words)),
        vision_config=SiglipVisionConfig(**SIGLIP, image_size=56, patch_size=14, vision_use_head=False),
        image_token_index=words.context_image_token_id,
    )
    video = _vision(InternVLVideoProcessor, size={"height": 56, "width": 56})
    processor = EagleShapeProcessor(
        GotOcr2ImageProcessor(), words, video, image_seq_length=4, chat_template=EAGLE_TEMPLATE
    )
    return EagleShape(config), processor


MAKERS: dict[str, Callable[[], Pair]] = {
    "qwen2-vl": _qwen2_vl,
    "qwen2.5-vl": _qwen25_vl,
    "qwen3-vl": _qwen3_vl,
    "qwen3-vl-moe": _qwen3_vl_moe,
    "internvl3": _internvl,
    "llava-onevision": _llava_onevision,
    "smolvlm": _smolvlm,
    "videollama3": _videollama3,
    "perception-lm": _perception_lm,
    "eagle2.5": _eagle,
}
NAMES = tuple(MAKERS)
