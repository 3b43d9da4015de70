"""The exports, with the bindings that componentize-py generates for type checkers: they have the component's types."""

from __future__ import annotations

import importlib.util
import json
import logging
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path
from typing import Any, Optional

from wharf_sdk import Contents, Failure, Image, Message, NotFound, Result, _call, ask, ask_all, caller, can, config, directories, log
from wharf_sdk._call import Directory, Form, Roots, Sample, Url
from wharf_sdk._plugin import Plugin

COMPLETE = importlib.util.find_spec("componentize_py") is not None and sys.version_info >= (3, 11)
WIT = Path(_call.__file__).parent / "wit"
plugin = Plugin()


@plugin.tool(
    title="Greets",
    read_only=True,
    task="optional",
    ask_before_task=True,
    needs=["form", "sampling-tools"],
    more={"_meta": {"a": 1}},
)
def greet(name: str) -> str:
    """Greets."""
    return f"Hello, {name}!"


@plugin.tool
def everything() -> Result:
    """Answers with everything."""
    return Result(["a", Image(b"x"), Contents("test://a", b"y")], {"a": 1}, is_error=True, more={"_meta": {}})


@plugin.tool
def data() -> dict[str, int]:
    """Data."""
    log("info", "given")
    logging.getLogger("x").error("bad")
    return {"a": 1}


@plugin.tool
def asks() -> str:
    """Asks."""
    ask_all({"form": Form("A?", bool), "page": Url("B", "https://b.example"), "text": Sample("C"), "roots": Roots()})
    return f"{can('form')} {can('url')}"


@plugin.tool
def knows() -> str:
    """Who calls."""
    return json.dumps([caller(), can("form"), can("url"), can("log"), can("progress")])


@plugin.tool
def told() -> list[str]:
    """What the host says."""
    return [str(config()["a"]), directories()[0].path]


@plugin.tool
def fails(how: str) -> None:
    """Fails."""
    raise {"failure": Failure("No."), "error": ValueError("no"), "exit": SystemExit(3), "found": NotFound("x:")}[how]


@plugin.resource("test://{id}", mime_type="text/plain")
def thing(id: str) -> str:
    """A thing."""
    return id if ask("Sure?", bool, key="sure") else "no"


@plugin.prompt
def start(topic: str) -> list[Message]:
    """Starts."""
    return [Message(topic, "assistant")]


