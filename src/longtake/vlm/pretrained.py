"""A video model's folder as transformers writes it: checked, then read by transformers' own classes.

Nothing is fetched, no pickle is opened, and code that a folder brings along runs only if that is asked for.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from transformers import CONFIG_MAPPING, AutoConfig, AutoModel, AutoModelForImageTextToText, AutoProcessor
from transformers.utils import logging as their_logging

from longtake.errors import CheckpointError, ConfigError, LongtakeError
from longtake.vlm.families.choose import FAMILIES, family_named
from longtake.vlm.families.family import Family
from longtake.vlm.families.refuse import refuse_other_attention

logger = logging.getLogger(__name__)

WEIGHTS, SHARDS = "model.safetensors", "model.safetensors.index.json"
PROCESSOR_FILES = ("processor_config.json", "preprocessor_config.json", "video_preprocessor_config.json")
TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json")
DTYPES = ("float32", "bfloat16", "float16")


def read_config(folder: Path, *, remote_code: bool = False) -> Any:
    """The model's config, if its family is served.

    Raises:
        CheckpointError: It cannot be read, or needs code of its own that was not asked for.
        ConfigError: StateKV does not serve such a model.
    """
    stated = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    model_type = str(stated.get("model_type"))
    served = any(model_type in kind.model_types for kind in FAMILIES)
    if "auto_map" in stated and not remote_code and not (served and model_type in CONFIG_MAPPING):
        raise CheckpointError(
            f"{folder} brings code of its own, which is not run unless you ask for it: trust_remote_code=True "
            "(longtake ask --trust-remote-code), if you know where it comes from"
        )
    if not served and model_type not in CONFIG_MAPPING and not remote_code:
        family_named(model_type)
    with reading(folder, "config"):
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=remote_code)
    refuse_other_attention(config)
    family_named(model_type)
    return config


def read_processor(folder: Path, *, remote_code: bool = False) -> Any:
    """The model's processor: tokenizer, chat template, and what makes pixels of frames."""
    for what, names in (("tokenizer", TOKENIZER_FILES), ("processor", PROCESSOR_FILES)):
        if not any((folder / name).is_file() for name in names):
            raise CheckpointError(f"{folder} has no {what}; expected {' or '.join(names)} beside config.json")
    with reading(folder, "processor"):
        processor = AutoProcessor.from_pretrained(folder, local_files_only=True, trust_remote_code=remote_code)
    if missing := [part for part in ("tokenizer", "video_processor") if not hasattr(processor, part)]:
        raise CheckpointError(
            f"{folder} has a {type(processor).__name__} without {missing[0]}; expected the processor of a video model"
        )
    return processor


def read_model(folder: Path, config: Any, *, device: str, dtype: str = "auto", remote_code: bool = False) -> Any:
    """The model itself, frozen, with every weight it asks for.

    Args:
        folder: Of the model.
        config: What ``read_config`` gave.
        device: As in torch.
        dtype: ``auto`` for that of the weights (float32 for float16 on a CPU), or one of ``DTYPES``.
        remote_code: Run the folder's own code.
    """
    _check_weights(folder)
    wanted = _dtype_of(config, dtype, device)
    with reading(folder, "model"):
        model, found = _class_of(config, remote_code).from_pretrained(
            folder,
            config=config,
            dtype=wanted,
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=remote_code,
            output_loading_info=True,
        )
    if missing := sorted(found["missing_keys"]):
        raise CheckpointError(
            f"{folder}: weights lack {missing[0]} ({len(missing)} in all), which its config asks for; copy it anew"
        )
    if surplus := sorted(found["unexpected_keys"]):
        logger.warning("%s: %d weights are of no use to the model, %s for one", folder, len(surplus), surplus[0])
    return model.requires_grad_(False).eval().to(device)


@contextmanager
def reading(folder: Path, what: str) -> Iterator[None]:
    """Transformers without its progress bars and advice; whatever it raises becomes one line of ours."""
    level, bars = their_logging.get_verbosity(), their_logging.is_progress_bar_enabled()
    their_logging.set_verbosity_error()
    their_logging.disable_progress_bar()
    try:
        yield
    except LongtakeError:
        raise
    except Exception as error:  # a broken folder shows itself in every kind of error
        reason = " ".join(str(error).split()) or type(error).__name__
        reason = reason if len(reason) <= 300 else reason[:297] + "..."
        raise CheckpointError(f"{folder}: transformers cannot read its {what}: {reason}") from error
    finally:
        their_logging.set_verbosity(level)
        if bars:
            their_logging.enable_progress_bar()


class OnPaper:
    """A model without weights that says it is on the CPU: enough for its family to make prompts."""

    def __init__(self, config: Any, *, dtype: str = "auto") -> None:
        with reading(Path(), "model"), torch.device("meta"):
            self._model = AutoModelForImageTextToText.from_config(config, dtype=_dtype_of(config, dtype, "cpu"))
        self.device = torch.device("cpu")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


def parameter_counts(model: Any) -> dict[str, int]:
    """Parameters by part: the vision tower, the decoder and what lies between, by their names in the model."""
    counts: Counter[str] = Counter()
    for name, tensor in model.named_parameters():
        counts[name.removeprefix("model.").partition(".")[0]] += tensor.numel()
    return dict(counts)


def frame_tokens(family: Family) -> int:
    """Tokens of one chunk of frames."""
    pixels = torch.zeros(family.frames_per_chunk, 3, family.height, family.width, dtype=torch.uint8)
    chunk = family.frames(pixels, (0.0,) * family.frames_per_chunk, index=0, position=0)
    return chunk.input_ids.shape[1]


def _class_of(config: Any, remote_code: bool) -> Any:
    brought = getattr(config, "auto_map", None) or {}
    if remote_code and "AutoModel" in brought and "AutoModelForImageTextToText" not in brought:
        return AutoModel
    return AutoModelForImageTextToText


def _dtype_of(config: Any, dtype: str, device: str) -> torch.dtype:
    if dtype not in ("auto", *DTYPES):
        raise ConfigError(f"dtype is {dtype!r}, expected auto, {', '.join(DTYPES)}")
    wanted = getattr(torch, dtype) if dtype != "auto" else config.dtype or torch.float32
    if dtype == "auto" and wanted == torch.float16 and torch.device(device).type == "cpu":
        return torch.float32  # half of a CPU's operations do not exist in float16
    return wanted


def _check_weights(folder: Path) -> None:
    names = [WEIGHTS]
    if (folder / SHARDS).is_file():
        try:
            names = sorted(set(json.loads((folder / SHARDS).read_text(encoding="utf-8"))["weight_map"].values()))
        except (OSError, ValueError, KeyError, AttributeError) as error:
            raise CheckpointError(f"{folder / SHARDS} cannot be read ({error!r}); copy it anew") from error
    for name in names:
        path = folder / name
        if not path.is_file():
            raise CheckpointError(f"{folder} has no {name}; expected the weights beside config.json, as safetensors")
        try:
            with safe_open(path, framework="pt"):
                pass
        except (SafetensorError, OSError) as error:
            raise CheckpointError(f"{path} is damaged ({error}); copy it anew") from error
