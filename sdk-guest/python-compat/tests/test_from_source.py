"""Packages that an index has only as source: what fetches them runs nothing of them, and what builds them has no index."""

from __future__ import annotations

import base64
import functools
import hashlib
import http.server
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import threading
import unittest
import zipfile
from pathlib import Path
from unittest import mock

from wharf_compat import from_source
from wharf_compat.from_source import APART, Apart, Sources
from wharf_compat.target import CompatError

BACKEND = """
import os, zipfile
FOUND = [name for name in os.environ if name.startswith("PIP_INDEX")]
with open(os.environ["RAN"], "a") as ran:
    ran.write(f"{FOUND}\\n")
def get_requires_for_build_wheel(settings=None):
    return ["helper"]
def build_wheel(folder, settings=None, metadata=None):
    import helper
    name = "PLACE-1.0-py3-none-any.whl"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
        wheel.writestr("PLACE.py", "x = 1\\n")
        wheel.writestr("PLACE-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: PLACE\\nVersion: 1.0\\n")
        wheel.writestr("PLACE-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("PLACE-1.0.dist-info/RECORD", "")
    return name
"""
BUILD_SYSTEM = "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"


class Index(http.server.ThreadingHTTPServer):
    """An index of packages at loopback, with a folder for each package."""

    def __init__(self, place: Path) -> None:
        handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(place))
        super().__init__(("127.0.0.1", 0), handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class FromSource(unittest.TestCase):
    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = Path(place.name)
        self.packages, self.project = self.place / "packages", self.place / "project"
        self.project.mkdir()
        quiet = mock.patch.object(http.server.SimpleHTTPRequestHandler, "log_message")
        quiet.start()
        self.addCleanup(quiet.stop)
        self.add("helper", "helper-2.0-py3-none-any.whl", self.wheel())
        index = Index(self.packages)
        self.addCleanup(index.server_close)
        self.addCleanup(index.shutdown)
        self.ran = self.place / "ran"
        environ = {"PIP_INDEX_URL": f"http://127.0.0.1:{index.server_port}/", "PIP_CONFIG_FILE": os.devnull, "RAN": str(self.ran)}
        environ |= {"PIP_NO_CACHE_DIR": "1", "PIP_FIND_LINKS": ""}
        changed = mock.patch.dict(os.environ, environ)
        changed.start()
        self.addCleanup(changed.stop)

    def add(self, package: str, name: str, content: bytes) -> str:
        (self.packages / package).mkdir(parents=True, exist_ok=True)
        (self.packages / package / name).write_bytes(content)
        return hashlib.sha256(content).hexdigest()

    def wheel(self) -> bytes:
        content = io.BytesIO()
        files = {
            "helper.py": "",
            "helper-2.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: helper\nVersion: 2.0\n",
            "helper-2.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        listed = [
            f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b'=').decode()},{len(text)}"
            for name, text in files.items()
        ]
        with zipfile.ZipFile(content, "w") as packed:
            for name, text in {**files, "helper-2.0.dist-info/RECORD": "\n".join([*listed, "helper-2.0.dist-info/RECORD,,"])}.items():
                packed.writestr(name, text)
        return content.getvalue()

    def source(self, files: dict[str, str], package: str = "odd") -> str:
        content = io.BytesIO()
        with tarfile.open(fileobj=content, mode="w:gz") as packed:
            for name, text in {"PKG-INFO": f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n", **files}.items():
                about = tarfile.TarInfo(f"{package}-1.0/{name}")
                about.size = len(text)
                packed.addfile(about, io.BytesIO(text.encode()))
        return self.add(package, f"{package}-1.0.tar.gz", content.getvalue())

    def resolve(self, *wanted: str) -> subprocess.CompletedProcess[str]:
        return Sources(self.project).pip("install", "--quiet", "--dry-run", "--ignore-installed", *wanted)

    def test_a_wheel_is_built_where_no_index_is(self) -> None:
        digest = self.source({"pyproject.toml": BUILD_SYSTEM, "backend.py": BACKEND.replace("PLACE", "odd")})
        sources = Sources(self.project)
        self.assertEqual(sources.pip("install", "--quiet", "--no-deps", "--target", str(self.project / "deps"), "odd").returncode, 0)
        self.assertTrue((self.project / "deps/odd.py").is_file())
        self.assertEqual(set(self.ran.read_text().split("\n")), {"[]", ""})
        wheel = sources.wheel(f"odd==1.0 --hash=sha256:{digest}")
        self.assertEqual(sources.digest(wheel.as_uri()), digest)

    def test_what_fetches_runs_nothing(self) -> None:
        setup = "import os\nopen(os.environ['RAN'], 'w').write('ran')\nimport setuptools\nsetuptools.setup(name='odd', version='1.0')\n"
        backend = BACKEND.replace("PLACE", "odd")
        with mock.patch.dict(os.environ, {APART: "1"}):
            for files in ({"setup.py": setup}, {"pyproject.toml": BUILD_SYSTEM, "backend.py": backend}, {}):
                with self.subTest(files=list(files)):
                    digest = self.source(files)
                    self.assertRaises(Apart, self.resolve, "odd")
                    self.assertEqual((self.project / "sources/next").read_text(), digest)
                    self.assertFalse(self.ran.exists())

    def test_what_is_no_package_of_an_index_is_refused(self) -> None:
        for url in ("git+file:///nowhere", f"file://{self.place}/project"):
            with self.subTest(url=url):
                ran = self.resolve(f"odd @ {url}")
                self.assertNotEqual(ran.returncode, 0)
                self.assertFalse(self.ran.exists())

    def test_no_link_and_no_other_package_is_taken_from_a_build(self) -> None:
        (self.place / "settings").write_text("precious")
        digest = self.source({"setup.py": ""})
        folder = self.project / "sources" / digest
        for name, link, expected in (
            ("odd-1.0-py3-none-any.whl", True, "cannot be read"),
            ("needs.txt", True, "cannot be read"),
            ("pip-99-py3-none-any.whl", False, "did not make one wheel of odd"),
        ):
            with self.subTest(name=name), mock.patch.dict(os.environ, {APART: "1"}):
                self.assertRaises(Apart, self.resolve, "odd")
                made = self.project / "wheels"
                made.mkdir()
                (made / name).symlink_to(self.place / "settings") if link else (made / name).write_bytes(self.wheel())
                with self.assertRaisesRegex(CompatError, expected):
                    Sources(self.project).take()
                self.assertFalse((folder / "wheel").exists())
                (made / name).unlink()
                made.rmdir()

    def test_a_build_that_failed_says_why_each_time(self) -> None:
        self.source({"pyproject.toml": BUILD_SYSTEM, "backend.py": "raise RuntimeError('it is broken')"})
        for _ in range(2):
            with self.assertRaisesRegex(CompatError, "odd-1.0.tar.gz is published only as source.*RuntimeError: it is broken") as failed:
                self.resolve("odd")
            self.assertNotIn("Traceback", str(failed.exception))

    def test_an_archive_that_needs_itself_ends(self) -> None:
        for package, other in (("odd", "even"), ("even", "odd")):
            self.source({"pyproject.toml": f"[build-system]\nrequires = ['{other}']\nbuild-backend = 'x'\n"}, package)
        with self.assertRaisesRegex(CompatError, "needs itself"):
            self.resolve("odd")

    def test_what_failed_is_said_without_pythons_calls(self) -> None:
        said = (
            "  error: subprocess-exited-with-error\n  \n  × Getting requirements to build wheel did not run successfully.\n  │ exit code: 1\n"
            "  ╰─> [9 lines of output]\n      Traceback (most recent call last):\n        File \"/x/_in_process.py\", line 353, in <module>\n"
            "          main()\n        File \"<string>\", line 3, in <module>\n      OSError: [Errno 13] Permission denied: '/home/ada/.ssh'\n"
            "      [end of output]\n  \n  note: This error originates from a subprocess, and is likely not a problem with pip.\n"
        )
        self.assertEqual(
            from_source.last(said),
            "subprocess-exited-with-error; Getting requirements to build wheel did not run successfully.; "
            "OSError: [Errno 13] Permission denied: '/home/ada/.ssh'",
        )
        none = (
            "ERROR: Could not find a version that satisfies the requirement foo (from versions: none)\n"
            "ERROR: No matching distribution found for foo\n"
        )
        self.assertEqual(from_source.last(none), "foo is not in the index of packages")
        retried = (
            "WARNING: Retrying (Retry(total=0)) after connection broken by 'ProxyError('Cannot connect to proxy.', NewConnectionError("
            "'<x.HTTPSConnection object at 0x7f>: Failed to establish a new connection: [Errno 111] Connection refused'))': /simple/foo/\n"
        )
        told = "Cannot connect to proxy., Failed to establish a new connection: [Errno 111] Connection refused"
        self.assertEqual(from_source.last(retried + none), f"the index of packages cannot be reached: {told}")
        self.assertEqual(from_source.last("ERROR: No matching distribution found for foo>=1.0\n"), "No matching distribution found for foo>=1.0")


if __name__ == "__main__":
    sys.exit(unittest.main())
