"""longtake: video that is long or never ends, at constant cost per frame.

Names are imported when first used, so that ``import longtake`` and ``longtake --help`` stay free of torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longtake.hub import load as load
    from longtake.session import Session as Session
    from longtake.session import caption as caption
    from longtake.video import segments as segments

    __version__: str

__all__ = ["Session", "__version__", "caption", "load", "segments"]

_HOMES = {
    "Session": "longtake.session",
    "caption": "longtake.session",
    "load": "longtake.hub",
    "segments": "longtake.video",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("longtake")
    if name not in _HOMES:
        raise AttributeError(f"module 'longtake' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
