"""The package `regex` in plain Python: what it has in common with `re`, and `\\p{…}` for the general categories of Unicode.

A pattern whose meaning is another one in `re` is an error that says so, and so is what only `regex` has.
"""

from __future__ import annotations

import functools
import re
import sys
import unicodedata
from re import ASCII, DOTALL, IGNORECASE, LOCALE, MULTILINE, UNICODE, VERBOSE, A, I, L, M, S, U, X, error, escape, purge  # noqa: F401
from typing import Any

__version__ = "2.5"
VERSION0 = V0 = 0x2000
VERSION1 = V1 = 0x100
BESTMATCH = B = 0x1000
ENHANCEMATCH = E = 0x8000
FULLCASE = F = 0x4000
POSIX = P = 0x10000
REVERSE = R = 0x400
WORD = W = 0x800
ONLY = V1 | B | E | F | P | R | W
"""Flags that `re` does not have."""
WHY = "a plugin has `re` in the place of the compiled package regex"
OTHER = re.compile(
    r"""\\.|\[\^?\]?(?:[^\]\\[]|\\.|\[(?!:))*(?:\[:|--|&&|\|\||~~)|\(\?(?:\||[a-zA-Z-]*[Vbefprw][a-zA-Z0-9-]*[:)]|[R0-9&+-]|P>|\((?:DEFINE|\?))|[)\w.\]]\{[^}]*[a-z]"""
)
"""What `re` reads in another way, or not at all."""
PROPERTY = re.compile(r"\\([pP])(?:\{(\^?)([A-Za-z_ ]+)\}|([A-Za-z]))|\\.", re.DOTALL)
NAMES = {
    "letter": "L", "mark": "M", "number": "N", "punctuation": "P", "symbol": "S", "separator": "Z", "other": "C",
    "digit": "Nd", "control": "Cc", "cntrl": "Cc", "format": "Cf", "any": "",
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
            raise error(f"`{one[0]}` is not a general category of Unicode, and a plugin knows no other properties", pattern)
        parts.append(ranges if depth else f"[{ranges}]")
    return "".join(parts) + pattern[at:]


def _missing(name: str) -> Any:
    raise NotImplementedError(f"`{name}` needs the package regex itself: {WHY}")


class Match:
    """A match of `re`, which says what it does not know."""

    def __init__(self, real: Any, pattern: Pattern) -> None:
        self._real, self.re = real, pattern

    def __getattr__(self, name: str) -> Any:
        if name in ("captures", "capturesdict", "spans", "starts", "ends", "allcaptures", "allspans", "expandf", "detach_string", "fuzzy_counts",
                    "fuzzy_changes"):  # fmt: skip
            _missing(f"Match.{name}")
        return getattr(self._real, name)

    partial = False

    def __getitem__(self, key: Any) -> Any:
        return self._real[key]

    def __copy__(self) -> Match:
        return self

    def __repr__(self) -> str:
        return repr(self._real).replace("<re.", "<regex.", 1)


def _finds(name: str) -> Any:
    """Returns the method of this name, which finds one match."""

    def finds(self: Pattern, string: Any, pos: Any = None, endpos: Any = None, **more: Any) -> Any:
        found = getattr(self._real, name)(*self._given(string, pos, endpos, more))
        return None if found is None else Match(found, self)

    return finds


class Pattern:
    """A pattern of `re`."""

    def __init__(self, real: re.Pattern[Any], pattern: Any) -> None:
        self._real, self.pattern = real, pattern
        self.groupindex, self.groups = dict(real.groupindex), real.groups
        self.flags = real.flags | V0

    def _given(self, string: Any, pos: Any, endpos: Any, more: dict[str, Any]) -> tuple[Any, ...]:
        for name in ("overlapped", "partial"):
            if more.pop(name, False):
                _missing(name)
        more.pop("concurrent", None)
        more.pop("timeout", None)
        if more:
            raise TypeError(f"{next(iter(more))!r} is an invalid keyword argument")
        length = len(string)
        first = 0 if pos is None else max(0, pos + length if pos < 0 else pos)
        last = length if endpos is None else max(0, endpos + length if endpos < 0 else endpos)
        return string, first, last

    match, fullmatch, search = map(_finds, ("match", "fullmatch", "search"))

    def findall(self, string: Any, pos: Any = None, endpos: Any = None, overlapped: bool = False, **more: Any) -> Any:
        return self._real.findall(*self._given(string, pos, endpos, {"overlapped": overlapped, **more}))

    def finditer(self, string: Any, pos: Any = None, endpos: Any = None, overlapped: bool = False, **more: Any) -> Any:
        given = self._given(string, pos, endpos, {"overlapped": overlapped, **more})
        return (Match(one, self) for one in self._real.finditer(*given))

    def split(self, string: Any, maxsplit: int = 0, **more: Any) -> Any:
        self._given(string, None, None, more)
        return self._real.split(string, maxsplit)

    def splititer(self, string: Any, maxsplit: int = 0, **more: Any) -> Any:
        return iter(self.split(string, maxsplit, **more))

    def sub(self, repl: Any, string: Any, count: int = 0, pos: Any = None, endpos: Any = None, **more: Any) -> Any:
        return self.subn(repl, string, count, pos, endpos, **more)[0]

    def subn(self, repl: Any, string: Any, count: int = 0, pos: Any = None, endpos: Any = None, **more: Any) -> Any:
        if pos is not None or endpos is not None:
            _missing("pos")
        self._given(string, None, None, more)
        return self._real.subn((lambda one: repl(Match(one, self))) if callable(repl) else repl, string, count)

    def __getattr__(self, name: str) -> Any:
        if name in ("subf", "subfn", "named_lists", "scanner"):
            _missing(f"Pattern.{name}")
        raise AttributeError(f"'regex.Pattern' object has no attribute {name!r}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and self._real == other._real

    def __hash__(self) -> int:
        return hash(self._real)

    def __repr__(self) -> str:
        return f"regex.Regex({self.pattern!r}, flags=regex.V0)"


Regex = Pattern


@functools.lru_cache(512)
def _compiled(pattern: Any, flags: int) -> Pattern:
    text = pattern if isinstance(pattern, str) else pattern.decode("latin-1")
    if flags & ONLY:
        raise NotImplementedError(f"a flag of this pattern needs the package regex itself: {WHY}")
    other = next((one[0] for one in OTHER.finditer(text) if one[0][0] != "\\" or one[0] in ("\\X", "\\m", "\\M", "\\K", "\\G", "\\h", "\\R", "\\L")), None)
    if other is not None:
        raise NotImplementedError(f"`{other}` in the pattern {text!r} needs the package regex itself: {WHY}")
    try:
        return Pattern(re.compile(_translated(pattern) if isinstance(pattern, str) else pattern, flags & ~V0), pattern)
    except error as problem:
        # It may be right for `regex`, which knows more.
        raise error(f"{problem}; {WHY}, which knows fewer patterns", pattern, problem.pos) from None


def compile(pattern: Any, flags: int = 0, ignore_unused: bool = False, cache_pattern: Any = None, **lists: Any) -> Pattern:
    if lists:
        _missing("a named list")
    if isinstance(pattern, Pattern):
        return pattern
    return _compiled(pattern, int(flags))


def _calls(name: str) -> Any:
    # The flags follow the text, and what replaces it, and a number.
    before = {"match": 1, "fullmatch": 1, "search": 1, "findall": 1, "finditer": 1, "split": 2, "splititer": 2, "sub": 3, "subn": 3}[name]

    def called(pattern: Any, *args: Any, flags: int = 0, **named: Any) -> Any:
        if len(args) > before:
            flags, args = args[before], (*args[:before], *args[before + 1 :])
        known = ("pos", "endpos", "overlapped", "partial", "concurrent", "timeout", "count", "maxsplit", "string", "repl")
        lists = [one for one in named if one not in known]
        if lists:
            _missing("a named list")
        return getattr(compile(pattern, flags), name)(*args, **named)

    called.__name__ = name
    return called


match, fullmatch, search = _calls("match"), _calls("fullmatch"), _calls("search")
findall, finditer = _calls("findall"), _calls("finditer")
split, splititer, sub, subn = _calls("split"), _calls("splititer"), _calls("sub"), _calls("subn")
template = compile


def cache_all(value: Any = True) -> Any:
    return None if value is not None else True


def __getattr__(name: str) -> Any:
    if name in ("subf", "subfn", "Scanner", "DEFAULT_VERSION"):
        _missing(name)
    raise AttributeError(f"module 'regex' has no attribute {name!r}")
