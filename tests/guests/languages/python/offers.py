"""The resources and the prompts. The suite reads the first resource without checking its kind, so that is a plain text."""

from dataclasses import dataclass
from typing import Annotated, Any

from media import PNG
from wharf_sdk import Contents, Image, Message, ask, complete, prompt, resource


@resource("test://static-text", name="static-text", mime_type="text/plain")
def static_text() -> str:
    """A text that stays as it is."""
    return "This is the content of the static text resource."


@resource("test://static-binary", name="static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """A picture that stays as it is."""
    return PNG


@resource("test://watched-resource", name="watched-resource", mime_type="text/plain")
def watched_resource() -> str:
    """A text to subscribe to."""
    # It never changes: no scenario waits for an update.
    return "Watched resource content"


@resource("test://template/{id}/data", name="template-data", mime_type="application/json")
def template_data(id: str) -> dict[str, Any]:
    """Data by its id."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


@dataclass
class UserContext:
    context: str


@prompt
def test_simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


@prompt
def test_prompt_with_arguments(
    arg1: Annotated[str, "The first argument."], arg2: Annotated[str, "The second argument."]
) -> str:
    """A prompt with two arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@complete(test_prompt_with_arguments, "arg1")
def first_arguments(value: str) -> list[str]:
    return [one for one in ("test1", "test2", "other") if one.startswith(value)]


@prompt
def test_prompt_with_embedded_resource(resourceUri: Annotated[str, "The URI of the resource."]) -> list[Message]:
    """A prompt that carries a resource."""
    resource = Contents(resourceUri, "Embedded resource content for testing.", "text/plain")
    return [Message(resource), Message("Please process the embedded resource above.")]


@prompt
def test_prompt_with_image() -> list[Message]:
    """A prompt that carries a picture."""
    return [Message(Image(PNG)), Message("Please analyze the image above.")]


@prompt
def test_input_required_result_prompt() -> str:
    """A prompt that asks for the context first."""
    answer = ask("What is the context?", UserContext, key="user_context")
    return f"Answer with this in mind: {answer.context}" if answer else "Answer."
