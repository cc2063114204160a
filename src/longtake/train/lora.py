"""Low-rank adapters for MC-ViT's encoder (appendix B.2): what is tuned where data are few."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longtake.methods.mcvit import MCViT

if TYPE_CHECKING:
    from peft.tuners.lora import LoraModel

TARGETS = r"blocks\.\d+\.(query|key_value|out|mlp\.1|mlp\.3)"
"""The projections of attention and the MLP, by name."""
RANK = 128
"""The paper's."""


def add_lora(model: MCViT, *, rank: int = RANK, alpha: float | None = None) -> LoraModel:
    """Freeze the encoder and put adapters beside every projection of its blocks, in place.

    ``model`` goes on as it is: the same path, the same answers until the adapters are trained. Heads, text tower and
    what a baseline adds stay trainable.

    Args:
        rank: Of the adapters.
        alpha: Adapters count ``alpha / rank`` times; None: once.

    Departs: equation 9 starts both factors at zero, where no gradient reaches either; peft starts one at random.
    """
    from peft import LoraConfig
    from peft.tuners.lora import LoraModel

    config = LoraConfig(r=rank, lora_alpha=rank if alpha is None else alpha, target_modules=TARGETS)  # type: ignore[arg-type]
    return LoraModel(model.encoder, config, "default")


def merge_lora(model: MCViT, adapters: LoraModel) -> None:
    """Add what the adapters learned to the weights and take them away: the model can then be saved as ever."""
    adapters.merge_and_unload()
    model.requires_grad_(True)
