"""Finds what to run: a file, a module, or a package of PyPI."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

DEPS = "deps"


class CompatError(Exception):
    """The reason why a command failed, in terms of the author's server."""


@dataclass
class Server:
    """A server. `module`: what is imported or run; `function`: its entry point, if it has one."""

    said: str
    module: str
    function: str | None
    root: Path
    """The folder from which the server's own code is imported."""
    own: list[Path] = field(default_factory=list)
    """The files and folders that are the server's own code."""
    main: Path | None = None
    package: str | None = None
    """The package of PyPI that it comes from."""


PYPI = re.compile(r"pypi:([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?(?:==([A-Za-z0-9.!+_-]+))?(?:#([A-Za-z0-9._-]+))?")


def requirement(said: str) -> tuple[str, str | None] | None:
    """Reads `pypi:NAME` or `pypi:NAME==VERSION`, each with the `#SCRIPT` that is to run if it is not the one named like the package."""
    if not said.startswith("pypi:"):
        return None
    found = PYPI.fullmatch(said)
    if not found:
        raise CompatError(f"`{said}` is not a package: write pypi:NAME or pypi:NAME==VERSION, and #SCRIPT after it to name its script")
    return found[1], found[2]


def find(said: str, project: Path) -> Server:
    """Finds a server by what the command line names."""
    named = requirement(said)
    if named is not None:
        return _package(said, named[0], project)
    path = Path(said)
    if not path.is_absolute():
        path = next((one for one in (Path.cwd() / said, project / said) if one.exists()), path)
    if said.endswith(".py") or path.is_file():
        if not path.is_file():
            raise CompatError(f"there is no file {said}")
        return _file(said, path.resolve())
    if path.is_dir():
        raise CompatError(f"{said} is a folder: name the server's main file in it, or its module")
    if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*(:[A-Za-z_][\w.]*)?", said):
        raise CompatError(f"`{said}` is neither a file nor a module: write server.py, package.module, package.module:function or pypi:NAME")
    return _module(said, project)


def _file(said: str, path: Path) -> Server:
    name = path.stem
    if not name.isidentifier():
        raise CompatError(f"{path.name} needs another name: `import {name}` would not find it")
    root, parts = path.parent, [name]
    # A file of a package is imported as part of it, so that its relative imports work.
    while (root / "__init__.py").is_file():
        parts.insert(0, root.name)
        root = root.parent
    if parts[-1] in ("__main__", "__init__") and len(parts) > 1:
        parts.pop()
    if parts[0] in sys.stdlib_module_names or parts[0] in ("mcp", "fastmcp", "wharf_compat", "wharf_sdk"):
        raise CompatError(f"{path.name} needs another name: `import {parts[0]}` finds another module")
    module = ".".join(parts)
    return Server(said, module, _script(module, (root, root.parent)), root, [root], path)


def _script(module: str, places: Sequence[Path]) -> str | None:
    """Returns the function of a module that a script of its project runs. Other modules run as they are."""
    for place in places:
        try:
            import tomllib

            scripts = (tomllib.loads((place / "pyproject.toml").read_text(encoding="utf-8")).get("project") or {}).get("scripts") or {}
        except (ImportError, OSError, ValueError):
            continue
        for value in scripts.values():
            name, _, function = str(value).partition("[")[0].strip().partition(":")
            if name == module:
                return function or None
    return None


def _module(said: str, project: Path) -> Server:
    module, _, function = said.partition(":")
    for root in (project, project / "src"):
        place = root.joinpath(*module.split("."))
        main = next((one for one in (place.with_suffix(".py"), place / "__main__.py", place / "__init__.py") if one.is_file()), None)
        if main is not None:
            if main.name == "__init__.py" and not function:
                raise CompatError(f"`{module}` has no __main__.py: name its entry point, such as {module}:main")
            return Server(said, module, function or None, root, [root], main)
    installed = project / DEPS
    place = installed.joinpath(*module.split("."))
    if place.exists() or place.with_suffix(".py").exists():
        return Server(said, module, function or None, installed, [installed / module.partition(".")[0]], None)
    raise CompatError(f"there is no module `{module}` in {project}, {project / 'src'} or {installed}")


def _package(said: str, name: str, project: Path) -> Server:
    folder = project / DEPS
    found = next((one for one in importlib.metadata.distributions(path=[str(folder)]) if _same(one.name, name)), None)
    if found is None:
        raise CompatError(f"{name} is not installed in {folder}: run `python -m wharf_compat setup {said}` first")
    scripts = [one for one in found.entry_points if one.group == "console_scripts"]
    asked = said.partition("#")[2]
    script = next((one for one in scripts if _same(one.name, asked or name)), None) or (scripts[0] if scripts and not asked else None)
    if asked and script is None:
        raise CompatError(f"{name} has no script {asked}; it has: {', '.join(one.name for one in scripts) or 'none'}")
    if script is not None:
        module, _, function = script.value.partition("[")[0].strip().partition(":")
        return Server(said, module.removesuffix(".__init__"), function or None, folder, _own(found, folder), None, found.name)
    tops = sorted({one.parts[0] for one in found.files or [] if one.name == "__main__.py"})
    if tops:
        return Server(said, tops[0], None, folder, _own(found, folder), None, found.name)
    raise CompatError(f"{name} has neither a console script nor a __main__.py: name the module to run, such as package.module:main")


def _own(distribution: importlib.metadata.Distribution, folder: Path) -> list[Path]:
    tops = {one.parts[0] for one in distribution.files or [] if one.suffix == ".py" and not one.parts[0].endswith(".dist-info")}
    return [folder / one for one in sorted(tops) if not one.startswith((".", "__"))]


def _same(one: str, other: str) -> bool:
    return re.sub(r"[-_.]+", "-", one).lower() == re.sub(r"[-_.]+", "-", other).lower()


def sources(server: Server) -> list[Path]:
    """Returns the server's own files."""
    found: list[Path] = []
    for one in server.own:
        if one.is_file() or one.with_suffix(".py").is_file() and not one.exists():
            found.append(one)
            continue
        for folder, names, files in os.walk(one):
            names[:] = [name for name in names if not name.startswith(".") and name not in SKIPPED]
            found.extend(Path(folder, name) for name in files if name.endswith(".py"))
    if server.main is not None and server.package is None:
        # Of a folder with several servers, only what the main file imports counts; that is known after the import.
        found.sort(key=lambda path: path != server.main)
    return found


SKIPPED = {"deps", "dist", "build", "venv", "env", "node_modules", "tests", "test", "__pycache__"}
