"""Documents that the pages print are taken as they are printed, and do no harm."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from django.core.management import call_command

from brokerage.models import ComputingQueue
from workqueues.rules.refine import validate

DOCS = Path(__file__).parents[2] / "docs"


def test_the_tasks_of_the_tutorial_have_no_fault() -> None:
    page = (DOCS / "tutorial" / "first-task.md").read_text(encoding="utf-8")
    tasks = [json.loads(block) for block in re.findall(r"<<'END'\n(.*?)\nEND\n", page, re.DOTALL)]
    assert [task["taskName"] for task in tasks] == ["first", "reading"]
    assert [validate(task) for task in tasks] == [[], []]
    assert "${IN/L}" in json.dumps(tasks[1])


@pytest.mark.django_db
def test_the_queue_of_the_how_to_is_added_and_takes_no_other_one_offline(tmp_path: Path) -> None:
    page = (DOCS / "how-to" / "queues-and-pilots.md").read_text(encoding="utf-8")
    call_command("import_grid", str(DOCS.parent / "examples" / "grids" / "demo.json"), verbosity=0)
    before = dict(ComputingQueue.objects.values_list("name", "status"))
    (document,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)[:1]
    (tmp_path / "delta.json").write_text(document)
    printed = re.findall(r"manage\.py (import_grid delta\.json [^\n]*)", page)
    assert len(printed) == 2
    for line in printed:
        name, file, *options = line.split()
        call_command(name, str(tmp_path / file), *options, verbosity=0)
    assert dict(ComputingQueue.objects.values_list("name", "status")) == before | {"DELTA": "online"}
