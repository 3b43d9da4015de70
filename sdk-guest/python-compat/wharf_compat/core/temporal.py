"""Validators for dates, times and durations, and the parsing of their ISO 8601 texts."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
from collections.abc import Callable
from typing import Any

from .errors import fail
from .state import LAX, Builder, Check, State, is_strict, maker
from .values import TzInfo

DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
TIME = re.compile(r"(\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,}))?)?\s*(Z|z|[+-]\d{2}:?(?:\d{2})?)?")
DURATION = re.compile(
    r"([+-])?P(?:(\d+(?:\.\d+)?)Y)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)W)?(?:(\d+(?:\.\d+)?)D)?"
    r"(?:T(?:(\d+(?:\.\d+)?)H)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:[.,]\d+)?)S)?)?",
    re.I,
)
CLOCK = re.compile(r"([+-])?(?:(\d+)\s*(?:d|days?),?\s*)?(?:(\d+):(\d{2})(?::(\d{2})(?:\.(\d+))?)?)?", re.I)
WATERSHED = 20_000_000_000
"""Numbers above this are milliseconds since 1970, others are seconds."""


class Malformed(ValueError):
    """Why a text is not a date, time or duration."""


def parse_date(text: str) -> dt.date:
    found = DATE.match(text)
    if not found:
        raise Malformed("input is too short" if len(text) < 10 else "invalid character in year" if not text[:4].isdigit() else
                        "invalid date separator, expected `-`")  # fmt: skip
    if len(text) > 10:
        raise Malformed("unexpected extra characters at the end of the input")
    return _date(found)


def _date(found: re.Match[str]) -> dt.date:
    year, month, day = int(found[1]), int(found[2]), int(found[3])
    if not 1 <= month <= 12:
        raise Malformed("month value is outside expected range of 1-12")
    try:
        return dt.date(year, month, day)
    except ValueError:
        raise Malformed("year 0 is out of range" if year == 0 else "day value is outside expected range") from None


def parse_time(text: str) -> dt.time:
    found = TIME.match(text)
    if not found:
        raise Malformed("input is too short" if len(text) < 5 else "invalid character in hour" if not text[:2].isdigit() else
                        "invalid time separator, expected `:`")  # fmt: skip
    if found.end() != len(text):
        raise Malformed("unexpected extra characters at the end of the input")
    hour, minute, second = int(found[1]), int(found[2]), int(found[3] or 0)
    if hour > 23:
        raise Malformed("hour value is outside expected range of 0-23")
    if minute > 59:
        raise Malformed("minute value is outside expected range of 0-59")
    if second > 59:
        raise Malformed("second value is outside expected range of 0-59")
    micro = int((found[4] or "0")[:6].ljust(6, "0"))
    zone = None
    if told := found[5]:
        if told in "Zz":
            zone = TzInfo(0)
        else:
            digits = told[1:].replace(":", "").ljust(4, "0")
            if int(digits[:2]) > 23 or int(digits[2:]) > 59:
                raise Malformed("timezone offset must be less than 24 hours")
            zone = TzInfo((-1 if told[0] == "-" else 1) * (int(digits[:2]) * 3600 + int(digits[2:]) * 60))
    return dt.time(hour, minute, second, micro, zone)


def parse_datetime(text: str) -> dt.datetime:
    found = DATE.match(text)
    if not found:
        raise Malformed("input is too short" if len(text) < 10 else "invalid character in year" if not text[:4].isdigit() else
                        "invalid date separator, expected `-`")  # fmt: skip
    day = _date(found)
    if len(text) == 10:
        raise Malformed("input is too short")
    if text[10] not in "Tt _":
        raise Malformed("invalid datetime separator, expected `T`, `t`, `_` or space")
    return dt.datetime.combine(day, parse_time(text[11:]))


def from_timestamp(number: float, unit: str = "infer") -> dt.datetime:
    if math.isnan(number):
        raise Malformed("NaN values not permitted")
    if unit == "milliseconds" or (unit == "infer" and abs(number) > WATERSHED):
        number /= 1000
    if number > 253402300799 or number == math.inf:
        raise Malformed("dates after 9999 are not supported as unix timestamps")
    if number < -62135596800:
        raise Malformed("dates before 0000 are not supported as unix timestamps")
    whole = math.floor(number)
    micro = round((number - whole) * 1e6)
    return dt.datetime(1970, 1, 1, tzinfo=TzInfo(0)) + dt.timedelta(seconds=whole, microseconds=micro)


def parse_duration(text: str) -> dt.timedelta:
    found = DURATION.fullmatch(text)
    if found and text.upper().lstrip("+-") not in ("P", "PT"):
        years, months, weeks, days, hours, minutes, seconds = (float((one or "0").replace(",", ".")) for one in found.groups()[1:])
        made = dt.timedelta(days=years * 365 + months * 30 + weeks * 7 + days, hours=hours, minutes=minutes, seconds=seconds)
        return -made if found[1] == "-" else made
    found = CLOCK.fullmatch(text.strip())
    if found and (found[2] or found[3]):
        made = dt.timedelta(
            days=int(found[2] or 0), hours=int(found[3] or 0), minutes=int(found[4] or 0), seconds=int(found[5] or 0),
            microseconds=int((found[6] or "0")[:6].ljust(6, "0")),
        )  # fmt: skip
        return -made if found[1] == "-" else made
    raise Malformed("input is too short" if len(text) < 2 else "invalid digit in duration")


def _text(value: Any) -> str | None:
    if isinstance(value, str):
        return value.strip()
    return bytes(value).decode("utf-8", "replace").strip() if isinstance(value, (bytes, bytearray)) else None


def _number(value: Any) -> float | None:
    if isinstance(value, (int, float, decimal.Decimal)) and not isinstance(value, bool):
        return float(value)
    text = _text(value)
    if text and re.fullmatch(r"[+-]?\d+(\.\d+)?", text):
        return float(text)
    return None


def _is_large(value: Any, state: State) -> bool:
    """Whether it is an integer that JSON's parser keeps apart from the others."""
    return state.mode == "json" and type(value) is int and abs(value) >= 1 << 63


