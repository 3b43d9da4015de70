"""semantic-kernel: the functions of an MCP plugin, invoked by a kernel."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import types
from semantic_kernel import Kernel
from semantic_kernel.connectors.mcp import MCPSsePlugin, MCPStdioPlugin, MCPStreamableHttpPlugin
from semantic_kernel.functions import KernelArguments, KernelFunction
from shared import Job, drive


class SemanticKernel:
    def __init__(self, plugin: Any, heard: asyncio.Event | None) -> None:
        self.plugin = plugin
        self.heard = heard
        self.kernel = Kernel()

    async def tools(self) -> dict[str, Any]:
        # The plugin keeps what it listed; only an announcement makes it list again.
        return dict(self.kernel.add_plugin(self.plugin).functions)

    async def call(self, function: KernelFunction, arguments: dict[str, Any]) -> Any:
        result = await self.kernel.invoke(function, KernelArguments(**arguments))
        return [str(content) for content in result.value]


def hearing(kind: type, heard: asyncio.Event) -> type:
    """The plugin, with a handler as its documentation proposes one."""

    class Hearing(kind):  # type: ignore[misc, valid-type]
        async def message_handler(self, message: Any) -> None:
            if not isinstance(getattr(message, "root", None), types.ToolListChangedNotification):
                await super().message_handler(message)
                return
            # What it does itself lists from within the loop that would have to read the answer, and so waits forever.
            self.listing = asyncio.create_task(self.load_tools())
            self.listing.add_done_callback(lambda _: heard.set())

    return Hearing


@asynccontextmanager
async def connect(job: Job) -> AsyncIterator[SemanticKernel]:
    heard = asyncio.Event()
    if job.transport == "stdio":
        plugin = hearing(MCPStdioPlugin, heard)("wharf", command=job.command, args=job.args)
    else:
        plugin = hearing(MCPSsePlugin if job.transport == "sse" else MCPStreamableHttpPlugin, heard)("wharf", url=job.url)
    async with plugin:
        yield SemanticKernel(plugin, heard)


if __name__ == "__main__":
    drive(connect, asks=lambda _job: {"can_ask": False})
