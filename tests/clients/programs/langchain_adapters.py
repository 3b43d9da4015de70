"""langchain-mcp-adapters: LangChain tools out of one session of `MultiServerMCPClient`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from langchain_mcp_adapters.callbacks import Callbacks
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from mcp import types
from shared import Job, Person, drive


class LangChain:
    def __init__(self, session: Any, heard: asyncio.Event, revision: str) -> None:
        self.revision = revision
        self.session = session
        self.heard = heard

    async def tools(self) -> dict[str, Any]:
        return {tool.name: tool for tool in await load_mcp_tools(self.session)}

    async def call(self, tool: Any, arguments: dict[str, Any]) -> Any:
        return await tool.ainvoke(arguments)


@asynccontextmanager
async def connect(
    job: Job, roots: list[types.Root] | None = None, person: Person | None = None
) -> AsyncIterator[LangChain]:
    heard = asyncio.Event()

    async def on_message(message: Any) -> None:
        if isinstance(getattr(message, "root", None), types.ToolListChangedNotification):
            heard.set()

    async def on_roots(_context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=roots)

    async def on_elicitation(_mcp_context: Any, params: Any, _context: Any) -> types.ElicitResult:
        return types.ElicitResult(**person.answer(params.message, params.requestedSchema))

    kwargs = {"message_handler": on_message, "list_roots_callback": None if roots is None else on_roots}
    if job.transport == "stdio":
        server: Any = {"transport": "stdio", "command": job.command, "args": job.args}
    else:
        server = {"transport": "sse" if job.transport == "sse" else "streamable_http", "url": job.url}
    callbacks = Callbacks(on_elicitation=None if person is None else on_elicitation)
    client = MultiServerMCPClient({"wharf": {**server, "session_kwargs": kwargs}}, callbacks=callbacks)
    async with client.session("wharf", auto_initialize=False) as session:
        yield LangChain(session, heard, (await session.initialize()).protocolVersion)


if __name__ == "__main__":
    drive(connect, empty_roots=True, asks=lambda _job: {})
