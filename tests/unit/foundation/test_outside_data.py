"""What a sender of faulty data is told: every fault with its place, its rule and one line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field, field_validator

from broker_site.foundation.outside_data import (
    AS_GIVEN,
    MOST_PROBLEMS,
    STRICT,
    WHOLE,
    Expected,
    Flag,
    OutsideDataError,
    Whole,
    fault,
    read,
)


class Cat(BaseModel):
    model_config = STRICT

    lives: Annotated[int, Field(ge=0, le=9), WHOLE] = 9
    weight: Annotated[float, Field(ge=0), AS_GIVEN] | None = None
    fur: Literal["short", "long"] = "short"
    name: Annotated[str, Field(min_length=1, max_length=8)] = Field(description="What it answers to.")
    tame: Flag = True
    toys: Annotated[list[str], Expected("a list of toys")] = Field(default=[], max_length=3)
    code: Annotated[str, Field(pattern="^[a-z]+$")] = "a"
    place: Annotated[str, Field(pattern="^([a-z]+)?$")] = ""
    chip: Annotated[str, Field(pattern="^[0-9]*$")] = Field(default="", description="Number under the skin.")
    from_: str = Field(default="", alias="from", max_length=3, json_schema_extra={"column": "origin"})

    @field_validator("code")
    @classmethod
    def _no_dog(cls, value: str) -> str:
        if value == "dog":
            raise fault("species", "a {dog} is no cat")
        return value


class Home(BaseModel):
    model_config = STRICT

    cats: dict[str, Cat] = {}
    lodgers: list[Cat] = []


@pytest.mark.parametrize(
    ("given", "place", "rule", "message"),
    [
        ({"lives": 10}, "lives", "range", "expected 0 to 9, found the number 10"),
        ({"lives": 1.5}, "lives", "type", "expected a whole number, found the number 1.5"),
        ({"lives": True}, "lives", "type", "expected a whole number, found true"),
        ({"lives": "7"}, "lives", "type", "expected a whole number, found the text '7'"),
        ({"name": "\ud800"}, "name", "characters", "holds half of a surrogate pair"),
        ({"place": "x1"}, "place", "format", "the text 'x1' does not have the form [a-z]+"),
        ({"lives": None}, "lives", "type", "expected a whole number, found nothing"),
        ({"weight": -1}, "weight", "range", "expected 0 or more, found the number -1"),
        ({"weight": float("inf")}, "weight", "type", "expected a finite number"),
        ({"fur": "no"}, "fur", "choice", "expected one of short, long; found the text 'no'"),
        ({"name": ""}, "name", "required", "must not be empty"),
        ({"name": "x" * 9}, "name", "length", "9 characters, the limit is 8"),
        ({"tame": 2}, "tame", "type", "expected true or false, found the number 2"),
        ({"toys": "ball"}, "toys", "type", "expected a list of toys, found the text 'ball'"),
        ({"toys": [1]}, "toys[0]", "type", "expected a text, found the number 1"),
        ({"toys": ["a"] * 4}, "toys", "length", "more than 3 entries"),
        ({"code": "A"}, "code", "format", "the text 'A' does not have the form [a-z]+"),
        ({"chip": "A"}, "chip", "format", "the text 'A' does not have the form [0-9]*; it is: Number under the skin."),
        ({"code": "dog"}, "code", "species", "a {dog} is no cat"),
        ({"from": "here"}, "from", "length", "4 characters, the limit of the column origin is 3"),
        ({"livse": 3}, "livse", "unknown", "unknown member; the nearest known one is lives"),
    ],
)
def test_a_fault_has_its_place_its_rule_and_a_line(given: dict[str, object], place: str, rule: str, message: str) -> None:
    with pytest.raises(OutsideDataError) as refused:
        read(Home, {"cats": {"tom": {"name": "Tom"} | given}, "lodgers": [{"name": "Tim"} | given]}, noun="member")
    told = [(p.field, p.rule, p.message) for p in refused.value.problems]
    assert told == [(f"cats.tom.{place}", rule, message), (f"lodgers[0].{place}", rule, message)]


@dataclass(frozen=True)
class Dog:
    age: Annotated[Whole, Field(ge=0, le=30)]
    friends: list[Dog] = field(default_factory=list)
    owner: Annotated[str, Field(validation_alias="OWNER", min_length=1)] = "nobody"


def test_a_dataclass_is_a_declaration_too_and_passes_over_what_it_does_not_know() -> None:
    assert read(Dog, {"age": 3.0, "friends": [{"age": 4}], "colour": "red"}) == Dog(3, [Dog(4)])
    with pytest.raises(OutsideDataError) as refused:
        read(Dog, {"friends": [{"age": 31}, {"age": True}], "OWNER": ""})
    assert [(p.field, p.rule, p.message) for p in refused.value.problems] == [
        ("age", "required", "must be given"),
        ("friends[0].age", "range", "expected 0 to 30, found the number 31"),
        ("friends[1].age", "type", "expected a whole number, found true"),
        ("OWNER", "required", "must not be empty"),
    ]


def test_what_is_missing_is_described() -> None:
    with pytest.raises(OutsideDataError) as refused:
        read(Cat, {}, path="cats.tom")
    assert [(p.field, p.rule, p.message) for p in refused.value.problems] == [
        ("cats.tom.name", "required", "must be given: What it answers to.")
    ]


def test_what_is_no_object_is_told() -> None:
    with pytest.raises(OutsideDataError, match="expected an object, found the number 3"):
        read(Home, {"cats": {"tom": 3}})


def test_numbers_stay_as_they_came() -> None:
    cat = read(Cat, {"name": "Tom", "lives": 8.0, "weight": 4, "tame": 0})
    assert (cat.lives, cat.tame) == (8, False)
    assert (type(cat.lives), type(cat.weight)) == (int, int)


def test_problems_are_bounded_and_short() -> None:
    with pytest.raises(OutsideDataError) as refused:
        read(Cat, {"name": "Tom"} | {f"nmae{i}" * 200: 1 for i in range(1000)})
    assert len(refused.value.problems) == MOST_PROBLEMS
    assert all(len(p.field) <= 100 and len(p.message) <= 500 for p in refused.value.problems)
