"""`python -m wharf_sdk build`: builds a component from a plugin with componentize-py.

With `--live`, the component holds everything but the plugin's own code, which each instance reads from a folder when it starts. It is made
again only when other modules are imported, so a changed line is served within a second. `wharf dev` asks for it."""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

SDK = Path(__file__).resolve().parent
COMPONENTIZE_PY = "0.25.1"
ENTRY = "wharf_entry"
REPORT = "report.json"


@dataclass
class Live:
    """A build for `wharf dev`."""

    source: Path
    """The folder for the plugin's own code."""
    own: Sequence[Path] = ()
    """Where that code is. By default: the folders that are searched for it."""
    key: Sequence[str] | None = None
    """What the component is made from, in addition to its other inputs, if the caller has copied the code. By default: what it imports."""


class BuildError(Exception):
    """The reason why a build failed, in terms of the author's code."""


def build(
    plugin: Path,
    output: Path,
    paths: Sequence[Path] = (),
    http: bool | None = None,
    *,
    tried: bool = False,
    live: Live | None = None,
) -> str:
    """Builds the component, and returns a summary for the author. `tried`: the plugin was imported here already."""
    started = time.monotonic()
    if not plugin.is_file():
        raise BuildError(f"there is no file {plugin}")
    module = plugin.stem
    if not module.isidentifier() or module in sys.stdlib_module_names or module == "wharf_sdk":
        raise BuildError(f"{plugin.name} needs another name: `import {module}` would not find it")
    try:
        version = metadata.version("componentize-py")
    except metadata.PackageNotFoundError:
        raise BuildError(
            f"componentize-py is not installed for {sys.executable}: pip install componentize-py=={COMPONENTIZE_PY}"
        ) from None
    own = [plugin.resolve().parent, *(path.resolve() for path in paths)]
    searched = [*own, SDK.parent, *(Path(sysconfig.get_path(name)) for name in ("purelib", "platlib"))]
    searched = [path for index, path in enumerate(searched) if path not in searched[:index]]
    # Reading all sources takes seconds if the plugin's folders hold packages, and may not be needed.
    sources = functools.cache(lambda: list(_sources(plugin.resolve(), own)))
    http = _fetches(sources()) if http is None else http
    world = "plugin-http" if http else "plugin"

    asked = [version, sys.version, world, module, *map(str, searched)]
    made_in = [output.resolve().parent, *([live.source.resolve().parent] if live else [])]
    # A component for `wharf dev` contains nothing of these.
    apart = ([path.resolve() for path in live.own] or own) if live else []
    # Files that are added to a folder may change what an import finds.
    asked += [_listing(path, made_in) for path in searched if path not in apart]
    record = output.with_name(output.name + ".inputs")
    if not live and _unchanged(output, record, asked):
        return f"{output} is up to date"

    said = {} if tried else _try(module, own, searched)
    foreign = None
    if live:
        foreign = _foreign(sources(), own, searched) if live.key is None else []
        asked += ["live", json.dumps(said.get("sections")), *(live.key or foreign)]
        if live.key is None:
            copy_own([file for file, _ in sources()] + [Path(file) for file in said.get("opened", [])], own, live.source)
        if _unchanged(output, record, asked):
            return f"{live.source}: {_offers(said) or 'copied'}, in {time.monotonic() - started:.1f} s"

    with tempfile.TemporaryDirectory() as folder:
        entry = Path(folder)
        mounted = [entry, *searched]
        roots = [f"/{index}/" for index, path in enumerate(mounted) if path in own]
        (entry / f"{ENTRY}.py").write_text(
            "import sys\n"
            # Write no `__pycache__` next to the sources.
            "sys.dont_write_bytecode = True\n"
            "from wharf_sdk._entry import load\n"
            "from wharf_sdk._wasm import Completions, Prompts, Resources, Tools\n"
            f"load({module!r}, {roots!r}, {_imported_later(sources())!r}, '/0/{REPORT}', live={foreign!r})\n",
            encoding="utf-8",
        )
        made = entry / "plugin.wasm"
        said = _componentize(world, mounted, made)
        for line in said["warnings"]:
            print(f"warning: {line}", file=sys.stderr)
        component = made.read_bytes()
        files = [_outside(file, mounted) for file in said["files"]]
        if live:
            files = [file for file in files if file and not any(file.is_relative_to(one) for one in apart)]

    for name, text in said["sections"].items():
        component += _section(name, text.encode())
    output.parent.mkdir(parents=True, exist_ok=True)
    # The rename is atomic: a process that watches the file never sees a part of it.
    partial = output.with_name(output.name + ".partial")
    partial.write_bytes(component)
    os.replace(partial, output)
    inputs = {str(file): _digest(file) for file in [*files, *sorted(SDK.rglob("*.wit"))] if file and file.is_file()}
    record.write_text(json.dumps({"asked": asked, "inputs": inputs, "output": _digest(output)}))

    size = f"{len(component) / 1e6:.1f} MB"
    return f"{output}: {', '.join(filter(None, [_offers(said), size]))}, in {time.monotonic() - started:.1f} s"


