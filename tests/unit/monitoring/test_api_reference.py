"""The page of the API tells what the OpenAPI document says: every operation, its fields and what they are, in words."""

from __future__ import annotations

from typing import Any

from drf_spectacular.generators import SchemaGenerator

from monitoring.api_reference import METHODS, Operation, subjects

DOCUMENT: Any = SchemaGenerator().get_schema(request=None, public=True)
OPERATIONS = {each.id: each for operations in subjects(DOCUMENT).values() for each in operations}


def field(fields: Any, name: str) -> Any:
    return next(each for each in fields if each.name == name)


def test_every_operation_is_there_once_and_each_says_what_it_does() -> None:
    told = [method for path in DOCUMENT["paths"].values() for method in path if method in METHODS]
    assert len(OPERATIONS) == len(told) > 60
    assert all(each.title and each.answers for each in OPERATIONS.values())


def test_parameters_bodies_and_answers_are_told_in_words() -> None:
    series: Operation = OPERATIONS["series_retrieve"]
    assert field(series.parameters, "step").kind == "one of 1d, 1h, 1m, 5m"
    assert field(series.result, "lines").kind == "list of object"
    assert field(series.result, "lines[].points").kind == "list of integer"
    assert field(series.result, "counted_at").kind == "time or null"
    task = OPERATIONS["tasks_retrieve"]
    assert field(task.parameters, "task_id").required
    assert ("404", "There is nothing here, or nothing that you may see.") in task.answers
