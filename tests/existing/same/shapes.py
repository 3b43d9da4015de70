"""What expressions about pydantic and orjson use."""

import collections
import dataclasses
import datetime as d
import decimal
import enum
import fractions
import ipaddress
import json
import pathlib
import re
import typing as t
import uuid
import zoneinfo
from collections.abc import Callable

import pydantic as p
import typing_extensions

Color = enum.Enum("Color", {"RED": "red", "BLUE": "blue"})
Level = enum.IntEnum("Level", {"LOW": 1, "HIGH": 2})
Point = dataclasses.make_dataclass("Point", ["x", ("_hidden", int)])
Named = collections.namedtuple("Named", "a b")
Text, Number, Map = type("Text", (str,), {}), type("Number", (int,), {}), type("Map", (dict,), {})


def zoned() -> d.datetime:
    return d.datetime(2024, 7, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Paris"))


class Model(p.BaseModel):
    a: int
    b: t.Optional[str] = None


@p.dataclasses.dataclass
class Data:
    x: int
    y: str = "d"


class Typed(typing_extensions.TypedDict):
    a: int
    b: typing_extensions.NotRequired[str]


class Cat(p.BaseModel):
    kind: t.Literal["cat"]
    lives: int = 9


class Dog(p.BaseModel):
    kind: t.Literal["dog"]
    good: bool = True


def caught(what: Callable[[], t.Any]) -> Exception:
    try:
        what()
    except Exception as problem:
        return problem
    raise AssertionError("nothing was raised")


def tried(what: Callable[[], t.Any]) -> t.Any:
    """Returns the value, or which errors pydantic finds. Their texts are compared where an expression asks for them."""
    try:
        return what()
    except p.ValidationError as problem:
        return [(one["type"], one["loc"]) for one in problem.errors(include_url=False)]


NAMES = (collections, decimal, fractions, ipaddress, json, pathlib, re, uuid)
