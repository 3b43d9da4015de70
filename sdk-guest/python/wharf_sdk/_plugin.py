"""The decorators, the registered functions, and the dispatch of calls to them."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from functools import partial
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, overload

from . import _call
from ._call import Answer, Asked, Call, Capability, Question
from ._codec import (
    Codec,
    HintError,
    Mismatch,
    Parameter,
    Schema,
    codec,
    hints_of,
    parameters,
    to_json,
)
from ._content import CONTENT, Completion, Content, Contents, Entry, Message, More, Result
from ._errors import InvalidParams, NotFound, PluginError, defined_at

F = TypeVar("F", bound=Callable[..., Any])
TaskSupport = Literal["forbidden", "optional", "required"]
NAME = re.compile(r"[A-Za-z0-9_.\-]{1,128}")
CAPABILITIES = get_args(Capability)
WANTS = ("http", "roots", "env", "ask", "secrets", "settings")


@dataclass(frozen=True)
class Round:
    """Questions that the client has to answer first."""

    questions: dict[str, Question]
    state: bytes | None


@dataclass
class Tool:
    function: Callable[..., Any]
    name: str
    description: str
    title: str | None
    hints: dict[str, bool | None]
    task: TaskSupport
    ask_before_task: bool
    needs: tuple[str, ...]
    schema: Schema | None
    output_schema: Schema | None
    more: More
    takes_all: bool
    """Whether the tool has a hand-written schema and takes all arguments as one dict."""
    parameters: list[Parameter] = field(default_factory=list)
    returns: Returns | None = None


@dataclass
class Resource:
    function: Callable[..., Any]
    uri: str
    name: str
    description: str
    mime_type: str | None
    entries: Callable[[], Sequence[Entry]] | None
    more: More
    parameters: list[Parameter] = field(default_factory=list)

    @property
    def is_template(self) -> bool:
        return "{" in self.uri


@dataclass
class Prompt:
    function: Callable[..., Any]
    name: str
    description: str
    more: More
    parameters: list[Parameter] = field(default_factory=list)


@dataclass(frozen=True)
class Returns:
    """The return type of a tool, by its hint."""

    hint: Any
    codec: Codec | None
    """The codec of the value; None if the value's own type decides."""
    wrapped: bool = False
    """Whether the value is wrapped in an object as its member `result`, because a structured result must be an object."""

    @property
    def schema(self) -> Schema | None:
        if self.codec is None:
            return None
        if not self.wrapped:
            return self.codec.schema
        inner = dict(self.codec.whole())
        defs = {"$defs": inner.pop("$defs")} if "$defs" in inner else {}
        return {"type": "object", "properties": {"result": inner}, "required": ["result"], **defs}


