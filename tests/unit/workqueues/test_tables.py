"""The tables of parameters against the documents' names and the models' columns."""

from __future__ import annotations

import re

from django.db.models import CharField, Model

from workqueues.models import Dataset, File, OutputTemplate, Task
from workqueues.rules.jobs import lengths
from workqueues.rules.jobs.split_rule import FLAGS, NUMBERS
from workqueues.rules.task_parameters import TASK_PARAMETERS, find, not_yet

ROWS = re.compile(r"[PJDWSUX]\d{1,2}")


def longest(model: type[Model], column: str) -> int:
    field = model._meta.get_field(column)
    assert isinstance(field, CharField), column
    return field.max_length or 0


def test_texts_fit_the_columns_they_end_in() -> None:
    assert all(length <= longest(Task, column) for column, length in lengths.TASK.items())
    assert all(length <= longest(OutputTemplate, column) for column, length in lengths.TEMPLATE.items())
    for column, length in lengths.DATASET.items():
        assert length <= longest(File if column == "lfn" else Dataset, column)


def test_every_column_that_a_parameter_ends_in_exists() -> None:
    columns = {field.name for field in Task._meta.get_fields()}
    assert {p.column for p in TASK_PARAMETERS.values() if p.column} <= columns


def test_what_is_not_built_names_a_row() -> None:
    assert not_yet()
    assert all(ROWS.fullmatch(TASK_PARAMETERS[name].row) for name in not_yet())


def test_every_supported_split_rule_can_be_read_back() -> None:
    written = {p.code for p in TASK_PARAMETERS.values() if p.code and p.supported}
    stored_only = {
        "US",
        "DF",
        "SO",
        "LC",
        "MD",
        "NC",
        "NP",
        "UE",
        "EI",
        "RO",
    }  # done anyway, when feeding, or read by statements
    assert written - stored_only <= {*NUMBERS, *FLAGS}


def test_further_datasets_of_a_stream_are_known_by_their_beginning() -> None:
    assert (known := find("dsForIN2")) is not None and known.supported
    assert find("dsFor") is None
