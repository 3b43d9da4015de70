"""`orjson` in plain Python: the same texts and the same errors, without the speed."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import re
import uuid
from collections.abc import Callable
from typing import Any

from ..core.infer import told_digits

__version__ = "3.13.0"
OPT_APPEND_NEWLINE, OPT_INDENT_2, OPT_NAIVE_UTC, OPT_NON_STR_KEYS, OPT_OMIT_MICROSECONDS = 1024, 1, 2, 4, 8
OPT_PASSTHROUGH_DATACLASS, OPT_PASSTHROUGH_DATETIME, OPT_PASSTHROUGH_SUBCLASS, OPT_SERIALIZE_DATACLASS = 2048, 512, 256, 0
OPT_SERIALIZE_NUMPY, OPT_SERIALIZE_UUID, OPT_SORT_KEYS, OPT_STRICT_INTEGER, OPT_UTC_Z = 16, 0, 32, 64, 128
MOST_OPTION = 4095
DEEP = 254
JSONDecodeError = json.JSONDecodeError
JSONEncodeError = TypeError


class Fragment:
    """JSON that is taken as it is."""

    __module__ = "orjson"

    def __init__(self, contents: Any) -> None:
        self.contents = contents


def _number(text: str) -> float:
    found = float(text)
    if found in (float("inf"), float("-inf")):
        raise OverflowError
    return found


def _whole(text: str) -> int | float:
    found = int(text) if len(text) < 25 else None
    if found is None or not -(1 << 63) <= found < 1 << 64:
        return _number(text)
    return found


def _constant(text: str) -> Any:
    raise ValueError(text)


SURROGATE, ALONE = re.compile(r"[\ud800-\udfff]"), "lone leading surrogate in hex escape"


def loads(text: Any, /) -> Any:
    if isinstance(text, memoryview):
        text = bytes(text)
    if not isinstance(text, (str, bytes, bytearray)):
        raise JSONDecodeError("Input must be bytes, bytearray, memoryview, or str", "", 0)
    try:
        given = text if isinstance(text, str) else bytes(text).decode()
        given.encode()
    except UnicodeError:
        raise JSONDecodeError("str is not valid UTF-8: surrogates not allowed", "", 0) from None
    if not given:
        raise JSONDecodeError("Input is a zero-length, empty document", "", 0)
    if given.startswith("\ufeff"):
        raise JSONDecodeError("unexpected character", given, 0)
    if re.match(r"[\[{\s]{1025}", given):
        raise JSONDecodeError("Recursion limit reached", given, 0)
    try:
        found = json.loads(given, parse_float=_number, parse_int=_whole, parse_constant=_constant)
    except JSONDecodeError:
        raise
    except OverflowError:
        raise JSONDecodeError("number is infinity when parsed as double", given, 0) from None
    except (ValueError, RecursionError):
        raise JSONDecodeError("unexpected character", given, 0) from None
    if "\\u" in given and _is_alone(found):
        raise JSONDecodeError(ALONE, given, 0)
    return found


def _is_alone(value: Any) -> bool:
    if isinstance(value, str):
        return SURROGATE.search(value) is not None
    if isinstance(value, dict):
        return any(_is_alone(one) for pair in value.items() for one in pair)
    return isinstance(value, list) and any(map(_is_alone, value))


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeError:
        raise JSONEncodeError("str is not valid UTF-8: surrogates not allowed") from None
    return json.encoder.encode_basestring(value)


def number(value: float) -> str:
    """Returns the shortest digits of a number, as Rust's libraries write them."""
    if value != value or value in (float("inf"), float("-inf")):
        return "null"
    text = told_digits(value)
    return text if "e-" in text else text.replace("e", "e+")


def _moment(value: datetime.datetime, option: int) -> str:
    text = datetime.datetime.isoformat(value.replace(tzinfo=None), timespec="seconds" if option & OPT_OMIT_MICROSECONDS else "auto")
    away = value.utcoffset()
    if value.tzinfo is None or away is None:
        return text + (("Z" if option & OPT_UTC_Z else "+00:00") if option & OPT_NAIVE_UTC else "")
    if not away and option & OPT_UTC_Z:
        return text + "Z"
    minutes = round(away.total_seconds() / 60)
    return text + f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"


