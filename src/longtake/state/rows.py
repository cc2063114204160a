"""Keys and values of a stretch of tokens, in the forms that a tier holds them: as they are, or in 8 bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int8
from torch import Tensor

Pair = tuple[Float[Tensor, "kv_heads tokens head_dim"], Float[Tensor, "kv_heads tokens head_dim"]]
"""Keys and values of one layer, as attention reads them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """As the model made them."""

    keys: Float[Tensor, "layers kv_heads tokens head_dim"]
    values: Float[Tensor, "layers kv_heads tokens head_dim"]

    @property
    def num_bytes(self) -> int:
        """Memory."""
        return self.keys.nbytes + self.values.nbytes

    @property
    def stored_bytes(self) -> int:
        """Memory or disk."""
        return self.num_bytes

    def read(self, layer: int, heads: slice, start: int, stop: int) -> Pair:
        """Tokens ``start`` to ``stop`` in one layer."""
        return self.keys[layer, heads, start:stop], self.values[layer, heads, start:stop]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Int8Rows:
    """In 8 bits, with one scale per token, head and layer: the largest entry is 127."""

    keys: Int8[Tensor, "layers kv_heads tokens head_dim"]
    values: Int8[Tensor, "layers kv_heads tokens head_dim"]
    key_scales: Float[Tensor, "layers kv_heads tokens"]
    value_scales: Float[Tensor, "layers kv_heads tokens"]

    @property
    def num_bytes(self) -> int:
        """Memory."""
        return self.keys.nbytes + self.values.nbytes + self.key_scales.nbytes + self.value_scales.nbytes

    @property
    def stored_bytes(self) -> int:
        """Memory or disk."""
        return self.num_bytes

    def read(self, layer: int, heads: slice, start: int, stop: int) -> Pair:
        """Tokens ``start`` to ``stop`` in one layer, decoded."""
        at = (layer, heads, slice(start, stop))
        return (
            self.keys[at] * self.key_scales[at][..., None],
            self.values[at] * self.value_scales[at][..., None],
        )


def in_8_bits(rows: Rows) -> Int8Rows:
    """Rounded to the nearest of 255 steps, symmetric around 0."""
    (keys, key_scales), (values, value_scales) = _rounded(rows.keys), _rounded(rows.values)
    return Int8Rows(keys=keys, values=values, key_scales=key_scales, value_scales=value_scales)


def _rounded(x: Float[Tensor, "layers kv_heads tokens head_dim"]) -> tuple[Tensor, Tensor]:
    precise = x.double() if x.dtype == torch.float64 else x.float()  # half a scale's digits would be lost in half
    scales = precise.abs().amax(-1) / 127
    steps = precise / torch.where(scales > 0, scales, torch.ones_like(scales))[..., None]
    return steps.round().to(torch.int8), scales


def joined(parts: Sequence[Rows] | Sequence[Int8Rows]) -> Rows | Int8Rows:
    """One stretch after the other, copied once."""
    whole = [part for part in parts if isinstance(part, Rows)]
    if len(whole) == len(parts):
        return Rows(keys=_joined([one.keys for one in whole]), values=_joined([one.values for one in whole]))
    small = [part for part in parts if isinstance(part, Int8Rows)]
    assert len(small) == len(parts), "one stream has one tier"
    return Int8Rows(
        keys=_joined([one.keys for one in small]),
        values=_joined([one.values for one in small]),
        key_scales=_joined([one.key_scales for one in small]),
        value_scales=_joined([one.value_scales for one in small]),
    )


def _joined(parts: list[Tensor]) -> Tensor:
    return torch.cat(parts, dim=2)
