"""The questions that the pages are measured by: what people look at all day, and what is rare, empty, huge or far down.

A further question is one line in QUESTIONS. Names in braces stand for what `places_of` finds in the tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

LIMITS_MS = {"list": 60, "scan": 300, "plot": 60, "detail": 120, "dry run": 250}
"""What the 95th percentile of a question may take at the server, by its kind; a `scan` ends where its budget is used up."""
MOST_QUERIES, MOST_KB = 12, 90
"""Statements of one answer; kB of a first load: the compressed page with its scripts and styles."""
OPERATOR, USER = "operator", "user"
"""Who asks: one who sees all VOs, and one of the VO that has most of the work."""


class Question(NamedTuple):
    """A page, how fast it has to be, and who asks for it."""

    name: str
    kind: str
    path: str
    who: str = OPERATOR


QUESTIONS = (
    Question("home", "list", "/"),
    Question("home of a user", "list", "/", USER),
    Question("my work", "list", "/me/", USER),
    Question("tasks", "list", "/tasks/"),
    Question("tasks of a user's VOs", "list", "/tasks/", USER),
    Question("tasks that run", "list", "/tasks/?status=running"),
    Question("tasks in a rare state", "list", "/tasks/?status=tobroken"),
    Question("tasks of a rare user", "scan", "/tasks/?user_name={rare_user}"),
    Question("tasks of nobody", "scan", "/tasks/?user_name=nobody"),
    Question("tasks by a part of the name", "scan", "/tasks/?task_name=*.campaign7.*"),
    Question("tasks, far down", "list", "/tasks/?cursor={task_cursor}"),
    Question("tasks as JSON", "list", "/tasks.json?vo=south"),
    Question("jobs", "list", "/jobs/"),
    Question("jobs of a user's VOs", "list", "/jobs/", USER),
    Question("jobs that wait or run", "list", "/jobs/?status=activated,running"),
    Question("jobs of a rare VO", "list", "/jobs/?vo=west"),
    Question("jobs of the largest task", "list", "/jobs/?task={huge_task}"),
    Question("jobs that failed at a queue", "scan", "/jobs/?status=failed&queue=S000_Q000"),
    Question("jobs at a queue without any", "scan", "/jobs/?queue={empty_queue}"),
    Question("jobs of a rare user", "scan", "/jobs/?user_name={rare_user}"),
    Question("jobs, far down", "list", "/jobs/?cursor={job_cursor}"),
    Question("datasets by name", "list", "/datasets/?dataset_name={dataset_name}"),
    Question("datasets that nothing matches", "scan", "/datasets/?status=broken&type=output"),
    Question("files of the largest dataset", "list", "/files/?dataset={huge_dataset}"),
    Question("files that nothing matches", "scan", "/files/?status=broken&type=log"),
    Question("file by name", "list", "/files/?lfn={lfn}"),
    Question("queues", "list", "/queues/"),
    Question("shares", "list", "/shares/"),
    Question("transfers that failed", "scan", "/transfers/?status=failed"),
    Question("changes", "list", "/changes/"),
    Question("configuration", "list", "/config/"),
    Question("search for a task", "scan", "/search/?q=campaign7.t1"),
    Question("errors of a week", "list", "/errors/?window=7d"),
    Question("throughput of a day by queue", "plot", "/throughput/?window=24h&by=queue"),
    Question("throughput of a week by queue", "plot", "/throughput/?window=7d&by=queue"),
    Question("throughput of a week by share", "plot", "/throughput/?window=7d&by=share", USER),
    Question("series of 90 days by queue", "plot", "/api/v1/series/?window=90d&by=queue&what=finished"),
    Question("plots of the largest queue", "plot", "/queues/S000_Q000/plots/"),
    Question("plots of the largest task", "plot", "/tasks/{huge_task}/plots/"),
    Question("users", "list", "/users/"),
    Question("user with most work", "detail", "/users/user000/"),
    Question("share with most work", "detail", "/shares/north00/"),
    Question("small task", "detail", "/tasks/{small_task}/"),
    Question("largest task", "detail", "/tasks/{huge_task}/"),
    Question("why a task waits", "detail", "/tasks/{decided_task}/brokerage/"),
    Question("what if", "detail", "/tasks/{decided_task}/brokerage/what-if/"),
    Question("job that waits", "detail", "/jobs/{waiting_job}/"),
    Question("job that was tried again", "detail", "/jobs/{failed_job}/"),
    Question("largest queue", "detail", "/queues/S000_Q000/"),
    Question("largest dataset", "detail", "/datasets/{huge_dataset}/"),
    Question("file", "detail", "/files/{file}/"),
    Question("dry run of the configuration", "dry run", "/config/draft/?key={config_key}&value={config_value}"),
)

PLACES = {
    "rare_user": "SELECT user_name FROM workqueues_task GROUP BY 1 ORDER BY count(*), 1 LIMIT 1",
    "empty_queue": "SELECT max(name) FROM brokerage_computingqueue",
    "huge_task": "SELECT task_id FROM workqueues_dataset WHERE type = 'input' ORDER BY n_files DESC, 1 LIMIT 1",
    "small_task": "SELECT task_id FROM workqueues_dataset WHERE type = 'input' ORDER BY n_files, 1 DESC LIMIT 1",
    "huge_dataset": "SELECT id FROM workqueues_dataset ORDER BY n_files DESC, 1 LIMIT 1",
    "dataset_name": "SELECT dataset_name FROM workqueues_dataset ORDER BY n_files DESC, 1 LIMIT 1",
    "lfn": "SELECT lfn FROM workqueues_file ORDER BY id LIMIT 1",
    "file": "SELECT max(file_id) FROM brokerage_jobinput",
    "waiting_job": "SELECT coalesce(max(id) FILTER (WHERE status = 'activated'), max(id)) FROM brokerage_job",
    "failed_job": "SELECT coalesce((SELECT max(old_job_id) FROM brokerage_jobretryhistory), (SELECT max(id) FROM brokerage_job))",
    "decided_task": "SELECT coalesce((SELECT max(task_id) FROM brokerage_decision), (SELECT max(id) FROM workqueues_task))",
    "middle_task": "SELECT max(id) / 3 + 1 FROM workqueues_task",
    "middle_job": "SELECT max(id) / 3 + 1 FROM brokerage_job",
}


def places_of(answer: Mapping[str, Any]) -> dict[str, str]:
    """What stands for the names in braces; `answer`: what the queries of PLACES gave, and what else is known."""
    from broker_site.foundation.rest.keyset import Cursor, name_of
    from brokerage.models import Job
    from workqueues.models import Task

    tables: dict[str, type[Any]] = {"task": Task, "job": Job}
    cursors = {f"{kind}_cursor": Cursor("older", int(answer[f"middle_{kind}"]), name_of(t)).text() for kind, t in tables.items()}
    return {name: str(value) for name, value in {**answer, **cursors}.items()}
