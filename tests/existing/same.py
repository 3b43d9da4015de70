#!/usr/bin/env python3
"""Compares the values of expressions in a plugin with those outside of wharf: one component, one run.

    tests/existing/same.py --wharf target/debug/wharf --work DIR [--only TEXT] [--record] [--verbose]

A plugin may only differ by an error that says what it does not have, and only where refused.txt says that it is refused. Needs the packages
of requirements.txt. The exit code is 1 if a value is wrong, if something else is refused, or if something that is named there is not refused.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from expressions import DIFFERENT, REFUSED, SEED, alone, expressions, refused

HERE = Path(__file__).resolve().parent
SERVER = HERE / "same/evaluate.py"
SENTENCE = re.compile(r"inside of a plugin|in this plugin|a plugin (cannot|knows|has)|waits for something that never comes|module is not available|\(missing\)")
AT_ONCE = 25
"""How many expressions a call evaluates. A trap or a limit costs no others."""


SECONDS = 60
"""How long the evaluation of so many may take."""


class Web(BaseHTTPRequestHandler):
    """Answers what it was asked."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length)
        sent = {name.lower(): value for name, value in self.headers.items()}
        said = {"method": self.command, "path": path, "query": query, "body": body.decode("latin-1")}
        said["headers"] = {name: sent.get(name) for name in ("content-type", "authorization", "cookie", "x-own", "content-length")}
        data, headers, status = json.dumps(said).encode(), [("content-type", "application/json")], 200
        if path.startswith("/status/"):
            status = int(path.rpartition("/")[2])
        elif path == "/redirect":
            status, headers, data = 302, [("location", "/echo?from=redirect"), ("set-cookie", "hop=1; Path=/")], b""
        elif path == "/loop":
            status, headers, data = 302, [("location", "/loop")], b""
        elif path == "/cookies":
            headers += [("set-cookie", "a=1; Path=/"), ("set-cookie", "b=two; Path=/; Expires=Wed, 09 Jun 2100 10:18:14 GMT")]
        elif path == "/gzip":
            headers, data = [*headers, ("content-encoding", "gzip")], gzip.compress(data)
        elif path == "/deflate":
            headers, data = [*headers, ("content-encoding", "deflate")], zlib.compress(data)
        elif path == "/latin":
            headers, data = [("content-type", "text/plain; charset=iso-8859-1")], "größe".encode("latin-1")
        elif path == "/bytes":
            headers, data = [("content-type", "application/octet-stream")], bytes(range(256))
        elif path == "/lines":
            headers, data = [("content-type", "text/plain")], b"one\ntwo\n\nthree"
        elif path == "/wrong":
            data = b"{not json"
        elif path == "/empty":
            status, headers, data = 204, [], b""
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if status != 204:
            self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Server:
    """A server over stdio, which evaluates."""

    def __init__(self, command: list[str], environ: dict[str, str], log: Path) -> None:
        with open(log, "w", encoding="utf-8") as errors:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environ, text=True, cwd=log.parent)
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "same", "version": "1.0.0"}}
        self.number = 0
        self.ask("initialize", client)
        self.say({"method": "notifications/initialized"})

    def say(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        self.number += 1
        self.say({"id": self.number, "method": method, "params": params})
        assert self.process.stdout is not None
        watch = threading.Timer(SECONDS, self.process.kill)
        watch.start()
        for line in self.process.stdout:
            answer = json.loads(line)
            if answer.get("id") == self.number:
                watch.cancel()
                return answer.get("result") or answer
        raise SystemExit(f"{self.process.args} ended, or did not answer within {SECONDS} s: {params}")

    def values(self, codes: list[str]) -> list[dict[str, str]]:
        """Evaluates. A call that fails is divided, to find what makes it fail."""
        answer = self.ask("tools/call", {"name": "evaluate", "arguments": {"codes": codes}})
        text = answer["content"][0]["text"] if "content" in answer else json.dumps(answer)
        if "content" in answer and not answer.get("isError"):
            return json.loads(text)
        if len(codes) == 1:
            return [{"error": "the call fails", "says": text}]
        half = len(codes) // 2
        return self.values(codes[:half]) + self.values(codes[half:])

    def all(self, codes: list[str]) -> list[dict[str, str]]:
        found = [one for at in range(0, len(codes), AT_ONCE) for one in self.values(codes[at : at + AT_ONCE])]
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)
        return found


