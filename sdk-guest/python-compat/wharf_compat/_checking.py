"""Runs in a process of its own: starts the server as the build does, and writes what happened to a file."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Container, Iterable
from typing import Any


def main() -> None:
    options = json.loads(sys.stdin.read())
    said: dict[str, Any] = {}
    from .runtime import plugin as plugins
    from .runtime import watch

    served = plugins.prepare(options)
    try:
        served.begin()
        watching = watch.watch
        files = sorted(set([one for one in served._own_files() if one.endswith(".py")] + _main_file()))
        said = {
            "tools": list(served.tools), "resources": [one.uri for one in served.entries], "templates": list(served.resources),
            "prompts": list(served.prompts), "again": served.again, "variables": named(watching.variables, watching.missing, files),
            "folders": watching.of_person(), "files": files, "http": uses_http(),
            "modules": {name: getattr(one, "__file__", None) for name, one in sorted(sys.modules.items())},
            "found": {
                "capabilities": served.offers.get("capabilities") or {}, "instructions": served.offers.get("instructions"),
                "stateless": served.stateless,
                "pages": served.pages,
            },
        }  # fmt: skip
    except BaseException as error:
        from .runtime import patches

        text = told(error, options["own"])
        why = patches.explained(text)
        said = {"error": f"{text}.{why}" if why else text}
    with open(options["report"], "w", encoding="utf-8") as file:
        json.dump(said, file)
    sys.stdout.flush()
    os._exit(0)


def named(variables: Iterable[str], missing: Container[str], files: Iterable[str]) -> list[str]:
    """Returns the variables that the server asked for by their names. One that reads all of them, as settings do, has no use for those of the
    machine that builds, and their names are not for those who get the component."""
    texts = []
    for file in files:
        try:
            with open(file, encoding="utf-8") as source:
                texts.append(source.read())
        except (OSError, ValueError):
            continue
    return [one for one in variables if one in missing or any(one in text for text in texts)]


def _main_file() -> list[str]:
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    return [file] if file and file.endswith(".py") else []


HTTP = ("requests", "urllib3", "httpx2", "aiohttp")


def uses_http() -> bool:
    """Whether the server or a package of it sends HTTP: `mcp` itself imports httpx, which does not count."""
    from .runtime.watch import watch

    for name, module in list(sys.modules.items()):
        top = name.partition(".")[0]
        if top in HTTP and top != "httpx2":
            return True
        file = getattr(module, "__file__", None) or ""
        if top in ("mcp", "fastmcp", "httpx", "httpx2", "httpx_sse", "anyio", "urllib", "wharf_sdk", "wharf_compat") or not file.endswith(
            ".py"
        ):
            continue
        if "site-packages" in file or f"{os.sep}deps{os.sep}" in file or watch.is_own(file):
            known = vars(module)
            if any(
                getattr(known.get(one), "__name__", "") in ("httpx", "httpx2", "urllib.request") for one in ("httpx", "httpx2", "urllib")
            ):
                return True
            if watch.is_own(file) and _mentions(file):
                return True
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    return bool(main and _mentions(main))


def _mentions(file: str) -> bool:
    try:
        with open(file, encoding="utf-8") as source:
            text = source.read()
    except (OSError, ValueError):
        return False
    return any(one in text for one in ("httpx", "requests", "urllib.request", "aiohttp", "fetch("))


def told(error: BaseException, own: list[str]) -> str:
    """Describes an error in one sentence, with the server's innermost line."""
    text, kind = " ".join(str(error).split()), type(error).__name__
    from wharf_sdk._errors import Failure, PluginError

    if isinstance(error, (PluginError, Failure)) and not error.__cause__:
        return text
    place = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        from .runtime.watch import watch

        if watch.is_own(file):
            place = file, line
    if isinstance(error, SyntaxError) and error.filename:
        place, text = (error.filename, error.lineno or 0), error.msg
    at = f"{os.path.relpath(place[0])}:{place[1]}: " if place else ""
    if isinstance(error, ModuleNotFoundError) and error.name and "does not exist" not in text:
        top = error.name.partition(".")[0]
        return (
            f"{at}`{error.name}` is not installed: add {top}, or the name of its package, to the dependencies, "
            "and run `python -m wharf_compat setup` again"
        )
    if isinstance(error, ModuleNotFoundError):
        return f"{at}{text}"
    return f"{at}{text} ({kind})" if text else f"{at}{kind}"
