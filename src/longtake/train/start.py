"""Where a run starts from: the weights of another run, or of a saved model."""

from __future__ import annotations

from pathlib import Path

from safetensors.torch import load_file
from torch import nn

from longtake.errors import CheckpointError


def start_from(objective: nn.Module, folder: Path, parts: tuple[str, ...] = ()) -> None:
    """Take over weights where name and shape agree: of a run (training heads too) or of a saved model.

    Args:
        objective: With its model under ``model``.
        folder: Of the run, or of the model.
        parts: Parts of the model to take, for example ``("encoder",)``; empty: everything.

    Raises:
        CheckpointError: Neither is there, or nothing fits.
    """
    places = (folder / "checkpoint" / "model.safetensors", folder / "model.safetensors")
    found = next((path for path in places if path.is_file()), None)
    if found is None:
        raise CheckpointError(f"start_from {folder}: neither a run nor a model folder; train that recipe before")
    weights = load_file(found)
    if found == places[1]:
        weights = {f"model.{name}": tensor for name, tensor in weights.items()}
    own, prefixes = objective.state_dict(), tuple(f"model.{part}." for part in parts)
    fitting = {
        name: tensor
        for name, tensor in weights.items()
        if name in own and own[name].shape == tensor.shape and (not parts or name.startswith(prefixes))
    }
    if not fitting:
        raise CheckpointError(f"start_from {folder}: none of its weights fits; it was trained for another model")
    objective.load_state_dict(fitting, strict=False)
