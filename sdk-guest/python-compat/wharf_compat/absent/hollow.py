"""Modules of which every name can be imported, and none can be used: what only a listening server needs, and what is compiled.

Objects of their classes can be made while a server starts, because servers make some that they never use; using one is an error. In a
call, so is making one.
"""

from __future__ import annotations

import builtins
import sys
import types
from typing import Any

packages: dict[str, str] = {}
"""The compiled package of a hollow module, with its version."""
calling = False
"""Whether a call runs, and not the start of the server."""


def _why(module: str, name: str) -> str:
    package = packages.get(module)
    return f"`{module}.{name}` cannot be used inside of a plugin" + (f": {package} is compiled for one kind of machine" if package else "")


class _Unusable:
    """An object of a hollow class."""

    def __init__(self, module: str, name: str) -> None:
        self.__dict__["_of"] = module, name

    def _is_passed_on(self) -> bool:
        """Whether what is done with it gives another such object, as while a server of a package starts."""
        return self._of[0] in packages and not calling

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        module, of = self._of
        if self._is_passed_on():
            return _Unusable(module, f"{of}.{name}")
        raise RuntimeError(_why(module, of))

    def _refused(self, *args: Any) -> Any:
        """Nothing is known of it: neither its text nor whether it equals another one. While a server starts, it may be looked at."""
        if calling:
            raise RuntimeError(_why(*self._of))
        return NotImplemented

    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __add__ = __radd__ = __mod__ = __await__ = __bytes__ = __int__ = __float__ = _refused
    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        self._refused()
        return True

    def __str__(self) -> str:
        self._refused()
        return object.__repr__(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # As a decorator, it leaves the function as it is.
        if len(args) == 1 and callable(args[0]) and not kwargs:
            return args[0]
        if self._is_passed_on():
            return _Unusable(*self._of)
        raise RuntimeError(_why(*self._of))

    def __getitem__(self, key: Any) -> Any:
        if self._is_passed_on():
            return _Unusable(*self._of)
        raise RuntimeError(_why(*self._of))

    def __setitem__(self, key: Any, value: Any) -> None:
        if not self._is_passed_on():
            raise RuntimeError(_why(*self._of))

    def __enter__(self) -> Any:
        raise RuntimeError(_why(*self._of))

    def __exit__(self, *_: Any) -> None:
        pass

    __iter__ = __len__ = __aenter__ = __enter__
    __aexit__ = __exit__


class _Hollow(type):
    """A class of a hollow module. It can be inherited from, and used in type hints."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls.__dict__.get("_hollow"):
            if cls.__module__ in TERMINAL:
                raise OSError(25, f"`{cls.__module__}.{cls.__name__}` cannot be used inside of a plugin: it has no terminals and file locks")
            if calling:
                raise RuntimeError(_why(cls.__module__, cls.__name__))
            return _Unusable(cls.__module__, cls.__name__)
        return super().__call__(*args, **kwargs)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__") or not cls.__dict__.get("_hollow"):
            raise AttributeError(name)
        return _made(cls.__module__, f"{cls.__name__}.{name}")

    def __or__(cls, other: Any) -> Any:
        return Any

    __ror__ = __or__

    def __getitem__(cls, item: Any) -> Any:
        return cls


class _Base:
    """Stands for a hollow class among the bases of a class that has another metaclass."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"`{cls.__module__}.{cls.__name__}` cannot be used inside of a plugin: it is made from a compiled class")


_build = builtins.__build_class__


def _class(body: Any, name: str, /, *bases: Any, **kwargs: Any) -> Any:
    """Makes a class. One that has a metaclass of its own, or gets it from a base, cannot have a hollow base as well."""
    if any(type(one) is _Hollow for one in bases):
        others = [type(one) for one in bases if isinstance(one, type) and type(one) not in (type, _Hollow)]
        if others or kwargs.get("metaclass", type) is not type:
            bases = tuple(dict.fromkeys(_Base if type(one) is _Hollow else one for one in bases))
    return _build(body, name, *bases, **kwargs)


builtins.__build_class__ = _class


def _made(module: str, name: str) -> Any:
    return _Hollow(name, (), {"__module__": module, "_hollow": True})


class _Module(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name.isupper() and self.__name__ in TERMINAL:
            return 0
        if name[:1].islower() and f"{self.__name__}.{name}" in sys.modules:
            return sys.modules[f"{self.__name__}.{name}"]
        made = _exception(self.__name__, name) if (name == "error" or name.endswith(("Error", "Exception"))) else _made(self.__name__, name)
        setattr(self, name, made)
        return made


TERMINAL = ("fcntl", "termios", "tty")
"""What is only for files and terminals of a machine."""


def _exception(module: str, name: str) -> Any:
    return type(name, (Exception,), {"__module__": module})


def module(name: str, package: str | None = None) -> types.ModuleType:
    """Makes a hollow module. `package`: the compiled package that it is part of, with its version."""
    made = _Module(name)
    made.__path__ = []
    made.__version__ = package.rpartition(" ")[2] if package else "0"
    if package:
        packages[name] = package
    return made
