"""google-genai: function declarations out of a session of the official SDK, which it leaves to its user to open."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp_v2
from google.genai import types
from google.genai._adapters import McpToGenAiToolAdapter
from shared import Job, drive


class GoogleGenAi:
    def __init__(self, official: mcp_v2.Official) -> None:
        self.official = official
        self.heard: asyncio.Event | None = official.heard
        self.adapter: McpToGenAiToolAdapter

    async def tools(self) -> dict[str, Any]:
        session = self.official.client.session
        self.adapter = McpToGenAiToolAdapter(session, await session.list_tools())
        return {one.name: one for tool in self.adapter.tools for one in tool.function_declarations}

    async def call(self, tool: types.FunctionDeclaration, arguments: dict[str, Any]) -> Any:
        result = await self.adapter.call_tool(types.FunctionCall(name=tool.name, args=arguments))
        if result.is_error:
            raise RuntimeError(str(result.content))
        return result


@asynccontextmanager
async def connect(job: Job) -> AsyncIterator[GoogleGenAi]:
    async with mcp_v2.connect(job) as official:
        yield GoogleGenAi(official)


if __name__ == "__main__":
    drive(connect)
