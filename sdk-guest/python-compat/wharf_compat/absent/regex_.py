"""The package `regex` in plain Python: the functions of `re`, and `\\p{…}` for the general categories of Unicode.

A pattern that `re` does not know is an error, as are `overlapped` and approximate matching.
"""

from __future__ import annotations

import functools
import re
import sys
import unicodedata
from re import (  # noqa: F401
    ASCII, DOTALL, IGNORECASE, LOCALE, MULTILINE, UNICODE, VERBOSE, A, I, L, M, Match, Pattern, S, U, X, error, escape, purge,
)  # fmt: skip
from typing import Any

__version__ = "2.5"
VERSION0 = V0 = VERSION1 = V1 = BESTMATCH = B = ENHANCEMATCH = E = FULLCASE = F = POSIX = P = REVERSE = R = WORD = W = 0
Regex = Pattern
PROPERTY = re.compile(r"\\([pP])(?:\{(\^?)([A-Za-z_ ]+)\}|([A-Za-z]))|\\.", re.DOTALL)
NAMES = {
    "letter": "L", "mark": "M", "number": "N", "punctuation": "P", "symbol": "S", "separator": "Z", "other": "C",
    "alphabetic": "L", "alpha": "L", "punct": "P", "digit": "Nd", "upper": "Lu", "uppercase": "Lu", "lower": "Ll", "lowercase": "Ll",
    "control": "Cc", "cntrl": "Cc", "format": "Cf",
}  # fmt: skip


@functools.cache
def _ranges(category: str, inverted: bool) -> str:
    """Returns the characters of a category, as they are written in a class."""
    found: list[list[int]] = []
    for code in range(sys.maxunicode + 1):
        if unicodedata.category(chr(code)).startswith(category) != inverted:
            if found and found[-1][1] == code - 1:
                found[-1][1] = code
            else:
                found.append([code, code])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in found)


@functools.lru_cache(512)
def _translated(pattern: str) -> str:
    if "\\p" not in pattern and "\\P" not in pattern:
        return pattern
    parts, at, depth = [], 0, 0
    for one in PROPERTY.finditer(pattern):
        before = pattern[at : one.start()]
        for character in before:
            depth = 1 if character == "[" and not depth else 0 if character == "]" and depth else depth
        parts.append(before)
        at = one.end()
        name = one[3] or one[4]
        if name is None:
            parts.append(one[0])
            continue
        category = NAMES.get(name.strip().lower(), name.strip())
        ranges = _ranges(category, (one[1] == "P") != bool(one[2]))
        if len(category) > 2 or not ranges:
            raise error(f"`{one[0]}` is not a general category of Unicode, and a plugin knows no other properties")
        parts.append(ranges if depth else f"[{ranges}]")
    return "".join(parts) + pattern[at:]


def compile(pattern: Any, flags: int = 0, **_: Any) -> Pattern[Any]:
    if isinstance(pattern, Pattern):
        return pattern
    return re.compile(_translated(pattern) if isinstance(pattern, str) else pattern, flags)


def _calls(name: str) -> Any:
    def called(pattern: Any, *args: Any, flags: int = 0, overlapped: bool = False, timeout: Any = None, concurrent: Any = None, **named: Any) -> Any:
        if overlapped:
            raise NotImplementedError("`overlapped` needs the compiled package regex, which cannot run inside of a plugin")
        # The flags follow the text, and what replaces it, and a number.
        given = {"match": 1, "fullmatch": 1, "search": 1, "findall": 1, "finditer": 1, "split": 2, "sub": 3, "subn": 3}[name]
        if len(args) > given:
            flags, args = args[given], (*args[:given], *args[given + 1 :])
        return getattr(compile(pattern, flags), name)(*args, **named)

    called.__name__ = name
    return called


match, fullmatch, search = _calls("match"), _calls("fullmatch"), _calls("search")
findall, finditer = _calls("findall"), _calls("finditer")
split, sub, subn = _calls("split"), _calls("sub"), _calls("subn")
template = compile
