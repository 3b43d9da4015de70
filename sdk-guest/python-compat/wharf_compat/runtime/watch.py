"""Notes what a server looks at while it starts, to decide whether it has to start in each instance."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

FRAMEWORK = ("mcp", "fastmcp", "mcp_types", "pydantic")
AWAY = ("deps", "dist", "build", "venv", "env", "site-packages", "node_modules")
"""Folders next to a server that hold no code of its own."""
PACKAGES = {"deps", "site-packages", "dist-packages", "zoneinfo"}
"""Folders of packages, and of the time zones, which some look for in several places."""
PLACEHOLDER = "set-by-the-operator"
TERMINAL = ("_colorize", "gettext", "locale", "shutil")
"""Modules of Python that ask for the width and the language of a terminal, as `argparse` does to write its help."""

HOME = "/home"
"""The home folder, which does not exist."""


def placeholder(name: str) -> str:
    """Returns a value for a variable that may have to be an address."""
    return "https://service.example" if "URL" in name else PLACEHOLDER


class Watch:
    """What the server's own code read. `own`: says whether a file is part of the server."""

    def __init__(self) -> None:
        self.own: tuple[str, ...] = ()
        self.on = False
        self.home: Callable[[], str | None] = lambda: None
        """Finds the home folder of the server's own code in a call."""
        self.variables: dict[str, None] = {}
        self.missing: dict[str, None] = {}
        self.files: dict[str, None] = {}

    @property
    def looked(self) -> bool:
        return bool(self.variables or self.files)

    def of_person(self) -> list[str]:
        """Returns the files that are not those of the machine, of Python or of packages, such as the time zones: a person may open their folder."""
        # Not imported in a plugin, which does not ask.
        import zoneinfo

        machine = [os.path.join(os.path.abspath(one), "") for one in (*zoneinfo.TZPATH, sys.prefix, sys.base_prefix, "/etc")]
        prefixes = tuple(one for one in machine if one != "/")

        def is_machine(file: str) -> bool:
            path = os.path.abspath(file)
            return path.startswith(prefixes) or not PACKAGES.isdisjoint(path.split("/"))

        return [file for file in self.files if not is_machine(file)]

    def is_own(self, file: str) -> bool:
        for one in self.own:
            if file.startswith(one):
                parts = file[len(one) :].strip("/").split("/")[:-1]
                return not any(part in AWAY or part.startswith(".") for part in parts)
        return False

    def by_server(self) -> bool:
        """Whether the server's code is what looks: not the framework's, not a package that is being imported, and not what asks for the width
        and the language of a terminal."""
        frame = sys._getframe(2)
        while frame is not None:
            name, file = frame.f_globals.get("__name__", ""), frame.f_code.co_filename
            if self.is_own(file):
                return True
            if name in TERMINAL or name.partition(".")[0] in FRAMEWORK or file.startswith("<frozen importlib"):
                return False
            frame = frame.f_back  # type: ignore[assignment]
        return False


watch = Watch()


def _counts(name: str) -> bool:
    """Whether a variable is the server's: those of Python itself are read by Python's modules."""
    return not name.startswith("PYTHON")


class _Environ(os._Environ):  # type: ignore[type-arg]
    """`os.environ`, which notes what is read."""

    def __getitem__(self, key: str) -> str:
        if key == "HOME" and not watch.on and watch.by_server() and super().__getitem__(key) == HOME:
            return watch.home() or HOME
        if watch.on and _counts(key) and watch.by_server():
            watch.variables[key] = None
            try:
                return super().__getitem__(key)
            except KeyError:
                watch.missing[key] = None
                raise
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        # A variable that has a default is not missing.
        if default is not None and not self._is_set(key):
            if watch.on and _counts(key) and watch.by_server():
                watch.variables[key] = None
            return default
        return super().get(key, default)

    def _is_set(self, key: Any) -> bool:
        # `Mapping.__contains__` asks `__getitem__`, which would note that it is missing.
        try:
            super().__getitem__(key)
        except KeyError:
            return False
        return True

    def __contains__(self, key: object) -> bool:
        found = self._is_set(key)
        if watch.on and isinstance(key, str) and _counts(key) and watch.by_server():
            watch.variables[key] = None
        return found


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if not watch.on or event not in ("open", "os.mkdir", "os.listdir", "os.scandir", "sqlite3.connect"):
        return
    path = arguments[0] if arguments else None
    if isinstance(path, (str, bytes)) and path and not str(path).endswith((".py", ".pyc")) and watch.by_server():
        told = path if isinstance(path, str) else os.fsdecode(path)
        # A file next to the code that is only read is part of the plugin.
        mode = arguments[1] if event == "open" and len(arguments) > 1 else "w"
        if not (os.path.abspath(told).startswith(watch.own) and (mode is None or not set(str(mode)) & set("wax+"))):
            watch.files[told] = None


def install() -> None:
    if not isinstance(os.environ, _Environ):
        os.environ.__class__ = _Environ
        sys.addaudithook(_audit)
