"""`SchemaValidator`, and the exceptions that it raises."""

from __future__ import annotations

from typing import Any

from . import arguments, combine, containers, fields, models, scalars, temporal  # noqa: F401 (they register their validators)
from .errors import Invalid, PydanticOmit, PydanticUseDefault, SchemaError, ValidationError, fail
from .jsontext import from_json
from .state import Builder, State, label
from .values import Some


def raised(title: str, problem: Invalid, state: State, hide_input: bool = False) -> ValidationError:
    return ValidationError(title, problem.lines, state.mode, hide_input)


class SchemaValidator:
    """Validates inputs by a core schema."""

    __slots__ = ("_schema", "_config", "_check", "_title", "_hide", "_causes")

    def __init__(self, schema: Any, config: Any = None, _use_prebuilt: bool = True) -> None:
        self._schema, self._config = schema, config
        try:
            self._check = Builder(config, reuses=_use_prebuilt and schema["type"] != "model").build(schema)
        except KeyError as problem:
            raise SchemaError(f"Invalid Schema: {problem} is missing") from None
        own = _inside(schema).get("config") or {}
        self._title = (config or {}).get("title") or own.get("title") or label(self._check)
        hide = (config or {}).get("hide_input_in_errors")
        self._hide = bool(own.get("hide_input_in_errors") if hide is None else hide)
        cause = (config or {}).get("validation_error_cause")
        self._causes = bool(own.get("validation_error_cause") if cause is None else cause)

    @property
    def title(self) -> str:
        return self._title

    def _run(self, value: Any, state: State) -> Any:
        try:
            return self._check(value, state)
        except Invalid as problem:
            error = raised(self._title, problem, state, self._hide)
            if self._causes:
                _cause(error, problem)
            raise error from error.__cause__
        except PydanticOmit:
            raise SchemaError("Uncaught `PydanticOmit` exception.") from None
        except PydanticUseDefault:
            raise SchemaError("Uncaught `PydanticUseDefault` exception.") from None

    def validate_python(
        self, input: Any, *, strict: bool | None = None, extra: str | None = None, from_attributes: bool | None = None,
        context: Any = None, self_instance: Any = None, allow_partial: Any = False, by_alias: bool | None = None,
        by_name: bool | None = None,
    ) -> Any:  # fmt: skip
        state = State("python", strict, from_attributes, context, by_alias, by_name, extra, self_instance)
        return self._run(input, state)

    def isinstance_python(
        self, input: Any, *, strict: bool | None = None, extra: str | None = None, from_attributes: bool | None = None,
        context: Any = None, self_instance: Any = None, by_alias: bool | None = None, by_name: bool | None = None,
    ) -> bool:  # fmt: skip
        try:
            self._check(input, State("python", strict, from_attributes, context, by_alias, by_name, extra, self_instance))
            return True
        except Invalid:
            return False

    def validate_json(
        self, input: str | bytes | bytearray, *, strict: bool | None = None, extra: str | None = None, context: Any = None,
        self_instance: Any = None, allow_partial: Any = False, by_alias: bool | None = None, by_name: bool | None = None,
    ) -> Any:  # fmt: skip
        state = State("json", strict, None, context, by_alias, by_name, extra, self_instance)
        if not isinstance(input, (str, bytes, bytearray)):
            raise raised(self._title, fail("json_type", input), state, self._hide)
        try:
            value = from_json(input, allow_partial=allow_partial)
        except ValueError as problem:
            raise raised(self._title, fail("json_invalid", input, error=str(problem)), state, self._hide) from None
        return self._run(value, state)

    def validate_strings(
        self, input: Any, *, strict: bool | None = None, extra: str | None = None, context: Any = None,
        allow_partial: Any = False, by_alias: bool | None = None, by_name: bool | None = None,
    ) -> Any:  # fmt: skip
        return self._run(input, State("strings", strict, None, context, by_alias, by_name, extra))

    def validate_assignment(
        self, obj: Any, field_name: str, field_value: Any, *, strict: bool | None = None, extra: str | None = None,
        from_attributes: bool | None = None, context: Any = None, by_alias: bool | None = None, by_name: bool | None = None,
    ) -> Any:  # fmt: skip
        assign = _assigner(self._check, self._schema)
        if assign is None:
            raise TypeError(f"{self._title} cannot be assigned to")
        state = State("python", strict, from_attributes, context, by_alias, by_name, extra)
        try:
            return assign(obj, field_name, field_value, state)
        except Invalid as problem:
            raise raised(self._title, problem, state, self._hide) from None

    def get_default_value(self, *, strict: bool | None = None, context: Any = None) -> Some | None:
        give = getattr(self._check, "default", None)
        state = State("python", strict, None, context)
        try:
            return give(state) if give is not None else None
        except Invalid as problem:
            raise raised(self._title, problem, state, self._hide) from None

    def __repr__(self) -> str:
        return f'SchemaValidator(title="{self._title}", validator={label(self._check)})'

    def __reduce__(self) -> Any:
        return SchemaValidator, (self._schema, self._config)


def _inside(schema: Any) -> Any:
    """Returns the schema below definitions and functions, whose config has the title."""
    while schema["type"] in ("definitions", "function-before", "function-after", "function-wrap", "default"):
        schema = schema["schema"]
    return schema


def _assigner(check: Any, schema: Any) -> Any:
    """Returns the function that assigns a field. Functions around a model run as well: they get the changed instance."""
    found = getattr(check, "assign", None)
    if found is not None:
        return found
    if schema["type"] == "definitions":
        schema = schema["schema"]
    if schema["type"] not in ("function-before", "function-after", "function-wrap"):
        return None
    return assigning(schema)


def assigning(schema: Any) -> Any:
    """Builds the validators again, with the assignment in the place of the innermost one."""
    target = _inside(schema)
    config = target.get("config")
    inner = Builder(config, reuses=False).build(target)
    assign = getattr(inner, "assign", None)
    if assign is None:
        return None

    def run(obj: Any, name: str, value: Any, state: State) -> Any:
        placed = _placed(schema, target, lambda given, inner_state: assign(given, name, value, inner_state))
        return Builder(config, reuses=False).build(placed)(obj, state)

    return run


def _placed(schema: Any, target: Any, check: Any) -> Any:
    if schema is target:
        return {"type": "prepared", "check": check}
    return {**schema, "schema": _placed(schema["schema"], target, check)}


Builder.makers["prepared"] = lambda schema, builder: schema["check"]


def _cause(error: ValidationError, problem: Invalid) -> None:
    """Makes the exceptions of the author's validators the cause, if the config asks for that."""
    causes = []
    for line in problem.lines:
        one = (line.context or {}).get("error")
        if isinstance(one, Exception):
            if hasattr(one, "add_note") and line.loc:
                one.add_note(f"\nPydantic: cause of loc: {'.'.join(str(step) for step in line.loc)}")
            causes.append(one)
    if causes:
        error.__cause__ = ExceptionGroup("Pydantic User Code Exceptions", causes)
