"""agent-framework: the functions of its MCP tools, which follow the server's list by themselves."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from agent_framework import FunctionTool, MCPStdioTool, MCPStreamableHTTPTool
from shared import Job, drive


class AgentFramework:
    heard = None
    # It lists again when it hears, and only then.
    follows = True

    def __init__(self, tool: Any) -> None:
        self.tool = tool

    async def tools(self) -> dict[str, Any]:
        return {function.name: function for function in self.tool.functions}

    async def call(self, function: FunctionTool, arguments: dict[str, Any]) -> Any:
        return [content.to_dict() for content in await function.invoke(arguments=arguments)]


@asynccontextmanager
async def connect(job: Job) -> AsyncIterator[AgentFramework]:
    if job.transport == "stdio":
        tool: Any = MCPStdioTool("wharf", job.command, args=job.args)
    else:
        tool = MCPStreamableHTTPTool("wharf", job.url)
    async with tool:
        yield AgentFramework(tool)


if __name__ == "__main__":
    drive(connect, asks=lambda _job: {"can_ask": False})
