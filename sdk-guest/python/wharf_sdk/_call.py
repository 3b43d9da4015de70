"""What a call knows of its caller, and how it asks, reports and logs.

One instance of a plugin runs one call at a time, so the call that runs is a global. The functions of wharf are behind
`Host`, which `_wasm` fulfils inside of a component.
"""

from __future__ import annotations

import json
import logging
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Literal, Protocol, TypeVar, Union, overload

from ._codec import Codec, Mismatch, Schema, codec
from ._errors import Failure

T = TypeVar("T")
Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
Kind = Literal["tools", "resources", "prompts"]
Ability = Literal["form", "page", "sampling", "sampling-tools", "roots", "progress", "log"]


@dataclass(frozen=True)
class Directory:
    """A directory that is open to this call, for `open` and the other functions of Python."""

    path: str
    writable: bool


@dataclass(frozen=True)
class Root:
    """A directory or file that the client has opened, as the client spells it."""

    uri: str
    name: str | None = None


class Host(Protocol):
    """What wharf offers to a plugin that runs."""

    def log(self, level: Level, message: str, data: str | None) -> None: ...
    def progress(self, done: float, total: float | None, message: str | None) -> None: ...
    def list_changed(self, which: Kind) -> None: ...
    def resource_updated(self, uri: str) -> None: ...
    def config(self) -> str: ...
    def directories(self) -> list[Directory]: ...


class NotGiven:
    """The person, or the client, did not answer. It counts as false: `if not ask(…): …`."""

    __slots__ = ("how",)

    def __init__(self, how: Literal["declined", "cancelled"]) -> None:
        self.how: Final = how

    def __bool__(self) -> Literal[False]:
        return False

    def __repr__(self) -> str:
        return f"NotGiven({self.how!r})"


@dataclass(frozen=True)
class Form(Generic[T]):
    """A form. `of`: a dataclass or TypedDict with one member for each field, one of `str`, `int`, `float`, `bool` and
    choices for a form of one field, or a JSON Schema."""

    message: str
    of: type[T] | Schema


@dataclass(frozen=True)
class Page:
    """A page to open in a browser, over https."""

    message: str
    url: str


@dataclass(frozen=True)
class Sample:
    """Something for the client's model. `messages`: a text, or the messages of `sampling/createMessage`."""

    messages: str | Sequence[Mapping[str, Any]]
    max_tokens: int = 1000
    system_prompt: str | None = None
    more: Mapping[str, Any] | None = None

    def params(self) -> dict[str, Any]:
        messages = self.messages
        if isinstance(messages, str):
            messages = [{"role": "user", "content": {"type": "text", "text": messages}}]
        system = {} if self.system_prompt is None else {"systemPrompt": self.system_prompt}
        return {"messages": list(messages), "maxTokens": self.max_tokens, **system, **(self.more or {})}


@dataclass(frozen=True)
class Roots:
    """What the client has opened."""


Question = Union[Form[Any], Page, Sample, Roots]


@dataclass(frozen=True)
class Sampled:
    """What the client's model said. Do not trust it."""

    text: str
    result: dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """An answer as wharf passes it on: `value` is JSON if it is accepted or sampled."""

    kind: Literal["accepted", "declined", "cancelled", "sampled", "roots"]
    value: Any = None


class Asked(BaseException):
    """Ends a call that has to ask. It is no `Exception`, so that `except Exception` lets it through."""


@dataclass
class Call:
    """The call that runs."""

    answers: Mapping[str, Answer] = field(default_factory=dict)
    state: bytes | None = None
    abilities: frozenset[str] = frozenset()
    more: str = "{}"
    asking: dict[str, Question] = field(default_factory=dict)
    next_state: bytes | None = None
    asked: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.next_state = self.state


host: Host | None = None
current: Call | None = None


def _call(name: str) -> Call:
    if current is None:
        raise RuntimeError(f"`{name}` works only while wharf runs a call of the plugin, not while it is built or tested")
    return current


def _host(name: str) -> Host:
    if host is None:
        raise RuntimeError(f"`{name}` works only in a plugin that wharf runs, not while it is built or tested")
    return host


def _form(of: Any) -> tuple[Schema, Codec, bool]:
    """The schema of a form, how its answer is read, and whether it has one field, called `answer`."""
    if isinstance(of, dict):
        return of, Codec(of), False
    found = codec(of)
    if found.schema.get("type") == "object":
        return found.schema, found, False
    return {"type": "object", "properties": {"answer": found.schema}, "required": ["answer"]}, found, True


def form_schema(of: Any) -> Schema:
    return _form(of)[0]


def _read(key: str, question: Question, answer: Answer) -> Any:
    if answer.kind in ("declined", "cancelled"):
        return NotGiven("declined" if answer.kind == "declined" else "cancelled")
    if isinstance(question, Form) and answer.kind == "accepted":
        _, reading, single = _form(question.of)
        value = json.loads(answer.value)
        try:
            return reading.decode(value["answer"] if single else value, "the answer")
        except (Mismatch, KeyError) as problem:
            raise Failure(f"the answer to `{key}` does not fit its form: {problem}") from None
    if isinstance(question, Page) and answer.kind == "accepted":
        return True
    if isinstance(question, Sample) and answer.kind == "sampled":
        result = json.loads(answer.value)
        blocks = result.get("content", [])
        blocks = blocks if isinstance(blocks, list) else [blocks]
        return Sampled("".join(block.get("text", "") for block in blocks if block.get("type") == "text"), result)
    if isinstance(question, Roots) and answer.kind == "roots":
        return list(answer.value)
    raise Failure(f"the answer to `{key}` is of another kind than the question")


