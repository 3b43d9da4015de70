"""A server is started as the build does, and called as wharf does, in a process of its own. Needs `mcp<2`."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
DRIVER = """
import json, sys
from wharf_compat.runtime import plugin
from wharf_sdk import _call
from wharf_sdk._call import Answer, Call, Directory
from wharf_sdk._plugin import Round

folder, calls, placed = json.loads(sys.argv[1])
sys.path.insert(0, folder)
served = plugin.prepare({"module": "server", "own": [folder + "/"], "dependencies": []})
served.begin()
heard = []

class Host:
    def log(self, level, message, data): heard.append(["log", level, message])
    def progress(self, done, total, message): heard.append(["progress", done, total, message])
    def list_changed(self, which): heard.append(["changed", which])
    def resource_updated(self, uri): heard.append(["updated", uri])
    def config(self): return "{}"
    def directories(self): return [Directory(placed.get("OPEN", "/open"), True)]

_call.host = Host()
import os
os.environ.update(placed)
results = []
for tool, arguments, answers in calls:
    known = {}
    while True:
        try:
            found = served.call_tool(tool, json.dumps(arguments), Call(known))
        except BaseException as problem:
            results.append(["raised", type(problem).__name__, str(problem)])
            break
        if not isinstance(found, Round):
            results.append([[str(one) for one in found.content], found.structured, found.is_error])
            break
        for key, question in found.questions.items():
            heard.append(["asked", question.message, sorted(question.of["properties"])])
            known[key] = Answer("accepted", json.dumps(answers.pop(0)))
said = {"tools": {name: one.schema for name, one in served.tools.items()}, "resources": [one.uri for one in served.entries],
        "templates": list(served.resources), "prompts": list(served.prompts), "again": served.again,
        "instructions": served.instructions_text, "warnings": served.warnings, "results": results, "heard": heard}
if served.resources:
    said["read"] = [one.body for one in served.read("note://today", Call())]
if served.prompts:
    said["prompt"] = [[one.role, one.content] for one in served.get_prompt(next(iter(served.prompts)), {"text": "x"}, Call())]
