"""`python -m wharf_compat`"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from . import building, from_source, installing, target
from .target import CompatError


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m wharf_compat", description="Serve MCP servers in Python as wharf plugins.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, about in (
        ("setup", "install the server's dependencies into deps/ and lock them"),
        ("check", "start the server on this machine, and print the first error"),
        ("wheel", "build the wheel that setup needs next, from a package's source"),
        ("build", "build a component from the server"),
    ):
        command = commands.add_parser(name, help=about)
        if name != "wheel":
            about = "a file, a module (package.module or package.module:function), or pypi:NAME[==VERSION][#SCRIPT]"
            command.add_argument("server", metavar="SERVER", help=about)
        command.add_argument("--project", type=Path, default=Path.cwd(), help="the plugin's folder; by default, the current one")
        if name in ("check", "build"):
            command.add_argument("--arg", action="append", default=[], metavar="VALUE", help="an argument of the server's command line")
    commands.choices["setup"].add_argument("--with", action="append", default=[], dest="more", metavar="PACKAGE", help="a package to install in addition")
    build = commands.choices["build"]
    build.add_argument("-o", "--output", type=Path, default=Path("dist/plugin.wasm"), help="the component")
    build.add_argument("--live", type=Path, help="a folder for the server's own code, which each instance then reads when it starts: for `wharf dev`")
    build.add_argument("--http", action=argparse.BooleanOptionalAction, help="whether to import HTTP; by default: if the server uses it")
    return parser


def main() -> int:
    options = _parser().parse_args()
    project = options.project.resolve()
    try:
        if options.command == "setup":
            print(installing.setup(options.server, project, options.more))
            return 0
        if options.command == "wheel":
            from_source.make(project)
            return 0
        server = target.find(options.server, project)
        if options.command == "check":
            started = time.monotonic()
            said = building.check(server, project, options.arg)
            offers = [f"{len(said[kind])} {kind}" for kind in ("tools", "resources", "templates", "prompts") if said[kind]]
            print(f"{options.server}: {', '.join(offers)}, in {time.monotonic() - started:.1f} s")
            return 0
        print(building.make(server, project, options.output, options.arg, options.http, options.live))
    except from_source.Apart as told:
        print(told, file=sys.stderr)
        return from_source.AGAIN
    except CompatError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
