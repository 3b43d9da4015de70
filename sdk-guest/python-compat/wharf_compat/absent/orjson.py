"""`orjson` over `json`: the functions that servers call, without the speed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

OPT_APPEND_NEWLINE, OPT_INDENT_2, OPT_NAIVE_UTC, OPT_NON_STR_KEYS, OPT_OMIT_MICROSECONDS = 1024, 1, 2, 4, 8
OPT_PASSTHROUGH_DATACLASS, OPT_PASSTHROUGH_DATETIME, OPT_PASSTHROUGH_SUBCLASS, OPT_SERIALIZE_DATACLASS = 2048, 512, 256, 0
OPT_SERIALIZE_NUMPY, OPT_SERIALIZE_UUID, OPT_SORT_KEYS, OPT_STRICT_INTEGER, OPT_UTC_Z = 16, 0, 32, 64, 128
JSONDecodeError = json.JSONDecodeError
JSONEncodeError = TypeError


def loads(text: Any) -> Any:
    return json.loads(bytes(text) if isinstance(text, memoryview) else text)


def dumps(value: Any, default: Callable[[Any], Any] | None = None, option: int | None = None) -> bytes:
    from ..core import to_jsonable_python

    given = option or 0
    made = to_jsonable_python(value, fallback=default)
    separators = None if given & OPT_INDENT_2 else (",", ":")
    text = json.dumps(
        made, ensure_ascii=False, indent=2 if given & OPT_INDENT_2 else None, separators=separators,
        sort_keys=bool(given & OPT_SORT_KEYS),
    )  # fmt: skip
    return text.encode() + (b"\n" if given & OPT_APPEND_NEWLINE else b"")
