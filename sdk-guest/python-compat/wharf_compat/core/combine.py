"""Validators that consist of others: defaults, unions, functions, definitions, and checks of types."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from .errors import (
    Invalid,
    Line,
    PydanticCustomError,
    PydanticKnownError,
    PydanticOmit,
    PydanticUseDefault,
    SchemaError,
    ValidationError,
    fail,
    lines_of,
)  # fmt: skip
from .state import EXACT, LAX, STRICT, Builder, Check, Info, State, is_strict, label, maker, named
from .values import PydanticUndefined, Some

RAISED = (ValueError, AssertionError, Invalid)


@maker("nullable")
def nullable(schema: Any, builder: Builder) -> Check:
    inner = builder.build(schema["schema"])

    def check(value: Any, state: State) -> Any:
        return None if value is None else inner(value, state)

    return named(check, f"nullable[{label(inner)}]")


def _copied(value: Any) -> Any:
    return value if type(value) in (str, int, float, bool, type(None)) else copy.deepcopy(value)


@maker("default")
def default(schema: Any, builder: Builder) -> Check:
    inner = builder.build(schema["schema"])
    known, factory = schema.get("default", PydanticUndefined), schema.get("default_factory")
    takes_data = bool(schema.get("default_factory_takes_data"))
    on_error = schema.get("on_error", "raise")
    validates = builder.option(schema, "validate_default")
    if on_error == "default" and known is PydanticUndefined and factory is None:
        raise SchemaError("'on_error = default' requires a `default` or `default_factory`")
    mutable = schema.get("copy_default", True) and type(known) in (list, dict, set)
    inner_default = getattr(inner, "default", None)

    def give(state: State) -> Some | None:
        if factory is not None:
            if takes_data:
                if state.data is None and state.self_instance is None:
                    raise fail("default_factory_not_called", PydanticUndefined)
                value = factory(state.data if state.data is not None else {})
            else:
                value = factory()
        elif known is not PydanticUndefined:
            value = _copied(known) if mutable else known
        else:
            return inner_default(state) if inner_default is not None else None
        if validates:
            value = inner(value, state)
        return Some(value)

    def check(value: Any, state: State) -> Any:
        if value is PydanticUndefined:
            made = give(state)
            if made is not None:
                return made.value
        try:
            return inner(value, state)
        except PydanticUseDefault:
            made = give(state)
            if made is None:
                raise
            return made.value
        except Invalid:
            if on_error == "raise":
                raise
            if on_error == "omit":
                raise PydanticOmit() from None
            made = give(state)
            assert made is not None
            return made.value

    check.default = give  # type: ignore[attr-defined]
    check.omits = on_error == "omit"  # type: ignore[attr-defined]
    return named(check, f"default[{label(inner)}]")


@maker("union")
def union(schema: Any, builder: Builder) -> Check:
    choices = []
    for one in schema["choices"]:
        inner, told = (one[0], one[1]) if isinstance(one, tuple) else (one, None)
        made = builder.build(inner)
        choices.append((made, told if told is not None else label(made)))
    if not choices:
        raise SchemaError("One or more union choices required")
    if len(choices) == 1 and schema.get("auto_collapse", True):
        return choices[0][0]
    strict, in_order = builder.option(schema, "strict"), schema.get("mode") == "left_to_right"
    custom = custom_error(schema)

    def check(value: Any, state: State) -> Any:
        before, before_set, before_strict = state.exactness, state.fields_set, state.strict
        if strict and before_strict is None:
            state.strict = True
        best: tuple[Any, int, int | None] | None = None
        lines: list[Line] = []
        try:
            for one, told in choices:
                state.exactness, state.fields_set = EXACT, None
                try:
                    made = one(value, state)
                except Invalid as problem:
                    if best is None:
                        lines.extend(problem.under(told).lines)
                    continue
                exactness, fields_set = state.exactness, state.fields_set
                if in_order or (exactness == EXACT and fields_set is None):
                    best = made, exactness, fields_set
                    break
                if best is None or _better(best, exactness, fields_set):
                    best = made, exactness, fields_set
        finally:
            state.exactness, state.fields_set, state.strict = before, before_set, before_strict
        if best is None:
            raise Invalid([custom(value)] if custom else lines)
        state.floor(best[1])
        state.fields_set = best[2]
        return best[0]

    # A union inside of a discriminated one has a default if one of its members has.
    return named(check, f"union[{','.join(told for _, told in choices)}]")


def _better(best: tuple[Any, int, int | None], exactness: int, fields_set: int | None) -> bool:
    if best[2] is not None and fields_set is not None and best[2] != fields_set:
        return fields_set > best[2]
    return exactness > best[1]


def custom_error(schema: Any) -> Callable[[Any], Line] | None:
    """Returns what makes the error that the schema names instead of its validators' own."""
    kind = schema.get("custom_error_type")
    if kind is None:
        return None
    message, context = schema.get("custom_error_message"), schema.get("custom_error_context")
    error: Any = PydanticKnownError(kind, context) if message is None else PydanticCustomError(kind, message, context)
    return lambda value: lines_of(error, value)[0]


