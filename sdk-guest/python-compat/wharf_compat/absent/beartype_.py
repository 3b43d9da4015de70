"""`beartype` without its checks, for packages whose type hints hold anyway: it has 400 modules. The server's own code that relies on them is told."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from ..runtime.watch import watch


class BeartypeStrategy(enum.Enum):
    """How much is checked; here, nothing is."""

    O0, O1, Ologn, On = range(4)


class BeartypeConf:
    """Takes any configuration."""

    def __init__(self, **options: Any) -> None:
        self.options = options


def beartype(obj: Any = None, *, conf: BeartypeConf | None = None) -> Any:
    """Returns the function or class of a package as it is."""
    if conf is None or conf.options.get("strategy") is not BeartypeStrategy.O0:
        if watch.by_server():
            raise RuntimeError("`beartype` cannot check arguments inside of a plugin: check them in the function, or by pydantic's `validate_call`")
    unchanged: Callable[[Any], Any] = lambda one: one  # noqa: E731
    return unchanged if obj is None else obj


def beartype_this_package(*, conf: BeartypeConf | None = None) -> None:
    """Does nothing."""