@unittest.skipUnless(COMPLETE, "needs componentize-py and Python 3.11")
class Exports(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        import componentize_py  # type: ignore[import-untyped]

        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        world = ["wharf:python/plugin"]
        componentize_py.generate_bindings([WIT], world, [], False, None, folder.name, [], [], False)
        sys.path.insert(0, folder.name)
        cls.addClassCleanup(sys.path.remove, folder.name)
        from componentize_py_types import Err
        from wharf_sdk import _wasm

        cls.wasm, cls.wit, cls.err = _wasm, _wasm.wit, Err
        _wasm.prepare()
        cls.addClassCleanup(lambda: logging.getLogger().handlers.clear())
        _wasm.start(plugin)

        class Host:
            logged: list[Any] = []

            def log(self, *record: Any) -> None:
                self.logged.append(record)

            def config(self) -> str:
                return '{"a": 7}'

            def directories(self) -> list[Directory]:
                return [Directory("/w", True)]

        cls.host = Host()
        _call.host = cls.host  # type: ignore[assignment]
        cls.addClassCleanup(lambda: setattr(_call, "host", None))

    def context(self, answers: Any = (), state: Optional[bytes] = None) -> Any:
        can = self.wit.ClientCapabilities.FORM | self.wit.ClientCapabilities.ROOTS
        client = self.wit.ClientInfo("c", "1", None)
        return self.wit.Context(
            list(answers), state, "2026-07-28", client, "AbC", can, self.wit.Reports.LOG, '{"meta": {}, "capabilities": {}}'
        )

    def call(self, name: str, args: Any = None, answers: Any = (), state: Optional[bytes] = None) -> Any:
        context = self.context(list(answers), state)
        return self.wasm.Tools().call_tool(name, json.dumps(args or {}), context)

    def test_the_list(self) -> None:
        greets, *others = self.wasm.Tools().list_tools()
        details = greets.details
        self.assertEqual((greets.name, greets.description, details.title), ("greet", "Greets.", "Greets"))
        self.assertEqual((details.hints.read_only, details.hints.destructive), (True, None))
        self.assertEqual(json.loads(details.more), {"_meta": {"a": 1, "dev.wharf/ask-before-task": True}})
        self.assertEqual(details.needs, self.wit.ClientCapabilities.FORM | self.wit.ClientCapabilities.SAMPLING_TOOLS)
        self.assertEqual(details.task.name, "OPTIONAL")
        # Default details are omitted, because every list would carry them.
        self.assertIsNone(others[0].details)

    def test_outcomes(self) -> None:
        wit, tools = self.wit, self.wasm.tools
        self.assertEqual(self.call("greet", {"name": "Ada"}), tools.ToolOutcome_Text("Hello, Ada!"))
        self.assertEqual(self.call("data"), tools.ToolOutcome_Structured('{"a": 1}'))
        self.assertEqual(self.host.logged, [("info", "given", None), ("error", "bad", None)])
        embedded = wit.ResourceContents("test://a", None, wit.Body_Bytes(b"y"), None)
        content = [wit.Content_Text("a"), wit.Content_Image(wit.Media("image/png", b"x")), wit.Content_Embedded(embedded)]
        result = tools.ToolResult(content, '{"a": 1}', True, '{"_meta": {}}')
        self.assertEqual(self.call("everything"), tools.ToolOutcome_Done(result))
        self.assertEqual(self.call("told").value.structured, '{"result": ["7", "/w"]}')

    def test_questions_and_answers(self) -> None:
        wit = self.wit
        asked = dict(self.call("asks", state=b"kept").value.questions)
        self.assertEqual([type(one).__name__ for one in asked.values()], [f"Question_{one}" for one in ("Form", "Url", "Sampling", "Roots")])
        answers = [
            ("form", wit.Answer_Accepted('{"answer": true}')),
            ("page", wit.Answer_Cancelled()),
            ("text", wit.Answer_Sampled('{"content": []}')),
        ]
        left = self.call("asks", answers=answers, state=b"kept").value
        self.assertEqual(([key for key, _ in left.questions], left.state), (["roots"], b"kept"))
        answers.append(("roots", wit.Answer_Roots([wit.Root("file:///a", None)])))
        self.assertEqual(self.call("asks", answers=answers), self.wasm.tools.ToolOutcome_Text("True False"))

    def test_the_caller(self) -> None:
        said = json.loads(self.call("knows").value)
        client = {"name": "c", "version": "1", "title": None}
        caller = {"id": "AbC", "revision": "2026-07-28", "client": client, "meta": {}, "capabilities": {}}
        self.assertEqual(said, [caller, True, False, True, False])

    def test_failures(self) -> None:
        for how, said in [
            ("failure", self.wit.Failure(self.wit.FailureKind_Failed(), "No.", None)),
            ("found", self.wit.Failure(self.wit.FailureKind_NotFound(), "Resource not found", '{"uri": "x:"}')),
        ]:
            with self.assertRaises(self.err) as raised:
                self.call("fails", {"how": how})
            self.assertEqual(raised.exception.value, said)
        for how, told in [("error", r"no \(ValueError in test_wasm\.py, line \d+\)"), ("exit", r"3 \(SystemExit in .*\)")]:
            with self.assertRaises(self.err) as raised, unittest.mock.patch("traceback.print_exc"):
                self.call("fails", {"how": how})
            self.assertRegex(raised.exception.value.message, f"^{told}$")

    def test_resources_and_prompts(self) -> None:
        wit, read = self.wit, self.wasm.Resources().read_resource
        context = self.context()
        self.assertEqual(self.wasm.Resources().list_resources(), [])
        self.assertEqual(self.wasm.Resources().list_templates()[0].uri_template, "test://{id}")
        self.assertEqual([key for key, _ in read("test://7", context).value.questions], ["sure"])
        context.answers = [("sure", wit.Answer_Accepted('{"answer": true}'))]
        contents = [wit.ResourceContents("test://7", "text/plain", wit.Body_Text("7"), None)]
        self.assertEqual(read("test://7", context), self.wasm.resources.ReadOutcome_Done(contents))
        prompts = self.wasm.prompts
        self.assertEqual(self.wasm.Prompts().list_prompts()[0].arguments, [prompts.PromptArgument("topic", None, True)])
        said = self.wasm.Prompts().get_prompt("start", [("topic", "bees")], context)
        messages = [prompts.Message(wit.Role.ASSISTANT, wit.Content_Text("bees"))]
        self.assertEqual(said, prompts.PromptOutcome_Done(prompts.PromptResult(None, messages, None)))
        target = self.wasm.completions.Target_Prompt("start")
        completion = self.wasm.completions.Completion([], None, False)
        self.assertEqual(self.wasm.Completions().complete(target, "topic", "b", []), completion)


if __name__ == "__main__":
    unittest.main()
