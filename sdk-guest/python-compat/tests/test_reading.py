"""What is read from a server's source: what it wants, warnings, requirements, and which server is meant."""

from __future__ import annotations

import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

from wharf_compat import installing, reading, target
from wharf_compat.installing import CompatError, Package
from wharf_compat.runtime import start, watch


class Folder(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path


class Wants(Folder):
    def found(self, text: str) -> reading.Found:
        return reading.read([self.write("server.py", text)], [], [])

    def test_files_of_the_machine_and_of_packages_are_not_wanted(self) -> None:
        watching = watch.Watch()
        own = ["notes.json", "/srv/data/a.db", str(self.folder / "b.txt")]
        machine = ["/usr/share/zoneinfo/UTC", "/var/db/zoneinfo", "/etc/timezone", f"{sys.prefix}/lib/x.json", "/srv/deps/pkg-1.dist-info/METADATA"]
        watching.files = dict.fromkeys([*machine, *own])
        self.assertEqual(watching.of_person(), own)

    def test_hosts_variables_files_and_questions_are_wanted(self) -> None:
        found = self.found("""
            \"\"\"See https://docs.example.net/ for more.\"\"\"
            import os
            API = "https://api.weather.gov/alerts"
            LOCAL = "http://localhost:8080"; HELP = "'https://...' or https://.example"
            KEY = os.environ["KEY"]
            async def tool(ctx):
                os.getenv("ZONE")
                open("notes.txt")
                await ctx.elicit("Sure?", Sure)
        """)
        self.assertEqual(
            found.wants(),
            {
                "http": [{"url": "https://api.weather.gov/", "why": "named in server.py:4"}],
                "env": ["KEY", "ZONE"],
                "roots": "read-write",
                "ask": ["elicitation"],
            },
        )

    def test_a_server_that_needs_nothing_wants_nothing(self) -> None:
        self.assertIsNone(self.found("def add(a, b): return a + b\n").wants())

    def test_what_a_plugin_cannot_do_is_told_once(self) -> None:
        found = self.found("import subprocess, socket\ndef run():\n    subprocess.run(['ls'])\n    os.system('x')\n    socket.gethostname()\n")
        self.assertEqual(found.warnings, ["server.py:3: `subprocess.run` fails in a call, because a plugin cannot start other programs"])
        self.assertIn("no sockets", self.found("import socket\nsocket.create_connection(('a', 1))\n").warnings[0])

    def test_what_is_sent_before_a_question_is_told(self) -> None:
        found = self.found("async def pay(ctx):\n    await client.post('/pay')\n    await ctx.elicit('Sure?', Sure)\n")
        self.assertIn("server.py:2: `client.post` runs before the question in line 3", found.warnings[0])
        self.assertEqual(self.found("async def pay(ctx):\n    await ctx.elicit('Sure?', Sure)\n    await client.post('/')\n").warnings, [])


class Starting(Folder):
    def test_why_a_server_starts_in_each_instance(self) -> None:
        for text, said in [
            ("import time\nSTARTED = time.time()\n", "server.py:2 calls `time` when the module loads"),
            ("mcp = FastMCP('x', lifespan=open_all)\n", "server.py:1 has a lifespan"),
            ("import time\ndef now():\n    return time.time()\n", None),
        ]:
            self.assertEqual(start.changes([str(self.write("server.py", text))]), said)


class Requirements(Folder):
    def test_what_is_no_package_of_an_index_is_refused(self) -> None:
        for line in ("mcp @ git+https://example.com/mcp", "mcp@https://example.com/mcp.whl", "./mcp", "file:/mcp"):
            self.write("requirements.txt", f"{line}\n")
            self.write("server.py", "import mcp\n")
            with self.assertRaisesRegex(CompatError, "is not a package of an index"):
                installing.requirements("server.py", self.folder)

    def test_inline_metadata_comes_first(self) -> None:
        self.write("requirements.txt", "flask\n")
        self.write("server.py", '# /// script\n# dependencies = ["mcp>=1.2", "httpx"]\n# ///\nfrom mcp.server.fastmcp import FastMCP\n')
        self.assertEqual(installing.requirements("server.py", self.folder), ["mcp>=1.2,<2", "httpx"])

    def test_requirements_txt_and_the_files_it_names(self) -> None:
        self.write("more.txt", "httpx  # for the weather\n")
        self.write("requirements.txt", "fastmcp==3.4.11\n-r more.txt\n--index-url x\n")
        self.write("server.py", "import fastmcp\n")
        self.assertEqual(installing.requirements("server.py", self.folder), ["fastmcp==3.4.11", "httpx"])

    def test_the_version_of_the_sdk_is_seen_from_the_imports(self) -> None:
        self.write("old.py", "from mcp.server.fastmcp import FastMCP\n")
        self.write("new.py", "from mcp.server.mcpserver import MCPServer\n")
        self.assertEqual(installing.requirements("old.py", self.folder), ["mcp<2"])
        self.assertEqual(installing.requirements("new.py", self.folder), ["mcp>=2,<3"])

    def test_a_file_without_the_sdk_is_refused(self) -> None:
        self.write("server.py", "print(1)\n")
        with self.assertRaisesRegex(CompatError, "imports neither `mcp` nor `fastmcp`"):
            installing.requirements("server.py", self.folder)

    def test_a_compiled_package_is_named_with_advice(self) -> None:
        said = installing._cannot(Package("numpy", "2.0", "https://x/numpy-2.0-cp314-cp314-manylinux.whl", ""))
        self.assertIn("numpy 2.0 has compiled parts, which cannot run inside of a plugin; what needs it will fail: the statistics", said)


class Targets(Folder):
    def test_a_file_of_a_package_keeps_its_package(self) -> None:
        self.write("notes/__init__.py", "")
        path = self.write("notes/server.py", "")
        found = target.find(str(path), self.folder)
        self.assertEqual((found.module, found.root), ("notes.server", self.folder))

    def test_modules_and_their_entry_points(self) -> None:
        self.write("src/notes/__init__.py", "")
        self.write("src/notes/__main__.py", "")
        self.assertEqual(target.find("notes", self.folder).module, "notes")
        self.assertEqual(target.find("notes:main", self.folder).function, "main")

    def test_a_file_is_entered_as_the_script_of_its_project_does(self) -> None:
        self.write("pyproject.toml", "[project.scripts]\nnotes = 'notes_server:main'\n")
        package = self.write("src/notes_server/__init__.py", "def main(): pass\n")
        other = self.write("src/notes_server/server.py", "")
        for path, expected in ((package, ("notes_server", "main")), (other, ("notes_server.server", None))):
            found = target.find(str(path), self.folder)
            self.assertEqual((found.module, found.function), expected)

    def test_python_s_own_modules_come_before_those_of_packages(self) -> None:
        for name in ("argparse.py", "typing/__init__.py", "distutils/__init__.py", "other.py", "argparse-1.4.dist-info/METADATA"):
            self.write(f"deps/{name}", "")
        installing._unshadow(self.folder / "deps")
        left = sorted(one.name for one in (self.folder / "deps").iterdir())
        self.assertEqual(left, ["argparse-1.4.dist-info", "distutils", "other.py"])

    def test_an_installed_package_is_found_by_its_script(self) -> None:
        self.write("deps/notes_mcp/__init__.py", "def main(): ...\n")
        self.write("deps/notes_mcp-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: notes-mcp\nVersion: 1.0\n")
        self.write("deps/notes_mcp-1.0.dist-info/entry_points.txt", "[console_scripts]\nnotes-mcp = notes_mcp:main\n")
        self.write("deps/notes_mcp-1.0.dist-info/RECORD", "notes_mcp/__init__.py,,\n")
        found = target.find("pypi:Notes_MCP==1.0", self.folder)
        self.assertEqual((found.module, found.function, found.own), ("notes_mcp", "main", [self.folder / "deps/notes_mcp"]))

    def test_mistakes_are_told(self) -> None:
        self.write("json.py", "")
        mistakes = [
            ("no.py", "there is no file no.py"),
            ("json.py", "json.py needs another name"),
            ("a b", "neither a file nor a module"),
            ("pypi:a b", "is not a package"),
            ("pypi:nothing", "is not installed in"),
            ("no.such", "there is no module"),
        ]
        for said, why in mistakes:
            with self.assertRaisesRegex(CompatError, why):
                target.find(said, self.folder)


if __name__ == "__main__":
    unittest.main()
