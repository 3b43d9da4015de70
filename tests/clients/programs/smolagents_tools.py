"""smolagents, whose `MCPClient` is mcpadapt: tools of its own, listed once, when it connects."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import StdioServerParameters
from shared import Job, drive
from smolagents import MCPClient, Tool


class SmolAgents:
    heard = None

    def __init__(self, client: MCPClient) -> None:
        self.client = client

    async def tools(self) -> dict[str, Any]:
        return {tool.name: tool for tool in self.client.get_tools()}

    async def call(self, tool: Tool, arguments: dict[str, Any]) -> Any:
        return tool(**arguments)


@asynccontextmanager
async def connect(job: Job) -> AsyncIterator[SmolAgents]:
    if job.transport == "stdio":
        server: Any = StdioServerParameters(command=job.command, args=job.args)
    else:
        server = {"transport": "sse" if job.transport == "sse" else "streamable-http", "url": job.url}
    client = MCPClient(server, structured_output=True)
    try:
        yield SmolAgents(client)
    finally:
        client.disconnect()


if __name__ == "__main__":
    drive(connect, without={"changed"}, asks=lambda _job: {"can_ask": False})
