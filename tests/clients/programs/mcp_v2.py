"""The Python package `mcp` 2.x: `Client`, which finds out by itself what the server speaks."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from mcp import Client, StdioServerParameters, types
from mcp.client.sse import sse_client
from shared import MODERN, Job, Person, drive


class Official:
    revision: str

    def __init__(self, job: Job, roots: list[types.Root] | None, person: Person | None, handshake: bool) -> None:
        self.heard = asyncio.Event()
        self.declared = roots
        self.person = person
        if job.transport == "stdio":
            server: Any = StdioServerParameters(command=job.command, args=job.args)
        else:
            server = sse_client(job.url) if job.transport == "sse" else job.url
        self.client = Client(
            server,
            mode="legacy" if handshake else "auto",
            message_handler=self.on_message,
            list_roots_callback=None if roots is None else self.on_roots,
            # At 2026-07-28 the library calls this for the questions in a result, and calls again with the answers.
            elicitation_callback=None if person is None else self.on_elicitation,
        )

    async def on_message(self, message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self.heard.set()

    async def on_roots(self, _context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=self.declared)

    async def on_elicitation(self, _context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(**self.person.answer(params.message, params.requested_schema))

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
async def connect(
    job: Job, roots: list[types.Root] | None = None, person: Person | None = None, handshake: bool = False
) -> AsyncIterator[Official]:
    official = Official(job, roots, person, handshake)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(official.client)
        official.revision = official.client.protocol_version
        if official.revision == MODERN:
            changes = await stack.enter_async_context(official.client.listen(tools_list_changed=True))
            listening = asyncio.create_task(official.listen(changes))
            stack.callback(listening.cancel)
        yield official


if __name__ == "__main__":
    # SSE is of revisions that have a handshake.
    drive(connect, empty_roots=True, asks=lambda job: {"both_eras": job.transport != "sse"})
