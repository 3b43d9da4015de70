"""pydantic-ai: the tools of an `MCPToolset`, which is a client of fastmcp."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastmcp_client import asking, transport_of
from mcp import types
from pydantic_ai import RunContext
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RunUsage
from shared import Job, Person, drive


class PydanticAi:
    def __init__(self, toolset: MCPToolset, heard: asyncio.Event | None) -> None:
        self.toolset = toolset
        self.heard = heard
        self.revision = toolset.client.protocol_version
        # A run without a model of anybody's.
        self.context = RunContext(deps=None, model=TestModel(), usage=RunUsage())

    async def tools(self) -> dict[str, Any]:
        return await self.toolset.get_tools(self.context)

    async def call(self, tool: Any, arguments: dict[str, Any]) -> Any:
        return await self.toolset.call_tool(tool.tool_def.name, arguments, self.context, tool)


@asynccontextmanager
async def connect(job: Job, person: Person | None = None, **roots: Any) -> AsyncIterator[PydanticAi]:
    heard = asyncio.Event()

    async def on_message(message: Any) -> None:
        if isinstance(getattr(message, "root", message), types.ToolListChangedNotification):
            heard.set()

    toolset: MCPToolset = MCPToolset(
        transport_of(job), tool_error_behavior="error", message_handler=on_message, **asking(person), **roots
    )
    async with toolset:
        if toolset.client.initialize_result is None:
            # Without a handshake it never hears of a change, and must not keep the list.
            toolset.cache_tools = False
            yield PydanticAi(toolset, None)
        else:
            yield PydanticAi(toolset, heard)


if __name__ == "__main__":
    drive(connect, empty_roots=True, asks=lambda _job: {})
