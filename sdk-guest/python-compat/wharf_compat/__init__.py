"""MCP servers in Python as wharf plugins, unchanged.

A server written for `mcp` or `fastmcp` is imported and started as it is. This package gives it an event loop without sockets, a
`pydantic_core` in plain Python, HTTP by wharf, and a client in memory, through which wharf's calls reach it.
"""

__version__ = "0.1.0"

LISTS = "lists.json"
"""The file of a server's lists, next to its code, in a build for `wharf dev`."""
