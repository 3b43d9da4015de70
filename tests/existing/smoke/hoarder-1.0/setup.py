"""A package that is published only as source, and takes what it can get while it is built. What it got is its content."""

import os
import pwd
import socket
import sys
from pathlib import Path

from setuptools import setup

got = []
for name, attempt in {
    "a variable": lambda: os.environ["API_TOKEN"],
    "the settings of pip": lambda: os.environ["PIP_FIND_LINKS"],
    "a socket": lambda: socket.socket().connect(("127.0.0.1", 9)),
    "the home folder": lambda: os.listdir(pwd.getpwuid(os.getuid()).pw_dir),
    "what installs packages": lambda: Path(sys.prefix, "bin/taken").write_text(""),
    "all memory": lambda: bytearray(9 << 30),
}.items():
    try:
        attempt()
        got.append(name)
    except (KeyError, PermissionError, MemoryError):
        pass
    except OSError as problem:
        got.append(f"{name}, although {problem}")
Path("hoarder.py").write_text(f"GOT = {got!r}\n")
setup(name="hoarder", version="1.0", py_modules=["hoarder"])