def _offers(said: dict[str, Any]) -> str:
    return ", ".join(f"{len(said[kind])} {kind}" for kind in ("tools", "resources", "prompts") if said.get(kind))


TRIAL = """
import importlib, json, os, sys
module, roots, searched = json.loads(sys.argv[1])
sys.path[:0] = searched
import wharf_sdk
from wharf_sdk import _errors
_errors.roots[:] = roots
opened = set()
def note(event, given):
    path = os.path.abspath(given[0]) if event == "open" and isinstance(given[0], str) else ""
    if path.startswith(tuple(roots)) and not path.endswith((".py", ".pyc")):
        opened.add(path)
sys.addaudithook(note)
said = {}
try:
    importlib.import_module(module)
    plugin = wharf_sdk.plugin
    plugin.finish()
    said = {"sections": plugin.sections(), "tools": list(plugin.tools), "resources": list(plugin.resources), "prompts": list(plugin.prompts)}
except ImportError:
    # Whether a module exists inside of a component, only the build can tell.
    pass
except BaseException as error:
    said = {"error": _errors.told(error)}
with open(sys.argv[2], "w", encoding="utf-8") as file:
    json.dump({**said, "opened": sorted(one for one in opened if os.path.isfile(one))}, file)
"""


def _try(module: str, own: Sequence[Path], searched: Sequence[Path]) -> dict[str, Any]:
    """Imports the plugin with this Python first, because that finds most mistakes in less than a second. Returns what it offers."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        given = json.dumps([module, [f"{path}{os.sep}" for path in own], [str(path) for path in searched]])
        try:
            subprocess.run([sys.executable, "-B", "-c", TRIAL, given, str(report)], capture_output=True, timeout=60)
        except subprocess.TimeoutExpired:
            return {}
        try:
            said: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            # The plugin ended the process. The build says why, if it does so there as well.
            return {}
        if "error" in said:
            raise BuildError(said["error"])
        return said


def _componentize(world: str, mounted: Sequence[Path], made: Path) -> dict[str, Any]:
    """Runs componentize-py, and returns the plugin's report about itself."""
    import componentize_py  # type: ignore[import-untyped]

    problem = None
    try:
        componentize_py.componentize(
            [SDK / "wit"], [f"wharf:python/{world}"], [], False, None, [str(path) for path in mounted], [], ENTRY, made,
            False, [], [], False, None,
        )  # fmt: skip
    except AssertionError as error:
        problem = str(error)
    try:
        said: dict[str, Any] = json.loads((mounted[0] / REPORT).read_text(encoding="utf-8"))
    except OSError:
        said = {}
    if said.get("missing"):
        why = _native(said["missing"], said["at"], mounted)
        if why is None and said["absent"]:
            why = _missing(said["missing"], said["at"])
        if why is not None:
            raise BuildError(why)
    if "error" in said:
        raise BuildError(said["error"])
    if problem is not None:
        raise BuildError(f"componentize-py failed: {_cause(problem)}")
    return said


def _cause(problem: str) -> str:
    """Returns what componentize-py says, with the cause before what the plugin printed, and without a stack."""
    printed, found, causes = problem.rpartition("\nCaused by:\n")
    if not found:
        return problem
    if "fuel allocated for hostcalls has been exhausted" in causes:
        return "once started, the plugin has more than 128 MiB of memory; componentize-py takes no more: import less"
    causes = causes.partition("\n\nStack backtrace:")[0]
    told = "; ".join(re.sub(r"^\d+: ", "", line.strip()) for line in causes.splitlines() if line.strip())
    return f"{told}\n{printed.strip()}" if printed.strip() else told


def _native(name: str, at: str, searched: Sequence[Path]) -> str | None:
    """Returns an error text if a module could not be imported because it is compiled to native code."""
    for folder in searched:
        whole = folder.joinpath(*name.split("."))
        if any(whole.parent.glob(f"{whole.name}.*.so")) or any(whole.parent.glob(f"{whole.name}*.pyd")):
            return (
                f"`{name.partition('.')[0]}` cannot run inside of a plugin: its part `{name}` is compiled to native code. "
                f"Use a package that is written in pure Python ({at})"
            )
    return None


