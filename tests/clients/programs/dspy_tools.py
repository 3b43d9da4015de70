"""dspy: its tools out of a session of the official SDK, which it leaves to its user to open."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import dspy
import mcp_v2
from shared import Job, drive


class DsPy:
    def __init__(self, official: mcp_v2.Official) -> None:
        self.official = official
        self.heard: asyncio.Event | None = official.heard

    async def tools(self) -> dict[str, Any]:
        session = self.official.client.session
        listed = (await self.official.tools()).values()
        return {tool.name: dspy.Tool.from_mcp_tool(session, tool) for tool in listed}

    async def call(self, tool: dspy.Tool, arguments: dict[str, Any]) -> Any:
        return await tool.acall(**arguments)


@asynccontextmanager
async def connect(job: Job) -> AsyncIterator[DsPy]:
    async with mcp_v2.connect(job) as official:
        yield DsPy(official)


if __name__ == "__main__":
    drive(connect)
