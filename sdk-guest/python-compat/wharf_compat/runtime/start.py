"""Starts the server: runs the author's code until the server waits for messages."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import sys
import traceback
import types
from dataclasses import dataclass, field
from typing import Any

from . import imports, patches
from . import loop as loops
from .loop import Serving
from .watch import AWAY, HOME, watch
from .wire import Wire

NAMES = ("mcp", "server", "app", "main_server", "mcp_server")
KINDS = ("FastMCP", "MCPServer")


@dataclass
class Target:
    """The server. `module`: what is imported or run; `function`: the entry point, if it has one."""

    module: str
    function: str | None = None
    arguments: list[str] = field(default_factory=list)
    own: list[str] = field(default_factory=list)
    """The folders and files that are the server's own code."""


WRONG_ARGUMENTS = "it takes its arguments for wrong, or lacks some; they stand after its name"


class NotServing(Exception):
    """The code ended without serving anything."""


def start(target: Target) -> Wire:
    """Runs the server until it waits for messages, and returns the connection to it."""
    wire = Wire()
    patches.wires.append(wire)
    sys.argv = [target.module, *target.arguments]
    # Packages look for the home folder when they are imported. It is only a name for them.
    os.environ.setdefault("HOME", HOME)
    try:
        _enter(target)
        if not wire.opened:
            _serve(_objects(target))
    except Serving:
        pass
    except SystemExit as ended:
        if not wire.opened:
            raise NotServing(_why(ended)) from None
    if not wire.opened or not wire.waits():
        raise NotServing(
            "it ended without serving: its main file has to run a server of `mcp` or `fastmcp`, or to keep it in a global `mcp`"
        )
    return wire


def told(problem: BaseException) -> str:
    """Describes why the server does not start, with its innermost line."""
    text, place = " ".join(str(problem).split()) or type(problem).__name__, ""
    if isinstance(problem, KeyError):
        # Its text is the key alone.
        text = f"KeyError: {text}"
    for frame, line in traceback.walk_tb(problem.__traceback__):
        file = frame.f_code.co_filename
        if watch.is_own(file):
            place = f" ({os.path.basename(file)}:{line})"
    return f"{text}{place}"


def _why(ended: SystemExit) -> str:
    if ended.code == 2:
        return f"it exited with 2 before it served anything: {WRONG_ARGUMENTS}"
    said = f": {ended.code}" if isinstance(ended.code, str) else "" if ended.code in (None, 0) else f" with {ended.code}"
    return f"it exited{said} before it served anything"


def _enter(target: Target) -> None:
    if target.function is not None:
        value: Any = importlib.import_module(target.module)
        for name in target.function.split("."):
            value = getattr(value, name)
        result = value()
        if hasattr(result, "__await__"):
            loops.run(result)
        return
    name = target.module
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        name += ".__main__"
        spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"there is no module `{name}`", name=name)
    code = spec.loader.get_code(name)  # type: ignore[attr-defined]
    module = types.ModuleType("__main__")
    module.__file__, module.__spec__ = spec.origin, None
    module.__package__ = name.rpartition(".")[0]
    module.__loader__ = spec.loader
    # The same module may be imported by its name as well, for example by an application that finds it so.
    sys.modules["__main__"] = module
    exec(code, module.__dict__)


def _objects(target: Target) -> Any:
    """Finds the server among the globals of its main module."""
    module = sys.modules.get(target.module if target.function is not None else "__main__")
    known = vars(module) if module is not None else {}
    ordered = [known[name] for name in NAMES if name in known] + list(known.values())
    for one in ordered:
        kinds = [kind.__name__ for kind in type(one).__mro__]
        if any(kind in kinds for kind in KINDS) and hasattr(one, "run"):
            return one
    for one in ordered:
        if type(one).__module__.startswith("mcp.server.lowlevel") and hasattr(one, "create_initialization_options"):
            return one
    return None


def _serve(server: Any) -> None:
    if server is None:
        return
    if type(server).__module__.startswith("mcp.server.lowlevel"):

        async def serve() -> None:
            from mcp.server.stdio import stdio_server

            async with stdio_server() as (read, write):
                await server.run(read, write, server.create_initialization_options())

        loops.run(serve())
    else:
        server.run()


def forget(target: Target) -> None:
    """Removes the server's own modules, so that they run again."""
    for name, module in list(sys.modules.items()):
        if watch.is_own(getattr(module, "__file__", None) or ""):
            del sys.modules[name]
    loops.reset()
    patches.wires.clear()


CLOCKS = {"now", "today", "utcnow", "time", "monotonic", "perf_counter", "uuid4", "uuid1", "random", "randint", "token_hex",
          "token_urlsafe", "token_bytes", "choice", "randbytes"}  # fmt: skip


def changes(files: list[str]) -> str | None:
    """Says why a server has to start in each instance: what its own code takes from the time of the start."""
    for file in files:
        try:
            with open(file, encoding="utf-8") as source:
                tree = ast.parse(source.read())
        except (OSError, SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.keyword) and node.arg == "lifespan":
                return f"{os.path.basename(file)}:{node.value.lineno} has a lifespan"
            if isinstance(node, ast.FunctionDef) and any("lifespan" in ast.dump(one) for one in node.decorator_list):
                return f"{os.path.basename(file)}:{node.lineno} has a lifespan"
        for node in _at_top(tree.body):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                if name in CLOCKS:
                    return f"{os.path.basename(file)}:{node.lineno} calls `{name}` when the module loads"
    return None


def _at_top(nodes: list[Any]) -> Any:
    """Yields the nodes that run when a module loads: those outside of functions."""
    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        yield node
        yield from _at_top(list(ast.iter_child_nodes(node)))


COMPAT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
"""The folder of this package."""


def keep_code(target: Target, dependencies: list[str]) -> int:
    """Keeps the code of the server and of its dependencies, for what is imported only in a call."""
    total = 0
    for one in target.own:
        path = one.rstrip(os.sep)
        if os.path.isfile(os.path.join(path, "__init__.py")) or path.endswith(".py") or os.path.dirname(path) + os.sep in dependencies:
            # A package is kept under its own name.
            total += imports.keep([os.path.dirname(path)], own=True, only={os.path.basename(path)})
        elif os.path.isdir(path):
            total += imports.keep([path], skip=AWAY, own=True)
    # What takes the place of modules is found by its name only when they are imported.
    total = total if sys.platform != "wasi" else total + imports.keep([COMPAT], only={"wharf_compat"})
    return total + imports.keep(dependencies) + imports.keep_python()
