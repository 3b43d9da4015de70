"""`from_json`: parses JSON, with the limits and the error texts that pydantic reports."""

from __future__ import annotations

import json
import re
from typing import Any


TOLD = (
    ("Expecting property name", "key must be a string"),
    ("Expecting ':'", "expected `:`"),
    ("Expecting ',' delimiter", "expected `,` or `]`"),
    ("Expecting value", "expected value"),
    ("Extra data", "trailing characters"),
    ("Unterminated string", "EOF while parsing a string"),
    ("Illegal trailing comma", "trailing comma"),
    ("Invalid control character", "control character (\\u0000-\\u001F) found while parsing a string"),
    ("Invalid \\escape", "invalid escape"),
    ("Invalid \\u", "invalid escape"),
)


def _told(problem: json.JSONDecodeError) -> str:
    text = problem.doc
    line, column = problem.lineno, problem.colno
    if problem.pos >= len(text.rstrip()) and not problem.msg.startswith("Extra"):
        ended = text.rstrip()
        kind = "a value"
        opened = _open(ended)
        if opened:
            kind = "an object" if opened == "{" else "a list"
        if problem.msg.startswith("Unterminated"):
            kind = "a string"
        if ended.endswith((":", ",")) or not ended:
            kind = "a value"
        line = text.count("\n") + 1
        column = len(text) - (text.rfind("\n") + 1)
        return f"EOF while parsing {kind} at line {line} column {column}"
    if problem.msg.startswith("Unterminated"):
        line = text.count("\n") + 1
        column = len(text) - (text.rfind("\n") + 1)
    said = next((told for start, told in TOLD if problem.msg.startswith(start)), problem.msg.lower())
    if said == "expected value" and re.match(r"(t|f|n|N|I)", text[problem.pos :]):
        said, column = "expected ident", column + 1
    if said == "expected `,` or `]`" and _open(text[: problem.pos]) == "{":
        said = "expected `,` or `}`"
    return f"{said} at line {line} column {column}"


def _open(text: str) -> str | None:
    """Returns the bracket that is open at the end of a text."""
    stack = []
    for one in re.sub(r'"(?:[^"\\]|\\.)*"', "", text):
        if one in "{[":
            stack.append(one)
        elif one in "}]" and stack:
            stack.pop()
    return stack[-1] if stack else None


def _refused(name: str) -> Any:
    raise ValueError(f"expected value at line 1 column 1 ({name})")


def from_json(
    data: str | bytes | bytearray, *, allow_inf_nan: bool = True, cache_strings: Any = True, allow_partial: Any = False,
) -> Any:  # fmt: skip
    """Parses JSON. `allow_partial`: text that ends early is read as far as it goes."""
    if not isinstance(data, (str, bytes, bytearray)):
        raise TypeError(f"Expected bytes, bytearray or str, got {type(data).__name__}")
    try:
        text = data if isinstance(data, str) else bytes(data).decode()
    except UnicodeDecodeError:
        raise ValueError("invalid unicode code point at line 1 column 1") from None
    constant = None if allow_inf_nan else _refused
    try:
        return json.loads(text, parse_constant=constant)
    except json.JSONDecodeError as problem:
        if allow_partial:
            return _partial(text, allow_partial == "trailing-strings", problem)
        raise ValueError(_told(problem)) from None
    except RecursionError:
        raise ValueError("recursion limit exceeded at line 1 column 1") from None


def _partial(text: str, strings: bool, problem: json.JSONDecodeError) -> Any:
    """Closes what is open at the end of a text; drops the last member if it is not whole."""
    stack: list[str] = []
    quoted = escaped = False
    cuts: list[tuple[int, tuple[str, ...]]] = []
    for at, one in enumerate(text):
        if quoted:
            if escaped:
                escaped = False
            elif one == "\\":
                escaped = True
            elif one == '"':
                quoted = False
            continue
        if one == '"':
            quoted = True
        elif one in "{[":
            stack.append("}" if one == "{" else "]")
            cuts.append((at + 1, tuple(stack)))
        elif one in "}]":
            if not stack or stack.pop() != one:
                raise ValueError(_told(problem))
        elif one == ",":
            cuts.append((at, tuple(stack)))
    tail = "".join(reversed(stack))
    tries = [text.rstrip() + tail]
    if quoted and strings:
        tries.insert(0, text + '"' + tail)
    tries += [text[:at] + "".join(reversed(open_)) for at, open_ in reversed(cuts)]
    if not stack and not quoted:
        raise ValueError(_told(problem))
    for one in tries:
        try:
            return json.loads(one)
        except json.JSONDecodeError:
            continue
    raise ValueError(_told(problem))
