"""The server as a plugin: its lists, and the calls of wharf as requests to it."""

from __future__ import annotations

import base64
import inspect
import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

from wharf_sdk import _call
from wharf_sdk._call import LIVE, Call
from wharf_sdk._codec import Codec, Parameter
from wharf_sdk._content import Completion, Content, Contents, Entry, Message, Raw, Result
from wharf_sdk._errors import Failure, InvalidParams, PluginError, ProtocolError
from wharf_sdk._plugin import Plugin, Prompt, Resource, Round, Tool, _run

from .. import LISTS
from ..absent import hollow
from . import imports, metadata, patches, start, watch, zones
from .start import NotServing, Target
from .wire import RequestError, Wire

HINTS = {"readOnlyHint": "read_only", "destructiveHint": "destructive", "idempotentHint": "idempotent", "openWorldHint": "open_world"}
# Tells wharf to leave arguments that do not fit the schema to the server.
VALIDATES = "dev.wharf/validates"


INSTRUCTIONS = 2048
"""How many bytes the instructions of a plugin may have."""


LIKELY = re.compile("KEY|TOKEN|SECRET|PASS|URL|USER|_ID$")
"""What variables are called without which a server is likely to offer nothing."""


class NothingOffered(PluginError):
    """The server has no tools, resources and prompts."""


