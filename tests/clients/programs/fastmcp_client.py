"""fastmcp: its `Client`, which speaks 2026-07-28 where the server does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport
from mcp import types
from shared import Job, Person, drive


def transport_of(job: Job) -> Any:
    if job.transport == "stdio":
        return StdioTransport(job.command, job.args)
    return (SSETransport if job.transport == "sse" else StreamableHttpTransport)(job.url)


def asking(person: Person | None) -> dict[str, Any]:
    """How a client of fastmcp is told whom it can ask. It makes a class of the form, which the answer is an object of."""

    async def handler(message: str, form: Any, params: Any, _context: Any) -> ElicitResult:
        answer = person.answer(message, params.requested_schema)
        content = answer.get("content")
        if form is not None and content is not None:
            content = form(**content)
        return ElicitResult(action=answer["action"], content=content)

    return {} if person is None else {"elicitation_handler": handler}


class FastMcp:
    revision: str | None

    def __init__(self, job: Job, **how: Any) -> None:
        self.heard: asyncio.Event | None = asyncio.Event()
        self.client = Client(transport_of(job), message_handler=self.on_message, **how)

    async def on_message(self, message: Any) -> None:
        if isinstance(getattr(message, "root", message), types.ToolListChangedNotification) and self.heard:
            self.heard.set()

    async def tools(self) -> dict[str, Any]:
        return {tool.name: tool for tool in await self.client.list_tools()}

    async def call(self, tool: Any, arguments: dict[str, Any]) -> Any:
        # It raises where the result is an error.
        return await self.client.call_tool(tool.name, arguments)


@asynccontextmanager
async def connect(job: Job, person: Person | None = None, **roots: Any) -> AsyncIterator[FastMcp]:
    fastmcp = FastMcp(job, **asking(person), **roots)
    async with fastmcp.client:
        fastmcp.revision = fastmcp.client.protocol_version
        if fastmcp.client.initialize_result is None:
            # Without a handshake it would have to listen, which it cannot.
            fastmcp.heard = None
        yield fastmcp


if __name__ == "__main__":
    drive(connect, empty_roots=True, asks=lambda _job: {})
