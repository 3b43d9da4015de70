"""The connection to a server that is asked by revision 2026-07-28: each request names the client, and questions are results."""

from __future__ import annotations

import asyncio
import json
import unittest
from typing import Any

from wharf_compat.runtime import loop as loops
from wharf_compat.runtime.wire import META, STATELESS, Wire
from wharf_sdk import _call
from wharf_sdk._call import Answer, Asked, Call

QUESTION = {"method": "elicitation/create", "params": {"message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}}}


class StatelessTests(unittest.TestCase):
    def setUp(self) -> None:
        self.wire, self.requests = Wire(), []
        task = loops.main().create_task(self.serve())
        self.addCleanup(task.cancel)

    async def serve(self) -> None:
        async for line in self.wire.input:
            message = json.loads(line)
            if "id" not in message:
                continue
            self.requests.append(message)
            await asyncio.sleep(0)
            self.wire.received({"jsonrpc": "2.0", "id": message["id"], "result": self.answer(message["method"], message["params"])})

    def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "server/discover":
            return {"capabilities": {"tools": {}}}
        if "inputResponses" not in params:
            return {"resultType": "input_required", "inputRequests": {"q": QUESTION}, "requestState": "one"}
        return {"resultType": "complete", "content": [], "structuredContent": [params["inputResponses"]["q"], params["requestState"]]}

    def test_each_request_names_the_client_and_a_question_is_asked(self) -> None:
        self.assertEqual(self.wire.open(True), {"capabilities": {"tools": {}}})
        known: dict[str, Answer] = {}
        _call.current = call = Call(known)
        self.addCleanup(setattr, _call, "current", None)
        with self.assertRaises(Asked):
            self.wire.request("tools/call", {"name": "go", "_meta": {"progressToken": 1}})
        (key,) = call.asked
        known[key] = Answer("accepted", '{"sure":true}')
        # wharf runs the call again when the answer is there.
        _call.current = Call(known)
        found = self.wire.request("tools/call", {"name": "go", "_meta": {"progressToken": 1}})
        self.assertEqual(found["structuredContent"], [{"action": "accept", "content": {"sure": True}}, "one"])
        for request in self.requests:
            self.assertEqual(request["params"]["_meta"][f"{META}protocolVersion"], STATELESS)
        self.assertEqual(self.requests[-1]["params"]["_meta"]["progressToken"], 1)


class AskingTests(unittest.TestCase):
    """A tool that asked goes on when the answer is there."""

    def setUp(self) -> None:
        self.wire, self.starts, self.questions = Wire(), 0, 0
        self.answers: dict[str, asyncio.Future[Any]] = {}
        self.tools: list[asyncio.Task[None]] = [loops.main().create_task(self.serve())]
        self.addCleanup(lambda: [task.cancel() for task in self.tools])
        self.addCleanup(setattr, _call, "current", None)

    async def serve(self) -> None:
        async for line in self.wire.input:
            message = json.loads(line)
            if "method" in message:
                self.tools.append(asyncio.get_running_loop().create_task(self.tool(message)))
            else:
                self.answers[message["id"]].set_result(message["result"]["action"])

    async def tool(self, message: dict[str, Any]) -> None:
        self.starts += 1
        actions = []
        for _ in range(message["params"]["questions"]):
            self.questions += 1
            name = f"q{self.questions}"
            self.answers[name] = asyncio.get_running_loop().create_future()
            self.wire.received({"jsonrpc": "2.0", "id": name, **QUESTION})
            actions.append(await self.answers[name])
        self.wire.received({"jsonrpc": "2.0", "id": message["id"], "result": {"actions": actions}})

    def call(self, known: dict[str, Answer], questions: int) -> Any:
        _call.current = self.current = Call(known)
        return self.wire.request("tools/call", {"questions": questions, "_meta": {"progressToken": self.wire.number}})

    def test_a_tool_goes_on_where_it_asked(self) -> None:
        known: dict[str, Answer] = {}
        for answer in ("accepted", "declined"):
            with self.assertRaises(Asked):
                self.call(known, 2)
            (key,) = self.current.asking
            self.assertEqual(self.call({}, 0), {"actions": []}, "another call, while a person thinks")
            known[key] = Answer(answer, "{}")
        self.assertEqual(self.call(known, 2), {"actions": ["accept", "decline"]})
        self.assertEqual(self.starts, 3)
        with self.assertRaises(Asked):
            self.call({}, 2)
        self.assertEqual(self.starts, 4, "the same call another time")
