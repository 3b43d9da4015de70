"""The component's exports and imports. Imported only inside of a component, because `wit_world` exists nowhere else."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports import completions, prompts, resources, tools
from wit_world.imports import announcements, environment, progress
from wit_world.imports import logging as wit_logging

try:
    # The module's name if WASI's HTTP is imported, which has an interface `types` as well.
    from wit_world.imports import wharf_plugin_types as wit
except ImportError:
    from wit_world.imports import types as wit  # type: ignore[attr-defined, no-redef]

from . import _call, _errors, _http
from ._call import Answer, Call, Directory, Form, Question, Root, Sample, Url
from ._codec import to_json
from ._content import Audio, Content, Contents, Image, Link, Raw
from ._plugin import Plugin, Round, Tool

try:
    from . import _wasi_http

    _http.send = _wasi_http.send
except ImportError:
    # The component was built without HTTP.
    pass

R = TypeVar("R")
ASK_BEFORE_TASK = "dev.wharf/ask-before-task"
"""The member of a tool's `_meta` that makes wharf ask before a task begins."""


class Wharf:
    """The functions of wharf. They are not available while the component is built."""

    live = False

    def _check(self, name: str) -> None:
        if not self.live:
            raise RuntimeError(f"`{name}` works only while wharf runs the plugin, not when it is imported")

    def log(self, level: _call.Level, message: str, data: str | None) -> None:
        if self.live:
            wit_logging.log(wit_logging.Level[level.upper()], message, data)
        else:
            print(f"{level}: {message}", file=sys.stderr)

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        self._check("progress")
        progress.report(done, total, message)

    def list_changed(self, which: _call.Kind) -> None:
        self._check("list_changed")
        announcements.list_changed(announcements.Kind[which.upper()])

    def resource_updated(self, uri: str) -> None:
        self._check("resource_updated")
        announcements.resource_updated(uri)

    def config(self) -> str:
        self._check("config")
        return environment.config()

    def directories(self) -> list[Directory]:
        self._check("directories")
        return [Directory(one.path, one.writable) for one in environment.directories() if one.path != _call.LIVE]


wharf = Wharf()
_call.host = wharf
plugin = Plugin()
"""Set by `start`."""
reload: Callable[[], None] | None = None
"""Loads that code, in a component that was built for `wharf dev`."""
listed: list[tools.Tool] = []


def prepare() -> None:
    """Runs before the plugin is imported. Sends Python's `logging` to wharf, unless the plugin configures it otherwise."""
    handler = _call.LogHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)


def start(registered: Plugin) -> None:
    """Runs after the plugin is imported, at build time. The objects made here are part of the component."""
    global plugin
    plugin = registered
    plugin.finish()
    listed[:] = [_tool(one) for one in plugin.tools.values()]


def _safely(function: Callable[[], R]) -> R:
    """Runs a function of the plugin. Any exception becomes a failure of the contract."""
    wharf.live = True
    try:
        if reload is not None:
            reload()
        return function()
    except Err:
        raise
    except _errors.ProtocolError as error:
        raise Err(wit.Failure(_kind(error.code), error.message, _text(error.data))) from None
    except BaseException as error:
        if not isinstance(error, _errors.Failure):
            # The traceback is for the operator's log; the client gets one sentence.
            traceback.print_exc()
        raise Err(wit.Failure(wit.FailureKind_Failed(), _errors.told(error), None)) from None


def _kind(code: int) -> wit.FailureKind:
    """Returns the kind of failure in the contract for a code."""
    if code == _errors.INVALID_PARAMS:
        return wit.FailureKind_InvalidParams()
    return wit.FailureKind_NotFound() if code == _errors.RESOURCE_NOT_FOUND else wit.FailureKind_Other(code)


class Tools(exports.Tools):
    def list_tools(self) -> list[tools.Tool]:
        return _safely(lambda: listed)

    def call_tool(self, name: str, arguments: str, context: wit.Context) -> tools.ToolOutcome:
        return _safely(lambda: _outcome(plugin.call_tool(name, arguments, _read_context(context))))


class Resources(exports.Resources):
    def list_resources(self) -> list[resources.ResourceEntry]:
        return _safely(
            lambda: [
                resources.ResourceEntry(one.uri, one.name, one.description, one.mime_type, _text(one.more))
                for one in plugin.list_entries()
            ]
        )

    def list_templates(self) -> list[resources.ResourceTemplate]:
        return _safely(
            lambda: [
                resources.ResourceTemplate(one.uri, one.name, one.description, one.mime_type, _text(one.more))
                for one in plugin.resources.values()
                if one.is_template
            ]
        )

    def read_resource(self, uri: str, context: wit.Context) -> resources.ReadOutcome:
        def read() -> resources.ReadOutcome:
            found = plugin.read(uri, _read_context(context))
            if isinstance(found, Round):
                return resources.ReadOutcome_Ask(_round(found))
            return resources.ReadOutcome_Done([_contents(one) for one in found])

        return _safely(read)


