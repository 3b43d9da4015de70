"""Calls that a person has to approve: how a framework asks its person, and what becomes of the call. approval.mjs does the same."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from python_report import expect, expect_equal, expect_in, why

MODERN = "2026-07-28"
WRITE = "files_write_file"
CANNOT = (
    f"`{WRITE}` needs a person's approval, and this client cannot ask for one. "
    "The operator can change `confirm` in [plugins.files]."
)
NO = "The client answered no; nothing was run."


def choices(schema: dict[str, Any]) -> list[str]:
    """The values that the person may choose from, in either form of a choice."""
    remember = schema["properties"].get("remember", {})
    return [choice["const"] for choice in remember.get("oneOf", [])] or remember.get("enum", [])


class Person:
    """A person who answers as they were last told to, and keeps the questions."""

    def __init__(self) -> None:
        self.questions: list[tuple[str, list[str]]] = []
        self.reply: Callable[[list[str]], dict[str, Any]] | None = None

    def answer(self, message: str, schema: dict[str, Any]) -> dict[str, Any]:
        """What the framework's handler answers."""
        expect(self.reply is not None, f"nobody was to be asked: {message}")
        self.questions.append((message, choices(schema)))
        return self.reply(choices(schema))


def decline(_choices: list[str]) -> dict[str, Any]:
    return {"action": "decline"}


def accept(remember: str) -> Callable[[list[str]], dict[str, Any]]:
    return lambda choices: {"action": "accept", "content": {"remember": remember} if remember in choices else {}}


class Approval:
    """The checks. `connect(job, person=…, roots=…)` gives a client as `drive` wants it, which also says its `revision`; without a
    person it does not declare elicitation."""

    def __init__(self, job: Any, connect: Callable[..., Any], *, can_ask: bool, can_have_roots: bool) -> None:
        self.job = replace(job, **job.asked)
        self.connect = connect
        self.can_ask = can_ask
        self.can_have_roots = can_have_roots
        self.person = Person()

    def path(self, name: str) -> Path:
        return Path(self.job.root) / name

    async def refused(self, client: Any, tool: str, arguments: dict[str, Any]) -> str:
        """What is said of a call that is refused; some frameworks give the sentence of an error as any other text."""
        tools = await client.tools()
        try:
            # Some quote it once more.
            return str(await client.call(tools[tool], arguments)).replace("\\", "")
        except Exception as error:
            return why(error)

    async def write(self, client: Any, name: str, content: str) -> None:
        tools = await client.tools()
        await client.call(tools[WRITE], {"path": str(self.path(name)), "content": content})
        expect_equal(self.path(name).read_text(), content, name)

    async def asked(self, count: int, reply: Any, body: Awaitable[None]) -> None:
        """Lets the person answer so while something is done, and counts the questions."""
        before, self.person.reply = len(self.person.questions), reply
        await body
        self.person.reply = None
        expect_equal(len(self.person.questions) - before, count, "the number of questions")

    async def run(self) -> str:
        """What it returns is the revision, if the client can ask."""
        async with self.connect(self.job) as client:
            arguments = {"path": str(self.path("alone.txt")), "content": "alone"}
            expect_in(CANNOT, await self.refused(client, WRITE, arguments), "the refusal")
            expect(not self.path("alone.txt").exists(), "alone.txt is there")
        if not self.can_ask:
            return "cannot"
        revision = client.revision
        async with self.connect(self.job, person=self.person) as client:
            expect_equal(client.revision, revision, "the revision of the second client")
            await self.with_a_person(client, f"{revision}.txt")
        if self.can_have_roots:
            # Over stdio at the modern revision these are two rounds of one call: the roots, and then the person.
            async with self.connect(self.job, person=self.person, roots=[]) as client:
                await self.asked(1, accept("once"), self.write(client, f"{revision}.txt", "with roots"))
        return revision

    async def with_a_person(self, client: Any, name: str) -> None:
        await self.asked(1, decline, self.is_declined(client, WRITE, {"path": str(self.path(name)), "content": "no"}))
        expect(not self.path(name).exists(), f"{name} is there")
        message, _ = self.person.questions[0]
        for part in (f"run `{WRITE}` on ", self.job.root, '"no"'):
            expect_in(part, message, "the question")
        await self.asked(1, accept("once"), self.write(client, name, "once"))
        # Without a session, an anonymous client is nobody that can be known again.
        unknown = client.revision == MODERN and self.job.transport == "http"
        expect_equal(self.person.questions[1][1], [] if unknown else ["once", "session", "session-any"], "the choices")
        await self.asked(1, accept("session"), self.write(client, name, "session"))
        again = self.write(client, name, "again")
        await (self.asked(1, accept("session"), again) if unknown else self.asked(0, None, again))
        # Another tool is another kind of call.
        folder = self.path("folder")
        await self.asked(1, decline, self.is_declined(client, "files_create_directory", {"path": str(folder)}))
        expect(not folder.exists(), "the folder is there")

    async def is_declined(self, client: Any, tool: str, arguments: dict[str, Any]) -> None:
        expect_in(NO, await self.refused(client, tool, arguments), "the refusal")