def _bounded(schema: Any, kind: str) -> Callable[[Any, Any], Any]:
    """Returns a function that checks bounds, and whether the moment is in the past or the future."""
    limits = [
        (name, schema[name], told)
        for name, told in (("le", "less_than_equal"), ("lt", "less_than"), ("ge", "greater_than_equal"), ("gt", "greater_than"))
        if schema.get(name) is not None
    ]
    operators: dict[str, Callable[[Any, Any], bool]] = {
        "le": lambda a, b: a <= b, "lt": lambda a, b: a < b, "ge": lambda a, b: a >= b, "gt": lambda a, b: a > b,
    }  # fmt: skip
    when, zone = schema.get("now_op"), schema.get("tz_constraint")
    shown = str if kind != "timedelta" else _shown_delta

    def check(made: Any, given: Any) -> Any:
        for name, limit, told in limits:
            try:
                fits = operators[name](made, limit)
            except TypeError:
                fits = operators[name](_naive(made), _naive(limit))
            if not fits:
                raise fail(told, given, **{name: shown(limit) if kind == "timedelta" else limit})
        if when is not None:
            now = dt.datetime.now(dt.timezone.utc)
            if kind == "date":
                past = made < now.date()
                future = made > now.date()
            else:
                there = made if made.tzinfo else made.replace(tzinfo=dt.timezone.utc)
                past, future = there < now, there > now
            if not (past if when == "past" else future):
                raise fail(f"{kind}_{when}", given)
        if zone is not None:
            if zone == "naive" and made.tzinfo is not None:
                raise fail("timezone_naive", given)
            if zone != "naive" and made.tzinfo is None:
                raise fail("timezone_aware", given)
            if isinstance(zone, int) and made.utcoffset() != dt.timedelta(seconds=zone):
                raise fail("timezone_offset", given, tz_expected=zone, tz_actual=int(made.utcoffset().total_seconds()))
        return made

    return check


def _naive(value: Any) -> Any:
    return value.replace(tzinfo=None)


def _shown_delta(value: dt.timedelta) -> str:
    from .infer import iso_duration

    return iso_duration(value)


