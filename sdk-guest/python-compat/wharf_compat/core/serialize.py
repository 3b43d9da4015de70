"""`SchemaSerializer`, and serializers for single values and collections."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import inspect
import uuid
import warnings
from collections.abc import Callable
from typing import Any

from .errors import PydanticSerializationError, PydanticSerializationUnexpectedValue, SchemaError
from .infer import Ser, dumps, filters, infer, key_of, sequence_filter, told_bytes, told_float, told_temporal
from .urls import MultiHostUrl, Url

Write = Callable[[Any, Ser, Any, Any], Any]
"""A serializer: takes the value, the serialization, and what is included and excluded."""


class Mismatched(PydanticSerializationUnexpectedValue):
    """A value is not of the type that its serializer is for, while a union looks for the member that fits."""


class Writers:
    """Builds serializers from core schemas. `makers` has a function for each type of schema."""

    makers: dict[str, Callable[[Any, Writers], Write]] = {}

    def __init__(self, config: dict[str, Any] | None, definitions: dict[str, Write] | None = None, reuses: bool = True) -> None:
        self.config = config or {}
        self.definitions: dict[str, Write] = {} if definitions is None else definitions
        self.reuses = reuses
        """Whether the serializer that a nested model already has is used."""

    def with_config(self, config: dict[str, Any] | None) -> Writers:
        return self if config is None else Writers(config, self.definitions)

    def build(self, schema: Any) -> Write:
        reuses, self.reuses = self.reuses, True
        own = schema.get("serialization")
        if own is None and reuses and schema["type"] == "model":
            known = schema["cls"].__dict__
            made = known.get("__pydantic_serializer__")
            # A model may have a serializer that is not for its fields, such as a function around it.
            if known.get("__pydantic_complete__") is True and type(made) is SchemaSerializer:
                if getattr(made._run, "model", None) is schema["cls"]:
                    return made._run

        if own is not None:
            from .functions import SERIALIZATIONS

            make = SERIALIZATIONS.get(own["type"])
            if make is not None:
                return make(own, schema, self)
            return self.makers.get(own["type"], self.makers["any"])(own, self)
        return self.plain(schema)

    def plain(self, schema: Any) -> Write:
        make = self.makers.get(schema["type"])
        if make is None:
            raise SchemaError(f"Unknown schema type: {schema['type']!r}")
        write = make(schema, self)
        if not hasattr(write, "label"):
            write.label = schema["type"]  # type: ignore[attr-defined]
        return write


def writer(*names: str) -> Callable[[Callable[[Any, Writers], Write]], Callable[[Any, Writers], Write]]:
    def register(function: Callable[[Any, Writers], Write]) -> Callable[[Any, Writers], Write]:
        for name in names:
            Writers.makers[name] = function
        return function

    return register


def odd(expected: str, value: Any, state: Ser, include: Any = None, exclude: Any = None) -> Any:
    """Serializes a value of another type than expected: unions look further, anything else warns."""
    if state.check is not None:
        raise Mismatched(f"Expected `{expected}`")
    state.warn(expected, value)
    return infer(value, state, include, exclude)


@writer("any", "is-instance", "is-subclass", "callable", "function-plain", "custom-error", "complex", "call", "arguments",
        "arguments-v3", "missing-sentinel", "prebuilt")  # fmt: skip
def any_(schema: Any, writers: Writers) -> Write:
    if schema["type"] == "custom-error":
        return writers.build(schema["schema"])
    if schema["type"] == "call" and schema.get("return_schema"):
        return writers.build(schema["return_schema"])
    return infer


def _simple(name: str, kinds: tuple[type, ...], exact: tuple[type, ...], convert: Callable[[Any, Any], Any] | None) -> None:
    """Registers the serializer for values of a type."""

    def make(schema: Any, writers: Writers) -> Write:
        def write(value: Any, state: Ser, include: Any, exclude: Any) -> Any:
            kind = type(value)
            if kind in exact or (state.check != "strict" and isinstance(value, kinds)):
                if state.mode != "json":
                    return value
                if isinstance(value, enum.Enum) and kind not in exact:
                    return infer(value, state)
                return value if convert is None else convert(value, writers.config or state.config)
            return odd(name, value, state)

        write.key = key_of  # type: ignore[attr-defined]
        return write

    writer(name)(make)


def _of_int(value: Any, config: Any) -> Any:
    return value if type(value) is int else int(value)


def _of_str(value: Any, config: Any) -> Any:
    return value if type(value) is str else str.__str__(value)


def _text(value: Any, config: Any) -> str:
    return str(value)


def _of_bytes(value: Any, config: Any) -> str:
    return told_bytes(bytes(value), config.get("ser_json_bytes", "utf8"))


_simple("bool", (bool,), (bool,), None)
_simple("int", (int,), (int,), _of_int)
_simple("str", (str,), (str,), _of_str)
_simple("bytes", (bytes, bytearray), (bytes, bytearray), _of_bytes)
_simple("decimal", (decimal.Decimal,), (decimal.Decimal,), _text)
_simple("uuid", (uuid.UUID,), (uuid.UUID,), _text)
_simple("url", (Url,), (Url,), _text)
_simple("multi-host-url", (MultiHostUrl,), (MultiHostUrl,), _text)
_simple("datetime", (dt.datetime,), (dt.datetime,), told_temporal)
_simple("time", (dt.time,), (dt.time,), told_temporal)
_simple("timedelta", (dt.timedelta,), (dt.timedelta,), told_temporal)


@writer("date")
def date(schema: Any, writers: Writers) -> Write:
    def write(value: Any, state: Ser, include: Any, exclude: Any) -> Any:
        if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
            return told_temporal(value, writers.config or state.config) if state.mode == "json" else value
        return odd("date", value, state)

    return write


@writer("float")
def float_(schema: Any, writers: Writers) -> Write:
    def write(value: Any, state: Ser, include: Any, exclude: Any) -> Any:
        kind = type(value)
        if kind is float or (state.check != "strict" and isinstance(value, (int, float)) and kind is not bool):
            return told_float(float(value), writers.config or state.config) if state.mode == "json" else value
        return odd("float", value, state)

    return write


@writer("none")
def none(schema: Any, writers: Writers) -> Write:
    def write(value: Any, state: Ser, include: Any, exclude: Any) -> Any:
        return None if value is None else odd("none", value, state)

    return write


@writer("literal")
def literal(schema: Any, writers: Writers) -> Write:
    expected = schema["expected"]
    told = f"literal[{','.join(repr(one) for one in expected)}]"

    def write(value: Any, state: Ser, include: Any, exclude: Any) -> Any:
        if any(type(one) is type(value) and one == value for one in expected) or (state.check is None and value in expected):
            return infer(value, state)
        return odd(told, value, state)

    return write


@writer("enum")
def enum_(schema: Any, writers: Writers) -> Write:
    of = schema["cls"]

    def write(value: Any, state: Ser, include: Any, exclude: Any) -> Any:
        if isinstance(value, of):
            return infer(value.value, state) if state.mode == "json" else value
        return odd("enum", value, state)

    return write


@writer("nullable")
def nullable(schema: Any, writers: Writers) -> Write:
    inner = writers.build(schema["schema"])

    def write(value: Any, state: Ser, include: Any, exclude: Any) -> Any:
        return None if value is None else inner(value, state, include, exclude)

    write.label = f"nullable[{inner.label}]" if hasattr(inner, "label") else "nullable"  # type: ignore[attr-defined]
    return write


def label(write: Any) -> str:
    return getattr(write, "label", "any")


def _inner(schema: Any, writers: Writers) -> Write:
    inner = schema.get("items_schema")
    return infer if inner is None else writers.build(inner)


def _sequence(name: str, kinds: tuple[type, ...], make: Callable[[list[Any]], Any]) -> None:
    """Registers the serializer for a collection whose items have one type."""

    def maker(schema: Any, writers: Writers) -> Write:
        inner = _inner(schema, writers)
        own = schema.get("serialization") or {}
        own_include, own_exclude = own.get("include"), own.get("exclude")

        def write(value: Any, state: Ser, include: Any, exclude: Any) -> Any:
            if not isinstance(value, kinds):
                return odd(told, value, state, include, exclude)
            key = state.enter(value)
            try:
                made, count = [], len(value)
                for index, one in enumerate(value):
                    if own and not (own_include is None or index in own_include) or (own_exclude and index in own_exclude):
                        continue
                    kept, inner_include, inner_exclude = sequence_filter(include, exclude, index, count)
                    if kept:
                        made.append(inner(one, state, inner_include, inner_exclude))
            finally:
                state.stack.discard(key)
            return made if state.mode == "json" else make(made)

        told = f"{name}[{label(inner)}]"
        write.label = told  # type: ignore[attr-defined]
        return write

    writer(name)(maker)


_sequence("list", (list,), lambda made: made)
_sequence("set", (set,), set)
_sequence("frozenset", (frozenset,), frozenset)


@writer("tuple")
def tuple_(schema: Any, writers: Writers) -> Write:
    parts = [writers.build(one) for one in schema["items_schema"]]
    variadic = schema.get("variadic_item_index")
    told = f"tuple[{', '.join(label(one) + (', ...' if index == variadic else '') for index, one in enumerate(parts))}]"

    def write(value: Any, state: Ser, include: Any, exclude: Any) -> Any:
        if not isinstance(value, tuple):
            return odd(told, value, state, include, exclude)
        many = max(len(value) - len(parts) + 1, 0) if variadic is not None else 0
        writes = parts if variadic is None else [*parts[:variadic], *[parts[variadic]] * many, *parts[variadic + 1 :]]
        if len(writes) != len(value):
            if state.check is not None:
                raise Mismatched(f"Expected {len(writes)} items, but got {len(value)}")
            if len(value) > len(writes):
                state.warnings.append("  PydanticSerializationUnexpectedValue(Unexpected extra items present in tuple)")
        made = []
        for index, one in enumerate(value):
            kept, inner_include, inner_exclude = sequence_filter(include, exclude, index, len(value))
            if kept:
                inner = writes[index] if index < len(writes) else infer
                made.append(inner(one, state, inner_include, inner_exclude))
        return made if state.mode == "json" else tuple(made)

    write.label = told  # type: ignore[attr-defined]
    return write


@writer("dict")
def dict_(schema: Any, writers: Writers) -> Write:
    keys, values = (writers.build(schema.get(name) or {"type": "any"}) for name in ("keys_schema", "values_schema"))
    own = schema.get("serialization") or {}
    own_include, own_exclude = own.get("include"), own.get("exclude")
    told = f"dict[{label(keys)},{label(values)}]"

    def write(value: Any, state: Ser, include: Any, exclude: Any) -> Any:
        if not isinstance(value, dict):
            return odd(told, value, state, include, exclude)
        key_id = state.enter(value)
        made = {}
        try:
            for key, one in value.items():
                if (own_include is not None and key not in own_include) or (own_exclude and key in own_exclude):
                    continue
                kept, inner_include, inner_exclude = filters(include, exclude, key)
                if kept:
                    told_key = keys(key, state, None, None)
                    if state.mode == "json" and not isinstance(told_key, str):
                        told_key = key_of(told_key, state)
                    made[told_key] = values(one, state, inner_include, inner_exclude)
        finally:
            state.stack.discard(key_id)
        return made

    write.label = told  # type: ignore[attr-defined]
    return write


@writer("generator")
def generator(schema: Any, writers: Writers) -> Write:
    inner = _inner(schema, writers)

    def write(value: Any, state: Ser, include: Any, exclude: Any) -> Any:
        if not hasattr(value, "__next__"):
            return odd(f"generator[{label(inner)}]", value, state, include, exclude)

        def each() -> Any:
            for index, one in enumerate(value):
                kept, inner_include, inner_exclude = filters(include, exclude, index)
                if kept:
                    yield inner(one, state, inner_include, inner_exclude)

        return list(each()) if state.mode == "json" else SerializationIterator(each())

    return write


class SerializationIterator:
    """The items of a generator, serialized one by one."""

    def __init__(self, found: Any) -> None:
        self._found, self.index = found, 0

    def __iter__(self) -> SerializationIterator:
        return self

    def __next__(self) -> Any:
        made = next(self._found)
        self.index += 1
        return made

    def __repr__(self) -> str:
        return f"SerializationIterator(index={self.index}, iterator={self._found!r})"


class SchemaSerializer:
    """Serializes values by a core schema."""

    __slots__ = ("_schema", "_config", "_run")

    def __init__(self, schema: Any, config: Any = None, _use_prebuilt: bool = True) -> None:
        from . import functions, structures  # noqa: F401 (they register their serializers)

        self._schema, self._config = schema, config
        try:
            self._run = Writers(config, reuses=_use_prebuilt and schema["type"] != "model").build(schema)
        except KeyError as problem:
            raise SchemaError(f"Invalid Schema: {problem} is missing") from None

    def _nested(self, value: Any, state: Ser, include: Any, exclude: Any) -> Any:
        """Serializes a value inside of another serialization."""
        check, state.check = state.check, None
        try:
            return self._run(value, state, include, exclude)
        finally:
            state.check = check

    def _made(self, value: Any, mode: str, include: Any, exclude: Any, warn: Any, options: dict[str, Any]) -> Any:
        state = Ser(mode, self._config, **options)
        for names in (include, exclude):
            if names is not None and not isinstance(names, (set, frozenset, dict)) and not hasattr(names, "keys"):
                what = "include" if names is include else "exclude"
                raise TypeError(f"`{what}` argument must be a set or dict.")
        try:
            made = self._run(value, state, include, exclude)
        except Mismatched as problem:
            raise PydanticSerializationError(str(problem)) from None
        if state.warnings and warn not in (False, "none"):
            told = "Pydantic serializer warnings:\n" + "\n".join(state.warnings)
            if warn == "error":
                raise PydanticSerializationError(told)
            warnings.warn(told, UserWarning, stacklevel=_depth())
        return made

    def to_python(
        self, value: Any, *, mode: str | None = None, include: Any = None, exclude: Any = None, warnings: Any = True,
        **options: Any,
    ) -> Any:  # fmt: skip
        return self._made(value, mode or "python", include, exclude, warnings, options)

    def to_json(
        self, value: Any, *, indent: int | None = None, ensure_ascii: bool = False, include: Any = None, exclude: Any = None,
        warnings: Any = True, **options: Any,
    ) -> bytes:  # fmt: skip
        made = self._made(value, "json", include, exclude, warnings, options)
        return dumps(made, indent, ensure_ascii, self._config or _config_of(self._schema))

    def __repr__(self) -> str:
        return f"SchemaSerializer(serializer={label(self._run)})"

    def __reduce__(self) -> Any:
        return SchemaSerializer, (self._schema, self._config)


def _depth() -> int:
    """Returns how far up the caller outside of this package is, for a warning."""
    frame, depth = inspect.currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__", "").startswith(__package__ or ""):
        frame, depth = frame.f_back, depth + 1
    return max(depth - 1, 1)


def _config_of(schema: Any) -> Any:
    while "config" not in schema and isinstance(schema.get("schema"), dict):
        schema = schema["schema"]
    return schema.get("config") or {}
