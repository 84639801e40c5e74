"""The middle name of outputs: fields of the name of the input, which `${MIDDLENAME}` stands for (addNthFieldToLFN).

A name is cut at its dots, and the first field has the number 1. Source: facts on task parameters 2.1, 2.2 and 3.2 (AN, UF).
"""

from __future__ import annotations

from collections.abc import Sequence

from workqueues.rules.split_rule import SplitRules


def middle_name(rules: SplitRules, dataset_name: str, lfn: str) -> str:
    """For a job of this master dataset whose first master file is `lfn`; empty where the task asks for none.

    Fields that the name does not have are left out; the refiner and the feeder let no such name pass.
    """
    return fields_of(lfn if rules.fields_of_file else dataset_name, rules.name_fields)


def fields_of(name: str, numbers: Sequence[int]) -> str:
    """The fields with these numbers, in that order, joined by dots."""
    parts = name.split(".")
    return ".".join(parts[n - 1] for n in numbers if n <= len(parts))
