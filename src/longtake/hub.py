"""Load and save models: a bundled name, a checkpoint folder, or a hub id.

A checkpoint is a folder with ``config.json`` (``method``, ``config``, digest of the weights, notes),
``model.safetensors`` and ``README.md`` (the model card). What the bundled models know is said in their cards.
A folder as transformers writes it (``model_type`` in its ``config.json``) runs as MC-ViT if it is a ViViT; any other is
a frozen video model and runs as StateKV.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import tempfile
from collections.abc import Mapping
from importlib import import_module, metadata
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar, cast

import huggingface_hub
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from longtake.config import merged, suggest
from longtake.errors import CheckpointError
from longtake.protocol import StreamModel

logger = logging.getLogger(__name__)

METHODS: dict[str, tuple[str, str]] = {
    "sts": ("longtake.methods.sts", "STS"),
    "mcvit": ("longtake.methods.mcvit", "MCViT"),
    "sdc": ("longtake.methods.baselines.sdc", "SDC"),
}
"""Name of a method in ``config.json`` -> module and class, imported when needed.

Such a class is an ``nn.Module`` with a classmethod ``from_config(dict)`` and a dataclass ``config`` with ``to_dict()``.
"""

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
CARD_FILE = "README.md"
_WANTED = (CARD_FILE, "*.json", "model*.safetensors", "*.jinja", "vocab.*", "merges.txt", "tokenizer.model", "*.py")
"""What is downloaded of a repository: all that either kind of folder is read from, at its top."""
_HUB_ID = re.compile(r"[\w][\w.-]*/[\w][\w.-]*")

ModelT = TypeVar("ModelT", bound="Published")


class Published(huggingface_hub.ModelHubMixin, library_name="longtake", license="apache-2.0"):
    """Mixin that gives a model ``from_pretrained``, ``save_pretrained`` and ``push_to_hub`` in longtake's layout."""

    def _save_pretrained(self, save_directory: Path) -> None:
        save(cast(nn.Module, self), save_directory)

    @classmethod
    def _from_pretrained(  # pyright: ignore[reportIncompatibleMethodOverride] an option that is not known must fail
        cls: type[ModelT],
        *,
        model_id: str,
        revision: str | None,
        cache_dir: str | Path | None,
        force_download: bool,
        local_files_only: bool,
        token: str | bool | None,
        config: object = None,
    ) -> ModelT:
        folder = Path(model_id)
        if not folder.is_dir():
            folder = _download(
                model_id,
                revision=revision,
                cache_dir=cache_dir,
                force_download=force_download,
                local_files_only=local_files_only,
                token=token,
            )
        model = _load_folder(folder, "cpu", {})
        if not isinstance(model, cls):
            raise CheckpointError(f"{model_id} holds a {type(model).__name__}, expected a {cls.__name__}")
        return model


def load(name_or_path: str | Path, *, device: str = "auto", **options: object) -> StreamModel[Any]:
    """Load a model, ready to run.

    Args:
        name_or_path: A bundled name (``bundled()`` lists them), a checkpoint folder, or a hub id ``owner/name``, looked
            for in that order.
        device: As in torch; ``auto`` takes a GPU if torch sees one.
        options: Fields of the model's config to set otherwise than the checkpoint has them; for a nested config, a dict
            of the fields to set. For a frozen video model, those of ``StateKVConfig``, and ``dtype`` and
            ``trust_remote_code``, as ``longtake.methods.statekv_load.load_folder`` takes them.

    Raises:
        CheckpointError: No such model, or its files are missing, damaged or of another kind.
        ConfigError: An option that the model's config does not have, or a value that it refuses.
    """
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    folder = find(name_or_path)
    logger.info("loading %s from %s onto %s", name_or_path, folder, device)
    if is_video_model(folder):
        return _load_video_model(folder, str(name_or_path), device, options)
    return _load_folder(folder, device, options)


