#!/usr/bin/env python3
"""Looks whether what an MCP server keeps in memory stays from call to call, for each client, and whether its loss is told.

    tests/existing/state.py --wharf target/release/wharf --cache DIR [--edit] SERVER.py SERVER.ts

Needs the packages of requirements.txt. The servers are those of `smoke`, which wharf has built in the cache DIR. `--edit` also serves
them by `wharf dev`, which builds them once more.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client

GONE = "The server `{}` was started again {}: what it kept in memory is gone."
CHANGED = "because its code, its config or its access has changed"


async def answer(_: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"sure": True})


class Client:
    """A session, and what wharf logs for it."""

    def __init__(self, session: ClientSession, log: Path) -> None:
        self.session, self.log = session, log

    async def call(self, tool: str, **arguments: Any) -> list[str]:
        return [block.text for block in (await self.session.call_tool(tool, arguments)).content if block.type == "text"]

    async def expect(self, expected: list[str], tool: str, **arguments: Any) -> None:
        found = await self.call(tool, **arguments)
        assert found == expected, f"{tool} {arguments}: {found}, not {expected}\n{self.log.read_text()}"

    async def logged(self, text: str, times: int = 1) -> None:
        """Waits until the log has a text so often."""
        async with asyncio.timeout(600):
            while self.log.read_text().count(text) < times:
                await asyncio.sleep(0.1)


class Wharf:
    def __init__(self, program: str, cache: Path, folder: Path) -> None:
        self.program, self.folder, self.number = program, folder, 0
        self.environ = {"HOME": str(folder), "XDG_CACHE_HOME": str(cache), "PATH": os.environ["PATH"]}
        self.environ |= {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "NPM_CONFIG_", "npm_config_"))}

    def log(self) -> Path:
        self.number += 1
        return self.folder / f"{self.number}.log"

    @contextlib.asynccontextmanager
    async def stdio(self, *arguments: str) -> AsyncIterator[Client]:
        log = self.log()
        with open(log, "w", encoding="utf-8") as errors:
            parameters = StdioServerParameters(command=self.program, args=list(arguments), env=self.environ, cwd=self.folder)
            async with stdio_client(parameters, errlog=errors) as streams, ClientSession(*streams, elicitation_callback=answer) as session:
                await session.initialize()
                yield Client(session, log)

    @contextlib.asynccontextmanager
    async def http(self, *arguments: str) -> AsyncIterator[tuple[str, Path]]:
        log = self.log()
        with open(log, "w", encoding="utf-8") as errors:
            serve = [self.program, "serve", "--listen", "127.0.0.1:0", *arguments]
            nothing = asyncio.subprocess.DEVNULL
            process = await asyncio.create_subprocess_exec(*serve, env=self.environ, cwd=self.folder, stdin=nothing, stderr=errors)
            try:
                async with asyncio.timeout(120):
                    while not (found := [word for word in log.read_text().split() if word.startswith("http://127.0.0.1:")]):
                        assert process.returncode is None, log.read_text()
                        await asyncio.sleep(0.1)
                yield found[0].rstrip(",;"), log
            finally:
                process.terminate()
                await process.wait()


@contextlib.asynccontextmanager
async def client(url: str, log: Path) -> AsyncIterator[Client]:
    async with streamablehttp_client(url) as (read, write, _), ClientSession(read, write, elicitation_callback=answer) as session:
        await session.initialize()
        yield Client(session, log)


async def stays(one: Client) -> None:
    """What a client finds in its own session."""
    await one.expect(["a"], "note", text="a")
    await one.expect(["a, b"], "note", text="b")
    await one.expect(["1"], "increment")
    await one.expect(["1 of start 1"], "pool")
    await one.expect(["2 of start 1"], "pool")
    # A tool that asks goes on, and its state is not that of a second run.
    await one.expect(["a, b, c"], "ask", text="c")
    await one.expect(["a, b, c, d"], "ask", text="d")
    # Outside of wharf, these would overlap; one after the other, each sees what the one before left.
    both = await asyncio.gather(one.call("slow", ms=200), one.call("slow", ms=200))
    assert sorted(both) == [["1, 2"], ["2, 3"]], both


async def check(wharf: Wharf, server: Path, edit: bool) -> None:
    name = server.stem
    run = ["run", str(server), "--allow", "ask=elicitation"]
    async with wharf.stdio(*run) as one:
        await stays(one)
        async with wharf.stdio(*run) as other:
            await other.expect(["x"], "note", text="x")
        await one.call("end")
        await one.expect(["1", GONE.format(name, "after it crashed")], "increment")
        await one.expect(["2"], "increment")
        assert "what it kept in memory for this client is gone" in one.log.read_text()
    async with wharf.stdio(*run, "--instances", "fresh") as one:
        for _ in range(2):
            await one.expect(["1"], "increment")
        await one.expect(["c"], "ask", text="c")
    key = hashlib.sha256(str(server).encode()).hexdigest()[:16]
    component = Path(wharf.environ["XDG_CACHE_HOME"], "wharf", "servers", f"{name}-{key}", f"{name}.wasm")
    config = wharf.folder / f"{server.suffix[1:]}.toml"
    table = f'[plugins.{name}]\npath = "{component}"\nprefix = ""\ngrants = {{ ask = ["elicitation"] }}\nlimits = {{ timeout_ms = 3000 }}\n'
    config.write_text(table, encoding="utf-8")
    async with wharf.http("-c", str(config)) as (url, log), client(url, log) as one, client(url, log) as other:
        await stays(one)
        await stays(other)
        await one.call("stall", ms=60_000)
        await one.expect(["x", GONE.format(name, "after a call took too long")], "note", text="x")
        await other.expect(["4"], "increment")
        config.write_text(table + "config = { changed = true }\n", encoding="utf-8")
        await one.logged("serving plugin", 2)
        for each in (one, other):
            await each.expect(["1", GONE.format(name, CHANGED)], "increment")
            await each.expect(["2"], "increment")
    if edit:
        await edited(wharf, server)


async def edited(wharf: Wharf, server: Path) -> None:
    """An author saves another version while a client is there."""
    project = wharf.folder / f"edited-{server.suffix[1:]}"
    project.mkdir()
    shutil.copy(server.parent / "package.json", project)
    copy = Path(shutil.copy(server, project))
    async with wharf.stdio("dev", "--stdio", str(copy)) as one:
        # Its packages are installed before.
        await one.logged("serving")
        await one.expect(["1"], "increment")
        await one.expect(["2"], "increment")
        copy.write_text(copy.read_text(encoding="utf-8").replace("Counts.", "Counts on."), encoding="utf-8")
        await one.logged("serving plugin", 2)
        await one.expect(["1", GONE.format(copy.stem, CHANGED)], "increment")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wharf", required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--edit", action="store_true")
    parser.add_argument("servers", type=Path, nargs="+")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wharf = Wharf(str(Path(given.wharf).resolve()), given.cache.resolve(), Path(folder))
        for server in given.servers:
            await check(wharf, server.resolve(), given.edit)
            print(f"{server.name} keeps its state for each client, and its loss is told", file=sys.stderr)


asyncio.run(main())
