"""The core under pydantic: pydantic itself runs on it in a process of its own, where the compiled core is replaced."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import textwrap
import unittest
from pathlib import Path

from wharf_compat.core import (
    PydanticCustomError,
    SchemaError,
    SchemaSerializer,
    SchemaValidator,
    Url,
    ValidationError,
    from_json,
    to_json,
    to_jsonable_python,
)  # fmt: skip

HERE = Path(__file__).resolve().parent
REPLACE = """
import sys
import wharf_compat.core as core
sys.modules["pydantic_core._pydantic_core"] = core
"""


class Values(unittest.TestCase):
    def check(self, schema: dict, value: object, **options: object) -> object:
        return SchemaValidator(schema).validate_python(value, **options)

    def errors(self, schema: dict, value: object, **options: object) -> list:
        with self.assertRaises(ValidationError) as caught:
            SchemaValidator(schema).validate_python(value, **options)
        return [(one["type"], one["loc"]) for one in caught.exception.errors()]

    def test_numbers_are_converted_unless_strict(self) -> None:
        self.assertEqual(self.check({"type": "int"}, "12"), 12)
        self.assertEqual(self.check({"type": "int"}, 3.0), 3)
        self.assertEqual(self.errors({"type": "int"}, 3.5), [("int_from_float", ())])
        self.assertEqual(self.errors({"type": "int", "strict": True}, "12"), [("int_type", ())])
        self.assertEqual(self.errors({"type": "int", "ge": 5}, 4), [("greater_than_equal", ())])
        self.assertIs(self.check({"type": "bool"}, "yes"), True)

    def test_all_errors_of_a_list_are_told_with_their_places(self) -> None:
        found = self.errors({"type": "list", "items_schema": {"type": "int"}}, ["a", 1, None])
        self.assertEqual(found, [("int_parsing", (0,)), ("int_type", (2,))])

    def test_a_union_chooses_the_exact_member(self) -> None:
        schema = {"type": "union", "choices": [{"type": "int"}, {"type": "str"}]}
        self.assertEqual(self.check(schema, "1"), "1")
        self.assertEqual(self.check(schema, 1), 1)
        self.assertEqual(self.errors(schema, None), [("int_type", ("int",)), ("string_type", ("str",))])

    def test_an_error_of_a_called_function_is_its_own(self) -> None:
        def book(kind: str) -> None:
            if kind == "assert":
                raise AssertionError("one is not two")
            raise ValueError("the room is taken")

        parameters = [{"name": "kind", "schema": {"type": "str"}}]
        schema = {"type": "call", "function": book, "arguments_schema": {"type": "arguments", "arguments_schema": parameters}}
        for kind, error, said in (("value", ValueError, "the room is taken"), ("assert", AssertionError, "one is not two")):
            with self.assertRaises(error) as caught:
                self.check(schema, {"kind": kind})
            self.assertEqual((type(caught.exception), str(caught.exception)), (error, said))
        self.assertEqual(self.errors(schema, {"kind": 1}), [("string_type", ("kind",))])

    def test_a_custom_error_has_its_own_message(self) -> None:
        def refuse(value: object) -> object:
            raise PydanticCustomError("odd", "{what} is odd", {"what": value})

        schema = {"type": "function-plain", "function": {"type": "no-info", "function": refuse}}
        with self.assertRaises(ValidationError) as caught:
            self.check(schema, 3)
        self.assertEqual(caught.exception.errors()[0]["msg"], "3 is odd")

    def test_an_unknown_schema_is_an_error(self) -> None:
        with self.assertRaises(SchemaError):
            SchemaValidator({"type": "no such type"})

    def test_json_is_read_and_written(self) -> None:
        self.assertEqual(from_json('{"a": [1, 2.5, null]}'), {"a": [1, 2.5, None]})
        self.assertEqual(from_json('["a", "b', allow_partial="trailing-strings"), ["a", "b"])
        with self.assertRaisesRegex(ValueError, "trailing characters"):
            from_json("1 2")
        self.assertEqual(to_json({"a": float("nan"), "b": b"x"}, inf_nan_mode="null"), b'{"a":null,"b":"x"}')
        self.assertEqual(to_jsonable_python({1: {2}}), {"1": [2]})

    def test_a_value_of_another_type_is_serialized_with_a_warning(self) -> None:
        serializer = SchemaSerializer({"type": "int"})
        with self.assertWarnsRegex(UserWarning, "Expected `int`"):
            self.assertEqual(serializer.to_python("x"), "x")

    def test_urls_are_printed_as_the_standard_says(self) -> None:
        for given, printed in [("HTTP://Example.com", "http://example.com/"), ("https://a.b:443/x/../y", "https://a.b/y"),
                               ("mailto:a@b", "mailto:a@b")]:  # fmt: skip
            self.assertEqual(str(Url(given)), printed)
        with self.assertRaises(ValueError):
            Url("no url")


@unittest.skipUnless(importlib.util.find_spec("pydantic"), "needs pydantic")
class Pydantic(unittest.TestCase):
    SCRIPT = """
        import json
        from datetime import date
        from enum import Enum
        from typing import Annotated, Literal, Optional, Union
        from pydantic import BaseModel, Field, RootModel, TypeAdapter, ValidationError, computed_field, field_validator

        class Color(Enum):
            RED = "red"

        class Cat(BaseModel):
            kind: Literal["cat"]
            lives: int = Field(9, ge=1)

        class Dog(BaseModel):
            kind: Literal["dog"]
            name: Annotated[str, Field(min_length=2)]

        class Home(BaseModel):
            pet: Union[Cat, Dog] = Field(discriminator="kind")
            since: date
            color: Optional[Color] = None
            inner: Optional["Home"] = None

            @field_validator("since")
            @classmethod
            def not_future(cls, value):
                assert value.year < 3000, "too late"
                return value

            @computed_field
            @property
            def year(self) -> int:
                return self.since.year

        good = {"pet": {"kind": "cat"}, "since": "2024-02-29", "color": "red", "inner": {"pet": {"kind": "dog", "name": "Rex"}, "since": 0}}
        home = Home.model_validate(good)
        told = [home.model_dump_json(), home.model_dump(mode="json", exclude_unset=True), Home.model_json_schema()]
        for bad in ({"pet": {"kind": "cow"}, "since": "x"}, {"pet": {"kind": "dog", "name": "R"}, "since": "3001-01-01"}, 3):
            try:
                Home.model_validate(bad)
            except ValidationError as problem:
                told.append(str(problem))
        told.append(TypeAdapter(list[RootModel[int]]).dump_python(TypeAdapter(list[RootModel[int]]).validate_json("[1, 2]")))
        print(json.dumps(told))
    """

    def run_script(self, before: str) -> list:
        script = before + textwrap.dedent(self.SCRIPT)
        ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=HERE.parent, check=False)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return json.loads(ran.stdout)

    def test_models_behave_as_with_the_compiled_core(self) -> None:
        self.assertEqual(self.run_script(REPLACE), self.run_script(""))


if __name__ == "__main__":
    unittest.main()