class _Writer:
    """Writes a value. `asked`: how often `default` was called for what it returned."""

    def __init__(self, default: Callable[[Any], Any] | None, option: int) -> None:
        self.default, self.option = default, option

    def key(self, key: Any) -> str:
        if type(key) is str:
            return key
        if not self.option & OPT_NON_STR_KEYS:
            raise JSONEncodeError("Dict key must be str")
        if key is None or isinstance(key, bool):
            return {None: "null", True: "true", False: "false"}[key]
        if isinstance(key, enum.Enum):
            return self.key(key.value)
        if isinstance(key, str):
            return str.__str__(key)
        if isinstance(key, int):
            if not -(1 << 63) <= key < 1 << 64:
                raise JSONEncodeError("Dict integer key must be within 64-bit range")
            return int.__repr__(key)
        if type(key) is float:
            return number(key)
        if isinstance(key, datetime.datetime):
            return _moment(key, self.option)
        if isinstance(key, (datetime.date, uuid.UUID)) or type(key) is datetime.time:
            return self.plain(key)
        raise JSONEncodeError("Dict key must a type serializable with OPT_NON_STR_KEYS")

    def plain(self, value: Any) -> str:
        if isinstance(value, uuid.UUID):
            return str(value)
        if isinstance(value, datetime.time):
            if value.tzinfo is not None:
                raise JSONEncodeError("datetime.time must not have tzinfo set")
            return value.isoformat("seconds" if self.option & OPT_OMIT_MICROSECONDS else "auto")
        return datetime.date.isoformat(value)

    def write(self, value: Any, depth: int = 0, asked: int = 0) -> str:
        option, kind = self.option, type(value)
        if depth > DEEP:
            raise JSONEncodeError("Recursion limit reached")
        if value is None or value is True or value is False:
            return {None: "null", True: "true", False: "false"}[value]
        if kind is str:
            return _text(value)
        if kind is int:
            return self.integer(value)
        if kind is float:
            return number(value)
        if kind is list or kind is tuple:
            return self.several([self.write(one, depth + 1) for one in value], "[]", depth)
        if kind is dict:
            return self.mapping(value, depth)
        if not option & OPT_PASSTHROUGH_DATETIME:
            if kind is datetime.datetime:
                return f'"{_moment(value, option)}"'
            if kind in (datetime.date, datetime.time):
                return f'"{self.plain(value)}"'
        if isinstance(value, enum.Enum):
            return self.write(value.value, depth, asked)
        if kind is uuid.UUID:
            return f'"{value}"'
        if kind is Fragment:
            return value.contents if isinstance(value.contents, str) else bytes(value.contents).decode()
        if not option & OPT_PASSTHROUGH_SUBCLASS:
            if isinstance(value, str):
                return _text(value)
            if isinstance(value, int):
                return self.integer(int(value))
            if isinstance(value, list):
                return self.several([self.write(one, depth + 1) for one in value], "[]", depth)
            if isinstance(value, dict):
                return self.mapping(value, depth)
        if dataclasses.is_dataclass(value) and not isinstance(value, type) and not option & OPT_PASSTHROUGH_DATACLASS:
            given = value.__dict__ if hasattr(value, "__dict__") else {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
            return self.mapping({name: one for name, one in given.items() if not name.startswith("_")}, depth, sort=False)
        if self.default is None:
            raise JSONEncodeError(f"Type is not JSON serializable: {kind.__name__}")
        if asked >= DEEP:
            raise JSONEncodeError("default serializer exceeds recursion limit")
        try:
            made = self.default(value)
        except Exception as problem:
            raise JSONEncodeError(f"Type is not JSON serializable: {kind.__name__}") from problem
        return self.write(made, depth, asked + 1)

    def integer(self, value: int) -> str:
        if not -(1 << 63) <= value < 1 << 64:
            raise JSONEncodeError("Integer exceeds 64-bit range")
        if self.option & OPT_STRICT_INTEGER and abs(value) > (1 << 53) - 1:
            raise JSONEncodeError("Integer exceeds 53-bit range")
        return int.__repr__(value)

    def mapping(self, value: dict[Any, Any], depth: int, sort: bool = True) -> str:
        pairs = [(self.key(key), one) for key, one in value.items()]
        if sort and self.option & OPT_SORT_KEYS:
            pairs.sort(key=lambda pair: pair[0].encode("utf-8", "surrogatepass"))
        colon = ": " if self.option & OPT_INDENT_2 else ":"
        return self.several([_text(key) + colon + self.write(one, depth + 1) for key, one in pairs], "{}", depth)

    def several(self, made: list[str], ends: str, depth: int) -> str:
        if not made or not self.option & OPT_INDENT_2:
            return ends[0] + ",".join(made) + ends[1]
        inner = "\n" + "  " * (depth + 1)
        return ends[0] + inner + f",{inner}".join(made) + "\n" + "  " * depth + ends[1]


def dumps(value: Any, /, default: Callable[[Any], Any] | None = None, option: int | None = None) -> bytes:
    given = 0 if option is None else option
    if not isinstance(given, int) or not 0 <= given <= MOST_OPTION:
        raise JSONEncodeError("Invalid opts")
    text = _Writer(default, given).write(value)
    return text.encode() + (b"\n" if given & OPT_APPEND_NEWLINE else b"")