def lookup(path: Any) -> list[list[Any]]:
    """Returns the paths of an alias or a discriminator."""
    if isinstance(path, (str, int)):
        return [[path]]
    return [list(one) for one in path] if path and isinstance(path[0], (list, tuple)) else [list(path)]


def walk(value: Any, path: list[Any], attributes: bool = False) -> Any:
    """Follows a path into an input; `PydanticUndefined` if it ends."""
    for step in path:
        if isinstance(value, (str, bytes)):
            return PydanticUndefined
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError, AttributeError):
            if not attributes or not isinstance(step, str):
                return PydanticUndefined
            try:
                value = getattr(value, step)
            except AttributeError:
                return PydanticUndefined
    return value


def told_path(path: list[Any]) -> str:
    return ".".join(str(one) for one in path)


@maker("tagged-union")
def tagged_union(schema: Any, builder: Builder) -> Check:
    by, custom = schema["discriminator"], custom_error(schema)
    choices = {tag: builder.build(one) for tag, one in schema["choices"].items()}
    attributes = builder.option(schema, "from_attributes", default=True)
    paths = None if callable(by) else lookup(by)
    name = f"{by.__name__}()" if callable(by) else "'" + "' | '".join(told_path(one) for one in paths or []) + "'"
    expected = ", ".join(repr(one) for one in choices)

    def tag_of(value: Any) -> Any:
        if paths is None:
            return by(value)
        for path in paths:
            found = walk(value, path, bool(attributes))
            if found is not PydanticUndefined:
                return found
        return PydanticUndefined

    def check(value: Any, state: State) -> Any:
        if paths is not None and not isinstance(value, dict) and (not attributes or isinstance(value, (str, int, float, list))):
            if value is None or not hasattr(value, "__getitem__") or isinstance(value, (str, list)):
                raise fail("dict_type" if state.mode == "json" else "model_attributes_type", value)
        tag = tag_of(value)
        if tag is PydanticUndefined or (tag is None and paths is None):
            raise Invalid([custom(value)] if custom else [Line("union_tag_not_found", None, value, {"discriminator": name})])
        try:
            one = choices.get(tag)
            if one is None:
                one = choices.get(getattr(tag, "value", tag))
        except TypeError:
            one = None
        if one is None:
            context = {"discriminator": name, "tag": str(tag), "expected_tags": expected}
            raise Invalid([custom(value)] if custom else [Line("union_tag_invalid", None, value, context)])
        try:
            return one(value, state)
        except Invalid as problem:
            raise problem.under(tag) from None

    return named(check, f"tagged-union[{','.join(label(one) for one in choices.values())}]")


