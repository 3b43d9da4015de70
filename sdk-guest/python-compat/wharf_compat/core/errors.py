"""The exceptions of `pydantic_core`, and the lines that errors consist of."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable
from typing import Any

from .messages import JSON_MESSAGES, MESSAGES

DOCS = "https://errors.pydantic.dev/2.12/v/"


class SchemaError(Exception):
    """A core schema that cannot be used."""

    def error_count(self) -> int:
        return 0

    def errors(self) -> list[Any]:
        return []


class PydanticOmit(Exception):
    """Raised by a validator: the value is left out of its collection."""


class PydanticUseDefault(Exception):
    """Raised by a validator: the default is used instead of the value."""


class PydanticSerializationError(ValueError):
    """A value cannot be serialized."""


class PydanticSerializationUnexpectedValue(ValueError):
    """A value is not of the type that its serializer is for."""


def filled(template: str, context: dict[str, Any] | None) -> str:
    """Puts the members of the context into the places of a message."""
    for name, value in (context or {}).items():
        place = "{%s}" % name
        if place in template:
            template = template.replace(place, value if isinstance(value, str) else _shown(value))
    return template


def _shown(value: Any) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e16:
        return str(value)
    return str(value)


def known_message(kind: str, context: dict[str, Any] | None, mode: str = "python") -> str:
    """Returns the message of one of pydantic's own kinds of errors."""
    template = JSON_MESSAGES.get(kind) if mode == "json" else None
    if template is None:
        template = MESSAGES[kind]
    if "{expected_plural}" in template:
        most = next((value for name, value in (context or {}).items() if name in ("min_length", "max_length")), None)
        template = template.replace("{expected_plural}", "" if most == 1 else "s")
    if kind == "too_long" and (context or {}).get("actual_length") is None:
        context = {**(context or {}), "actual_length": "more"}
    return filled(template, context)


class PydanticCustomError(ValueError):
    """An error with a kind and a message of the author's."""

    def __init__(self, error_type: str, message_template: str, context: dict[str, Any] | None = None, /) -> None:
        super().__init__(error_type, message_template, context)
        self.type, self.message_template, self.context = error_type, message_template, context

    def message(self) -> str:
        return filled(self.message_template, self.context)

    def __str__(self) -> str:
        return self.message()

    def __repr__(self) -> str:
        return f"{self.message()} [type={self.type}, context={self.context!r}]"


class PydanticKnownError(ValueError):
    """One of pydantic's own errors, raised by an author's validator."""

    def __init__(self, error_type: str, context: dict[str, Any] | None = None, /) -> None:
        super().__init__(error_type, context)
        if error_type not in MESSAGES:
            raise KeyError(f"Invalid error type: '{error_type}'")
        self.type, self.context = error_type, context

    @property
    def message_template(self) -> str:
        return MESSAGES[self.type]

    def message(self) -> str:
        return known_message(self.type, self.context)

    def __str__(self) -> str:
        return self.message()

    def __repr__(self) -> str:
        return f"{self.message()} [type={self.type}, context={self.context!r}]"


class Line:
    """One error: its kind, where it is, its message, the input and the context."""

    __slots__ = ("kind", "loc", "message", "input", "context", "custom")

    def __init__(
        self, kind: str, message: str | None, value: Any, context: dict[str, Any] | None = None, loc: tuple[Any, ...] = ()
    ) -> None:
        self.kind, self.loc, self.input, self.context = kind, loc, value, context
        self.custom = message is not None
        self.message = message

    def under(self, key: Any) -> Line:
        """Moves the error one level down, under a key."""
        self.loc = (key, *self.loc)
        return self

    def text(self, mode: str) -> str:
        return self.message if self.message is not None else known_message(self.kind, self.context, mode)


class Invalid(Exception):
    """What validators raise. Never leaves this package."""

    def __init__(self, lines: list[Line]) -> None:
        self.lines = lines

    def under(self, key: Any) -> Invalid:
        for line in self.lines:
            line.under(key)
        return self


def fail(kind: str, value: Any, **context: Any) -> Invalid:
    """Makes an error with one line."""
    return Invalid([Line(kind, None, value, context or None)])


