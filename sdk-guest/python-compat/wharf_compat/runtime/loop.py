"""An event loop without sockets, and `asyncio.run` and `anyio.run` on it.

A server waits for messages for ever, but a plugin must return from each call. So `run` comes back as soon as nothing is
left to do: if the server waits for messages then, `Serving` unwinds the function that started it, while its tasks stay in
the loop and go on when the next message arrives.
"""

from __future__ import annotations

import asyncio
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
        try:
            future.set_result(func(*args))
        except Exception as problem:
            future.set_exception(problem)
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        pass

    def add_signal_handler(self, sig: int, callback: Callable[..., Any], *args: Any) -> None:
        pass

    def remove_signal_handler(self, sig: int) -> bool:
        return False

    async def getaddrinfo(self, *args: Any, **kwargs: Any) -> Any:
        raise OSError(NO_SOCKETS)

    async def create_connection(self, *args: Any, **kwargs: Any) -> Any:
        raise OSError(NO_SOCKETS)

    create_server = create_datagram_endpoint = sock_connect = create_connection  # type: ignore[assignment]

    async def subprocess_exec(self, *args: Any, **kwargs: Any) -> Any:
        raise OSError(NO_PROCESSES)

    subprocess_shell = subprocess_exec


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
