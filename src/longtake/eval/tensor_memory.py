"""Bytes of tensors alive at once, on any device: what ``torch.cuda.max_memory_allocated`` tells on a GPU.

Unlike the process's own size it knows no allocator, no packed weights and no scratch space within an operator.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode


class TensorMemory(TorchDispatchMode):
    """Follows the storages that are made within it; those from before, weights for instance, do not count."""

    def __init__(self) -> None:
        super().__init__()
        self.alive_bytes = 0
        self.peak_bytes = 0
        self._sizes: dict[int, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        known = {storage._cdata for storage in _storages((args, kwargs))}
        out = func(*args, **(kwargs or {}))
        for storage in _storages(out):
            if storage._cdata not in known and storage._cdata not in self._sizes:
                self._sizes[storage._cdata] = storage.nbytes()
                self.alive_bytes += storage.nbytes()
                self.peak_bytes = max(self.peak_bytes, self.alive_bytes)
                weakref.finalize(storage, self._gone, storage._cdata)
        return out

    def _gone(self, storage: int) -> None:
        self.alive_bytes -= self._sizes.pop(storage)


def _storages(tree: Any) -> list[torch.UntypedStorage]:
    return [leaf.untyped_storage() for leaf in pytree.tree_leaves(tree) if isinstance(leaf, Tensor)]