class Prompts(exports.Prompts):
    def list_prompts(self) -> list[prompts.Prompt]:
        return _safely(
            lambda: [
                prompts.Prompt(
                    one.name,
                    one.description,
                    [
                        prompts.PromptArgument(known.name, known.codec.schema.get("description"), known.required)
                        for known in one.parameters
                    ],
                    _text(one.more),
                )
                for one in plugin.prompts.values()
            ]
        )

    def get_prompt(
        self, name: str, arguments: list[tuple[str, str]], context: wit.Context
    ) -> prompts.PromptOutcome:
        def get() -> prompts.PromptOutcome:
            found = plugin.get_prompt(name, dict(arguments), _read_context(context))
            if isinstance(found, Round):
                return prompts.PromptOutcome_Ask(_round(found))
            messages = [prompts.Message(wit.Role[one.role.upper()], _content(one.content)) for one in found]
            return prompts.PromptOutcome_Done(prompts.PromptResult(getattr(found, "description", None), messages, None))

        return _safely(get)


class Completions(exports.Completions):
    def complete(
        self, target: completions.Target, argument: str, value: str, arguments: list[tuple[str, str]]
    ) -> completions.Completion:
        kind = "prompt" if isinstance(target, completions.Target_Prompt) else "template"

        def complete() -> completions.Completion:
            found = plugin.completion(kind, target.value, argument, value, dict(arguments))
            return completions.Completion(list(found.values), found.total, found.has_more)

        return _safely(complete)


def _text(value: Any) -> str | None:
    return None if value is None else json.dumps(to_json(value, "`more`"), allow_nan=False, ensure_ascii=False)


def _tool(tool: Tool) -> tools.Tool:
    needs = wit.ClientCapabilities(0)
    for need in tool.needs:
        needs |= wit.ClientCapabilities[need.upper().replace("-", "_")]
    hints = tools.Hints(**tool.hints) if any(value is not None for value in tool.hints.values()) else None
    task = tools.TaskSupport[tool.task.upper()]
    more = tool.more
    if tool.ask_before_task:
        more = {**(more or {}), "_meta": {**(more or {}).get("_meta", {}), ASK_BEFORE_TASK: True}}
    details = tools.ToolDetails(tool.title, _text(tool.output_schema), hints, needs, task, _text(more))
    plain = tools.ToolDetails(None, None, None, wit.ClientCapabilities(0), tools.TaskSupport.FORBIDDEN, None)
    return tools.Tool(tool.name, tool.description, _text(tool.schema) or "{}", None if details == plain else details)


def _read_context(context: wit.Context) -> Call:
    client = context.client
    return Call(
        {key: _answer(answer) for key, answer in context.answers},
        context.state,
        frozenset([*_names(wit.ClientCapabilities, context.capabilities), *_names(wit.Reports, context.reports)]),
        context.revision,
        client and {"name": client.name, "version": client.version, "title": client.title},
        context.caller,
        context.more,
    )


def _names(flags: Any, present: Any) -> list[str]:
    """Returns the names of the flags that are present, as the contract spells them."""
    return [one.name.lower().replace("_", "-") for one in flags if one.name is not None and one in present]


def _answer(answer: wit.Answer) -> Answer:
    match answer:
        case wit.Answer_Accepted(value):
            return Answer("accepted", value)
        case wit.Answer_Sampled(value):
            return Answer("sampled", value)
        case wit.Answer_Roots(value):
            return Answer("roots", [Root(one.uri, one.name) for one in value])
        case wit.Answer_Declined():
            return Answer("declined")
        case _:
            return Answer("cancelled")


def _round(found: Round) -> wit.Round:
    return wit.Round([(key, _question(one)) for key, one in found.questions.items()], found.state)


def _question(question: Question) -> wit.Question:
    match question:
        case Form():
            return wit.Question_Form(wit.Form(question.message, json.dumps(_call.form_schema(question.of))))
        case Url():
            return wit.Question_Url(wit.Url(question.message, question.url))
        case Sample():
            return wit.Question_Sampling(json.dumps(question.params()))
        case _:
            return wit.Question_Roots()


def _outcome(found: Any) -> tools.ToolOutcome:
    if isinstance(found, Round):
        return tools.ToolOutcome_Ask(_round(found))
    structured, more = _text(found.structured), _text(found.more)
    if not found.is_error and more is None:
        if structured is not None and not found.content:
            return tools.ToolOutcome_Structured(structured)
        if structured is None and len(found.content) == 1 and isinstance(found.content[0], str):
            return tools.ToolOutcome_Text(found.content[0])
    content = [_content(one) for one in found.content]
    return tools.ToolOutcome_Done(tools.ToolResult(content, structured, found.is_error, more))


def _content(content: Content) -> wit.Content:
    match content:
        case str():
            return wit.Content_Text(content)
        case Image():
            return wit.Content_Image(wit.Media(content.mime_type, content.data))
        case Audio():
            return wit.Content_Audio(wit.Media(content.mime_type, content.data))
        case Link():
            return wit.Content_Link(wit.ResourceLink(content.uri, content.name, content.mime_type, _text(content.more)))
        case Contents():
            return wit.Content_Embedded(_contents(content))
        case Raw():
            return wit.Content_Raw(json.dumps(dict(content.block)))


def _contents(contents: Contents) -> wit.ResourceContents:
    body = wit.Body_Text(contents.body) if isinstance(contents.body, str) else wit.Body_Bytes(bytes(contents.body))
    return wit.ResourceContents(contents.uri, contents.mime_type, body, _text(contents.more))


