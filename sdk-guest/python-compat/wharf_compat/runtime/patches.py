"""Changes to modules after they are imported: standard input and output, threads, sockets, processes and HTTP."""

from __future__ import annotations

import builtins
import contextlib
import importlib.machinery
import io
import logging
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import tokenize
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

from wharf_sdk import _call, directories

from . import http, imports, limits, metadata, watch, zones
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
    module.run_sync = loops.in_thread


def _from_thread(module: Any) -> None:
    module.run = module.run_sync = loops.from_thread
    loops.NoWorker = getattr(module, "NoEventLoopError", RuntimeError)


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


refused: list[tuple[str, str]] = []
"""What was refused since the call or the start began: what the server tried, with file and line, and what it was told."""
warnings: list[str] = []
"""What does not run, although the server goes on."""


def explained(said: str) -> str:
    """Returns sentences about what was refused, in addition to what the server said about it. It may have said why itself, and not where."""
    every = ((tried, "" if why in said else f": {why.partition(':')[0]}") for tried, why in dict.fromkeys(refused))
    return "".join(f" {tried}{why}." for tried, why in every)


def _place() -> str:
    """Returns the innermost line of the server's own code, or else of a package of it."""
    frame, found = sys._getframe(2), ""
    while frame is not None:
        file = frame.f_code.co_filename
        here = f"{'/'.join(file.split('/')[-2:])}:{frame.f_lineno}"
        if watch.watch.is_own(file):
            return here
        if not found and file.startswith(files.roots):
            found = here
        frame = frame.f_back  # type: ignore[assignment]
    return found


def _refuse(kind: type[Exception], why: str, what: Callable[..., str]) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        at = _place()
        refused.append((f"The server tried to {what(*args)}{f' ({at})' if at else ''}", why))
        raise kind(why)

    return refuse


def _coroutine(refuse: Callable[..., Any]) -> Callable[..., Any]:
    async def refused(*args: Any, **kwargs: Any) -> Any:
        refuse(*args, **kwargs)

    return refused


def _program(*args: Any) -> str:
    command = next((one for one in args if isinstance(one, (str, bytes, list, tuple, os.PathLike))), "")
    first = command[0] if isinstance(command, (list, tuple)) and command else command
    # Arguments may hold secrets.
    words = os.fsdecode(first).split() if isinstance(first, (str, bytes, os.PathLike)) else []
    return f"start the program `{words[0]}`" if words else "start a program"


def _start_thread(thread: threading.Thread) -> None:
    """A thread that ends with the program is not missed at its start: natively, nothing waits for it."""
    if not thread.daemon or _call.current is not None and wires and wires[-1].opened:
        _no_thread(thread)
    warnings.append(f"the thread {thread.name} ({_place()}) does not run: {loops.NO_THREADS.partition(':')[0]}")
    thread.join = _no_thread  # type: ignore[method-assign]
    thread.is_alive = lambda: True  # type: ignore[method-assign]


_no_thread = _refuse(RuntimeError, loops.NO_THREADS, lambda *_: "start a thread")


def _temporary() -> list[str]:
    """Temporary files are in a folder that is open to the call, as they are on a machine where only the working folder can be written."""
    return [one.path for one in directories() if one.writable] if _call.host is not None else []


def enter_folder(last: str | None) -> str | None:
    """Makes the first folder that is open to the call the working folder, unless it was that in the last call: the server may have gone
    elsewhere since. Returns it."""
    first = next((one.path for one in directories()), None) if _call.host is not None else None
    if first is not None and first != last:
        try:
            os.chdir(first)
        except OSError:
            # A folder that is gone is told by whatever uses it.
            return last
    return first


def _home() -> str | None:
    """Returns the first folder that the call can write to: the home folder of the server's own code."""
    return next(iter(_temporary()), None)


def _python() -> None:
    """Threads, sockets and processes: a sentence instead of a trap."""
    threading.Condition.wait = loops.wait  # type: ignore[method-assign,assignment]
    threading.Thread.start = _start_thread  # type: ignore[method-assign]
    no_sockets = _refuse(OSError, loops.NO_SOCKETS, lambda *_: "open a socket")
    for name in ("connect", "connect_ex", "bind", "listen", "accept", "sendto"):
        setattr(socket.socket, name, no_sockets)
    socket.getaddrinfo = loops.addresses
    socket.gethostbyname = lambda name: loops.addresses(name, 0)[0][4][0]
    socket.gethostbyname_ex = lambda name: (name, [], [socket.gethostbyname(name)])
    socket.getfqdn = lambda name="": name or "localhost"
    if not hasattr(socket, "gethostname"):
        socket.gethostname = lambda: "localhost"
    tempfile._candidate_tempdir_list = _temporary  # type: ignore[attr-defined]
    no_processes = _refuse(FileNotFoundError, loops.NO_PROCESSES, _program)
    loops.Loop.subprocess_exec = loops.Loop.subprocess_shell = _coroutine(no_processes)  # type: ignore[method-assign,assignment]
    loops.Loop.create_connection = loops.Loop.create_server = _coroutine(no_sockets)  # type: ignore[method-assign,assignment]
    subprocess.Popen.__init__ = no_processes  # type: ignore[method-assign]
    os.system = os.popen = no_processes  # type: ignore[assignment]
    limits.install(no_sockets, no_processes)
    for name in ("getuid", "geteuid", "getgid", "getppid"):
        if not hasattr(os, name):
            setattr(os, name, lambda: 1000)


