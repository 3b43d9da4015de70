"""The Python package `mcp`, 1.x or 2.x, with its own way to log in. It does what the lines on its input tell, and ends with them.

    python python_client.py JOB        (JOB is JSON, written by python.mjs)
"""

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from importlib.metadata import version
from typing import Any

from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

OLD = version("mcp").startswith("1.")
if OLD:
    from mcp import ClientSession
else:
    from mcp import Client
    from mcp.client.auth import AuthorizationCodeResult


def say(message: dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)


class Storage:
    """What an application keeps for the library."""

    def __init__(self, client: OAuthClientInformationFull | None, tokens: OAuthToken | None) -> None:
        self.tokens = tokens
        self.client = client

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Dancer:
    def __init__(self, job: dict[str, Any], stack: AsyncExitStack) -> None:
        self.job = job
        self.stack = stack
        self.called: asyncio.Queue[dict[str, str]] = asyncio.Queue()
        # What has `call_tool`.
        self.client: Any
        known = job.get("client")
        info = None
        if known is not None:
            info = OAuthClientInformationFull.model_validate({**known, "issuer": job["issuer"]})
        kept = job.get("tokens")
        self.storage = Storage(info, None if kept is None else OAuthToken.model_validate(kept))

    async def visit(self, url: str) -> None:
        say({"visit": url})

    async def back(self) -> Any:
        called = await self.called.get()
        if "code" not in called:
            raise RuntimeError(f"the provider did not agree: {called}")
        if OLD:
            return called["code"], called.get("state")
        return AuthorizationCodeResult(code=called["code"], state=called.get("state"), iss=called.get("iss"))

    async def connect(self) -> None:
        login = OAuthClientProvider(
            server_url=self.job["url"],
            client_metadata=OAuthClientMetadata.model_validate(
                {
                    "client_name": "login-dance",
                    "redirect_uris": [self.job["redirect"]],
                    "grant_types": ["authorization_code", "refresh_token"],
                    "response_types": ["code"],
                    "token_endpoint_auth_method": "none",
                    "application_type": "native",
                }
            ),
            storage=self.storage,
            redirect_handler=self.visit,
            callback_handler=self.back,
        )
        # What fails in here ends in here, and not with the program.
        async with AsyncExitStack() as own:
            http = await own.enter_async_context(create_mcp_http_client(auth=login))
            transport = streamable_http_client(self.job["url"], http_client=http)
            if OLD:
                read, write, _ = await own.enter_async_context(transport)
                self.client = await own.enter_async_context(ClientSession(read, write))
                await self.client.initialize()
            else:
                mode = "auto" if self.job["modern"] else "legacy"
                self.client = await own.enter_async_context(Client(transport, mode=mode))
            self.stack.push_async_exit(own.pop_all())

    async def call(self, message: dict[str, Any]) -> str:
        result = await self.client.call_tool(message["tool"], message["arguments"])
        if result.isError if OLD else result.is_error:
            raise RuntimeError(str(result.content))
        return str(result.content)

    async def do(self, message: dict[str, Any]) -> Any:
        match message["do"]:
            case "connect":
                return await self.connect()
            case "call":
                return await self.call(message)
            case "together":
                return await asyncio.gather(*(self.call(message) for _ in range(message["count"])))
            case "tokens":
                tokens = self.storage.tokens
                return None if tokens is None else tokens.model_dump(mode="json")
            case other:
                raise RuntimeError(f"there is no {other}")


def why(error: BaseException) -> str:
    """The sentences in an error, which may be a group of them."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(why(one) for one in error.exceptions)
    return f"{type(error).__name__}: {error}"


async def read(dancer: Dancer, steps: asyncio.Queue[dict[str, Any] | None]) -> None:
    """Sorts what comes in: steps to do, and what the provider called back with, for which a step may be waiting."""
    reader = asyncio.StreamReader(limit=1 << 20)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async for line in reader:
        message = json.loads(line)
        if "called" in message:
            dancer.called.put_nowait(message["called"])
        else:
            steps.put_nowait(message)
    steps.put_nowait(None)


async def main() -> None:
    steps: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
    async with AsyncExitStack() as stack:
        dancer = Dancer(json.loads(sys.argv[1]), stack)
        reading = asyncio.create_task(read(dancer, steps))
        while (message := await steps.get()) is not None:
            try:
                say({"ok": True, "value": await dancer.do(message)})
            except Exception as error:
                say({"ok": False, "why": why(error)})
        await reading


asyncio.run(main())
