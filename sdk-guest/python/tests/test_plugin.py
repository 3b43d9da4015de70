"""The decorators, and calls of registered functions, without a component."""

from __future__ import annotations

import json
import logging
import unittest
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Optional, TypedDict, Union

from wharf_sdk import (
    Completion,
    Contents,
    Entry,
    Failure,
    FetchError,
    Form,
    Headers,
    Image,
    InvalidParams,
    Message,
    NotFound,
    NotGiven,
    PluginError,
    ProtocolError,
    Response,
    Result,
    Root,
    Roots,
    Sample,
    Url,
    _call,
    _errors,
    _http,
    ask,
    ask_all,
    ask_url,
    can,
    config,
    fetch,
    keep,
    kept,
    roots,
    sample,
)
from wharf_sdk._call import Answer, Call
from wharf_sdk._plugin import Plugin, Round, match


@dataclass
class Sure:
    really: bool


@dataclass
class Weather:
    city: str
    degrees: float


class Answered(TypedDict):
    n: int


def called(plugin: Plugin, name: str, args: Any = None, **context: Any) -> Any:
    plugin.finish()
    return plugin.call_tool(name, json.dumps(args or {}), Call(**context))


class Tools(unittest.TestCase):
    def setUp(self) -> None:
        self.plugin = Plugin()

    def test_a_function_is_a_tool(self) -> None:
        @self.plugin.tool
        def greet(name: str, times: Annotated[int, "How often."] = 1) -> str:
            """Greets a person.

            As often as you want.

            Args:
                name: Whom to greet,
                    by first name.

            Returns:
                A greeting.
            """
            return " ".join([f"Hello, {name}!"] * times)

        self.assertEqual(called(self.plugin, "greet", {"name": "Ada"}), Result(["Hello, Ada!"]))
        self.assertEqual(greet("Bob", 2), "Hello, Bob! Hello, Bob!")
        tool = self.plugin.tools["greet"]
        self.assertEqual(tool.description, "Greets a person.\n\nAs often as you want.")
        assert tool.schema is not None
        self.assertEqual(
            tool.schema["properties"],
            {
                "name": {"type": "string", "description": "Whom to greet, by first name."},
                "times": {"type": "integer", "description": "How often.", "default": 1},
            },
        )
        self.assertIsNone(tool.output_schema)
        self.assertEqual(called(self.plugin, "greet", {"name": "Ada", "times": None}), Result(["Hello, Ada!"]))

    def test_arguments_come_as_their_hints_say(self) -> None:
        seen: list[Any] = []

        @self.plugin.tool
        def take(weather: Weather, sure: Optional[Sure], unit: Literal["c", "f"] = "c") -> None:
            """Takes."""
            seen.extend([weather, sure, unit])

        self.assertEqual(called(self.plugin, "take", {"weather": {"city": "Rome", "degrees": 20}}), Result())
        self.assertEqual(seen, [Weather("Rome", 20.0), None, "c"])
        for args, said in [({}, "`weather` is missing"), ({"weather": 1}, "`weather` should be an object, not a number")]:
            with self.assertRaisesRegex(InvalidParams, said):
                called(self.plugin, "take", args)

    def test_a_schema_of_ones_own(self) -> None:
        schema = {"type": "object", "properties": {"a": {}}, "allOf": []}

        @self.plugin.tool(schema=schema)
        def whole(args: dict[str, Any]) -> str:
            """Takes all."""
            return json.dumps(args)

        self.assertEqual(called(self.plugin, "whole", {"a": 1, "b": 2}), Result(['{"a": 1, "b": 2}']))
        self.assertIs(self.plugin.tools["whole"].schema, schema)

    def test_what_tools_return(self) -> None:
        image = Image(b"x")
        integers = {"type": "object", "properties": {"result": {"type": "integer"}}, "required": ["result"]}
        members = {"city": {"type": "string"}, "degrees": {"type": "number"}}
        weather = {"type": "object", "properties": members, "required": ["city", "degrees"]}
        table: list[tuple[Any, Any, Result, Any]] = [
            (str, "a", Result(["a"]), None),
            (None, None, Result(), None),
            (Optional[str], None, Result(), None),
            (Image, image, Result([image]), None),
            (list[Union[str, Image]], ["a", image], Result(["a", image]), None),
            (Result, Result(["a"], is_error=True), Result(["a"], is_error=True), None),
            (Any, {"a": 1}, Result((), {"a": 1}), None),
            (dict, {"a": Weather("Rome", 1.0)}, Result((), {"a": {"city": "Rome", "degrees": 1.0}}), None),
            (Any, 3, Result(["3"]), None),
            (int, 3, Result(["3"], {"result": 3}), integers),
            (Weather, Weather("Rome", 1.0), Result((), {"city": "Rome", "degrees": 1.0}), weather),
            (Answered, {"n": 1}, Result((), {"n": 1}), ...),
            (list[str], ["a"], Result(['["a"]'], {"result": ["a"]}), ...),
            (Optional[Weather], None, Result(["null"], {"result": None}), ...),
        ]
        for hint, value, result, schema in table:
            with self.subTest(hint=str(hint)):
                plugin = Plugin()

                def give() -> Any:
                    """Gives."""
                    return value

                give.__annotations__["return"] = hint
                plugin.tool(give)
                self.assertEqual(called(plugin, "give"), result)
                if schema is not ...:
                    self.assertEqual(plugin.tools["give"].output_schema, schema)
                else:
                    self.assertEqual((plugin.tools["give"].output_schema or {})["type"], "object")

    def test_what_tools_may_not_return(self) -> None:
        table: list[tuple[Any, Any, str]] = [
            (str, None, "the tool `give` says that it returns str, but returned nothing"),
            (Weather, {"city": "Rome"}, "says that it returns Weather, but what it returned should be a Weather"),
            (Any, object(), "returned something that no client can read: what it returned is a object"),
        ]
        for hint, value, said in table:
            plugin = Plugin()

            def give() -> Any:
                """Gives."""
                return value

            give.__annotations__["return"] = hint
            plugin.tool(give)
            with self.subTest(said), self.assertRaisesRegex(PluginError, rf"{said}.* \(test_plugin\.py, line \d+\)"):
                called(plugin, "give")

    def test_what_cannot_be_a_tool(self) -> None:
        def undescribed() -> None: ...

        async def waits() -> None:
            """Waits."""

        def yields() -> Any:
            """Yields."""
            yield 1

        def fine() -> None:
            """Fine."""

        table: list[tuple[Any, str]] = [
            (lambda: self.plugin.tool(undescribed), "the tool `undescribed` has no description"),
            (lambda: self.plugin.tool(waits), "the tool `waits` is `async`.*write `def waits`"),
            (lambda: self.plugin.tool(yields), "the tool `yields` is a generator"),
            (lambda: self.plugin.tool(name="a b")(fine), "the name of the tool `a b`"),
            (lambda: [self.plugin.tool(fine), self.plugin.tool(fine)], "there are two tools `fine`"),
            (lambda: Plugin().tool(needs="form")(fine),  # type: ignore[arg-type]
             "`needs` of `fine`"),
            (lambda: self.plugin.resource("a:{b}")(fine), "differ in `b`"),
            (lambda: self.plugin.complete("nothing", "a")(fine), "`nothing` is not a prompt or template"),
            (lambda: self.plugin.instructions("x" * 2049), "at most 2048 bytes"),
            (lambda: self.plugin.wants(htpp=[]), "`wants` has no key `htpp`"),
            (lambda: Plugin().finish(), "the plugin offers nothing"),
        ]
        for register, said in table:
            with self.subTest(said), self.assertRaisesRegex(PluginError, said):
                register()

    def test_hints_that_cannot_be_read_are_told_with_their_tool(self) -> None:
        @self.plugin.tool
        def give(a: complex) -> None:
            """Gives."""

        said = r"the tool `give`: `a`: there is no JSON Schema for `complex`.* \(test_plugin\.py, line \d+\)"
        with self.assertRaisesRegex(PluginError, said):
            self.plugin.finish()

    def test_hints_that_name_nothing(self) -> None:
        @self.plugin.tool
        def give(a: Nme) -> None:  # type: ignore[name-defined]  # noqa: F821
            """Gives."""

        said = r"the tool `give`: its type hints name something that does not exist: name 'Nme' is not defined"
        with self.assertRaisesRegex(PluginError, said):
            self.plugin.finish()

    def test_unknown_tools(self) -> None:
        with self.assertRaisesRegex(InvalidParams, "unknown tool: x"):
            self.plugin.call_tool("x", "{}", Call())


