"""agno: the functions of `MCPTools`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from agno.tools.function import Function, FunctionCall
from agno.tools.mcp import MCPTools
from mcp import StdioServerParameters
from shared import Job, drive


class Agno:
    heard = None

    def __init__(self, toolkit: MCPTools) -> None:
        self.toolkit = toolkit

    async def tools(self) -> dict[str, Any]:
        await self.toolkit.build_tools()
        return dict(self.toolkit.functions)

    async def call(self, function: Function, arguments: dict[str, Any]) -> Any:
        result = await FunctionCall(function=function, arguments=arguments).aexecute()
        if result.status != "success":
            raise RuntimeError(result.error)
        return result.result


@asynccontextmanager
async def connect(job: Job) -> AsyncIterator[Agno]:
    if job.transport == "stdio":
        toolkit = MCPTools(server_params=StdioServerParameters(command=job.command, args=job.args))
    else:
        toolkit = MCPTools(url=job.url, transport="sse" if job.transport == "sse" else "streamable-http")
    async with toolkit:
        yield Agno(toolkit)


if __name__ == "__main__":
    drive(connect, asks=lambda _job: {"can_ask": False})
