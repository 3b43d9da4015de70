"""An event loop without sockets, and `asyncio.run` and `anyio.run` on it.

A server waits for messages for ever, but a plugin must return from each call. So `run` comes back as soon as nothing is
left to do: if the server waits for messages then, `Serving` unwinds the function that started it, while its tasks stay in
the loop and go on when the next message arrives.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import ipaddress
import itertools
import socket
import threading
import time
from asyncio import base_events, events, runners, tasks
from collections.abc import Callable, Iterator
from typing import Any

NO_SOCKETS = (
    "there are no sockets inside of a plugin: use httpx, requests or urllib for HTTP, which wharf sends as far as the operator allows it"
)
NO_PROCESSES = "a plugin cannot start other programs"
NO_THREADS = "there are no threads inside of a plugin: call the function directly, or use `asyncio`"


class Idle(RuntimeError):
    """Nothing is left to do, and what is waited for never comes."""


class Blocked(BaseException):
    """Unwinds what was given to an executor, and waits for another thread."""


_as_thread = False
"""Whether a function runs that was given to an executor."""


def wait(_: Any, timeout: float | None = None) -> bool:
    """What `threading.Condition.wait` does: no other thread can end the wait."""
    if _as_thread:
        raise Blocked
    if timeout is None:
        raise RuntimeError(NO_THREADS)
    time.sleep(timeout)
    return False


def _swap(loop: Any, task: Any) -> Any:
    """What `_swap_current_task` of Python 3.12 does."""
    before = tasks.current_task(loop)
    if before is not None:
        tasks._leave_task(loop, before)
    if task is not None:
        tasks._enter_task(loop, task)
    return before


@contextlib.contextmanager
def apart(name: str) -> Iterator[None]:
    """What a function sees that elsewhere runs in a thread of its own: no running loop, and another thread than the main one."""
    global _as_thread
    before, ident, outer = _as_thread, threading.get_ident(), events._get_running_loop()
    thread, task = threading.current_thread(), _swap(outer, None) if outer is not None else None
    events._set_running_loop(None)
    _as_thread, threading._active[ident] = True, threading.Thread(name=name)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        _as_thread, threading._active[ident] = before, thread  # type: ignore[attr-defined]
        events._set_running_loop(outer)
        if outer is not None:
            _swap(outer, task)


_real = concurrent.futures.ThreadPoolExecutor


class Executor(_real):
    """An executor that calls each function at once, when it is submitted."""

    _count = itertools.count()

    def __init__(self, max_workers: int | None = None, thread_name_prefix: str = "", initializer: Any = None, initargs: Any = ()) -> None:
        super().__init__(max_workers, thread_name_prefix, initializer, initargs)
        self._first: Any = (initializer, initargs) if initializer is not None else None
        self._name = thread_name_prefix or f"ThreadPoolExecutor-{next(self._count)}"

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> concurrent.futures.Future[Any]:
        if self._broken:
            raise concurrent.futures.thread.BrokenThreadPool(self._broken)
        if self._shutdown:
            raise RuntimeError("cannot schedule new futures after shutdown")
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        with apart(f"{self._name}_0"):
            try:
                if self._first is not None:
                    (first, given), self._first = self._first, None
                    first(*given)
            except BaseException:
                self._broken = "A thread initializer failed, the thread pool is not usable anymore"  # type: ignore[assignment]
                future.set_exception(concurrent.futures.thread.BrokenThreadPool(self._broken))
                return future
            future.set_running_or_notify_cancel()
            try:
                result = contextvars.Context().run(fn, *args, **kwargs)
            except Blocked:
                # A thread would wait here for another one, perhaps until the server ends, as one that watches the parent process does.
                return future
            except BaseException as problem:
                future.set_exception(problem)
            else:
                future.set_result(result)
        return future


class Processes(Executor):
    """The same in the place of `ProcessPoolExecutor`."""

    def __init__(
        self, max_workers: int | None = None, mp_context: Any = None, initializer: Any = None, initargs: Any = (), *, max_tasks_per_child: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(max_workers, "", initializer, initargs)


class Serving(BaseException):
    """Unwinds the function that started the server, once it waits for messages."""


class _Selector:
    """Stands in for a selector: there is nothing to select, only time to pass."""

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise Idle("it waits for something that never comes, such as a thread, a socket or another program")
        if timeout > 0:
            time.sleep(timeout)
        return []

    def close(self) -> None:
        pass

    def get_map(self) -> dict[Any, Any]:
        return {}


class Loop(base_events.BaseEventLoop):
    """An event loop on which only time passes. Functions for threads are called at once."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = _Selector()
        self._handled: set[int] = set()

    def _process_events(self, event_list: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Its functions have run already."""

    def add_signal_handler(self, sig: int, callback: Callable[..., Any], *args: Any) -> None:
        # None ever comes.
        self._handled.add(sig)

    def remove_signal_handler(self, sig: int) -> bool:
        found = sig in self._handled
        self._handled.discard(sig)
        return found

    async def getaddrinfo(self, host: Any, port: Any, **kwargs: Any) -> Any:
        return addresses(host, port, **kwargs)

    async def getnameinfo(self, sockaddr: Any, flags: int = 0) -> Any:
        return socket.getnameinfo(sockaddr, flags)

    async def create_connection(self, *args: Any, **kwargs: Any) -> Any:
        raise OSError(NO_SOCKETS)

    create_server = create_datagram_endpoint = create_unix_connection = create_unix_server = create_connection  # type: ignore[assignment]
    sock_connect = sock_accept = sock_recv = sock_recv_into = sock_recvfrom = sock_sendall = sock_sendto = create_connection  # type: ignore[assignment]
    sendfile = sock_sendfile = start_tls = connect_accepted_socket = create_connection  # type: ignore[assignment]
    connect_read_pipe = connect_write_pipe = create_connection  # type: ignore[assignment]

    def add_reader(self, *args: Any) -> Any:
        raise OSError(NO_SOCKETS)

    add_writer = remove_reader = remove_writer = add_reader

    async def subprocess_exec(self, *args: Any, **kwargs: Any) -> Any:
        raise FileNotFoundError(NO_PROCESSES)

    subprocess_shell = subprocess_exec


STAND_IN = "192.31.196.1"
"""The address of every host name. wharf finds the real one when it sends, and refuses an address that the operator's rules do not allow; a
plugin does not learn it. This one is public, as servers demand that check it, and by RFC 7535 no service has it but a sink for DNS."""


def addresses(host: Any, port: Any, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0) -> list[Any]:
    """What `socket.getaddrinfo` returns: an address that is given as such is itself."""
    name = host.decode() if isinstance(host, bytes) else host or "127.0.0.1"
    name = "127.0.0.1" if name == "localhost" else name
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        if flags & getattr(socket, "AI_NUMERICHOST", 4):
            raise socket.gaierror(f"`{name}` is not an address") from None
        address = ipaddress.ip_address(STAND_IN)
    number = {"http": 80, "https": 443}.get(port, 0) if isinstance(port, str) and not port.isdigit() else int(port or 0)
    kinds = [(socket.SOCK_STREAM, 6), (socket.SOCK_DGRAM, 17)]
    found = [one for one in kinds if type in (0, one[0]) and proto in (0, one[1])]
    if address.version == 6:
        return [(socket.AF_INET6, kind, by, "", (str(address), number, 0, 0)) for kind, by in found]
    return [(socket.AF_INET, kind, by, "", (str(address), number)) for kind, by in found]


class _Policy(events.AbstractEventLoopPolicy if hasattr(events, "AbstractEventLoopPolicy") else events._AbstractEventLoopPolicy):  # type: ignore[misc]
    """Makes `asyncio.new_event_loop` return a loop without sockets."""

    _loop: Any = None

    def get_event_loop(self) -> Any:
        return self._loop or main()

    def set_event_loop(self, loop: Any) -> None:
        self._loop = loop

    def new_event_loop(self) -> Loop:
        return Loop()


_main: Loop | None = None
waits_for_messages: Callable[[], bool] = lambda: False  # noqa: E731
"""Whether the server waits for messages; set by `wire`."""


def main() -> Loop:
    """Returns the loop of the server. It is closed only by `reset`, because the server goes on in each call."""
    global _main
    if _main is None:
        _main = Loop()
    return _main


def reset() -> None:
    """Forgets the loop and all tasks in it, before the server is started another time."""
    global _main
    _main = None


def _drive(loop: Loop, awaitable: Any) -> Any:
    future = asyncio.ensure_future(awaitable, loop=loop)
    try:
        return loop.run_until_complete(future)
    except Idle:
        if waits_for_messages():
            raise Serving() from None
        raise


async def _awaited(awaitable: Any) -> Any:
    return await awaitable


_Runner = runners.Runner


def run(awaitable: Any, *, debug: bool | None = None, loop_factory: Any = None) -> Any:
    """`asyncio.run`: runs a coroutine until it is done, or until the server waits for messages. What elsewhere runs in a thread has a loop of its
    own."""
    if events._get_running_loop() is not None:
        raise RuntimeError("asyncio.run() cannot be called from a running event loop")
    if not asyncio.iscoroutine(awaitable) and not asyncio.isfuture(awaitable):
        awaitable = _awaited(awaitable)
    if _as_thread or main().is_running():
        with _Runner(debug=debug, loop_factory=loop_factory or Loop) as runner:
            return runner.run(awaitable)
    return _drive(main(), awaitable)


class Runner:
    """`asyncio.Runner`: the one of the server runs on the server's loop."""

    def __new__(cls, *, debug: bool | None = None, loop_factory: Any = None) -> Any:
        if _as_thread or events._get_running_loop() is not None:
            return _Runner(debug=debug, loop_factory=loop_factory or Loop)
        return super().__new__(cls)

    def __init__(self, *, debug: bool | None = None, loop_factory: Any = None) -> None:
        pass

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def close(self) -> None:
        pass

    def get_loop(self) -> Loop:
        return main()

    def run(self, coro: Any, *, context: Any = None) -> Any:
        return run(coro)


def anyio_run(func: Callable[..., Any], *args: Any, backend: str = "asyncio", backend_options: Any = None) -> Any:
    """`anyio.run`."""
    if events._get_running_loop() is not None:
        raise RuntimeError("Already running asyncio in this thread")
    return run(func(*args))


async def in_thread(func: Callable[..., Any], *args: Any, **_: Any) -> Any:
    """`anyio.to_thread.run_sync`."""
    await asyncio.sleep(0)
    with apart("AnyIO worker thread"):
        try:
            return contextvars.copy_context().run(func, *args)
        except Blocked:
            raise RuntimeError(NO_THREADS) from None


def from_thread(func: Callable[..., Any], *args: Any, **_: Any) -> Any:
    """`anyio.from_thread.run` and `run_sync`."""
    if not _as_thread:
        raise NoWorker("This function can only be run from an AnyIO worker thread")
    found = func(*args)
    return run(found) if asyncio.iscoroutine(found) else found


NoWorker: type[Exception] = RuntimeError
"""What `anyio` raises where there is no worker thread."""


def install() -> None:
    """Puts this loop in the place of asyncio's."""
    policy = _Policy()
    if hasattr(events, "_set_event_loop_policy"):
        events._set_event_loop_policy(policy)
    else:
        asyncio.set_event_loop_policy(policy)
    asyncio.run = asyncio.runners.run = run  # type: ignore[assignment]
    asyncio.Runner = asyncio.runners.Runner = Runner  # type: ignore[misc, assignment]
    concurrent.futures.ThreadPoolExecutor = concurrent.futures.thread.ThreadPoolExecutor = Executor  # type: ignore[misc]
    concurrent.futures.ProcessPoolExecutor = Processes  # type: ignore[misc, assignment]
    asyncio.new_event_loop = events.new_event_loop = Loop  # type: ignore[assignment]
