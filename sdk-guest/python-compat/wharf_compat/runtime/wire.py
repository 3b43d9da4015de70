"""The client's end of the server's standard input and output: JSON-RPC messages over memory, one request at a time."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from typing import Any

from wharf_sdk import _call
from wharf_sdk._call import Asked, Form, NotGiven, Sample, Url, _key, ask_all
from wharf_sdk._errors import Failure

from . import loop as loops

REVISION = "2025-06-18"
STATELESS = "2026-07-28"
"""The revision for servers that cannot list their tools by the other one. Their questions are results, and each request names the client."""
META = "io.modelcontextprotocol/"
CLIENT = {"name": "wharf", "version": "1"}
CAPABILITIES = {"elicitation": {}, "sampling": {}, "roots": {"listChanged": False}}
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
PROGRESS = "progress"


class RequestError(Exception):
    """The server answered with an error."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error.get("message", ""))
        self.code, self.message, self.data = error.get("code", -32603), error.get("message", ""), error.get("data")


class _Input:
    """What the server reads: an asynchronous iterator of lines."""

    def __init__(self) -> None:
        self.lines: deque[str] = deque()
        self.waiter: asyncio.Future[None] | None = None

    def __aiter__(self) -> _Input:
        return self

    async def __anext__(self) -> str:
        while not self.lines:
            self.waiter = asyncio.get_running_loop().create_future()
            await self.waiter
        return self.lines.popleft()

    def push(self, message: dict[str, Any]) -> None:
        self.lines.append(json.dumps(message, ensure_ascii=False))
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)


