"""A server of the official SDK that keeps state in memory: `cargo xtask check existing` runs it as it is, and looks whether the state stays."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mcp.server.fastmcp import Context, FastMCP
from pydantic import BaseModel

notes: list[str] = []
count = 0
starts = 0


@asynccontextmanager
async def lifespan(_: FastMCP) -> AsyncIterator[dict[str, list[str]]]:
    global starts
    starts += 1
    yield {"pool": []}


mcp = FastMCP("notes", lifespan=lifespan)


@mcp.tool()
def add(a: int, b: int) -> str:
    """Adds two numbers."""
    return f"{a} + {b} = {a + b}"


@mcp.tool()
def note(text: str) -> str:
    """Keeps a note."""
    notes.append(text)
    return ", ".join(notes)


@mcp.tool()
def increment() -> str:
    """Counts."""
    global count
    count += 1
    return str(count)


@mcp.tool()
def pool(ctx: Context) -> str:
    """Takes a connection from the pool of the lifespan."""
    connections = ctx.request_context.lifespan_context["pool"]
    connections.append(len(connections))
    return f"{len(connections)} of start {starts}"


class Sure(BaseModel):
    sure: bool


@mcp.tool()
async def ask(text: str, ctx: Context) -> str:
    """Asks before it keeps a note."""
    answer = await ctx.elicit("Sure?", Sure)
    return note(text) if answer.action == "accept" else "nothing was kept"


@mcp.tool()
async def slow(ms: int) -> str:
    """Counts, slowly."""
    before = count
    await asyncio.sleep(ms / 1000)
    return f"{before}, {increment()}"


@mcp.tool()
def stall(ms: int) -> str:
    """Blocks, as no server should."""
    time.sleep(ms / 1000)
    return increment()


@mcp.tool()
def end() -> str:
    """Ends the process."""
    os._exit(3)


if __name__ == "__main__":
    mcp.run()
