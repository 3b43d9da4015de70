"""Packages that exist only compiled: what a server gets of them."""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path
from unittest import mock

from wharf_compat import _checking, installing
from wharf_compat.absent import ctypes_, kdf, mmap_, regex_
from wharf_compat.installing import Package

START = """
import sys
from wharf_compat.runtime import imports
from wharf_compat.absent import hollow
imports.compiled.update({"fastlib": "fastlib 1.2"})
sys.meta_path.insert(0, imports._Replaced())
"""


def ran(source: str, *files: tuple[str, str], compiled: str = "fastlib") -> str:
    """Runs a module as a server's, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("served.py", source), *files):
            Path(folder, name).write_text(text)
        code = f"{START.replace('fastlib', compiled)}\nsys.path.insert(0, {folder!r})\nimport served"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    return done.stdout.strip() + done.stderr.strip().rpartition("\n")[2]


class Imports(unittest.TestCase):
    def test_a_use_in_a_call_says_what_is_compiled(self) -> None:
        source = "from fastlib.tables import Table\nTable(3).rows\nfrom wharf_compat.absent import hollow\nhollow.calling = True\nTable(4)\n"
        self.assertEqual(
            ran(source), "RuntimeError: `fastlib.tables.Table` cannot be used inside of a plugin: fastlib 1.2 is compiled for one kind of machine"
        )

    def test_what_handles_that_it_is_missing_is_told_so(self) -> None:
        for source in (
            "try:\n    import fastlib\nexcept ImportError:\n    fastlib = None\nprint(fastlib)\n",
            "try:\n    import inner\nexcept (ValueError, ImportError):\n    inner = None\nprint(inner)\n",
            "import importlib.util\nprint(importlib.util.find_spec('fastlib'))\n",
        ):
            with self.subTest(source):
                self.assertEqual(ran(source, ("inner.py", "import fastlib\n")), "None")

    def test_a_class_may_have_a_compiled_base_and_a_metaclass(self) -> None:
        source = (
            "from fastlib import Base, registry\nclass Kind(type):\n    pass\nclass One(Base, metaclass=Kind):\n    size = 2\n"
        )
        for rest, expected in (
            ("registry('x')['one'] = One\nprint(One.size, type(One).__name__)\n", "2 Kind"),
            ("One()\n", "RuntimeError: `served.One` cannot be used inside of a plugin: it is made from a compiled class"),
        ):
            with self.subTest(rest):
                self.assertEqual(ran(source + rest), expected)

    def test_what_would_end_without_it_gets_a_module(self) -> None:
        for rest in ("    sys.exit(3)\n", "    raise RuntimeError('needed')\n"):
            source = f"import sys\ntry:\n    import fastlib\nexcept ImportError:\n{rest}print(fastlib.__version__)\n"
            with self.subTest(rest):
                self.assertEqual(ran(source), "1.2")


PAGE = """
import lxml.html
page = lxml.html.fromstring("<!doctype html><title>A</title><h1 class='t'>B <b>c</b></h1><p><a href='/x'>d</a></p>")
part = lxml.html.fromstring("<p>one <i>two</i></p>")
parts = lxml.html.fromstring("<p>one</p><p>two</p>")
"""


class Pages(unittest.TestCase):
    """`lxml.html` without lxml. What is expected is what lxml 6.1 gives."""

    @unittest.skipUnless(importlib.util.find_spec("elementpath") and importlib.util.find_spec("html5lib"), "needs elementpath and html5lib")
    def test_pages_are_read_and_searched(self) -> None:
        for wanted, expected in (
            ("page.xpath('//head/title//text()')", ["A"]),
            ("page.xpath('//h1[@class=\"t\"]//text()')", ["B ", "c"]),
            ("page.xpath('//a/@href')", ["/x"]),
            ("page.xpath('count(//p)')", 1.0),
            ("page.xpath('string(//h1)')", "B c"),
            ("[one.tag for one in page.xpath('//h1 | //p')]", ["h1", "p"]),
            ("[one.text_content() for one in page.findall('.//p')]", ["d"]),
            ("page.find('.//a').get('href')", "/x"),
            ("[part.tag, part.text, part[0].tag, len(part)]", ["p", "one ", "i", 1]),
            ("[parts.tag, len(parts)]", ["div", 2]),
        ):
            with self.subTest(wanted):
                self.assertEqual(ran(f"{PAGE}print({wanted} == {expected!r} or {wanted})\n", compiled="lxml"), "True")

    @unittest.skipUnless(importlib.util.find_spec("elementpath") and importlib.util.find_spec("html5lib"), "needs elementpath and html5lib")
    def test_mistakes_are_those_of_lxml(self) -> None:
        for line, kind in (("lxml.html.fromstring(' ')", "ParserError"), ("page.xpath('//[')", "XPathEvalError")):
            with self.subTest(line):
                source = f"{PAGE}try:\n    {line}\nexcept lxml.etree.{kind}:\n    print('told')\n"
                self.assertEqual(ran(source, compiled="lxml"), "told")


class Patterns(unittest.TestCase):
    """`regex` without its compiled part."""

    def test_patterns_with_categories(self) -> None:
        for found, expected in (
            (regex_.sub(r"\p{Z}+", " ", "a\u2003\u00a0b"), "a b"),
            (regex_.findall(r"[\p{L}\-]+", "äb-c 1"), ["äb-c"]),
            (regex_.findall(r"\P{L}+", "ab12"), ["12"]),
            (regex_.findall(r"\p{^Lu}", "aB"), ["a"]),
            (regex_.compile(r"\p{Letter}\pN").findall("a1"), ["a1"]),
            (regex_.findall(r"\\p{L}", r"\p{L}"), [r"\p{L}"]),
            (regex_.sub("a", "b", "aaa", 2), "bba"),
            (regex_.split(r"\s", "a b c", 1), ["a", "b c"]),
            (bool(regex_.search("A", "a", regex_.I)), True),
            (regex_.sub(b"a", b"b", b"a"), b"b"),
        ):
            with self.subTest(expected):
                self.assertEqual(found, expected)

    def test_what_it_cannot_do_is_an_error(self) -> None:
        with self.assertRaisesRegex(regex_.error, "is not a general category"):
            regex_.compile(r"\p{Greek}")
        with self.assertRaisesRegex(NotImplementedError, "overlapped"):
            regex_.findall("aa", "aaa", overlapped=True)


class Variables(unittest.TestCase):
    def test_variables_that_are_only_listed_are_not_wanted(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "server.py")
            file.write_text("import os\nos.getenv('NOTES_KEY')\ndict(os.environ)\n")
            found = _checking.named(["NOTES_KEY", "OF_THE_MACHINE", "ASKED"], {"ASKED"}, [str(file), "/nowhere.py"])
        self.assertEqual(found, ["NOTES_KEY", "ASKED"])


class Versions(unittest.TestCase):
    """A server that is a package and was written for version 1 of the SDK gets that. What a file says it needs, it gets."""

    def test_only_a_package_gets_an_older_sdk_than_it_asks_for(self) -> None:
        sdk = [mock.Mock(key="mcp", version="2.3.0")]
        older = [mock.Mock(key="mcp", version="1.30.0")]
        for server, asked in ((None, [["mcp>=2"]]), (("notes", None), [["mcp>=2"], ["mcp>=2"]])):
            with (
                self.subTest(server),
                mock.patch.object(installing, "_resolved", side_effect=[sdk, older]) as resolved,
                mock.patch.object(installing, "_is_older", return_value=True),
                mock.patch.object(installing, "_tell"),
            ):
                found = installing._resolve(mock.Mock(), ["mcp>=2"], server)
                self.assertEqual([call.args[1] for call in resolved.call_args_list], asked)
                self.assertEqual(found[0].version, "2.3.0" if server is None else "1.30.0")


class Locked(unittest.TestCase):
    def test_the_lock_names_the_modules(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            wheel = Path(folder, "fast-lib", "fast_lib-1.2.whl")
            wheel.parent.mkdir()
            with zipfile.ZipFile(wheel, "w") as file:
                for name in ("fastlib/__init__.py", "fastlib/_core.so", "_fast.abi3.so", "space/part/__init__.py", "fast_lib-1.2.dist-info/RECORD"):
                    file.writestr(name, "")
            one = Package("fast-lib", "1.2", "https://x/fast_lib-1.2-cp314-cp314-manylinux.whl", "")
            sources = mock.Mock(**{"pip.return_value.returncode": 0})
            modules = installing._modules(sources, one, Path(folder))
            self.assertEqual(modules, ["_fast", "fastlib", "space.part"])
            Path(folder, installing.LOCK).write_text(f"# []\n{installing.COMPILED}fast-lib==1.2: {' '.join(modules)}\n")
            self.assertEqual(installing.compiled(Path(folder))["space.part"], "fast-lib 1.2")


class Modules(unittest.TestCase):
    def test_a_file_is_mapped_for_reading(self) -> None:
        with tempfile.TemporaryFile() as file:
            file.write(b"one two")
            file.flush()
            with mmap_.mmap(file.fileno(), 0, access=mmap_.ACCESS_READ) as found:
                self.assertEqual((found[:3], found.find(b"two"), found.size()), (b"one", 4, 7))
            with self.assertRaisesRegex(OSError, "mapped for writing"):
                mmap_.mmap(file.fileno(), 0)

    def test_keys_are_derived_as_openssl_does(self) -> None:
        for name, length in (("sha1", None), ("sha256", 5), ("sha512", 100)):
            self.assertEqual(kdf.pbkdf2_hmac(name, b"p", b"s", 10, length), hashlib.pbkdf2_hmac(name, b"p", b"s", 10, length))
        for n, r, p in ((16, 1, 1), (64, 8, 2), (2, 3, 1)):
            self.assertEqual(kdf.scrypt(b"p", salt=b"s", n=n, r=r, p=p), hashlib.scrypt(b"p", salt=b"s", n=n, r=r, p=p))
        with self.assertRaisesRegex(ValueError, "takes too long inside of a plugin"):
            kdf.scrypt(b"p", salt=b"s", n=1 << 20, r=8, p=1)

    def test_types_of_c_have_sizes_and_no_values(self) -> None:
        self.assertEqual(ctypes_.sizeof(ctypes_.c_long * 3), 12)  # type: ignore[attr-defined]
        with self.assertRaisesRegex(OSError, "no libraries"):
            ctypes_.c_long(3)  # type: ignore[attr-defined]


if __name__ == "__main__":
    unittest.main()
