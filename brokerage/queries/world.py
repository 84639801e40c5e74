"""The grid of this moment from the database: the same `GridSnapshot` that `decide` makes from documents.

A fixed number of queries, whatever the number of queues, tasks and jobs: sets are counted by PostgreSQL, never row by row here.
Not here: where the input of tasks is, and how their own jobs ended lately (`brokerage.queries.chunks`), which go with a batch.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection

from broker_site.foundation.kernel import clock
from brokerage.models import ComputingQueue, DeclaredSlots, Measured, QueueStorage, Site, Software, StorageEndpoint
from brokerage.queries.links import load_links
from brokerage.queries.misfits import KEPT_S, MISFITS
from brokerage.rules.facts.needs import remaining_work
from brokerage.rules.grid.attributes import QUEUE, SITE, STORAGE
from brokerage.rules.grid.document import Entry, Grid, QueueEntry
from brokerage.rules.grid.measurements import ALL, NO_JOBS, SLOT, WORK, Facts
from brokerage.rules.grid.queue_columns import SEEN_SPACE, usable_gb
from brokerage.rules.grid.storage_root import access_left, told_space_gb
from brokerage.rules.placement.binding import spread
from brokerage.rules.world.grid_snapshot import GridSnapshot
from brokerage.states import JOB
from workqueues.rules.jobs.activity import ANALYSIS_LABELS
from workqueues.states import MASTER_TYPES, TASK

USED = ("queued", "running")
"""What the jobs of a user count as: those that run, and those that have not begun to."""


_OF_STORAGE = tuple(column for column in STORAGE if column != "site")


def load_snapshot(now: datetime | None = None) -> GridSnapshot:
    """The grid with its jobs, pilots and remaining work."""
    grid = load_grid()
    now = now or clock.now()
    return GridSnapshot(grid, load_facts(grid, now), now)


def load_grid() -> Grid:
    """Sites, storages and queues as they are valid now, by name."""
    sites = [Entry(row.pop("name"), row) for row in Site.objects.order_by("name").values("name", "attributes", *SITE)]
    storages = [
        Entry(row.pop("name"), _with_site(_with_root(row)))
        for row in StorageEndpoint.objects.order_by("name").values(
            "name", "attributes", "site_id", "root_state", "root_free_gb", *_OF_STORAGE
        )
    ]
    roles: dict[int, list[tuple[str, str, int]]] = defaultdict(list)
    for queue, access, storage, position in QueueStorage.objects.order_by("queue_id", "access", "position").values_list(
        "queue_id", "access", "storage_id", "position"
    ):
        roles[queue].append((access, storage, position))
    queues = [
        QueueEntry(row.pop("name"), _with_site(row), storages=tuple(roles[row.pop("id")]))
        for row in ComputingQueue.objects.order_by("name").values("id", "name", "site_id", "attributes", *QUEUE)
    ]
    return Grid(tuple(sites), tuple(storages), tuple(queues))


def _with_root(row: dict[str, Any]) -> dict[str, Any]:
    """The columns of a storage endpoint, with what its root leaves of accesses, and its space where none is published."""
    row["status"] = access_left(row["status"], row.pop("root_state"))
    seen = row.pop("root_free_gb")
    if seen is not None and usable_gb(Entry("", row)) is None:
        row |= {"free_gb": told_space_gb(seen), "attributes": row["attributes"] | {SEEN_SPACE: "its root"}}
    return row


def _with_site(row: dict[str, Any]) -> dict[str, Any]:
    """The columns of a row, the site under the name that documents give it."""
    row["site"] = row.pop("site_id")
    return row


def load_facts(grid: Grid, now: datetime) -> Facts:
    """What is true of this moment, without what belongs to one task."""
    sites = {site.name for site in grid.sites}
    counts, work = _job_counts(sites), _work(sites)
    total_rw = dict.fromkeys(sorted(sites), 0.0)
    for entry in work:
        total_rw[entry["nucleus"]] += entry["rw"]
    return Facts(
        now=None,
        links=load_links(sites, now),
        jobs=counts.jobs,
        pilots=_pilots(counts.waiting_since),
        slots=_slots(),
        measured=_measured(counts.starts),
        users=counts.users,
        software=_software(grid),
        work=work,
        total_rw=total_rw,
        misfits=counts.misfits,
    )


_NOBODY: Mapping[str, Any] = {"name": "", "group": "", "quota_exceeded": False, "full_storages": ()}

_JOBS = f"""
WITH grouped AS MATERIALIZED (
    SELECT computing_queue_id, task_id, resource_type, status, count(*) AS n, sum(core_count) AS cores,
        count(*) FILTER (WHERE status = 'running' AND status_since > now() - interval '6 hours') AS started,
        count(*) FILTER (WHERE status = 'activated' AND task_queue_id = ANY (ARRAY({MISFITS}))) AS misfits,
        min(status_since) FILTER (WHERE status = 'activated') AS waiting_since
    FROM brokerage_job WHERE ended_at IS NULL GROUP BY 1, 2, 3, 4
)
SELECT q.name, coalesce(t.gshare, ''), g.resource_type, g.status, coalesce(t.nucleus, ''),
    CASE WHEN t.prod_source_label = ANY (%(users)s) THEN t.user_name ELSE '' END,
    CASE WHEN t.prod_source_label = ANY (%(users)s) THEN t.working_group ELSE '' END,
    sum(g.n)::bigint, sum(g.cores)::bigint, sum(g.started)::bigint, sum(g.misfits)::bigint, min(g.waiting_since)