class Plugin:
    """The tools, resources, prompts and completions of a plugin, in the order of the source."""

    def __init__(self) -> None:
        self.tools: dict[str, Tool] = {}
        self.resources: dict[str, Resource] = {}
        self.prompts: dict[str, Prompt] = {}
        self.completions: dict[tuple[str, str, str], Callable[..., Any]] = {}
        self.instructions_text: str | None = None
        self.wanted: dict[str, Any] | None = None
        self.warnings: list[str] = []
        """What the build tells the author."""

    # The functions that authors call.

    @overload
    def tool(self, function: F, /) -> F: ...
    @overload
    def tool(
        self,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        read_only: bool | None = None,
        destructive: bool | None = None,
        idempotent: bool | None = None,
        open_world: bool | None = None,
        task: TaskSupport = "forbidden",
        ask_before_task: bool = False,
        needs: Sequence[Capability] = (),
        schema: Schema | None = None,
        output_schema: Schema | None = None,
        more: More = None,
    ) -> Callable[[F], F]: ...
    def tool(
        self,
        function: Any = None,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        read_only: bool | None = None,
        destructive: bool | None = None,
        idempotent: bool | None = None,
        open_world: bool | None = None,
        task: TaskSupport = "forbidden",
        ask_before_task: bool = False,
        needs: Sequence[Capability] = (),
        schema: Schema | None = None,
        output_schema: Schema | None = None,
        more: More = None,
    ) -> Any:
        """Makes a function a tool. Its docstring is the description; the argument schema is derived from its type hints.

        - `title`, `read_only`, `destructive`, `idempotent`, `open_world`: title and hints that clients show
        - `task`: clients may (`"optional"`) or must (`"required"`) run it in the background
        - `ask_before_task`: questions are asked before the task begins, not while it runs
        - `needs`: capabilities that the client must have, or wharf refuses the call
        - `schema`: this JSON Schema instead of the parameters' own; the function then takes one dict
        - `output_schema`: the schema of the structured result, if it is not derived from the return type hint
        - `more`: other members of the tool in MCP, such as `icons` and `_meta`
        """

        def register(function: F) -> F:
            where = _ordinary(function, "tool")
            told = name or function.__name__
            if not NAME.fullmatch(told):
                raise PluginError(f"the name of the tool `{told}` must be 1 to 128 letters, digits or `_-.` ({where})")
            if told in self.tools:
                raise PluginError(f"there are two tools `{told}` ({where}, and {defined_at(self.tools[told].function)})")
            if task not in get_args(TaskSupport):
                raise PluginError(f"`task` of `{told}` should be one of {', '.join(get_args(TaskSupport))} ({where})")
            unknown = [need for need in needs if need not in CAPABILITIES]
            if isinstance(needs, str) or unknown:
                raise PluginError(f"`needs` of `{told}` should be a list of {', '.join(CAPABILITIES)} ({where})")
            hints = {"read_only": read_only, "destructive": destructive, "idempotent": idempotent, "open_world": open_world}
            about = description or _description(function, "tool", told)
            self.tools[told] = Tool(
                function,
                told,
                about,
                title,
                hints,
                task,
                ask_before_task,
                tuple(needs),
                schema,
                output_schema,
                more,
                takes_all=schema is not None,
            )
            return function

        return register if function is None else register(function)

    def resource(
        self,
        uri: str,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        list: Callable[[], Sequence[Entry]] | None = None,
        more: More = None,
    ) -> Callable[[F], F]:
        """Makes a function a resource, or a template of resources: `@resource("note:///{day}")`, with a parameter for each
        variable; `{+path}` may contain slashes. `list`: a function that returns the entries for the list of resources."""

        def register(function: F) -> F:
            where = _ordinary(function, "resource")
            told = name or function.__name__
            if uri in self.resources:
                raise PluginError(f"there are two resources `{uri}` ({where})")
            variables, names = set(re.findall(r"\{\+?(\w+)\}", uri)), set(inspect.signature(function).parameters)
            if variables != names:
                odd = ", ".join(f"`{one}`" for one in sorted(variables ^ names))
                raise PluginError(f"the variables of `{uri}` and the parameters of `{told}` differ in {odd} ({where})")
            about = description or _description(function, "resource", told)
            self.resources[uri] = Resource(function, uri, told, about, mime_type, list, more)
            return function

        return register

    @overload
    def prompt(self, function: F, /) -> F: ...
    @overload
    def prompt(
        self, /, *, name: str | None = None, description: str | None = None, more: More = None
    ) -> Callable[[F], F]: ...
    def prompt(
        self, function: Any = None, /, *, name: str | None = None, description: str | None = None, more: More = None
    ) -> Any:
        """Makes a function a prompt. Its parameters are the prompt's arguments; it returns a text or messages."""

        def register(function: F) -> F:
            where = _ordinary(function, "prompt")
            told = name or function.__name__
            if told in self.prompts:
                raise PluginError(f"there are two prompts `{told}` ({where})")
            self.prompts[told] = Prompt(function, told, description or _description(function, "prompt", told), more)
            return function

        return register if function is None else register(function)

    def complete(self, target: Callable[..., Any] | str, argument: str, /) -> Callable[[F], F]:
        """Makes a function suggest values for an argument of a prompt or a template. The function takes the text typed so
        far, and optionally a dict of the arguments chosen already. It returns texts or a `Completion`.

        `target`: the prompt's or the template's function, or its name or its URI.
        """

        def register(function: F) -> F:
            where = _ordinary(function, "completion")
            for kind, name, one in self._targets():
                if target in (name, one.function):
                    if argument not in inspect.signature(one.function).parameters:
                        raise PluginError(f"`{name}` has no argument `{argument}` to complete ({where})")
                    self.completions[kind, name, argument] = function
                    return function
            raise PluginError(f"`{target}` is not a prompt or template that is defined above its completion ({where})")

        return register

    def instructions(self, text: str, /) -> None:
        """Sets up to 2 KiB of advice for the model about all tools together. The operator may replace it."""
        if len(text.encode()) > 2048:
            raise PluginError("instructions may have at most 2048 bytes")
        self.instructions_text = text

    def wants(self, **wants: Any) -> None:
        """Declares the grants that the plugin requests, and why: `wants(http=[{"url": "https://api.example.org/", "why":
        "the weather"}])`. It grants nothing: `wharf add` asks the operator about each."""
        unknown = [key for key in wants if key not in WANTS]
        if unknown:
            raise PluginError(f"`wants` has no key `{unknown[0]}`; the keys are: {', '.join(WANTS)}")
        self.wanted = wants

    # The functions that the build and the component call.

    def finish(self) -> None:
        """Derives all schemas. Runs once at build time, after the import, so that the component contains them."""
        for kind, one in self._all():
            try:
                one.parameters, schema = parameters(one.function, _sections_of(one.function)[1])
                if isinstance(one, Tool):
                    self._finish_tool(one, schema)
            except (HintError, PluginError) as problem:
                raise PluginError(f"the {kind} `{one.name}`: {problem} ({defined_at(one.function)})") from None
            except Exception as problem:
                said = f"its type hints cannot be read: {type(problem).__name__}: {problem}"
                raise PluginError(f"the {kind} `{one.name}`: {said} ({defined_at(one.function)})") from problem
        if not self.tools and not self.resources and not self.prompts:
            raise PluginError("the plugin offers nothing: mark a function with `@tool`, `@resource` or `@prompt`")

    def _finish_tool(self, tool: Tool, schema: Schema) -> None:
        tool.returns = _returns(hints_of(tool.function).get("return", Any))
        if not tool.takes_all:
            tool.schema = schema
        elif len(tool.parameters) != 1:
            raise PluginError("a tool with `schema` must take one parameter, a dict")
        if tool.output_schema is None:
            tool.output_schema = tool.returns.schema

    def call_tool(self, name: str, args: str, call: Call) -> Result | Round:
        tool = self.tools.get(name)
        if tool is None:
            raise InvalidParams(f"unknown tool: {name}")
        given = json.loads(args)

        def run() -> Result:
            if tool.takes_all:
                return _result(tool, tool.function(given))
            return _result(tool, tool.function(**_arguments(tool.parameters, given)))

        return _run(call, run)

    def list_entries(self) -> list[Entry]:
        """Returns the listed resources: those without variables, and those that the `list` functions of templates return."""
        found = []
        for one in self.resources.values():
            if not one.is_template:
                found.append(Entry(one.uri, one.name, one.description, one.mime_type, one.more))
            if one.entries is not None:
                found.extend(one.entries())
        return found

    def read(self, uri: str, call: Call) -> list[Contents] | Round:
        for one in self.resources.values():
            variables = match(one.uri, uri)
            if variables is None:
                continue
            try:
                arguments = {known.name: _from_text(known, variables[known.name]) for known in one.parameters}
            except Mismatch:
                continue
            return _run(call, partial(_read, one, uri, arguments))
        raise NotFound(uri)

    def get_prompt(self, name: str, args: Mapping[str, str], call: Call) -> list[Message] | Round:
        prompt = self.prompts.get(name)
        if prompt is None:
            raise InvalidParams(f"unknown prompt: {name}")
        arguments: dict[str, Any] = {}
        for one in prompt.parameters:
            if one.name in args:
                try:
                    arguments[one.name] = _from_text(one, args[one.name])
                except Mismatch as problem:
                    raise InvalidParams(str(problem)) from None
            elif one.required:
                raise InvalidParams(f"`{one.name}` is missing")
            elif one.default is inspect.Parameter.empty:
                arguments[one.name] = None
        return _run(call, lambda: _messages(prompt, prompt.function(**arguments)))

    def completion(self, kind: str, name: str, argument: str, value: str, others: Mapping[str, str]) -> Completion:
        function = self.completions.get((kind, name, argument))
        if function is not None:
            takes = len(inspect.signature(function).parameters)
            found = function(value, dict(others)) if takes > 1 else function(value)
            return found if isinstance(found, Completion) else Completion(list(found))
        for its_kind, its_name, one in self._targets():
            for parameter in one.parameters:
                # An argument with an enum is completed from its values.
                if (its_kind, its_name, parameter.name) == (kind, name, argument):
                    choice = [str(one) for one in parameter.codec.schema.get("enum", [])]
                    return Completion([one for one in choice if one.startswith(value)])
        return Completion()

    def reload(self, run: Callable[[], object]) -> None:
        """Forgets what is registered, and runs the code that registers it."""
        Plugin.__init__(self)
        run()

    def sections(self) -> dict[str, str]:
        """Returns the custom sections of the component, which wharf reads without running it."""
        found = {}
        if self.instructions_text:
            found["wharf:instructions"] = self.instructions_text
        if self.wanted:
            found["wharf:wants"] = json.dumps(self.wanted)
        return found

    def _all(self) -> Iterator[tuple[str, Tool | Resource | Prompt]]:
        yield from (("tool", one) for one in self.tools.values())
        yield from (("resource", one) for one in self.resources.values())
        yield from (("prompt", one) for one in self.prompts.values())

    def _targets(self) -> Iterator[tuple[str, str, Resource | Prompt]]:
        yield from (("prompt", one.name, one) for one in self.prompts.values())
        yield from (("template", one.uri, one) for one in self.resources.values() if one.is_template)


