"""Tiny random video models as folders, the way transformers writes them and longtake loads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.vlm.families import make
from transformers.utils import logging

SETTINGS = {"fps": 2.0, "height": 64, "width": 96, "budget": 48, "max_new_tokens": 8, "caption_seconds": 2.0}
"""For Qwen3-VL: small frames and short answers."""


def write_folder(folder: Path, name: str = "qwen3-vl", *, louder: float = 1.0, **settings: Any) -> Path:
    """A model of ``tests.vlm.families`` on disk, with ``settings`` as its ``longtake.json``."""
    model, processor = make(name)
    for weights in model.requires_grad_(False).parameters():
        weights *= louder
    level = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        model.save_pretrained(folder)
        processor.save_pretrained(folder)
    finally:
        logging.set_verbosity(level)
        logging.enable_progress_bar()
    if settings:
        (folder / "longtake.json").write_text(json.dumps(settings))
    return folder
