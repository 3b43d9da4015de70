"""`beartype` without its checks: 400 modules that a plugin would carry, for type hints that hold anyway."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any


class BeartypeStrategy(enum.Enum):
    """How much is checked; here, nothing is."""

    O0, O1, Ologn, On = range(4)


class BeartypeConf:
    """Takes any configuration."""

    def __init__(self, **options: Any) -> None:
        self.options = options


def beartype(obj: Any = None, *, conf: BeartypeConf | None = None) -> Any:
    """Returns the function or class as it is."""
    unchanged: Callable[[Any], Any] = lambda one: one  # noqa: E731
    return unchanged if obj is None else obj


def beartype_this_package(*, conf: BeartypeConf | None = None) -> None:
    """Does nothing."""
