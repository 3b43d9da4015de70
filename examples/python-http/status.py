"""One tool that asks another server. What it may ask is the operator's to say: `http` in its grants."""

import json

import fetch
from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.tools import Tool, ToolOutcome_Text
from wit_world.imports.wharf_plugin_types import Context, Failure


class Tools(exports.Tools):
    def list_tools(self) -> list[Tool]:
        schema = {
            "type": "object",
            "properties": {"url": {"type": "string", "description": "The page's URL."}},
            "required": ["url"],
        }
        about = "Says how a web page answers: its status, and how long it is."
        return [Tool(name="status", description=about, input_schema=json.dumps(schema), details=None)]

    def call_tool(self, name: str, args: str, context: Context) -> ToolOutcome_Text:
        if name != "status":
            raise Err(Failure(message=f"unknown tool: {name}", code=-32602, data=None))
        try:
            response = fetch.get(json.loads(args)["url"])
        except fetch.Error as error:
            raise Err(Failure(message=str(error), code=None, data=None))
        return ToolOutcome_Text(f"{response.status}, {len(response.text())} characters")
