"""Validators for the arguments of functions, as `validate_call` uses them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from .errors import Invalid, Line, fail
from .fields import Field
from .state import Builder, Check, State, label, maker, named
from .values import ArgsKwargs, PydanticUndefined


def _given(value: Any) -> tuple[list[Any], dict[str, Any]]:
    if isinstance(value, ArgsKwargs):
        return list(value.args), dict(value.kwargs or {})
    if isinstance(value, (list, tuple)):
        return list(value), {}
    if isinstance(value, Mapping):
        return [], dict(value)
    raise fail("arguments_type", value)


@maker("arguments")
def arguments(schema: Any, builder: Builder) -> Check:
    fields = []
    for one in schema["arguments_schema"]:
        field = Field(one["name"], builder.build(one["schema"]), one.get("alias"), False, True)
        fields.append((field, one.get("mode", "positional_or_keyword")))
    rest = builder.build(schema["var_args_schema"]) if schema.get("var_args_schema") else None
    named_rest = builder.build(schema["var_kwargs_schema"]) if schema.get("var_kwargs_schema") else None
    unpacked = schema.get("var_kwargs_mode") == "unpacked-typed-dict"
    by_alias = builder.option(schema, "validate_by_alias", default=True)
    by_name = builder.option(schema, "validate_by_name", default=False)
    loc_by_alias = builder.config.get("loc_by_alias", True)
    count = sum(mode != "keyword_only" for _, mode in fields)

    def check(value: Any, state: State) -> Any:
        given, by_key = _given(value)
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        lines: list[Line] = []
        alias = by_alias if state.by_alias is None else state.by_alias
        name = by_name if state.by_name is None else state.by_name
        used: set[Any] = set()
        for index, (field, mode) in enumerate(fields):
            position = given[index] if mode != "keyword_only" and index < len(given) else PydanticUndefined
            keyed, path = PydanticUndefined, [field.name]
            if mode != "positional_only" and by_key:
                keyed, path = field.find(by_key, alias, name, False)
            elif mode != "positional_only" and field.paths and alias:
                path = field.paths[0]
            told = path[0] if loc_by_alias else field.name
            if keyed is not PydanticUndefined:
                used.add(path[0])
            if position is not PydanticUndefined and keyed is not PydanticUndefined:
                lines.append(Line("multiple_argument_values", None, keyed, None, (told,)))
                continue
            try:
                if position is not PydanticUndefined:
                    args.append(_checked(field, position, state, index))
                elif keyed is not PydanticUndefined:
                    kwargs[field.name] = _checked(field, keyed, state, told)
                else:
                    known = field.default(state) if field.default else None
                    if known is None:
                        kind = {"keyword_only": "missing_keyword_only_argument", "positional_only": "missing_positional_only_argument"}
                        lines.append(Line(kind.get(mode, "missing_argument"), None, value, None,
                                          (index if mode == "positional_only" else told,)))  # fmt: skip
                    elif mode == "keyword_only" or len(args) < index:
                        kwargs[field.name] = known.value
                    elif mode == "positional_only":
                        args.append(known.value)
                    else:
                        kwargs[field.name] = known.value
            except Invalid as problem:
                lines.extend(problem.lines)
        for index, one in enumerate(given[count:], count):
            if rest is None:
                lines.append(Line("unexpected_positional_argument", None, one, None, (index,)))
                continue
            try:
                args.append(rest(one, state))
            except Invalid as problem:
                lines.extend(problem.under(index).lines)
        left = {key: one for key, one in by_key.items() if key not in used}
        if unpacked and named_rest is not None:
            try:
                kwargs.update(named_rest(left, state))
            except Invalid as problem:
                lines.extend(problem.lines)
        else:
            for key, one in left.items():
                if not isinstance(key, str):
                    lines.append(Line("invalid_key", None, key, None, (key,)))
                elif named_rest is None:
                    lines.append(Line("unexpected_keyword_argument", None, one, None, (key,)))
                else:
                    try:
                        kwargs[key] = named_rest(one, state)
                    except Invalid as problem:
                        lines.extend(problem.under(key).lines)
        if lines:
            raise Invalid(lines)
        return tuple(args), kwargs

    return named(check, f"arguments[{','.join(label(one.check) for one, _ in fields)}]")


def _checked(field: Field, value: Any, state: State, place: Any) -> Any:
    before, state.field_name = state.field_name, field.name
    try:
        return field.check(value, state)
    except Invalid as problem:
        raise problem.under(place) from None
    finally:
        state.field_name = before


@maker("arguments-v3")
def arguments_v3(schema: Any, builder: Builder) -> Check:
    """The arguments by name, with the rest of them under the names of `*args` and `**kwargs`."""
    plain, rest, named_rest = [], None, None
    names: list[str] = []
    for one in schema["arguments_schema"]:
        mode = one.get("mode", "positional_or_keyword")
        if mode == "var_args":
            rest = one["schema"]
        elif mode.startswith("var_kwargs"):
            named_rest = one["schema"], "unpacked-typed-dict" if mode.endswith("unpacked_typed_dict") else "uniform"
        else:
            plain.append(one)
            names.append(one["name"])
    inner_schema: dict[str, Any] = {**schema, "type": "arguments", "arguments_schema": plain, "var_args_schema": rest}
    if named_rest:
        inner_schema["var_kwargs_schema"], inner_schema["var_kwargs_mode"] = named_rest
    return arguments(inner_schema, builder)


@maker("call")
def call(schema: Any, builder: Builder) -> Check:
    function = schema["function"]
    inner = builder.build(schema["arguments_schema"])
    returns = builder.build(schema["return_schema"]) if schema.get("return_schema") else None
    told = schema.get("function_name") or getattr(function, "__name__", "call")

    def check(value: Any, state: State) -> Any:
        made = inner(value, state)
        args, kwargs = made if isinstance(made, tuple) else ((), made)
        # What the function raises is its own: it says nothing about the arguments.
        result = function(*args, **kwargs)
        if returns is None:
            return result
        if inspect.iscoroutine(result):
            return result
        try:
            return returns(result, state)
        except Invalid as problem:
            raise problem.under("return") from None

    return named(check, told)
