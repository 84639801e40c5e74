"""Outputs that would be called as the plain files beside a log: refused when the task is submitted."""

from __future__ import annotations

import pytest

from tests.builders import parameters
from workqueues.rules.refine import validate

LOG = "t1.log.${SN}.tgz"


@pytest.mark.parametrize(
    ("value", "taken"),
    [
        (f"--out={LOG}.stdout", True),
        (f"--out={LOG}.stderr", True),
        (f"--out={LOG}.pilot.log", True),
        ("--out=t1.log.${SN/P}.tgz.stdout", True),
        (f"--out={LOG}.stdout.txt", False),
        (f"--out={LOG}.json", False),
        ("--out=t1.EVT.${SN}.txt.stdout", False),
        ("--out=t1.log.${SN:08d}.tgz.stdout", False),
    ],
)
def test_a_name_of_a_plain_file_beside_the_log_is_no_name_of_an_output(value: str, taken: bool) -> None:
    params = parameters("t1")
    params["jobParameters"][2]["value"] = value
    problems = validate(params)
    assert [(fault.field, fault.rule) for fault in problems] == ([("jobParameters[2].value", "contradiction")] if taken else [])
    for fault in problems:
        assert "the plain files beside a log: <its name>.pilot.log, <its name>.stdout, <its name>.stderr" in fault.message
