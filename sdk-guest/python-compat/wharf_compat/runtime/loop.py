"""An event loop without sockets, and `asyncio.run` and `anyio.run` on it.

A server waits for messages for ever, but a plugin must return from each call. So `run` comes back as soon as nothing is
left to do: if the server waits for messages then, `Serving` unwinds the function that started it, while its tasks stay in
the loop and go on when the next message arrives.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import time
from asyncio import base_events, events, tasks
from collections.abc import Callable
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

    def _process_events(self, event_list: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        future = self.create_future()
        global _as_thread
        before, _as_thread = _as_thread, True
        try:
            future.set_result(func(*args))
        except Exception as problem:
            future.set_exception(problem)
        except Blocked:
            # A thread would wait here until the server ends, as one that watches the parent process does.
            pass
        finally:
            _as_thread = before
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        pass

    def add_signal_handler(self, sig: int, callback: Callable[..., Any], *args: Any) -> None:
        pass

    def remove_signal_handler(self, sig: int) -> bool:
        return False

    async def getaddrinfo(self, host: Any, port: Any, **kwargs: Any) -> Any:
        return addresses(host, port, **kwargs)

    async def create_connection(self, *args: Any, **kwargs: Any) -> Any:
        raise OSError(NO_SOCKETS)

    create_server = create_datagram_endpoint = sock_connect = create_connection  # type: ignore[assignment]

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
    if address.version == 6:
        return [(socket.AF_INET6, type or socket.SOCK_STREAM, proto, "", (str(address), number, 0, 0))]
    return [(socket.AF_INET, type or socket.SOCK_STREAM, proto, "", (str(address), number))]


class _Policy(events.AbstractEventLoopPolicy if hasattr(events, "AbstractEventLoopPolicy") else events._AbstractEventLoopPolicy):  # type: ignore[misc]
    """Makes `asyncio.new_event_loop` return a loop without sockets."""

    _loop: Loop | None = None

    def get_event_loop(self) -> Loop:
        return main()

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


def run(awaitable: Any, **_: Any) -> Any:
    """`asyncio.run`: runs a coroutine until it is done, or until the server waits for messages.

    Within a running coroutine, it runs on a loop of its own: code that elsewhere runs in a thread may call it.
    """
    outer = events._get_running_loop()
    if not asyncio.iscoroutine(awaitable) and not asyncio.isfuture(awaitable):
        awaitable = _awaited(awaitable)
    if outer is None:
        return _drive(main(), awaitable)
    swap = getattr(tasks, "_swap_current_task", None)
    before = swap(outer, None) if swap else None
    events._set_running_loop(None)
    inner = Loop()
    try:
        return _drive(inner, awaitable)
    finally:
        inner.close()
        events._set_running_loop(outer)
        if swap:
            swap(outer, before)


class Runner:
    """`asyncio.Runner`, on the loop of the server."""

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
    return run(func(*args))


def install() -> None:
    """Puts this loop in the place of asyncio's."""
    policy = _Policy()
    if hasattr(events, "_set_event_loop_policy"):
        events._set_event_loop_policy(policy)
    else:
        asyncio.set_event_loop_policy(policy)
    asyncio.run = asyncio.runners.run = run  # type: ignore[assignment]
    asyncio.Runner = asyncio.runners.Runner = Runner  # type: ignore[misc, assignment]
    asyncio.new_event_loop = events.new_event_loop = Loop  # type: ignore[assignment]
