#!/usr/bin/env python3
"""Builds MCP servers of PyPI as plugins, unchanged, and compares them with the servers themselves.

    tests/existing/python.py --wharf target/release/wharf --work DIR [NAME…]

Needs the packages of requirements.txt, and Python 3.11 or newer; some servers need 3.13. For each server of python.toml, or those
named: sets it up and builds it with `wharf_compat`, and installs it with pip into a folder of its own. Then starts both over stdio,
the plugin by `wharf run`, and compares their lists, and the calls that python.toml names. Both get the same variables and
arguments, an own folder, and HTTP from canned.py and answers.toml. Prints a table. The exit code is 1 if a server with
`runs = true` differs.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client

HERE = Path(__file__).resolve().parent
LISTS = (
    ("list_tools", "tools", "name"),
    ("list_resources", "resources", "uri"),
    ("list_resource_templates", "resourceTemplates", "uriTemplate"),
    ("list_prompts", "prompts", "name"),
)
RUN = """
import importlib.metadata as m, os, socket, sys
# The hosts of canned.py have no addresses, and some servers look at them before they send.
find = socket.getaddrinfo
socket.getaddrinfo = lambda host, *given, **named: find("192.31.196.1" if str(host).endswith("example.com") else host, *given, **named)
# What does not look at the variables of a proxy and its authority is told of them.
try:
    import certifi
    certifi.where = lambda: os.environ["SSL_CERT_FILE"]
except ImportError:
    pass
try:
    import aiohttp
    begin = aiohttp.ClientSession.__init__
    def through(self, *given, **named):
        begin(self, *given, **{"trust_env": True, **named})
    aiohttp.ClientSession.__init__ = through
except ImportError:
    pass
name = sys.argv[1]
scripts = [one for one in m.distribution(name).entry_points if one.group == "console_scripts"]
script = next((one for one in scripts if one.name.lower().replace("_", "-") == name), scripts[0] if scripts else None)
sys.argv = [name, *sys.argv[2:]]
result = script.load()()
if hasattr(result, "__await__"):
    import asyncio
    asyncio.run(result)
"""


class Failed(Exception):
    """The step that failed, and why."""


async def look(command: list[str], environ: dict[str, str], calls: list[dict[str, Any]], log: Path, cwd: Path) -> dict[str, Any]:
    """Takes the lists of a server, and calls its tools."""
    found: dict[str, Any] = {}
    with open(log, "w", encoding="utf-8") as errors:
        parameters = StdioServerParameters(command=command[0], args=command[1:], env=environ, cwd=cwd)
        async with stdio_client(parameters, errlog=errors) as (read, write), ClientSession(read, write) as session:
            said = await session.initialize()
            for method, key, by in LISTS:
                offered = getattr(said.capabilities, "resources" if key == "resourceTemplates" else key)
                if offered is None:
                    found[key] = {}
                    continue
                try:
                    page = (await getattr(session, method)()).model_dump(mode="json", by_alias=True, exclude_none=True)
                except Exception as problem:
                    page = {key: [], "problem": str(problem)}
                found[key] = {str(one[by]): told(one) for one in page[key]}
            found["calls"] = []
            for one in calls:
                started = time.perf_counter()
                try:
                    result = (await session.call_tool(one["tool"], one["arguments"])).model_dump(mode="json", by_alias=True, exclude_none=True)
                except McpError as problem:
                    result = {"error": problem.error.model_dump(mode="json", exclude_none=True)}
                took = time.perf_counter() - started
                result.pop("_meta", None)
                found["calls"].append((result, took))
    return found


def told(one: dict[str, Any]) -> dict[str, Any]:
    """Returns what a client is told about a tool, resource or prompt, without what means nothing."""
    kept = {key: value for key, value in one.items() if key not in ("_meta", "execution") and value not in ({}, [], "")}
    if "description" in kept:
        # Since Python 3.13, docstrings have no indentation; a component's Python is 3.14.
        kept["description"] = inspect.cleandoc(kept["description"])
    return kept


def run(words: list[str], environ: dict[str, str], seconds: float) -> str:
    ran = subprocess.run(words, capture_output=True, text=True, env=environ, timeout=seconds)
    if ran.returncode != 0:
        lines = [line for line in (ran.stderr or ran.stdout).splitlines() if line.startswith("error")] or ran.stderr.splitlines()[-2:]
        raise Failed(" ".join(lines).removeprefix("error: ")[:300])
    return ran.stdout


def differences(native: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    found = []
    for _, key, _ in LISTS:
        if list(native[key]) != list(ours[key]):
            found.append(f"{key}: {list(native[key])} and {list(ours[key])}")
            continue
        for name, one in native[key].items():
            odd = [part for part in {**one, **ours[key][name]} if one.get(part) != ours[key][name].get(part)]
            if odd:
                here, there = (json.dumps(side.get(odd[0]))[:200] for side in (one, ours[key][name]))
                found.append(f"{key} {name}: {', '.join(odd)}: {here} and {there}")
    return found


def filled(value: Any, folder: Path) -> Any:
    """Puts the path of the server's folder in the place of `FOLDER`."""
    return json.loads(json.dumps(value).replace("FOLDER", str(folder)))


