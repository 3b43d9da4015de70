"""MCP servers in Python as wharf plugins, unchanged.

A server written for `mcp` or `fastmcp` is imported and started as it is. This package gives it an event loop without sockets, a
`pydantic_core` in plain Python, HTTP by wharf, and a client in memory, through which wharf's calls reach it.
"""

__version__ = "0.1.0"
