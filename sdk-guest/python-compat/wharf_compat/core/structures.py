"""Serializers for models, typed dicts and dataclasses, and those that consist of others."""

from __future__ import annotations

from typing import Any

from .combine import lookup, walk
from .errors import PydanticSerializationUnexpectedValue
from .infer import Ser, filters, infer, key_of
from .serialize import Mismatched, Write, Writers, label, odd, writer
from .values import PydanticUndefined


class Member:
    """A field: its serializer, its alias, and when it is left out."""

    __slots__ = ("name", "write", "alias", "exclude", "exclude_if", "required", "default")

    def __init__(self, name: str, schema: Any, required: bool, writers: Writers) -> None:
        self.name, self.alias = name, schema.get("serialization_alias")
        self.exclude, self.exclude_if = bool(schema.get("serialization_exclude")), schema.get("serialization_exclude_if")
        self.write = infer if self.exclude else writers.build(schema["schema"])
        self.required = required
        self.default = _default(schema["schema"])


def _default(schema: Any) -> Any:
    """Returns a function that gives the default of a field, or None."""
    while schema["type"] in ("nullable", "function-before", "function-after", "function-wrap", "definitions"):
        schema = schema["schema"]
    if schema["type"] != "default":
        return None
    if "default" in schema:
        return lambda: schema["default"]
    if schema.get("default_factory") is not None and not schema.get("default_factory_takes_data"):
        return schema["default_factory"]
    return None


class Members:
    """The fields of a model, a typed dict or a dataclass, with its computed fields."""

    def __init__(self, members: list[Member], computed: Any, writers: Writers, extra: bool, typed_dict: bool = False) -> None:
        self.members = {one.name: one for one in members}
        self.required = sum(one.required for one in members)
        self.extra, self.typed_dict = extra, typed_dict
        self.by_alias = writers.config.get("serialize_by_alias")
        self.computed = [
            (one["property_name"], one.get("alias"), writers.build(one.get("return_schema") or {"type": "any"}), one)
            for one in computed or []
        ]
        self.extra_write: Write = infer

    def run(self, values: Any, more: Any, state: Ser, include: Any, exclude: Any, model: Any, fields_set: Any) -> dict[str, Any]:
        made: dict[str, Any] = {}
        alias = state.by_alias if state.by_alias is not None else bool(self.by_alias)
        before_name, before_model = state.field_name, state.model
        state.model = model
        used = 0
        try:
            for key, value in values.items():
                member = self.members.get(key)
                if member is None:
                    if self.extra and self.typed_dict:
                        self._extra(made, key, value, state, include, exclude)
                    elif state.check == "strict":
                        raise Mismatched("unexpected field")
                    continue
                used += member.required
                if state.exclude_none and value is None:
                    continue
                if state.exclude_unset and fields_set is not None and key not in fields_set:
                    continue
                kept, inner_include, inner_exclude = filters(include, exclude, key)
                if not kept or member.exclude or _missing(value):
                    continue
                if member.exclude_if is not None and member.exclude_if(value):
                    continue
                if state.exclude_defaults and member.default is not None and _equal(member.default(), value):
                    continue
                state.field_name, state.model = key, model
                made[member.alias if alias and member.alias is not None else key] = member.write(value, state, inner_include, inner_exclude)
            loose = state.exclude_defaults or state.exclude_unset or state.exclude_none or include is not None or exclude is not None
            if state.check is not None and not loose and used < self.required:
                raise Mismatched("Expected more fields")
            state.field_name = None
            for key, value in (more or {}).items():
                if not (state.exclude_none and value is None):
                    self._extra(made, key, value, state, include, exclude)
            if not state.round_trip and not state.exclude_computed_fields and model is not None:
                self._computed(made, state, include, exclude, model, alias)
        finally:
            state.field_name, state.model = before_name, before_model
        return made

    def _extra(self, made: dict[str, Any], key: Any, value: Any, state: Ser, include: Any, exclude: Any) -> None:
        kept, inner_include, inner_exclude = filters(include, exclude, key)
        if kept and not (state.exclude_none and value is None):
            made[key_of(key, state) if state.mode == "json" else key] = self.extra_write(value, state, inner_include, inner_exclude)

    def _computed(self, made: dict[str, Any], state: Ser, include: Any, exclude: Any, model: Any, alias: bool) -> None:
        for name, other, write, _ in self.computed:
            kept, inner_include, inner_exclude = filters(include, exclude, name)
            if not kept:
                continue
            value = getattr(model, name)
            if (state.exclude_none and value is None) or _missing(value):
                continue
            state.field_name, state.model = name, model
            made[other if alias and other is not None else name] = write(value, state, inner_include, inner_exclude)