def plugin(options: argparse.Namespace, environ: dict[str, str]) -> Path:
    """Builds the component. `wharf_compat` installs its packages once."""
    made = options.work / "evaluate.wasm"
    compat = [sys.executable, "-m", "wharf_compat"]
    lock = options.work / "wharf-requirements.lock"
    said = f"{SERVER.read_text(encoding='utf-8').partition('///')[2].partition('///')[0]} {sys.version}"
    stamp = options.work / "installed.txt"
    steps = [[*compat, "build", str(SERVER), "--project", str(options.work), "-o", str(made), "--http"]]
    if not (stamp.is_file() and stamp.read_text(encoding="utf-8") == said):
        lock.unlink(missing_ok=True)
        steps.insert(0, [*compat, "setup", str(SERVER), "--project", str(options.work)])
    for step in steps:
        ran = subprocess.run(step, env=environ, capture_output=True, text=True)
        if ran.returncode:
            raise SystemExit(f"{step[3]} failed: {ran.stderr[-3000:]}")
    stamp.write_text(said, encoding="utf-8")
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--wharf", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--only", default="", metavar="TEXT", help="only expressions that contain this")
    parser.add_argument("--keep", action="store_true", help="takes the component that was built before")
    parser.add_argument("--record", action="store_true", help="writes refused.txt; argue a new refusal in the commit")
    parser.add_argument("--verbose", action="store_true", help="prints what is refused")
    options = parser.parse_args()
    options.work, options.wharf = options.work.resolve(), options.wharf.resolve()
    options.work.mkdir(parents=True, exist_ok=True)
    environ = {**os.environ, "TZ": "UTC", "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "PYTHONTZPATH": ""}
    made = options.work / "evaluate.wasm"
    if not (options.keep and made.is_file()):
        plugin(options, environ)
    web = ThreadingHTTPServer(("127.0.0.1", 0), Web)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{web.server_port}"
    given, theirs = (options.work / name for name in ("folder", "native"))
    for folder in (given, theirs):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    config = options.work / "evaluate.toml"
    config.write_text(
        f"[plugins.p]\npath = {json.dumps(str(made))}\nprefix = \"\"\n[plugins.p.limits]\ntimeout_ms = 20000\n[plugins.p.grants]\n"
        f'http = [{{ url = "{base}", methods = "any", private = true }}]\nenv = ["GIVEN"]\n'
        f'dirs = [{{ host = {json.dumps(str(given))}, access = "read-write" }}]\n',
        encoding="utf-8",
    )
    # It is compiled here, and not while the call waits.
    subprocess.run([str(options.wharf), "check", "-c", str(config)], env=environ, capture_output=True, check=False)
    codes = [code for code in expressions() if options.only in code]
    environ["GIVEN"] = "a value"
    began = time.monotonic()

    def run(command: list[str], folder: Path, skipped: set[str] = frozenset(), **more: str) -> list[dict[str, str]]:
        filled = ["'not evaluated'" if code in skipped else code.replace("BASE", repr(base)).replace("FOLDER", repr(str(folder))) for code in codes]
        return Server(command, {**environ, **more}, options.work / f"{folder.name}.log").all(filled)

    native = run([sys.executable, str(SERVER)], theirs, alone(), HOME=str(theirs), TMPDIR=str(theirs))
    here = run([str(options.wharf), "run", "-c", str(config)], given)
    web.shutdown()
    wrong, declined = [], []
    for code, one, other in zip(codes, native, here):
        text = json.loads(json.dumps(one).replace(str(theirs), str(given)))
        if other == text or "error" in other and text.get("error") == other["error"] and not SENTENCE.search(other["says"]):
            continue
        if "error" in other and SENTENCE.search(other["says"]):
            declined.append((code, other["says"]))
        elif not (code in DIFFERENT and sys.version_info < DIFFERENT[code][0]):
            wrong.append(f"{code}\n  Python: {json.dumps(text, ensure_ascii=False)[:600]}\n  plugin: {json.dumps(other, ensure_ascii=False)[:600]}")
    for one in wrong:
        print(one)
    if options.verbose:
        for code, says in declined:
            print(f"refused: {code}\n  {says}")
    if options.record:
        REFUSED.write_text("".join(f"{json.dumps(code)}\n" for code, _ in declined), encoding="utf-8")
    known = refused()
    new = [f"{code}\n  is refused, and was not: {says}" for code, says in declined if code not in known]
    gone = [f"{code}\n  is not refused any more: take it from the list" for code in known if code in codes and code not in dict(declined)]
    print("\n".join([*new, *gone]))
    took = time.monotonic() - began
    print(f"{len(codes)} expressions of Python (seed {SEED}): {len(wrong)} wrong, {len(declined)} refused in a sentence, in {took:.0f} s")
    return 1 if wrong or new or gone else 0


if __name__ == "__main__":
    sys.exit(main())