def save(model: nn.Module, folder: str | Path, *, notes: Mapping[str, object] | None = None, card: str = "") -> None:
    """Write a checkpoint folder; each file appears whole or not at all, ``config.json`` last.

    Args:
        notes: Kept in ``config.json`` under ``notes``: recipe, seed, scores.
        card: Text of ``README.md``; empty leaves the one that is there, or writes a short one.
    """
    method = _method_of(model)
    weights = {name: tensor.contiguous().cpu() for name, tensor in unique_tensors(model).items()}
    config: dict[str, object] = {
        "method": method,
        "config": cast(Any, model).config.to_dict(),
        "longtake": metadata.version("longtake"),
        "weights_sha256": weights_digest(weights),
    }
    if notes:
        config["notes"] = dict(notes)
    text = json.dumps(config, indent=2) + "\n"
    folder = Path(folder)
    if not card and not (folder / CARD_FILE).exists():
        card = f"# {folder.name}\n\nA longtake model, method `{method}`. Load it with `longtake.load(FOLDER)`.\n"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".saving-", dir=folder) as unfinished:
            save_file(weights, Path(unfinished) / WEIGHTS_FILE, metadata={"format": "pt"})
            (Path(unfinished) / CONFIG_FILE).write_text(text, encoding="utf-8")
            if card:
                (Path(unfinished) / CARD_FILE).write_text(card, encoding="utf-8")
                (Path(unfinished) / CARD_FILE).replace(folder / CARD_FILE)
            (Path(unfinished) / WEIGHTS_FILE).replace(folder / WEIGHTS_FILE)
            (Path(unfinished) / CONFIG_FILE).replace(folder / CONFIG_FILE)
    except OSError as error:
        raise CheckpointError(f"cannot write a checkpoint to {folder}: {error.strerror or error}") from error


def bundled() -> tuple[str, ...]:
    """Names of the models that come with the package."""
    root = _bundled_root()
    if not root.is_dir():
        return ()
    return tuple(sorted(folder.name for folder in root.iterdir() if (folder / CONFIG_FILE).is_file()))


def find(name_or_path: str | Path) -> Path:
    """The checkpoint folder for a bundled name, a path or a hub id; only the last asks the network."""
    name = str(name_or_path)
    if not name:
        raise CheckpointError("the model's name is empty, expected a bundled name, a folder or a hub id")
    if name in bundled():
        return _bundled_root() / name
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder
    if folder.exists():
        raise CheckpointError(f"{name} is a file, expected a checkpoint folder with {CONFIG_FILE} and {WEIGHTS_FILE}")
    if isinstance(name_or_path, str) and _HUB_ID.fullmatch(name):
        return _download(name)
    if name in presets():
        raise CheckpointError(f"{name} is a preset: sizes without weights; give a folder or hub id that has weights")
    raise CheckpointError(
        f"no model {name!r}: neither bundled, nor a folder, nor a hub id (owner/name); {suggest(name, bundled())}"
    )


def read_config(folder: Path) -> dict[str, Any]:
    """``config.json`` of a checkpoint folder, checked for ``method`` and ``config``."""
    config = _read_any_config(folder)
    if not isinstance(config.get("config"), dict) or "method" not in config:
        raise CheckpointError(
            f"{folder / CONFIG_FILE} names neither a longtake method (keys method and config) nor a model_type of "
            "transformers; expected one of them"
        )
    return config


def is_video_model(folder: Path) -> bool:
    """Whether a folder is one of transformers' and not one of ours."""
    config = _read_any_config(folder)
    return "model_type" in config and "method" not in config


def method_name(folder: Path) -> str:
    """Which method a checkpoint folder runs as: what its config names, or what its transformers model becomes."""
    config = _read_any_config(folder)
    if is_video_model(folder):
        return "mcvit" if config.get("model_type") == "vivit" else "statekv"
    return str(config.get("method", ""))


def video_model_module(folder: Path) -> Any:
    """What loads (``load_folder``) and describes (``describe``) a folder of transformers'."""
    is_vivit = method_name(folder) == "mcvit"
    return import_module("longtake.methods.mcvit_vivit" if is_vivit else "longtake.methods.statekv_load")


def presets() -> dict[str, tuple[str, Any]]:
    """Named sizes without weights: name -> its method, and a function that makes the config."""
    modules = {method: import_module(module) for method, (module, _) in METHODS.items()}
    return {
        name: (method, make)
        for method, module in modules.items()
        for name, make in getattr(module, "PRESETS", {}).items()
    }


def method_class(method: object) -> type[Any]:
    """The class behind a method's name. Raises CheckpointError for a name that this version does not know."""
    if not isinstance(method, str) or method not in METHODS:
        hint = suggest(str(method), METHODS)
        raise CheckpointError(f"checkpoint is of method {method!r}, which this version does not know; {hint}")
    module, name = METHODS[method]
    return getattr(import_module(module), name)


