"""Serves the plugin in this package over stdin and stdout. Arguments are the folders that are open to it; the README has the variables."""

import os
import sys
import sysconfig


def main() -> None:
    folder = os.path.dirname(os.path.realpath(__file__))
    program = PROGRAM
    os.execv(program, [program, "packaged", os.path.join(folder, COMPONENT), *sys.argv[1:]])
