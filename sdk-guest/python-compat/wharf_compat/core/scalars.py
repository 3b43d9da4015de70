"""Validators for single values: none, bool, numbers, text, bytes, literals, enums, UUIDs and URLs."""

from __future__ import annotations

import base64
import decimal
import enum
import math
import re
import uuid
from collections.abc import Callable
from typing import Any

from .errors import Invalid, fail
from .state import LAX, STRICT, Builder, Check, State, is_strict, maker, named, numbers
from .urls import MultiHostUrl, Url, UrlProblem

TRUE, FALSE = ("1", "true", "t", "yes", "y", "on"), ("0", "false", "f", "no", "n", "off")


@maker("any")
def any_(schema: Any, builder: Builder) -> Check:
    def check(value: Any, state: State) -> Any:
        state.floor(LAX)
        return value

    return check


@maker("none")
def none(schema: Any, builder: Builder) -> Check:
    def check(value: Any, state: State) -> Any:
        if value is not None and not (state.mode == "strings" and value in ("null", "")):
            raise fail("none_required", value)

    return check


@maker("bool")
def bool_(schema: Any, builder: Builder) -> Check:
    strict = builder.option(schema, "strict")

    def check(value: Any, state: State) -> Any:
        if value is True or value is False:
            return value
        if not is_strict(strict, state) or state.mode == "strings":
            state.floor(LAX)
            text = value
            if isinstance(text, (bytes, bytearray)):
                text = bytes(text).decode("utf-8", "replace")
            if isinstance(text, str):
                low = text.lower()
                if low in TRUE:
                    return True
                if low in FALSE:
                    return False
                raise fail("bool_parsing", value)
            if isinstance(value, (int, float, decimal.Decimal)):
                if value == 1:
                    return True
                if value == 0:
                    return False
                whole = abs(value) < 1 << 63 and value == int(value)
                raise fail("bool_parsing" if whole else "bool_type", value)
        raise fail("bool_type", value)

    return check


_INT = re.compile(r"[+-]?\d+(?:_\d+)*(?:\.0*)?")


def _int_of_text(text: str, given: Any) -> int:
    text = text.strip()
    if not _INT.fullmatch(text):
        raise fail("int_parsing", given)
    if len(text) > 4300:
        raise fail("int_parsing_size", given)
    return int(text.partition(".")[0])


def _plain_int(value: int) -> int:
    return value if type(value) is int else int.__int__(value)


@maker("int")
def int_(schema: Any, builder: Builder) -> Check:
    strict, bounds = builder.option(schema, "strict"), numbers(schema)

    def convert(value: Any, state: State) -> int:
        if isinstance(value, int) and not isinstance(value, bool):
            state.floor(STRICT)
            return _plain_int(value)
        if is_strict(strict, state) and state.mode != "strings":
            raise fail("int_type", value)
        state.floor(LAX)
        if isinstance(value, bool):
            return int(value)
        if isinstance(value, (str, bytes, bytearray)):
            if isinstance(value, enum.Enum):
                value = value.value
            try:
                return _int_of_text(value if isinstance(value, str) else bytes(value).decode(), value)
            except UnicodeDecodeError:
                raise fail("int_parsing", value) from None
        if isinstance(value, (float, decimal.Decimal)):
            if not math.isfinite(value):
                raise fail("finite_number", value)
            if value % 1:
                raise fail("int_from_float", value)
            if isinstance(value, float) and abs(value) >= 1 << 63:
                raise fail("int_parsing_size", value)
            return int(value)
        if isinstance(value, enum.Enum):
            return convert(value.value, state)
        raise fail("int_type", value)

    def check(value: Any, state: State) -> Any:
        if type(value) is int:
            return value
        return convert(value, state)

    if bounds is None:
        return check
    return named(lambda value, state: bounds(check(value, state), value), "constrained-int")


@maker("float")
def float_(schema: Any, builder: Builder) -> Check:
    strict, bounds = builder.option(schema, "strict"), numbers(schema)
    finite = builder.option(schema, "allow_inf_nan") is False

    def convert(value: Any, state: State) -> float:
        if isinstance(value, float):
            state.floor(STRICT)
            return float(value)
        if isinstance(value, int) and not isinstance(value, bool):
            state.floor(STRICT)
            return float(value)
        if is_strict(strict, state) and state.mode != "strings":
            raise fail("float_type", value)
        state.floor(LAX)
        if isinstance(value, (str, bytes, bytearray)):
            try:
                return float(value if isinstance(value, str) else bytes(value).decode())
            except (ValueError, UnicodeDecodeError):
                raise fail("float_parsing", value) from None
        if isinstance(value, (complex, list, dict)) or value is None:
            raise fail("float_type", value)
        if hasattr(type(value), "__float__") or hasattr(type(value), "__index__"):
            try:
                return float(value)
            except (ValueError, TypeError, OverflowError):
                pass
        raise fail("float_type", value)

    def check(value: Any, state: State) -> Any:
        made = value if type(value) is float else convert(value, state)
        if finite and not math.isfinite(made):
            raise fail("finite_number", value)
        return made if bounds is None else bounds(made, value)

    return named(check, "float" if bounds is None and not finite else "constrained-float")


