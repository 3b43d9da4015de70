"""A server of the official SDK: `cargo xtask check existing` runs it as it is."""

from mcp.server.fastmcp import FastMCP

mcp = FastMCP("notes")


@mcp.tool()
def add(a: int, b: int) -> str:
    """Adds two numbers."""
    return f"{a} + {b} = {a + b}"


if __name__ == "__main__":
    mcp.run()