class Asking(unittest.TestCase):
    def setUp(self) -> None:
        self.plugin = Plugin()

    def test_a_question_ends_the_call_and_its_answer_returns(self) -> None:
        ran: list[str] = []

        @self.plugin.tool
        def purge() -> str:
            """Deletes."""
            try:
                sure = ask("Delete 14 notes?", Sure)
            except Exception:
                ran.append("caught")
                raise
            if not sure:
                return f"kept: {sure}"
            return "deleted" if sure.really else "kept"

        asked = called(self.plugin, "purge")
        self.assertEqual(asked, Round({"delete-14-notes-97b32d4f": Form("Delete 14 notes?", Sure)}, None))
        self.assertEqual(ran, [])
        accepted = {"delete-14-notes-97b32d4f": Answer("accepted", '{"really": true}')}
        self.assertEqual(called(self.plugin, "purge", answers=accepted), Result(["deleted"]))
        declined = {"delete-14-notes-97b32d4f": Answer("declined")}
        self.assertEqual(called(self.plugin, "purge", answers=declined), Result(["kept: NotGiven('declined')"]))
        wrong = {"delete-14-notes-97b32d4f": Answer("accepted", "{}")}
        with self.assertRaisesRegex(Failure, "the answer to `delete-14-notes-97b32d4f` does not fit its form: the answer lacks `really`"):
            called(self.plugin, "purge", answers=wrong)

    def test_a_question_that_was_swallowed_is_asked_all_the_same(self) -> None:
        @self.plugin.tool
        def careless() -> str:
            """Catches everything."""
            try:
                return str(ask("Yes?", bool))
            except BaseException:
                return "went on"

        asked = called(self.plugin, "careless")
        self.assertEqual(list(asked.questions), ["yes-067b605d"])
        yes = {"yes-067b605d": Answer("accepted", '{"answer": true}')}
        self.assertEqual(called(self.plugin, "careless", answers=yes), Result(["True"]))
        schema = {"type": "object", "properties": {"answer": {"type": "boolean"}}, "required": ["answer"]}
        self.assertEqual(_call.form_schema(bool), schema)

    def test_questions_one_after_the_other(self) -> None:
        @self.plugin.tool
        def both() -> str:
            """Asks twice."""
            keep("one")
            one = ask("One?", str)
            keep({"one": one})
            two = ask("Two?", {"type": "object", "properties": {}})
            return f"{one} {two} {kept()}"

        first = called(self.plugin, "both")
        self.assertEqual((list(first.questions), first.state), (["one-63c43228"], b'"one"'))
        answers = {"one-63c43228": Answer("accepted", '{"answer": "a"}')}
        second = called(self.plugin, "both", answers=answers, state=first.state)
        self.assertEqual((list(second.questions), second.state), (["two-0dc492c3"], b'{"one": "a"}'))
        answers["two-0dc492c3"] = Answer("accepted", '{"b": 1}')
        last = called(self.plugin, "both", answers=answers, state=second.state)
        self.assertEqual(last, Result(["a {'b': 1} {'one': 'a'}"]))

    def test_all_at_once(self) -> None:
        @self.plugin.tool
        def several() -> str:
            """Asks several things."""
            found = ask_all({"name": Form("Name?", str), "page": Url("Sign", "https://a.example"), "roots": Roots()})
            return str([found["name"], found["page"], found["roots"]])

        given = {"name": Answer("accepted", '{"answer": "Ada"}')}
        self.assertEqual(list(called(self.plugin, "several", answers=given).questions), ["page", "roots"])
        given.update(page=Answer("cancelled"), roots=Answer("roots", [Root("file:///a")]))
        said = "['Ada', NotGiven('cancelled'), [Root(uri='file:///a', name=None)]]"
        self.assertEqual(called(self.plugin, "several", answers=given), Result([said]))

    def test_other_questions(self) -> None:
        @self.plugin.tool
        def others() -> str:
            """Asks others."""
            said = sample("Capital?", max_tokens=5, system_prompt="Short.", key="s")
            return f"{said.text} {roots()[0].uri} {ask_url('Sign', 'https://a.example', key='p')} {can('form')}"

        asked = called(self.plugin, "others").questions["s"]
        message = {"role": "user", "content": {"type": "text", "text": "Capital?"}}
        self.assertEqual(asked.params(), {"messages": [message], "maxTokens": 5, "systemPrompt": "Short."})
        answers = {
            "s": Answer("sampled", '{"content": [{"type": "text", "text": "Paris"}]}'),
            "roots": Answer("roots", [Root("file:///a")]),
            "p": Answer("accepted", "{}"),
        }
        told = called(self.plugin, "others", answers=answers, flags=frozenset({"form"}))
        self.assertEqual(told, Result(["Paris file:///a True True"]))
        with self.assertRaisesRegex(Failure, "the client did not want to sample"):
            called(self.plugin, "others", answers={"s": Answer("declined")})

    def test_nothing_is_asked_outside_of_a_call(self) -> None:
        with self.assertRaisesRegex(RuntimeError, "`ask` works only while wharf runs a call"):
            ask("Yes?", bool)
        with self.assertRaisesRegex(RuntimeError, "`config` works only in a plugin that wharf runs"):
            config()


