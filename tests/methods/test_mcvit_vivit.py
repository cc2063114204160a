"""ViViT's weights in our blocks: transformers' own model is the oracle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import VivitConfig, VivitForVideoClassification, VivitModel

from longtake import hub
from longtake.errors import CheckpointError, ConfigError
from longtake.methods.mcvit import MCViT
from longtake.methods.mcvit_vivit import config_of, describe, put_weights
from longtake.types import Classify, Embed, Segment

SIZES: dict[str, Any] = {
    "image_size": 16,
    "num_frames": 4,
    "tubelet_size": [2, 8, 8],
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}


def theirs(kind: type[Any] = VivitForVideoClassification, **changes: Any) -> Any:
    """Real class, random weights, positions and class token included (transformers starts those at zero)."""
    labels = {0: "dives", 1: "jumps", 2: "jumps"}
    vivit = kind(VivitConfig(**(SIZES | {"id2label": labels} | changes))).eval()
    for weight in vivit.parameters():
        nn.init.normal_(weight, std=0.2)
    vivit.config.architectures = [kind.__name__]
    return vivit


def film(num_frames: int = 4) -> Tensor:
    return torch.randint(0, 256, (1, num_frames, 3, 16, 16), dtype=torch.uint8)


def segment(frames: Tensor) -> Segment:
    count = frames.shape[1]
    return Segment(
        pixels=frames[0],
        pts_seconds=tuple(number / 12.5 for number in range(count)),
        index=0,
        start_seconds=0.0,
        end_seconds=count / 12.5,
        total_seconds=count / 12.5,
    )


@pytest.mark.parametrize("activation", ["gelu_fast", "gelu", "relu"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@torch.no_grad()
def test_one_segment_matches_vivit(activation: str, bias: bool, dtype: torch.dtype, tolerance: float) -> None:
    vivit = theirs(VivitModel, hidden_act=activation, qkv_bias=bias, layer_norm_eps=1e-4).to(dtype)
    model = MCViT(config_of(vivit.config)).to(dtype).eval()
    put_weights(model, vivit)
    frames = film()
    expected = vivit(pixel_values=frames.to(dtype) / 127.5 - 1).last_hidden_state
    outputs, _ = model.encoder(frames, torch.arange(2, dtype=torch.float64))
    torch.testing.assert_close(outputs, expected, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(model(frames), expected[:, 0], rtol=tolerance, atol=tolerance)


@torch.no_grad()
def test_folder_loads_with_its_labels_and_pixels(tmp_path: Path) -> None:
    vivit = theirs()
    vivit.save_pretrained(tmp_path)
    scaling = {"do_rescale": True, "rescale_factor": 1 / 127.5, "offset": True, "do_normalize": True}
    colours = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(scaling | colours))
    frames = film()
    logits = vivit(pixel_values=((frames / 127.5 - 1) - 0.5) / 0.5).logits
    for variant in ("joint", "mc-km"):
        model: Any = hub.load(tmp_path, device="cpu", memory={"variant": variant})
        assert model.segment_spec.num_frames == 4
        state = model.advance(model.init_state(), segment(frames))
        labels = list(model.respond(state, Classify()))
        assert {label.name for label in labels} == {"dives", "jumps (1)", "jumps (2)"}
        expected = logits[0].double().softmax(-1)
        assert labels[0].probability == pytest.approx(float(expected.max()), abs=1e-5)
        assert list(model.respond(state, Embed()))


def test_encoder_without_a_classifier_gives_embeddings(tmp_path: Path) -> None:
    theirs(VivitModel).save_pretrained(tmp_path)
    model = hub.load(tmp_path, device="cpu", fps=5.0)
    assert model.supports == {Embed}
    assert model.segment_spec.fps == 5.0
    facts = describe(tmp_path)
    assert (facts["method"], facts["family"]) == ("mcvit", "vivit")


def test_loaded_vivit_is_saved_as_a_model_of_ours(tmp_path: Path) -> None:
    theirs().save_pretrained(tmp_path / "vivit")
    model: Any = hub.load(tmp_path / "vivit", device="cpu")
    hub.save(model, tmp_path / "ours")
    assert hub.load(tmp_path / "ours", device="cpu").fingerprint == model.fingerprint


def test_vivit_that_our_blocks_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="swish"):
        config_of(VivitConfig(**SIZES | {"hidden_act": "swish"}))
    with pytest.raises(ConfigError, match="square"):
        config_of(VivitConfig(**SIZES | {"tubelet_size": [2, 8, 4]}))
    theirs().save_pretrained(tmp_path)
    with pytest.raises(ConfigError, match="unknown key 'budget'"):
        hub.load(tmp_path, device="cpu", budget=4)
    (tmp_path / "model.safetensors").write_bytes(b"no")
    with pytest.raises(CheckpointError, match="cannot be read"):
        hub.load(tmp_path, device="cpu")
