"""Validators for lists, tuples, sets, dicts and generators."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from .errors import Invalid, Line, PydanticOmit, fail
from .state import LAX, Builder, Check, State, is_strict, label, maker, named

VIEWS = (type({}.keys()), type({}.values()), type({}.items()))
LOOSE = (list, tuple, set, frozenset, deque, *VIEWS)


def _iterable(value: Any, own: type, strict: bool, state: State, kind: str) -> Iterable[Any]:
    """Returns the items of an input that may stand for a collection of the type `own`."""
    if isinstance(value, own):
        return value
    if state.mode == "json" and isinstance(value, list):
        return value
    if not strict and state.mode != "json":
        if isinstance(value, LOOSE) or (isinstance(value, Iterator) and not isinstance(value, (str, bytes))):
            state.floor(LAX)
            return value
        # The members of an enum have what their class iterates.
        if any("__iter__" in one.__dict__ for one in type(value).__mro__) and not isinstance(value, (str, bytes, bytearray, dict, Mapping)):
            if hasattr(type(value), "__getitem__") or hasattr(type(value), "__next__"):
                state.floor(LAX)
                return value
    raise fail(kind, value)


def items(values: Iterable[Any], check: Check, state: State, given: Any, at_most: Callable[[int], None], fast: bool) -> list[Any]:
    """Validates each item, and gathers the errors of all."""
    made: list[Any] = []
    lines: list[Line] = []
    try:
        for index, one in enumerate(values):
            try:
                made.append(check(one, state))
            except Invalid as problem:
                lines.extend(problem.under(index).lines)
                if fast:
                    break
            except PydanticOmit:
                continue
            at_most(len(made) + len(lines))
    except (Invalid, PydanticOmit):
        raise
    except RuntimeError as problem:
        raise fail("iteration_error", given, error=f"{type(problem).__name__}: {problem}") from None
    if lines:
        raise Invalid(lines)
    return made


def _limits(schema: Any, name: str) -> tuple[Callable[[Any, int], None], Callable[[Any, int, Any], None]]:
    least, most = schema.get("min_length"), schema.get("max_length")

    def at_least(given: Any, count: int) -> None:
        if least is not None and count < least:
            raise fail("too_short", given, field_type=name, min_length=least, actual_length=count)

    def at_most(given: Any, count: int, whole: Any) -> None:
        if most is not None and count > most:
            total = len(whole) if hasattr(whole, "__len__") else None
            raise fail("too_long", given, field_type=name, max_length=most, actual_length=total)

    return at_least, at_most


def _inner(schema: Any, builder: Builder) -> Check | None:
    inner = schema.get("items_schema")
    return None if inner is None or inner["type"] == "any" else builder.build(inner)


@maker("list")
def list_(schema: Any, builder: Builder) -> Check:
    strict, inner = builder.option(schema, "strict"), _inner(schema, builder)
    at_least, at_most = _limits(schema, "List")
    fast = bool(schema.get("fail_fast"))

    def check(value: Any, state: State) -> Any:
        found = _iterable(value, list, is_strict(strict, state), state, "list_type")
        if inner is None:
            made = list(found)
            at_most(value, len(made), made)
        else:
            made = items(found, inner, state, value, lambda count: at_most(value, count, found), fast)
        at_least(value, len(made))
        return made

    return named(check, f"list[{label(inner) if inner else 'any'}]")


@maker("tuple")
def tuple_(schema: Any, builder: Builder) -> Check:
    strict = builder.option(schema, "strict")
    parts = [builder.build(one) for one in schema["items_schema"]]
    variadic = schema.get("variadic_item_index")
    fast = bool(schema.get("fail_fast"))
    at_least, at_most = _limits(schema, "Tuple")

    def check(value: Any, state: State) -> Any:
        found = _iterable(value, tuple, is_strict(strict, state), state, "tuple_type")
        if variadic is not None and len(parts) == 1:
            made = items(found, parts[0], state, value, lambda count: at_most(value, count, found), fast)
            at_least(value, len(made))
            return tuple(made)
        given = list(found)
        many = max(len(given) - len(parts) + 1, 0) if variadic is not None else 0
        checks = parts if variadic is None else [*parts[:variadic], *[parts[variadic]] * many, *parts[variadic + 1 :]]
        if variadic is None and len(given) > len(parts):
            raise fail("too_long", value, field_type="Tuple", max_length=len(parts), actual_length=len(given))
        made, lines = [], []
        for index, one in enumerate(checks):
            if index >= len(given):
                default = getattr(one, "default", None)
                if default is not None and (known := default(state)) is not None:
                    made.append(known.value)
                else:
                    lines.append(Line("missing", None, value, None, (index,)))
                continue
            try:
                made.append(one(given[index], state))
            except Invalid as problem:
                lines.extend(problem.under(index).lines)
                if fast:
                    break
            except PydanticOmit:
                pass
        if lines:
            raise Invalid(lines)
        at_most(value, len(made), made)
        at_least(value, len(made))
        return tuple(made)

    inside = ", ".join(label(one) + (", ..." if index == variadic else "") for index, one in enumerate(parts))
    return named(check, f"tuple[{inside}]")


def _set(own: type, kind: str, name: str) -> Callable[[Any, Builder], Check]:
    def make(schema: Any, builder: Builder) -> Check:
        strict, inner = builder.option(schema, "strict"), _inner(schema, builder)
        at_least, at_most = _limits(schema, name)
        fast = bool(schema.get("fail_fast"))

        def check(value: Any, state: State) -> Any:
            found = _iterable(value, own, is_strict(strict, state), state, kind)
            made: set[Any] = set()
            lines: list[Line] = []
            for index, one in enumerate(found):
                try:
                    made.add(one if inner is None else inner(one, state))
                except Invalid as problem:
                    lines.extend(problem.under(index).lines)
                    if fast:
                        break
                except PydanticOmit:
                    continue
                except TypeError:
                    lines.append(Line("set_item_not_hashable", None, one, None, (index,)))
                at_most(value, len(made), None)
            if lines:
                raise Invalid(lines)
            at_least(value, len(made))
            return made if own is set else own(made)

        return named(check, f"{own.__name__}[{label(inner) if inner else 'any'}]")

    return make


maker("set")(_set(set, "set_type", "Set"))
maker("frozenset")(_set(frozenset, "frozen_set_type", "Frozenset"))


def mapping_of(value: Any, strict: bool, state: State, kind: str = "dict_type") -> Any:
    """Returns the pairs of an input that may stand for a dict."""
    if isinstance(value, dict):
        return value
    if isinstance(value, Mapping) and not strict and state.mode == "python":
        state.floor(LAX)
        try:
            return dict(value.items())
        except Exception as problem:
            raise fail("mapping_type", value, error=f"{type(problem).__name__}: {problem}") from None
    raise fail(kind, value)


@maker("dict")
def dict_(schema: Any, builder: Builder) -> Check:
    strict = builder.option(schema, "strict")
    keys, values = (builder.build(schema.get(name) or {"type": "any"}) for name in ("keys_schema", "values_schema"))
    at_least, at_most = _limits(schema, "Dictionary")
    fast = bool(schema.get("fail_fast"))

    def check(value: Any, state: State) -> Any:
        found = mapping_of(value, is_strict(strict, state), state)
        made, lines = {}, []
        for key, one in found.items():
            key_lines: list[Line] = []
            made_key: Any = None
            try:
                made_key = keys(key, state)
            except Invalid as problem:
                key_lines = problem.under("[key]").under(key).lines
            except PydanticOmit:
                continue
            lines.extend(key_lines)
            if key_lines and fast:
                break
            try:
                made_one = values(one, state)
            except Invalid as problem:
                lines.extend(problem.under(key).lines)
                if fast:
                    break
                continue
            except PydanticOmit:
                continue
            if not key_lines:
                made[made_key] = made_one
        if lines:
            raise Invalid(lines)
        at_most(value, len(made), made)
        at_least(value, len(made))
        return made

    return named(check, f"dict[{label(keys)},{label(values)}]")


class ValidatorIterator:
    """The items of a generator, validated one by one as they are asked for."""

    def __init__(self, found: Iterator[Any], inner: Check | None, state: State, given: Any, schema: Any) -> None:
        self._found, self._inner, self._state, self._given, self._index = found, inner, state, given, 0
        self._least, self._most = schema.get("min_length"), schema.get("max_length")

    @property
    def index(self) -> int:
        return self._index

    def __iter__(self) -> ValidatorIterator:
        return self

    def __next__(self) -> Any:
        from .validator import raised

        try:
            one = next(self._found)
        except StopIteration:
            if self._least is not None and self._index < self._least:
                count = {"min_length": self._least, "actual_length": self._index}
                raise raised("ValidatorIterator", fail("too_short", self._given, field_type="Generator", **count), self._state) from None
            raise
        if self._most is not None and self._index >= self._most:
            count = {"max_length": self._most, "actual_length": None}
            raise raised("ValidatorIterator", fail("too_long", self._given, field_type="Generator", **count), self._state)
        at = self._index
        self._index += 1
        if self._inner is None:
            return one
        try:
            return self._inner(one, self._state)
        except Invalid as problem:
            raise raised("ValidatorIterator", problem.under(at), self._state) from None

    def __repr__(self) -> str:
        return f"ValidatorIterator(index={self._index}, schema={label(self._inner) if self._inner else None!r})"


@maker("generator")
def generator(schema: Any, builder: Builder) -> Check:
    inner = _inner(schema, builder)

    def check(value: Any, state: State) -> Any:
        if isinstance(value, (str, bytes)) and state.mode != "python":
            raise fail("iterable_type", value)
        try:
            found = iter(value)
        except TypeError:
            raise fail("iterable_type", value) from None
        later = State(state.mode, state.strict, state.from_attributes, state.context)
        return ValidatorIterator(found, inner, later, value, schema)

    return named(check, f"generator[{label(inner) if inner else 'any'}]")
