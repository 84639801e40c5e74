"""The lists: tasks, jobs, datasets, files, queues, pilots, workers, shares, throttling, transfers, links,
elements, changes, agents.
"""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase

from broker_site.foundation.gdpconfig.visible_lines import open_proposals
from brokerage.api.filtering import ChangeSetFilter, JobFilter, PilotFilter, QueueFilter, TransferFilter
from brokerage.queries.transfer_links import LinkRow, link_rows
from monitoring.queries.agents import AgentRow, agent_rows, agents_context
from monitoring.queries.configuration import ChangeSetRow, set_rows, visible_sets
from monitoring.queries.data_facets import dataset_facets, file_facets, transfer_facets
from monitoring.queries.database import alias
from monitoring.queries.datasets import DatasetRow, dataset_rows, visible_datasets
from monitoring.queries.facets import element_facets, job_facets, pilot_facets, queue_facets, task_facets
from monitoring.queries.files import FileRow, file_rows, visible_files
from monitoring.queries.jobs import JobRow, job_rows, visible_jobs
from monitoring.queries.levels import counted_at
from monitoring.queries.pilots import PilotRow, WorkerRow, visible_pilots, worker_rows
from monitoring.queries.queues import QueueRow, feed_lines, queue_rows, visible_queues
from monitoring.queries.shares import ShareRow, share_rows
from monitoring.queries.submission import SubmissionRow, submission_context, submission_rows
from monitoring.queries.tasks import TaskRow, task_rows, visible_tasks
from monitoring.queries.throttle import ThrottleRow, throttle_rows
from monitoring.queries.transfers import TransferRow, links_above, transfer_rows, visible_transfers
from monitoring.queries.tree import visible_elements
from monitoring.views.listing import LongList, ShortList, answer
from monitoring.views.page import page
from monitoring.views.pilots import PilotList
from workqueues.api.filtering import DatasetFilter, ElementFilter, FileFilter, TaskFilter
from workqueues.queries.element_rows import ElementRow, element_rows

TASKS = LongList(
    "tasks", TaskRow, "tasks.html", TaskFilter, visible_tasks, task_rows, "task:read",
    first=("status", "task_name", "user_name", "share", "why", "age"), facets=task_facets,
)  # fmt: skip
"""Newest first."""
JOBS = LongList(
    "jobs", JobRow, "jobs.html", JobFilter, visible_jobs, job_rows, "job:read",
    first=("status", "kind", "task", "queue", "user_name", "share", "age"), facets=job_facets,
)  # fmt: skip
"""Newest first."""
DATASETS = LongList(
    "datasets", DatasetRow, "datasets.html", DatasetFilter, visible_datasets, dataset_rows, "dataset:read",
    first=("status", "dataset_name", "type", "task", "vo"), facets=dataset_facets,
)  # fmt: skip
"""Newest first."""
FILES = LongList(
    "files", FileRow, "files.html", FileFilter, visible_files, file_rows, "dataset:read",
    first=("status", "lfn", "dataset", "type", "task"), facets=file_facets,
)  # fmt: skip
"""Newest first."""
QUEUES = ShortList(
    "queues", QueueRow, "queues.html", queue_rows, "grid:read", QueueFilter, visible_queues,
    first=("status", "name", "site", "type"), facets=queue_facets,
    around=lambda _: {"feeds": feed_lines(), "counted_at": counted_at()},
)  # fmt: skip
"""By name; and how old the grid is, and the numbers of jobs."""
PILOTS = PilotList(
    "pilots", PilotRow, "pilots.html", PilotFilter, visible_pilots, list, "grid:read",
    first=("state", "queue", "site", "host", "registered_at"), facets=pilot_facets,
)  # fmt: skip
"""By registration, the newest first."""
WORKERS = ShortList("workers", WorkerRow, "workers.html", worker_rows, "grid:read")
"""By queue: what its pilots do, and what their asks get."""
SHARES = ShortList("shares", ShareRow, "shares.html", share_rows, "grid:read")
"""By VO, parents before their children; of the VOs that the visitor may look into."""
THROTTLE = ShortList("throttle", ThrottleRow, "throttle.html", throttle_rows, "decision:read")
"""By VO and unit; of the VOs that the visitor may look into."""
SUBMISSION = ShortList(
    "submission", SubmissionRow, "submission.html", submission_rows, "grid:read", around=lambda _: submission_context()
)
"""By site and kind: thresholds beside what is there."""
TRANSFERS = LongList(
    "transfers", TransferRow, "transfers.html", TransferFilter, visible_transfers, transfer_rows, "transfer:read",
    first=("status", "lfn", "source_site", "destination_site", "destination", "reason", "task"),
    facets=transfer_facets, around=lambda _: links_above(),
)  # fmt: skip
"""Newest first, below the fullest links."""
LINKS = ShortList("links", LinkRow, "links.html", lambda _: link_rows(using=alias()), "grid:read")
"""The fullest first."""
ELEMENTS = LongList(
    "elements", ElementRow, "elements.html", ElementFilter, visible_elements, element_rows, "task:read",
    first=("status", "task", "child", "site", "vo", "team"), facets=element_facets,
)  # fmt: skip
"""Newest first."""
CHANGES = LongList(
    "changes", ChangeSetRow, "changes.html", ChangeSetFilter, visible_sets, set_rows, "config:read",
    first=("name", "component", "who", "source"), around=lambda scope: {"proposals": open_proposals(scope, alias())},
)  # fmt: skip
"""Newest first, below the proposals that wait for somebody."""
AGENTS = ShortList("agents", AgentRow, "agents.html", lambda _: agent_rows(), "agent:read", around=lambda _: agents_context())
"""In life order."""


def view_of(listing: LongList | ShortList) -> Callable[..., HttpResponseBase]:
    """The view of a list; an address that names a format gets that one."""

    @page(listing.permission)
    def view(request: HttpRequest, **named: str) -> HttpResponseBase:
        return answer(request, listing, named.get("format", "html"))

    return view


LISTS = (
    TASKS, JOBS, DATASETS, FILES, QUEUES, PILOTS, WORKERS, SHARES, THROTTLE, SUBMISSION, TRANSFERS, LINKS, ELEMENTS, CHANGES,
    AGENTS,
)  # fmt: skip