def fresh(folder: Path, files: dict[str, str]) -> None:
    """Empties the folder of a server, and writes its files."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def config(one: dict[str, Any], folder: Path, data: Path, proxy: dict[str, Any]) -> Path:
    """Writes the configuration with which wharf serves the plugin."""
    lines = [
        "[egress]",
        f'proxy = "http://127.0.0.1:{proxy["port"]}"',
        f"ca = [{json.dumps(proxy['ca'])}]",
        "[plugins.p]",
        f"path = {json.dumps(str(folder / 'plugin.wasm'))}",
        'prefix = ""',
        "[plugins.p.config]",
        f"args = {json.dumps(filled(one.get('args', []), data))}",
        "[plugins.p.grants]",
        f"env = {json.dumps(list(one.get('env', {})))}",
        "http = [" + ", ".join(f'{{ url = {json.dumps(url)}, methods = "any" }}' for url in one.get("http", [])) + "]",
        *([f'dirs = [{{ host = {json.dumps(str(data))}, access = "read-write" }}]'] if one.get("folder") else []),
    ]
    file = folder / "wharf.toml"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def native_of(one: dict[str, Any], folder: Path) -> Path:
    """Installs the server itself, with the version of the SDK that the plugin has."""
    place = folder / "native"
    if not (place / ".done").is_file():
        shutil.rmtree(place, ignore_errors=True)
        locked = (folder / "wharf-requirements.lock").read_text(encoding="utf-8").splitlines()
        sdk = [line.split()[0] for line in locked if line.startswith("mcp==")]
        run([sys.executable, "-m", "pip", "install", "--quiet", "--target", str(place), f"{one['package']}=={one['version']}", *sdk], dict(os.environ), 600)
        (place / ".done").touch()
    return place


def measure(one: dict[str, Any], options: argparse.Namespace, proxy: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Builds a server and compares it. Returns the row of the table, and whether lists and calls are equal."""
    name, version = one["package"], one["version"]
    folder = options.work / name
    data = folder / "data"
    calls = filled(one.get("calls", []), data)
    folder.mkdir(parents=True, exist_ok=True)
    row: dict[str, Any] = {"server": f"{name} {version}", "lists": "", "calls": "", "build": "", "size": "", "why": ""}
    runs = False
    # Some servers write a set into their schemas, in the order of its hashes.
    environ = {**os.environ, "PYTHONHASHSEED": "0", **filled(one.get("env", {}), data)}
    given = filled(one.get("args", []), data)
    plugin = folder / "plugin.wasm"
    compat = [sys.executable, "-m", "wharf_compat"]
    fresh(data, one.get("files", {}))
    try:
        if not (options.keep and plugin.is_file()):
            run([*compat, "setup", f"pypi:{name}=={version}", "--project", str(folder)], environ, 600)
            started = time.monotonic()
            run([*compat, "build", f"pypi:{name}=={version}", "--project", str(folder), "-o", str(plugin), *(f"--arg={word}" for word in given)], environ, 900)
            row["build"] = f"{time.monotonic() - started:.0f} s"
        row["size"] = f"{plugin.stat().st_size / 1e6:.1f} MB"
        file = config(one, folder, data, proxy)
        # Compiles the plugin, which takes longer than clients wait.
        subprocess.run([str(options.wharf), "check", "-c", str(file)], capture_output=True, env=environ, timeout=600)
        fresh(data, one.get("files", {}))
        ours = asyncio.run(asyncio.wait_for(look([str(options.wharf), "run", "-c", str(file)], environ, calls, folder / "plugin.log", data), 300))
        web = f"http://127.0.0.1:{proxy['port']}"
        native_environ = {
            **environ,
            "PYTHONPATH": str(native_of(one, folder)),
            "SSL_CERT_FILE": proxy["ca"],
            "REQUESTS_CA_BUNDLE": proxy["ca"],
            **dict.fromkeys(("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"), web),
            **one.get("native", {}),
        }
        fresh(data, one.get("files", {}))
        native = asyncio.run(asyncio.wait_for(look([sys.executable, "-c", RUN, name, *given], native_environ, calls, folder / "native.log", data), 120))
        odd = differences(native, ours)
        counts = ", ".join(f"{len(native[key])} {key}" for _, key, _ in LISTS if native[key])
        row["lists"] = f"equal: {counts}" if not odd else f"differ in {len(odd)}"
        row["why"] = "; ".join(odd[:2])[:400]
        good = 0
        for asked, (theirs, _), (mine, _) in zip(calls, native["calls"], ours["calls"]):
            same = theirs.get("isError", False) == mine.get("isError", False) if asked.get("changes") else theirs == mine
            # A call that fails on both sides shows nothing, unless that is what it is for.
            works = asked.get("fails", False) or not (theirs.get("isError") or "error" in theirs)
            good += same and works
            if not same or not works:
                row["why"] += f" {asked['tool']}: {json.dumps(mine)[:250]} and natively {json.dumps(theirs)[:250]}"
            if options.show:
                print(asked["tool"], json.dumps(theirs)[:600], file=sys.stderr)
        runs = not odd and good == len(calls)
        if calls:
            row["calls"] = f"{good} of {len(calls)}, {1000 * min(took for _, took in ours['calls']):.0f} ms"
    except Failed as problem:
        row["why"] = str(problem)
    except Exception as problem:
        inner = problem
        while getattr(inner, "exceptions", None):
            inner = inner.exceptions[0]  # type: ignore[attr-defined]
        row["why"] = f"{type(inner).__name__}: {inner}"[:300]
    return row, runs


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--wharf", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--keep", action="store_true", help="takes components that were built before")
    parser.add_argument("--show", action="store_true", help="prints what the servers answer")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    options.wharf, options.work = options.wharf.resolve(), options.work.resolve()
    servers = tomllib.loads((HERE / "python.toml").read_text(encoding="utf-8"))["server"]
    print("| server | lists | calls | build | size | what differs, or why not |\n|---|---|---|---|---|---|", flush=True)
    missed = ran = 0
    canned = [sys.executable, str(HERE / "canned.py"), str(HERE / "answers.toml"), "--folder", str(options.work / "canned")]
    with subprocess.Popen(canned, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as web:
        assert web.stdin is not None and web.stdout is not None
        proxy = json.loads(web.stdout.readline())
        for one in servers:
            if options.names and one["package"] not in options.names:
                continue
            needed = one.get("python", "3.11")
            if sys.version_info < tuple(int(part) for part in needed.split(".")):
                print(f"| {one['package']} {one['version']} | | | | | not measured: needs Python {needed} |", flush=True)
                continue
            row, runs = measure(one, options, proxy)
            ran += runs and bool(one.get("calls"))
            missed += one.get("runs", False) and not runs
            print("| " + " | ".join(" ".join(str(cell).split()).replace("|", "\\|") for cell in row.values()) + " |", flush=True)
        web.stdin.close()
    print(f"\n{ran} run: their lists and calls are equal.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