class ValidationError(ValueError):
    """The errors of a validation."""

    def __init__(self, title: str, lines: Iterable[Line] = (), mode: str = "python", hide_input: bool = False) -> None:
        super().__init__(title)
        self._title, self._lines, self._mode, self._hide = title, list(lines), mode, hide_input

    @classmethod
    def from_exception_data(
        cls, title: str, line_errors: list[Any], input_type: str = "python", hide_input: bool = False
    ) -> ValidationError:
        lines = []
        for one in line_errors:
            kind, context, loc = one["type"], one.get("ctx"), tuple(one.get("loc", ()))
            if isinstance(kind, PydanticCustomError):
                lines.append(Line(kind.type, kind.message(), one.get("input"), kind.context, loc))
                continue
            if kind not in MESSAGES:
                raise KeyError(f"Invalid error type: '{kind}'")
            for name in _names(MESSAGES[kind]):
                if name not in (context or {}) and name != "expected_plural":
                    raise TypeError(f"{kind}: '{name}' required in context")
            lines.append(Line(kind, None, one.get("input"), context, loc))
        return cls(title, lines, input_type, hide_input)

    @property
    def title(self) -> str:
        return self._title

    def error_count(self) -> int:
        return len(self._lines)

    def errors(self, *, include_url: bool = True, include_context: bool = True, include_input: bool = True) -> list[Any]:
        found = []
        for line in self._lines:
            said: dict[str, Any] = {"type": line.kind, "loc": line.loc, "msg": line.text(self._mode)}
            if include_input:
                said["input"] = line.input
            if include_context and line.context:
                said["ctx"] = line.context
            if include_url and line.kind in MESSAGES and not (line.custom and line.kind not in MESSAGES):
                said["url"] = DOCS + line.kind
            found.append(said)
        return found

    def json(self, *, indent: int | None = None, include_url: bool = True, include_context: bool = True, include_input: bool = True) -> str:
        from .infer import to_jsonable_python

        said = self.errors(include_url=include_url, include_context=include_context, include_input=include_input)
        for one in said:
            if "ctx" in one:
                one["ctx"] = {key: str(value) if isinstance(value, Exception) else value for key, value in one["ctx"].items()}
        plain = to_jsonable_python(said, serialize_unknown=True)
        return json.dumps(plain, indent=indent, ensure_ascii=False, separators=None if indent else (",", ":"))

    def __str__(self) -> str:
        count = len(self._lines)
        parts = [f"{count} validation error{'' if count == 1 else 's'} for {self._title}"]
        for line in self._lines:
            if line.loc:
                parts.append(".".join(str(one.value) if isinstance(one, enum.Enum) else str(one) for one in line.loc))
            told = f"  {line.text(self._mode)} [type={line.kind}"
            if not self._hide:
                told += f", input_value={short(line.input)}, input_type={type(line.input).__name__}"
            parts.append(told + "]")
            if line.kind in MESSAGES and not line.custom or line.kind in ("value_error", "assertion_error"):
                parts.append(f"    For further information visit {DOCS}{line.kind}")
        return "\n".join(parts)

    def __repr__(self) -> str:
        return str(self)

    def __reduce__(self) -> Any:
        return ValidationError, (self._title, self._lines, self._mode, self._hide)


def _names(template: str) -> list[str]:
    return [part.partition("}")[0] for part in template.split("{")[1:]]


def short(value: Any) -> str:
    """Returns the `repr` of an input, shortened to 50 characters."""
    try:
        said = repr(value)
    except Exception as problem:
        said = f"<unprintable {type(value).__name__} object>" if problem else ""
    return said if len(said) <= 50 else f"{said[:25]}...{said[-24:]}"


def lines_of(problem: Exception, value: Any) -> list[Line]:
    """Turns an exception of an author's validator into lines."""
    if isinstance(problem, Invalid):
        return problem.lines
    if isinstance(problem, ValidationError):
        return [_copied(line) for line in problem._lines]
    if isinstance(problem, PydanticCustomError):
        return [Line(problem.type, problem.message(), value, problem.context)]
    if isinstance(problem, PydanticKnownError):
        return [Line(problem.type, None, value, problem.context)]
    if isinstance(problem, AssertionError):
        return [Line("assertion_error", None, value, {"error": problem})]
    return [Line("value_error", None, value, {"error": problem})]


def _copied(line: Line) -> Line:
    return Line(line.kind, line.message, line.input, line.context, line.loc)


def list_all_errors() -> list[dict[str, Any]]:
    """Lists pydantic's own kinds of errors."""
    return [
        {"type": kind, "message_template_python": text, "example_message_python": text, "example_context": None}
        for kind, text in MESSAGES.items()
    ]
