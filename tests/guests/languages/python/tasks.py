"""Tools that a client can run in the background, and one that it cannot."""

import time
from dataclasses import dataclass
from typing import Annotated, Optional

from asking import Name
from wharf_sdk import Failure, Form, ProtocolError, ask, ask_all, tool


@dataclass
class Confirm:
    confirm: Annotated[bool, "Whether to delete it."]


@tool
def greet(name: Annotated[str, "Whom to greet."]) -> str:
    """Greets by name."""
    return f"Hello, {name}!"


@tool(task="optional")
def slow_compute(
    seconds: Annotated[float, "How long it takes."], label: Annotated[Optional[str], "What to call the result."] = None
) -> str:
    """Computes for as many seconds as asked."""
    time.sleep(seconds)
    return f"Computed {label or 'it'} in {seconds:g} seconds."


@tool(task="required")
def failing_job() -> str:
    """Fails after a second, as a tool fails."""
    # A failure of the tool itself is for the model to read: the task completes, with a result that says so.
    time.sleep(1)
    raise Failure("The job did not work out.")


@tool(task="optional")
def protocol_error_job() -> str:
    """Fails with an error of the protocol."""
    # An invalid request is a protocol error: the task fails.
    raise ProtocolError(-32603, "The job cannot run.")


@tool(task="optional", destructive=False)
def confirm_delete(filename: Annotated[str, "Which file would go."]) -> str:
    """Asks before it would delete a file; deletes nothing."""
    answer = ask(f"Delete {filename}?", Confirm, key="confirm")
    return f"Deleted {filename}." if answer and answer.confirm else f"Kept {filename}."


@tool(task="optional")
def multi_input() -> str:
    """Asks two things at once while it runs."""
    answers = ask_all({"first": Form("The first name?", Name), "second": Form("The second name?", Name)})
    return f"{sum(bool(answer) for answer in answers.values())} names were given."


@tool(task="required", ask_before_task=True)
def test_tool_with_task() -> str:
    """Asks for a name, and greets in the background once it has it."""
    answer = ask("What is your name?", Name, key="user_name")
    return f"Hello, {answer.name}!" if answer else "Hello, anonymous!"
