# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "mcp==1.30.0", "pydantic==2.12.5", "orjson==3.13.0", "regex==2026.11.19", "rpds-py==2026.9.1", "lxml==6.1.3", "tzdata==2026.6",
#   "requests==2.34.2", "aiohttp==3.14.5", "beartype==0.23.1", "cryptography==50.0.2",
# ]
# ///
"""A server with one tool that evaluates Python: what an expression gives in a plugin."""

import ast
import inspect
import json
import re
import sys
from typing import Any

from mcp.server.fastmcp import FastMCP

import parts
import shapes  # noqa: F401

mcp = FastMCP("evaluate")


def named() -> None:
    """What expressions import. The build has to see it in a source, because expressions come in calls."""
    import _thread, array, asyncio, base64, binascii, bz2, calendar, codecs, collections, concurrent.futures, contextlib  # noqa: E401, F401
    import contextvars, copy, csv, ctypes, dataclasses, datetime, decimal, difflib, email, enum, fcntl, fractions, functools  # noqa: E401, F401
    import getpass, glob, grp, gzip, hashlib, heapq, hmac, html, http, importlib.metadata, importlib.resources, io, ipaddress  # noqa: E401, F401
    import itertools, linecache, locale, logging, lzma, math, mmap, multiprocessing, operator, os, pathlib, pickle, pkgutil  # noqa: E401, F401
    import platform, pprint, queue, random, resource, runpy, secrets, select, selectors, shelve, shlex, shutil, signal, socket  # noqa: E401, F401
    import sqlite3, ssl, statistics, string, struct, subprocess, syslog, tarfile, tempfile, termios, textwrap, threading, time  # noqa: E401, F401
    import tomllib, traceback, types, typing, unicodedata, urllib.request, uuid, warnings, weakref, xml.dom.minidom, zipfile  # noqa: E401, F401
    import xml.etree.ElementTree, zlib, zoneinfo  # noqa: E401, F401

    import aiohttp, anyio, beartype, cryptography, httpx, lxml.html, orjson, pydantic, regex, requests, rpds, urllib3  # noqa: E401, F401
    import anyio.from_thread, anyio.to_process, anyio.to_thread, cryptography.fernet, pydantic_core  # noqa: E401, F401


def run(before: list[ast.stmt], last: ast.stmt, scope: dict[str, Any]) -> Any:
    """Evaluates, in a function of its own: an import is not one that handles that a module is missing."""
    exec(compile(ast.Module(before, []), "<expression>", "exec"), scope)
    if not isinstance(last, ast.Expr):
        return exec(compile(ast.Module([last], []), "<expression>", "exec"), scope)
    return eval(compile(ast.Expression(last.value), "<expression>", "eval"), scope)


async def value_of(code: str) -> dict[str, str]:
    """Returns what the value of the last line looks like, or the error."""
    try:
        tree = ast.parse(code)
        *before, last = tree.body
        scope: dict[str, Any] = {"__name__": "expression", "parts": parts}
        value = run(before, last, scope)
        if inspect.isawaitable(value):
            value = await value
        return {"value": re.sub(r" at 0x[0-9a-f]+", "", repr(value))}
    except BaseException as problem:
        return {"error": type(problem).__name__, "says": str(problem)}


@mcp.tool()
async def evaluate(codes: list[str]) -> str:
    return json.dumps([await value_of(code) for code in codes])


if __name__ == "__main__":
    mcp.run()
