"""The S4D stack of STS: tokens of a segment in, tokens out, transfer state carried."""

from __future__ import annotations

from jaxtyping import Complex, Float
from torch import Tensor, nn

from longtake.methods.sts_config import StackConfig
from longtake.state.ssm import S4DLayer


class STSStack(nn.Module):
    """S4D layers over the tokens of a segment, either as one sequence or side by side (``StackConfig.order``)."""

    def __init__(self, config: StackConfig, dim: int) -> None:
        super().__init__()
        self.config = config
        self.layers = nn.ModuleList(
            S4DLayer(dim, config.state, config.dt_min, config.dt_max, config.dropout, config.mlp_ratio)
            for _ in range(config.num_layers)
        )
        self.norm = nn.LayerNorm(dim)

    def init_carried(self, batch: int, num_tokens: int) -> tuple[Complex[Tensor, "rows dim modes"], ...]:
        """The transfer state of streams of which nothing has been seen."""
        rows = batch * num_tokens if self.config.order == "side-by-side" else batch
        return tuple(layer.init_carried(rows) for layer in self.layers)  # pyright: ignore[reportCallIssue]

    def forward(
        self,
        tokens: Float[Tensor, "batch time tokens dim"],
        carried: tuple[Complex[Tensor, "rows dim modes"], ...],
    ) -> tuple[Float[Tensor, "batch time tokens dim"], tuple[Complex[Tensor, "rows dim modes"], ...]]:
        """Take in the tokens of any number of frames; splitting them over several calls changes nothing."""
        batch, time, num_tokens = tokens.shape[:3]
        side_by_side = self.config.order == "side-by-side"
        hidden = tokens.transpose(1, 2).flatten(0, 1) if side_by_side else tokens.flatten(1, 2)
        after: list[Tensor] = []
        for layer, state in zip(self.layers, carried, strict=True):
            hidden, state = layer(hidden, state)
            after.append(state)
        hidden = self.norm(hidden)
        if side_by_side:
            outputs = hidden.unflatten(0, (batch, num_tokens)).transpose(1, 2)
        else:
            outputs = hidden.unflatten(1, (time, num_tokens))
        return outputs, tuple(after)