class Served(Plugin):
    """A plugin whose tools, resources and prompts are those of an MCP server."""

    def __init__(self, target: Target, dependencies: list[str], options: Mapping[str, Any]) -> None:
        super().__init__()
        self.target, self.dependencies, self.options = target, dependencies, options
        self.wire: Wire | None = None
        self.again: str | None = None
        """Why the server has to start in each instance; None if it goes on from where the build left it."""
        self.entries: list[Entry] = []
        self.templates: dict[str, list[str]] = {}
        self.stateless = False
        """Whether it is asked by a revision in which each request stands alone."""
        self.completes = False
        self.offers: dict[str, Any] = {}
        """What the server said about itself."""
        self.pages: dict[str, list[dict[str, Any]]] = {}
        """The lists that it gave, by their methods."""
        self.taken = False
        """Whether the code of now was taken, in a component for `wharf dev`."""
        self.folder: str | None = None
        """The first folder that was open to the last call."""

    # At build time.

    def finish(self) -> None:
        """Starts the server and takes its lists."""
        if self.taken:
            return
        self.begin()
        patches.files.keep_authorities(self.dependencies)
        nearby = patches.files.keep(self.target.own, tuple(self.dependencies))
        if nearby:
            print(f"files next to the code, for calls: {', '.join(nearby[:8])}{' …' if len(nearby) > 8 else ''}", file=sys.stderr)
        if self.options.get("keep", True):
            size = start.keep_code(self.target, self.dependencies)
            print(f"kept {size >> 10} KiB of code for later imports", file=sys.stderr)
            left = sorted({one.partition(".")[0] for one in imports.kept.left})
            if left:
                self.warnings.append(
                    f"in a call, {len(imports.kept.left)} modules of {', '.join(left)} cannot be imported: "
                    "the memory has no room for them. What the server imports when it starts is there"
                )
        _warm()
        # Folders that exist only here.
        sys.path_importer_cache.clear()
        # At its end, the build removes the arguments of this process from `sys.argv`, and componentize-py knows only the first.
        del sys.argv[1:]

    def begin(self) -> None:
        watching = watch.watch
        own, away = tuple(self.target.own), tuple(self.dependencies)
        watching.own = own
        patches.files.roots = (*own, *away)
        watch.install()
        metadata.keep(away)
        zones.keep(away)
        known, live = self.options.get("found"), self.options.get("live")
        try:
            said = self._started()
        except (ImportError, SyntaxError):
            raise
        except Exception as problem:
            if not known and not live:
                raise
            # It started on the machine that builds, so it lacks what only a grant gives, such as a folder.
            self.again = f"it does not start without a grant: {problem}"
            self.wire = None
        self.warnings += patches.warnings
        if live:
            self.again, self.wanted = self.options["again"], self.options.get("wants") or None
            self.instructions_text = self.options["instructions"]
            return
        if self.wire is None:
            assert known is not None
            self._instruct(known["instructions"])
            self.wanted = self.options.get("wants") or None
            self._as_checked(known)
            return
        self.offers, self.pages = said, {}
        self._instruct(said.get("instructions"))
        self.wanted = self.options.get("wants") or None
        if self.again is None:
            self.again = self.options.get("again") or start.changes(self._own_files())
        if self.again is None and watching.variables:
            self.again = f"it reads the variable {next(iter(watching.variables))} when it starts"
        if self.again is None and watching.files:
            self.again = f"it opens {next(iter(watching.files))} when it starts"
        try:
            self._lists_by_either(said)
        except NothingOffered:
            if known is not None:
                self._as_checked(known)
            elif not self._lists_with_placeholders():
                raise
            self.again = "it offers nothing without a variable"

    def _instruct(self, text: str | None) -> None:
        """Takes the server's instructions, of which the component has room for the first."""
        data = (text or "").encode()
        if len(data) > INSTRUCTIONS:
            self.warnings.append(f"its instructions have {len(data)} bytes; clients get the first {INSTRUCTIONS}")
            text = data[: INSTRUCTIONS - 8].decode(errors="ignore") + " …"
        if text:
            self.instructions_text = text

    def _lists_by_either(self, said: Mapping[str, Any]) -> None:
        try:
            return self._lists(said.get("capabilities") or {})
        except RequestError as problem:
            refused = problem
        # It has a tool that only the newer revision knows, such as one whose output is not an object.
        self.stateless = True
        start.forget(self.target)
        try:
            self.offers = self._started()
        except RequestError:
            raise refused from None
        self._lists(self.offers.get("capabilities") or {})

    def _as_checked(self, known: Mapping[str, Any]) -> None:
        """Takes what the server offered when it started on the machine that builds, with the variables and files of that machine."""
        self.wire, self.pages, self.stateless = None, known["pages"], known["stateless"]
        self._lists(known["capabilities"])

    def _started(self) -> dict[str, Any]:
        watching = watch.watch
        watching.on = patches.files.keeping = True
        filled: list[str] = []
        try:
            try:
                self.wire = start.start(self.target)
            except (ImportError, SyntaxError):
                raise
            except (Exception, SystemExit) as problem:
                self.wire = self._with_placeholders(problem, filled)
            patches.refused.clear()
            return self.wire.open(self.stateless)
        except NotServing as problem:
            raise PluginError(f"{self.target.module} cannot be served: {problem}") from None
        finally:
            watching.on = patches.files.keeping = False
            for name in filled:
                os.environ.pop(name, None)

    def _with_placeholders(self, first: BaseException, filled: list[str]) -> Wire:
        """Starts a server that refuses to start without its variables, with placeholders for as few of them as possible. `first`: what it
        said without any. `filled`: gets the names of the variables."""
        watching = watch.watch
        problem, tried = first, set()
        while True:
            unset = [one for one in (*watching.missing, *watching.variables) if one not in os.environ and one not in tried]
            # One that its words name comes first, then those without a default.
            name = next((one for one in unset if one in str(problem)), unset[0] if unset else None)
            if name is None:
                break
            tried.add(name)
            os.environ[name] = watch.PLACEHOLDER
            start.forget(self.target)
            try:
                wire = start.start(self.target)
            except (ImportError, SyntaxError):
                raise
            except (Exception, SystemExit) as found:
                if str(found) == str(problem) or watch.PLACEHOLDER in str(found):
                    # It does not lack this one, or wants a value of another kind.
                    del os.environ[name]
                else:
                    problem = found
                    filled.append(name)
                continue
            filled.append(name)
            self.again = f"it does not start without the variable {filled[0]}"
            return wire
        if not tried or start.WRONG_ARGUMENTS in str(first):
            raise first
        lacking = next((one for one in (*watching.missing, *watching.variables) if one in str(first)), next(iter(tried)))
        raise PluginError(
            f"{start.told(first)}. If it lacks the variable {lacking}, make a project of the server with `wharf new --from`, and build "
            f"that with the variable: {lacking}=VALUE wharf build"
        ) from None

    def _lists_with_placeholders(self) -> bool:
        """Asks a server that offers nothing once more, with placeholders for the variables that say where its service is and who asks.
        Returns whether it offers something then."""
        watching, given = watch.watch, set[str]()
        try:
            while True:
                read = dict.fromkeys((*watching.missing, *watching.variables))
                lacking = {one: watch.placeholder(one) for one in read if one not in os.environ and LIKELY.search(one)}
                if not lacking:
                    return False
                given.update(lacking)
                os.environ.update(lacking)
                start.forget(self.target)
                try:
                    self.offers, self.pages = self._started(), {}
                    self._lists_by_either(self.offers)
                except NothingOffered:
                    # With these, it may ask for others.
                    continue
                except (Exception, SystemExit):
                    return False
                return True
        finally:
            for one in given:
                os.environ.pop(one, None)

    def _own_files(self) -> list[str]:
        found = [getattr(one, "__file__", None) for one in list(sys.modules.values())]
        return [one for one in found if one and watch.watch.is_own(one)]

    def _all_of(self, method: str, key: str) -> list[dict[str, Any]]:
        """Lists all pages of a list."""
        if self.wire is None:
            return self.pages.get(method) or []
        found: list[dict[str, Any]] = []
        cursor: dict[str, Any] = {}
        while True:
            try:
                page = self.wire.request(method, cursor)
            except RequestError as problem:
                if problem.code != -32601:
                    raise
                # A server of the low-level interface may offer resources without templates.
                page = {}
            found.extend(page.get(key) or [])
            if not page.get("nextCursor"):
                self.pages[method] = found
                return found
            cursor = {"cursor": page["nextCursor"]}

    def _lists(self, offers: Mapping[str, Any]) -> None:
        self.completes = "completions" in offers
        if offers.get("tools") is not None:
            for one in self._all_of("tools/list", "tools"):
                self.tools[one["name"]] = _tool(one)
        if offers.get("resources") is not None:
            self.entries = [_entry(one) for one in self._all_of("resources/list", "resources")]
            for one in self._all_of("resources/templates/list", "resourceTemplates"):
                more = _more(one, ("uriTemplate", "name", "description", "mimeType"))
                name, about = one["name"], one.get("description")
                self.resources[one["uriTemplate"]] = Resource(_nothing, one["uriTemplate"], name, about, one.get("mimeType"), None, more)
        if offers.get("prompts") is not None:
            for one in self._all_of("prompts/list", "prompts"):
                self.prompts[one["name"]] = _prompt(one)
        if not (self.tools or self.entries or self.resources or self.prompts):
            raise NothingOffered(f"{self.target.module} offers no tool, resource or prompt")

    def reload(self, run: Callable[[], object]) -> None:
        """Takes the lists and the code of now, in a component for `wharf dev`. The server starts with the first call."""
        for index, own in enumerate(self.target.own):
            folder = own if own.endswith(os.sep) else os.path.dirname(own) + os.sep
            imports.read_later(folder, f"{LIVE}/{index}")
        with open(f"{LIVE}/{LISTS}", encoding="utf-8") as file:
            known = json.load(file)
        self.tools, self.resources, self.prompts, self.entries = {}, {}, {}, []
        self._as_checked(known)
        self.taken = True

    # While wharf runs it.

    def _ask(self, method: str, params: dict[str, Any], call: Call) -> Any:
        """Sends a request for a call; the answer, or the questions that the client has to answer first."""

        def run() -> Any:
            os.environ.setdefault("HOME", watch.HOME)
            self.folder = patches.enter_folder(self.folder)
            wire = self._connected()
            patches.refused.clear()
            meta = json.loads(call.more).get("meta") or {}
            hollow.calling = True
            try:
                return wire.request(method, {**params, "_meta": {**meta, "progressToken": wire.number + 1}})
            finally:
                hollow.calling = False

        try:
            return _run(call, run)
        except RequestError as problem:
            if problem.code == -32602:
                raise InvalidParams(problem.message, problem.data) from None
            raise ProtocolError(problem.code, problem.message, problem.data) from None

    def _connected(self) -> Wire:
        if self.wire is None and self.again is None:
            raise Failure("the server is not running")
        if self.wire is not None and self.wire.__dict__.get("fresh"):
            return self.wire
        config = _call.host.config() if _call.host is not None else "{}"
        given = json.loads(config or "{}").get("args")
        arguments = [str(one) for one in given] if isinstance(given, list) else self.target.arguments
        if self.wire is not None and self.again is None and arguments == self.target.arguments:
            sys.argv[:] = [self.target.module, *arguments]
            return self.wire
        start.forget(self.target)
        self.target.arguments = arguments
        patches.refused.clear()
        try:
            self.wire = start.start(self.target)
            self.wire.open(self.stateless)
        except RequestError as problem:
            raise Failure(f"The server did not start: {problem.message}.{patches.explained(problem.message)}") from None
        except Exception as problem:
            said = start.told(problem)
            raise Failure(f"The server did not start: {said}.{patches.explained(said)}") from None
        patches.refused.clear()
        self.wire.__dict__["fresh"] = True
        return self.wire

    def call_tool(self, name: str, args: str, call: Call) -> Result | Round:
        found = self._ask("tools/call", {"name": name, "arguments": json.loads(args)}, call)
        if isinstance(found, Round):
            return found
        content = [_content(one) for one in found.get("content") or []]
        why = patches.explained(json.dumps(found.get("content"))) if found.get("isError") else ""
        content += [why.strip()] if why else []
        meta = found.get("_meta")
        return Result(content, found.get("structuredContent"), bool(found.get("isError")), {"_meta": meta} if meta else None)

    def sections(self) -> dict[str, str]:
        # The server expects to find in the next call what it left in memory.
        return {**super().sections(), "wharf:instances": "kept"}

    def list_entries(self) -> list[Entry]:
        return self.entries

    def read(self, uri: str, call: Call) -> list[Contents] | Round:
        found = self._ask("resources/read", {"uri": uri}, call)
        return found if isinstance(found, Round) else [_contents(one) for one in found.get("contents") or []]

    def get_prompt(self, name: str, args: Mapping[str, str], call: Call) -> list[Message] | Round:
        found = self._ask("prompts/get", {"name": name, "arguments": dict(args)}, call)
        if isinstance(found, Round):
            return found
        made = Messages(Message(_content(one["content"]), one["role"]) for one in found.get("messages") or [])
        made.description = found.get("description")
        return made

    def completion(self, kind: str, name: str, argument: str, value: str, others: Mapping[str, str]) -> Completion:
        if not self.completes:
            return Completion()
        ref = {"type": "ref/prompt", "name": name} if kind == "prompt" else {"type": "ref/resource", "uri": name}
        params: dict[str, Any] = {"ref": ref, "argument": {"name": argument, "value": value}}
        if others:
            params["context"] = {"arguments": dict(others)}
        found = self._ask("completion/complete", params, Call()).get("completion") or {}
        return Completion(found.get("values") or [], found.get("total"), bool(found.get("hasMore")))


