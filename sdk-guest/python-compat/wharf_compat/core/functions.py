"""Serializers that the author's functions are, and the other ways to write a `serialization` into a schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .errors import PydanticOmit, PydanticSerializationError, PydanticSerializationUnexpectedValue
from .infer import Ser, infer
from .serialize import Mismatched, Write, Writers, label


class SerializationInfo:
    """What a serializer of the author's may ask about its serialization."""

    def __init__(self, state: Ser, include: Any, exclude: Any, field_name: str | None, has_field: bool) -> None:
        self.include, self.exclude, self.context, self.mode = include, exclude, state.context, state.mode
        self.by_alias = bool(state.by_alias)
        self.exclude_unset, self.exclude_defaults = state.exclude_unset, state.exclude_defaults
        self.exclude_none, self.exclude_computed_fields = state.exclude_none, state.exclude_computed_fields
        self.serialize_as_any, self.round_trip = state.serialize_as_any, state.round_trip
        if has_field:
            self.field_name = field_name

    def mode_is_json(self) -> bool:
        return self.mode == "json"

    def __str__(self) -> str:
        names = ("include", "exclude", "context", "mode", "by_alias", "exclude_unset", "exclude_defaults", "exclude_none",
                 "exclude_computed_fields", "round_trip", "serialize_as_any")  # fmt: skip
        return f"SerializationInfo({', '.join(f'{name}={_shown(getattr(self, name))}' for name in names)})"

    __repr__ = __str__


def _shown(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


class Handler:
    """What a wrapping function calls to run the inner serializer."""

    def __init__(self, inner: Write, state: Ser, include: Any, exclude: Any) -> None:
        self._inner, self._state, self._include, self._exclude = inner, state, include, exclude

    def __call__(self, value: Any, index_key: Any = None, /) -> Any:
        from .infer import filters

        include, exclude = self._include, self._exclude
        if index_key is not None:
            kept, include, exclude = filters(include, exclude, index_key)
            if not kept:
                raise PydanticOmit()
        return self._inner(value, self._state, include, exclude)

    def __repr__(self) -> str:
        return f"SerializationCallable(serializer={label(self._inner)})"

    __str__ = __repr__


def _used(own: Any) -> Callable[[Any, Ser], bool]:
    when = own.get("when_used", "always")

    def used(value: Any, state: Ser) -> bool:
        if when.startswith("json") and state.mode != "json":
            return False
        return not (when.endswith("unless-none") and value is None)

    return used


def _function(own: Any, schema: Any, writers: Writers) -> Write:
    function, wraps = own["function"], own["type"] == "function-wrap"
    is_field, info = own.get("is_field_serializer", False), own.get("info_arg", False)
    used = _used(own)
    returns = writers.build(own["return_schema"]) if own.get("return_schema") else infer
    plain = {key: one for key, one in schema.items() if key != "serialization"}
    inner: Write = infer
    if wraps or own.get("when_used", "always") != "always":
        inner = writers.build(own["schema"]) if own.get("schema") else writers.plain(plain)
    name = getattr(function, "__name__", None) or repr(function)

    def write(value: Any, state: Ser, include: Any, exclude: Any) -> Any:
        if not used(value, state):
            return inner(value, state, include, exclude)
        given = [state.model, value] if is_field else [value]
        if wraps:
            given.append(Handler(inner, state, include, exclude))
        if info:
            given.append(SerializationInfo(state, include, exclude, state.field_name, is_field))
        before = state.field_name, state.model
        try:
            made = function(*given)
        except PydanticSerializationUnexpectedValue as problem:
            if state.check is not None:
                raise Mismatched(str(problem)) from None
            state.warnings.append(f"  PydanticSerializationUnexpectedValue({problem})")
            return infer(value, state, include, exclude)
        except (PydanticSerializationError, PydanticOmit):
            raise
        except RecursionError as problem:
            raise PydanticSerializationError(f"Error calling function `{name}`: RecursionError: {problem}") from problem
        except Exception as problem:
            said = f"Error calling function `{name}`: {type(problem).__name__}"
            raise PydanticSerializationError(f"{said}: {problem}" if str(problem) else said) from problem
        finally:
            state.field_name, state.model = before
        if made is value and returns is infer and hasattr(type(value), "__pydantic_serializer__"):
            return _own_fields(value, state, include, exclude) if hasattr(value, "__pydantic_fields_set__") else value
        return returns(made, state, include, exclude)

    kind = "wrap" if wraps else "plain"
    write.label = f"function-{kind}[{name}]"  # type: ignore[attr-defined]
    return write


def _own_fields(value: Any, state: Ser, include: Any, exclude: Any) -> Any:
    """A function that returns the model itself has its fields serialized, without calling the function again."""
    from .infer import filters

    made = {}
    for key, one in {**vars(value), **(getattr(value, "__pydantic_extra__", None) or {})}.items():
        kept, inner_include, inner_exclude = filters(include, exclude, key)
        if kept:
            made[key] = infer(one, state, inner_include, inner_exclude)
    return made


def _format(own: Any, schema: Any, writers: Writers) -> Write:
    pattern, used = own["formatting_string"], _used({"when_used": own.get("when_used", "json-unless-none")})

    def write(value: Any, state: Ser, include: Any, exclude: Any) -> Any:
        if not used(value, state):
            return infer(value, state, include, exclude)
        try:
            return format(value, pattern)
        except Exception as problem:
            told = f"Error calling `format(value, {pattern!r})`: {type(problem).__name__}: {problem}"
            raise PydanticSerializationError(told) from problem

    return write


def _to_string(own: Any, schema: Any, writers: Writers) -> Write:
    used = _used({"when_used": own.get("when_used", "json-unless-none")})

    def write(value: Any, state: Ser, include: Any, exclude: Any) -> Any:
        return str(value) if used(value, state) else value

    return write


def _model(own: Any, schema: Any, writers: Writers) -> Write:
    return writers.makers["model"](own, writers)


def _kept(own: Any, schema: Any, writers: Writers) -> Write:
    """A collection of which some members are never serialized."""
    return writers.makers[schema["type"]](schema, writers)


SERIALIZATIONS: dict[str, Callable[[Any, Any, Writers], Write]] = {
    "function-plain": _function,
    "function-wrap": _function,
    "format": _format,
    "to-string": _to_string,
    "model": _model,
    "include-exclude-sequence": _kept,
    "include-exclude-dict": _kept,
}
