"""Adapters: nothing changes until they are trained, only they change then, and they merge into plain weights."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from longtake.methods.mcvit import MCViT
from longtake.methods.mcvit_config import MCViTConfig

pytest.importorskip("peft")

from longtake.train.lora import add_lora, merge_lora


def film() -> Tensor:
    return torch.randint(0, 256, (1, 8, 3, 16, 16), dtype=torch.uint8)


def test_adapters_start_as_nothing_learn_and_merge() -> None:
    model, frames = MCViT(MCViTConfig.tiny()).double(), film()
    names, before = list(model.state_dict()), model(frames).detach()
    adapters = add_lora(model, rank=4)
    torch.testing.assert_close(model(frames), before, rtol=1e-12, atol=1e-12)
    model(frames)[0, 0].backward()
    tuned = {name for name, weight in model.encoder.named_parameters() if weight.requires_grad}
    assert tuned
    assert all("lora_" in name for name in tuned)
    assert {name.split(".")[2] for name in tuned} == {"query", "key_value", "out", "mlp"}
    with torch.no_grad():
        for weight in model.encoder.parameters():
            if weight.requires_grad:
                weight += 0.05 * torch.randn_like(weight)
        trained = model(frames)
        assert not torch.allclose(trained, before)
        merge_lora(model, adapters)
        torch.testing.assert_close(model(frames), trained, rtol=1e-10, atol=1e-10)
    assert list(model.state_dict()) == names
