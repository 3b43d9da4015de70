"""Modules of which every name can be imported, and none can be used: what only a listening server needs.

Objects of their classes can be made, because frameworks make some that they use only to listen; using one is an error.
"""

from __future__ import annotations

import sys
import types
from typing import Any


class _Unusable:
    """An object of a hollow class."""

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise RuntimeError(f"`{self._name}` cannot be used inside of a plugin")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # As a decorator, it leaves the function as it is.
        if len(args) == 1 and callable(args[0]) and not kwargs:
            return args[0]
        raise RuntimeError(f"`{self._name}` cannot be used inside of a plugin")


class _Hollow(type):
    """A class of a hollow module. It can be inherited from, and used in type hints."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls.__dict__.get("_hollow"):
            return _Unusable(f"{cls.__module__}.{cls.__name__}")
        return super().__call__(*args, **kwargs)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__") or not cls.__dict__.get("_hollow"):
            raise AttributeError(name)
        return _made(f"{cls.__module__}.{cls.__name__}", name)

    def __or__(cls, other: Any) -> Any:
        return Any

    __ror__ = __or__

    def __getitem__(cls, item: Any) -> Any:
        return cls


def _made(module: str, name: str) -> Any:
    return _Hollow(name, (), {"__module__": module, "_hollow": True})


class _Module(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name.isupper() and self.__name__ in ("fcntl", "termios", "tty"):
            return 0
        if name[:1].islower() and f"{self.__name__}.{name}" in sys.modules:
            return sys.modules[f"{self.__name__}.{name}"]
        made = _exception(self.__name__, name) if name.endswith(("Error", "Exception")) else _made(self.__name__, name)
        setattr(self, name, made)
        return made


def _exception(module: str, name: str) -> Any:
    return type(name, (Exception,), {"__module__": module})


def module(name: str) -> types.ModuleType:
    made = _Module(name)
    made.__path__ = []
    made.__version__ = "0"
    return made