class Messages(list):  # type: ignore[type-arg]
    """The messages of a prompt, with its description."""

    description: str | None = None


def _nothing() -> None:
    """Stands for a function: the server has the real ones."""


def _more(one: Mapping[str, Any], known: tuple[str, ...]) -> dict[str, Any] | None:
    return {key: value for key, value in one.items() if key not in known and value is not None} or None


def _tool(one: Mapping[str, Any]) -> Tool:
    annotations = one.get("annotations") or {}
    hints = {ours: annotations.get(theirs) for theirs, ours in HINTS.items()}
    more = _more(one, ("name", "title", "description", "inputSchema", "outputSchema", "annotations", "execution")) or {}
    others = _more(annotations, tuple(HINTS))
    if others:
        more["annotations"] = others
    # The server knows better which arguments it can convert.
    more["_meta"] = {**(more.get("_meta") or {}), VALIDATES: True}
    return Tool(
        _nothing, one["name"], one.get("description") or "", one.get("title"), hints, "forbidden", False, (),
        one["inputSchema"], one.get("outputSchema"), more, takes_all=True,
    )  # fmt: skip


def _entry(one: Mapping[str, Any]) -> Entry:
    return Entry(
        one["uri"], one["name"], one.get("description"), one.get("mimeType"), _more(one, ("uri", "name", "description", "mimeType"))
    )


