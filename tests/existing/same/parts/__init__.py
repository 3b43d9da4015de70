"""A package of the server: submodules that are loaded when they are used, and files next to them."""

from __future__ import annotations

import importlib
from typing import Any

LAZY = {"late", "deeper"}


def __getattr__(name: str) -> Any:
    if name in LAZY:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
