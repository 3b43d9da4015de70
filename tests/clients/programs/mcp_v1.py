"""The Python package `mcp` 1.x: `ClientSession` over each of its transports."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client
from shared import Job, Person, drive


# The oldest has no questions to a person.
CAN_ASK = hasattr(types, "ElicitResult")


class Official:
    revision: str

    def __init__(self, roots: list[types.Root] | None, person: Person | None) -> None:
        self.heard = asyncio.Event()
        self.declared = roots
        self.person = person
        self.session: ClientSession

    async def on_message(self, message: Any) -> None:
        if isinstance(getattr(message, "root", None), types.ToolListChangedNotification):
            self.heard.set()

    async def on_roots(self, _context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=self.declared)

    async def on_elicitation(self, _context: Any, params: Any) -> Any:
        return types.ElicitResult(**self.person.answer(params.message, params.requestedSchema))

    async def tools(self) -> dict[str, Any]:
        return {tool.name: tool for tool in (await self.session.list_tools()).tools}

    async def call(self, tool: types.Tool, arguments: dict[str, Any]) -> Any:
        result = await self.session.call_tool(tool.name, arguments)
        if result.isError:
            raise RuntimeError(str(result.content))
        return result


@asynccontextmanager
async def connect(
    job: Job, roots: list[types.Root] | None = None, person: Person | None = None
) -> AsyncIterator[Official]:
    if job.transport == "stdio":
        streams = stdio_client(StdioServerParameters(command=job.command, args=job.args))
    else:
        streams = (sse_client if job.transport == "sse" else streamablehttp_client)(job.url)
    official = Official(roots, person)
    asking = {} if person is None else {"elicitation_callback": official.on_elicitation}
    async with AsyncExitStack() as stack:
        read, write, *_ = await stack.enter_async_context(streams)
        official.session = await stack.enter_async_context(
            ClientSession(
                read,
                write,
                message_handler=official.on_message,
                list_roots_callback=None if roots is None else official.on_roots,
                **asking,
            )
        )
        official.revision = (await official.session.initialize()).protocolVersion
        yield official


if __name__ == "__main__":
    drive(connect, empty_roots=True, asks=lambda _job: {"can_ask": CAN_ASK})