def _missing(value: Any) -> bool:
    return type(value).__name__ in ("Sentinel", "sentinel") and repr(value) in ("<MISSING>", "MISSING")


def _equal(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    except Exception:
        return False


def _is_required(schema: Any) -> bool:
    return schema["schema"]["type"] != "default"


@writer("model-fields")
def model_fields(schema: Any, writers: Writers) -> Write:
    members = [Member(name, one, True, writers) for name, one in schema["fields"].items()]
    extra = schema.get("extra_behavior") or writers.config.get("extra_fields_behavior")
    inner = Members(members, schema.get("computed_fields"), writers, extra == "allow")
    if schema.get("extras_schema"):
        inner.extra_write = writers.build(schema["extras_schema"])

    def write(value: Any, state: Ser, include: Any, exclude: Any) -> Any:
        if isinstance(value, dict):
            return inner.run(value, None, state, include, exclude, None, None)
        values = getattr(value, "__dict__", {})
        more = getattr(value, "__pydantic_extra__", None)
        fields_set = getattr(value, "__pydantic_fields_set__", None)
        if state.exclude_unset and more:
            fields_set = set(fields_set or ()) | set(more)
        return inner.run(values, more, state, include, exclude, value, fields_set)

    return write


@writer("model")
def model(schema: Any, writers: Writers) -> Write:
    of, root = schema["cls"], bool(schema.get("root_model"))
    inner = writers.with_config(schema.get("config")).build(schema["schema"])
    told = of.__name__

    def write(value: Any, state: Ser, include: Any, exclude: Any) -> Any:
        fits = type(value) is of if state.check == "strict" else isinstance(value, of)
        if not fits or not hasattr(value, "__pydantic_fields_set__"):
            return odd(told, value, state, include, exclude)
        if state.serialize_as_any and type(value) is not of:
            return infer(value, state, include, exclude)
        key = state.enter(value)
        check = state.check
        try:
            if root:
                before, state.field_name, state.model = state.field_name, "root", value
                try:
                    if include is None and exclude is None:
                        state.check = None if check is None else check
                    return inner(value.root, state, include, exclude)
                finally:
                    state.field_name = before
            state.check = "lax" if check == "strict" and type(value) is of else check
            return inner(value, state, include, exclude)
        finally:
            state.check = check
            state.stack.discard(key)

    write.label, write.model = told, of  # type: ignore[attr-defined]
    return write


@writer("typed-dict")
def typed_dict(schema: Any, writers: Writers) -> Write:
    writers = writers.with_config(schema.get("config"))
    total = schema.get("total", writers.config.get("typed_dict_total", True))
    members = [Member(name, one, one.get("required", total), writers) for name, one in schema["fields"].items()]
    extra = schema.get("extra_behavior") or writers.config.get("extra_fields_behavior")
    inner = Members(members, schema.get("computed_fields"), writers, extra == "allow", typed_dict=True)
    if schema.get("extras_schema"):
        inner.extra_write = writers.build(schema["extras_schema"])
    told = schema.get("cls_name") or getattr(schema.get("cls"), "__name__", None) or "TypedDict"

    def write(value: Any, state: Ser, include: Any, exclude: Any) -> Any:
        if not isinstance(value, dict):
            return odd(told, value, state, include, exclude)
        return inner.run(value, None, state, include, exclude, value if inner.computed else None, None)

    write.label = told  # type: ignore[attr-defined]
    return write


@writer("dataclass-args")
def dataclass_args(schema: Any, writers: Writers) -> Write:
    members = [Member(one["name"], one, True, writers) for one in schema["fields"] if not one.get("init_only")]
    extra = schema.get("extra_behavior") or writers.config.get("extra_fields_behavior")
    inner = Members(members, schema.get("computed_fields"), writers, extra == "allow")

    def write(value: Any, state: Ser, include: Any, exclude: Any) -> Any:
        values = {name: getattr(value, name) for name in inner.members if hasattr(value, name)}
        more = {key: one for key, one in vars(value).items() if key not in values} if inner.extra and hasattr(value, "__dict__") else None
        if more:
            more = {key: one for key, one in more.items() if not key.startswith("__pydantic")}
        return inner.run(values, more, state, include, exclude, value, None)

    return write


@writer("dataclass")
def dataclass_(schema: Any, writers: Writers) -> Write:
    of = schema["cls"]
    inner = writers.with_config(schema.get("config")).build(schema["schema"])
    told = schema.get("cls_name") or of.__name__

    def write(value: Any, state: Ser, include: Any, exclude: Any) -> Any:
        fits = type(value) is of if state.check == "strict" else isinstance(value, of)
        if not fits or isinstance(value, type):
            return odd(told, value, state, include, exclude)
        if state.serialize_as_any and type(value) is not of:
            return infer(value, state, include, exclude)
        key = state.enter(value)
        try:
            return inner(value, state, include, exclude)
        finally:
            state.stack.discard(key)

    write.label = told  # type: ignore[attr-defined]
    return write


def _first(choices: list[Write], value: Any, state: Ser, include: Any, exclude: Any) -> tuple[bool, Any]:
    """Serializes with the first choice that the value fits."""
    before, count = state.check, len(state.warnings)
    try:
        for check in ("strict", "lax"):
            state.check = check
            for one in choices:
                try:
                    return True, one(value, state, include, exclude)
                except PydanticSerializationUnexpectedValue:
                    del state.warnings[count:]
            if before == "strict":
                break
    finally:
        state.check = before
    return False, None


@writer("union")
def union(schema: Any, writers: Writers) -> Write:
    choices = [writers.build(one[0] if isinstance(one, tuple) else one) for one in schema["choices"]]
    if len(choices) == 1:
        return choices[0]
    told = f"Union[{', '.join(label(one) for one in choices)}]"

    def write(value: Any, state: Ser, include: Any, exclude: Any) -> Any:
        fits, made = _first(choices, value, state, include, exclude)
        if fits:
            return made
        if state.check is not None:
            raise Mismatched(f"Expected `{told}`")
        for one in choices:
            state.warn(label(one), value)
        return infer(value, state, include, exclude)

    write.label = told  # type: ignore[attr-defined]
    return write


@writer("tagged-union")
def tagged_union(schema: Any, writers: Writers) -> Write:
    choices = {tag: writers.build(one) for tag, one in schema["choices"].items()}
    by = schema["discriminator"]
    paths = None if callable(by) else lookup(by)
    every = union({"choices": [one for one in schema["choices"].values()]}, writers)

    def tag_of(value: Any) -> Any:
        if paths is None:
            return by(value)
        return next((found for path in paths if (found := walk(value, path, True)) is not PydanticUndefined), None)

    def write(value: Any, state: Ser, include: Any, exclude: Any) -> Any:
        try:
            tag = tag_of(value)
            one = choices.get(getattr(tag, "value", tag), choices.get(tag))
        except Exception:
            one = None
        if one is not None:
            fits, made = _first([one], value, state, include, exclude)
            if fits:
                return made
        return every(value, state, include, exclude)

    write.label = f"TaggedUnion[{', '.join(label(one) for one in choices.values())}]"  # type: ignore[attr-defined]
    return write


@writer("default", "function-before", "function-after", "function-wrap", "custom-error")
def inside(schema: Any, writers: Writers) -> Write:
    inner = schema.get("schema")
    return infer if inner is None else writers.build(inner)


@writer("lax-or-strict")
def lax_or_strict(schema: Any, writers: Writers) -> Write:
    return writers.build(schema["strict_schema"])


@writer("json-or-python")
def json_or_python(schema: Any, writers: Writers) -> Write:
    return writers.build(schema["json_schema"])


@writer("chain")
def chain(schema: Any, writers: Writers) -> Write:
    return writers.build(schema["steps"][-1])


@writer("json")
def json_(schema: Any, writers: Writers) -> Write:
    inner = writers.build(schema["schema"]) if schema.get("schema") else infer

    def write(value: Any, state: Ser, include: Any, exclude: Any) -> Any:
        if not state.round_trip:
            return inner(value, state, include, exclude)
        from .infer import dumps

        mode, state.mode = state.mode, "json"
        try:
            return dumps(inner(value, state, include, exclude), None, False, state.config).decode()
        finally:
            state.mode = mode

    return write


@writer("definitions")
def definitions(schema: Any, writers: Writers) -> Write:
    for one in schema["definitions"]:
        writers.definitions[one["ref"]] = writers.build(one)
    return writers.build(schema["schema"])


@writer("definition-ref")
def definition_ref(schema: Any, writers: Writers) -> Write:
    ref, known = schema["schema_ref"], writers.definitions

    def write(value: Any, state: Ser, include: Any, exclude: Any) -> Any:
        return known[ref](value, state, include, exclude)

    write.label = label(known[ref]) if ref in known else "..."  # type: ignore[attr-defined]
    return write
