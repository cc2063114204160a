"""ViViT weights of transformers in our blocks: ``longtake.load`` comes here for ``google/vivit-b-16x2-*`` and its like.

One segment with an empty memory gives what transformers' model gives. Positions are taken apart into the class token's,
which is added to it, and a table along time and space.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from longtake.config import from_dict, merged, to_dict
from longtake.errors import CheckpointError, ConfigError
from longtake.methods.mcvit import MCViT, parameter_counts
from longtake.methods.mcvit_config import MCViTConfig
from longtake.vision import TubeletConfig, VideoTransformerConfig

ACTIVATION_NAMES = {
    "gelu": "gelu",
    "gelu_fast": "gelu_tanh",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
}
"""transformers' name of the MLP's activation -> ours."""
PREPROCESSOR_FILE = "preprocessor_config.json"
FPS = 12.5
"""The public weights were trained on every second frame of videos of 25 frames per second."""


def load_folder(
    folder: Path,
    options: Mapping[str, object],
    *,
    name: str = "",
    device: str = "cpu",
    dtype: str = "float32",
    trust_remote_code: bool = False,
) -> MCViT:
    """The model, ready to run.

    Args:
        folder: As transformers writes it.
        options: Fields of ``MCViTConfig``; for a nested config, a dict of the fields to set.
        name: What the model was asked for by.
        device: As in torch.
        dtype: ``auto`` (float32), ``float32``, ``bfloat16`` or ``float16``.
        trust_remote_code: Of no consequence: transformers has ViViT's code, the folder brings none.

    Raises:
        CheckpointError: Files are missing or damaged, or hold no ViViT.
        ConfigError: An option that does not exist or cannot work, or a ViViT that our blocks cannot be.
    """
    from transformers import VivitForVideoClassification, VivitModel

    if dtype not in ("auto", "float32", "bfloat16", "float16"):
        raise ConfigError(f"dtype is {dtype!r}, expected float32, bfloat16 or float16")
    theirs = _read_config(folder)
    config = from_dict(MCViTConfig, merged(to_dict(config_of(theirs, folder)), options), where=name or folder.name)
    try:
        if _classifies(theirs):
            vivit: nn.Module = VivitForVideoClassification.from_pretrained(folder, dtype=torch.float32)
        else:
            vivit = VivitModel.from_pretrained(folder, dtype=torch.float32, add_pooling_layer=False)
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise CheckpointError(f"{folder} cannot be read as a ViViT: {' '.join(str(error).split())}") from error
    model = MCViT(config)
    put_weights(model, vivit)
    wanted = torch.float32 if dtype == "auto" else getattr(torch, dtype)
    return model.to(device=device, dtype=wanted).eval()


def describe(folder: Path) -> dict[str, Any]:
    """The facts about a folder's model, without reading any weights."""
    with torch.device("meta"):
        model = MCViT(config_of(_read_config(folder), folder))
    spec = model.segment_spec
    return {
        "method": "mcvit",
        "family": "vivit",
        "segment": f"{spec.num_frames} frames at {spec.fps:g} fps, {spec.width}x{spec.height}",
        "state_bytes": model.max_state_bytes(),
        "parameters": parameter_counts(model),
        "settings": to_dict(model.config.memory),
        "notes": {},
    }


def config_of(vivit: Any, folder: Path | None = None) -> MCViTConfig:
    """Our config for a ``VivitConfig``; how pixels are scaled stands in the folder's ``preprocessor_config.json``.

    Raises:
        ConfigError: It has another shape of frames or tubelets, or an activation that we do not have.
    """
    time, height, width = vivit.tubelet_size
    sides = set(vivit.image_size) if isinstance(vivit.image_size, (list, tuple)) else {vivit.image_size}
    if height != width or len(sides) > 1 or vivit.num_channels != 3:
        raise ConfigError(
            f"ViViT takes {vivit.num_channels} channels of {vivit.image_size} px in tubelets of {vivit.tubelet_size}; "
            "expected 3 channels, and square frames and tubelets"
        )
    if vivit.hidden_act not in ACTIVATION_NAMES:
        known = ", ".join(ACTIVATION_NAMES)
        raise ConfigError(f"ViViT has the activation {vivit.hidden_act!r}, expected one of {known}")
    scale, offset = _pixel_scaling(folder)
    return MCViTConfig(
        num_frames=vivit.num_frames,
        fps=FPS,
        encoder=VideoTransformerConfig(
            tubelet=TubeletConfig(
                size=sides.pop(),
                time=time,
                patch=height,
                position_frames=vivit.num_frames,
                class_token=True,
                pixel_scale=scale,
                pixel_offset=offset,
            ),
            dim=vivit.hidden_size,
            num_layers=vivit.num_hidden_layers,
            num_heads=vivit.num_attention_heads,
            mlp_dim=vivit.intermediate_size,
            activation=ACTIVATION_NAMES[vivit.hidden_act],
            norm_eps=vivit.layer_norm_eps,
            qkv_bias=vivit.qkv_bias,
        ),
        labels=tuple(_distinct(vivit.id2label)) if _classifies(vivit) else (),
    )


