"""The tour: tasks that show what an operator meets, on a demo system that is kept running.

Here: the shares, and submitting the tasks that are not there yet, as a user would. Not here: the documents (`examples/tour`,
`examples/demo`).
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management import call_command

from broker_site.roof.demo import Client, set_pace
from broker_site.roof.embedded.instance import ROOT
from examples.demo.campaign import tasks
from workqueues.models import GlobalShare, Task

FOLDER = ROOT / "examples" / "tour"
SHARES = FOLDER / "shares.json"
BANNER = "This is a demo: its tasks are examples, and time is compressed."
RUN = "tour"
SIGHTS: Mapping[str, str] = {
    "tour.too_much_memory": "waits, and its page says for what; less memory (Change, Needs) lets it run",
    "tour.bad_payload": "fails at each try, with the same error",
    "tour.some_bad_files": "ends without a few of its files; a retry command is on its page",
    "tour.at_work": "works for some 20 minutes",
    "demo.tour.merge": "the end of a campaign of three tasks",
}
"""What is to be seen, by the task's name."""


def prepare() -> None:
    """Compress time, and make the shares of the tour where there are none."""
    set_pace()
    if not GlobalShare.objects.exists():
        call_command("config", "import", str(SHARES), reason="shares of the tour", who="demo", verbosity=0, stdout=io.StringIO())


def documents() -> list[dict[str, Any]]:
    """The tasks of the tour, in the order in which they are submitted: a finished campaign, then those that show a case."""
    return [*tasks(RUN), *(_document(path) for path in sorted(FOLDER.glob("[0-9]*.json")))]


def submit_missing(client: Client) -> dict[str, int]:
    """Submit what this system does not have yet; the ids of all tasks of the tour by name. CampaignFailed on a refusal."""
    wanted = documents()
    for document in wanted:
        name = document["taskName"]
        if not Task.objects.filter(task_name=name).exists():
            client.call("tasks/", document, key=name)
    named = Task.objects.filter(task_name__in=[d["taskName"] for d in wanted])
    return dict(named.order_by("id").values_list("task_name", "id"))


def _document(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document