def _missing(name: str, at: str) -> str:
    """Returns the error text for a module that was not found."""
    top = name.partition(".")[0]
    if top in ("ssl", "_ssl"):
        return f"Python's module `{name}` does not exist inside of a plugin: send requests with `wharf_sdk.fetch` ({at})"
    if top in sys.stdlib_module_names:
        return f"Python's module `{name}` does not exist inside of a plugin ({at})"
    return f"`{name}` is not installed for {sys.executable}: pip install {top}, or the name of its package ({at})"


def _sources(file: Path, folders: Sequence[Path]) -> Iterator[tuple[Path, ast.Module]]:
    """Returns the plugin's own files: the main file, and files in its folders that are imported from there."""
    waiting, seen = [file], set()
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        try:
            tree = ast.parse(one.read_bytes(), str(one))
        except SyntaxError as problem:
            raise BuildError(f"{problem.msg} ({one.name}, line {problem.lineno})") from None
        yield one, tree
        for name in _imports(ast.walk(tree)):
            for folder in [*folders, one.parent]:
                path = folder.joinpath(*name.split("."))
                waiting.extend(found for found in (path.with_suffix(".py"), path / "__init__.py") if found.is_file())


def _imports(nodes: Iterator[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{one.name}" for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (one.name for one in node.names)


def _imported_later(sources: Sequence[tuple[Path, ast.Module]]) -> list[str]:
    """Returns the modules that functions import when called. The build imports them, because a running component cannot."""
    found: set[str] = set()
    for _, tree in sources:
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.Lambda)):
                found.update(_imports(ast.walk(node)))
    return sorted(found)


def _foreign(sources: Sequence[tuple[Path, ast.Module]], own: Sequence[Path], searched: Sequence[Path]) -> list[str]:
    """Returns the modules that the plugin imports and that are not its own."""
    found = {name for _, tree in sources for name in _imports(ast.walk(tree))}
    places = [*own, *{file.parent for file, _ in sources}]
    others = [Path(sysconfig.get_path("stdlib")), *searched]
    # The name after `from … import` may be a module or not.
    return sorted(
        name
        for name in found
        if not _is_in(places, name.partition(".")[0]) and ("." not in name or _is_in(others, name))
    )


def _is_in(folders: Sequence[Path], name: str) -> bool:
    """Whether one of these folders has a module."""
    places = [folder.joinpath(*name.split(".")) for folder in folders]
    return any(place.is_dir() or place.with_name(place.name + ".py").is_file() for place in places)


def copy_own(files: Sequence[Path], own: Sequence[Path], live: Path) -> None:
    """Copies the plugin's own files to where an instance reads them: below the number of the folder that they are in."""
    fresh = live.with_name(live.name + ".partial")
    shutil.rmtree(fresh, ignore_errors=True)
    for file in files:
        index = next((index for index, folder in enumerate(own) if file.is_relative_to(folder)), None)
        if index is not None:
            copied = fresh / str(index) / file.relative_to(own[index])
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copied)
    shutil.rmtree(live, ignore_errors=True)
    fresh.rename(live)


def _fetches(sources: Sequence[tuple[Path, ast.Module]]) -> bool:
    """Whether the plugin uses the name `fetch`. Only then does the component import HTTP, which operators see."""
    for _, tree in sources:
        for node in ast.walk(tree):
            if "fetch" in (getattr(node, "id", ""), getattr(node, "attr", ""), getattr(node, "name", "")):
                return True
    return False


def _outside(file: str, mounted: Sequence[Path]) -> Path | None:
    """Maps a path inside of the component to a path on this machine; None for files that componentize-py provides."""
    first, _, rest = file.lstrip("/").partition("/")
    return mounted[int(first)] / rest if first.isdigit() and 0 < int(first) < len(mounted) else None


def _listing(folder: Path, made: Sequence[Path]) -> str:
    """Returns a folder's file names, because an added package can change which module an import finds."""
    names = sorted(os.listdir(folder)) if folder.is_dir() else []
    kept = [name for name in names if name != "__pycache__" and folder / name not in made and folder not in made]
    return hashlib.sha256("\0".join(kept).encode()).hexdigest()


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _unchanged(output: Path, record: Path, asked: list[str]) -> bool:
    """Whether the existing component was built from exactly these inputs."""
    try:
        before = json.loads(record.read_text())
        inputs = {**before["inputs"], str(output): before["output"]}
        return bool(before["asked"] == asked and all(_digest(Path(file)) == one for file, one in inputs.items()))
    except (OSError, ValueError, KeyError):
        return False


def _section(name: str, content: bytes) -> bytes:
    """Encodes a custom section of WebAssembly."""

    def sized(part: bytes) -> bytes:
        size, length = b"", len(part)
        while length > 0x7F:
            size, length = size + bytes([length & 0x7F | 0x80]), length >> 7
        return size + bytes([length]) + part

    return b"\0" + sized(sized(name.encode()) + content)
