"""Validators for the fields of models, typed dicts and dataclasses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .combine import lookup, walk
from .containers import mapping_of
from .errors import Invalid, Line, PydanticOmit, SchemaError, fail
from .state import LAX, Builder, Check, State, is_strict, maker, named
from .values import ArgsKwargs, PydanticUndefined


class Field:
    """A field: its validator, and the names under which its value may be given."""

    __slots__ = ("name", "check", "paths", "simple", "frozen", "required", "default", "omits", "init", "init_only", "kw_only")

    def __init__(self, name: str, check: Check, alias: Any, frozen: bool, required: bool) -> None:
        self.name, self.check, self.frozen, self.required = name, check, frozen, required
        self.paths = lookup(alias) if alias is not None else []
        self.simple = self.paths[0][0] if len(self.paths) == 1 and len(self.paths[0]) == 1 else None
        self.default = getattr(check, "default", None)
        self.omits = getattr(check, "omits", False)
        self.init, self.init_only, self.kw_only = True, False, True

    def find(self, given: Any, by_alias: bool, by_name: bool, attributes: bool) -> tuple[Any, list[Any]]:
        """Returns the value, or `PydanticUndefined`, and the path under which it was found."""
        if self.paths and by_alias:
            for path in self.paths:
                value = _attribute(given, path) if attributes else walk(given, path)
                if value is not PydanticUndefined:
                    return value, path
            if not by_name:
                return PydanticUndefined, self.paths[0]
        elif self.paths and not by_name:
            return PydanticUndefined, self.paths[0]
        value = _attribute(given, [self.name]) if attributes else given.get(self.name, PydanticUndefined)
        return value, [self.name]


def _attribute(given: Any, path: list[Any]) -> Any:
    for step in path:
        if isinstance(step, str) and not isinstance(given, dict):
            try:
                given = getattr(given, step)
            except AttributeError:
                return PydanticUndefined
            except Exception as problem:
                raise fail("get_attribute_error", given, error=f"{type(problem).__name__}: {problem}") from None
        else:
            given = walk(given, [step])
        if given is PydanticUndefined:
            return given
    return given


class Extras:
    """What happens to members that no field is for."""

    def __init__(self, schema: Any, builder: Builder, default: str) -> None:
        self.behavior = builder.option(schema, "extra_behavior", "extra_fields_behavior", default)
        extras, keys = schema.get("extras_schema"), schema.get("extras_keys_schema")
        self.check = builder.build(extras) if extras else None
        self.keys = builder.build(keys) if keys else None

    def of(self, state: State) -> str:
        return state.extra or self.behavior


def _may_have_attributes(value: Any) -> bool:
    return not isinstance(value, (str, bytes, int, float, bool, complex, list, tuple, set, frozenset, dict, type(None), type))


def _names(builder: Builder) -> tuple[bool, bool, bool]:
    config = builder.config
    return config.get("validate_by_alias", True), config.get("validate_by_name", False), config.get("loc_by_alias", True)


class Fields:
    """The fields of a model or a typed dict."""

    def __init__(self, fields: list[Field], extras: Extras, builder: Builder) -> None:
        self.fields, self.extras = fields, extras
        self.by_alias, self.by_name, self.loc_by_alias = _names(builder)

    def run(self, given: Any, state: State, whole: Any, attributes: bool = False) -> tuple[dict[str, Any], Any, set[str]]:
        """Validates the fields. Returns the values, the extra values, and the names of fields that were given."""
        by_alias = self.by_alias if state.by_alias is None else state.by_alias
        by_name = self.by_name if state.by_name is None else state.by_name
        if not by_alias and not by_name:
            raise ValueError("One of `by_alias` or `by_name` must be set to True.")
        made: dict[str, Any] = {}
        fields_set: set[str] = set()
        lines: list[Line] = []
        used: set[Any] = set()
        before_data, before_name = state.data, state.field_name
        state.data = made
        count = 0
        try:
            for field in self.fields:
                state.field_name = field.name
                try:
                    value, path = field.find(given, by_alias, by_name, attributes)
                except Invalid as problem:
                    lines.extend(problem.under(field.name).lines)
                    continue
                if value is not PydanticUndefined:
                    used.add(path[0])
                    loc = path if self.loc_by_alias else [field.name]
                    try:
                        made[field.name] = field.check(value, state)
                    except Invalid as problem:
                        for step in reversed(loc):
                            problem.under(step)
                        lines.extend(problem.lines)
                        continue
                    except PydanticOmit:
                        continue
                    fields_set.add(field.name)
                    count += 1
                    continue
                try:
                    known = field.default(state) if field.default else None
                except Invalid as problem:
                    lines.extend(_under(problem, path if self.loc_by_alias else [field.name]))
                    continue
                if known is not None:
                    made[field.name] = known.value
                elif field.required and not field.omits:
                    lines.append(Line("missing", None, whole, None, tuple(path if self.loc_by_alias else [field.name])))
        finally:
            state.data, state.field_name = before_data, before_name
        extra = self._extra(given, state, used, lines, attributes)
        if lines:
            raise Invalid(lines)
        state.fields_set = (state.fields_set or 0) + count
        return made, extra, fields_set

    def _extra(self, given: Any, state: State, used: set[Any], lines: list[Line], attributes: bool) -> dict[str, Any] | None:
        behavior = self.extras.of(state)
        if behavior == "ignore" or (attributes and not isinstance(given, dict)):
            return {} if behavior == "allow" else None
        extra: dict[str, Any] = {}
        for key, value in given.items():
            if key in used:
                continue
            if not isinstance(key, str):
                lines.append(Line("invalid_key", None, key, None, (key,)))
            elif behavior == "forbid":
                lines.append(Line("extra_forbidden", None, value, None, (key,)))
            else:
                try:
                    made_key = self.extras.keys(key, state) if self.extras.keys else key
                    extra[made_key] = self.extras.check(value, state) if self.extras.check else value
                except Invalid as problem:
                    lines.extend(problem.under(key).lines)
        return extra if behavior == "allow" else None

    def assign(self, known: dict[str, Any], name: str, value: Any, state: State) -> tuple[dict[str, Any], Any, set[str]]:
        """Validates the value of one field that is assigned; `known`: the values of the model."""
        field = next((one for one in self.fields if one.name == name), None)
        made, extra = dict(known), None
        if field is None:
            behavior = self.extras.of(state)
            if behavior != "allow":
                raise Invalid([Line("no_such_attribute", None, value, {"attribute": name}, (name,))])
            try:
                extra = {name: self.extras.check(value, state) if self.extras.check else value}
            except Invalid as problem:
                raise problem.under(name) from None
            return made, extra, {name}
        if field.frozen:
            raise Invalid([Line("frozen_field", None, value, None, (name,))])
        before, state.data, state.field_name = state.data, {key: one for key, one in known.items() if key != name}, name
        try:
            made[name] = field.check(value, state)
        except Invalid as problem:
            raise problem.under(name) from None
        finally:
            state.data, state.field_name = before, None
        return made, None, {name}


def _under(problem: Invalid, path: list[Any]) -> list[Line]:
    for step in reversed(path):
        problem.under(step)
    return problem.lines


@maker("model-fields")
def model_fields(schema: Any, builder: Builder) -> Check:
    fields = [
        Field(name, builder.build(one["schema"]), one.get("validation_alias"), bool(one.get("frozen")), True)
        for name, one in schema["fields"].items()
    ]
    inner = Fields(fields, Extras(schema, builder, "ignore"), builder)
    strict, attributes = builder.option(schema, "strict"), builder.option(schema, "from_attributes")
    name = schema.get("model_name", "Model")

    def check(value: Any, state: State) -> Any:
        by_attributes = attributes if state.from_attributes is None else state.from_attributes
        if isinstance(value, dict):
            return inner.run(value, state, value)
        if state.mode == "python" and isinstance(value, Mapping) and not is_strict(strict, state):
            return inner.run(mapping_of(value, False, state), state, value)
        if by_attributes and state.mode == "python" and _may_have_attributes(value):
            state.floor(LAX)
            return inner.run(value, state, value, attributes=True)
        if by_attributes:
            raise fail("model_attributes_type", value)
        raise fail("model_type", value, class_name=name)

    check.assign = inner.assign  # type: ignore[attr-defined]
    return named(check, "model-fields")


@maker("typed-dict")
def typed_dict(schema: Any, builder: Builder) -> Check:
    builder = builder.with_config(schema.get("config"))
    total = builder.option(schema, "total", "typed_dict_total", True)
    fields = []
    for name, one in schema["fields"].items():
        required = one.get("required", total)
        field = Field(name, builder.build(one["schema"]), one.get("validation_alias"), False, required)
        if required and field.default is not None and field.default(State()) is not None:
            raise SchemaError(f"Field '{name}': a required field cannot have a default value")
        fields.append(field)
    inner, strict = Fields(fields, Extras(schema, builder, "ignore"), builder), builder.option(schema, "strict")
    told = schema.get("cls_name") or getattr(schema.get("cls"), "__name__", None) or "TypedDict"

    def check(value: Any, state: State) -> Any:
        made, extra, _ = inner.run(mapping_of(value, is_strict(strict, state), state), state, value)
        return {**made, **extra} if extra else made

    def assign(known: dict[str, Any], name: str, value: Any, state: State) -> Any:
        made, extra, _ = inner.assign(known, name, value, state)
        return {**made, **(extra or {})}

    check.assign = assign  # type: ignore[attr-defined]
    return named(check, told)


@maker("dataclass-args")
def dataclass_args(schema: Any, builder: Builder) -> Check:
    fields: list[Field] = []
    for one in schema["fields"]:
        field = Field(one["name"], builder.build(one["schema"]), one.get("validation_alias"), bool(one.get("frozen")), True)
        field.init, field.init_only, field.kw_only = one.get("init", True), one.get("init_only", False), one.get("kw_only", True)
        fields.append(field)
    extras = Extras(schema, builder, "ignore")
    inner = Fields([one for one in fields if one.init], extras, builder)
    hidden = {one.name: one for one in fields if not one.init}
    positional = [one for one in inner.fields if not one.kw_only]
    collects = schema.get("collect_init_only", False)
    name = schema["dataclass_name"]

    def check(value: Any, state: State) -> Any:
        given: Any = value
        attributes, lines = False, []
        places: dict[Any, int] = {}
        if isinstance(value, ArgsKwargs):
            given = dict(value.kwargs or {})
            for index, one in enumerate(value.args):
                if index >= len(positional):
                    lines.append(Line("unexpected_positional_argument", None, one, None, (index,)))
                    continue
                key = positional[index].simple or positional[index].name
                if key in given:
                    lines.append(Line("multiple_argument_values", None, given[key], None, (key,)))
                given[key], places[key] = one, index
        elif not isinstance(value, dict):
            if state.mode == "python" and state.from_attributes and _may_have_attributes(value):
                attributes = True
            else:
                raise fail("dataclass_type", value, class_name=name)
        made, extra, init_only = {}, None, []
        try:
            made, extra, _ = inner.run(given, state, value, attributes)
        except Invalid as problem:
            for line in problem.lines:
                if line.kind == "extra_forbidden":
                    line.kind = "unexpected_keyword_argument"
                elif line.kind != "missing" and line.loc and line.loc[0] in places:
                    # What was given by its position is named by it.
                    line.loc = (places[line.loc[0]], *line.loc[1:])
            lines.extend(problem.lines)
        if lines:
            raise Invalid(lines)
        values = {}
        for one in fields:
            if one.init_only and collects:
                init_only.append(made.get(one.name))
            elif one.name in made:
                values[one.name] = made[one.name]
            elif one.name in hidden and one.default is not None:
                known = one.default(state)
                if known is not None:
                    values[one.name] = known.value
        values.update({key: one for key, one in (extra or {}).items() if key not in hidden})
        return values, tuple(init_only) if collects else None

    check.assign = Fields(fields, extras, builder).assign  # type: ignore[attr-defined]
    return named(check, f"dataclass-args[{name}]")
