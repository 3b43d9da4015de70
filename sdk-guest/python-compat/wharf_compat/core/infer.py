"""Serialization by the value's own type, and `to_json` and `to_jsonable_python`."""

from __future__ import annotations

import base64
import collections
import dataclasses
import datetime as dt
import decimal
import enum
import ipaddress
import json
import math
import pathlib
import re
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from .errors import PydanticSerializationError, short
from .urls import MultiHostUrl, Url
from .values import PydanticUndefined


class Ser:
    """One serialization: its options, and what it found on the way."""

    __slots__ = (
        "mode", "by_alias", "exclude_unset", "exclude_defaults", "exclude_none", "exclude_computed_fields", "round_trip",
        "warnings", "fallback", "serialize_as_any", "context", "config", "check", "field_name", "model", "stack", "unknown",
    )  # fmt: skip

    def __init__(self, mode: str = "python", config: Mapping[str, Any] | None = None, **options: Any) -> None:
        self.mode, self.config = mode, config or {}
        self.by_alias: bool | None = options.get("by_alias")
        for name in ("exclude_unset", "exclude_defaults", "exclude_none", "exclude_computed_fields", "round_trip"):
            setattr(self, name, bool(options.get(name)))
        self.serialize_as_any = bool(options.get("serialize_as_any"))
        self.fallback, self.context = options.get("fallback"), options.get("context")
        self.warnings: list[str] = []
        self.check: str | None = None
        self.field_name: str | None = None
        self.model: Any = None
        self.stack: set[int] = set()
        self.unknown = bool(options.get("serialize_unknown"))

    def enter(self, value: Any) -> int:
        key = id(value)
        if key in self.stack:
            raise ValueError("Circular reference detected (id repeated)")
        if len(self.stack) > 255:
            raise ValueError("Circular reference detected (depth exceeded)")
        self.stack.add(key)
        return key

    def warn(self, expected: str, value: Any) -> None:
        field = f"field_name='{self.field_name}', " if self.field_name else ""
        self.warnings.append(
            f"  PydanticSerializationUnexpectedValue(Expected `{expected}` - serialized value may not be as expected "
            f"[{field}input_value={short(value)}, input_type={type(value).__name__}])"
        )


def iso_datetime(value: dt.datetime | dt.time) -> str:
    told = value.isoformat()
    return told[:-6] + "Z" if told.endswith("+00:00") else told


