"""Names of files: where a file lies below its storage endpoint, and the middle name of outputs.

The middle name, `${MIDDLENAME}`, is fields of the name of the input (addNthFieldToLFN). A name is cut at its dots, and the first
field has the number 1. Source: facts on task parameters 2.1, 2.2 and 3.2 (AN, UF).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from workqueues.rules.jobs.job_parameters import compiled_name
from workqueues.rules.jobs.lengths import DATASET, FILE_NAME, LARGEST_NUMBERS
from workqueues.rules.jobs.split_rule import SplitRules


def middle_name(rules: SplitRules, dataset_name: str, lfn: str) -> str:
    """For a job of this master dataset whose first master file is `lfn`; empty where the task asks for none.

    Fields that the name does not have are left out; the refiner and the feeder let no such name pass.
    """
    return fields_of(lfn if rules.fields_of_file else dataset_name, rules.name_fields)


def fields_of(name: str, numbers: Sequence[int]) -> str:
    """The fields with these numbers, in that order, joined by dots."""
    parts = name.split(".")
    return ".".join(parts[n - 1] for n in numbers if n <= len(parts))


def bad_middle_name(template: str, source: str, numbers: Sequence[int]) -> str:
    """What is wrong with the file names that a template gives with these fields of `source`, a dataset or file; empty if
    nothing is.
    """
    n_fields = source.count(".") + 1
    if max(numbers) > n_fields:
        return f"{source[:100]} has {n_fields} fields between dots, field {max(numbers)} is asked for"
    longest = compiled_name(template).name(*LARGEST_NUMBERS, fields_of(source, numbers))
    if not re.fullmatch(FILE_NAME, longest):
        return f"with fields of {source[:100]} the file name is {longest[:60]!r}: only letters, digits and . _ + - are allowed"
    if len(longest) > DATASET["lfn"]:
        return f"with fields of {source[:100]} the file name has {len(longest)} characters, the limit is {DATASET['lfn']}"
    return ""


def dataset_folder(vo: str, dataset_name: str) -> str:
    """The folder of a dataset below a storage endpoint: no two datasets have the same, whatever their VOs and names.

    Neither VO nor name has a plus sign; a scope stands before the name, as users write it.
    """
    return f"{vo}/{dataset_name.replace('/', '+')}"


def copy_path(folder: str, vo: str, dataset_name: str, lfn: str) -> str:
    """Where a copy of a file lies below a storage endpoint: in the folder of its dataset, as what jobs write."""
    return f"{folder or dataset_folder(vo, dataset_name)}/{lfn}"
