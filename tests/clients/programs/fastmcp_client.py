"""fastmcp: its `Client`, which speaks 2026-07-28 where the server does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport
from mcp import types
from shared import Job, drive


def transport_of(job: Job) -> Any:
    if job.transport == "stdio":
        return StdioTransport(job.command, job.args)
    return (SSETransport if job.transport == "sse" else StreamableHttpTransport)(job.url)


class FastMcp:
    def __init__(self, job: Job, **roots: Any) -> None:
        self.heard: asyncio.Event | None = asyncio.Event()
        self.client = Client(transport_of(job), message_handler=self.on_message, **roots)

    async def on_message(self, message: Any) -> None:
        if isinstance(getattr(message, "root", message), types.ToolListChangedNotification) and self.heard:
            self.heard.set()

    async def tools(self) -> dict[str, Any]:
        return {tool.name: tool for tool in await self.client.list_tools()}

    async def call(self, tool: Any, arguments: dict[str, Any]) -> Any:
        # It raises where the result is an error.
        return await self.client.call_tool(tool.name, arguments)


@asynccontextmanager
async def connect(job: Job, **roots: Any) -> AsyncIterator[FastMcp]:
    fastmcp = FastMcp(job, **roots)
    async with fastmcp.client:
        if fastmcp.client.initialize_result is None:
            # Without a handshake it would have to listen, which it cannot.
            fastmcp.heard = None
        yield fastmcp


if __name__ == "__main__":
    drive(connect, empty_roots=True)
