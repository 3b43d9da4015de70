"""The code that the build keeps for later imports."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
import tempfile
import types
import unittest
from pathlib import Path
from unittest import mock

from wharf_compat.runtime import imports, metadata, start, zones
from wharf_compat.runtime.start import Target


class Kept(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()
        for known in (imports.kept.code, imports.kept.left, imports.kept.named, imports.kept.imported):
            self.addCleanup(known.clear)

    def write(self, name: str, text: str = "") -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def without_python(self) -> None:
        patch = mock.patch.object(imports, "keep_python", lambda: 0)
        patch.start()
        self.addCleanup(patch.stop)

    def test_a_servers_own_package_is_kept_under_its_name(self) -> None:
        self.write("deps/kept_server/__init__.py", "VALUE = 3\n")
        self.write("deps/kept_server/part.py")
        self.write("deps/other.py")
        deps = f"{self.folder}/deps/"
        self.without_python()
        start.keep_code(Target("kept_server", "main", own=[f"{deps}kept_server/"]), [deps])
        self.assertEqual(sorted(imports.kept.code), ["kept_server", "kept_server.part", "other"])
        spec = imports.kept.find_spec("kept_server")
        self.assertEqual(spec.submodule_search_locations, [f"{deps}kept_server"])

    def test_a_module_is_made_from_what_was_kept(self) -> None:
        self.write("server.py", "from late import VALUE\n")
        self.write("late.py", "VALUE = __name__\n")
        self.write("deps/unused.py", "syntax error\n")
        self.without_python()
        start.keep_code(Target("server", own=[f"{self.folder}/"]), [f"{self.folder}/deps/"])
        self.assertEqual(sorted(imports.kept.code), ["late", "server"])
        sys.meta_path.append(imports.kept)
        self.addCleanup(sys.meta_path.remove, imports.kept)
        self.addCleanup(sys.modules.pop, "late", None)
        import late  # type: ignore[import-not-found]

        self.assertEqual(late.VALUE, "late")

    def test_modules_of_python_that_functions_import_are_kept(self) -> None:
        self.write("server.py", "import os\ndef call():\n    import sqlite3.dump\n    import_module('wave')\n    import tkinter\n")
        self.write("deps/part.py", "def late():\n    from plistlib import loads\n")
        for name in ("sqlite3", "sqlite3.dbapi2", "wave", "plistlib"):
            # Another test may have imported it.
            known = mock.patch.dict(sys.modules)
            known.start()
            self.addCleanup(known.stop)
            sys.modules.pop(name, None)
        start.keep_code(Target("server", own=[f"{self.folder}/"]), [f"{self.folder}/deps/"])
        code = imports.kept.code
        self.assertLessEqual({"server", "part", "sqlite3", "sqlite3.dbapi2", "wave", "plistlib"}, code.keys())
        self.assertFalse([name for name in code if name.partition(".")[0] in imports.UNUSED], "what cannot be used")

    def test_what_the_server_names_comes_before_what_has_no_room(self) -> None:
        self.write("server.py", "def call():\n    import named.part\n")
        self.write("deps/named/__init__.py")
        self.write("deps/named/part.py", "VALUE = 1\n" * 40)
        self.write("deps/large/__init__.py", "VALUE = 1\n" * 30)
        self.write("deps/small.py")
        self.without_python()
        code, enough = imports.kept.code, 400 * imports.COMPILING
        with mock.patch.object(imports, "_room", lambda: 0 if "named.part" in code else enough):
            start.keep_code(Target("server", own=[f"{self.folder}/"]), [f"{self.folder}/deps/"])
        self.assertEqual(sorted(imports.kept.code), ["named", "named.part", "server", "small"])
        self.assertEqual(imports.kept.left, {"large"})
        for finder in (imports.kept, imports.missing):
            sys.meta_path.append(finder)
            self.addCleanup(sys.meta_path.remove, finder)
        self.assertIsNone(importlib.util.find_spec("large"))
        with self.assertRaisesRegex(ModuleNotFoundError, "`large` is not in this plugin: there was no room"):
            import large  # type: ignore[import-not-found]  # noqa: F401

    def test_a_server_finds_the_versions_of_its_packages(self) -> None:
        self.write("deps/some_server-1.2.dist-info/METADATA", "Metadata-Version: 2.1\nName: some-server\nVersion: 1.2\n\nLong text.\n")
        self.addCleanup(metadata.kept.clear)
        metadata.keep([f"{self.folder}/deps"])
        sys.meta_path.append(imports.kept)
        self.addCleanup(sys.meta_path.remove, imports.kept)
        self.assertEqual(importlib.metadata.version("Some.Server"), "1.2")
        self.assertNotIn("Long", metadata.kept["some-server"]["METADATA"])
        with self.assertRaises(importlib.metadata.PackageNotFoundError):
            importlib.metadata.version("another-server")

    def test_the_zones_of_tzdata_are_found(self) -> None:
        self.write("deps/tzdata/zones", "Test/Zone\n")
        self.write("deps/tzdata/zoneinfo/Test/Zone", "TZif")
        self.addCleanup(zones.kept.clear)
        zones.keep([f"{self.folder}/deps", f"{self.folder}/nothing"])
        module = types.SimpleNamespace(ZoneInfoNotFoundError=KeyError, load_tzdata=lambda key: {}[key])
        zones.install(module)
        self.assertEqual(module.load_tzdata("Test/Zone").read(), b"TZif")
        with self.assertRaises(KeyError):
            module.load_tzdata("Test/Other")


if __name__ == "__main__":
    unittest.main()