print(json.dumps(said), file=sys.__stdout__)
"""


@unittest.skipUnless(importlib.util.find_spec("mcp") and importlib.util.find_spec("mcp.server.fastmcp"), "needs mcp<2")
class Serving(unittest.TestCase):
    def serve(self, source: str, calls: list = [], environ: dict = {}) -> dict:  # noqa: B006
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "server.py").write_text(textwrap.dedent(source))
            given = json.dumps([str(Path(folder).resolve()), calls, environ])
            ran = subprocess.run([sys.executable, "-c", DRIVER, given], capture_output=True, text=True, cwd=HERE.parent, check=False)
        self.assertEqual(ran.returncode, 0, ran.stderr[-3000:])
        return json.loads(ran.stdout.splitlines()[-1])

    def test_tools_resources_prompts_and_what_a_call_says(self) -> None:
        said = self.serve(
            """
            from mcp.server.fastmcp import Context, FastMCP
            mcp = FastMCP("demo", instructions="Add first.")

            @mcp.tool()
            async def add(a: int, b: int, ctx: Context) -> int:
                "Adds."
                await ctx.info("adding")
                await ctx.report_progress(1, 2, "half")
                print("printed")
                return a + b

            @mcp.resource("note://{day}")
            def note(day: str) -> str:
                return f"note of {day}"

            @mcp.prompt()
            def review(text: str) -> str:
                return f"Review {text}"

            if __name__ == "__main__":
                mcp.run()
            """,
            [["add", {"a": 1, "b": 2}, []], ["add", {"a": "x", "b": 2}, []]],
        )
        self.assertEqual(said["tools"]["add"]["required"], ["a", "b"])
        self.assertEqual((said["templates"], said["prompts"], said["instructions"]), (["note://{day}"], ["review"], "Add first."))
        self.assertIsNone(said["again"])
        self.assertEqual(said["results"][0], [["3"], {"result": 3}, False])
        self.assertTrue(said["results"][1][2])
        self.assertEqual(said["heard"][:3], [["log", "info", "adding"], ["progress", 1.0, 2.0, "half"], ["log", "info", "printed"]])
        self.assertEqual(said["read"], ["note of today"])
        self.assertEqual(said["prompt"], [["user", "Review x"]])

    def test_the_first_writable_folder_is_the_home_of_the_server(self) -> None:
        said = self.serve(
            """
            import os, pathlib
            from mcp.server.fastmcp import FastMCP
            os.environ["HOME"] = "/home"
            mcp = FastMCP("demo")

            @mcp.tool()
            def home() -> str:
                return f"{pathlib.Path.home()} {os.path.expanduser('~/x')}"
            """,
            [["home", {}, []]],
        )
        self.assertEqual(said["results"][0][0], ["/open /open/x"])

    def test_the_first_folder_is_the_working_folder_until_the_server_leaves_it(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            place = os.path.realpath(folder)
            os.mkdir(f"{place}/below")
            said = self.serve(
                """
                import os
                from mcp.server.fastmcp import FastMCP
                mcp = FastMCP("demo")

                @mcp.tool()
                def here(to: str) -> str:
                    before = os.getcwd()
                    os.chdir(to)
                    return before
                """,
                [["here", {"to": "below"}, []], ["here", {"to": "."}, []]],
                {"OPEN": place},
            )
        self.assertEqual([one[0] for one in said["results"]], [[place], [f"{place}/below"]])

    def test_long_instructions_are_cut(self) -> None:
        said = self.serve(
            """
            from mcp.server.fastmcp import FastMCP
            mcp = FastMCP("demo", instructions="ö" * 2000)

            @mcp.tool()
            def plain() -> str:
                return "ok"
            """
        )
        self.assertEqual(said["instructions"], "ö" * 1020 + " …")
        self.assertIn("its instructions have 4000 bytes; clients get the first 2048", said["warnings"])

    def test_a_question_runs_the_tool_again(self) -> None:
        said = self.serve(
            """
            from mcp.server.fastmcp import Context, FastMCP
            from pydantic import BaseModel
            mcp = FastMCP("demo")

            class Sure(BaseModel):
                sure: bool

            @mcp.tool()
            async def drop(ctx: Context) -> str:
                answer = await ctx.elicit("Drop it?", schema=Sure)
                again = await ctx.elicit("Really?", schema=Sure)
                return f"{answer.data.sure} {again.data.sure}"
            """,
            [["drop", {}, [{"sure": True}, {"sure": False}]]],
        )
        self.assertEqual(said["results"], [[["True False"], {"result": "True False"}, False]])
        self.assertEqual(said["heard"], [["asked", "Drop it?", ["sure"]], ["asked", "Really?", ["sure"]]])

    def test_a_server_that_needs_a_variable_starts_again_with_the_real_one(self) -> None:
        said = self.serve(
            """
            import os
            from mcp.server.fastmcp import FastMCP
            KEY = os.environ["WHARF_TEST_KEY"]
            mcp = FastMCP("demo")

            @mcp.tool()
            def key() -> str:
                return KEY
            """,
            [["key", {}, []]],
            {"WHARF_TEST_KEY": "granted"},
        )
        self.assertIn("WHARF_TEST_KEY", said["again"])
        self.assertEqual(said["results"][0][0], ["granted"])

    def test_the_low_level_server_and_its_lifespan(self) -> None:
        said = self.serve(
            """
            import asyncio
            from contextlib import asynccontextmanager
            import mcp.types as types
            from mcp.server.lowlevel import Server
            from mcp.server.stdio import stdio_server

            @asynccontextmanager
            async def opened(server):
                yield {"db": "open"}

            server = Server("low", lifespan=opened)

            @server.list_tools()
            async def tools():
                return [types.Tool(name="state", description="", inputSchema={"type": "object"})]

            @server.call_tool()
            async def call(name, arguments):
                return [types.TextContent(type="text", text=server.request_context.lifespan_context["db"])]

            async def main():
                async with stdio_server() as (read, write):
                    await server.run(read, write, server.create_initialization_options())

            if __name__ == "__main__":
                asyncio.run(main())
            """,
            [["state", {}, []]],
        )
        self.assertIn("lifespan", said["again"])
        self.assertEqual(said["results"][0][0], ["open"])

    def test_a_server_gets_placeholders_only_for_variables_without_a_default(self) -> None:
        said = self.serve(
            """
            import os
            from mcp.server.fastmcp import FastMCP
            KEY, PORT, HOST = os.environ["KEY"], int(os.getenv("PORT", "443")), os.environ.get("HOST_NAME", "a.test")
            mcp = FastMCP("demo")

            @mcp.tool()
            def place() -> str:
                return f"{KEY}@{HOST}:{PORT}"
            """,
            [["place", {}, []]],
            {"KEY": "k", "PORT": "80"},
        )
        self.assertIn("does not start without the variable KEY", said["again"])
        self.assertEqual(said["results"][0][0], ["k@a.test:80"])

    def test_a_server_that_offers_nothing_without_its_variables_lists_what_it_has_with_them(self) -> None:
        said = self.serve(
            """
            import os
            from mcp.server.fastmcp import FastMCP
            mcp = FastMCP("demo")
            if os.getenv("NOTES_URL", "").startswith("https://") and os.getenv("NOTES_TOKEN"):
                @mcp.tool()
                def place() -> str:
                    return os.environ["NOTES_URL"]
            """,
            [["place", {}, []]],
            {"NOTES_URL": "https://a.test", "NOTES_TOKEN": "t"},
        )
        self.assertIn("offers nothing without a variable", said["again"])
        self.assertEqual(said["results"][0][0], ["https://a.test"])

    def test_what_modules_of_python_read_is_not_the_servers(self) -> None:
        said = self.serve(
            """
            import argparse, shutil
            from mcp.server.fastmcp import FastMCP
            WIDTH = shutil.get_terminal_size().columns
            HELP = argparse.ArgumentParser("demo").format_help()
            mcp = FastMCP("demo")

            @mcp.tool()
            def width() -> int:
                return WIDTH
            """,
            [["width", {}, []]],
        )
        self.assertIsNone(said["again"])

    def test_what_a_plugin_cannot_do_is_said(self) -> None:
        said = self.serve(
            """
            import asyncio, socket, subprocess, threading
            from mcp.server.fastmcp import FastMCP
            mcp = FastMCP("demo")

            @mcp.tool()
            def connect() -> str:
                socket.create_connection(("example.com", 80))

            @mcp.tool()
            def start() -> str:
                threading.Thread(target=print).start()

            @mcp.tool()
            def program() -> str:
                subprocess.run(["ls"])

            @mcp.tool()
            def loop() -> str:
                async def inner():
                    await asyncio.sleep(0)
                    return await asyncio.to_thread(lambda: "done")
                return asyncio.run(inner())

            @mcp.tool()
            async def never() -> str:
                await asyncio.Event().wait()

            @mcp.tool()
            def resolve() -> str:
                return " ".join(socket.gethostbyname(name) for name in ("example.com", "localhost", "10.0.0.1"))

            @mcp.tool()
            async def watch() -> str:
                watching = asyncio.ensure_future(asyncio.to_thread(threading.Event().wait, 1))
                await asyncio.sleep(0)
                return str(watching.done())
            """,
            [[name, {}, []] for name in ("connect", "start", "program", "loop", "never", "resolve", "watch")],
        )
        told = [one[0][0] if one[0] != "raised" else one[2] for one in said["results"]]
        self.assertIn("there are no sockets inside of a plugin", told[0])
        self.assertIn("there are no threads inside of a plugin", told[1])
        self.assertIn("a plugin cannot start other programs", told[2])
        self.assertIn("asyncio.run() cannot be called from a running event loop", told[3])
        self.assertIn("waits for something that never comes", told[4])
        self.assertEqual(told[5:], ["192.31.196.1 127.0.0.1 10.0.0.1", "False"])

    def test_the_fewest_placeholders_are_given_and_the_first_failure_is_told(self) -> None:
        source = """
            import os
            from mcp.server.fastmcp import FastMCP
            PORT, RESIDENCY = os.environ.get("PORT"), os.environ.get("RESIDENCY", "us")
            if PORT: int(PORT)
            if RESIDENCY not in ("us", "eu"): raise ValueError("RESIDENCY must be one of us, eu")
            if not os.environ.get("KEY"): raise ValueError("KEY is not set")
            %s
            mcp = FastMCP("demo")

            @mcp.tool()
            def key() -> str:
                return os.environ["KEY"]
            """
        said = self.serve(source % "", [["key", {}, []]], {"KEY": "k"})
        self.assertEqual((said["again"], said["results"][0][0]), ("it does not start without the variable KEY", ["k"]))
        failed = self.failed(source % "if os.environ['KEY'][:2] != 'k-': raise ValueError('KEY begins with k-')")
        for part in ("KEY is not set (server.py:7)", "KEY=VALUE wharf build"):
            self.assertIn(part, failed)

    def test_what_was_refused_is_told_place_the_servers_words(self) -> None:
        said = self.serve(
            """
            import asyncio, subprocess, threading
            from mcp.server.fastmcp import FastMCP
            mcp = FastMCP("demo")
            watcher = threading.Thread(target=print, daemon=True)
            watcher.start()
            assert watcher.is_alive()

            @mcp.tool()
            def log() -> str:
                try:
                    subprocess.run(["git", "log", "--secret"])
                except OSError:
                    raise ValueError("is this a repository?")

            @mcp.tool()
            def boom() -> str:
                raise ValueError("bad thing")

            @mcp.tool()
            def bare() -> str:
                return subprocess.check_output("git log", shell=True)

            @mcp.tool()
            async def later() -> str:
                await asyncio.create_subprocess_exec("git", "log")

            @mcp.tool()
            async def connects() -> str:
                await asyncio.open_connection("db.example", 5432)
            """,
            [[name, {}, []] for name in ("log", "boom", "bare", "later", "connects")],
        )
        log, boom, bare, later, connects = (one[0] for one in said["results"])
        for told, line in ((bare, 22), (later, 26)):
            self.assertEqual(told[0].partition(": ")[2], "a plugin cannot start other programs")
            self.assertRegex(told[1], rf"^The server tried to start the program `git` \(.*/server.py:{line}\)\.$")
        self.assertRegex(connects[1], r"^The server tried to open a socket \(.*/server.py:30\)\.$")
        self.assertEqual(log[0], "Error executing tool log: is this a repository?")
        refused = r"The server tried to start the program `git` \(.*/server.py:%d\): a plugin cannot start other programs\."
        self.assertRegex(log[1], f"^{refused % 12}$")
        self.assertEqual(boom, ["Error executing tool boom: bad thing"])
        self.assertIn("server.py:6) does not run: there are no threads inside of a plugin", said["warnings"][0])
        source = "import subprocess\ntry:\n    subprocess.run('git version')\nexcept OSError:\n    raise ValueError('no git')\n"
        self.assertRegex(self.failed(source), f"no git.*{refused % 3}")

    def test_text_files_next_to_the_code_are_there_later(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("data/motto.json", "{}"), ("motto.txt", "so"), ("api_key.txt", "s"), ("deps/a.txt", ""), (".env", "")):
                Path(folder, name).parent.mkdir(exist_ok=True)
                Path(folder, name).write_text(text)
            script = """
                import os, pathlib, shutil, sys
                from wharf_compat.runtime.patches import files
                folder = sys.argv[1]
                print(files.keep([folder + "/"], ()))
                files.install()
                shutil.rmtree(folder)
                place = pathlib.Path(folder)
                print((place / "data/motto.json").read_text(), open(folder + "/motto.txt", "rb").read(), (place / "data").is_dir(),
                      (place / "motto.txt").is_file(), os.path.getsize(folder + "/motto.txt"), os.listdir(folder),
                      os.path.exists(folder + "/no"))
            """
            ran = subprocess.run(
                [sys.executable, "-c", textwrap.dedent(script), folder], capture_output=True, text=True, cwd=HERE.parent, check=False
            )
            os.mkdir(folder)
        expected = ["['motto.txt', 'data/motto.json']", "{} b'so' True True 2 ['data', 'motto.txt'] False"]
        self.assertEqual(ran.stdout.splitlines(), expected, ran.stderr)

    def failed(self, source: str) -> str:
        """Returns what the check of a server that does not start says."""
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "server.py").write_text(textwrap.dedent(source))
            report = Path(folder, "report.json")
            given = {"module": "server", "own": [f"{Path(folder).resolve()}/"], "dependencies": [], "report": str(report)}
            script = "import sys; sys.path.insert(0, sys.argv[1]); from wharf_compat._checking import main; main()"
            subprocess.run([sys.executable, "-c", script, folder], input=json.dumps(given), text=True, cwd=HERE.parent, check=False)
            return json.loads(report.read_text())["error"]

    def test_a_file_that_serves_nothing_is_told(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "server.py").write_text("import mcp\n")
            given = json.dumps([folder, [], {}])
            ran = subprocess.run([sys.executable, "-c", DRIVER, given], capture_output=True, text=True, cwd=HERE.parent, check=False)
        self.assertIn("server cannot be served: it ended without serving", ran.stderr)


@unittest.skipUnless(importlib.util.find_spec("httpx") and importlib.util.find_spec("requests"), "needs httpx and requests")
class Http(unittest.TestCase):
    SCRIPT = """
        import asyncio, json, sys
        from wharf_compat.runtime import patches
        patches.install()
        from wharf_sdk import _call, _http
        _call.current, sent = object(), []
        def send(request):
            sent.append([request.method, request.host, request.path, dict(request.headers).get("x-a", b"").decode(), request.body.decode()])
            if request.host == "refused.test":
                raise _http.FetchError("The operator of this server does not allow this request to refused.test.")
            return _http.Response(200, _http.Headers([("content-type", "application/json")]), b'{"n": 1}')
        _http.send = send
        import httpx, requests, urllib.request
        async def later():
            async with httpx.AsyncClient() as client:
                return (await client.post("https://a.test/p?q=1", json={"b": 2}, headers={"x-a": "1"})).json()
        told = [asyncio.run(later()), httpx.get("https://a.test/").json(), requests.get("https://a.test/r", params={"k": "v"}).json(),
                json.load(urllib.request.urlopen("https://a.test/u"))]
        for call in (lambda: httpx.get("https://refused.test/"), lambda: requests.get("https://refused.test/"),
                     lambda: urllib.request.urlopen("https://refused.test/")):
            try:
                call()
            except (httpx.ConnectError, requests.ConnectionError, OSError) as problem:
                told.append(str(problem))
        print(json.dumps([told, sent]), file=sys.__stdout__)
    """

    def test_requests_go_through_wharf(self) -> None:
        ran = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(self.SCRIPT)], capture_output=True, text=True, cwd=HERE.parent, check=False
        )
        self.assertEqual(ran.returncode, 0, ran.stderr[-2000:])
        told, sent = json.loads(ran.stdout.splitlines()[-1])
        self.assertEqual(told[:4], [{"n": 1}] * 4)
        self.assertTrue(all("does not allow this request to refused.test" in one for one in told[4:]), told[4:])
        self.assertEqual(sent[0], ["POST", "a.test", "/p?q=1", "1", '{"b":2}'])
        self.assertEqual([one[2] for one in sent[1:4]], ["/", "/r?k=v", "/u"])


if __name__ == "__main__":
    unittest.main()
