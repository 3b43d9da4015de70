"""strands-agents: the tools of its `MCPClient`, which lives in a thread of its own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import StdioServerParameters, types
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from shared import Job, Person, drive
from strands.tools.mcp import MCPClient


class Strands:
    def __init__(self, client: MCPClient, heard: asyncio.Event) -> None:
        self.client = client
        self.heard = heard
        # The library tells nobody what was agreed on.
        self.revision = client._background_thread_session.protocol_version

    async def tools(self) -> dict[str, Any]:
        tools = await asyncio.to_thread(self.client.list_tools_sync)
        # `tool_spec` is what a model would get.
        return {tool.tool_spec["name"]: tool for tool in tools}

    async def call(self, tool: Any, arguments: dict[str, Any]) -> Any:
        use = {"toolUseId": "1", "name": tool.tool_name, "input": arguments}
        result = [event async for event in tool.stream(use, {})][-1].tool_result
        if result["status"] != "success":
            raise RuntimeError(str(result))
        return result


@asynccontextmanager
async def connect(job: Job, person: Person | None = None) -> AsyncIterator[Strands]:
    heard, loop = asyncio.Event(), asyncio.get_running_loop()
    more: dict[str, Any] = {"on_tools_changed": lambda _old, _new: loop.call_soon_threadsafe(heard.set)}

    async def on_elicitation(_context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(**person.answer(params.message, params.requested_schema))

    if person is not None:
        more["elicitation_callback"] = on_elicitation
    if job.transport == "stdio":
        parameters = StdioServerParameters(command=job.command, args=job.args)
        client = MCPClient(lambda: stdio_client(parameters), **more)
    elif job.transport == "sse":
        client = MCPClient(lambda: sse_client(job.url), **more)
    else:
        client = MCPClient(url=job.url, **more)
    await asyncio.to_thread(client.start)
    try:
        yield Strands(client, heard)
    finally:
        await asyncio.to_thread(client.stop, None, None, None)


if __name__ == "__main__":
    drive(connect, asks=lambda _job: {})
