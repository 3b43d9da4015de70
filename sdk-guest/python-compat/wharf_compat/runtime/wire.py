"""The client's end of the server's standard input and output: JSON-RPC messages over memory, one request at a time."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from dataclasses import dataclass, field
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
MOST_WAITING = 16
"""How many requests wait for answers of the client."""


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


@dataclass
class _Sent:
    """A request to the server."""

    number: int
    reply: asyncio.Future[Any]
    asked: list[dict[str, Any]] = field(default_factory=list)
    """The server's own requests that wait for answers of the client."""
    counts: dict[str, int] = field(default_factory=dict)
    """How often each question had been asked before these."""


class Wire:
    """A connection to the server."""

    def __init__(self) -> None:
        self.input, self.output = _Input(), _Output(self)
        self.opened = False
        self.meta: dict[str, Any] | None = None
        """What each request says of the client; None if it was said once."""
        self.number = 0
        self.replies: dict[int, asyncio.Future[Any]] = {}
        """The answers to come, by the numbers of the requests."""
        self.waiting: dict[str, _Sent] = {}
        """Requests that wait for answers of the client, by what they ask the server for. The call with the answers goes on with such a
        request, unless it has another instance: there the tool runs again from its start."""
        self.sent: _Sent | None = None
        self.stop: asyncio.Future[None] | None = None
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
        reply = self.replies.get(message.get("id", 0))
        if reply is None or reply.done():
            return
        if "error" in message:
            reply.set_exception(RequestError(message["error"]))
        else:
            reply.set_result(message.get("result") or {})

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
        counts = dict(_call.current.asked) if _call.current is not None else {}
        try:
            self.input.push({"jsonrpc": "2.0", "id": message["id"], "result": _ask(message["method"], message.get("params") or {})})
        except Asked as asked:
            self.asked = asked
            if self.sent is not None:
                self.sent.counts = self.sent.counts if self.sent.asked else counts
                self.sent.asked.append(message)
            if self.stop is not None and not self.stop.done():
                self.stop.set_result(None)
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
        what = json.dumps([method, {key: value for key, value in params.items() if key != "_meta"}])
        sent = self.waiting.pop(what, None)
        self.asked, self.stop = None, loop.create_future()
        if sent is None:
            self.number += 1
            self.sent = sent = _Sent(self.number, loop.create_future())
            self.input.push({"jsonrpc": "2.0", "id": sent.number, "method": method, "params": params})
        else:
            # The call has the answers, so the server goes on where it asked.
            self.sent, asked, sent.asked = sent, sent.asked, []
            if _call.current is not None:
                _call.current.asked.update(sent.counts)
            for message in asked:
                self._requested(message)
        self.replies[sent.number] = sent.reply
        try:
            loop.run_until_complete(asyncio.wait([sent.reply, self.stop], return_when=asyncio.FIRST_COMPLETED))
        except loops.Idle as problem:
            del self.replies[sent.number]
            raise Failure(f"The server does not answer: {problem}.") from None
        if self.asked is not None and not sent.reply.done():
            self.waiting[what] = sent
            if len(self.waiting) > MOST_WAITING:
                self._give_up(self.waiting.pop(next(iter(self.waiting))).number)
            raise self.asked
        del self.replies[sent.number]
        result: dict[str, Any] = sent.reply.result()
        return result

    def _give_up(self, number: int) -> None:
        """Ends the tool that waits for an answer which nobody has sent, and of which too many wait."""
        del self.replies[number]
        self.notify("notifications/cancelled", {"requestId": number})

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        self.input.push({"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})})

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
