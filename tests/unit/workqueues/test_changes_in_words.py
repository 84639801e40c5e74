"""What changed of a task reads as a sentence: words for columns, rounded numbers, units."""

from __future__ import annotations

from typing import Any

import pytest

from workqueues.rules.task.changes_in_words import changes_in_words

BLANK = "\N{NO-BREAK SPACE}"


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (
            {"disk_io": None, "disk_io_unit": ""},
            {"disk_io": 0.840054794159194, "disk_io_unit": "kBPerS"},
            f"local disk access 0.84{BLANK}kB/s",
        ),
        ({"disk_io": 1.5}, {"disk_io": 1234.5678}, "local disk access from 1.5 to 1,235"),
        ({"ram_count": 2000}, {"ram_count": 3000}, f"memory from 2,000 to 3,000{BLANK}MB"),
        (
            {"ram_count": 2000, "ram_unit": "MB"},
            {"ram_count": 900, "ram_unit": "MBPerCore"},
            f"memory from 2,000 to 900{BLANK}MB per core",
        ),
        ({"cpu_time_unit": ""}, {"cpu_time_unit": "HS06sPerEvent"}, f"unit of CPU time HS06{BLANK}s per event"),
        ({"split_rule": "NF=2"}, {"split_rule": "NF=1"}, "split rule from NF=2 to NF=1"),
        ({"current_priority": 900, "gshare": "a"}, {"current_priority": 0, "gshare": ""},
         "priority from 900 to 0, share from a to none"),
        ({}, {}, ""),
    ],
)  # fmt: skip
def test_it_reads_as_words(before: dict[str, Any], after: dict[str, Any], told: str) -> None:
    assert changes_in_words(before, after) == told
