"""Computing queues: rows of their list with the age of the grid, and one of them with its jobs, pilots and overrides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from broker_site.foundation.access.permissions import VoScope
from broker_site.foundation.kernel import clock
from brokerage.models import ComputingQueue, LocalOverride, QueueStorage
from brokerage.queries.feeds import feed_states
from brokerage.queries.idle_slots import IdleAtQueue, idle_at_queues
from brokerage.queries.match_limits import LimitRow, limit_rows
from brokerage.queries.open_places import open_jobs_of_queues
from brokerage.queries.site_limits import AdvertisedSite, advertised_sites, max_age_s
from brokerage.queries.task_status import PILOT_SEEN_MIN
from brokerage.rules.dispatch.idle_slots import LONG_S
from brokerage.states import JOB
from monitoring.queries.database import alias, rows
from monitoring.queries.levels import levels_at_queues
from monitoring.queries.tasks import visible_tasks


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One queue. `jobs_open`: those that wait and may come to this queue or others; each counts at all of them. `pilots`: seen in
    the last PILOT_SEEN_MIN minutes. Sizes in MB per slot, 0 = no limit.
    """

    name: str
    site: str
    status: str
    jobs_waiting: int
    jobs_open: int
    jobs_starting: int
    jobs_running: int
    jobs_ending: int
    pilots: int
    last_start: datetime | None
    corecount: int
    maxrss: int
    maxwdir: int
    maxtime: int


@dataclass(frozen=True, slots=True)
class FeedLine:
    """One feed. `tone`: bad where tasks wait for it, wait where it fails, is old or has faulty entries, else good."""

    tone: str
    sentence: str


@dataclass(frozen=True, slots=True)
class QueueDetails:
    """`storages`: those it uses, with their roles; `last_seen`: when a pilot of it last asked; `jobs`: state -> number, alive;
    `open_jobs`: those that wait and may come here or to others, up to MOST_OPEN.
    """

    jobs: Mapping[str, int]
    open_jobs: int
    storages: list[QueueStorage]
    pilots: int
    last_seen: datetime | None
    overrides: list[LocalOverride]


@dataclass(frozen=True, slots=True)
class IdleRow:
    """Idle slots of one queue. `hours`: of the last day; `task`: one that they idle beside, where the visitor may see it.

    `long`: a slot has idled beside eligible work for so long that it needs a reason.
    """

    queue: str
    now: IdleAtQueue
    task: int | None

    @property
    def long(self) -> bool:
        return self.now.longest_s > LONG_S


@dataclass(frozen=True, slots=True)
class SiteLimits:
    """What limits the jobs that a site gets: its last advertisement, with the room that is left, and configured limits."""

    ad: AdvertisedSite | None
    room: int
    why_no_room: str
    limits: list[LimitRow]

    def __bool__(self) -> bool:
        return self.ad is not None or bool(self.limits)


SAME = ("name", "status", "last_start", "corecount", "maxrss", "maxwdir", "maxtime")
"""Columns of a queue that are shown as they are stored."""


def visible_queues(scope: VoScope) -> QuerySet[ComputingQueue]:
    """All computing queues, to filter further: the grid is the same for all VOs."""
    return ComputingQueue.objects.using(alias())


def queue_rows(scope: VoScope, queues: QuerySet[ComputingQueue]) -> list[QueueRow]:
    """These computing queues by name, with their jobs as the agent tally counted them; four statements, whatever the size."""
    jobs = {name: Counter(states) for name, states in levels_at_queues().items()}
    pilots = dict(
        rows(
            """
            SELECT queue_id, count(*) FROM brokerage_pilot WHERE last_seen > now() - make_interval(mins => %(minutes)s)
            GROUP BY queue_id
            """,
            {"minutes": PILOT_SEEN_MIN},
        )
    )
    open_jobs = open_jobs_of_queues(using=alias())
    return [_row(q, jobs.get(q.name, Counter()), open_jobs.get(q.id, 0), pilots.get(q.id, 0)) for q in queues.order_by("name")]


def _row(queue: ComputingQueue, jobs: Counter[str], jobs_open: int, pilots: int) -> QueueRow:
    return QueueRow(
        **{name: getattr(queue, name) for name in SAME},
        site=queue.site_id,
        jobs_waiting=sum(jobs[state] for state in JOB.waiting),
        jobs_open=jobs_open,
        jobs_starting=sum(jobs[state] for state in JOB.starting),
        jobs_running=jobs["running"],
        jobs_ending=sum(jobs[state] for state in JOB.delivering),
        pilots=pilots,
    )


def all_queue_rows() -> list[QueueRow]:
    """Every computing queue by name."""
    everything = VoScope(everything=True)
    return queue_rows(everything, visible_queues(everything))


def idle_rows(scope: VoScope, queue: ComputingQueue | None = None) -> list[IdleRow]:
    """Queues at which slots idled in the last day, or only this one: most seconds beside eligible work first."""
    at_queues = idle_at_queues(queue.id if queue else None, alias())
    names = {queue.id: queue.name} if queue else dict(ComputingQueue.objects.using(alias()).values_list("id", "name"))
    ids = [idle.task_id for idle in at_queues.values() if idle.task_id]
    seen = set(visible_tasks(scope).filter(id__in=ids).values_list("id", flat=True)) if ids else set()
    found = [IdleRow(names[id_], idle, idle.task_id if idle.task_id in seen else None) for id_, idle in at_queues.items()]
    return sorted(found, key=lambda row: (-row.now.beside, -row.now.day_s[1], -row.now.day_s[2], row.queue))


def feed_lines() -> list[FeedLine]:
    lines = []
    for state in feed_states(clock.now(), alias()):
        unwell = state.state == "old" or state.feed.fault or state.feed.faulty
        tone = "bad" if state.state == "too old" else "wait" if unwell else "good"
        remark = {"too old": "; too old to decide on: tasks wait", "old": "; old"}.get(state.state, "")
        lines.append(FeedLine(tone, state.sentence + remark))
    return lines


def find_queue(name: str) -> ComputingQueue | None:
    return ComputingQueue.objects.using(alias()).select_related("site").filter(name=name).first()


def site_limits(site: str) -> SiteLimits:
    """Two statements at most."""
    ad, most_s = advertised_sites([site], alias()).get(site), max_age_s()
    return SiteLimits(ad, ad.room(most_s) if ad else 0, ad.why_no_room(most_s) if ad else "", limit_rows(site, alias()))


def queue_details(queue: ComputingQueue) -> QueueDetails:
    """Five statements, by index."""
    ((pilots, last_seen),) = rows(
        """
        SELECT count(*) FILTER (WHERE last_seen > now() - make_interval(mins => %(minutes)s)), max(last_seen)
        FROM brokerage_pilot WHERE queue_id = %(queue)s
        """,
        {"queue": queue.id, "minutes": PILOT_SEEN_MIN},
    )
    jobs = levels_at_queues(queue.name).get(queue.name, {})
    return QueueDetails(
        jobs={state: jobs[state] for state in JOB.states if state in jobs},
        open_jobs=open_jobs_of_queues(queue.id, alias()).get(queue.id, 0),
        storages=list(queue.storages.using(alias()).select_related("storage").order_by("storage_id", "access")),
        pilots=pilots,
        last_seen=last_seen,
        overrides=list(LocalOverride.objects.using(alias()).filter(kind="queue", name=queue.name)),
    )
