"""`pydantic_core._pydantic_core` in plain Python, for pydantic 2.12: the part of pydantic that is otherwise compiled.

The package `pydantic`, and the Python half of `pydantic_core`, are used as they are published; `wharf_compat` puts this
package in the place of the compiled module. The names, the messages and the behaviour are those of the compiled module.
"""

from .errors import (
    PydanticCustomError,
    PydanticKnownError,
    PydanticOmit,
    PydanticSerializationError,
    PydanticSerializationUnexpectedValue,
    PydanticUseDefault,
    SchemaError,
    ValidationError,
    list_all_errors,
)
from .infer import to_json, to_jsonable_python
from .jsontext import from_json
from .serialize import SchemaSerializer
from .urls import MultiHostUrl, Url
from .validator import SchemaValidator
from .values import ArgsKwargs, PydanticUndefined, PydanticUndefinedType, Some, TzInfo

PYDANTIC = "2.12.5"
__version__ = "2.41.5"
build_profile = "python"
build_info = "plain Python"

__all__ = [
    "ArgsKwargs",
    "MultiHostUrl",
    "PydanticCustomError",
    "PydanticKnownError",
    "PydanticOmit",
    "PydanticSerializationError",
    "PydanticSerializationUnexpectedValue",
    "PydanticUndefined",
    "PydanticUndefinedType",
    "PydanticUseDefault",
    "SchemaError",
    "SchemaSerializer",
    "SchemaValidator",
    "Some",
    "TzInfo",
    "Url",
    "ValidationError",
    "__version__",
    "build_info",
    "build_profile",
    "from_json",
    "list_all_errors",
    "to_json",
    "to_jsonable_python",
]