def fingerprint(model: nn.Module) -> str:
    """Digest of config and weights: states of two models can be exchanged only if it is equal."""
    config = json.dumps([_method_of(model), cast(Any, model).config.to_dict()], sort_keys=True)
    return hashlib.sha256((config + weights_digest(unique_tensors(model))).encode()).hexdigest()


def weights_digest(weights: Mapping[str, Tensor]) -> str:
    """SHA-256 over names, types, shapes and values, whatever the order or the file."""
    digest = hashlib.sha256()
    for name in sorted(weights):
        tensor = weights[name].detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def unique_tensors(model: nn.Module) -> dict[str, Tensor]:
    """The model's ``state_dict`` with tied weights under one name only, as safetensors wants it."""
    seen: set[tuple[object, ...]] = set()
    unique: dict[str, Tensor] = {}
    for name, tensor in sorted(model.state_dict().items()):
        place = (tensor.device, tensor.data_ptr(), tensor.shape, tensor.stride())
        if tensor.numel() == 0 or tensor.is_meta or place not in seen:
            unique[name] = tensor
        seen.add(place)
    return unique


def _read_any_config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG_FILE
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CheckpointError(f"{folder} has no {CONFIG_FILE}; expected a checkpoint folder") from error
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error
    if not isinstance(config, dict):
        raise CheckpointError(f"{path} holds a {type(config).__name__}, expected an object")
    return cast("dict[str, Any]", config)


def _load_video_model(folder: Path, name: str, device: str, options: Mapping[str, object]) -> StreamModel[Any]:
    load_folder = video_model_module(folder).load_folder
    of_loading = {key: options[key] for key in ("dtype", "trust_remote_code") if key in options}
    of_config = {key: value for key, value in options.items() if key not in of_loading}
    return load_folder(folder, of_config, name=name, device=device, **of_loading)


def _load_folder(folder: Path, device: str, options: Mapping[str, object]) -> StreamModel[Any]:
    config = read_config(folder)
    model_class = method_class(config["method"])
    weights = _read_weights(folder / WEIGHTS_FILE)
    expected = config.get("weights_sha256")
    if expected is not None and expected != weights_digest(weights):
        raise CheckpointError(f"{folder / WEIGHTS_FILE} is not what was saved (its digest differs); copy it anew")
    model = model_class.from_config(merged(config["config"], options))
    _put_weights(model, weights, folder)
    return model.to(device).eval()


def _read_weights(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise CheckpointError(f"{path.parent} has no {path.name}; expected the weights beside {CONFIG_FILE}")
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path} is damaged ({error}); copy it anew") from error


def _put_weights(model: nn.Module, weights: Mapping[str, Tensor], folder: Path) -> None:
    expected = unique_tensors(model)
    for name, tensor in expected.items():
        if name not in weights:
            raise CheckpointError(
                f"{folder}: weights lack {name}, which its config asks for; they do not belong together"
            )
        if weights[name].shape != tensor.shape:
            raise CheckpointError(
                f"{folder}: {name} has shape {tuple(weights[name].shape)}, its config asks for {tuple(tensor.shape)}; "
                "config and weights do not belong together"
            )
    surplus = sorted(set(weights) - set(expected))
    if surplus:
        raise CheckpointError(
            f"{folder}: weights hold {surplus[0]}, which its config does not; they do not belong together"
        )
    model.load_state_dict(dict(weights), strict=False)


def _method_of(model: nn.Module) -> str:
    for method, (module, name) in METHODS.items():
        if any(base.__module__ == module and base.__qualname__ == name for base in type(model).__mro__):
            return method
    raise CheckpointError(f"{type(model).__name__} is not a method of longtake; expected one of {', '.join(METHODS)}")


def _download(
    hub_id: str,
    *,
    revision: str | None = None,
    cache_dir: str | Path | None = None,
    force_download: bool = False,
    local_files_only: bool = False,
    token: str | bool | None = None,
) -> Path:
    try:
        folder = huggingface_hub.snapshot_download(
            hub_id,
            revision=revision,
            cache_dir=cache_dir,
            force_download=force_download,
            local_files_only=local_files_only,
            token=token,
            allow_patterns=list(_WANTED),
            ignore_patterns=["*/*"],
        )
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise CheckpointError(
            f"no model {hub_id!r}: neither bundled nor a folder, and the hub says: {reason}"
        ) from error
    return Path(folder)


def _bundled_root() -> Path:
    return Path(str(files("longtake") / "bundled"))
