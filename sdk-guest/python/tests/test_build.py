"""The build's messages about broken plugins, and the component it makes from a correct one. Needs componentize-py."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path
from unittest import mock

from wharf_sdk import __main__ as command
from wharf_sdk._build import (
    SDK, BuildError, _cause, _fetches, _imported_later, _missing, _native, _section, _sources, _try, build,
)  # fmt: skip

COMPLETE = importlib.util.find_spec("componentize_py") is not None


class Folder(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path


class Looking(Folder):
    """Mistakes that are found without building."""

    def test_which_files_are_the_plugins(self) -> None:
        plugin = self.write("plugin.py", "import a\nfrom b import c\nimport json\n")
        self.write("a.py", "def f():\n    import colorsys\n    from . import b\n")
        self.write("b/__init__.py", "")
        self.write("b/c.py", "from wharf_sdk import fetch\n")
        self.write("other.py", "import fetch")
        sources = list(_sources(plugin, [self.folder]))
        names = {str(path.relative_to(self.folder)) for path, _ in sources}
        self.assertEqual(names, {"plugin.py", "a.py", "b/__init__.py", "b/c.py"})
        self.assertEqual(_imported_later(sources), ["b", "colorsys"])
        self.assertTrue(_fetches(sources))
        self.assertFalse(_fetches([one for one in sources if one[0].name != "c.py"]))

    def test_the_cause_comes_before_what_the_plugin_printed(self) -> None:
        said = "a warning\n\n\nCaused by:\n    0: reading\n    1: it broke\n\nStack backtrace:\n   0: main\n"
        self.assertEqual(_cause(said), "reading; it broke\na warning")
        self.assertEqual(_cause("nothing else"), "nothing else")
        self.assertIn("128 MiB", _cause(said.replace("it broke", "fuel allocated for hostcalls has been exhausted")))

    @unittest.skipUnless(importlib.util.find_spec("componentize_py"), "needs componentize-py")
    def test_a_wrong_line_is_told(self) -> None:
        plugin = self.write("plugin.py", "x = 1\ndef f(:\n")
        with self.assertRaisesRegex(BuildError, r"invalid syntax \(plugin\.py, line 2\)"):
            build(plugin, self.folder / "x.wasm")

    def test_what_cannot_be_built(self) -> None:
        for name, said in [("json.py", "json.py needs another name"), ("my-plugin.py", "needs another name")]:
            with self.assertRaisesRegex(BuildError, said):
                build(self.write(name, ""), self.folder / "x.wasm")
        with self.assertRaisesRegex(BuildError, "there is no file .*nothing.py"):
            build(self.folder / "nothing.py", self.folder / "x.wasm")

    def test_why_a_module_is_missing(self) -> None:
        self.write("native/_part.cpython-311-x86_64-linux-gnu.so", "")
        at = "plugin.py, line 3"
        self.assertRegex(
            _native("native._part", at, [self.folder]) or "",
            r"^`native` cannot run inside of a plugin: its part `native\._part` is compiled.*\(plugin\.py, line 3\)$",
        )
        self.assertIsNone(_native("native._other", at, [self.folder]))
        for name, said in [
            ("ssl", "Python's module `ssl` does not exist inside of a plugin"),
            ("nothing.part", "`nothing.part` is not installed for .*: pip install nothing"),
        ]:
            self.assertRegex(_missing(name, at), rf"^{said}.*\(plugin\.py, line 3\)$")

    def test_mistakes_are_found_before_the_component_is_made(self) -> None:
        for text, said in [
            ("@tool\ndef f(a) -> str:\n    'F.'\n    return a\n", r"the tool `f`: .*\(plugin\.py, line 2\)"),
            ("@tool\ndef f(a: int) -> str:\n    return ''\n", r"the tool `f` has no description.*\(plugin\.py, line 2\)"),
            ("@tool\nasync def f() -> str:\n    'F.'\n", r"the tool `f` is `async`.*\(plugin\.py, line 2\)"),
        ]:
            self.write("plugin.py", f"from wharf_sdk import tool\n{text}")
            with self.assertRaisesRegex(BuildError, said):
                _try("plugin", [self.folder], [self.folder, SDK.parent])
        # Whether a module exists inside of a component, only the build can tell.
        self.write("plugin.py", "import nothing\n")
        _try("plugin", [self.folder], [self.folder, SDK.parent])

    def test_sections(self) -> None:
        self.assertEqual(_section("ab", b"x"), b"\0\x04\x02abx")
        self.assertEqual(_section("a", b"x" * 200)[:4], b"\0\xca\x01\x01")


@unittest.skipUnless(COMPLETE, "needs componentize-py")
class Building(Folder):
    def build(self, text: str) -> tuple[int, str, str]:
        plugin = self.write("plugin.py", text)
        out, err = io.StringIO(), io.StringIO()
        arguments = ["wharf_sdk", "build", str(plugin), "-o", str(self.folder / "dist/plugin.wasm")]
        with mock.patch.object(sys, "argv", arguments), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = command.main()
        return code, out.getvalue(), err.getvalue()

    def fails(self, text: str, said: str) -> None:
        code, out, err = self.build(text)
        self.assertRegex(err, f"^error: {said}\n$")
        self.assertEqual((code, out), (1, ""))
        self.assertFalse((self.folder / "dist").exists())

    def test_a_plugin(self) -> None:
        text = """
            from wharf_sdk import instructions, tool

            instructions("Greet first.")

            @tool
            def greet(name: str) -> str:
                "Greets."
                import colorsys
                return f"Hello, {name}!"
        """
        code, out, err = self.build(text)
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"plugin\.wasm: 1 tools, \d+\.\d MB, in \d")
        component = (self.folder / "dist/plugin.wasm").read_bytes()
        self.assertTrue(component.startswith(b"\0asm"))
        self.assertTrue(component.endswith(_section("wharf:instructions", b"Greet first.")))
        inputs = json.loads((self.folder / "dist/plugin.wasm.inputs").read_text())["inputs"]
        self.assertIn(str((self.folder / "plugin.py").resolve()), inputs)
        # Nothing is written next to the sources.
        self.assertEqual(sorted(os.listdir(self.folder)), ["dist", "plugin.py"])
        # An unchanged plugin is not built again; a changed one is.
        self.assertRegex(self.build(text)[1], "is up to date")
        self.assertEqual(self.build(text.replace("colorsys", "nothing("))[0], 1)

    def test_raises_when_it_is_imported(self) -> None:
        text = """
            import json
            json.loads("{")
        """
        self.fails(text, r"Expecting property name .* \(JSONDecodeError in plugin\.py, line 3\)")

    def test_imports_what_is_not_there(self) -> None:
        self.fails("import requests\n", r"`requests` is not installed for .*: pip install requests.* \(plugin\.py, line 1\)")


if __name__ == "__main__":
    unittest.main()
