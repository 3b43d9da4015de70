"""Runs inside of the component while it is built: imports the plugin, and reports the outcome to the build."""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import traceback
from typing import Any

import wharf_sdk

from . import _call, _errors, _wasm

# Python imports these modules when they are first needed, which is too late in a component.
LATER = [
    "encodings.ascii", "encodings.latin_1", "encodings.cp1252", "encodings.utf_16", "encodings.utf_8_sig", "encodings.idna", "_strptime",
]  # fmt: skip
NO_SOCKETS = "there are no sockets inside of a plugin: send HTTP requests with `wharf_sdk.fetch`"


opened: set[str] = set()
"""Files that were opened while the plugin was imported: they are inputs of the build as well."""
importing = False


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if importing and event == "open" and isinstance(arguments[0], str):
        opened.add(arguments[0])


def _refuse_sockets() -> None:
    """Makes sockets an error with a sentence. Without this, looking up a host ends the instance."""
    socket: Any = sys.modules.get("socket")
    if socket is None or socket.getaddrinfo.__module__ not in ("socket", "_socket"):
        # It is not imported, or a layer over this package has its own words.
        return

    def refused(*_: Any, **__: Any) -> Any:
        raise OSError(NO_SOCKETS)

    for name in ("getaddrinfo", "gethostbyname", "gethostbyname_ex", "create_connection", "create_server", "socketpair"):
        setattr(socket, name, refused)
    for name in ("connect", "connect_ex", "bind", "listen", "sendto"):
        setattr(socket.socket, name, refused)


def _warm() -> None:
    """Fills caches that otherwise each call would fill again: Beautiful Soup compiles its patterns with the first selector."""
    bs4: Any = sys.modules.get("bs4")
    if bs4 is not None and "soupsieve" in sys.modules:
        bs4.BeautifulSoup("<p class='a' id='b'><a href='c'>d</a></p>", "html.parser").select("p#b.a > a[href^='c']:nth-of-type(1)")


class Reload:
    """Imports the plugin's own code as it is now, once in each instance."""

    def __init__(self, module: str, roots: list[str], plugin: Any) -> None:
        self.module, self.roots, self.plugin = module, tuple(roots), plugin
        self.done = False

    def __call__(self) -> None:
        if self.done:
            return
        if not os.path.isdir(_call.LIVE):
            raise _errors.Failure("this component was built for `wharf dev`, and contains no code of the plugin; make one with `wharf build`")
        self.plugin.reload(self._run)
        _wasm.start(self.plugin)
        # Comes last: if the code fails, each call says why.
        self.done = True

    def _run(self) -> None:
        for name, one in list(sys.modules.items()):
            if (getattr(one, "__file__", None) or "").startswith(self.roots):
                del sys.modules[name]
        places = [f"{_call.LIVE}/{index}" for index in range(len(self.roots))]
        sys.path[:0] = places
        sys.path_importer_cache.clear()
        _errors.roots[:] = [f"{place}/" for place in places]
        importlib.import_module(self.module)


def load(module: str, roots: list[str], later: list[str], report: str, live: list[str] | None = None) -> None:
    """Imports the plugin. `later`: the modules that its functions import. `report`: the file for the outcome. `live`: what the plugin imports, if
    each instance reads the plugin's own code when it starts."""
    global importing
    _errors.roots[:] = roots
    sys.addaudithook(_note)
    importing = True
    _wasm.prepare()
    said: dict[str, Any] = {}
    try:
        importlib.import_module(module)
        for name in [*LATER, *later, *(live or [])]:
            try:
                importlib.import_module(name)
            except ImportError:
                # The function may handle the ImportError; if not, the call's failure names the missing module.
                pass
        _refuse_sockets()
        _warm()
        # Looked up after the import: a layer over this package may put a plugin of its own there.
        plugin = wharf_sdk.plugin
        _wasm.start(plugin)
        if live is not None:
            _wasm.reload = Reload(module, roots, plugin)
        said["sections"] = plugin.sections()
        said.update(tools=list(plugin.tools), resources=list(plugin.resources), prompts=list(plugin.prompts))
        said["warnings"] = plugin.warnings
        said["files"] = sorted(
            {str(one.__file__) for one in list(sys.modules.values()) if getattr(one, "__file__", None)} | opened
        )
    except BaseException as error:
        said["error"] = _errors.told(error)
        said["trace"] = "".join(traceback.format_exception(error))
        if isinstance(error, ImportError):
            said["absent"] = isinstance(error, ModuleNotFoundError)
            at = _errors.raised_at(error.__traceback__)
            said["missing"], said["at"] = error.name, at[0] if at else module
        raise
    finally:
        importing = False
        with open(report, "w", encoding="utf-8") as file:
            json.dump(said, file)
        # The objects that exist now are permanent. After `freeze`, the garbage collector skips them, so that calls do not
        # touch their memory pages.
        gc.collect()
        gc.freeze()