@maker("decimal")
def decimal_(schema: Any, builder: Builder) -> Check:
    strict, bounds = builder.option(schema, "strict"), numbers(schema)
    most, places = schema.get("max_digits"), schema.get("decimal_places")
    infinite = bool(builder.option(schema, "allow_inf_nan", default=False))

    def convert(value: Any, state: State) -> decimal.Decimal:
        if isinstance(value, decimal.Decimal):
            return value
        if is_strict(strict, state) and state.mode == "python":
            raise fail("is_instance_of", value, **{"class": "Decimal"})
        state.floor(LAX)
        if isinstance(value, bool) or not isinstance(value, (int, float, str, tuple)):
            raise fail("decimal_type", value)
        try:
            if isinstance(value, tuple):
                return decimal.Decimal(value)
            return decimal.Decimal(str(value).strip())
        except (decimal.InvalidOperation, ValueError, TypeError):
            raise fail("decimal_parsing", value) from None

    def check(value: Any, state: State) -> Any:
        made = convert(value, state)
        if not made.is_finite():
            if not infinite or most is not None or places is not None:
                raise fail("finite_number", value)
            return made
        if most is not None or places is not None:
            _, digits, exponent = made.normalize().as_tuple()
            assert isinstance(exponent, int)
            decimals = max(-exponent, 0)
            whole = len(digits) + exponent if exponent >= 0 else max(len(digits), decimals)
            if places is not None and decimals > places:
                raise fail("decimal_max_places", value, decimal_places=places)
            if most is not None:
                if whole > most:
                    raise fail("decimal_max_digits", value, max_digits=most)
                if places is not None and whole - decimals > most - places:
                    raise fail("decimal_whole_digits", value, whole_digits=most - places)
        return made if bounds is None else bounds(made, value)

    return check


@maker("complex")
def complex_(schema: Any, builder: Builder) -> Check:
    strict = builder.option(schema, "strict")

    def check(value: Any, state: State) -> Any:
        if isinstance(value, complex):
            return value
        if isinstance(value, str) and (state.mode != "python" or not is_strict(strict, state)):
            try:
                return complex(value.strip())
            except ValueError:
                raise fail("complex_type" if state.mode == "python" else "complex_str_parsing", value) from None
        if not is_strict(strict, state) and isinstance(value, (int, float, decimal.Decimal)) and not isinstance(value, bool):
            state.floor(LAX)
            return complex(value)
        raise fail("complex_type", value)

    return check


def pattern_of(pattern: Any, builder: Builder) -> tuple[re.Pattern[str], str]:
    from .errors import SchemaError

    if isinstance(pattern, re.Pattern):
        return pattern, pattern.pattern
    try:
        # Rust's spelling of what Python writes as `(?P<` and `\Z` is accepted as well.
        return re.compile(pattern.replace("\\z", "\\Z")), pattern
    except re.error as problem:
        raise SchemaError(f'Error building "str" validator:\n  SchemaError: {problem}') from None


@maker("str")
def str_(schema: Any, builder: Builder) -> Check:
    strict = builder.option(schema, "strict")
    strip, lower, upper, least, most, numeric = (
        builder.option(schema, name, config)
        for name, config in (
            ("strip_whitespace", "str_strip_whitespace"), ("to_lower", "str_to_lower"), ("to_upper", "str_to_upper"),
            ("min_length", "str_min_length"), ("max_length", "str_max_length"),
            ("coerce_numbers_to_str", "coerce_numbers_to_str"),
        )
    )  # fmt: skip
    pattern = schema.get("pattern")
    compiled, source = pattern_of(pattern, builder) if pattern is not None else (None, "")

    def convert(value: Any, state: State) -> str:
        if isinstance(value, str):
            if isinstance(value, enum.Enum):
                state.floor(STRICT)
                return str.__str__(value.value)
            state.floor(STRICT)
            return str.__str__(value)
        if not is_strict(strict, state):
            if isinstance(value, (bytes, bytearray)):
                state.floor(LAX)
                try:
                    return bytes(value).decode()
                except UnicodeDecodeError:
                    raise fail("string_unicode", value) from None
            if numeric and isinstance(value, (int, float, decimal.Decimal)) and not isinstance(value, bool):
                state.floor(LAX)
                return str(value.value if isinstance(value, enum.Enum) else value)
            if isinstance(value, enum.Enum) and isinstance(value.value, str):
                state.floor(LAX)
                return value.value
        raise fail("string_type", value)

    def check(value: Any, state: State) -> Any:
        return value if type(value) is str else convert(value, state)

    if not (strip or lower or upper or compiled) and least is None and most is None:
        return check

    def constrained(value: Any, state: State) -> Any:
        made = check(value, state)
        if strip:
            made = made.strip()
        if least is not None and len(made) < least:
            raise fail("string_too_short", value, min_length=least)
        if most is not None and len(made) > most:
            raise fail("string_too_long", value, max_length=most)
        if compiled is not None:
            matches = compiled.match if isinstance(pattern, re.Pattern) else compiled.search
            if not matches(made):
                raise fail("string_pattern_mismatch", value, pattern=source)
        if lower:
            return made.lower()
        return made.upper() if upper else made

    return named(constrained, "constrained-str")


