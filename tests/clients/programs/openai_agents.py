"""openai-agents: function tools with strict schemas, out of its three kinds of MCP servers."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from agents import FunctionTool
from agents.mcp import MCPServerSse, MCPServerStdio, MCPServerStreamableHttp, MCPUtil
from agents.tool_context import ToolContext
from mcp import types
from shared import Job, drive


class OpenAiAgents:
    def __init__(self, server: Any, heard: asyncio.Event | None) -> None:
        self.server = server
        self.heard = heard

    async def tools(self) -> dict[str, Any]:
        # Both of the ways it converts schemas.
        for tool in await self.server.list_tools():
            MCPUtil.to_function_tool(tool, self.server, False)
        converted = [
            MCPUtil.to_function_tool(tool, self.server, True, failure_error_function=None)
            for tool in await self.server.list_tools()
        ]
        return {tool.name: tool for tool in converted}

    async def call(self, tool: FunctionTool, arguments: dict[str, Any]) -> Any:
        given = json.dumps(arguments)
        context = ToolContext(None, tool_name=tool.name, tool_call_id="1", tool_arguments=given)
        return await tool.on_invoke_tool(context, given)


@asynccontextmanager
async def connect(job: Job) -> AsyncIterator[OpenAiAgents]:
    heard = asyncio.Event()

    async def on_message(message: Any) -> None:
        if isinstance(getattr(message, "root", message), types.ToolListChangedNotification):
            heard.set()

    if job.transport == "stdio":
        server: Any = MCPServerStdio({"command": job.command, "args": job.args}, message_handler=on_message)
    else:
        kind = MCPServerSse if job.transport == "sse" else MCPServerStreamableHttp
        server = kind({"url": job.url}, message_handler=on_message)
    async with server:
        # Without a handshake it would have to listen, which it does not.
        modern = server.server_initialize_result is None
        yield OpenAiAgents(server, None if modern else heard)


if __name__ == "__main__":
    drive(connect, asks=lambda _job: {"can_ask": False})
