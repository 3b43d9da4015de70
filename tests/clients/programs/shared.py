"""What every Python program here asks of its framework. A program hands over how its framework connects; the rest is the same.

    python PROGRAM JOB        (JOB is JSON, written by ../matrix.mjs)
"""

import asyncio
import itertools
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urljoin
from urllib.request import Request, urlopen

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent.parent / "conformance" / "clients"))
from python_report import check, expect, expect_equal, expect_in, report, why  # noqa: E402

# The programs take these from here, because approval.py needs the path above as well.
from approval import MODERN, Approval, Person  # noqa: E402

__all__ = ["MODERN", "Client", "Job", "Person", "drive"]

CALLS: list[dict[str, Any]] = json.loads((HERE / "calls.json").read_text(encoding="utf-8"))
# How soon a new plugin must be heard of or listed, in seconds.
HEARD = 10
# How soon a client must give up a call whose server was killed, in seconds.
LOST = 15
# How often a client calls while its servers are stopped and started, and how many of these calls ask a person.
BETWEEN = 0.02
ASKS_EVERY = 5
# After so many requests, each replica has answered one.
ALL_ANSWERED = 9


@dataclass
class Job:
    """Where the server is, and what the runner prepared."""

    transport: str
    # What starts the server over stdio.
    command: str
    args: list[str]
    # Where it is otherwise.
    url: str
    # The folder that is open to the tools.
    root: str
    # What `made.txt` in it holds.
    made: str
    # The package, where one program drives several.
    package: str
    # Another server, at which a person approves of what writes: its own `command`, `args`, `url` and `root`.
    asked: dict[str, Any]
    # A plugin that is not there yet: the file, where it has to be put, and the tool it brings.
    late: dict[str, str]
    # Where a POST to `restart` or `kill` does that to the server, if that is what is checked.
    restarts: str | None = None
    # Where a GET says `over` when the program need not call any more, if servers are stopped and started meanwhile.
    meanwhile: str | None = None
    # Whether to begin with the handshake, where the framework can do without, and how many there are.
    handshake: bool = False
    handshakes: int = 0


class Client(Protocol):
    """A framework that is connected."""

    # Set when the server says that the tools changed; None where the framework does not tell.
    heard: asyncio.Event | None
    # `follows = True` says that `tools` gives what the framework keeps, and that it lists again only when it is told to.

    async def tools(self) -> dict[str, Any]:
        """The framework's own tool objects by name, listed again."""

    async def call(self, tool: Any, arguments: dict[str, Any]) -> Any:
        """The result of a tool as the framework gives it; raises if it is an error."""


Connect = Callable[..., AbstractAsyncContextManager[Client]]


class Checks:
    def __init__(self, job: Job, client: Client) -> None:
        self.job = job
        self.client = client

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        tools = await self.client.tools()
        expect(name in tools, f"there is no {name} among {sorted(tools)}")
        return str(await self.client.call(tools[name], arguments))

    async def listed(self) -> None:
        expect_equal(sorted(await self.client.tools()), sorted({call["tool"] for call in CALLS}), "the list of tools")

    async def called(self) -> None:
        tools = await self.client.tools()
        for call in CALLS:
            try:
                result = str(await self.client.call(tools[call["tool"]], dict(call["arguments"])))
                expect_in(call.get("expect", ""), result, "the result")
                # What is only in the sentence of an error, which some frameworks give as any other text.
                expect("never" not in call or call["never"] not in result, f"the result is {result}")
            except Exception as error:
                # Some libraries raise groups; the sentence names the tool in any case.
                raise RuntimeError(f"{call['tool']} {json.dumps(call['arguments'])}: {why(error)}") from error

    async def roots(self, written: str = "written.txt") -> None:
        made = str(Path(self.job.root) / "made.txt")
        expect_in(self.job.made, await self.call("files_read_text_file", {"path": made}), "made.txt")
        path = str(Path(self.job.root) / written)
        await self.call("files_write_file", {"path": path, "content": self.job.made})

    async def changed(self) -> None:
        late, heard = self.job.late, self.client.heard
        if heard is not None:
            heard.clear()
        os.rename(late["from"], late["to"])
        if heard is not None:
            try:
                await asyncio.wait_for(heard.wait(), HEARD)
            except asyncio.TimeoutError:
                expect(False, f"nothing was heard of the new plugin within {HEARD} s")
        limit = time.monotonic() + HEARD
        # Replicas load it one after the other, and each answers some of the requests.
        listed, wanted = 0, ALL_ANSWERED if self.job.meanwhile else 1
        while listed < wanted:
            listed = listed + 1 if late["tool"] in await self.client.tools() else 0
            if listed == 0:
                expect(time.monotonic() < limit, f"{late['tool']} was not listed within {HEARD} s")
                await asyncio.sleep(0.05)
        expect_in("late", await self.call(late["tool"], {"message": "late"}), "what the new tool answers")
        follows = heard is not None or getattr(self.client, "follows", False)
        tell("hears", "told" if follows else "listed again")


    async def says(self, text: str) -> None:
        expect_in(text, await self.call("echo_echo", {"message": text}), "what echo answers")

    async def again(self, how: str) -> None:
        """Restarts or kills the server while nothing is under way: without anyone who listens during a request, the SDKs end their
        own client when that request fails."""
        await asyncio.to_thread(post, urljoin(self.job.restarts or "", how))
        for time in ["once", "twice"]:
            await self.says(f"{how} {time}")


    async def meanwhile(self) -> None:
        """Calls until the runner says `over`, and tells which calls failed: it knows what happened to the servers then. While it says `rest`,
        nothing is called."""
        tools = await self.client.tools()
        for number in itertools.count():
            while (state := await asyncio.to_thread(get, self.job.meanwhile or "")) == "rest":
                await asyncio.sleep(BETWEEN)
            if state == "over":
                return
            text, asks, start = f"number {number}", number % ASKS_EVERY == 0, time.time()
            what = "question" if asks else "call"
            try:
                name, arguments = ("g_t", {"ask": [["name"]], "text": text}) if asks else ("echo_echo", {"message": text})
                result = await asyncio.wait_for(self.client.call(tools[name], arguments), LOST)
                expect_in(text, str(result), "the answer")
                tell("right", what)
            except Exception as error:
                tell("lost", {"from": round(start * 1000), "to": round(time.time() * 1000), "what": what, "why": why(error)})
            await asyncio.sleep(BETWEEN)


