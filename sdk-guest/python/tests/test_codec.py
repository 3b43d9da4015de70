"""Type hints, the schemas derived from them, and the values that they decode and encode."""

from __future__ import annotations

import enum
import unittest
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, List, Literal, Mapping, NewType, Optional, Sequence, Tuple, TypedDict, Union
from uuid import UUID

from typing_extensions import NotRequired

from wharf_sdk import Failure, Field, dump, load
from wharf_sdk._codec import HintError, Mismatch, codec, parameters, plain, to_json


class Unit(enum.Enum):
    METRE = "metre"
    FOOT = "foot"


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2


@dataclass
class Place:
    """Somewhere."""

    latitude: Annotated[float, "Degrees."]
    height: Optional[int] = None


@dataclass
class Tree:
    name: str
    children: List[Tree] = field(default_factory=list)


class Person(TypedDict):
    name: str
    age: NotRequired[int]
    mail: Optional[str]


class Model:
    """A class with the methods of pydantic's models."""

    def __init__(self, x: int) -> None:
        self.x = x

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        inner = {"title": "Inner", "type": "object", "properties": {"y": {"title": "Y", "type": "string"}}}
        members = {
            "x": {"title": "X", "type": "integer"},
            "inner": {"anyOf": [{"$ref": "#/$defs/Inner"}, {"type": "null"}], "default": None},
        }
        return {"title": "Model", "type": "object", "properties": members, "required": ["x"], "$defs": {"Inner": inner}}

    @classmethod
    def model_validate(cls, value: Any) -> Model:
        return cls(value["x"])

    def model_dump(self, mode: str) -> dict[str, Any]:
        return {"x": self.x}


class Ge:
    """A class with the attributes of those in `annotated_types`."""

    def __init__(self, ge: int) -> None:
        self.ge = ge


Id = NewType("Id", str)
PLACE = {
    "type": "object",
    "description": "Somewhere.",
    "properties": {"latitude": {"type": "number", "description": "Degrees."}, "height": {"type": "integer"}},
    "required": ["latitude"],
}
TREE_INSIDE = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
    },
    "required": ["name"],
}