def _prompt(one: Mapping[str, Any]) -> Prompt:
    prompt = Prompt(_nothing, one["name"], one.get("description"), _more(one, ("name", "description", "arguments")))  # type: ignore[arg-type]
    for argument in one.get("arguments") or []:
        told = {"description": argument["description"]} if argument.get("description") is not None else {}
        default = inspect.Parameter.empty if argument.get("required") else None
        prompt.parameters.append(Parameter(argument["name"], Codec(told), default))
    return prompt


def _content(block: Mapping[str, Any]) -> Content:
    if block.get("type") == "text" and not (block.get("annotations") or block.get("_meta")):
        return str(block.get("text", ""))
    return Raw({key: value for key, value in block.items() if value is not None})


def _contents(one: Mapping[str, Any]) -> Contents:
    body: str | bytes = one["text"] if one.get("text") is not None else base64.b64decode(one.get("blob") or "")
    return Contents(str(one.get("uri", "")), body, one.get("mimeType"), _more(one, ("uri", "mimeType", "text", "blob")))


ENCODINGS = (
    "ascii", "latin_1", "utf_8_sig", "utf_16", "utf_16_le", "utf_16_be", "utf_32", "iso8859_1", "iso8859_2", "iso8859_5", "iso8859_7",
    "iso8859_9", "iso8859_15", "koi8_r", "mac_roman", "cp437", "cp850", "cp1250", "cp1251", "cp1252", "cp1253", "cp1254",
)  # fmt: skip
"""What pages, files and archives name as their encoding. Python imports an encoding when it is first used."""


def _warm() -> None:
    """Imports what Python imports only when it is first needed, and fills caches that calls would fill again and again."""
    import importlib

    modules = ("encodings.idna", "encodings.punycode", "stringprep", "zoneinfo", "json.scanner", "asyncio.timeouts", "unicodedata")
    for name in (*modules, *(f"encodings.{one}" for one in ENCODINGS)):
        try:
            importlib.import_module(name)
        except ImportError:
            pass
    if "xml.sax" in sys.modules:
        importlib.import_module("xml.sax.expatreader")
    bs4 = sys.modules.get("bs4")
    if bs4 is not None:
        # The first selector compiles the patterns of all selectors.
        bs4.BeautifulSoup("<p class='a' id='b'><a href='c'>d</a></p>", "html.parser").select("p#b.a > a[href^='c']:nth-of-type(1)")


def prepare(options: Mapping[str, Any]) -> Served:
    """Makes the plugin. Runs at the top level of the generated main module."""
    imports.compiled.update(options.get("compiled") or {})
    patches.install()
    target = Target(options["module"], options.get("function"), list(options.get("arguments") or []), list(options["own"]))
    return Served(target, list(options["dependencies"]), options)