class Accepts:
    """A person who answers each question with the same name."""

    def answer(self, _message: str, _schema: Any) -> dict[str, Any]:
        return {"action": "accept", "content": {"v": "Ada"}}


def get(url: str) -> str:
    with urlopen(url, timeout=60) as answer:
        return answer.read().decode()


def post(url: str) -> None:
    with urlopen(Request(url, method="POST"), timeout=60) as answer:
        expect(answer.status == 200, f"the server was not restarted: {answer.status}")


def tell(fact: str, value: Any) -> None:
    print(json.dumps({"fact": fact, "value": value}), flush=True)


async def session(job: Job, connect: Connect, empty_roots: bool, without: Collection[str]) -> None:
    """The checks of one connection, and of one without roots."""
    phase, start = "connect", time.monotonic()
    try:
        given: dict[str, Any] = {"handshake": True} if job.handshake else {}
        if job.meanwhile:
            given["person"] = Accepts()
        async with connect(job, **given) as client:
            report(phase, start)
            checks = Checks(job, client)
            phase = "session"
            usual: list[tuple[str, Callable[[], Awaitable[None]]]] = [
                ("list", checks.listed),
                ("call", checks.called),
                ("roots", checks.roots),
            ]
            restarts: list[tuple[str, Callable[[], Awaitable[None]]]] = [
                ("before", lambda: checks.says("before")),
                ("restart at rest", lambda: checks.again("restart")),
                ("kill at rest", lambda: checks.again("kill")),
            ]
            if (job.restarts or job.meanwhile) and not job.handshakes:
                # A subscription of 2026-07-28 ends with its server, and only the program can begin another one.
                client.heard = None
            if job.meanwhile:
                await checks.meanwhile()
                usual = []
            for name, body in [*(restarts if job.restarts else usual), ("changed", checks.changed)]:
                if name not in without:
                    await check(name, body)
            phase, start = "close", time.monotonic()
        # Most wait two seconds for the end of the server before they use force.
        took = time.monotonic() - start
        expect(took < 1.9, f"closing took {took:.1f} s")
        report(phase, start)
    except Exception as error:
        report(phase, start, why(error))
    if empty_roots:
        await check("empty-roots", lambda: with_empty_roots(job, connect))


async def with_empty_roots(job: Job, connect: Connect) -> None:
    """A second client, which declares roots and has none."""
    async with connect(job, roots=[]) as client:
        await Checks(job, client).roots("written-empty.txt")


async def approvals(job: Job, connect: Connect, asks: Mapping[str, bool], empty_roots: bool) -> None:
    both_eras, can_ask = asks.get("both_eras", False), asks.get("can_ask", True)

    async def ask(modern: bool, **how: Any) -> None:
        revision = await Approval(job, partial(connect, **how), can_ask=can_ask, can_have_roots=empty_roots).run()
        if both_eras:
            expect_equal(revision == MODERN, modern, f"that {revision} is the modern revision")
        tell("asks", revision)

    await check("approval", lambda: ask(True))
    if both_eras:
        await check("approval-handshake", lambda: ask(False, handshake=True))


async def all_of(job: Job, connect: Connect, empty_roots: bool, without: Collection[str], asks: Any) -> None:
    disturbed = job.restarts is not None or job.meanwhile is not None
    await session(job, connect, empty_roots and not disturbed, without)
    if asks is not None and not disturbed:
        await approvals(job, connect, asks, empty_roots)


def drive(
    connect: Connect,
    *,
    empty_roots: bool = False,
    without: Collection[str] = (),
    asks: Callable[[Job], Mapping[str, bool]] | None = None,
) -> None:
    """Runs the checks. `empty_roots` says that `connect` takes `roots=[]`; `asks`, whether it can ask a person over this transport
    (`can_ask`; then it takes what approval.py says), and whether it can do so in `both_eras` (then it takes `handshake=True`)."""
    job = Job(**json.loads(sys.argv[1]))
    asyncio.run(all_of(job, connect, empty_roots, without, None if asks is None else asks(job)))
