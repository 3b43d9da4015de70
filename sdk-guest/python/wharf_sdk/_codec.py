"""Derives JSON Schemas from type hints, and functions that convert JSON values to the hinted types and back.

Many clients generate their own types from a schema and support only a simple subset of JSON Schema: so types are inlined
where they are used, each value has one type, objects always have `properties`. Only recursive types are references. An
optional member is left out of `required` and does not allow null; wharf treats a null argument like one that is left out.
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin
from uuid import UUID

from ._errors import Failure

T = TypeVar("T")

Schema = dict[str, Any]
Convert = Callable[[Any, str], Any]


class HintError(TypeError):
    """A type hint that has no JSON Schema."""


class Mismatch(ValueError):
    """A value that does not match its type hint."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Field:
    """Description and constraints of a type, inside of `Annotated`: `Annotated[int, Field("How many.", ge=1, le=10)]`.

    A plain text in `Annotated` is shorthand for a description. Objects with attributes of the same names, such as those of
    the package `annotated_types`, are supported as well.
    """

    description: str | None = dataclasses.field(default=None, kw_only=False)
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    multiple_of: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    format: str | None = None
    title: str | None = None
    examples: Sequence[Any] | None = None
    extra: Mapping[str, Any] | None = None
    """Other members of the schema, such as `{"x-mcp-header": "Region"}`."""


_LENGTHS = {"string": "Length", "array": "Items", "object": "Properties"}
_MEMBERS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
    "pattern": "pattern",
    "format": "format",
    "title": "title",
    "examples": "examples",
}


def same(value: Any, _where: str) -> Any:
    return value


@dataclasses.dataclass(frozen=True)
class Codec:
    """The schema and conversions of a type hint. The schema never allows null; `nullable` says whether None is allowed."""

    schema: Schema
    decode: Convert = same
    encode: Convert = same
    nullable: bool = False

    def whole(self) -> Schema:
        """Returns the schema of a value that cannot be left out, such as an item of a list. It includes null if allowed."""
        if not self.nullable or not self.schema:
            return self.schema
        inner = self.schema.get("anyOf") if set(self.schema) == {"anyOf"} else [self.schema]
        return {"anyOf": [*(inner or []), {"type": "null"}]}


def _kind(value: Any) -> str:
    kinds = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return kinds.get(type(value), "a number" if isinstance(value, (int, float)) else f"a {type(value).__name__}")


def _scalar(kind: str, accept: Callable[[Any], bool], said: str) -> Codec:
    def check(value: Any, where: str) -> Any:
        if not accept(value):
            raise Mismatch(f"{where} should be {said}, not {_kind(value)}")
        return value

    return Codec({"type": kind}, check, check)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _to_int(value: Any, where: str) -> int:
    # 5.0 is an integer in JSON.
    if not _is_number(value) or value != value // 1:
        raise Mismatch(f"{where} should be an integer, not {_kind(value)}")
    return int(value)


def _to_float(value: Any, where: str) -> float:
    if not _is_number(value):
        raise Mismatch(f"{where} should be a number, not {_kind(value)}")
    return float(value)


def _from_float(value: Any, where: str) -> float:
    _to_float(value, where)
    return typing.cast(float, value)


def _texts(schema: Schema, kind: type, parse: Callable[[str], Any], form: Callable[[Any], str]) -> Codec:
    """Returns a codec for a type that is a string in JSON."""

    def decode(value: Any, where: str) -> Any:
        if not isinstance(value, str):
            raise Mismatch(f"{where} should be a string, not {_kind(value)}")
        try:
            return parse(value)
        except (ValueError, ArithmeticError) as problem:
            raise Mismatch(f"{where} is not a {kind.__name__}: {problem}") from None

    def encode(value: Any, where: str) -> str:
        if not isinstance(value, kind):
            raise Mismatch(f"{where} should be a {kind.__name__}, not {_kind(value)}")
        return form(value)

    return Codec({"type": "string", **schema}, decode, encode)