AWAY = (".py", ".pyc", ".dist-info/METADATA", ".dist-info/entry_points.txt", ".dist-info/RECORD")
"""What is kept in another way."""
NOT_KEPT = "No such file inside of a plugin, which has the text files next to the server's code, and what packages read when it was built"
MOST_BESIDE = 1 << 20
"""How many bytes of files next to the code are kept."""
TEXT = (".cfg", ".css", ".csv", ".graphql", ".html", ".ini", ".j2", ".jinja", ".jinja2", ".json", ".md", ".prompt", ".py", ".rst", ".sql",
        ".svg", ".tmpl", ".toml", ".tsv", ".txt", ".xml", ".yaml", ".yml")  # fmt: skip
PRIVATE = re.compile(r"secret|credential|token|password|passwd|private|api[-_]?key", re.IGNORECASE)
"""Files that often hold secrets. Those of an author do not become part of a component, which others may get."""


class Files:
    """Files next to the server's code: the build keeps them, because a plugin has no such files later."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        self.roots: tuple[str, ...] = ()
        self.keeping = False

    def keep_authorities(self, dependencies: Iterable[str]) -> None:
        """Keeps the file of `certifi`, whose path servers give to what encrypts."""
        for folder in dependencies:
            path = os.path.join(folder, "certifi", "cacert.pem")
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    self.kept[os.path.normpath(path)] = file.read()

    def keep(self, own: Iterable[str], published: tuple[str, ...]) -> list[str]:
        """Keeps the text files next to the server's code, the nearest ones first. `published`: the folders of packages, which contain no
        secrets of the author. Returns the names of those that are not code."""
        left, found = MOST_BESIDE, []
        for one in own:
            folders = [one.rstrip(os.sep)] if os.path.isdir(one) else []
            for folder in folders:
                for name in sorted(os.listdir(folder)):
                    path = os.path.normpath(os.path.join(folder, name))
                    secret = PRIVATE.search(name) and not path.startswith(published)
                    if name.startswith(".") or name in (*watch.AWAY, "tests", "test", "__pycache__") or secret or os.path.islink(path):
                        continue
                    if os.path.isdir(path):
                        folders.append(path)
                    elif name.endswith(TEXT) and os.path.getsize(path) <= left:
                        with open(path, "rb") as file:
                            self.kept[path] = file.read()
                        left -= len(self.kept[path])
                        found += [] if name.endswith(".py") else [os.path.relpath(path, one)]
        return found

    def install(self) -> None:
        real, status, listed, scanned, links, access, opened = builtins.open, os.stat, os.listdir, os.scandir, os.lstat, os.access, os.open

        def open_(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            path = os.fspath(file) if isinstance(file, (str, os.PathLike)) else None
            reads = isinstance(path, str) and not set(mode) & set("wax+")
            if reads and self.keeping and path.startswith(self.roots) and not path.endswith(AWAY) and os.path.isfile(path):
                with real(path, "rb") as found:
                    self.kept[os.path.normpath(path)] = found.read()
            try:
                return real(file, mode, *args, **kwargs)
            except OSError:
                if not reads or os.path.normpath(path) not in self.kept:
                    if reads and path.startswith(self.roots) and _call.host is not None:
                        raise FileNotFoundError(44, NOT_KEPT, path) from None
                    raise
                return self._again(path, mode, args, kwargs)

        def stat(path: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return status(path, *args, **kwargs)
            except OSError:
                return self._status(path)

        def lstat(path: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return links(path, *args, **kwargs)
            except OSError:
                return self._status(path)

        def listdir(path: Any = ".") -> Any:
            try:
                return listed(path)
            except OSError:
                return [one.name for one in self._entries(path)]

        def scandir(path: Any = ".") -> Any:
            try:
                return scanned(path)
            except OSError:
                return _Entries(self._entries(path))

        def access_(path: Any, mode: int, *args: Any, **kwargs: Any) -> bool:
            return access(path, mode, *args, **kwargs) or bool(self._below(path)) and not mode & os.W_OK

        def open_number(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
            try:
                return opened(path, flags, *args, **kwargs)
            except OSError as problem:
                if not self._below(path):
                    raise
                why = "a file of the server has no number inside of a plugin: read it with `open`"
                raise OSError(problem.errno, why, os.fspath(path)) from None

        builtins.open = io.open = open_
        os.stat, os.listdir, os.scandir, os.lstat = stat, listdir, scandir, lstat  # type: ignore[assignment]
        os.access, os.open = access_, open_number
        tokenize._builtin_open = open_  # type: ignore[attr-defined]
        loaded, code = importlib.machinery.SourceFileLoader.get_data, io.open_code

        def get_data(loader: Any, path: str) -> bytes:
            try:
                return loaded(loader, path)
            except OSError:
                with open_(path, "rb") as file:
                    return file.read()  # type: ignore[no-any-return]

        def open_code(path: str) -> Any:
            try:
                return code(path)
            except OSError:
                return open_(path, "rb")

        importlib.machinery.SourceFileLoader.get_data, io.open_code = get_data, open_code  # type: ignore[method-assign]
        imports.kept.source = lambda path: self.kept.get(os.path.normpath(path), b"").decode("utf-8", "replace")

    def _status(self, path: Any) -> os.stat_result:
        """Returns what is known of a kept file, or folder of such files. Within `except`."""
        names = self._below(path)
        if not names:
            raise
        is_file = names[0] == os.path.normpath(os.fspath(path))
        size = (len(self.kept[names[0]]) if names[0] in self.kept else metadata.places[names[0]]) if is_file else 0
        times = {f"st_{name}time{unit}": 0 for name in "amc" for unit in ("", "_ns")}
        return os.stat_result((0o100444 if is_file else 0o40555, 0, 0, 1, 0, 0, size, 0, 0, 0), times)

    def _below(self, path: Any) -> list[str]:
        """Returns the kept file of this path, or those in the folder of this path."""
        if not isinstance(path, (str, os.PathLike)) or not isinstance(os.fspath(path), str):
            return []
        place = os.path.normpath(os.fspath(path))
        if place in self.kept or place in metadata.places:
            return [place]
        # Each of these folders ends with a slash.
        more = metadata.places if f"{place}/".startswith(self.roots) else ()
        return [name for name in (*self.kept, *more) if name.startswith(f"{place}/")]

    def _entries(self, path: Any) -> list[_Entry]:
        """Returns what is in a folder of kept files. Within `except`."""
        names = self._below(path)
        if not names or names[0] == os.path.normpath(os.fspath(path)):
            raise
        begin = len(os.path.normpath(os.fspath(path))) + 1
        return [_Entry(os.path.join(os.fspath(path), one), one) for one in sorted({name[begin:].partition("/")[0] for name in names})]

    def _again(self, path: str, mode: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        found = io.BytesIO(self.kept[os.path.normpath(path)])
        if "b" in mode:
            found.name, found.mode = path, "rb"  # type: ignore[attr-defined]
            return found
        given = dict(zip(("buffering", "encoding", "errors", "newline"), args), **kwargs)
        text = _Text(found, given.get("encoding") or "UTF-8", given.get("errors"), given.get("newline"))
        text.name, text.mode = path, mode
        return text


class _Text(io.TextIOWrapper):
    """A kept file that is read as text."""

    name: str = ""
    mode: str = "r"


class _Entry:
    """What `os.scandir` says about a kept file or folder."""

    def __init__(self, path: str, name: str) -> None:
        self.path, self.name = path, name

    def __fspath__(self) -> str:
        return self.path

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return os.path.isdir(self.path)

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return os.path.isfile(self.path)

    def is_symlink(self) -> bool:
        return False

    is_junction = is_symlink

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        return os.stat(self.path)

    def inode(self) -> int:
        return 0


class _Entries(list[_Entry]):
    """The result of `os.scandir`."""

    def __next__(self) -> _Entry:
        if not self:
            raise StopIteration
        return self.pop(0)

    def __enter__(self) -> _Entries:
        return self

    def __exit__(self, *_: Any) -> None:
        self.clear()

    def close(self) -> None:
        self.clear()


files = Files()


def install() -> None:
    """Makes all changes. Runs before the server is imported."""
    loops.install()
    imports.install()
    loops.waits_for_messages = lambda: bool(wires) and wires[-1].waits()
    _python()
    files.install()
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
    watch.watch.home = _home
    sys.stdout = Lines("info", sys.stderr)
    sys.stderr = Lines("info", sys.__stderr__)
