#!/usr/bin/env python3
"""Builds MCP servers of PyPI as plugins, unchanged, and compares them with the servers themselves.

    tests/existing/python.py --wharf target/release/wharf --work DIR [NAME…]

Needs Python 3.11 or newer with `mcp`, `componentize-py`, `wharf-sdk` and `wharf-compat`. For each server of python.toml, or
those named: installs it with pip into a folder of its own, starts it over stdio, and takes its lists; sets it up and builds it
with `wharf_compat`, serves the plugin by `wharf run`, and compares the lists and the calls that python.toml names. Prints a
table. The exit code is 1 if a server with `runs = true` differs.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import json
import os
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

HERE = Path(__file__).resolve().parent
LISTS = (
    ("list_tools", "tools", "name"),
    ("list_resources", "resources", "uri"),
    ("list_resource_templates", "resourceTemplates", "uriTemplate"),
    ("list_prompts", "prompts", "name"),
)
RUN = """
import importlib.metadata as m, runpy, sys
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


async def look(command: list[str], environ: dict[str, str], calls: list[dict[str, Any]], prefix: str) -> dict[str, Any]:
    """Takes the lists of a server, and calls its tools."""
    found: dict[str, Any] = {}
    with open(os.devnull, "w", encoding="utf-8") as quiet:
        parameters = StdioServerParameters(command=command[0], args=command[1:], env=environ)
        async with stdio_client(parameters, errlog=quiet) as (read, write), ClientSession(read, write) as session:
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
                found[key] = {str(one[by]).removeprefix(prefix): told(one, prefix) for one in page[key]}
            found["calls"] = []
            for one in calls:
                started = time.perf_counter()
                result = await session.call_tool(prefix + one["tool"], one["arguments"])
                took = time.perf_counter() - started
                found["calls"].append((result.model_dump(mode="json", by_alias=True, exclude_none=True), took))
    return found


def told(one: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Returns what a client is told about a tool, resource or prompt, without what means nothing."""
    kept = {key: value for key, value in one.items() if key not in ("_meta", "execution") and value not in ({}, [], "")}
    if "name" in kept:
        kept["name"] = str(kept["name"]).removeprefix(prefix)
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


def measure(one: dict[str, Any], options: argparse.Namespace) -> tuple[dict[str, Any], bool]:
    """Builds a server and compares it. Returns the row of the table, and whether lists and calls are equal."""
    name, version = one["package"], one["version"]
    calls, folder = one.get("calls", []), options.work / name
    folder.mkdir(parents=True, exist_ok=True)
    row: dict[str, Any] = {"server": f"{name} {version}", "lists": "", "calls": "", "build": "", "size": "", "why": ""}
    runs = False
    environ = {**os.environ, **one.get("env", {})}
    compat = [sys.executable, "-m", "wharf_compat"]
    given = one.get("args", [])
    try:
        run([*compat, "setup", f"pypi:{name}=={version}", "--project", str(folder)], environ, 600)
        plugin = folder / "plugin.wasm"
        started = time.monotonic()
        run([*compat, "build", f"pypi:{name}=={version}", "--project", str(folder), "-o", str(plugin), *(f"--arg={word}" for word in given)], environ, 900)
        row["build"], row["size"] = f"{time.monotonic() - started:.0f} s", f"{plugin.stat().st_size / 1e6:.1f} MB"
        # Compiles the plugin, which takes longer than clients wait.
        subprocess.run([str(options.wharf), "inspect", str(plugin)], capture_output=True, timeout=600)
        ours = asyncio.run(asyncio.wait_for(look([str(options.wharf), "run", str(plugin)], environ, calls, "plugin_"), 300))
        native_folder = folder / "native"
        if not native_folder.is_dir():
            run([sys.executable, "-m", "pip", "install", "--quiet", "--target", str(native_folder), f"{name}=={version}"], environ, 600)
        native_environ = {**environ, "PYTHONPATH": str(native_folder)}
        native = asyncio.run(asyncio.wait_for(look([sys.executable, "-c", RUN, name, *given], native_environ, calls, ""), 120))
        odd = differences(native, ours)
        counts = ", ".join(f"{len(native[key])} {key}" for _, key, _ in LISTS if native[key])
        row["lists"] = f"equal: {counts}" if not odd else f"differ in {len(odd)}"
        row["why"] = "; ".join(odd[:2])[:400]
        good = 0
        for asked, (theirs, _), (mine, _) in zip(calls, native["calls"], ours["calls"]):
            same = theirs.get("isError", False) == mine.get("isError", False) if asked.get("changes") else theirs == mine
            good += same
            if not same:
                row["why"] += f" {asked['tool']}: {json.dumps(mine)[:150]}"
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
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    options.wharf, options.work = options.wharf.resolve(), options.work.resolve()
    servers = tomllib.loads((HERE / "python.toml").read_text(encoding="utf-8"))["server"]
    print("| server | lists | calls | build | size | what differs, or why not |\n|---|---|---|---|---|---|", flush=True)
    missed = 0
    for one in servers:
        if options.names and one["package"] not in options.names:
            continue
        row, runs = measure(one, options)
        missed += one.get("runs", False) and not runs
        print("| " + " | ".join(" ".join(str(cell).split()).replace("|", "\\|") for cell in row.values()) + " |", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