@maker("bytes")
def bytes_(schema: Any, builder: Builder) -> Check:
    strict, least, most = builder.option(schema, "strict"), schema.get("min_length"), schema.get("max_length")
    encoding = builder.config.get("val_json_bytes", "utf8")

    def convert(value: Any, state: State) -> bytes:
        if isinstance(value, bytes):
            return value
        if isinstance(value, str) and (state.mode != "python" or not is_strict(strict, state)):
            state.floor(LAX)
            if state.mode == "python" or encoding == "utf8":
                return value.encode()
            try:
                if encoding == "hex":
                    return bytes.fromhex(value)
                return base64.b64decode(value.replace("-", "+").replace("_", "/") + "=" * (-len(value) % 4), validate=True)
            except ValueError as problem:
                raise fail("bytes_invalid_encoding", value, encoding=encoding, encoding_error=str(problem)) from None
        if isinstance(value, bytearray) and not is_strict(strict, state):
            state.floor(LAX)
            return bytes(value)
        raise fail("bytes_type", value)

    def check(value: Any, state: State) -> Any:
        made = convert(value, state)
        if least is not None and len(made) < least:
            raise fail("bytes_too_short", value, min_length=least)
        if most is not None and len(made) > most:
            raise fail("bytes_too_long", value, max_length=most)
        return made

    return named(check, "bytes" if least is None and most is None else "constrained-bytes")


def listed(values: list[Any]) -> str:
    """Prints choices: `'a', 'b' or 'c'`."""
    told = [repr(one) for one in values]
    return told[0] if len(told) == 1 else f"{', '.join(told[:-1])} or {told[-1]}"


@maker("literal")
def literal(schema: Any, builder: Builder) -> Check:
    expected = schema["expected"]
    told = listed(expected)
    exact = {}
    for one in expected:
        try:
            exact.setdefault((type(one), one), one)
        except TypeError:
            pass
    # An input that equals a choice without being of its type, such as an enum's member, is accepted as well.
    by_value = {one.value: one for one in expected if isinstance(one, enum.Enum)}

    def check(value: Any, state: State) -> Any:
        try:
            found = exact.get((type(value), value), exact)
        except TypeError:
            found = exact
        if found is not exact:
            return found
        if state.mode == "strings":
            for one in expected:
                if str(one) == value or (isinstance(one, bool) and str(one).lower() == str(value).lower()):
                    return one
        try:
            if state.mode != "python" and value in by_value:
                return by_value[value]
        except TypeError:
            pass
        for one in expected:
            if type(one) not in (int, bool, str) or isinstance(value, enum.Enum) or type(value) not in (int, bool, str, float):
                if one == value and isinstance(one, bool) == isinstance(value, bool):
                    return one
        if type(value) is int and abs(value) >= 1 << 63 and any(type(one) is int for one in expected):
            raise fail("int_parsing_size", value)
        raise fail("literal_error", value, expected=told)

    return named(check, f"literal[{','.join(repr(one) for one in expected)}]")


@maker("enum")
def enum_(schema: Any, builder: Builder) -> Check:
    of, members, missing = schema["cls"], schema["members"], schema.get("missing")
    strict, kind = builder.option(schema, "strict"), schema.get("sub_type")
    told = listed([one.value for one in members])
    convert = builder.build({"type": kind}) if kind else None

    def find(value: Any) -> Any:
        for one in members:
            if type(one.value) is type(value) and one.value == value:
                return one
        for one in members:
            if one.value == value and not (isinstance(value, bool) != isinstance(one.value, bool) and kind is None):
                return one
        return None

    def check(value: Any, state: State) -> Any:
        if isinstance(value, of):
            return value
        if is_strict(strict, state) and state.mode == "python":
            raise fail("is_instance_of", value, **{"class": of.__name__})
        state.floor(LAX)
        found = find(value)
        if found is None and convert is not None:
            try:
                found = find(convert(value, State(state.mode)))
            except Invalid:
                pass
        if found is None and isinstance(value, enum.Enum):
            found = find(value.value)
        if found is None and state.mode == "strings":
            found = next((one for one in members if str(one.value) == value), None)
        if found is None and missing is not None:
            try:
                found = missing(value)
            except (ValueError, TypeError):
                found = None
            if found is not None and not isinstance(found, of):
                found = None
        if found is None:
            if not members:
                raise fail("enum", value, expected="")
            raise fail("enum", value, expected=told)
        return found

    return check