def _iso(kind: type[datetime] | type[date] | type[time], name: str) -> Codec:
    def parse(text: str) -> Any:
        # `fromisoformat` supports `Z` only since Python 3.11.
        return kind.fromisoformat(text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text)

    return _texts({"format": name}, kind, parse, lambda value: str(value.isoformat()))


def _none(value: Any, where: str) -> None:
    if value is not None:
        raise Mismatch(f"{where} should be null, not {_kind(value)}")


def _json_object(value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise Mismatch(f"{where} should be an object, not {_kind(value)}")
    return value


def _json_array(value: Any, where: str) -> Any:
    if not isinstance(value, (list, tuple)):
        raise Mismatch(f"{where} should be an array, not {_kind(value)}")
    return value


_SCALARS: dict[Any, Codec] = {
    Any: Codec({}, same, lambda value, where: to_json(value, where)),
    object: Codec({}, same, lambda value, where: to_json(value, where)),
    str: _scalar("string", lambda value: isinstance(value, str), "a string"),
    bool: _scalar("boolean", lambda value: isinstance(value, bool), "a boolean"),
    int: Codec({"type": "integer"}, _to_int, _to_int),
    float: Codec({"type": "number"}, _to_float, _from_float),
    None: Codec({"type": "null"}, _none, _none),
    type(None): Codec({"type": "null"}, _none, _none),
    Decimal: Codec(
        {"type": "number"}, lambda value, where: Decimal(str(_from_float(value, where))), lambda value, _: float(value)
    ),
    datetime: _iso(datetime, "date-time"),
    date: _iso(date, "date"),
    time: _iso(time, "time"),
    UUID: _texts({"format": "uuid"}, UUID, UUID, str),
    Path: _texts({}, Path, Path, str),
    bytes: _texts(
        {"contentEncoding": "base64"},
        bytes,
        lambda text: base64.b64decode(text, validate=True),
        lambda value: base64.b64encode(value).decode(),
    ),
}


def load(of: type[T], data: Any) -> T:
    """Makes a value of a type, such as a dataclass, from data as `json.loads` returns it. Raises `Failure` if it does not fit."""
    try:
        return cast(T, codec(of).decode(data, "the data"))
    except Mismatch as problem:
        raise Failure(str(problem)) from None


def dump(value: Any) -> Any:
    """Turns a value, such as a dataclass, into data that `json.dumps` takes."""
    return to_json(value, "the value")


def to_json(value: Any, where: str) -> Any:
    """Converts a value without a type hint to JSON, by its own type."""
    if value is None or isinstance(value, (str, bool, int, float)) and not isinstance(value, enum.Enum):
        return value
    if isinstance(value, Mapping):
        return {str(key): to_json(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [to_json(item, f"{where}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, enum.Enum):
        return to_json(value.value, where)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return codec(type(value), output=True).encode(value, where)
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    for kind, known in _SCALARS.items():
        if kind not in (Any, object, None) and isinstance(value, kind):
            return known.encode(value, where)
    raise Mismatch(f"{where} is a {type(value).__name__}, which cannot be written as JSON")


def codec(hint: Any, *, output: bool = False) -> Codec:
    """Returns the codec of a type hint. `output`: for values that a plugin returns rather than receives."""
    deriver = _Deriver(output)
    found = deriver.of(hint)
    if not deriver.defs:
        return found
    schema = dict(found.schema)
    if set(schema) == {"$ref"}:
        schema = dict(deriver.defs[schema["$ref"].rpartition("/")[2]])
    return dataclasses.replace(found, schema={**schema, "$defs": deriver.defs})


@dataclasses.dataclass(frozen=True)
class Parameter:
    name: str
    codec: Codec
    default: Any = inspect.Parameter.empty

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty and not self.codec.nullable


def parameters(function: Callable[..., Any], said: Mapping[str, str] = {}) -> tuple[list[Parameter], Schema]:
    """Returns the parameters of a function, and the schema of an object with them. `said`: descriptions in its docstring."""
    deriver = _Deriver(output=False)
    hints = hints_of(function)
    found = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise HintError(f"the parameter `{name}` has no name that a caller could use: write it without `*` or `/`")
        if name not in hints:
            raise HintError(f"the parameter `{name}` has no type hint: write `{name}: str`, or another type")
        one = deriver.named(hints[name], f"`{name}`")
        if name in said and "description" not in one.schema:
            one = dataclasses.replace(one, schema={**one.schema, "description": said[name]})
        found.append(Parameter(name, one, parameter.default))
    schema = deriver.object([(one.name, one.codec, one.required, one.default) for one in found])
    if deriver.defs:
        schema["$defs"] = deriver.defs
    return found, schema


def hints_of(thing: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(thing, include_extras=True)
    except NameError as problem:
        reason = "imports under TYPE_CHECKING do not exist when the plugin is built"
        raise HintError(f"its type hints name something that does not exist: {problem} ({reason})") from None


class _Deriver:
    def __init__(self, output: bool) -> None:
        self.output = output
        self.defs: dict[str, Schema] = {}
        self._open: dict[Any, list[Codec]] = {}
        self._recursive: set[Any] = set()

    def named(self, hint: Any, name: str) -> Codec:
        try:
            return self.of(hint)
        except HintError as problem:
            raise HintError(f"{name}: {problem}") from None

    def of(self, hint: Any) -> Codec:
        if (hint is None or hint is Any or isinstance(hint, type)) and hint in _SCALARS:
            return _SCALARS[hint]
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is typing.Annotated:
            return _annotated(self.of(arguments[0]), hint.__metadata__)
        if getattr(origin, "__name__", "") in ("Required", "NotRequired", "ReadOnly") or "Required" in str(origin):
            return self.of(arguments[0])
        if origin is Literal:
            return _choice(list(arguments), {value: value for value in arguments}, {value: value for value in arguments})
        if origin is Union or origin is types.UnionType:
            return self._union(arguments)
        if isinstance(hint, typing.NewType):
            return self.of(hint.__supertype__)
        if hasattr(hint, "__value__"):  # `type X = …`
            return self.of(hint.__value__)
        kind = origin or hint
        if not isinstance(kind, type):
            raise HintError(f"there is no JSON Schema for the type hint `{_spelled(hint)}`")
        if hasattr(kind, "model_json_schema"):
            return self._model(kind)
        if issubclass(kind, enum.Enum):
            values = [member.value for member in kind]
            return _choice(values, {member.value: member for member in kind}, {member: member.value for member in kind})
        if dataclasses.is_dataclass(kind):
            return self._once(kind, self._dataclass)
        if hasattr(kind, "__required_keys__"):
            return self._once(kind, self._typed_dict)
        if issubclass(kind, tuple):
            if hasattr(kind, "_fields"):
                raise HintError(f"`{kind.__name__}` is a named tuple: make it a dataclass")
            return self._tuple(arguments)
        if issubclass(kind, (set, frozenset)):
            return self._list(arguments, kind, {"uniqueItems": True})
        if issubclass(kind, (list, Sequence)) or kind.__name__ in ("Iterable", "Collection"):
            return self._list(arguments, list, {})
        if issubclass(kind, Mapping):
            return self._mapping(arguments)
        raise HintError(f"there is no JSON Schema for `{_spelled(hint)}`: use a dataclass, or a type that JSON has")

    def object(self, members: Sequence[tuple[str, Codec, bool, Any]]) -> Schema:
        properties: Schema = {}
        for name, member, _, default in members:
            schema = member.schema
            if default not in (None, inspect.Parameter.empty, dataclasses.MISSING):
                try:
                    schema = {**schema, "default": member.encode(default, name)}
                except Mismatch as problem:
                    raise HintError(f"the default does not fit its type hint: {problem}") from None
            properties[name] = schema
        required = [name for name, _, needed, _ in members if needed]
        return {"type": "object", "properties": properties, **({"required": required} if required else {})}

    def _once(self, kind: Any, derive: Callable[[Any], Codec]) -> Codec:
        """Derives a named type. Where it contains itself, it is a reference."""
        name = kind.__name__
        if kind in self._open:
            self._recursive.add(kind)
            inner = self._open[kind]
            return Codec(
                {"$ref": f"#/$defs/{name}"},
                lambda value, where: inner[0].decode(value, where),
                lambda value, where: inner[0].encode(value, where),
            )
        self._open[kind] = []
        found = derive(kind)
        self._open.pop(kind).append(found)
        if kind not in self._recursive:
            return found
        self.defs[name] = found.schema
        return dataclasses.replace(found, schema={"$ref": f"#/$defs/{name}"})

    def _dataclass(self, kind: Any) -> Codec:
        inner = self._open[kind]
        hints = hints_of(kind)
        members = []
        for field in dataclasses.fields(kind):
            if field.init or self.output:
                member = self.named(hints[field.name], f"`{kind.__name__}.{field.name}`")
                default = dataclasses.MISSING if self.output else field.default
                free = not self.output and (
                    field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
                )
                members.append((field.name, member, not (free or member.nullable), default))
        decoders = {name: (member, needed, default) for name, member, needed, default in members}

        def decode(value: Any, where: str) -> Any:
            given = _members(value, where, decoders)
            for name, (member, _, default) in decoders.items():
                if name not in given and member.nullable and default is dataclasses.MISSING:
                    given[name] = None
            return kind(**given)

        def encode(value: Any, where: str) -> Any:
            if not isinstance(value, kind):
                raise Mismatch(f"{where} should be a {kind.__name__}, not {_kind(value)}")
            return _encoded({name: getattr(value, name) for name in decoders}, decoders, where)

        del inner
        return Codec(_described(self.object(members), kind), decode, encode)

    def _typed_dict(self, kind: Any) -> Codec:
        members = []
        for name, hint in hints_of(kind).items():
            member = self.named(hint, f"`{kind.__name__}.{name}`")
            # With `from __future__ import annotations`, `__required_keys__` ignores `NotRequired`.
            qualifier = str(get_origin(hint))
            needed = "NotRequired" not in qualifier and (name in kind.__required_keys__ or "Required" in qualifier)
            members.append((name, member, needed and not member.nullable, dataclasses.MISSING))
        decoders = {name: (member, needed, default) for name, member, needed, default in members}

        def decode(value: Any, where: str) -> Any:
            return _members(value, where, decoders)

        def encode(value: Any, where: str) -> Any:
            given = _json_object(value, where)
            for name, (member, needed, _) in decoders.items():
                if needed and name not in given:
                    raise Mismatch(f"{where} lacks `{name}`, which {kind.__name__} requires")
            unknown = [name for name in given if name not in decoders]
            if unknown:
                raise Mismatch(f"{where} has `{unknown[0]}`, which {kind.__name__} does not have")
            return _encoded(given, decoders, where)

        return Codec(_described(self.object(members), kind), decode, encode)

    def _union(self, arguments: Sequence[Any]) -> Codec:
        members = [self.of(one) for one in arguments if one is not type(None)]
        nullable = len(members) < len(arguments) or any(member.nullable for member in members)
        if not members:
            return _SCALARS[None]
        if len(members) == 1:
            only = members[0]
            schema, decode, encode = only.schema, only.decode, only.encode
        else:
            choices: list[Schema] = []
            for member in members:
                choices.extend(one for one in _choices(member.schema) if one not in choices)
            # A union with `Any` allows every value.
            schema = {"anyOf": choices} if {} not in choices else {}
            # `str` is tried last, because dates, enums and others are strings in JSON as well.
            tried = sorted(members, key=lambda member: member is _SCALARS[str] or not member.schema)
            decode, encode = _first([one.decode for one in tried]), _first([one.encode for one in tried])
        if not nullable:
            return Codec(schema, decode, encode)

        def optional(convert: Convert) -> Convert:
            return lambda value, where: None if value is None else convert(value, where)

        return Codec(schema, optional(decode), optional(encode), nullable=True)

    def _tuple(self, arguments: Sequence[Any]) -> Codec:
        if not arguments or len(arguments) == 2 and arguments[1] is Ellipsis:
            return self._list(arguments[:1], tuple, {})
        members = [self.of(one) for one in arguments]
        schemas = [member.whole() for member in members]
        distinct = [schema for index, schema in enumerate(schemas) if schema not in schemas[:index]]
        # `items` is redundant for clients that support `prefixItems`, and needed for the others.
        items = distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
        schema: Schema = {"type": "array", "items": items, "minItems": len(members), "maxItems": len(members)}
        if len(distinct) > 1:
            schema["prefixItems"] = schemas

        def each(converts: list[Convert], make: Callable[[Any], Any]) -> Convert:
            def convert(value: Any, where: str) -> Any:
                if len(_json_array(value, where)) != len(converts):
                    raise Mismatch(f"{where} should have {len(converts)} items, not {len(value)}")
                return make(one(item, f"{where}[{at}]") for at, (one, item) in enumerate(zip(converts, value)))

            return convert

        return Codec(schema, each([one.decode for one in members], tuple), each([one.encode for one in members], list))

    def _list(self, arguments: Sequence[Any], make: Callable[[Any], Any], more: Schema) -> Codec:
        item = self.of(arguments[0]) if arguments else _SCALARS[Any]

        def decode(value: Any, where: str) -> Any:
            items = _json_array(value, where)
            return make(item.decode(one, f"{where}[{index}]") for index, one in enumerate(items))

        def encode(value: Any, where: str) -> Any:
            if not isinstance(value, (list, tuple, set, frozenset)):
                raise Mismatch(f"{where} should be a list, not {_kind(value)}")
            return [item.encode(one, f"{where}[{index}]") for index, one in enumerate(value)]

        return Codec({"type": "array", "items": item.whole(), **more}, decode, encode)

    def _mapping(self, arguments: Sequence[Any]) -> Codec:
        if arguments and self.of(arguments[0]).schema.get("type") != "string":
            raise HintError(f"the keys of a dict are strings in JSON, not `{_spelled(arguments[0])}`")
        value_of = self.of(arguments[1]) if len(arguments) == 2 else _SCALARS[Any]
        schema: Schema = {"type": "object", "properties": {}}
        if value_of.schema:
            schema["additionalProperties"] = value_of.whole()

        def each(convert: Convert) -> Convert:
            return lambda value, where: {
                key: convert(item, f"{where}.{key}") for key, item in _json_object(value, where).items()
            }

        return Codec(schema, each(value_of.decode), each(value_of.encode))

    def _model(self, kind: Any) -> Codec:
        """Derives a class that has its own JSON Schema, as pydantic's models do."""

        def decode(value: Any, where: str) -> Any:
            try:
                return kind.model_validate(value)
            except ValueError as problem:
                raise Mismatch(f"{where}: {problem}") from None

        def encode(value: Any, where: str) -> Any:
            if not isinstance(value, kind):
                raise Mismatch(f"{where} should be a {kind.__name__}, not {_kind(value)}")
            return value.model_dump(mode="json")

        return Codec(plain(kind.model_json_schema()), decode, encode)


def _members(value: Any, where: str, members: Mapping[str, tuple[Codec, bool, Any]]) -> dict[str, Any]:
    """Decodes the known members of an object, each by its hint."""
    given = {}
    value = _json_object(value, where)
    for name, (member, needed, default) in members.items():
        if name in value and (value[name] is not None or member.nullable or member.schema.get("type") in (None, "null")):
            given[name] = member.decode(value[name], f"{where}.{name}")
        elif needed:
            raise Mismatch(f"{where} lacks `{name}`")
    return given


def _encoded(value: Mapping[str, Any], members: Mapping[str, tuple[Codec, bool, Any]], where: str) -> dict[str, Any]:
    encoded = {}
    for name, item in value.items():
        member = members[name][0]
        # By the schema, the member may be left out but not be null.
        if item is not None or not member.nullable:
            encoded[name] = member.encode(item, f"{where}.{name}")
    return encoded


def _first(converts: list[Convert]) -> Convert:
    def convert(value: Any, where: str) -> Any:
        problems = []
        for one in converts:
            try:
                return one(value, where)
            except Mismatch as problem:
                problems.append(str(problem))
        raise Mismatch("; ".join(problems))

    return convert


def _choice(values: list[Any], decode: dict[Any, Any], encode: dict[Any, Any]) -> Codec:
    """Returns a codec for one of several values."""
    if not values or not all(isinstance(value, (str, int, float, type(None))) for value in values):
        raise HintError(f"the values of a choice must be strings, numbers or booleans, not {values}")
    nullable = None in values
    listed = [value for value in values if value is not None]
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string"}
    types_of = {next(name for kind, name in kinds.items() if isinstance(value, kind)) for value in listed}
    schema: Schema = {"type": types_of.pop()} if len(types_of) == 1 else {}
    schema["enum"] = listed

    def convert(table: dict[Any, Any]) -> Convert:
        def one_of(value: Any, where: str) -> Any:
            try:
                if not isinstance(value, bool) or any(key is value for key in table):
                    return table[value]
            except (KeyError, TypeError):
                pass
            raise Mismatch(f"{where} should be one of {', '.join(map(repr, listed))}, not {value!r}")

        return one_of

    # An author may return the value instead of the enum member.
    return Codec(schema, convert(decode), convert({**{value: value for value in values}, **encode}), nullable)


def _annotated(base: Codec, metadata: Sequence[Any]) -> Codec:
    schema = dict(base.schema)
    if set(schema) == {"anyOf"}:
        schema = {"anyOf": schema["anyOf"]}
    kind = schema.get("type")
    for one in metadata:
        if isinstance(one, str):
            schema["description"] = one
            continue
        if getattr(one, "description", None):
            schema["description"] = one.description
        for name, member in _MEMBERS.items():
            value = getattr(one, name, None)
            if value is not None and not callable(value):
                schema[member] = list(value) if name == "examples" else value
        length = _LENGTHS.get(str(kind))
        for bound in ("min", "max"):
            value = getattr(one, f"{bound}_length", None)
            if value and length:
                schema[f"{bound}{length}"] = value
        schema.update(getattr(one, "extra", None) or {})
    return dataclasses.replace(base, schema=schema)


def _choices(schema: Schema) -> list[Schema]:
    return list(schema["anyOf"]) if set(schema) == {"anyOf"} else [schema]


def _described(schema: Schema, kind: Any) -> Schema:
    # Python gives a dataclass without a docstring its signature as one.
    doc = kind.__dict__.get("__doc__")
    if not doc or doc.startswith(f"{kind.__name__}("):
        return schema
    return {"type": "object", "description": inspect.cleandoc(doc), **schema}


def _spelled(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint).replace("typing.", "")


def plain(schema: Schema) -> Schema:
    """Reduces a schema that another library made to the subset that every client supports."""
    defs = {f"#/{key}/{name}": one for key in ("$defs", "definitions") for name, one in schema.get(key, {}).items()}
    kept: set[str] = set()

    def walk(one: Any, inside: tuple[str, ...], member: bool) -> Any:
        if not isinstance(one, dict):
            return one
        reference = one.get("$ref")
        if reference in inside:
            kept.add(reference)
            return dict(one)
        if reference in defs:
            rest = {key: value for key, value in one.items() if key != "$ref"}
            return walk({**defs[reference], **rest}, (*inside, reference), member)
        found: Schema = {}
        for key, value in one.items():
            if key in ("$defs", "definitions") or key == "title" and isinstance(value, str):
                continue
            if key in ("properties", "patternProperties"):
                value = {name: walk(inner, inside, True) for name, inner in value.items()}
            elif key in ("anyOf", "oneOf", "allOf", "prefixItems"):
                value = [walk(inner, inside, False) for inner in value]
            elif key in ("items", "additionalProperties", "not"):
                value = walk(value, inside, False)
            found[key] = value
        if member:
            for key in ("anyOf", "oneOf"):
                if {"type": "null"} in found.get(key, []):
                    left = [inner for inner in found.pop(key) if inner != {"type": "null"}]
                    found = {**left[0], **found} if len(left) == 1 else {**found, key: left}
            if found.get("default", ...) is None:
                del found["default"]
        if found.get("type") == "object":
            found.setdefault("properties", {})
        return found

    result = walk(schema, (), False)
    if kept:
        result["$defs"] = {name.rpartition("/")[2]: walk(defs[name], (name,), False) for name in kept}
    return typing.cast(Schema, result)