@torch.no_grad()
def put_weights(model: MCViT, vivit: nn.Module) -> None:
    """Copy the weights of a ``VivitModel`` or ``VivitForVideoClassification`` into our model, by name.

    A text tower and what a baseline adds keep their own; a classifier is copied where ours is one over its labels.
    """
    theirs = {name.removeprefix("vivit."): weight for name, weight in vivit.state_dict().items()}
    known = model.state_dict()
    weights = {f"encoder.{name}": weight for name, weight in _renamed(theirs)}
    if "classifier.weight" in theirs and "classifier.weight" in known:
        weights |= {name: theirs[name] for name in ("classifier.weight", "classifier.bias")}
    expected = {name for name in known if name.startswith("encoder.")}
    if {name for name in weights if name.startswith("encoder.")} != expected:
        odd = sorted(expected ^ {name for name in weights if name.startswith("encoder.")})
        raise CheckpointError(f"ViViT and our encoder differ in {odd[0]}; they do not belong together")
    fitted = {name: weight.reshape(known[name].shape) for name, weight in weights.items()}
    model.load_state_dict(fitted, strict=False)


def _renamed(theirs: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """Names and weights of our encoder."""
    position = theirs["embeddings.position_embeddings"][0]
    yield "embed.class_token", theirs["embeddings.cls_token"][0] + position[:1]
    yield "embed.position", position[1:]
    parts = ("weight", "bias")
    for part in parts:
        yield f"embed.project.{part}", theirs[f"embeddings.patch_embeddings.projection.{part}"]
        yield f"norm.{part}", theirs[f"layernorm.{part}"]
    layers = {int(name.split(".")[1]) for name in theirs if name.startswith("layers.")}
    plain = {
        "layernorm_before": "norm",
        "attention.q_proj": "query",
        "attention.o_proj": "out",
        "layernorm_after": "mlp.0",
        "mlp.fc1": "mlp.1",
        "mlp.fc2": "mlp.3",
    }
    for layer in sorted(layers):
        for part in parts:
            for their_name, our_name in plain.items():
                name = f"layers.{layer}.{their_name}.{part}"
                if name in theirs:
                    yield f"blocks.{layer}.{our_name}.{part}", theirs[name]
            keys = [f"layers.{layer}.attention.{one}_proj.{part}" for one in "kv"]
            if keys[0] in theirs:
                yield f"blocks.{layer}.key_value.{part}", torch.cat([theirs[key] for key in keys])


def _read_config(folder: Path) -> Any:
    from transformers import VivitConfig

    try:
        return VivitConfig.from_pretrained(folder)
    except (OSError, ValueError, TypeError) as error:
        raise CheckpointError(f"{folder} has no readable ViViT config: {' '.join(str(error).split())}") from error


def _classifies(vivit: Any) -> bool:
    return "VivitForVideoClassification" in (vivit.architectures or ())


def _distinct(labels: Mapping[int, str]) -> list[str]:
    """Labels in the order of their numbers; a name that comes twice gets its number."""
    names = [labels[number] for number in sorted(labels)]
    return [name if names.count(name) == 1 else f"{name} ({number})" for number, name in enumerate(names)]


def _pixel_scaling(folder: Path | None) -> tuple[float, float]:
    """Factor and offset by which transformers' ``VivitImageProcessor`` takes in a pixel of 0 to 255.

    Followed to the letter where the folder has one: that of ``google/vivit-b-16x2-kinetics400`` scales twice, to
    [-3, 1]. Without one it is [-1, 1], which the weights were trained on.
    """
    fields: dict[str, Any] = {}
    if folder is not None and (folder / PREPROCESSOR_FILE).is_file():
        try:
            fields = json.loads((folder / PREPROCESSOR_FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{folder / PREPROCESSOR_FILE} cannot be read: {error}") from error
    scale, offset = 1.0, 0.0
    if fields.get("do_rescale", True):
        scale, offset = fields.get("rescale_factor", 1 / 127.5), -1.0 if fields.get("offset", True) else 0.0
    if fields and fields.get("do_normalize", True):
        mean, std = set(fields.get("image_mean", [0.5])), set(fields.get("image_std", [0.5]))
        if len(mean) > 1 or len(std) > 1:
            raise ConfigError(f"{PREPROCESSOR_FILE} has a mean and a spread per colour, expected one for all")
        mean_value, std_value = mean.pop(), std.pop()
        scale, offset = scale / std_value, (offset - mean_value) / std_value
    return scale, offset