class _Output:
    """What the server writes to: takes whole lines."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire

    async def write(self, text: str) -> int:
        for line in text.splitlines():
            if line.strip():
                self.wire.received(json.loads(line))
        return len(text)

    async def flush(self) -> None:
        pass


class Wire:
    """A connection to the server."""

    def __init__(self) -> None:
        self.input, self.output = _Input(), _Output(self)
        self.opened = False
        self.meta: dict[str, Any] | None = None
        """What each request says of the client; None if it was said once."""
        self.number = 0
        self.pending: asyncio.Future[Any] | None = None
        self.asked: BaseException | None = None
        self.changed: set[str] = set()

    def waits(self) -> bool:
        return self.opened and self.input.waiter is not None and not self.input.lines

    def received(self, message: dict[str, Any]) -> None:
        """Takes a message of the server."""
        if "method" not in message:
            self._answered(message)
        elif "id" not in message:
            self._notified(message["method"], message.get("params") or {})
        else:
            self._requested(message)

    def _answered(self, message: dict[str, Any]) -> None:
        if self.pending is None or self.pending.done() or message.get("id") != self.number:
            return
        if "error" in message:
            self.pending.set_exception(RequestError(message["error"]))
        else:
            self.pending.set_result(message.get("result") or {})

    def _notified(self, method: str, params: dict[str, Any]) -> None:
        if _call.current is None:
            return
        host = _call.host
        if host is None:
            return
        if method == "notifications/message":
            data, level = params.get("data"), params.get("level", "info")
            if isinstance(data, dict) and set(data) == {"msg", "extra"}:
                message, more = str(data["msg"]), data["extra"]
            else:
                message, more = (data, None) if isinstance(data, str) else (json.dumps(data, ensure_ascii=False), None)
            host.log(level if level in LEVELS else "info", message, None if more is None else json.dumps(more))
        elif method == "notifications/progress":
            host.progress(float(params.get("progress", 0)), params.get("total"), params.get("message"))
        elif method.endswith("/list_changed"):
            kind = method.split("/")[1]
            if kind in ("tools", "resources", "prompts"):
                self.changed.add(kind)
                host.list_changed(kind)  # type: ignore[arg-type]
        elif method == "notifications/resources/updated":
            host.resource_updated(str(params.get("uri", "")))

    def _requested(self, message: dict[str, Any]) -> None:
        """Answers a request of the server: wharf asks the client, which ends this call until the answer is there."""
        try:
            self.input.push({"jsonrpc": "2.0", "id": message["id"], "result": _ask(message["method"], message.get("params") or {})})
        except Asked as asked:
            self.asked = asked
            if self.pending is not None and not self.pending.done():
                self.pending.set_result(None)
        except (Failure, RuntimeError) as problem:
            error = {"code": -32603, "message": str(problem)}
            self.input.push({"jsonrpc": "2.0", "id": message["id"], "error": error})

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Sends a request, and drives the server until it has answered."""
        if self.meta is None:
            return self._request(method, params)
        params = {**params, "_meta": {**(params.get("_meta") or {}), **self.meta}}
        while True:
            result = self._request(method, params)
            if result.get("resultType") != "input_required":
                return result
            asked = result.get("inputRequests") or {}
            params["inputResponses"] = {key: _ask(one["method"], one.get("params") or {}) for key, one in asked.items()}
            if "requestState" in result:
                params["requestState"] = result["requestState"]

    def _request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        loop = loops.main()
        self.number += 1
        self.pending, self.asked = loop.create_future(), None
        self.input.push({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        try:
            result = loop.run_until_complete(self.pending)
        except loops.Idle as problem:
            raise Failure(f"The server does not answer: {problem}.") from None
        if self.asked is not None:
            self._cancel()
            raise self.asked
        return result

    def _cancel(self) -> None:
        """Lets the server give up the request that asked a question: it is sent again when the answer is there."""
        self.input.push(
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": self.number, "reason": "a question"}}
        )
        asked, self.asked = self.asked, None
        try:
            loops.main().run_until_complete(_settled())
        except loops.Idle:
            pass
        self.asked = asked

    def notify(self, method: str) -> None:
        self.input.push({"jsonrpc": "2.0", "method": method})

    def open(self, stateless: bool) -> dict[str, Any]:
        """Greets the server, and returns what it said about itself."""
        if stateless:
            self.meta = {
                f"{META}protocolVersion": STATELESS, f"{META}clientInfo": CLIENT, f"{META}clientCapabilities": CAPABILITIES,
                f"{META}logLevel": "debug",
            }  # fmt: skip
            return self.request("server/discover", {})
        said = self.request("initialize", {"protocolVersion": REVISION, "capabilities": CAPABILITIES, "clientInfo": CLIENT})
        self.notify("notifications/initialized")
        return said


async def _settled() -> None:
    """Gives the server's tasks the turns that they need to take a cancellation."""
    for _ in range(20):
        await asyncio.sleep(0)


def _ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "ping":
        return {}
    if method == "roots/list":
        return {"roots": [{"uri": one.uri, **({"name": one.name} if one.name else {})} for one in _asked(_call.Roots())]}
    if method == "elicitation/create":
        if params.get("mode") == "url" or "url" in params:
            found = _asked(Url(params.get("message", ""), params["url"]))
        else:
            found = _asked(Form(params.get("message", ""), params.get("requestedSchema") or {"type": "object", "properties": {}}))
        if isinstance(found, NotGiven):
            return {"action": "decline" if found.how == "declined" else "cancel"}
        return {"action": "accept", **({"content": found} if isinstance(found, dict) else {})}
    if method == "sampling/createMessage":
        more = {key: value for key, value in params.items() if key not in ("messages", "maxTokens", "systemPrompt", "_meta")}
        found = _asked(Sample(params["messages"], params.get("maxTokens", 1000), params.get("systemPrompt"), more))
        if isinstance(found, NotGiven):
            raise Failure("The client's user does not allow this request to its model.")
        return dict(found.result)
    raise Failure(f"wharf does not pass on `{method}`")


def _asked(question: Any) -> Any:
    call = _call.current
    if call is None:
        raise Failure("the client can be asked only while a call runs")
    key = _key(question, call)
    return ask_all({key: question})[key]