@maker("lax-or-strict")
def lax_or_strict(schema: Any, builder: Builder) -> Check:
    lax, strict = builder.build(schema["lax_schema"]), builder.build(schema["strict_schema"])
    own = builder.option(schema, "strict")

    def check(value: Any, state: State) -> Any:
        if is_strict(own, state):
            return strict(value, state)
        if state.exactness > LAX:
            before = state.exactness
            try:
                made = strict(value, state)
                state.floor(STRICT)
                return made
            except Invalid:
                state.exactness = before
                state.floor(LAX)
        return lax(value, state)

    return named(check, f"lax-or-strict[lax={label(lax)},strict={label(strict)}]")


@maker("json-or-python")
def json_or_python(schema: Any, builder: Builder) -> Check:
    by_json, by_python = builder.build(schema["json_schema"]), builder.build(schema["python_schema"])

    def check(value: Any, state: State) -> Any:
        return (by_python if state.mode == "python" else by_json)(value, state)

    return named(check, f"json-or-python[json={label(by_json)},python={label(by_python)}]")


@maker("chain")
def chain(schema: Any, builder: Builder) -> Check:
    steps = [builder.build(one) for one in schema["steps"]]
    if not steps:
        raise SchemaError("One or more steps are required for a chain validator")

    def check(value: Any, state: State) -> Any:
        for one in steps:
            value = one(value, state)
        return value

    return named(check, f"chain[{','.join(label(one) for one in steps)}]")


@maker("json")
def json_(schema: Any, builder: Builder) -> Check:
    inner = builder.build(schema["schema"]) if schema.get("schema") else None

    def check(value: Any, state: State) -> Any:
        from .jsontext import from_json

        if not isinstance(value, (str, bytes, bytearray)):
            raise fail("json_type", value)
        try:
            found = from_json(value)
        except ValueError as problem:
            raise fail("json_invalid", value, error=str(problem)) from None
        if inner is None:
            return found
        before, state.mode = state.mode, "json"
        try:
            return inner(found, state)
        finally:
            state.mode = before

    return named(check, f"json[{label(inner) if inner else 'any'}]")


# The author's functions.


def _caller(schema: Any, builder: Builder) -> Callable[..., Any]:
    function, own = schema["function"]["function"], schema["function"].get("field_name")
    if schema["function"]["type"] == "with-info":
        config = builder.config
        return lambda state, *given: function(*given, Info(state, config, own if own is not None else state.field_name))
    return lambda state, *given: function(*given)


def _name(schema: Any) -> str:
    function = schema["function"]["function"]
    return getattr(function, "__qualname__", None) or getattr(getattr(function, "func", None), "__qualname__", repr(function))


@maker("function-before")
def function_before(schema: Any, builder: Builder) -> Check:
    call, inner = _caller(schema, builder), builder.build(schema["schema"])

    def check(value: Any, state: State) -> Any:
        try:
            made = call(state, value)
        except RAISED as problem:
            raise Invalid(lines_of(problem, value)) from None
        return inner(made, state)

    _inherit(check, inner)
    return named(check, f"function-before[{_name(schema)}(), {label(inner)}]")


@maker("function-after")
def function_after(schema: Any, builder: Builder) -> Check:
    call, inner = _caller(schema, builder), builder.build(schema["schema"])

    def check(value: Any, state: State) -> Any:
        made = inner(value, state)
        try:
            return call(state, made)
        except RAISED as problem:
            raise Invalid(lines_of(problem, value)) from None

    _inherit(check, inner)
    return named(check, f"function-after[{_name(schema)}(), {label(inner)}]")


def _inherit(check: Check, inner: Check) -> None:
    """A function around a validator has the default of that validator."""
    give = getattr(inner, "default", None)
    if give is not None:
        check.default = give  # type: ignore[attr-defined]


@maker("function-plain")
def function_plain(schema: Any, builder: Builder) -> Check:
    call = _caller(schema, builder)

    def check(value: Any, state: State) -> Any:
        try:
            made = call(state, value)
        except RAISED as problem:
            raise Invalid(lines_of(problem, value)) from None
        state.floor(LAX)
        return made

    return named(check, f"function-plain[{_name(schema)}()]")


