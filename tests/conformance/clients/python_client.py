"""The checks by the Python package `mcp`: its handshake (`legacy`), 2026-07-28, or whichever it finds (`auto`).

    python python_client.py MODE (--url URL | --bin WHARF --config FILE)
"""

import argparse
import json
import sys
import time
from pathlib import Path

import anyio
from mcp import Client, StdioServerParameters, types

# Nothing is written next to the sources.
sys.dont_write_bytecode = True
from python_report import SOON, STEP, check, expect, expect_equal, expect_in, report, soon, why  # noqa: E402

FIXTURE = json.loads(Path(__file__).with_name("fixture.json").read_text(encoding="utf-8"))
MODERN = "2026-07-28"
REVISIONS = {"legacy": "2025-11-25", "auto": MODERN, MODERN: MODERN}
# More calls than the plugin may have at once, so that they hold up the next one if they are not cancelled.
MANY = 24


def text_of(result):
    return "\n".join(block.text for block in result.content if block.type == "text")


def fine(result):
    expect(not result.is_error, f"the result is an error: {text_of(result)}")
    return text_of(result)


class Checks:
    def __init__(self, mode, server):
        self.mode = mode
        self.modern = REVISIONS[mode] == MODERN
        self.questions = []
        self.announced = 0
        self.client = Client(
            server,
            mode=mode,
            read_timeout_seconds=STEP,
            elicitation_callback=self.on_elicitation,
            sampling_callback=self.on_sampling,
            list_roots_callback=self.on_roots,
            message_handler=self.on_message,
        )

    # What the client answers to the server.

    async def on_elicitation(self, _context, params):
        self.questions.append(params)
        person = FIXTURE["person"]
        fields = params.requested_schema["properties"]
        return types.ElicitResult(action="accept", content={name: person[name] for name in fields})

    async def on_sampling(self, _context, params):
        self.questions.append(params)
        answer = types.TextContent(type="text", text=FIXTURE["modelAnswer"])
        return types.CreateMessageResult(role="assistant", model=FIXTURE["model"], content=answer)

    async def on_roots(self, _context):
        self.questions.append("roots")
        return types.ListRootsResult(roots=[types.Root(**FIXTURE["root"])])

    async def on_message(self, message):
        if isinstance(message, types.ToolListChangedNotification):
            self.announced += 1

    async def ask(self, tool, arguments):
        """The text of the tool's result, and what was asked meanwhile."""
        self.questions = []
        text = fine(await self.client.call_tool(tool, arguments))
        return text, self.questions

    # The checks.

    async def revision(self):
        expect_equal(self.client.protocol_version, REVISIONS[self.mode], "the negotiated revision")
        if self.mode == MODERN:
            # This mode takes the server at its word; so it is asked here.
            raw = await self.client.session.send_discover(MODERN)
            expect_equal(raw["supportedVersions"].count(MODERN), 1, f"its count among {raw['supportedVersions']}")
            info = raw["_meta"]["io.modelcontextprotocol/serverInfo"]
            expect_equal(info["name"], FIXTURE["server"], "the server's name")
        else:
            expect_equal(self.client.server_info.name, FIXTURE["server"], "the server's name")

    def listed(self, kind, names):
        missing = [name for name in FIXTURE[kind] if name not in names]
        expect(not missing, f"missing {missing} among {names}")
        expect_equal(names[0], FIXTURE[kind][0], "the first one")
        expect_equal(len(set(names)), len(names), "the number of different names")

    async def tools(self):
        tools = (await self.client.list_tools()).tools
        self.listed("tools", [tool.name for tool in tools])
        bad = [tool.name for tool in tools if not tool.description or tool.input_schema.get("type") != "object"]
        expect_equal(bad, [], "the list of tools without description or object schema")

    async def resources(self):
        self.listed("resources", [str(entry.uri) for entry in (await self.client.list_resources()).resources])

    async def templates(self):
        templates = (await self.client.list_resource_templates()).resource_templates
        self.listed("templates", [template.uri_template for template in templates])

    async def prompts(self):
        self.listed("prompts", [prompt.name for prompt in (await self.client.list_prompts()).prompts])

    async def call(self):
        result = await self.client.call_tool("test_simple_text", {})
        expect_equal(fine(result), FIXTURE["simpleText"], "the text")
        expect_equal(len(result.content), 1, "the number of blocks")

    async def read(self):
        wanted = FIXTURE["staticText"]
        [piece] = (await self.client.read_resource(wanted["uri"])).contents
        expect_equal({"uri": str(piece.uri), "mimeType": piece.mime_type, "text": piece.text}, wanted, "the resource")

    async def read_template(self):
        wanted = FIXTURE["template"]
        [piece] = (await self.client.read_resource(wanted["uri"])).contents
        expect_equal([str(piece.uri), piece.mime_type], [wanted["uri"], wanted["mimeType"]], "URI and MIME type")
        expect_equal(json.loads(piece.text)["id"], wanted["id"], "the id in the text")

    async def prompt(self):
        wanted = FIXTURE["prompt"]
        messages = (await self.client.get_prompt(wanted["name"], wanted["arguments"])).messages
        expect_equal(messages[0].role, "user", "the first role")
        text = "\n".join(getattr(message.content, "text", "") for message in messages)
        for value in wanted["arguments"].values():
            expect_in(value, text, "the prompt")

    async def complete(self):
        argument, typed = FIXTURE["completion"]["argument"], FIXTURE["completion"]["typed"]
        reference = types.PromptReference(type="ref/prompt", name=FIXTURE["prompt"]["name"])
        values = (await self.client.complete(reference, {"name": argument, "value": typed})).completion.values
        expect(1 <= len(values) <= 100, f"{len(values)} values")
        for value in values:
            expect_in(typed, value, "a value")

    async def progress(self):
        seen = []

        async def note(progress, total, _message):
            seen.append((progress, total))

        expect(fine(await self.client.call_tool("test_tool_with_progress", {}, progress_callback=note)), "no text")
        expect(len(seen) >= 3, f"fewer than three reports: {seen}")
        expect(all(one[0] < next_[0] for one, next_ in zip(seen, seen[1:])), f"not increasing: {seen}")
        expect_equal([total for _, total in seen], [100] * len(seen), "the list of totals")
        expect_equal(seen[-1][0], 100, "the last report")

    async def slow_call(self):
        # Long enough for the server to close its stream meanwhile, where it does so: the client comes back.
        start = time.monotonic()
        text = fine(await self.client.call_tool("slow_compute", {"seconds": 1.5, "label": "slowly"}))
        expect(time.monotonic() - start >= 1.5, "it did not take its time")
        expect_in("slowly", text, "the result")

    async def elicitation(self):
        person = FIXTURE["person"]
        if self.modern:
            text, questions = await self.ask("test_input_required_result_elicitation", {})
            wanted, fields = [f"Hello, {person['name']}!"], {"name"}
        else:
            text, questions = await self.ask("test_elicitation", {"message": FIXTURE["question"]})
            wanted, fields = ["accept", person["username"], person["email"]], {"username", "email"}
        [question] = questions
        expect_equal(set(question.requested_schema["properties"]), fields, "the set of fields")
        expect_in("" if self.modern else FIXTURE["question"], question.message, "the message")
        for part in wanted:
            expect_in(part, text, "the result")

    async def sampling(self):
        if self.modern:
            text, [question] = await self.ask("test_input_required_result_sampling", {})
        else:
            text, [question] = await self.ask("test_sampling", {"prompt": FIXTURE["modelPrompt"]})
            expect_equal(question.messages[0].content.text, FIXTURE["modelPrompt"], "the prompt")
            expect_equal(question.max_tokens, 100, "max_tokens")
        expect_equal(question.messages[0].role, "user", "the role")
        expect(question.max_tokens > 0, f"max_tokens is {question.max_tokens}")
        expect_in(FIXTURE["modelAnswer"], text, "the result")

    async def roots(self):
        text, questions = await self.ask("test_input_required_result_list_roots", {})
        expect("roots" in questions, "the client was not asked")
        expect_in(FIXTURE["root"]["uri"], text, "the result")

    async def list_changed(self):
        if not self.modern:
            await anyio.sleep(0.3)
            expect_equal(self.announced, 0, "the number of announcements before the change")
            fine(await self.client.call_tool("test_trigger_tool_change", {}))
            with soon("the announcement"):
                while self.announced == 0:
                    await anyio.sleep(0.02)
            return
        async with self.client.listen(tools_list_changed=True) as changes:
            expect_equal(changes.honored.tools_list_changed, True, "what the server agreed to announce")
            with anyio.move_on_after(0.3):
                expect(False, f"announced before the change: {await anext(changes)}")
            fine(await self.client.call_tool("test_trigger_tool_change", {}))
            with soon("the announcement"):
                expect_equal(type(await anext(changes)).__name__, "ToolsListChanged", "the event")

    async def give_up(self, after, count):
        """Begins calls that would take half a minute, and gives them up after a while."""
        ended = []

        async def slow(number):
            ended.append(await self.client.call_tool("slow_compute", {"seconds": 30, "label": f"cancelled {number}"}))

        start = time.monotonic()
        with anyio.move_on_after(after):
            async with anyio.create_task_group() as group:
                for number in range(count):
                    group.start_soon(slow, number)
        took = time.monotonic() - start
        expect_equal(ended, [], "the list of calls that ended by themselves")
        expect(after <= took < after + SOON, f"giving them up took {took:.1f} s")
        with soon("the call after the cancelled ones"):
            expect_equal(fine(await self.client.call_tool("test_simple_text", {})), FIXTURE["simpleText"], "the next")

    async def cancel(self):
        await self.give_up(0.7, 1)

    async def cancel_frees(self):
        answered = []

        async def next_in_line():
            await anyio.sleep(1)
            fine(await self.client.call_tool("test_simple_text", {}))
            answered.append(time.monotonic())

        full = time.monotonic() + 1.5
        async with anyio.create_task_group() as group:
            group.start_soon(next_in_line)
            await self.give_up(1.5, MANY)
            with soon("the call behind the cancelled ones"):
                while not answered:
                    await anyio.sleep(0.02)
        expect(answered[0] >= full, f"the plugin takes more than {MANY} calls at once; so this shows nothing")


ORDER = (
    "revision tools resources templates prompts call read read_template prompt complete progress slow_call "
    "elicitation sampling roots list_changed cancel cancel_frees"
).split()


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=REVISIONS)
    for option in ("url", "bin", "config"):
        parser.add_argument(f"--{option}")
    given = parser.parse_args()
    server = given.url or StdioServerParameters(command=given.bin, args=["run", "-c", given.config])
    checks = Checks(given.mode, server)
    phase, start = "connect", time.monotonic()
    try:
        async with checks.client:
            report(phase, start)
            phase = "session"
            for name in ORDER:
                await check(name.replace("_", "-"), getattr(checks, name))
            phase, start = "close", time.monotonic()
        # The transport waits two seconds for the end of the server before it uses force.
        took = time.monotonic() - start
        expect(took < 1.9, f"closing took {took:.1f} s")
        report(phase, start)
    except Exception as error:
        report(phase, start, why(error))


anyio.run(main)
