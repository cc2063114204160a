"""A StateKV model from the folder of a frozen video model: ``longtake.load`` comes here for transformers' folders.

A file ``longtake.json`` beside the weights may hold other defaults for this model (any fields of ``StateKVConfig``)
and, under ``notes``, what is known about it.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from longtake.config import from_dict, merged, to_dict
from longtake.errors import CheckpointError, ConfigError
from longtake.methods.statekv import StateKV
from longtake.methods.statekv_config import StateKVConfig
from longtake.vlm.families import Family, family_named, family_of
from longtake.vlm.horizon import fix_rope
from longtake.vlm.pretrained import (
    OnPaper,
    frame_tokens,
    parameter_counts,
    read_config,
    read_model,
    read_processor,
    reading,
)

logger = logging.getLogger(__name__)

SETTINGS_FILE = "longtake.json"
ROOM_TOKENS = 1024
"""Of a horizon, for the questions."""


def load_folder(
    folder: Path,
    options: Mapping[str, object],
    *,
    name: str = "",
    device: str = "cpu",
    dtype: str = "auto",
    trust_remote_code: bool = False,
) -> StateKV:
    """The model, ready to run.

    Args:
        folder: As transformers writes it.
        options: Fields of ``StateKVConfig``, over those of the folder's ``longtake.json``.
        name: What the model was asked for by.
        device: As in torch.
        dtype: ``auto``, ``float32``, ``bfloat16`` or ``float16``.
        trust_remote_code: Run code that the folder brings along.

    Raises:
        CheckpointError: Files are missing or damaged.
        ConfigError: An option that does not exist or cannot work, or a model that is not served.
    """
    settings, _ = read_settings(folder)
    config = from_dict(StateKVConfig, merged(settings, options), where=name or folder.name)
    theirs = read_config(folder, remote_code=trust_remote_code)
    kind, length = family_named(theirs.model_type), _length(config)
    if kind.needs_length and not length:
        raise ConfigError(
            f"{kind.name} says before the first frame how long the video will be; "
            "give horizon_seconds (--horizon), or use a family that need not know"
        )
    processor = read_processor(folder, remote_code=trust_remote_code)
    text = theirs.get_text_config()
    if config.horizon_seconds is not None and not kind.needs_length and not _scales(text):
        logger.warning(
            "horizon_seconds %g changes nothing: neither %s's prompt nor its rotary scaling depends on the length",
            config.horizon_seconds,
            kind.name,
        )
    fix_rope(text, _horizon_tokens(config, theirs, processor))
    model = read_model(folder, theirs, device=device, dtype=dtype, remote_code=trust_remote_code)
    with reading(folder, "prompts"):
        family = family_of(model, processor, height=config.height, width=config.width, **length)
    return StateKV(family, config, name=name)


def describe(folder: Path) -> dict[str, Any]:
    """The facts about a folder's model, without reading any weights."""
    settings, notes = read_settings(folder)
    config = from_dict(StateKVConfig, settings, where=folder.name)
    theirs = read_config(folder)
    with reading(folder, "prompts"):
        family = _on_paper(config, theirs, read_processor(folder))
    model = StateKV(family, config)
    spec = model.segment_spec
    return {
        "method": "statekv",
        "family": family.name,
        "segment": f"{spec.num_frames} frames at {spec.fps:g} fps, {spec.width}x{spec.height}",
        "state_bytes": model.max_carried_bytes(),
        "detailed_bytes": config.detailed_bytes,
        "parameters": parameter_counts(family.model),
        "settings": to_dict(config),
        "notes": notes,
    }


def read_settings(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Defaults for this model and the notes about it; both empty without a ``longtake.json``."""
    path = folder / SETTINGS_FILE
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}, {}
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error
    if not isinstance(settings, dict) or not isinstance(settings.get("notes", {}), dict):
        raise CheckpointError(f"{path} holds no settings; expected an object of StateKVConfig's fields, and notes")
    settings = cast("dict[str, Any]", settings)
    return {key: value for key, value in settings.items() if key != "notes"}, settings.get("notes", {})


def _length(config: StateKVConfig) -> dict[str, Any]:
    """What a family is told about the stream to come."""
    if config.horizon_seconds is None:
        return {}
    frames = max(1, round(config.horizon_seconds * config.fps))
    return {"horizon_seconds": config.horizon_seconds, "horizon_frames": frames}


def _scales(text: Any) -> bool:
    """Whether rotary frequencies depend on the length of the stream."""
    return (text.rope_parameters or {}).get("rope_type") == "dynamic"


def _horizon_tokens(config: StateKVConfig, theirs: Any, processor: Any) -> int:
    """How many tokens the stream may become, as far as rotary scaling must know."""
    text = theirs.get_text_config()
    if config.horizon_seconds is None or not _scales(text):
        return text.max_position_embeddings
    family = _on_paper(config, theirs, processor)
    chunks = math.ceil(config.horizon_seconds * config.fps / family.frames_per_chunk)
    return chunks * frame_tokens(family) + ROOM_TOKENS


def _on_paper(config: StateKVConfig, theirs: Any, processor: Any) -> Family:
    kind = family_named(theirs.model_type)
    length = _length(config) or ({"horizon_seconds": 60.0, "horizon_frames": 60} if kind.needs_length else {})
    return kind(OnPaper(theirs), processor, height=config.height, width=config.width, **length)
