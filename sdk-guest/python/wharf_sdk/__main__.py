"""`python -m wharf_sdk`"""

import argparse
import sys
from pathlib import Path

from ._build import BuildError, Live, build


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m wharf_sdk", description="Write wharf plugins in Python.")
    command = parser.add_subparsers(required=True).add_parser("build", help="build a component from a plugin")
    command.add_argument("plugin", type=Path, help="the plugin's main file")
    command.add_argument("-o", "--output", type=Path, required=True, help="the component")
    command.add_argument("-p", "--path", type=Path, action="append", default=[], help="another folder to import from")
    command.add_argument(
        "--http", action=argparse.BooleanOptionalAction, help="whether to import HTTP; by default: if the plugin uses `fetch`"
    )
    command.add_argument(
        "--live", type=Path, help="a folder for the plugin's own code, which each instance then reads when it starts: for `wharf dev`"
    )
    options = parser.parse_args()
    try:
        print(build(options.plugin, options.output, options.path, options.http, live=options.live and Live(options.live)))
    except BuildError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
