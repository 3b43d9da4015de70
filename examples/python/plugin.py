"""A plugin with one tool."""

from wharf_sdk import tool


@tool
def greet(name: str) -> str:
    """Greets a person.

    Args:
        name: Whom to greet.
    """
    return f"Hello, {name}!"
