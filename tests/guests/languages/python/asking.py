"""Tools that ask the client. After a question, the tool is called again from its start with the answers; nothing waits in between."""

import json
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Union

from wharf_sdk import Form, NotGiven, Roots, Sample, ask, ask_all, can, keep, kept, roots, sample, tool


@dataclass
class Account:
    username: Annotated[str, "The user's name."]
    email: Annotated[str, "The user's email address."]


@dataclass
class Name:
    name: str


@dataclass
class Color:
    color: str


@dataclass
class Confirm:
    ok: bool


# Two schemas that no type generates exactly.
DEFAULTS = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "User name", "default": "John Doe"},
        "age": {"type": "integer", "description": "User age", "default": 30},
        "score": {"type": "number", "description": "User score", "default": 95.5},
        "status": {
            "type": "string",
            "description": "User status",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        "verified": {"type": "boolean", "description": "Verification status", "default": True},
    },
}
TITLED = [
    {"const": "value1", "title": "First Option"},
    {"const": "value2", "title": "Second Option"},
    {"const": "value3", "title": "Third Option"},
]
ENUMS = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {"type": "string", "oneOf": TITLED},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
        "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
    },
}


def told(answer: Union[Account, dict[str, Any], NotGiven]) -> str:
    if isinstance(answer, NotGiven):
        return f"Elicitation completed: action={'decline' if answer.how == 'declined' else 'cancel'}"
    content = asdict(answer) if isinstance(answer, Account) else answer
    return f"Elicitation completed: action=accept, content={json.dumps(content)}"


@tool
def test_sampling(prompt: Annotated[str, "What the model is to answer."]) -> str:
    """Has the client's model answer a prompt."""
    return f"LLM response: {sample(prompt, max_tokens=100).text}"


@tool
def test_elicitation(message: Annotated[str, "What the person reads."]) -> str:
    """Asks the person for a user name and an email address."""
    return told(ask(message, Account))


@tool
def test_elicitation_sep1034_defaults() -> str:
    """Asks the person with a form whose fields have defaults."""
    return told(ask("Please review and update the form fields with defaults", DEFAULTS))


@tool
def test_elicitation_sep1330_enums() -> str:
    """Asks the person with a form of every kind of choice."""
    return told(ask("Please select options from the enum fields", ENUMS))


@tool
def test_input_required_result_elicitation() -> str:
    """Asks for a name and greets."""
    answer = ask("What is your name?", Name, key="user_name")
    return f"Hello, {answer.name}!" if answer else "Hello, anonymous!"


@tool
def test_input_required_result_sampling() -> str:
    """Has the client's model name a capital."""
    return f"The model says: {sample('What is the capital of France?', max_tokens=100, key='capital_question').text}"


@tool
def test_input_required_result_list_roots() -> str:
    """Asks what the client has opened."""
    found = [root.uri for root in roots(key="client_roots")]
    return f"{len(found)} roots: {' '.join(found)}"


def confirmed() -> str:
    keep("asked")
    answer = ask("Is that all right?", Confirm, key="confirm")
    state = "state-ok" if kept() == "asked" else "state-lost"
    return f"{state}: {'confirmed' if answer and answer.ok else 'not confirmed'}"


@tool
def test_input_required_result_request_state() -> str:
    """Asks for a confirmation and keeps something meanwhile."""
    return confirmed()


@tool
def test_input_required_result_multiple_inputs() -> str:
    """Asks three things at once."""
    keep("asked")
    answers = ask_all(
        {
            "user_name": Form("What is your name?", Name),
            "greeting": Sample("Write a short greeting.", max_tokens=100),
            "client_roots": Roots(),
        }
    )
    return f"{len(answers)} answers arrived."


@tool
def test_input_required_result_multi_round() -> str:
    """Asks twice, one after the other."""
    keep("the name is asked")
    name = ask("Step 1: what is your name?", Name, key="step1")
    if not name:
        return "There was no name."
    keep("the color is asked")
    color = ask(f"Step 2: what is your favorite color, {name.name}?", Color, key="step2")
    return f"{name.name} likes {color.color}." if color else f"{name.name} has no favorite."


@tool
def test_input_required_result_tampered_state() -> str:
    """Asks for a confirmation; what it keeps meanwhile must come back unchanged."""
    return confirmed()


@tool
def test_input_required_result_capabilities() -> str:
    """Asks only what this client can answer."""
    questions: dict[str, Union[Form[Any], Sample, Roots]] = {}
    if can("sampling"):
        questions["greeting"] = Sample("Write a short greeting.", max_tokens=100)
    if can("form"):
        questions["user_name"] = Form("What is your name?", Name)
    if can("roots"):
        questions["client_roots"] = Roots()
    if not questions:
        return "This client can be asked nothing."
    return f"{len(ask_all(questions))} answers arrived."