# A hint, its schema, and pairs of a JSON and a Python value.
TABLE: list[tuple[Any, Any, list[tuple[Any, Any]]]] = [
    (str, {"type": "string"}, [("a", "a")]),
    (int, {"type": "integer"}, [(1, 1)]),
    (float, {"type": "number"}, [(1.5, 1.5)]),
    (bool, {"type": "boolean"}, [(True, True)]),
    (None, {"type": "null"}, [(None, None)]),
    (Any, {}, [({"a": [1]}, {"a": [1]})]),
    (list, {"type": "array", "items": {}}, [([1, "a"], [1, "a"])]),
    (list[int], {"type": "array", "items": {"type": "integer"}}, [([1, 2], [1, 2])]),
    (Sequence[str], {"type": "array", "items": {"type": "string"}}, [(["a"], ["a"])]),
    (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}, [(["a"], {"a"})]),
    (
        list[Optional[int]],
        {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
        [([1, None], [1, None])],
    ),
    (dict, {"type": "object", "properties": {}}, [({"a": 1}, {"a": 1})]),
    (
        Mapping[str, int],
        {"type": "object", "properties": {}, "additionalProperties": {"type": "integer"}},
        [({"a": 1}, {"a": 1})],
    ),
    (
        dict[str, Place],
        {"type": "object", "properties": {}, "additionalProperties": PLACE},
        [({"a": {"latitude": 1.0}}, {"a": Place(1.0)})],
    ),
    (Tuple[int, ...], {"type": "array", "items": {"type": "integer"}}, [([1, 2], (1, 2))]),
    (
        Tuple[float, float],
        {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
        [([1.0, 2.0], (1.0, 2.0))],
    ),
    (
        Tuple[int, str],
        {
            "type": "array",
            "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            "minItems": 2,
            "maxItems": 2,
            "prefixItems": [{"type": "integer"}, {"type": "string"}],
        },
        [([1, "a"], (1, "a"))],
    ),
    (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}, [("a", "a")]),
    (Literal[1, 2], {"type": "integer", "enum": [1, 2]}, [(2, 2)]),
    (Literal["a", 1], {"enum": ["a", 1]}, [("a", "a"), (1, 1)]),
    (Unit, {"type": "string", "enum": ["metre", "foot"]}, [("foot", Unit.FOOT)]),
    (Size, {"type": "integer", "enum": [1, 2]}, [(1, Size.SMALL)]),
    (Optional[str], {"type": "string"}, [("a", "a"), (None, None)]),
    (Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}, [(1, 1), ("a", "a")]),
    (
        Union[str, date, None],
        {"anyOf": [{"type": "string"}, {"type": "string", "format": "date"}]},
        [("a", "a"), ("2026-01-02", date(2026, 1, 2)), (None, None)],
    ),
    (Annotated[str, "What."], {"type": "string", "description": "What."}, [("a", "a")]),
    (
        Annotated[int, Field("How many.", ge=1, le=10)],
        {"type": "integer", "description": "How many.", "minimum": 1, "maximum": 10},
        [(1, 1)],
    ),
    (Annotated[int, Ge(3)], {"type": "integer", "minimum": 3}, []),
    (Annotated[Optional[str], Field(min_length=1)], {"type": "string", "minLength": 1}, [(None, None)]),
    (Annotated[list[str], Field(max_length=3)], {"type": "array", "items": {"type": "string"}, "maxItems": 3}, []),
    (
        Annotated[str, Field(pattern="^a", extra={"x-mcp-header": "A"})],
        {"type": "string", "pattern": "^a", "x-mcp-header": "A"},
        [],
    ),
    (Id, {"type": "string"}, [("a", "a")]),
    (
        datetime,
        {"type": "string", "format": "date-time"},
        [("2026-01-02T03:04:05+00:00", datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc))],
    ),
    (UUID, {"type": "string", "format": "uuid"}, [("6ba7b810-9dad-11d1-80b4-00c04fd430c8", UUID(int=0x6BA7B8109DAD11D180B400C04FD430C8))]),
    (Path, {"type": "string"}, [("/a", Path("/a"))]),
    (Decimal, {"type": "number"}, [(1.5, Decimal("1.5"))]),
    (bytes, {"type": "string", "contentEncoding": "base64"}, [("YQ==", b"a")]),
    (Place, PLACE, [({"latitude": 1.0}, Place(1.0)), ({"latitude": 1.0, "height": 3}, Place(1.0, 3))]),
    (
        Tree,
        {**TREE_INSIDE, "$defs": {"Tree": TREE_INSIDE}},
        [({"name": "a", "children": [{"name": "b", "children": []}]}, Tree("a", [Tree("b")]))],
    ),
    (
        Person,
        {
            "type": "object",
            "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "mail": {"type": "string"}},
            "required": ["name"],
        },
        [({"name": "Ada"}, {"name": "Ada"}), ({"name": "Ada", "age": 36}, {"name": "Ada", "age": 36})],
    ),
]

# A hint, JSON that does not match it, and the error text.
UNFIT: list[tuple[Any, Any, str]] = [
    (str, 1, "x should be a string, not a number"),
    (int, True, "x should be an integer, not a boolean"),
    (int, 1.5, "x should be an integer, not a number"),
    (float, "1", "x should be a number, not a string"),
    (list[int], [1, "a"], r"x\[1\] should be an integer, not a string"),
    (Tuple[int, str], [1], "x should have 2 items, not 1"),
    (Unit, "mile", "x should be one of 'metre', 'foot', not 'mile'"),
    (Literal[1, 2], True, "x should be one of 1, 2, not True"),
    (Place, {}, "x lacks `latitude`"),
    (Place, {"latitude": "north"}, "x.latitude should be a number, not a string"),
    (date, "tomorrow", "x is not a date"),
    (Union[int, bool], "a", "x should be an integer.*; x should be a boolean"),
]

NO_SCHEMA: list[tuple[Any, str]] = [
    (complex, "there is no JSON Schema for `complex`"),
    (dict[int, str], "the keys of a dict are strings in JSON, not `int`"),
    (Literal[b"a"], "the values of a choice must be strings, numbers or booleans"),
]


