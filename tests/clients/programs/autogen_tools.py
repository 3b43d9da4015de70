"""autogen-ext: AutoGen tools, whose arguments are pydantic models made out of the schemas."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from autogen_core import CancellationToken
from autogen_ext.tools.mcp import (
    SseServerParams,
    StdioServerParams,
    StreamableHttpServerParams,
    create_mcp_server_session,
    mcp_server_tools,
)
from shared import Job, drive


class AutoGen:
    heard = None

    def __init__(self, params: Any, session: Any) -> None:
        self.params = params
        self.session = session

    async def tools(self) -> dict[str, Any]:
        return {tool.name: tool for tool in await mcp_server_tools(self.params, session=self.session)}

    async def call(self, tool: Any, arguments: dict[str, Any]) -> Any:
        return await tool.run_json(arguments, CancellationToken())


@asynccontextmanager
async def connect(job: Job) -> AsyncIterator[AutoGen]:
    if job.transport == "stdio":
        params: Any = StdioServerParams(command=job.command, args=job.args)
    else:
        params = (SseServerParams if job.transport == "sse" else StreamableHttpServerParams)(url=job.url)
    async with create_mcp_server_session(params) as session:
        await session.initialize()
        yield AutoGen(params, session)


if __name__ == "__main__":
    drive(connect, asks=lambda _job: {"can_ask": False})