def ask_all(questions: Mapping[str, Question]) -> dict[str, Any]:
    """Asks several questions in one round. The answers have the keys of the questions: what `ask`, `ask_page`, `sample` and
    `roots` return, or `NotGiven`."""
    call = _call("ask_all")
    missing = {key: question for key, question in questions.items() if key not in call.answers}
    if missing:
        call.asking = missing
        raise Asked()
    return {key: _read(key, question, call.answers[key]) for key, question in questions.items()}


def _key(question: Question, call: Call) -> str:
    """What tells this question from all others, so that no answer is taken for that to another."""
    asked = f"{type(question).__name__} {getattr(question, 'message', '')}"
    if isinstance(question, Sample):
        asked += json.dumps(question.params(), sort_keys=True)
    words = re.sub("[^a-z0-9]+", "-", asked.split(" ", 1)[1].lower()).strip("-")[:32]
    key = f"{words or type(question).__name__.lower()}-{zlib.crc32(asked.encode()):08x}"
    call.asked[key] = call.asked.get(key, 0) + 1
    return key if call.asked[key] == 1 else f"{key}-{call.asked[key]}"


def _ask(question: Question, key: str | None) -> Any:
    call = _call("ask")
    if key is None:
        key = _key(question, call)
    return ask_all({key: question})[key]


@overload
def ask(message: str, of: type[T], *, key: str | None = None) -> T | NotGiven: ...
@overload
def ask(message: str, of: Schema, *, key: str | None = None) -> dict[str, Any] | NotGiven: ...
def ask(message: str, of: Any, *, key: str | None = None) -> Any:
    """Puts a form to the person and returns what they entered, or `NotGiven`, which is false.

    The first time, this ends the call. Then wharf asks the person and calls the function again from its start, and this
    returns the answer. So do nothing before it that must not happen twice. Questions are told apart by what they say,
    and equal ones by their order; `key` names one, for tests and for words that change.
    """
    return _ask(Form(message, of), key)


def ask_page(message: str, url: str, *, key: str | None = None) -> bool:
    """Asks the person to open a page over https. True if they agreed."""
    return bool(_ask(Page(message, url), key))


def sample(
    messages: str | Sequence[Mapping[str, Any]],
    *,
    max_tokens: int = 1000,
    system_prompt: str | None = None,
    more: Mapping[str, Any] | None = None,
    key: str | None = None,
) -> Sampled:
    """Has the client's model answer. `more`: further parameters of `sampling/createMessage`."""
    answer = _ask(Sample(messages, max_tokens, system_prompt, more), key)
    if isinstance(answer, Sampled):
        return answer
    raise Failure("the client did not want to sample")


def roots(*, key: str | None = None) -> list[Root]:
    """What the client has opened, as the client spells it. What the plugin may *use* is in `directories`."""
    answer = _ask(Roots(), key or "roots")
    if isinstance(answer, list):
        return answer
    raise Failure("the client did not say what it has opened")


def keep(value: Any) -> None:
    """Keeps a value of JSON for the next round, when this call is made again with answers. At most 64 KiB; nobody else can
    read or change it."""
    _call("keep").next_state = json.dumps(value).encode()


def kept(default: Any = None) -> Any:
    """The value that an earlier round kept."""
    state = _call("kept").state
    return default if state is None else json.loads(state)


def can(ability: Ability) -> bool:
    """What this client can do for this call."""
    return ability in _call("can").abilities


def caller() -> dict[str, Any]:
    """What is known of the caller: `revision` of MCP, `client`, `meta` of the request, `capabilities`."""
    return dict(json.loads(_call("caller").more))


def progress(done: float, total: float | None = None, message: str | None = None) -> None:
    """Tells how far the call has come, in any unit; `done` must grow."""
    _host("progress").progress(float(done), None if total is None else float(total), message)


def log(level: Level, message: str, data: Any = None) -> None:
    """To the operator, and to the client if it wants that level. `data`, if given, is what the client sees instead of the
    message. What is logged by Python's `logging` goes the same way."""
    _host("log").log(level, message, None if data is None else json.dumps(data))


def list_changed(which: Kind) -> None:
    """What the plugin offers differs from what it said last."""
    _host("list_changed").list_changed(which)


def resource_updated(uri: str) -> None:
    """A resource of this plugin has new contents."""
    _host("resource_updated").resource_updated(uri)


def config() -> dict[str, Any]:
    """The plugin's table `config` in the operator's file."""
    return dict(json.loads(_host("config").config()))


def directories() -> list[Directory]:
    """The directories that are open to this call."""
    return _host("directories").directories()


class LogHandler(logging.Handler):
    """Python's `logging`, to wharf."""

    def emit(self, record: logging.LogRecord) -> None:
        levels: list[tuple[int, Level]] = [(50, "critical"), (40, "error"), (30, "warning"), (20, "info")]
        level: Level = next((name for least, name in levels if record.levelno >= least), "debug")
        if host is not None:
            host.log(level, self.format(record), None)