class Codecs(unittest.TestCase):
    def test_data_becomes_a_dataclass_and_back(self) -> None:
        place = load(Place, {"latitude": 1, "height": None})
        self.assertEqual((place, dump(place)), (Place(1.0), {"latitude": 1.0}))
        self.assertEqual(load(List[Size], [1, 2]), [Size.SMALL, Size.LARGE])
        with self.assertRaisesRegex(Failure, "latitude"):
            load(Place, {"height": 1})

    def test_table(self) -> None:
        for hint, schema, values in TABLE:
            with self.subTest(hint=str(hint)):
                found = codec(hint)
                self.assertEqual(found.schema, schema)
                for written, value in values:
                    self.assertEqual(found.decode(written, "x"), value)
                    self.assertEqual(type(found.decode(written, "x")), type(value))
                    encoded = codec(hint, output=True).encode(value, "x")
                    # A member that is left out is decoded as its default.
                    self.assertEqual(found.decode(encoded, "x"), value)

    def test_values_that_do_not_fit(self) -> None:
        for hint, value, said in UNFIT:
            with self.subTest(hint=str(hint)), self.assertRaisesRegex(Mismatch, said):
                codec(hint).decode(value, "x")

    def test_hints_without_a_schema(self) -> None:
        for hint, said in NO_SCHEMA:
            with self.subTest(hint=str(hint)), self.assertRaisesRegex(HintError, said):
                codec(hint)

    def test_what_a_plugin_says_is_complete(self) -> None:
        # In arguments, a member with a default may be missing; in results, it is present unless it is None.
        self.assertEqual(codec(Tree, output=True).schema["required"], ["name", "children"])
        self.assertEqual(codec(Place, output=True).schema["required"], ["latitude"])
        self.assertEqual(codec(Place, output=True).encode(Place(1.0), "x"), {"latitude": 1.0})

    def test_what_a_plugin_says_is_checked(self) -> None:
        for hint, value, said in [
            (Place, {"latitude": 1.0}, "should be a Place, not an object"),
            (Person, {"name": "Ada", "size": 1}, "has `size`, which Person does not have"),
            (Person, {}, "lacks `name`"),
            (list[str], "abc", "should be a list, not a string"),
        ]:
            with self.subTest(hint=str(hint)), self.assertRaisesRegex(Mismatch, said):
                codec(hint, output=True).encode(value, "x")

    def test_parameters(self) -> None:
        def function(
            a: str, b: int = 3, c: Optional[Place] = None, *, d: Optional[str], e: Annotated[Unit, "Of what."] = Unit.FOOT
        ) -> None: ...

        found, schema = parameters(function, {"a": "The first."})
        self.assertEqual([one.required for one in found], [True, False, False, False, False])
        self.assertEqual(
            schema,
            {
                "type": "object",
                "properties": {
                    "a": {"type": "string", "description": "The first."},
                    "b": {"type": "integer", "default": 3},
                    "c": PLACE,
                    "d": {"type": "string"},
                    "e": {"type": "string", "enum": ["metre", "foot"], "description": "Of what.", "default": "foot"},
                },
                "required": ["a"],
            },
        )

    def test_who_has_no_parameters_has_properties_all_the_same(self) -> None:
        def function() -> None: ...

        self.assertEqual(parameters(function)[1], {"type": "object", "properties": {}})

    def test_parameters_that_cannot_be_called_by_name(self) -> None:
        def unhinted(a): ...  # type: ignore[no-untyped-def]
        def starred(*a: str) -> None: ...
        def positional(a: str, /) -> None: ...
        def wrong_default(a: int = "1") -> None: ...  # type: ignore[assignment]

        for function, said in [
            (unhinted, "the parameter `a` has no type hint"),
            (starred, "has no name that a caller could use"),
            (positional, "has no name that a caller could use"),
            (wrong_default, "the default does not fit its type hint: a should be an integer, not a string"),
        ]:
            with self.subTest(said), self.assertRaisesRegex(HintError, said):
                parameters(function)

    def test_models_of_other_libraries(self) -> None:
        found = codec(Model)
        inner = {"type": "object", "properties": {"y": {"type": "string"}}}
        members = {"x": {"type": "integer"}, "inner": inner}
        self.assertEqual(found.schema, {"type": "object", "properties": members, "required": ["x"]})
        self.assertEqual(found.decode({"x": 1}, "x").x, 1)
        self.assertEqual(found.encode(Model(2), "x"), {"x": 2})

    def test_a_model_that_contains_itself_keeps_its_reference(self) -> None:
        node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
        schema = plain({"$ref": "#/$defs/Node", "$defs": {"Node": node}})
        self.assertEqual(schema["properties"]["next"], {"$ref": "#/$defs/Node"})
        self.assertEqual(schema["$defs"]["Node"]["properties"]["next"], {"$ref": "#/$defs/Node"})

    def test_values_without_hints(self) -> None:
        value = {"a": [Place(1.0), Unit.FOOT, date(2026, 1, 2), None]}
        self.assertEqual(to_json(value, "x"), {"a": [{"latitude": 1.0}, "foot", "2026-01-02", None]})
        with self.assertRaisesRegex(Mismatch, r"x\.a is a object, which cannot be written as JSON"):
            to_json({"a": object()}, "x")


if __name__ == "__main__":
    unittest.main()