@maker("date")
def date(schema: Any, builder: Builder) -> Check:
    strict, bounds = builder.option(schema, "strict"), _bounded(schema, "date")
    unit = builder.config.get("val_temporal_unit", "infer")

    def convert(value: Any, state: State) -> dt.date:
        if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
            return value
        text = _text(value)
        if is_strict(strict, state):
            if text is None or state.mode == "python":
                raise fail("date_type", value)
            try:
                return parse_date(text)
            except Malformed as problem:
                raise fail("date_parsing", value, error=str(problem)) from None
        state.floor(LAX)
        moment: Any = value if isinstance(value, dt.datetime) else None
        if moment is None:
            number = _number(value)
            if text is None and number is None or _is_large(value, state):
                raise fail("date_type", value)
            try:
                if text is not None and DATE.fullmatch(text):
                    return parse_date(text)
                moment = from_timestamp(number, unit) if number is not None else parse_datetime(text or "")
            except Malformed as problem:
                raise fail("date_from_datetime_parsing", value, error=str(problem)) from None
        if moment.time() != dt.time():
            raise fail("date_from_datetime_inexact", value)
        return moment.date()

    return lambda value, state: bounds(convert(value, state), value)


@maker("datetime")
def datetime_(schema: Any, builder: Builder) -> Check:
    strict, bounds = builder.option(schema, "strict"), _bounded(schema, "datetime")
    unit = builder.config.get("val_temporal_unit", "infer")

    def convert(value: Any, state: State) -> dt.datetime:
        if isinstance(value, dt.datetime):
            return value
        text, number = _text(value), _number(value)
        if is_strict(strict, state) and (text is None or state.mode == "python" or number is not None):
            raise fail("datetime_type", value)
        if _is_large(value, state):
            raise fail("datetime_type", value)
        state.floor(LAX)
        try:
            if number is not None:
                return from_timestamp(number, unit)
            if text is not None:
                if DATE.fullmatch(text) and not is_strict(strict, state):
                    return dt.datetime.combine(parse_date(text), dt.time())
                return parse_datetime(text)
        except Malformed as problem:
            day = text is not None and number is None and not is_strict(strict, state)
            raise fail("datetime_from_date_parsing" if day else "datetime_parsing", value, error=str(problem)) from None
        if isinstance(value, dt.date) and state.mode == "python":
            return dt.datetime.combine(value, dt.time())
        raise fail("datetime_type", value)

    return lambda value, state: bounds(convert(value, state), value)


@maker("time")
def time(schema: Any, builder: Builder) -> Check:
    strict, bounds = builder.option(schema, "strict"), _bounded(schema, "time")

    def convert(value: Any, state: State) -> dt.time:
        if isinstance(value, dt.time):
            return value
        text, number = _text(value), _number(value)
        if is_strict(strict, state) and (text is None or state.mode == "python"):
            raise fail("time_type", value)
        state.floor(LAX)
        try:
            if number is not None and text is None:
                if not 0 <= number < 86400:
                    raise Malformed("numeric times may not exceed 86,399 seconds" if number > 0 else "time in seconds should be positive")
                whole = int(number)
                micro = round((number - whole) * 1e6)
                return dt.time(whole // 3600, whole // 60 % 60, whole % 60, micro, TzInfo(0))
            if text is not None:
                return parse_time(text)
        except Malformed as problem:
            raise fail("time_parsing", value, error=str(problem)) from None
        raise fail("time_type", value)

    return lambda value, state: bounds(convert(value, state), value)


@maker("timedelta")
def timedelta(schema: Any, builder: Builder) -> Check:
    strict, bounds = builder.option(schema, "strict"), _bounded(schema, "timedelta")

    def convert(value: Any, state: State) -> dt.timedelta:
        if isinstance(value, dt.timedelta):
            return value
        text, number = _text(value), _number(value)
        if is_strict(strict, state) and (text is None or state.mode == "python"):
            raise fail("time_delta_type", value)
        state.floor(LAX)
        try:
            if number is not None and text is None:
                if _is_large(value, state):
                    raise fail("time_delta_type", value)
                return dt.timedelta(seconds=number)
            if text is not None:
                return parse_duration(text)
        except (Malformed, OverflowError) as problem:
            told = str(problem) if isinstance(problem, Malformed) else "durations may not exceed 999,999,999 days"
            raise fail("time_delta_parsing", value, error=told) from None
        raise fail("time_delta_type", value)

    return lambda value, state: bounds(convert(value, state), value)
