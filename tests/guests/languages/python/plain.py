"""Tools that only answer, log or report progress."""

import json
import logging
import time
from pathlib import Path
from typing import Annotated, Any

from media import PNG, WAV
from wharf_sdk import Audio, Content, Contents, Field, Image, Result, list_changed, log, progress, tool

# Published unchanged: the suite looks for each of its keywords. The file is read when the plugin is built.
SCHEMA = json.loads((Path(__file__).parent / "schema.json").read_text())


@tool
def test_simple_text() -> str:
    """Answers with one text block."""
    return "This is a simple text response for testing."


@tool
def test_image_content() -> Image:
    """Answers with one image."""
    return Image(PNG)


@tool
def test_audio_content() -> Audio:
    """Answers with one piece of audio."""
    return Audio(WAV)


@tool
def test_embedded_resource() -> Contents:
    """Answers with one embedded resource."""
    return Contents("test://embedded-resource", "This is an embedded resource content.", "text/plain")


@tool
def test_multiple_content_types() -> list[Content]:
    """Answers with a text, an image and an embedded resource."""
    data = json.dumps({"test": "data", "value": 123})
    mixed = Contents("test://mixed-content-resource", data, "application/json")
    return ["Multiple content types test:", Image(PNG), mixed]


@tool
def test_error_handling() -> Result:
    """Always fails, as a tool fails: with a result that says so."""
    return Result(["This tool intentionally returns an error for testing."], is_error=True)


@tool
def test_tool_with_logging() -> str:
    """Logs three messages while it runs."""
    log("info", "Tool execution started")
    time.sleep(0.05)
    logging.info("Tool processing data")
    time.sleep(0.05)
    logging.getLogger("fixture").info("Tool execution %s", "completed")
    return "Three messages are logged."


@tool
def test_tool_with_progress() -> str:
    """Reports progress three times while it runs."""
    for done, pause in ((0, 0.05), (50, 0.05), (100, 0)):
        progress(done, 100)
        time.sleep(pause)
    return "The progress is reported."


@tool(schema=SCHEMA)
def json_schema_2020_12_tool(args: dict[str, Any]) -> str:
    """Takes arguments whose JSON Schema uses what is new in the draft 2020-12."""
    return f"Called with: {json.dumps(args)}"


@tool
def test_reconnection() -> str:
    """Takes so long that the stream of its answer is closed meanwhile and the client has to come back."""
    # The operator's `poll_after_ms` has to be less than this duration, so that the suite sees the stream close.
    time.sleep(0.9)
    return "The answer that the client came back for."


@tool(needs=["sampling"])
def test_missing_capability() -> str:
    """Cannot be called by a client without sampling."""
    return "The client can sample."


@tool
def test_streaming_elicitation() -> str:
    """Reports progress before it answers, and asks nothing."""
    progress(1, 1, "about to answer")
    return "Nothing had to be asked."


@tool
def test_logging_tool() -> str:
    """Logs one message before it answers."""
    log("info", "a message for who wants it")
    return "One message is logged."


@tool
def test_trigger_tool_change() -> str:
    """Announces that the list of tools has changed."""
    list_changed("tools")
    return "The change of the tools is announced."


@tool
def test_trigger_prompt_change() -> str:
    """Announces that the list of prompts has changed."""
    list_changed("prompts")
    return "The change of the prompts is announced."


@tool
def test_x_mcp_header(
    region: Annotated[str, Field("Which region; sent in a header as well.", extra={"x-mcp-header": "Region"})],
) -> str:
    """Takes an argument that clients repeat in a header."""
    return f"The region is {region}."