FROM grouped g JOIN brokerage_computingqueue q ON q.id = g.computing_queue_id LEFT JOIN workqueues_task t ON t.id = g.task_id
GROUP BY 1, 2, 3, 4, 5, 6, 7 ORDER BY 1, 2, 3, 4, 5, 6, 7
"""
"""Jobs that have not ended. What tells them apart is that of their task, so the narrow rows of jobs need not hold it."""

_OPEN_JOBS = """
WITH grouped AS MATERIALIZED (
    SELECT task_queue_id, task_id, resource_type, status, count(*) AS n, sum(core_count) AS cores,
        min(status_since) FILTER (WHERE status = 'activated') AS waiting_since
    FROM brokerage_job WHERE computing_queue_id IS NULL AND ended_at IS NULL GROUP BY 1, 2, 3, 4
)
SELECT places.names, coalesce(t.gshare, ''), g.resource_type, g.status, coalesce(t.nucleus, ''),
    CASE WHEN t.prod_source_label = ANY (%(users)s) THEN t.user_name ELSE '' END,
    CASE WHEN t.prod_source_label = ANY (%(users)s) THEN t.working_group ELSE '' END,
    g.n, g.cores::bigint, g.waiting_since, g.task_id
FROM grouped g JOIN brokerage_taskqueue w ON w.id = g.task_queue_id LEFT JOIN workqueues_task t ON t.id = g.task_id
CROSS JOIN LATERAL (
    SELECT array_agg(q.name ORDER BY q.id) AS names FROM brokerage_requirementplace p
        JOIN brokerage_computingqueue q ON q.id = p.computing_queue_id
    WHERE p.requirement_set_id = w.requirement_set_id) AS places
