"""Changes to modules after they are imported: standard input and output, threads, sockets, processes and HTTP."""

from __future__ import annotations

import builtins
import concurrent.futures
import contextlib
import importlib
import io
import logging
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

from wharf_sdk import _call, directories

from . import http, imports, metadata, zones
from . import loop as loops
from .wire import Wire

wires: list[Wire] = []
"""The connection that the next `stdio_server` opens is the last."""


class Lines(io.TextIOBase):
    """Standard output and error of the server: each line goes to wharf's log."""

    encoding, errors = "utf-8", "replace"

    def __init__(self, level: Any, real: Any) -> None:
        self.level, self.real, self.rest = level, real, ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if _call.current is None or _call.host is None:
            if self.real is not None:
                # While the plugin is built, componentize-py takes only so much of it.
                with contextlib.suppress(BrokenPipeError):
                    self.real.write(text)
            return len(text)
        *lines, self.rest = (self.rest + text).split("\n")
        for line in lines:
            if line.strip():
                _call.host.log(self.level, line, None)
        return len(text)

    def flush(self) -> None:
        pass

    def reconfigure(self, **_: Any) -> None:
        """Lines are always in UTF-8."""

    @property
    def buffer(self) -> Any:
        return _Bytes(self)


class _Bytes(io.RawIOBase):
    def __init__(self, lines: Lines) -> None:
        self.lines = lines

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.lines.write(bytes(data).decode("utf-8", "replace"))
        return len(data)


def _stdio(module: Any) -> None:
    real = module.stdio_server

    def stdio_server(stdin: Any = None, stdout: Any = None) -> Any:
        wire = wires[-1]
        wire.opened = True
        return real(wire.input, wire.output)

    module.stdio_server = stdio_server


def _anyio(module: Any) -> None:
    module.run = loops.anyio_run


def _eventloop(module: Any) -> None:
    module.run = loops.anyio_run


def _to_thread(module: Any) -> None:
    async def run_sync(func: Callable[..., Any], *args: Any, **_: Any) -> Any:
        return func(*args)

    module.run_sync = run_sync


def _from_thread(module: Any) -> None:
    def run(func: Callable[..., Any], *args: Any, **_: Any) -> Any:
        return loops.run(func(*args))

    module.run = run
    module.run_sync = lambda func, *args, **_: func(*args)


def _stdio_only(*names: str) -> Callable[[Any], None]:
    """Makes a server's `run` serve its standard input and output, whatever transport it asks for."""

    def patch(module: Any) -> None:
        for name in names:
            of = getattr(module, name, None)
            if of is None:
                continue
            for method in ("run_sse_async", "run_streamable_http_async", "run_http_async"):
                if hasattr(of, method):
                    setattr(of, method, _instead)

    return patch


def _no_worker(name: str) -> Callable[[Any], None]:
    """`fastmcp` starts a worker for background tasks, which waits for Redis as long as the server runs. wharf runs tasks itself."""

    @contextlib.asynccontextmanager
    async def without(self: Any, *args: Any, **kwargs: Any) -> AsyncIterator[None]:
        yield

    def patch(module: Any) -> None:
        of = getattr(module, name, None)
        if hasattr(of, "_docket_lifespan"):
            of._docket_lifespan = without

    return patch


def _logging(module: Any) -> None:
    """The records of the framework go where all others go, to wharf's log."""
    module.configure_logging = lambda *args, **kwargs: None
    logging.getLogger("mcp").setLevel(logging.WARNING)


async def _instead(self: Any, *args: Any, **kwargs: Any) -> None:
    import inspect

    run = self.run_stdio_async
    await (run(show_banner=False) if "show_banner" in inspect.signature(run).parameters else run())


def _dotenv(module: Any) -> None:
    """A file of variables is searched from the folder of the code, which does not exist in a plugin."""
    real = module._walk_to_root

    def walk(path: str) -> Any:
        return real(path) if os.path.exists(path) else iter(())

    module._walk_to_root = walk


