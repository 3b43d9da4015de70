"""Reads the server's own source: the hosts, variables and folders that it uses, and what the author should know."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

URL = re.compile(r"https?://[A-Za-z0-9\-]+(?:\.[A-Za-z0-9\-]+)+(?::\d+)?(?:/[^\s\"'<>{}]*)?")
LOCAL = ("localhost", "127.0.0.1", "0.0.0.0", "example.com", "www.example.com", "example.org", "api.example.com")
FILES = {"open", "read_text", "write_text", "read_bytes", "write_bytes", "iterdir", "glob", "rglob", "listdir", "walk", "scandir",
         "makedirs", "mkdir", "connect"}  # fmt: skip
SENDS = {"post", "put", "patch", "delete", "write", "write_text", "write_bytes", "execute", "executemany", "commit", "unlink", "remove",
         "rename", "replace_one", "insert_one", "send"}  # fmt: skip
ASKS = {"elicit": "elicitation", "elicit_form": "elicitation", "elicit_url": "elicitation", "create_message": "sampling",
        "sample": "sampling", "list_roots": "roots"}  # fmt: skip
"""The methods that ask the client, by the grant that they need."""


IMPOSSIBLE = (
    (
        re.compile(r"subprocess\.(run|Popen|call|check_call|check_output|getoutput|getstatusoutput)|os\.(system|popen|fork|exec\w+|spawn\w+|posix_spawnp?)"
                   r"|asyncio\.create_subprocess_(exec|shell)|multiprocessing\.(Process|Pool)"),
        "a plugin cannot start other programs",
    ),
    (re.compile(r"socket\.(socket|create_connection|create_server)|asyncio\.(open_connection|start_server)"), "a plugin has no sockets"),
)  # fmt: skip
"""Calls of what a plugin cannot do at all."""
MOST = 32
"""How many entries of a kind the wants of a plugin may have."""


@dataclass
class Found:
    """What a server uses, and the warnings about it."""

    urls: dict[str, str] = field(default_factory=dict)
    """URLs of hosts, with the place where each is written."""
    variables: dict[str, str] = field(default_factory=dict)
    folders: dict[str, str] = field(default_factory=dict)
    asks: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def wants(self) -> dict[str, Any] | None:
        """Returns what the plugin asks of the operator. It grants nothing."""
        wants: dict[str, Any] = {}
        # Of more than wharf takes, the first are told: the operator may grant others all the same.
        if self.urls:
            wants["http"] = [{"url": url, "why": f"named in {at}"} for url, at in list(self.urls.items())[:MOST]]
        if self.variables:
            wants["env"] = list(self.variables)[:MOST]
        if self.folders:
            wants["roots"] = "read-write"
        if self.asks:
            wants["ask"] = list(self.asks)
        return wants or None

    def told(self) -> Iterator[str]:
        """Yields a line for each kind of use."""
        for kind, found in (("hosts", self.urls), ("variables", self.variables), ("files", self.folders), ("questions", self.asks)):
            if found:
                yield f"{kind}: {', '.join(f'{name} ({at})' for name, at in found.items())}"


def read(files: list[Path], variables: list[str], folders: list[str]) -> Found:
    """Reads the server's files. `variables` and `folders`: what it looked at while it started."""
    found = Found()
    for file in files:
        try:
            tree = ast.parse(file.read_bytes(), str(file))
        except (OSError, SyntaxError, ValueError):
            continue
        _Reader(file, found).visit(tree)
    for name in variables:
        found.variables.setdefault(name, "read when it starts")
    for name in folders:
        found.folders.setdefault(name, "opened when it starts")
    return found


class _Reader(ast.NodeVisitor):
    def __init__(self, file: Path, found: Found) -> None:
        self.file, self.found = file, found
        self.docstrings: set[int] = set()

    def at(self, node: Any) -> str:
        return f"{self.file.name}:{node.lineno}"

    def generic_visit(self, node: ast.AST) -> None:
        body = getattr(node, "body", None)
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and body:
            first = body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                self.docstrings.add(id(first.value))
        super().generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and id(node) not in self.docstrings:
            for one in URL.finditer(node.value):
                parts = urlsplit(one[0])
                if parts.hostname and "." in parts.hostname and parts.hostname not in LOCAL:
                    self.found.urls.setdefault(f"{parts.scheme}://{parts.netloc}/", self.at(node))

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if _name(node.value).endswith("environ") and isinstance(node.slice, ast.Constant):
            self.found.variables.setdefault(str(node.slice.value), self.at(node))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = _name(node.func)
        for calls, why in IMPOSSIBLE:
            if calls.fullmatch(name) and not any(one.endswith(why) for one in self.found.warnings):
                self.found.warnings.append(f"{self.at(node)}: `{name}` fails in a call, because {why}")
        last = name.rpartition(".")[2]
        first = node.args[0] if node.args else None
        if (name.endswith(("environ.get", "environ.setdefault")) or last == "getenv") and isinstance(first, ast.Constant):
            self.found.variables.setdefault(str(first.value), self.at(node))
        elif last in FILES and (last != "open" or name in ("open", "io.open") or name.endswith("path.open")):
            if last != "connect" or name.startswith(("sqlite3", "aiosqlite")):
                self.found.folders.setdefault(f"{name}()", self.at(node))
        elif last in ASKS and "." in name and any(name.startswith(one) for one in ("ctx", "context", "session", "self", "server")):
            self.found.asks.setdefault(ASKS[last], self.at(node))
        self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        _asks_late(node, self.file, self.found)
        self.generic_visit(node)


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return f"{_name(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""


def _asks_late(function: ast.AsyncFunctionDef, file: Path, found: Found) -> None:
    """Warns if something is sent or written before a question: the function may run again after the answer."""
    calls = sorted((node for node in ast.walk(function) if isinstance(node, ast.Call)), key=lambda node: (node.lineno, node.col_offset))
    done: ast.Call | None = None
    for node in calls:
        last = _name(node.func).rpartition(".")[2]
        if last in ASKS and done is not None:
            found.warnings.append(
                f"{file.name}:{done.lineno}: `{_name(done.func)}` runs before the question in line {node.lineno}; if the instance is "
                f"gone when the answer is there, `{function.name}` runs again from its start, so that it happens twice"
            )
            return
        if last in SENDS and "." in _name(node.func) and not _name(node.func).startswith(("ctx.", "context.")):
            done = done or node
