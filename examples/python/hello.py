"""One tool. The contract's `list-tools` is `list_tools` here, and so on."""

import json

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.tools import Tool, ToolOutcome_Text
from wit_world.imports.types import Context, Failure


class Tools(exports.Tools):
    def list_tools(self) -> list[Tool]:
        schema = {
            "type": "object",
            "properties": {"name": {"type": "string", "description": "Whom to greet."}},
            "required": ["name"],
        }
        return [Tool(name="greet", description="Greets a person.", input_schema=json.dumps(schema), details=None)]

    def call_tool(self, name: str, args: str, context: Context) -> ToolOutcome_Text:
        if name != "greet":
            raise Err(Failure(message=f"unknown tool: {name}", code=-32602, data=None))
        return ToolOutcome_Text(f"Hello, {json.loads(args)['name']}!")