def _arguments(known: Sequence[Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    for one in known:
        value = given.get(one.name)
        if value is None and not one.required:
            if one.default is inspect.Parameter.empty:
                arguments[one.name] = None
        elif one.name not in given:
            raise InvalidParams(f"`{one.name}` is missing")
        else:
            try:
                arguments[one.name] = one.codec.decode(value, f"`{one.name}`")
            except Mismatch as problem:
                raise InvalidParams(str(problem)) from None
    return arguments


def _ordinary(function: Any, kind: str) -> str:
    where = defined_at(function)
    if not callable(function) or isinstance(function, type):
        raise PluginError(f"a {kind} is a function, not {function!r}")
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        name = function.__name__
        raise PluginError(f"the {kind} `{name}` is `async`, which plugins do not support: write `def {name}` ({where})")
    if inspect.isgeneratorfunction(function):
        raise PluginError(f"the {kind} `{function.__name__}` is a generator: use `return` instead of `yield` ({where})")
    return where


def _description(function: Any, kind: str, name: str) -> str:
    doc = _sections_of(function)[0]
    if not doc:
        where = defined_at(function)
        raise PluginError(f"the {kind} `{name}` has no description: write what it does as its docstring ({where})")
    return doc


def _sections_of(function: Any) -> tuple[str, dict[str, str]]:
    """Splits a docstring into its text without sections, and the descriptions of parameters in its section `Args:`."""
    about: list[str] = []
    parameters_of: dict[str, str] = {}
    section = last = None
    for line in (inspect.getdoc(function) or "").splitlines():
        if re.fullmatch(r"(Args|Arguments|Parameters|Returns|Raises|Yields|Examples?):", line):
            section = line
        elif section is None:
            about.append(line)
        elif section[:4] in ("Args", "Argu", "Para"):
            if found := re.match(r"\s{1,4}\*{0,2}(\w+)(?:\s*\([^)]*\))?:\s*(.*)", line):
                last = found[1]
                parameters_of[last] = found[2].strip()
            elif last and line.strip():
                parameters_of[last] = f"{parameters_of[last]} {line.strip()}".strip()
    return "\n".join(about).strip(), parameters_of


_BY_VALUE = (str, type(None), Any, object, Result, inspect.Parameter.empty, *(one for one in CONTENT))


def _returns(hint: Any) -> Returns:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in _BY_VALUE or origin is Union or getattr(origin, "__name__", "") == "UnionType":
        members = [_returns(one) for one in arguments if one is not type(None)]
        if not members or any(one.codec is None for one in members):
            return Returns(hint, None)
    if origin in (list, tuple, Sequence) and arguments and _returns(arguments[0]).codec is None and arguments[0] is not str:
        return Returns(hint, None)
    found = codec(hint, output=True)
    if not found.schema:
        return Returns(hint, None)
    # The schema of a plain dict has no information, so it is left out.
    if found.schema == {"type": "object", "properties": {}} and not found.nullable:
        return Returns(hint, None)
    return Returns(hint, found, wrapped=found.nullable or found.schema.get("type") != "object")


def _result(tool: Tool, value: Any) -> Result:
    returns = tool.returns
    assert returns is not None
    hint = returns.hint

    def odd(said: str) -> PluginError:
        return PluginError(f"the tool `{tool.name}` {said} ({defined_at(tool.function)})")

    if isinstance(value, Result):
        return value
    if returns.codec is not None:
        try:
            data = returns.codec.encode(value, "what it returned")
        except Mismatch as problem:
            raise odd(f"says that it returns {_name(hint)}, but {problem}") from None
        if not returns.wrapped:
            return Result((), data)
        return Result([data if isinstance(data, str) else _json(data)], {"result": data})
    if hint is str and not isinstance(value, str):
        raise odd(f"says that it returns str, but returned {_a(value)}")
    if value is None:
        return Result()
    if isinstance(value, CONTENT):
        return Result([value])
    if isinstance(value, (list, tuple)) and value and all(isinstance(one, CONTENT) for one in value):
        return Result(list(value))
    try:
        data = to_json(value, "what it returned")
    except Mismatch as problem:
        raise odd(f"returned something that no client can read: {problem}") from None
    return Result((), data) if isinstance(data, dict) else Result([_json(data)])


def _read(resource: Resource, uri: str, arguments: Mapping[str, Any]) -> list[Contents]:
    value = resource.function(**arguments)
    if isinstance(value, Contents):
        return [value]
    if isinstance(value, (str, bytes)):
        return [Contents(uri, value, resource.mime_type)]
    if isinstance(value, (list, tuple)) and all(isinstance(one, Contents) for one in value):
        return list(value)
    if isinstance(value, (dict, list)) or is_dataclass(value):
        data = _json(to_json(value, "what it returned"))
        return [Contents(uri, data, resource.mime_type or "application/json")]
    said = f"returned {_a(value)}, not a text, bytes, data or `Contents`"
    raise PluginError(f"the resource `{resource.name}` {said} ({defined_at(resource.function)})")


def _messages(prompt: Prompt, value: Any) -> list[Message]:
    found = [Message(value)] if isinstance(value, CONTENT) else value
    if isinstance(found, Message):
        found = [found]
    if isinstance(found, (list, tuple)) and all(isinstance(one, (Message, *CONTENT)) for one in found):
        return [one if isinstance(one, Message) else Message(one) for one in found]
    said = f"returned {_a(value)}, not a text or messages"
    raise PluginError(f"the prompt `{prompt.name}` {said} ({defined_at(prompt.function)})")


R = TypeVar("R")


def _run(call: Call, function: Callable[[], R]) -> R | Round:
    _call.current = call
    try:
        value = function()
    except Asked:
        pass
    except BaseException:
        # If a question was asked, it is the outcome, even if the plugin caught the exception and then failed.
        if not call.asking:
            raise
    finally:
        _call.current = None
    return Round(call.asking, call.next_state) if call.asking else value


def _from_text(parameter: Parameter, text: str) -> Any:
    """Decodes an argument that is always sent as text, whatever its hint."""
    if parameter.codec.schema.get("type") in ("integer", "number", "boolean"):
        try:
            return parameter.codec.decode(json.loads(text), f"`{parameter.name}`")
        except json.JSONDecodeError:
            raise Mismatch(f"`{parameter.name}` should be a {parameter.codec.schema['type']}, not {text!r}") from None
    return parameter.codec.decode(text, f"`{parameter.name}`")


def match(template: str, uri: str) -> dict[str, str] | None:
    """Matches a URI against a template of literals and `{x}` or `{+x}`; returns the variables. `{x}` matches no `/`."""
    pattern = ""
    for literal, plus, name in re.findall(r"([^{]*)(?:\{(\+?)(\w+)\})?", template):
        pattern += re.escape(literal)
        if name:
            pattern += f"(?P<{name}>{'.+' if plus else '[^/]+'})"
    found = re.fullmatch(pattern, uri, re.DOTALL)
    return found.groupdict() if found else None


def _json(value: Any) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False)


def _name(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint).replace("typing.", "")


def _a(value: Any) -> str:
    return "nothing" if value is None else f"a value of type {type(value).__name__}"
