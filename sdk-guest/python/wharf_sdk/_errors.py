"""How a call ends without a result, and what is said about it."""

from __future__ import annotations

import os
import sys
import traceback
from types import TracebackType
from typing import Any


class Failure(Exception):
    """The operation failed, in words that help the model: a tool call answers `isError: true` with them.

    Any other exception does that as well, with its type and the line of the plugin where it was raised.
    """


class ProtocolError(Exception):
    """A JSON-RPC error: for what is wrong with the request rather than with the world."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


class InvalidParams(ProtocolError):
    """The parameters are wrong in a way that the schema cannot say."""

    def __init__(self, message: str, data: Any = None) -> None:
        super().__init__(-32602, message, data)


class NotFound(ProtocolError):
    """There is no resource under this URI."""

    def __init__(self, uri: str) -> None:
        super().__init__(-32002, "Resource not found", {"uri": uri})


class PluginError(Exception):
    """What is wrong with the plugin itself, found where it is registered. The text names file and line."""


# The folders of the plugin, as the code in them was compiled: set where a component is built. Without them, all code is
# the plugin's that belongs neither to this package nor to Python.
roots: list[str] = []
_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def place(file: str, line: int | None) -> str:
    """A line of code, in words."""
    for root in roots:
        if file.startswith(root):
            file = file[len(root) :]
            break
    else:
        file = os.path.basename(file)
    return f"{file}, line {line}" if line else file


def defined_at(function: Any) -> str:
    code = getattr(function, "__code__", None)
    return place(code.co_filename, code.co_firstlineno) if code else repr(function)


def raised_at(trace: TracebackType | None) -> tuple[str, str] | None:
    """The innermost line of the plugin that an exception came through, and the plain name of its file."""
    found = None
    for frame, line in traceback.walk_tb(trace):
        file = frame.f_code.co_filename
        own = file.startswith(tuple(roots)) if roots else not file.startswith((_PACKAGE, sys.base_prefix, "<"))
        if own:
            found = place(file, line), os.path.basename(file)
    return found


def told(error: BaseException) -> str:
    """An exception as one sentence."""
    if isinstance(error, (Failure, PluginError)):
        return str(error)
    kind, text = type(error).__name__, " ".join(str(error).split())
    found = raised_at(error.__traceback__)
    if isinstance(error, SyntaxError) and error.filename:
        found = place(error.filename, error.lineno), os.path.basename(error.filename)
        text = error.msg
    at, file = found or (None, None)
    if isinstance(error, ModuleNotFoundError) and error.name and file:
        return (
            f"`{error.name}` is not in this plugin: write `import {error.name}` at the top of {file}, "
            f"so that the build takes it in ({at})"
        )
    source = f"{kind} in {at}" if at else kind
    return f"{text} ({source})" if text else source