WHERE places.names IS NOT NULL ORDER BY g.task_id, g.task_queue_id, g.status
"""
"""The open ones among them, with the queues to which they are open."""

STARTS_H = 6
"""Jobs that began in so many hours and still run tell how many begin in an hour."""


class _JobCounts(NamedTuple):
    """Jobs by queue, share, class of resources, status and nucleus, those of users by user too; what each user has; starts.

    And since when jobs wait for a pilot at each queue. `misfits`: by queue and share those that fit no idle slot, and which are
    not among `jobs`.
    """

    jobs: tuple[Mapping[str, Any], ...]
    misfits: tuple[Mapping[str, Any], ...]
    users: tuple[Mapping[str, Any], ...]
    starts: Mapping[str, float]
    waiting_since: Mapping[str, datetime]


def _job_counts(sites: set[str]) -> _JobCounts:
    counts: dict[tuple[str, str, str, str, str, str], int] = defaultdict(int)
    used: dict[tuple[str, str], dict[str, int]] = {}
    starts: dict[str, float] = defaultdict(float)
    waiting: dict[str, datetime] = {}
    misfits: Counter[tuple[str, str]] = Counter()
    dealt: Counter[int] = Counter()  # by task, so that the odd ones of its small task queues are not all for the same queue
    with connection.cursor() as cursor:
        cursor.execute(_JOBS, {"users": list(ANALYSIS_LABELS), "kept": KEPT_S})
        for queue, share, kind, status, nucleus, user, group, n, cores, started, misfit, since in cursor:
            counts[queue, share, kind, status, nucleus if nucleus in sites else "", user] += n - misfit
            misfits[queue, share] += misfit
            if started:
                starts[queue] += started / STARTS_H
            if since:
                waiting[queue] = min(since, waiting.get(queue, since))
            if user and status not in JOB.delivering:
                state = "running" if status == "running" else "queued"
                _add_use(used, user, group, state, n, cores)
        cursor.execute(_OPEN_JOBS, {"users": list(ANALYSIS_LABELS)})
        for names, share, kind, status, nucleus, user, group, n, cores, since, task_id in cursor:
            for queue, some in zip(names, spread(n, len(names), task_id + dealt[task_id]), strict=True):
                if some:
                    counts[queue, share, kind, status, nucleus if nucleus in sites else "", user] += some
                if since:
                    waiting[queue] = min(since, waiting.get(queue, since))
            dealt[task_id] += n
            if user:
                _add_use(used, user, group, "queued", n, cores)
    users = ({**_NOBODY, kind: who, **sums} for (kind, who), sums in sorted(used.items()))
    names = ("queue", "share", "resource_type", "status", "nucleus", "user")
    jobs = ({**NO_JOBS, **dict(zip(names, place, strict=True)), "n": n} for place, n in counts.items() if n)
    unfit = ({"queue": queue, "share": share, "n": n} for (queue, share), n in misfits.items() if n)
    return _JobCounts(tuple(jobs), tuple(unfit), tuple(users), starts, waiting)


def _add_use(used: dict[tuple[str, str], dict[str, int]], user: str, group: str, state: str, n: int, cores: int) -> None:
    """So many more jobs and cores of a user, or of the group in whose name they run."""
    who = ("group", group) if group else ("name", user)
    sums = used.setdefault(who, dict.fromkeys((f"{one}_{what}" for what in ("jobs", "cores") for one in USED), 0))
    sums[f"{state}_jobs"] += n
    sums[f"{state}_cores"] += cores


def _pilots(waiting_since: Mapping[str, datetime]) -> tuple[Mapping[str, Any], ...]:
    """Queues with the pilots seen within three hours, when a job last began, since when jobs wait, and what of pilots idles.

    A pilot that registered is seen, but has not asked yet.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT q.name, coalesce(p.n, 0), q.last_start, coalesce(i.n, 0), coalesce(p.asked, false)
            FROM brokerage_computingqueue q LEFT JOIN (
                SELECT queue_id, count(*) AS n,
                    bool_or(last_seen > registered_at AND last_seen >= now() - interval '10 minutes') AS asked
                FROM brokerage_pilot WHERE last_seen >= now() - interval '3 hours' GROUP BY 1
            ) p ON p.queue_id = q.id LEFT JOIN (
                SELECT queue_id, count(*) AS n FROM brokerage_idleslot WHERE until > now() GROUP BY 1
            ) i ON i.queue_id = q.id
            WHERE p.n > 0 OR i.n > 0 OR q.last_start IS NOT NULL OR q.name = ANY (%s) ORDER BY 1
            """,
            [list(waiting_since)],
        )
        known = ("queue", "requests_3h", "last_start", "idle", "asked_lately")
        return tuple(dict(zip(known, row, strict=True)) | {"waiting_since": waiting_since.get(row[0])} for row in cursor)


def _software(grid: Grid) -> dict[str, Mapping[str, Any]]:
    """What the queues publish, and the entry that knows every tag."""
    names = {ALL, *(queue.name for queue in grid.queues)}
    rows = Software.objects.order_by("queue").values_list("queue", "document")
    return {queue: document for queue, document in rows if queue in names}


def _slots() -> tuple[Mapping[str, Any], ...]:
    """Slots that somebody declared; 0 = as many as jobs are starting."""
    rows = DeclaredSlots.objects.filter(n__gte=0).order_by("queue__name", "share", "resource_type")
    columns = ("queue__name", "share", "resource_type", "n", "expires")
    return tuple(dict(zip(SLOT, row, strict=True)) for row in rows.values_list(*columns))


def _measured(starts: Mapping[str, float]) -> tuple[Mapping[str, Any], ...]:
    """What is measured at the queues; where nobody tells how many jobs begin in an hour, our own."""
    rows = Measured.objects.values_list("queue__name", "disk_io_per_core", "starts_per_hour")
    measured = {queue: (disk_io, begun) for queue, disk_io, begun in rows}
    return tuple(
        {"queue": queue, "disk_io_per_core": disk_io, "starts_per_hour": starts.get(queue, 0.0) if begun is None else begun}
        for queue in sorted({*measured, *starts})
        for disk_io, begun in [measured.get(queue, (0.0, None))]
    )


def _work(sites: Container[str]) -> tuple[Mapping[str, Any], ...]:
    """Remaining work of the tasks of each nucleus, by share and priority."""
    remaining: dict[tuple[str, str, int], float] = defaultdict(float)
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            SELECT t.nucleus, t.gshare, t.current_priority, t.cpu_time, t.cpu_time_unit, coalesce(sum(d.n_events), 0),
                coalesce(sum(d.n_events_used), 0)
            FROM workqueues_task t JOIN workqueues_dataset d ON d.task_id = t.id AND d.master_id IS NULL
                AND d.type IN ({MASTER_TYPES.sql}) AND d.n_files_to_be_used > d.n_files_finished + d.n_files_failed
            WHERE t.status IN ({TASK.working.sql}) AND t.nucleus <> '' GROUP BY t.id ORDER BY t.id
            """
        )
        for nucleus, share, priority, cpu_time, unit, events, used in cursor:
            if nucleus in sites:
                remaining[nucleus, share, priority] += remaining_work(int(events), int(used), cpu_time, unit)
    return tuple(dict(zip(WORK, (*place, rw), strict=True)) for place, rw in sorted(remaining.items()))