class _Handler:
    """What a wrapping function calls to run the inner validator."""

    def __init__(self, inner: Check, state: State) -> None:
        self._inner, self._state = inner, state

    def __call__(self, value: Any, outer_location: Any = None, /) -> Any:
        try:
            return self._inner(value, self._state)
        except Invalid as problem:
            if outer_location is not None:
                problem.under(outer_location)
            raise ValidationError(label(self._inner), problem.lines, self._state.mode) from None

    def __repr__(self) -> str:
        return f"ValidatorCallable({label(self._inner)})"


@maker("function-wrap")
def function_wrap(schema: Any, builder: Builder) -> Check:
    call, inner = _caller(schema, builder), builder.build(schema["schema"])

    def check(value: Any, state: State) -> Any:
        before = state.exactness
        state.exactness = EXACT
        try:
            made = call(state, value, _Handler(inner, state))
        except RAISED as problem:
            raise Invalid(lines_of(problem, value)) from None
        finally:
            reached, state.exactness = state.exactness, before
            state.floor(reached)
        return made

    _inherit(check, inner)
    return named(check, f"function-wrap[{_name(schema)}()]")


@maker("custom-error")
def custom(schema: Any, builder: Builder) -> Check:
    inner, make = builder.build(schema["schema"]), custom_error(schema)
    assert make is not None

    def check(value: Any, state: State) -> Any:
        try:
            return inner(value, state)
        except Invalid:
            raise Invalid([make(value)]) from None

    return named(check, f"custom-error[{label(inner)}]")


# Types.


@maker("is-instance")
def is_instance(schema: Any, builder: Builder) -> Check:
    of = schema["cls"]
    told = schema.get("cls_repr") or getattr(of, "__qualname__", None) or repr(of)

    def check(value: Any, state: State) -> Any:
        if not isinstance(value, of):
            raise fail("is_instance_of", value, **{"class": told})
        return value

    return named(check, f"is-instance[{told}]")


@maker("is-subclass")
def is_subclass(schema: Any, builder: Builder) -> Check:
    of = schema["cls"]
    told = schema.get("cls_repr") or of.__qualname__

    def check(value: Any, state: State) -> Any:
        if state.mode == "json":
            raise fail("needs_python_object", value, method_name="issubclass")
        if not isinstance(value, type) or not issubclass(value, of):
            raise fail("is_subclass_of", value, **{"class": told})
        return value

    return named(check, f"is-subclass[{told}]")


@maker("callable")
def callable_(schema: Any, builder: Builder) -> Check:
    def check(value: Any, state: State) -> Any:
        state.floor(LAX)
        if not callable(value):
            raise fail("callable_type", value)
        return value

    return check


@maker("missing-sentinel")
def missing_sentinel(schema: Any, builder: Builder) -> Check:
    def check(value: Any, state: State) -> Any:
        from pydantic_core import MISSING

        if value is not MISSING:
            raise fail("missing_sentinel_error", value)
        return value

    return check


# Definitions, by which schemas refer to themselves.


@maker("definitions")
def definitions(schema: Any, builder: Builder) -> Check:
    for one in schema["definitions"]:
        builder.definitions[one["ref"]] = builder.build(one)
    return builder.build(schema["schema"])


@maker("definition-ref")
def definition_ref(schema: Any, builder: Builder) -> Check:
    ref, known = schema["schema_ref"], builder.definitions

    def check(value: Any, state: State) -> Any:
        inner = known[ref]
        key = ref, id(value)
        if type(value) in (str, int, float, bool, type(None)):
            return inner(value, state)
        if key in state.seen or len(state.seen) > 255:
            raise fail("recursion_loop", value)
        state.seen.add(key)
        try:
            return inner(value, state)
        finally:
            state.seen.discard(key)

    def give(state: State) -> Some | None:
        inner_default = getattr(known.get(ref), "default", None)
        return inner_default(state) if inner_default is not None else None

    check.default = give  # type: ignore[attr-defined]
    return named(check, label(known[ref]) if ref in known else "...")
