"""Write wharf plugins in Python: MCP tools, resources and prompts as sandboxed WebAssembly components.

    from wharf_sdk import tool

    @tool
    def greet(name: str) -> str:
        \"\"\"Greets a person.\"\"\"
        return f"Hello, {name}!"

Build with `python -m wharf_sdk build plugin.py -o plugin.wasm`.
"""

from ._call import (
    Directory,
    Form,
    NotGiven,
    Root,
    Roots,
    Sample,
    Sampled,
    Url,
    ask,
    ask_all,
    ask_url,
    caller,
    can,
    config,
    directories,
    keep,
    kept,
    list_changed,
    log,
    progress,
    resource_updated,
    roots,
    sample,
)
from ._codec import Field, dump, load
from ._content import Audio, Completion, Content, Contents, Entry, Image, Link, Message, Raw, Result
from ._errors import Failure, InvalidParams, NotFound, PluginError, ProtocolError
from ._http import FetchError, Headers, Response, fetch
from ._plugin import Plugin

plugin = Plugin()
"""The plugin that the decorators register functions in."""
tool = plugin.tool
resource = plugin.resource
prompt = plugin.prompt
complete = plugin.complete
instructions = plugin.instructions
wants = plugin.wants

__all__ = [
    "Audio",
    "Completion",
    "Content",
    "Contents",
    "Directory",
    "Entry",
    "Failure",
    "FetchError",
    "Field",
    "Form",
    "Headers",
    "Image",
    "InvalidParams",
    "Link",
    "Message",
    "NotFound",
    "NotGiven",
    "PluginError",
    "ProtocolError",
    "Raw",
    "Response",
    "Result",
    "Root",
    "Roots",
    "Sample",
    "Sampled",
    "Url",
    "ask",
    "ask_all",
    "ask_url",
    "caller",
    "can",
    "complete",
    "config",
    "directories",
    "dump",
    "fetch",
    "instructions",
    "keep",
    "kept",
    "list_changed",
    "load",
    "log",
    "progress",
    "prompt",
    "resource",
    "resource_updated",
    "roots",
    "sample",
    "tool",
    "wants",
]
