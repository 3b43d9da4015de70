"""Tools that test the abilities of a plugin in this language; they have the same names and answers in each language."""

import json
import os
import random
import secrets
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal, Optional

from wharf_sdk import Failure, config, directories, fetch, tool


@tool
def ability_config() -> str:
    """The plugin's config."""
    return json.dumps(config())


@tool
def ability_directories() -> str:
    """The directories that are open to this call."""
    return json.dumps([asdict(one) for one in directories()])


@tool
def ability_read(path: Annotated[str, "Which file."]) -> str:
    """The text of a file."""
    return Path(path).read_text()


@tool
def ability_fetch(
    url: Annotated[str, "What to get."],
    variable: Annotated[Optional[str], "The environment variable whose value is sent as `authorization`."] = None,
) -> str:
    """How a server answers."""
    response = fetch(url, headers={"authorization": os.environ[variable]} if variable else None)
    return f"{response.status} {response.text}"


@tool
def ability_chance() -> str:
    """What chance and the clock say."""
    # `hash` is seeded when the plugin is built, and its seed cannot change while hashed strings exist: it is the
    # same in every call, and so is not among these.
    return json.dumps(
        {"random": random.random(), "secure": secrets.token_hex(16), "clock_ms": time.time_ns() // 1_000_000}
    )


@tool
def ability_fails(how: Annotated[Literal["throws", "returns"], "In which way."]) -> str:
    """Fails."""
    if how == "throws":
        raise ValueError("there is nothing to be had")
    raise Failure("There is nothing to be had.")
