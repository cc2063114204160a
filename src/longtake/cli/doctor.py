"""``longtake doctor``: what longtake finds on this machine, and what that means."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

_EXTRAS = {
    "train": ("accelerate", "peft"),
    "eval": ("matplotlib", "pycocoevalcap"),
    "serve": ("starlette", "uvicorn"),
    "scale": ("ray",),
}


def doctor(as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of lines.")] = False) -> None:
    """Say what longtake finds on this machine."""
    findings = examine()
    if as_json:
        print(json.dumps(findings))
        return
    width = max(len(name) for name in findings)
    for name, finding in findings.items():
        print(f"{name:<{width}}  {finding}")


def examine() -> dict[str, str]:
    """What is found, in words, under short names; a thing that is missing says what it is needed for."""
    return {
        "longtake": metadata.version("longtake"),
        "python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "torch": _torch(),
        "device": _device(),
        "transformers": metadata.version("transformers"),
        "av": _av(),
        "ffmpeg": _program("ffmpeg", "-version", "only the tests use it"),
        "java": _program("java", "-version", "METEOR is left out of scores"),
        **{f"extra {extra}": _extra(extra, packages) for extra, packages in _EXTRAS.items()},
        "models": _models(),
        "disk": f"{shutil.disk_usage(Path.cwd()).free / 1e9:.1f} GB free at {Path.cwd()}",
        "shared data": _shared(),
    }


def _torch() -> str:
    import torch

    build = f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPU"
    return f"{torch.__version__}, {build} build, {torch.get_num_threads()} threads"


def _device() -> str:
    import torch

    if torch.cuda.is_available():
        return f"{torch.cuda.get_device_name()}, bf16 {'yes' if torch.cuda.is_bf16_supported() else 'no'}"
    return f"cpu ({os.cpu_count()} cores)"


def _av() -> str:
    import av

    libraries = ", ".join(
        f"{name} {'.'.join(str(part) for part in av.library_versions[name])}" for name in ("libavformat", "libavcodec")
    )
    return f"{av.__version__} with {libraries}"


def _program(name: str, option: str, without: str) -> str:
    path = shutil.which(name)
    if path is None:
        return f"not found: {without}"
    try:
        done = subprocess.run([path, option], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        return f"{path} does not run ({error}): {without}"
    return ((done.stdout or done.stderr).splitlines() or [path])[0]


def _extra(extra: str, packages: tuple[str, ...]) -> str:
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        return f"not installed ({', '.join(missing)}): pip install 'longtake[{extra}]'"
    return ", ".join(f"{package} {metadata.version(package)}" for package in packages)


def _models() -> str:
    from longtake.hub import bundled

    return ", ".join(bundled()) or "none bundled"


def _shared() -> str:
    folder = Path(os.environ.get("LONGTAKE_SHARED", "../shared"))
    if not folder.is_dir():
        return f"none at {folder}: tests on shared cases are skipped (LONGTAKE_SHARED names the folder)"
    return f"{folder.resolve()} ({', '.join(sorted(item.name for item in folder.iterdir() if item.is_dir()))})"
