"""Computing queues: rows of their list with the age of the grid, and one of them with its jobs, pilots and overrides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Exists, Max, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from broker_site.foundation.access.permissions import VoScope
from broker_site.foundation.kernel import clock
from brokerage.models import ComputingQueue, LocalOverride, Pilot, QueueStorage, SiteAdvertisement
from brokerage.queries.feeds import feed_states
from brokerage.queries.idle_slots import IdleAtQueue, idle_at_queues, idle_in_a_day
from brokerage.queries.match_limits import LimitRow, limit_rows
from brokerage.queries.open_places import open_jobs_of_queues
from brokerage.queries.site_limits import AdvertisedSite, advertised_sites, max_age_s
from brokerage.queries.task_status import PILOT_SEEN_MIN
from brokerage.rules.dispatch.idle_slots import LONG_S
from brokerage.rules.explain.why_empty import Load
from brokerage.states import JOB
from monitoring.queries.database import alias
from monitoring.queries.levels import jobs_at, levels_at_queues
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
    status: str
    storages: list[QueueStorage]
    pilots: int
    last_seen: datetime | None
    overrides: list[LocalOverride]

    @property
    def load(self) -> Load:
        """What is at the queue now."""
        waiting, leased = (sum(self.jobs.get(state, 0) for state in states) for states in (JOB.waiting, JOB.leased))
        return Load(self.status, waiting + self.open_jobs, leased, self.pilots)


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
    """These computing queues by name, with their jobs as the agent tally counted them; three statements, whatever the size."""
    jobs = {name: Counter(states) for name, states in levels_at_queues().items()}
    open_jobs = open_jobs_of_queues(using=alias())
    found = queues.annotate(pilots_seen=_pilots_seen()).order_by("name").values("id", "site_id", "pilots_seen", *SAME)
    return [_row(q, jobs.get(q["name"], Counter()), open_jobs.get(q["id"], 0)) for q in found]


def _pilots_seen() -> Coalesce:
    """How many pilots of a queue were seen lately."""
    seen = Pilot.objects.filter(queue=OuterRef("pk"), last_seen__gt=clock.now() - timedelta(minutes=PILOT_SEEN_MIN))
    return Coalesce(Subquery(seen.order_by().values("queue").annotate(n=Count("*")).values("n")), 0)


def _row(queue: Mapping[str, Any], jobs: Counter[str], jobs_open: int) -> QueueRow:
    return QueueRow(
        **{name: queue[name] for name in SAME},
        site=queue["site_id"],
        jobs_waiting=sum(jobs[state] for state in JOB.waiting),
        jobs_open=jobs_open,
        jobs_starting=sum(jobs[state] for state in JOB.starting),
        jobs_running=jobs["running"],
        jobs_ending=sum(jobs[state] for state in JOB.delivering),
        pilots=queue["pilots_seen"],
    )


def all_queue_rows() -> list[QueueRow]:
    """Every computing queue by name."""
    everything = VoScope(everything=True)
    return queue_rows(everything, visible_queues(everything))


def idle_rows(scope: VoScope, queue: ComputingQueue | None = None) -> list[IdleRow]:
    """Queues at which slots idled in the last day, or only this one: most seconds beside eligible work first."""
    if queue is None:
        at_queues = idle_in_a_day(alias())
    else:
        at_queues = dict(zip([queue.name], idle_at_queues(queue.id, alias()).values(), strict=False))
    ids = [idle.task_id for idle in at_queues.values() if idle.task_id]
    seen = set(visible_tasks(scope).filter(id__in=ids).values_list("id", flat=True)) if ids else set()
    found = [IdleRow(name, idle, idle.task_id if idle.task_id in seen else None) for name, idle in at_queues.items()]
    return sorted(found, key=lambda row: (-row.now.beside, -row.now.day_s[1], -row.now.day_s[2], row.queue))


def feed_lines() -> list[FeedLine]:
    lines = []
    for state in feed_states(clock.now(), alias()):
        unwell = state.state == "old" or state.feed.fault or state.feed.faulty
        tone = "bad" if state.state == "too old" else "wait" if unwell else "good"
        remark = {"too old": "; too old to decide on: tasks wait", "old": "; old"}.get(state.state, "")
        lines.append(FeedLine(tone, state.sentence + remark))
    return lines


def find_queue(name: str, *, pilots: bool = False) -> ComputingQueue | None:
    """The queue; with `pilots` also how many were seen lately, when the last one was, and whether its site advertises itself."""
    queues = ComputingQueue.objects.using(alias()).select_related("site")
    if pilots:
        of_queue = Pilot.objects.filter(queue=OuterRef("pk")).order_by().values("queue")
        queues = queues.annotate(
            pilots_seen=_pilots_seen(),
            last_seen=Subquery(of_queue.annotate(at=Max("last_seen")).values("at")),
            advertises=Exists(SiteAdvertisement.objects.filter(site=OuterRef("site"))),
        )
    return queues.filter(name=name).first()


def site_limits(site: str, *, advertises: bool = True) -> SiteLimits:
    """Two statements at most; one less where the site never advertised itself."""
    ad, most_s = advertised_sites([site], alias()).get(site) if advertises else None, max_age_s()
    return SiteLimits(ad, ad.room(most_s) if ad else 0, ad.why_no_room(most_s) if ad else "", limit_rows(site, alias()))


def queue_details(queue: ComputingQueue) -> QueueDetails:
    """Three statements, by index; of a queue that was found with its pilots."""
    jobs, open_jobs = jobs_at(queue)
    return QueueDetails(
        jobs={state: jobs[state] for state in JOB.states if state in jobs},
        open_jobs=open_jobs,
        storages=list(queue.storages.using(alias()).select_related("storage").order_by("storage_id", "access")),
        status=queue.status,
        pilots=vars(queue)["pilots_seen"],
        last_seen=vars(queue)["last_seen"],
        overrides=list(LocalOverride.objects.using(alias()).filter(kind="queue", name=queue.name)),
    )
