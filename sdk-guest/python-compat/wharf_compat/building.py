"""`build` and `check`: imports the server on this machine, and makes a component from it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import wharf_sdk
from wharf_sdk._build import BuildError, Live, build, copy_own

from . import LISTS, installing, reading
from .target import DEPS, CompatError, Server, sources

HERE = Path(__file__).resolve().parent
MAIN = "served"


def options_of(server: Server, project: Path, arguments: list[str]) -> dict[str, Any]:
    return {
        "module": server.module,
        "function": server.function,
        "arguments": arguments,
        "own": [_slash(one) for one in server.own],
        "dependencies": [_slash(project / DEPS)],
        "compiled": installing.compiled(project),
    }


def _slash(path: Path) -> str:
    return f"{path}{os.sep}" if path.is_dir() else str(path)


def paths(server: Server, project: Path) -> list[Path]:
    found = [server.root, project / DEPS, HERE.parent, Path(wharf_sdk.__file__).resolve().parent.parent]
    return [one for index, one in enumerate(found) if one not in found[:index]]


CHECK_SECONDS = 120
"""How long the server may take to start on the machine that builds."""


def check(server: Server, project: Path, arguments: list[str]) -> dict[str, Any]:
    """Starts the server on this machine, in a process of its own, and returns what it found."""
    options = options_of(server, project, arguments)
    script = "from wharf_compat._checking import main; main()"
    environ = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, paths(server, project))),
        "PYTHONPYCACHEPREFIX": str(project / DEPS / ".cache"),
    }
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        given = json.dumps({**options, "report": str(report)})
        try:
            ran = subprocess.run(
                [sys.executable, "-P", "-c", script] if sys.version_info >= (3, 11) else [sys.executable, "-c", script],
                input=given, text=True, env=environ, cwd=project, capture_output=True, timeout=CHECK_SECONDS,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise CompatError(f"the server does not start within {CHECK_SECONDS} s: it waits for something, or imports too much") from None
        try:
            said: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
        except OSError:
            raise CompatError(f"the server ended the check: {(ran.stderr or ran.stdout).strip()[-2000:]}") from None
    if "error" in said:
        raise CompatError(said["error"])
    return said


def make(server: Server, project: Path, output: Path, arguments: list[str], http: bool | None, live: Path | None = None) -> str:
    """Checks the server and builds the component. `live`: the folder for the server's own code, if the component reads it. Returns a summary."""
    started = time.monotonic()
    said = check(server, project, arguments)
    found = reading.read([Path(one) for one in said["files"]], said["variables"], said["folders"])
    for line in found.told():
        print(line, file=sys.stderr)
    for line in found.warnings:
        print(f"warning: {line}", file=sys.stderr)
    if said["again"] and not live:
        print(f"the server starts in each instance, because {said['again']}", file=sys.stderr)
    uses_http = bool(said["http"]) if http is None else http
    roots = paths(server, project)
    with contextlib.ExitStack() as stack:
        # A component for `wharf dev` is made again only if this file is another one.
        folder = live.with_name("main").resolve() if live else Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        main = folder / f"{MAIN}.py"
        # Inside of the component, the folders that are searched are mounted at /1, /2, …, and the main file's folder is /1.
        places = {str(path): f"/{index}" for index, path in enumerate([main.parent, *roots], 1)}
        options = {**options_of(server, project, arguments), "wants": found.wants(), "again": said["again"], "found": said["found"]}
        if live:
            # Its lists are those of the check after each change.
            lists = options.pop("found")
            options.update(again="its code is read in each instance", live=True, instructions=lists["instructions"])
        for key in ("own", "dependencies"):
            options[key] = [_mounted(one, places) for one in options[key]]
        main.write_text(
            "import json\n\nimport wharf_sdk\nfrom wharf_compat.runtime.plugin import prepare\n\n"
            f"wharf_sdk.plugin = prepare(json.loads({json.dumps(options)!r}))\n",
            encoding="utf-8",
        )
        try:
            summary = build(main, output, roots, uses_http, tried=True, live=live and _live(server, said, options, live))
        except BuildError as problem:
            raise CompatError(str(problem)) from None
    return f"{summary} ({time.monotonic() - started:.1f} s with the check)"


def _live(server: Server, said: dict[str, Any], options: dict[str, Any], source: Path) -> Live:
    """Copies the server's code. The component is made again when the server imports another module, or wants something else."""
    files = sources(server)
    copy_own(files, [one if one.is_dir() else one.parent for one in server.own], source)
    (source / LISTS).write_text(json.dumps(said["found"]), encoding="utf-8")
    own = {str(one) for one in files}
    return Live(source, server.own, [json.dumps(options), *(one for one, file in said["modules"].items() if file not in own)])


def _mounted(path: str, places: dict[str, str]) -> str:
    best = max((place for place in places if path == place or path.startswith(place.rstrip(os.sep) + os.sep)), key=len)
    return places[best] + path[len(best.rstrip(os.sep)) :]
