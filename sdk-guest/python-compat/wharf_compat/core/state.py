"""What validators share during one validation, and what they have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .errors import fail

EXACT, STRICT, LAX = 2, 1, 0
"""How well an input fits a validator. Unions choose the member that fits best."""

Check = Callable[[Any, "State"], Any]
"""A validator: takes the input, returns the value or raises `Invalid`."""


class State:
    """One validation: its options, and the position in the input."""

    __slots__ = (
        "strict", "mode", "from_attributes", "context", "by_alias", "by_name", "extra", "self_instance", "data",
        "field_name", "exactness", "fields_set", "seen", "partial",
    )  # fmt: skip

    def __init__(
        self, mode: str = "python", strict: bool | None = None, from_attributes: bool | None = None, context: Any = None,
        by_alias: bool | None = None, by_name: bool | None = None, extra: str | None = None, self_instance: Any = None,
    ) -> None:  # fmt: skip
        self.mode, self.strict, self.from_attributes, self.context = mode, strict, from_attributes, context
        self.by_alias, self.by_name, self.extra, self.self_instance = by_alias, by_name, extra, self_instance
        self.data: dict[str, Any] | None = None
        self.field_name: str | None = None
        self.exactness, self.fields_set = EXACT, None
        self.seen: set[Any] = set()
        self.partial: Any = None

    def floor(self, exactness: int) -> None:
        if exactness < self.exactness:
            self.exactness = exactness


class Info:
    """`ValidationInfo`: what a validator of the author's may ask about its validation."""

    __slots__ = ("config", "context", "data", "field_name", "mode")

    def __init__(self, state: State, config: Any, field_name: str | None) -> None:
        self.context, self.config, self.mode = state.context, config, state.mode
        self.data, self.field_name = state.data, field_name

    def __repr__(self) -> str:
        return f"ValidationInfo(config={self.config!r}, context={self.context!r}, data={self.data!r}, field_name={self.field_name!r})"


class Builder:
    """Builds validators from core schemas. `makers` has a function for each type of schema; other files fill it."""

    makers: dict[str, Callable[[Any, Builder], Check]] = {}

    def __init__(self, config: dict[str, Any] | None, definitions: dict[str, Check] | None = None, reuses: bool = True) -> None:
        self.config = config or {}
        self.definitions: dict[str, Check] = {} if definitions is None else definitions
        self.reuses = reuses

    def made(self, schema: Any) -> Check | None:
        """Returns the validator that a model already has, if it is for the model alone."""
        known = schema["cls"].__dict__
        if known.get("__pydantic_complete__") is not True or schema.get("generic_origin") is not None:
            return None
        made = known.get("__pydantic_validator__")
        # Pydantic keeps something else here until the model is complete.
        check = made._check if type(made).__name__ == "SchemaValidator" else None
        return check if getattr(check, "model", None) is schema["cls"] else None

    def build(self, schema: Any) -> Check:
        if self.reuses and schema["type"] == "model":
            made = self.made(schema)
            if made is not None:
                return made
        self.reuses = True
        make = self.makers.get(schema["type"])
        if make is None:
            from .errors import SchemaError

            raise SchemaError(f"Unknown schema type: {schema['type']!r}")
        check = make(schema, self)
        if not hasattr(check, "label"):
            named(check, schema["type"])
        return check

    def with_config(self, config: dict[str, Any] | None) -> Builder:
        """Returns a builder for the inside of a model, which has a config of its own."""
        return self if config is None else Builder(config, self.definitions)

    def option(self, schema: Any, name: str, config_name: str | None = None, default: Any = None) -> Any:
        value = schema.get(name)
        return self.config.get(config_name or name, default) if value is None else value


def maker(name: str) -> Callable[[Callable[[Any, Builder], Check]], Callable[[Any, Builder], Check]]:
    """Registers the function that builds the validators for a type of schema."""

    def register(function: Callable[[Any, Builder], Check]) -> Callable[[Any, Builder], Check]:
        Builder.makers[name] = function
        return function

    return register


def named(check: Check, label: str) -> Check:
    """Names a validator, for the places of errors in unions."""
    check.label = label  # type: ignore[attr-defined]
    return check


def label(check: Check) -> str:
    return getattr(check, "label", "")


def is_strict(own: bool | None, state: State) -> bool:
    """Whether a validator is strict: the call's own option comes first."""
    return bool(own) if state.strict is None else state.strict


def numbers(schema: Any) -> Callable[[Any, Any], Any] | None:
    """Returns a function that checks the bounds of a number; None if it has no bounds."""
    gt, ge, lt, le = (schema.get(name) for name in ("gt", "ge", "lt", "le"))
    step = schema.get("multiple_of")
    if gt is None and ge is None and lt is None and le is None and step is None:
        return None

    def check(value: Any, given: Any) -> Any:
        if step is not None:
            if isinstance(value, float):
                rest = value % step
                if min(rest, step - rest) > value / 1e9 if value > 0 else rest not in (0, step) and min(rest, step - rest) > 1e-9:
                    raise fail("multiple_of", given, multiple_of=step)
            elif value % step:
                raise fail("multiple_of", given, multiple_of=step)
        if le is not None and not value <= le:
            raise fail("less_than_equal", given, le=le)
        if lt is not None and not value < lt:
            raise fail("less_than", given, lt=lt)
        if ge is not None and not value >= ge:
            raise fail("greater_than_equal", given, ge=ge)
        if gt is not None and not value > gt:
            raise fail("greater_than", given, gt=gt)
        return value

    return check
