"""llama-index-tools-mcp: function tools of `McpToolSpec`; each list and each call is a session of its own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from llama_index.core.tools import FunctionTool
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec
from shared import Job, drive


class LlamaIndex:
    heard = None

    def __init__(self, client: BasicMCPClient) -> None:
        self.spec = McpToolSpec(client=client)

    async def tools(self) -> dict[str, Any]:
        return {tool.metadata.name: tool for tool in await self.spec.to_tool_list_async()}

    async def call(self, tool: FunctionTool, arguments: dict[str, Any]) -> Any:
        output = await tool.acall(**arguments)
        if output.is_error or output.raw_output.is_error:
            raise RuntimeError(output.content)
        return output.content


@asynccontextmanager
async def connect(job: Job) -> AsyncIterator[LlamaIndex]:
    if job.transport == "stdio":
        yield LlamaIndex(BasicMCPClient(job.command, args=job.args))
    else:
        yield LlamaIndex(BasicMCPClient(job.url))


if __name__ == "__main__":
    drive(connect, asks=lambda _job: {"can_ask": False})
