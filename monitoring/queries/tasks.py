"""Rows of the task list."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from broker_site.foundation.access.permissions import VoScope
from brokerage.states import JOB
from monitoring.queries.database import alias, rows
from workqueues.models import Dataset, Task
from workqueues.states import MASTER_TYPES

MOST_LIVE = 100_000
"""Live jobs of the listed tasks that are counted; where there are more, they are not told."""


@dataclass(frozen=True, slots=True)
class Files:
    """Input files of a task that jobs work through: how many are finished, given up, in jobs (which may wait or run), not yet in
    one, and lost.
    """

    finished: int = 0
    failed: int = 0
    in_jobs: int = 0
    left: int = 0
    lost: int = 0

    @property
    def total(self) -> int:
        return self.finished + self.failed + self.in_jobs + self.left + self.lost

    @property
    def percent(self) -> int:
        return self.finished * 100 // self.total if self.total else 0


FILE_COUNTERS = ("n_files_to_be_used", "n_files_used", "n_files_finished", "n_files_failed", "n_files_missing")
"""Columns of a master dataset that say what became of its files."""


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One task in the list. `progress`: percent of input files finished; `jobs_waiting`: jobs that no pilot has, `jobs_running`:
    the other live ones, both None where too many jobs live to count them; `error_dialog`: why it is where it is.
    """

    id: int
    task_name: str
    user_name: str
    vo: str
    status: str
    progress: int
    files_finished: int
    files_failed: int
    files_in_jobs: int
    files_left: int
    files_lost: int
    jobs_waiting: int | None
    jobs_running: int | None
    current_priority: int
    creation_date: datetime
    status_since: datetime
    ended_at: datetime | None
    error_dialog: str

    @property
    def files(self) -> Files:
        return Files(self.files_finished, self.files_failed, self.files_in_jobs, self.files_left, self.files_lost)


def visible_tasks(scope: VoScope) -> QuerySet[Task]:
    """All tasks of the VOs in the scope, to filter further."""
    return Task.objects.using(alias()).filter(scope.q())


def task_rows(tasks: QuerySet[Task]) -> list[TaskRow]:
    """The rows of a bounded query, in its order; two statements, and one where files are in jobs."""
    columns = ("id", "task_name", "user_name", "vo", "status", "progress", "current_priority", "creation_date", "status_since",
               "ended_at", "error_dialog")  # fmt: skip
    stored: list[dict[str, Any]] = list(tasks.values(*columns))
    files = files_of([row["id"] for row in stored])
    jobs = live_jobs_of([task_id for task_id, counted in files.items() if counted.in_jobs])
    table = []
    for row in stored:
        waiting, running = jobs.get(row["id"], (0, 0))
        counts = {f"files_{k}": n for k, n in asdict(files.get(row["id"], Files())).items()}
        table.append(TaskRow(**row, **counts, jobs_waiting=waiting, jobs_running=running))
    return table


def live_jobs_of(task_ids: Sequence[int]) -> Mapping[int, tuple[int | None, int | None]]:
    """Task -> how many of its jobs wait for a pilot, and how many other ones live; one bounded statement."""
    if not task_ids:
        return {}
    counts = rows(
        f"""
        WITH live AS MATERIALIZED (
            SELECT task_id, status FROM brokerage_job WHERE ended_at IS NULL AND task_id = ANY(%(tasks)s) LIMIT %(most)s
        )
        SELECT task_id, count(*) FILTER (WHERE status IN ({JOB.waiting.sql})),
            count(*) FILTER (WHERE status NOT IN ({JOB.waiting.sql})), (SELECT count(*) FROM live)
        FROM live GROUP BY task_id
        """,
        {"most": MOST_LIVE + 1, "tasks": list(task_ids)},
    )
    if any(live > MOST_LIVE for *_, live in counts):
        return dict.fromkeys(task_ids, (None, None))
    return {task_id: (waiting, running) for task_id, waiting, running, _ in counts}


def files_of(task_ids: Sequence[int]) -> dict[int, Files]:
    """Task -> its input files by what became of them; tasks without input datasets are left out."""
    if not task_ids:
        return {}
    masters = Dataset.objects.using(alias()).filter(task_id__in=task_ids, type__in=MASTER_TYPES, master=None, excluded=False)
    counts: dict[int, list[tuple[int, ...]]] = defaultdict(list)
    for task_id, *numbers in masters.values_list("task_id", *FILE_COUNTERS):
        counts[task_id].append(tuple(numbers))
    return {task_id: files_in(datasets) for task_id, datasets in counts.items()}


def files_in(masters: Sequence[tuple[int, ...]]) -> Files:
    """The same of the FILE_COUNTERS of master datasets."""
    wanted, used, finished, failed, lost = (sum(column) for column in zip(*masters, strict=True))
    # The counters are written one after another, so for a moment they need not add up.
    return Files(finished, failed, max(used - finished - failed, 0), max(wanted - used, 0), lost)
