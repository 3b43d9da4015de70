"""Draws what a terminal shows while commands run, as SVG: `record.py WHARF DEMO FOLDER`.

Every line of a picture is what a program has printed, or a command that was run. Nothing is written by hand.
"""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

from rich.console import Console
from rich.text import Text

WIDTH = 104

# As rich draws a terminal, but without fonts from the network.
FORMAT = """<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: system-ui, sans-serif; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""

SERVER = '''from pathlib import Path
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("notes")

@mcp.tool()
def read(path: str) -> str:
    """Reads a note."""
    return Path(path).expanduser().read_text()

mcp.run()
'''


def run(line, folder, env, ends=(0,)):
    """Runs a line of shell in a terminal, which has to end with one of these codes; returns what that shows."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 50, WIDTH, 0, 0))
    process = subprocess.Popen(["bash", "-c", line], cwd=folder, env=env, stdin=child, stdout=child, stderr=child)
    os.close(child)
    shown = b""
    while True:
        try:
            read = os.read(parent, 65536)
        except OSError:
            break
        if not read:
            break
        shown += read
    if process.wait() not in ends:
        raise SystemExit(f"{line} ended with {process.returncode}: {shown.decode()}")
    os.close(parent)
    return shown.decode().replace("\r\n", "\n")


def seen(line):
    """A line as it is shown. When it was logged does not matter, and log lines stand back."""
    log = re.sub(r"^(    wharf: )?\d{4}-\d\d-\d\dT\S+ +", r"\1", line)
    return Text(log, "dim") if log != line else Text.from_ansi(line)


def draw(lines, title, path, overflow):
    console = Console(record=True, width=WIDTH, file=open(os.devnull, "w"), force_terminal=True, color_system="truecolor")
    for line in lines:
        console.print(line, overflow=overflow, no_wrap=overflow == "ellipsis")
    # The same name in every picture of the same size, so that nothing changes when nothing has.
    console.save_svg(str(path), title=title, code_format=FORMAT, unique_id="wharf")
    print(path)


def sandboxed(wharf, folder, into):
    """A server in Python, and what it may do."""
    home = folder / "home"
    place = home / "demo"
    (place / "notes").mkdir(parents=True)
    (home / ".ssh").mkdir()
    (home / ".ssh/id_ed25519").write_text("a key\n")
    (place / "notes/list.txt").write_text("buy milk\n")
    (place / "server.py").write_text(SERVER)
    programs = folder / "bin"
    programs.mkdir()
    (programs / "wharf").symlink_to(wharf)
    # What is fetched to build a server is fetched once.
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    env = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": cache, "PATH": f"{programs}:{os.environ['PATH']}", "TERM": "xterm-256color"}
    # What is installed and compiled for it is the same every time.
    run("wharf inspect --build server.py", place, env)
    lines = []
    for line, ends in [
        ("cat server.py", 0),
        ("wharf call server.py read path=notes/list.txt", 1),
        ("wharf call server.py notes read path=list.txt", 0),
        ("wharf call server.py notes read path=~/.ssh/id_ed25519", 1),
    ]:
        lines.append(Text.assemble(("$ ", "bold green"), (line, "bold")))
        shown = run(line, place, env, (ends,)).replace(str(home), "~")
        lines += [seen(text) for text in re.sub(r"\x1b\[[0-9;]*m", "", shown).rstrip("\n").split("\n")]
        lines.append(Text(""))
    draw(lines[:-1], "A server in Python, as it is, in wharf's sandbox", into / "sandbox.svg", "fold")


def replaced(wharf, demo, into):
    """Roots that are opened, and a plugin that is replaced, as the demonstration shows them."""
    shown = subprocess.run([demo, "--wharf", wharf], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True).stdout
    start = shown.index("— the client has opened one folder")
    shown = shown[start : shown.index("— a broken plugin")]
    # The folders of this run have random names.
    shown = re.sub(r"/tmp/\.tmp\w+", "~", shown)
    lines = []
    for line in shown.rstrip("\n").split("\n"):
        lines.append(Text(line, "bold") if line.startswith("— ") else seen(line))
    draw(lines, "Roots are opened, and a plugin is replaced, while a client is connected", into / "live.svg", "ellipsis")


if __name__ == "__main__":
    wharf, demo, into = (Path(argument).resolve() for argument in sys.argv[1:])
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        sandboxed(wharf, Path(folder), into)
    replaced(wharf, demo, into)
