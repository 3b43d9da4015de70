"""Validators for models and dataclasses: they make the instances."""

from __future__ import annotations

from typing import Any

from .combine import RAISED
from .errors import Invalid, Line, fail, lines_of
from .state import LAX, Builder, Check, State, is_strict, maker, named
from .values import ArgsKwargs, PydanticUndefined

put = object.__setattr__


def _revalidates(how: str, value: Any, of: type) -> bool:
    return how == "always" or (how == "subclass-instances" and type(value) is not of)


@maker("model")
def model(schema: Any, builder: Builder) -> Check:
    config = schema.get("config")
    inside = builder.with_config(config)
    inner = inside.build(schema["schema"])
    of, root = schema["cls"], bool(schema.get("root_model"))
    generic = schema.get("generic_origin")
    strict, frozen = inside.option(schema, "strict"), bool(schema.get("frozen"))
    after, custom = schema.get("post_init"), bool(schema.get("custom_init"))
    how = inside.option(schema, "revalidate_instances", default="never")

    def fill(instance: Any, made: Any, extra_set: Any, state: State, given: Any) -> Any:
        if root:
            put(instance, "__dict__", {"root": made})
            put(instance, "__pydantic_extra__", None)
            put(instance, "__pydantic_fields_set__", extra_set)
        else:
            values, extra, fields_set = made
            put(instance, "__dict__", values)
            put(instance, "__pydantic_extra__", extra)
            put(instance, "__pydantic_fields_set__", fields_set)
        if after is None:
            put(instance, "__pydantic_private__", None)
        else:
            try:
                getattr(instance, after)(state.context)
            except RAISED as problem:
                raise Invalid(lines_of(problem, given)) from None
        return instance

    def construct(value: Any, state: State, instance: Any) -> Any:
        if root:
            fields_set = set() if value is PydanticUndefined else {"root"}
            before, state.field_name = state.field_name, "root"
            try:
                made = inner(value, state)
            finally:
                state.field_name = before
            return fill(of.__new__(of) if instance is None else instance, made, fields_set, state, value)
        made = inner(value, state)
        return fill(of.__new__(of) if instance is None else instance, made, None, state, value)

    def check(value: Any, state: State) -> Any:
        instance, state.self_instance = state.self_instance, None
        if instance is not None:
            return construct(value, state, instance)
        if isinstance(value, of) or (generic is not None and _same_generic(value, generic, of)):
            if not isinstance(value, of):
                return construct(dict(value.__dict__), state, None) if not root else construct(value.root, state, None)
            if not _revalidates(how, value, of):
                if not root:
                    state.fields_set = (state.fields_set or 0) + len(value.__dict__ and value.__pydantic_fields_set__ or ())
                return value
            if root:
                return construct(value.root, state, None)
            given = {**value.__dict__, **(value.__pydantic_extra__ or {})}
            before = set(value.__pydantic_fields_set__)
            made = inner(given, state)
            if isinstance(made, tuple):
                made = (*made[:2], before)
            return fill(of.__new__(of), made, None, state, value)
        if not isinstance(value, dict):
            if is_strict(strict, state) and state.mode == "python" and not root:
                raise fail("model_type", value, class_name=of.__name__)
            state.floor(LAX)
        if custom:
            if not isinstance(value, dict):
                raise fail("model_type", value, class_name=of.__name__)
            try:
                made = of.__new__(of)
                made.__init__(**value)
                return made
            except RAISED as problem:
                raise Invalid(lines_of(problem, value)) from None
        return construct(value, state, None)

    def assign(instance: Any, name: str, value: Any, state: State) -> Any:
        if frozen:
            raise Invalid([Line("frozen_instance", None, value, None, ())])
        if root:
            if name != "root":
                raise Invalid([Line("no_such_attribute", None, value, {"attribute": name}, (name,))])
            made = inner(value, state)
            put(instance, "__dict__", {"root": made})
            return instance
        known = dict(instance.__dict__)
        if isinstance(instance.__pydantic_extra__, dict):
            known.update(instance.__pydantic_extra__)
        inner_assign = getattr(inner, "assign", None)
        if inner_assign is None:
            made = inner({**known, name: value}, state)
            values, extra, _ = made
            fields_set = {name}
        else:
            values, extra, fields_set = inner_assign(known, name, value, state)
        old = instance.__pydantic_extra__
        if isinstance(old, dict):
            for key in old:
                values.pop(key, None)
            if extra:
                put(instance, "__pydantic_extra__", {**old, **extra})
        put(instance, "__dict__", values)
        instance.__pydantic_fields_set__.update(fields_set)
        return instance

    check.assign = assign  # type: ignore[attr-defined]
    check.model = of  # type: ignore[attr-defined]
    return named(check, of.__name__)


def _same_generic(value: Any, origin: Any, of: type) -> bool:
    """Whether a value is another parametrization of the same generic model: its fields are validated again."""
    meta = getattr(type(value), "__pydantic_generic_metadata__", None)
    return bool(meta) and (meta["origin"] is origin or type(value) is origin) and not isinstance(value, of)


@maker("dataclass")
def dataclass_(schema: Any, builder: Builder) -> Check:
    inside = builder.with_config(schema.get("config"))
    inner = inside.build(schema["schema"])
    of, names = schema["cls"], schema["fields"]
    told = schema.get("cls_name") or of.__name__
    strict, after = inside.option(schema, "strict"), schema.get("post_init")
    how, frozen = inside.option(schema, "revalidate_instances", default="never"), bool(schema.get("frozen"))
    slots = bool(schema.get("slots"))

    def fill(instance: Any, made: Any, given: Any) -> Any:
        values, init_only = made
        if slots:
            for key, one in values.items():
                put(instance, key, one)
        else:
            instance.__dict__.update(values)
        if after:
            try:
                instance.__post_init__(*(init_only or ()))
            except RAISED as problem:
                raise Invalid(lines_of(problem, given)) from None
        return instance

    def check(value: Any, state: State) -> Any:
        instance, state.self_instance = state.self_instance, None
        if instance is not None:
            return fill(instance, inner(value, state), value)
        if isinstance(value, of):
            if not _revalidates(how, value, of):
                return value
            given = {name: getattr(value, name) for name in names if hasattr(value, name)}
            return fill(of.__new__(of), inner(given, state), value)
        if is_strict(strict, state) and state.mode == "python":
            raise fail("dataclass_exact_type", value, class_name=told)
        if not isinstance(value, (dict, ArgsKwargs)):
            state.floor(LAX)
        return fill(of.__new__(of), inner(value, state), value)

    def assign(instance: Any, name: str, value: Any, state: State) -> Any:
        if frozen:
            raise Invalid([Line("frozen_instance", None, value, None, ())])
        known = {one: getattr(instance, one) for one in names if hasattr(instance, one)} if slots else dict(instance.__dict__)
        assigner = getattr(inner, "assign", None)
        if assigner is None:
            values = inner({**known, name: value}, state)[0]
        else:
            values, extra, _ = assigner(known, name, value, state)
            values = {**values, **(extra or {})}
        if slots:
            put(instance, name, values[name])
        else:
            put(instance, "__dict__", values)
        return instance

    check.assign = assign  # type: ignore[attr-defined]
    return named(check, told)
