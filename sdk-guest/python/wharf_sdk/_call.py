"""The context of a call: information about the caller, questions, progress and logging.

One instance of a plugin runs one call at a time, so the running call is a global. The functions of wharf are behind
`Host`, which `_wasm` implements inside of a component.
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
Capability = Literal["form", "url", "sampling", "sampling-tools", "roots"]
Report = Literal["progress", "log"]


@dataclass(frozen=True)
class Directory:
    """A directory that is open to this call. `open` and Python's other file functions work in it."""

    path: str
    writable: bool


@dataclass(frozen=True)
class Root:
    """A directory or file that the client has opened, as the client spells it."""

    uri: str
    name: str | None = None


class Host(Protocol):
    """The functions of wharf that a running plugin can call."""

    def log(self, level: Level, message: str, data: str | None) -> None: ...
    def progress(self, done: float, total: float | None, message: str | None) -> None: ...
    def list_changed(self, which: Kind) -> None: ...
    def resource_updated(self, uri: str) -> None: ...
    def config(self) -> str: ...
    def directories(self) -> list[Directory]: ...


class NotGiven:
    """The user or the client declined to answer. It is falsy: `if not ask(…): …`."""

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
class Url:
    """A URL to open in a browser, over https."""

    message: str
    url: str


@dataclass(frozen=True)
class Sample:
    """A request to the client's model. `messages`: a text, or the messages of `sampling/createMessage`."""

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
    """A question for the client's roots: the directories and files that it has opened."""


Question = Union[Form[Any], Url, Sample, Roots]


@dataclass(frozen=True)
class Sampled:
    """The reply of the client's model. Do not trust it."""

    text: str
    result: dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """An answer in the contract's form: `value` is JSON if its kind is accepted or sampled."""

    kind: Literal["accepted", "declined", "cancelled", "sampled", "roots"]
    value: Any = None


class Asked(BaseException):
    """Ends a call that has to ask a question. It is a `BaseException`, so that `except Exception` does not catch it."""


@dataclass
class Call:
    """The running call."""

    answers: Mapping[str, Answer] = field(default_factory=dict)
    state: bytes | None = None
    flags: frozenset[str] = frozenset()
    """The capabilities of the client, and the reports that it wants."""
    revision: str = ""
    client: Mapping[str, Any] | None = None
    caller: str | None = None
    more: str = "{}"
    asking: dict[str, Question] = field(default_factory=dict)
    next_state: bytes | None = None
    asked: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.next_state = self.state


LIVE = "/.wharf-live"
"""The folder that `wharf dev` opens to a plugin that was built for it, with the plugin's own code. It is not among `directories()`."""
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
    """Returns the schema of a form, the codec of its answer, and whether it has a single field, called `answer`."""
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
    if isinstance(question, Url) and answer.kind == "accepted":
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
    """Asks several questions in one round. Returns the answers by the keys of the questions. An answer has the type that
    `ask`, `ask_url`, `sample` or `roots` returns, or is `NotGiven`."""
    call = _call("ask_all")
    missing = {key: question for key, question in questions.items() if key not in call.answers}
    if missing:
        call.asking = missing
        raise Asked()
    return {key: _read(key, question, call.answers[key]) for key, question in questions.items()}


def _key(question: Question, call: Call) -> str:
    """Returns a key that is unique to this question, so that its answer is not mistaken for that of another."""
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
    """Shows a form to the user and returns their input, or `NotGiven`, which is falsy.

    The first time, this ends the call. Then wharf asks the user and calls the function again from its start, and this
    returns the answer. So before the last question, do nothing that must not happen twice. Questions are identified by their
    text, and equal ones by their order. Set `key` to identify a question whose text changes, or in tests.
    """
    return _ask(Form(message, of), key)


def ask_url(message: str, url: str, *, key: str | None = None) -> bool:
    """Asks the user to open a URL in a browser. Returns whether they agreed."""
    return bool(_ask(Url(message, url), key))


def sample(
    messages: str | Sequence[Mapping[str, Any]],
    *,
    max_tokens: int = 1000,
    system_prompt: str | None = None,
    more: Mapping[str, Any] | None = None,
    key: str | None = None,
) -> Sampled:
    """Asks the client's model. `more`: further parameters of `sampling/createMessage`."""
    answer = _ask(Sample(messages, max_tokens, system_prompt, more), key)
    if isinstance(answer, Sampled):
        return answer
    raise Failure("the client did not want to sample")


def roots(*, key: str | None = None) -> list[Root]:
    """Returns the roots that the client has opened, as the client spells them. `directories` returns those that the plugin
    may *use*."""
    answer = _ask(Roots(), key or "roots")
    if isinstance(answer, list):
        return answer
    raise Failure("the client did not answer which roots it has opened")


def keep(value: Any) -> None:
    """Stores a JSON value for the next round, when this function is called again with answers. At most 64 KiB; the client
    can neither read nor change it."""
    _call("keep").next_state = json.dumps(value).encode()


def kept(default: Any = None) -> Any:
    """Returns the value that an earlier round stored, or `default`."""
    state = _call("kept").state
    return default if state is None else json.loads(state)


def can(what: Capability | Report) -> bool:
    """Whether the client can answer such a question, or wants to get such a report, during this call."""
    return what in _call("can").flags


def caller() -> dict[str, Any]:
    """Returns information about the caller: `id`, `revision` of MCP, `client`, `meta` of the request, `capabilities`.

    `id` is an opaque id under which a plugin can store what belongs to one user. It is made for this plugin alone. It is None
    if wharf does not tell callers apart (stdio, or HTTP without credentials); all such calls count as one caller's.
    """
    call = _call("caller")
    return {"id": call.caller, "revision": call.revision, "client": call.client, **json.loads(call.more)}


def progress(done: float, total: float | None = None, message: str | None = None) -> None:
    """Reports progress to the client, in any unit; `done` must grow from report to report."""
    _host("progress").progress(float(done), None if total is None else float(total), message)


def log(level: Level, message: str, data: Any = None) -> None:
    """Logs to the operator, and to the client if the log level that it set allows. If `data` is given, the client sees it
    instead of the message. Python's `logging` does the same."""
    _host("log").log(level, message, None if data is None else json.dumps(data))


def list_changed(which: Kind) -> None:
    """Announces that one of the plugin's lists changed."""
    _host("list_changed").list_changed(which)


def resource_updated(uri: str) -> None:
    """Announces that a resource of this plugin has new contents."""
    _host("resource_updated").resource_updated(uri)


def config() -> dict[str, Any]:
    """Returns the plugin's table `config` from the operator's config file."""
    return dict(json.loads(_host("config").config()))


def directories() -> list[Directory]:
    """Returns the directories that are open to this call."""
    return _host("directories").directories()


class LogHandler(logging.Handler):
    """A handler that sends the records of Python's `logging` to wharf."""

    def emit(self, record: logging.LogRecord) -> None:
        levels: list[tuple[int, Level]] = [(50, "critical"), (40, "error"), (30, "warning"), (20, "info")]
        level: Level = next((name for least, name in levels if record.levelno >= least), "debug")
        if host is not None:
            host.log(level, self.format(record), None)
