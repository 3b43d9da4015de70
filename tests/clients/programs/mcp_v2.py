"""The Python package `mcp` 2.x: `Client`, which finds out by itself what the server speaks."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from mcp import Client, StdioServerParameters, types
from mcp.client.sse import sse_client
from shared import Job, drive

# The revision at which changes have to be listened for.
MODERN = "2026-07-28"


class Official:
    def __init__(self, job: Job, roots: list[types.Root] | None) -> None:
        self.heard = asyncio.Event()
        self.declared = roots
        if job.transport == "stdio":
            server: Any = StdioServerParameters(command=job.command, args=job.args)
        else:
            server = sse_client(job.url) if job.transport == "sse" else job.url
        self.client = Client(
            server,
            message_handler=self.on_message,
            list_roots_callback=None if roots is None else self.on_roots,
        )

    async def on_message(self, message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self.heard.set()

    async def on_roots(self, _context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=self.declared)

    async def listen(self, changes: Any) -> None:
        async for _ in changes:
            self.heard.set()

    async def tools(self) -> dict[str, Any]:
        return {tool.name: tool for tool in (await self.client.list_tools()).tools}

    async def call(self, tool: types.Tool, arguments: dict[str, Any]) -> Any:
        result = await self.client.call_tool(tool.name, arguments)
        if result.is_error:
            raise RuntimeError(str(result.content))
        return result


@asynccontextmanager
async def connect(job: Job, roots: list[types.Root] | None = None) -> AsyncIterator[Official]:
    official = Official(job, roots)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(official.client)
        if official.client.protocol_version == MODERN:
            changes = await stack.enter_async_context(official.client.listen(tools_list_changed=True))
            listening = asyncio.create_task(official.listen(changes))
            stack.callback(listening.cancel)
        yield official


if __name__ == "__main__":
    drive(connect, empty_roots=True)