class Others(unittest.TestCase):
    def setUp(self) -> None:
        self.plugin = Plugin()

    def test_resources(self) -> None:
        @self.plugin.resource("test://text", mime_type="text/plain")
        def text() -> str:
            """A text."""
            return "a"

        @self.plugin.resource("test://{id}/data", list=lambda: [Entry("test://7/data", "seven")])
        def data(id: int) -> Weather:
            """Data."""
            return Weather("Rome", float(id))

        @self.plugin.resource("test://broken")
        def broken() -> Any:
            """Broken."""
            return 3

        self.plugin.finish()
        listed = [(one.uri, one.name) for one in self.plugin.list_entries()]
        self.assertEqual(listed, [("test://text", "text"), ("test://7/data", "seven"), ("test://broken", "broken")])
        self.assertEqual(self.plugin.read("test://text", Call()), [Contents("test://text", "a", "text/plain")])
        read = self.plugin.read("test://7/data", Call())
        self.assertEqual(read, [Contents("test://7/data", '{"city": "Rome", "degrees": 7.0}', "application/json")])
        for uri in ["test://nothing", "test://seven/data"]:
            with self.assertRaises(NotFound) as raised:
                self.plugin.read(uri, Call())
            self.assertEqual((raised.exception.code, raised.exception.data), (-32002, {"uri": uri}))
        with self.assertRaisesRegex(PluginError, "the resource `broken` returned a value of type int"):
            self.plugin.read("test://broken", Call())

    def test_templates(self) -> None:
        table: list[tuple[str, str, Optional[dict[str, str]]]] = [
            ("note:///{day}", "note:///today", {"day": "today"}),
            ("note:///{day}", "note:///a/b", None),
            ("file:///{+path}", "file:///a/b.txt", {"path": "a/b.txt"}),
            ("x://{a}/{b}", "x://1/2", {"a": "1", "b": "2"}),
            ("x://{a}/c", "x://1/d", None),
            ("x://fixed", "x://fixed", {}),
            ("x://a.b", "x://aXb", None),
        ]
        for template, uri, expected in table:
            self.assertEqual(match(template, uri), expected, template)

    def test_prompts_and_completions(self) -> None:
        @self.plugin.prompt
        def review(code: Annotated[str, "What to review."], depth: Literal["quick", "deep"] = "quick", n: int = 1) -> Any:
            """Reviews code."""
            return [f"{code} {depth} {n!r}", Message(Image(b"x"), "assistant")]

        @self.plugin.complete(review, "code")
        def codes(value: str, others: dict[str, str]) -> list[str]:
            return [f"{value}-{others['depth']}"]

        @self.plugin.complete("review", "n")
        def numbers(value: str) -> Completion:
            return Completion(["1"], 7, True)

        self.plugin.finish()
        said = self.plugin.get_prompt("review", {"code": "x", "n": "2"}, Call())
        self.assertEqual(said, [Message("x quick 2"), Message(Image(b"x"), "assistant")])
        for args, problem in [({}, "`code` is missing"), ({"code": "x", "n": "b"}, "`n` should be a integer, not 'b'")]:
            with self.assertRaisesRegex(InvalidParams, problem):
                self.plugin.get_prompt("review", args, Call())
        complete = self.plugin.completion
        self.assertEqual(complete("prompt", "review", "code", "a", {"depth": "deep"}), Completion(["a-deep"]))
        self.assertEqual(complete("prompt", "review", "n", "", {}), Completion(["1"], 7, True))
        self.assertEqual(complete("prompt", "review", "depth", "d", {}), Completion(["deep"]))
        self.assertEqual(complete("prompt", "nothing", "depth", "d", {}), Completion())

    def test_sections(self) -> None:
        self.plugin.instructions("Search first.")
        self.plugin.wants(roots="read")
        sections = {"wharf:instructions": "Search first.", "wharf:wants": '{"roots": "read"}'}
        self.assertEqual(self.plugin.sections(), sections)

    def test_errors_are_one_sentence(self) -> None:
        def raised(error: BaseException) -> str:
            try:
                raise error
            except BaseException as caught:
                return _errors.told(caught)

        at = r"test_plugin\.py, line \d+"
        table: list[tuple[BaseException, str]] = [
            (Failure("There is no such city."), r"There is no such city\."),
            (ValueError("no\n  such city"), rf"no such city \(ValueError in {at}\)"),
            (AssertionError(), rf"AssertionError in {at}"),
            (ModuleNotFoundError("No module named 'x'", name="x"), rf"`x` is not in this plugin.*top of test_plugin\.py.*\({at}\)"),
        ]
        for error, said in table:
            self.assertRegex(raised(error), f"^{said}$")
        self.assertEqual((ProtocolError(-1, "a", {"b": 1}).code, InvalidParams("a").code), (-1, -32602))
        for code in ("x", None, 2**31, True):
            with self.assertRaisesRegex(TypeError, "whole number of 32 bits"):
                ProtocolError(code, "a")  # type: ignore[arg-type]
        self.assertEqual((NotFound("note:1").message, NotFound("note:1").data), ("Resource not found", {"uri": "note:1"}))
        self.assertEqual((NotFound("no issue 999").message, NotFound("no issue 999").data), ("no issue 999", None))

    def test_logging_goes_to_wharf(self) -> None:
        logged: list[tuple[str, str]] = []

        class Host:
            def log(self, level: str, message: str, data: Optional[str]) -> None:
                logged.append((level, message))

        _call.host = Host()  # type: ignore[assignment]
        try:
            logger = logging.Logger("x")
            logger.addHandler(_call.LogHandler())
            logger.warning("%d notes", 3)
            logger.critical("out")
        finally:
            _call.host = None
        self.assertEqual(logged, [("warning", "3 notes"), ("critical", "out")])

    def test_requests_are_looked_at_before_they_are_sent(self) -> None:
        sent: list[_http.Request] = []

        def send(request: _http.Request) -> Response:
            sent.append(request)
            return Response(200, Headers([("Content-Type", "text/plain; charset=latin-1"), ("a", "1"), ("A", "2")]), b"\xe9")

        with self.assertRaisesRegex(FetchError, "built with HTTP"):
            fetch("https://a.example")
        _http.send = send
        try:
            response = fetch("https://a.example:8443/x?y=1", method="post", headers={"Accept": "*/*"}, json={"a": 1})
            for url in ["ftp://a", "https://", "https://u:p@a.example", "https://a b", "https://a.example/ü"]:
                with self.subTest(url), self.assertRaisesRegex(FetchError, "cannot be requested: it must begin with"):
                    fetch(url)
            with self.assertRaisesRegex(TypeError, "`json` or `body`"):
                fetch("https://a.example", json=1, body="x")
        finally:
            _http.send = None
        request = sent[0]
        self.assertEqual((request.method, request.https, request.host), ("POST", True, "a.example"))
        self.assertEqual((request.authority, request.path), ("a.example:8443", "/x?y=1"))
        headers = {"accept": b"*/*", "content-type": b"application/json", "content-length": b"8"}
        self.assertEqual((dict(request.headers), request.body), (headers, b'{"a": 1}'))
        self.assertEqual((response.ok, response.text), (True, "é"))
        self.assertEqual((response.headers["CONTENT-type"][:10], response.headers.get("A")), ("text/plain", "1, 2"))

    def test_who_did_not_answer_counts_as_false(self) -> None:
        self.assertFalse(NotGiven("declined"))
        self.assertEqual(Sample("a").params()["maxTokens"], 1000)


if __name__ == "__main__":
    unittest.main()