@maker("uuid")
def uuid_(schema: Any, builder: Builder) -> Check:
    strict, version = builder.option(schema, "strict"), schema.get("version")

    def check(value: Any, state: State) -> Any:
        if isinstance(value, uuid.UUID):
            made = value
        elif is_strict(strict, state) and state.mode == "python":
            raise fail("is_instance_of", value, **{"class": "UUID"})
        elif isinstance(value, str):
            state.floor(LAX)
            try:
                made = uuid.UUID(value)
            except ValueError:
                raise fail("uuid_parsing", value, error=_uuid_problem(value)) from None
        elif isinstance(value, (bytes, bytearray)) and state.mode == "python":
            state.floor(LAX)
            try:
                made = uuid.UUID(bytes=bytes(value)) if len(value) == 16 else uuid.UUID(bytes(value).decode())
            except ValueError:
                error = f"invalid length: expected 16 bytes, found {len(value)}"
                raise fail("uuid_parsing", value, error=error) from None
        else:
            raise fail("uuid_type", value)
        if version is not None and made.version != version:
            raise fail("uuid_version", value, expected_version=version)
        return made

    return check


def _uuid_problem(text: str) -> str:
    plain = text.removeprefix("urn:uuid:").strip("{}")
    for index, one in enumerate(plain):
        if one not in "0123456789abcdefABCDEF-":
            return f"invalid character: expected an optional prefix of `urn:uuid:` followed by [0-9a-fA-F-], found `{one}` at {index + 1}"
    groups = plain.split("-")
    if len(groups) == 1:
        return f"invalid length: expected length 32 for simple format, found {len(plain)}"
    if len(groups) != 5:
        return f"invalid group count: expected 5, found {len(groups)}"
    index, most = next(((i, n) for i, (g, n) in enumerate(zip(groups, (8, 4, 4, 4, 12))) if len(g) != n), (0, 8))
    return f"invalid group length in group {index}: expected {most}, found {len(groups[index])}"


def _url(many: bool) -> Callable[[Any, Builder], Check]:
    of: Any = MultiHostUrl if many else Url

    def make(schema: Any, builder: Builder) -> Check:
        strict, most, schemes = builder.option(schema, "strict"), schema.get("max_length"), schema.get("allowed_schemes")
        keep = bool(builder.option(schema, "preserve_empty_path", "url_preserve_empty_path"))
        required, host = schema.get("host_required"), schema.get("default_host")
        port, path = schema.get("default_port"), schema.get("default_path")
        told = listed(schemes) if schemes else ""

        def parse(value: Any, state: State) -> Any:
            if isinstance(value, of):
                return value
            if many and isinstance(value, Url):
                value = str(value)
            if hasattr(value, "_url") and isinstance(value._url, (Url, MultiHostUrl)):
                value = str(value)
            if isinstance(value, (bytes, bytearray)):
                value = bytes(value).decode("utf-8", "replace")
            if isinstance(value, str):
                if most is not None and len(value) > most:
                    raise fail("url_too_long", value, max_length=most)
                state.floor(LAX)
                try:
                    return of(value, preserve_empty_path=keep)
                except UrlProblem as problem:
                    raise fail("url_parsing", value, error=str(problem)) from None
            raise fail("url_type", value)

        def check(value: Any, state: State) -> Any:
            is_strict(strict, state)
            made = parse(value, state)
            if most is not None and len(str(made)) > most:
                raise fail("url_too_long", value, max_length=most)
            if schemes and made.scheme not in schemes:
                raise fail("url_scheme", value, expected_schemes=told)
            parts = made._parts
            hosts = [one[2] for one in parts.authorities]
            if (required or host) and not any(hosts):
                if host is None:
                    raise fail("url_parsing", value, error="empty host")
                made = of(f"{made.scheme}://{host}{'' if port is None else f':{port}'}{made.path or path or ''}")
            elif (port is not None or path is not None) and parts.authorities:
                authorities = [(*one[:3], port if one[3] is None and port is not None else one[3]) for one in parts.authorities]
                if authorities != parts.authorities or (path is not None and not parts.path):
                    made = of(str(made))
                    made._parts.authorities = authorities
                    made._parts.path = made._parts.path or path or ""
                    made._text = made._parts.text()
            return made

        return check

    return make


maker("url")(_url(False))
maker("multi-host-url")(_url(True))