def iso_duration(value: dt.timedelta) -> str:
    sign, value = ("-", -value) if value < dt.timedelta() else ("", value)
    days, seconds, micro = value.days, value.seconds, value.microseconds
    told = "".join(f"{n}{unit}" for n, unit in ((days // 365, "Y"), (days % 365, "D")) if n)
    hours, minutes, rest = seconds // 3600, seconds // 60 % 60, seconds % 60
    clock = "".join(f"{n}{unit}" for n, unit in ((hours, "H"), (minutes, "M")) if n)
    if rest or micro:
        clock += f"{rest}{f'.{micro:06}'.rstrip('0') if micro else ''}S"
    if clock:
        return f"{sign}P{told}T{clock}"
    return f"{sign}P{told}" if told else "PT0S"


def told_bytes(value: bytes, how: str) -> str:
    if how == "base64":
        return base64.urlsafe_b64encode(value).decode()
    if how == "hex":
        return value.hex()
    try:
        return value.decode()
    except UnicodeDecodeError as problem:
        why = f"invalid utf-8 sequence of {problem.end - problem.start or 1} bytes from index {problem.start}"
        raise PydanticSerializationError(f"Error serializing to JSON: {why}") from None


def told_temporal(value: Any, config: Mapping[str, Any]) -> Any:
    """Serializes a date, a time or a duration, as the config says."""
    how = config.get("ser_json_temporal")
    if how is None:
        how = "seconds" if isinstance(value, dt.timedelta) and config.get("ser_json_timedelta") == "float" else "iso8601"
    if how == "iso8601":
        if isinstance(value, dt.timedelta):
            return iso_duration(value)
        return iso_datetime(value) if isinstance(value, (dt.datetime, dt.time)) else value.isoformat()
    if isinstance(value, dt.timedelta):
        seconds = value.total_seconds()
    elif isinstance(value, dt.datetime):
        seconds = (value if value.tzinfo else value.replace(tzinfo=dt.timezone.utc)).timestamp()
    elif isinstance(value, dt.date):
        seconds = dt.datetime(value.year, value.month, value.day, tzinfo=dt.timezone.utc).timestamp()
    else:
        seconds = value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6
    return float(seconds * 1000 if how == "milliseconds" else seconds)


def told_float(value: float, config: Mapping[str, Any]) -> Any:
    if math.isfinite(value) or config.get("ser_json_inf_nan") != "strings":
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def told_digits(value: float) -> str:
    """Returns the digits of a number as Rust's library for JSON writes them."""
    text = float.__repr__(value)
    if "e" not in text:
        return text
    digits, _, power = text.partition("e")
    if power == "-05":
        return f"{'-' if value < 0 else ''}0.0000{digits.lstrip('-').replace('.', '')}"
    return f"{digits}e{int(power)}"


def key_of(value: Any, state: Ser) -> str:
    """Serializes the key of a dict as JSON needs it."""
    if isinstance(value, enum.Enum):
        return key_of(value.value, state)
    if isinstance(value, str):
        return str.__str__(value)
    if value is None:
        return "None"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return ("NaN" if value != value else "Infinity" if value > 0 else "-Infinity") if not math.isfinite(value) else told_digits(value)
    if isinstance(value, tuple):
        return ",".join(key_of(one, state) for one in value)
    if dataclasses.is_dataclass(value) or isinstance(value, (list, dict, set)):
        raise TypeError(f"`{type(value).__name__}` not valid as object key")
    told = infer(value, state)
    return told if isinstance(told, str) else str(told)


def filters(include: Any, exclude: Any, key: Any) -> tuple[bool, Any, Any]:
    """Whether a member is serialized, and what of it is included and excluded."""
    inner_exclude = inner_include = None
    if exclude is not None:
        at = _member(exclude, key)
        if at is Ellipsis or at is True:
            return False, None, None
        inner_exclude = at
    if include is not None:
        at = _member(include, key)
        if at is None or at is False:
            return False, None, None
        inner_include = None if at is Ellipsis or at is True else at
    return True, inner_include, inner_exclude


def _member(names: Any, key: Any) -> Any:
    if isinstance(names, Mapping):
        found, every = names.get(key), names.get("__all__")
        if found is not None and every is not None:
            return merged(every, found)
        if found is None and isinstance(key, int) and key < 0:
            return every
        return every if found is None else found
    return Ellipsis if key in names or "__all__" in names else None


def merged(every: Any, found: Any) -> Any:
    """Joins what is said about all members with what is said about one of them."""
    if every in (Ellipsis, True) or found in (Ellipsis, True):
        return Ellipsis if found in (Ellipsis, True) else found
    one, other = (names if isinstance(names, Mapping) else dict.fromkeys(names, Ellipsis) for names in (every, found))
    both = dict(one)
    for key, inner in other.items():
        both[key] = merged(both[key], inner) if key in both else inner
    return both


def _sequence(value: Any, state: Ser, include: Any, exclude: Any) -> list[Any]:
    made = []
    count = len(value) if hasattr(value, "__len__") else 0
    for index, one in enumerate(value):
        kept, inner_include, inner_exclude = sequence_filter(include, exclude, index, count)
        if kept:
            made.append(infer(one, state, inner_include, inner_exclude))
    return made


def sequence_filter(include: Any, exclude: Any, index: int, count: int) -> tuple[bool, Any, Any]:
    """As `filters`, for the items of a sequence, which may be counted from its end as well."""
    if include is None and exclude is None:
        return True, None, None

    def known(names: Any) -> Any:
        if names is None:
            return None
        if isinstance(names, Mapping):
            return {(key + count if isinstance(key, int) and key < 0 else key): one for key, one in names.items()}
        return {key + count if isinstance(key, int) and key < 0 else key for key in names}

    return filters(known(include), known(exclude), index)


def pairs(value: Any, state: Ser, include: Any, exclude: Any) -> dict[Any, Any]:
    made = {}
    for key, one in value.items():
        kept, inner_include, inner_exclude = filters(include, exclude, key)
        if kept:
            made[key_of(key, state) if state.mode == "json" else infer(key, state)] = infer(one, state, inner_include, inner_exclude)
    return made


PLAIN = (str, int, bool, type(None))


def infer(value: Any, state: Ser, include: Any = None, exclude: Any = None) -> Any:
    """Serializes a value by its own type."""
    kind = type(value)
    if kind in PLAIN:
        return value
    json_ = state.mode == "json"
    if kind is float:
        return told_float(value, state.config) if json_ else value
    serializer = getattr(kind, "__pydantic_serializer__", None)
    if serializer is not None and hasattr(serializer, "_run"):
        return serializer._nested(value, state, include, exclude)
    if isinstance(value, enum.Enum):
        return infer(value.value, state, include, exclude) if json_ else value
    if isinstance(value, (list, tuple, set, frozenset, collections.deque, dict)) or dataclasses.is_dataclass(kind):
        key = state.enter(value)
        try:
            return _container(value, state, include, exclude, json_)
        finally:
            state.stack.discard(key)
    if json_:
        return _to_json_value(value, state, include, exclude)
    if isinstance(value, Iterator) and not isinstance(value, str):
        return _later(value, state, include, exclude)
    if kind in _SCALARS or isinstance(value, _SCALARS):
        return value
    return state.fallback(value) if state.fallback is not None else value


_SCALARS = (
    str, bytes, bytearray, int, float, complex, decimal.Decimal, dt.date, dt.time, dt.timedelta, uuid.UUID, Url, MultiHostUrl,
    pathlib.PurePath, re.Pattern,
)  # fmt: skip


def _container(value: Any, state: Ser, include: Any, exclude: Any, json_: bool) -> Any:
    if isinstance(value, dict):
        return pairs(value, state, include, exclude)
    if dataclasses.is_dataclass(value):
        made = {}
        for one in dataclasses.fields(value):
            kept, inner_include, inner_exclude = filters(include, exclude, one.name)
            if kept and one.repr is not None and hasattr(value, one.name):
                made[one.name] = infer(getattr(value, one.name), state, inner_include, inner_exclude)
        return made
    if isinstance(value, (set, frozenset)):
        found = [infer(one, state) for one in value]
        return found if json_ else type(value)(found) if type(value) in (set, frozenset) else set(found)
    found = _sequence(value, state, include, exclude)
    if isinstance(value, tuple) and not json_:
        return tuple(found)
    return collections.deque(found, value.maxlen) if isinstance(value, collections.deque) and not json_ else found


def _later(value: Iterator[Any], state: Ser, include: Any, exclude: Any) -> Iterator[Any]:
    for index, one in enumerate(value):
        kept, inner_include, inner_exclude = filters(include, exclude, index)
        if kept:
            yield infer(one, state, inner_include, inner_exclude)


def _to_json_value(value: Any, state: Ser, include: Any, exclude: Any) -> Any:
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return told_float(float(value), state.config)
    if isinstance(value, (bytes, bytearray)):
        return told_bytes(bytes(value), state.config.get("ser_json_bytes", "utf8"))
    if isinstance(value, (dt.date, dt.time, dt.timedelta)):
        return told_temporal(value, state.config)
    if isinstance(value, (decimal.Decimal, uuid.UUID, Url, MultiHostUrl, pathlib.PurePath)):
        return str(value)
    if isinstance(value, complex):
        return str(value).strip("()")
    if isinstance(value, re.Pattern):
        return value.pattern
    if isinstance(value, Iterator):
        return list(_later(value, state, include, exclude))
    if isinstance(value, (ipaddress.IPv4Address, ipaddress.IPv6Address, ipaddress.IPv4Network, ipaddress.IPv6Network)):
        return str(value)
    if value is PydanticUndefined and state.unknown:
        return "PydanticUndefined"
    if state.fallback is not None:
        return infer(state.fallback(value), state, include, exclude)
    if state.unknown:
        try:
            return str(value)
        except Exception:
            return f"<Unserializable {type(value).__name__} object>"
    raise PydanticSerializationError(f"Unable to serialize unknown type: {type(value)}")


def dumps(value: Any, indent: int | None, ensure_ascii: bool, config: Mapping[str, Any]) -> bytes:
    """Prints what `infer` made as JSON."""
    constants = config.get("ser_json_inf_nan") == "constants"
    separators = (",", ":") if indent is None else (",", ": ")
    options: dict[str, Any] = {"indent": indent, "ensure_ascii": ensure_ascii, "separators": separators}
    try:
        text = json.dumps(value, allow_nan=constants, **options)
    except ValueError:
        text = json.dumps(_without_nan(value), **options)
    if POWER.search(text):
        text = NUMBERS.sub(lambda one: told_digits(float(one[0])) if one[1] else one[0], text)
    return text.encode("utf-8", "surrogatepass")


POWER, NUMBERS = re.compile(r"\de[+-]\d"), re.compile(r'"(?:[^"\\]|\\.)*"|(-?\d+(?:\.\d+)?e[+-]\d+)')
"""What may be a number with a power of ten, and those that are, next to texts."""


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _config(timedelta: str, temporal: str | None, bytes_: str, inf_nan: str) -> dict[str, Any]:
    config: dict[str, Any] = {"ser_json_timedelta": timedelta, "ser_json_bytes": bytes_, "ser_json_inf_nan": inf_nan}
    if temporal is not None and temporal != "iso8601":
        config["ser_json_temporal"] = temporal
    return config


def to_jsonable_python(
    value: Any, *, include: Any = None, exclude: Any = None, by_alias: bool = True, exclude_none: bool = False,
    round_trip: bool = False, timedelta_mode: str = "iso8601", temporal_mode: str | None = None, bytes_mode: str = "utf8",
    inf_nan_mode: str = "constants", serialize_unknown: bool = False, fallback: Any = None, serialize_as_any: bool = False,
    context: Any = None,
) -> Any:  # fmt: skip
    """Turns a value into what JSON can hold."""
    state = Ser(
        "json", _config(timedelta_mode, temporal_mode, bytes_mode, inf_nan_mode), by_alias=by_alias, exclude_none=exclude_none,
        round_trip=round_trip, fallback=fallback, serialize_as_any=serialize_as_any, context=context,
        serialize_unknown=serialize_unknown,
    )  # fmt: skip
    return infer(value, state, include, exclude)


def to_json(value: Any, *, indent: int | None = None, ensure_ascii: bool = False, inf_nan_mode: str = "constants", **options: Any) -> bytes:
    """Prints a value as JSON."""
    made = to_jsonable_python(value, inf_nan_mode=inf_nan_mode, **options)
    return dumps(made, indent, ensure_ascii, {"ser_json_inf_nan": inf_nan_mode})
