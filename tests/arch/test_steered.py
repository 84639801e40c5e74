"""Tables that change sets steer have one writer: whoever else writes them would leave no history and skip the checks."""

from __future__ import annotations

import re

from tests.arch.source import product

WRITES = re.compile(
    r"\b(GlobalShare|WorkQueue|Override|Steered)\.objects(?:\.\w+\([^()]*\))*\s*"
    r"\.(?:create|bulk_create|bulk_update|update|delete|update_or_create|get_or_create)\("
)
WRITERS = {
    "workqueues/ledger/share_lines.py": "GlobalShare",
    "workqueues/ledger/work_queue_lines.py": "WorkQueue",
    "broker_site/foundation/gdpconfig/override_lines.py": "Override",
    "broker_site/foundation/gdpconfig/row_lines.py": "Steered",
}


def test_steered_tables_are_written_by_their_kind_of_line_alone() -> None:
    found = {(module.path, match[1]) for module in product() for match in WRITES.finditer(module.text)}
    assert found == set(WRITERS.items())