class _Executor(concurrent.futures.Executor):
    """An executor that calls each function at once."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> concurrent.futures.Future[Any]:
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as problem:
            future.set_exception(problem)
        return future

    def map(self, fn: Callable[..., Any], *iterables: Any, **_: Any) -> Any:
        return iter([fn(*given) for given in zip(*iterables)])

    def shutdown(self, *args: Any, **kwargs: Any) -> None:
        pass


def _refuse(kind: type[Exception], why: str) -> Callable[..., Any]:
    def refused(*args: Any, **kwargs: Any) -> Any:
        raise kind(why)

    return refused


def _temporary() -> list[str]:
    """Temporary files are in a folder that is open to the call, as they are on a machine where only the working folder can be written."""
    return [one.path for one in directories() if one.writable] if _call.host is not None else []


def _python() -> None:
    """Threads, sockets and processes: a sentence instead of a trap."""
    import concurrent.futures.thread

    threading.Condition.wait = loops.wait  # type: ignore[method-assign,assignment]
    threading.Thread.start = _refuse(RuntimeError, loops.NO_THREADS)  # type: ignore[method-assign]
    concurrent.futures.ThreadPoolExecutor = concurrent.futures.thread.ThreadPoolExecutor = _Executor  # type: ignore[misc]
    concurrent.futures.ProcessPoolExecutor = _Executor  # type: ignore[misc]
    no_sockets = _refuse(OSError, loops.NO_SOCKETS)
    for name in ("connect", "connect_ex", "bind", "listen", "accept", "sendto"):
        setattr(socket.socket, name, no_sockets)
    for name in ("create_connection", "create_server"):
        setattr(socket, name, no_sockets)
    socket.getaddrinfo = loops.addresses
    socket.gethostbyname = lambda name: loops.addresses(name, 0)[0][4][0]
    socket.gethostbyname_ex = lambda name: (name, [], [socket.gethostbyname(name)])
    socket.getfqdn = lambda name="": name or "localhost"
    if not hasattr(socket, "gethostname"):
        socket.gethostname = lambda: "localhost"
    tempfile._candidate_tempdir_list = _temporary  # type: ignore[attr-defined]
    no_processes = _refuse(FileNotFoundError, loops.NO_PROCESSES)
    subprocess.Popen.__init__ = no_processes  # type: ignore[method-assign]
    os.system = os.popen = no_processes  # type: ignore[assignment]
    for name in ("getuid", "geteuid", "getgid", "getppid"):
        if not hasattr(os, name):
            setattr(os, name, lambda: 1000)


class Files:
    """Files next to the server's code that it reads: the build keeps them, because a plugin has no such files later."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        self.roots: tuple[str, ...] = ()
        self.keeping = False

    def install(self) -> None:
        real = builtins.open

        def open_(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            path = os.fspath(file) if isinstance(file, (str, os.PathLike)) else None
            reads = isinstance(path, str) and not set(mode) & set("wax+")
            if reads and self.keeping and path.startswith(self.roots) and not path.endswith((".py", ".pyc")) and os.path.isfile(path):
                with real(path, "rb") as found:
                    self.kept[os.path.normpath(path)] = found.read()
            try:
                return real(file, mode, *args, **kwargs)
            except OSError:
                if not reads or os.path.normpath(path) not in self.kept:
                    raise
                return self._again(self.kept[os.path.normpath(path)], mode, args, kwargs)

        builtins.open = io.open = open_

    def _again(self, data: bytes, mode: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if "b" in mode:
            return io.BytesIO(data)
        encoding = kwargs.get("encoding") or (args[1] if len(args) > 1 else None) or "utf-8"
        return io.StringIO(data.decode(encoding if encoding != "locale" else "utf-8", kwargs.get("errors") or "strict"))


files = Files()


def install() -> None:
    """Makes all changes. Runs before the server is imported."""
    loops.install()
    imports.install()
    loops.waits_for_messages = lambda: bool(wires) and wires[-1].waits()
    _python()
    files.install()
    metadata.install()
    zones.install(importlib.import_module("zoneinfo._common"))
    imports.after("mcp.server.stdio", _stdio)
    imports.after("dotenv.main", _dotenv)
    imports.after("anyio", _anyio)
    imports.after("anyio._core._eventloop", _eventloop)
    imports.after("anyio.to_thread", _to_thread)
    imports.after("anyio.from_thread", _from_thread)
    imports.after("mcp.server.fastmcp.server", _stdio_only("FastMCP"))
    imports.after("mcp.server.mcpserver.server", _stdio_only("MCPServer"))
    imports.after("fastmcp.server.server", _stdio_only("FastMCP"))
    imports.after("fastmcp.server.mixins.transport", _stdio_only("TransportMixin"))
    imports.after("fastmcp.server.server", _no_worker("FastMCP"))
    imports.after("fastmcp.server.mixins.lifespan", _no_worker("LifespanMixin"))
    for name in ("mcp.server.fastmcp.utilities.logging", "mcp.server.mcpserver.utilities.logging", "fastmcp.utilities.logging"):
        imports.after(name, _logging)
    http.install()
    sys.stdout = Lines("info", sys.stderr)
    sys.stderr = Lines("info", sys.__stderr__)
