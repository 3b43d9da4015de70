"""The exceptions that end a call without a result, and their texts."""

from __future__ import annotations

import os
import re
import sys
import traceback
from types import TracebackType
from typing import Any


INVALID_PARAMS = -32602
RESOURCE_NOT_FOUND = -32002


class Failure(Exception):
    """The operation failed. The model reads the message: a tool call is answered with it and `isError: true`.

    Any other exception has the same effect, with its type and the line of the plugin where it was raised.
    """


class ProtocolError(Exception):
    """A protocol error, for requests that are wrong rather than operations that failed.

    `code` is one of the plugin's own: -32768 to -32000, 403 and 429 are reserved.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        if isinstance(code, bool) or not isinstance(code, int) or not -(2**31) <= code < 2**31:
            raise TypeError(f"the code of a ProtocolError is a whole number of 32 bits, not {code!r}")
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


class InvalidParams(ProtocolError):
    """The parameters satisfy the schema but are invalid for another reason."""

    def __init__(self, message: str, data: Any = None) -> None:
        super().__init__(INVALID_PARAMS, message, data)


class NotFound(ProtocolError):
    """There is no resource under this URI. A text that is not a URI is the message itself; in a tool, raise `Failure` instead."""

    def __init__(self, uri: str) -> None:
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:\S*$", uri):
            super().__init__(RESOURCE_NOT_FOUND, "Resource not found", {"uri": uri})
        else:
            super().__init__(RESOURCE_NOT_FOUND, uri)


class PluginError(Exception):
    """A mistake in the plugin itself. The text names file and line."""


# The folders of the plugin, by the paths in its compiled code; set when a component is built. If the list is empty, all code
# that belongs neither to this package nor to Python counts as the plugin's.
roots: list[str] = []
_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def place(file: str, line: int | None) -> str:
    """Describes a line of code: `plugin.py, line 3`."""
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
    """Returns the innermost line of the plugin in an exception's traceback, and the name of its file."""
    found = None
    for frame, line in traceback.walk_tb(trace):
        file = frame.f_code.co_filename
        own = file.startswith(tuple(roots)) if roots else not file.startswith((_PACKAGE, sys.base_prefix, "<"))
        if own:
            found = place(file, line), os.path.basename(file)
    return found


def told(error: BaseException) -> str:
    """Describes an exception in one sentence."""
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
            f"so that the build includes it ({at})"
        )
    source = f"{kind} in {at}" if at else kind
    return f"{text} ({source})" if text else source
