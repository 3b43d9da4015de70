"""Small types of `pydantic_core` that carry values: markers, wrappers and time zones."""

from __future__ import annotations

import datetime
from typing import Any


class PydanticUndefinedType:
    """The type of `PydanticUndefined`, which stands for a value that was not given."""

    _instance: PydanticUndefinedType | None = None

    def __new__(cls) -> PydanticUndefinedType:
        if cls._instance is None:
            cls._instance = super().__new__(cls)
        return cls._instance

    def __repr__(self) -> str:
        return "PydanticUndefined"

    def __copy__(self) -> PydanticUndefinedType:
        return self

    def __deepcopy__(self, memo: Any) -> PydanticUndefinedType:
        return self

    def __reduce__(self) -> str:
        return "PydanticUndefined"


PydanticUndefined = PydanticUndefinedType()


class Some:
    """A value that is there, even if it is None."""

    __slots__ = ("value",)
    __match_args__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __class_getitem__(cls, item: Any) -> type[Some]:
        return cls

    def __repr__(self) -> str:
        return f"Some({self.value!r})"


class ArgsKwargs:
    """The positional and the named arguments of a call."""

    __slots__ = ("args", "kwargs")

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
        self.args, self.kwargs = tuple(args), kwargs or None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArgsKwargs) and (self.args, self.kwargs) == (other.args, other.kwargs)

    def __repr__(self) -> str:
        if self.kwargs is None:
            return f"ArgsKwargs({self.args!r})"
        return f"ArgsKwargs({self.args!r}, {self.kwargs!r})"


class TzInfo(datetime.tzinfo):
    """A fixed offset from UTC."""

    def __init__(self, seconds: float = 0.0) -> None:
        if not -86400 < seconds < 86400:
            raise ValueError(f"TzInfo offset must be strictly between -86400 and 86400 (24 hours) seconds, got {int(seconds)}")
        self._seconds = int(seconds)

    def utcoffset(self, _: datetime.datetime | None) -> datetime.timedelta:
        return datetime.timedelta(seconds=self._seconds)

    def dst(self, _: datetime.datetime | None) -> None:
        return None

    def fromutc(self, moment: datetime.datetime) -> datetime.datetime:
        return (moment + self.utcoffset(moment)).replace(tzinfo=self)

    def tzname(self, _: datetime.datetime | None) -> str:
        return str(self)

    def __str__(self) -> str:
        if self._seconds == 0:
            return "UTC"
        sign, rest = ("-" if self._seconds < 0 else "+"), abs(self._seconds)
        seconds = f":{rest % 60:02}" if rest % 60 else ""
        return f"{sign}{rest // 3600:02}:{rest // 60 % 60:02}{seconds}"

    def __repr__(self) -> str:
        return f"TzInfo({self._seconds})"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TzInfo):
            return self._seconds == other._seconds
        if isinstance(other, datetime.tzinfo):
            return other.utcoffset(None) == self.utcoffset(None)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._seconds)

    def __deepcopy__(self, memo: Any) -> TzInfo:
        return self

    def __reduce__(self) -> Any:
        return TzInfo, (self._seconds,)
