"""Pilots: rows of their list, newest first, and one of them with its jobs and last asks; and what pilots do at each queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from broker_site.foundation.access.permissions import VoScope
from broker_site.foundation.kernel import clock
from broker_site.foundation.rest.keyset import Count, Cursor, Page, name_of
from brokerage.api.filtering import SEEN_MIN
from brokerage.models import IdleSlot, Job, Pilot, QueueAsk
from brokerage.queries.last_asks import AskShown, shown_asks
from brokerage.rules.dispatch.why_nothing import GOT_JOBS, sentence_of
from monitoring.queries.database import alias, rows
from monitoring.queries.jobs import JobRow, job_rows, visible_jobs

LOOKED_AT = 20_000
"""Pilots among which one page looks for those that the filters let pass."""
MOST_ASKS = 100
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class PilotRow:
    """One pilot. `jobs`: those that it holds, of the VOs that the visitor may look into; `others`: how many of other VOs."""

    id: str
    state: str
    queue: str
    site: str
    host: str
    slot: str
    core_count: int
    memory_mb: int
    disk_mb: int
    jobs: Sequence[int]
    others: int
    idle_since: datetime | None
    registered_at: datetime
    last_seen: datetime


@dataclass(frozen=True, slots=True)
class PilotDetails:
    """What a pilot holds; its asks among the last hundred of its queue, newest first, and the ended jobs that they got."""

    row: PilotRow
    holds: Sequence[JobRow]
    ended: Sequence[JobRow]
    asks: Sequence[AskShown]

    @property
    def listed(self) -> tuple[Sequence[JobRow], Sequence[JobRow]]:
        """Both kinds of its jobs, those that it holds first."""
        return self.holds, self.ended


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """What the pilots of a queue do. Asks: of the last hour, by the minute; `main_reason`: with what most asks in vain ended."""

    queue: str
    site: str
    status: str
    busy: int
    idle: int
    quiet: int
    asks: int
    with_job: int
    in_vain: int
    main_reason: str
    registered_last_hour: int
    last_registered: datetime | None
    last_seen: datetime | None


def visible_pilots(scope: VoScope) -> QuerySet[Pilot]:
    """All pilots, to filter further: the grid is the same for all VOs."""
    return Pilot.objects.using(alias())


def pilot_rows(pilots: QuerySet[Pilot], scope: VoScope) -> list[PilotRow]:
    """The rows of a bounded query, in its order; four statements."""
    found = list(pilots.select_related("queue"))
    ids = [pilot.id for pilot in found]
    holding = list(Job.objects.using(alias()).filter(lease_holder__in=ids).order_by("id").values_list("lease_holder", "id"))
    visible = set(visible_jobs(scope).filter(id__in=[job for _, job in holding]).values_list("id", flat=True))
    jobs: dict[UUID, list[int]] = {}
    others: Counter[UUID] = Counter()
    for holder, job in holding:
        if holder is not None and job in visible:
            jobs.setdefault(holder, []).append(job)
        elif holder is not None:
            others[holder] += 1
    now = clock.now()
    idle = dict(IdleSlot.objects.using(alias()).filter(pilot_id__in=ids, until__gt=now).values_list("pilot_id", "since"))
    return [
        PilotRow(
            id=str(pilot.id),
            state=_state(pilot, now, busy=pilot.id in jobs or pilot.id in others, idle=pilot.id in idle),
            queue=pilot.queue.name,
            site=pilot.queue.site_id,
            **{name: getattr(pilot, name) for name in ("host", "slot", "core_count", "memory_mb", "disk_mb")},
            jobs=tuple(jobs.get(pilot.id, ())),
            others=others[pilot.id],
            idle_since=idle.get(pilot.id),
            registered_at=pilot.registered_at,
            last_seen=pilot.last_seen,
        )
        for pilot in found
    ]


def _state(pilot: Pilot, now: datetime, *, busy: bool, idle: bool) -> str:
    if busy or idle:
        return "busy" if busy else "idle"
    return "quiet" if pilot.last_seen > now - timedelta(minutes=SEEN_MIN) else "gone"


def place_of(registered_at: datetime, pilot_id: UUID) -> int:
    """Where a pilot stands in the order of registration: one number, as cursors hold."""
    return ((registered_at - _EPOCH) // _MICROSECOND << 128) | pilot_id.int


def _place(row: PilotRow) -> int:
    return place_of(row.registered_at, UUID(row.id))


def pilots_page(pilots: QuerySet[Pilot], scope: VoScope, size: int, cursor: Cursor | None) -> Page[Any]:
    """One page, newest first; pilots that the filters let pass are looked for among LOOKED_AT."""
    newer = cursor is not None and cursor.direction == "newer"
    part = _beyond(pilots, cursor.id, newer=newer) if cursor is not None else pilots
    order = ("registered_at", "id") if newer else ("-registered_at", "-id")
    every = Pilot.objects.using(alias())
    looked_at = _beyond(every, cursor.id, newer=newer) if cursor is not None else every
    end = looked_at.order_by(*order).values_list("registered_at", "id")[LOOKED_AT : LOOKED_AT + 1].first()
    if end is not None:  # what stands at the very same moment beyond the end is looked at with the next page
        bound = {"registered_at__lte": end[0]} if newer else {"registered_at__gte": end[0]}
        beyond = {"id__gt": end[1]} if newer else {"id__lt": end[1]}
        part = part.filter(**bound).exclude(registered_at=end[0], **beyond)
    found = pilot_rows(part.order_by(*order)[: size + 1], scope)
    more, shown = len(found) > size, found[:size]
    last = _place(shown[-1]) if more else place_of(*end) if end is not None else None
    shown = shown[::-1] if newer else shown
    first = _place(shown[0]) if shown else None
    name = name_of(Pilot)
    if newer:
        oldest = _place(shown[-1]) if shown else cursor.id if cursor else 0
        return Page(shown, Cursor("older", oldest, name), Cursor("newer", last, name) if last is not None else None, None)
    back = None if cursor is None else Cursor("newer", first if first is not None else cursor.id, name)
    count = Count(len(shown), more=last is not None) if cursor is None else None
    return Page(shown, Cursor("older", last, name) if last is not None else None, back, count)


def _beyond(pilots: QuerySet[Pilot], place: int, *, newer: bool) -> QuerySet[Pilot]:
    """Those after a place in the order: a bound that the index knows, and without what stands at the very same moment."""
    at, number = _EPOCH + (place >> 128) * _MICROSECOND, UUID(int=place & ((1 << 128) - 1))
    if newer:
        return pilots.filter(registered_at__gte=at).exclude(registered_at=at, id__lte=number)
    return pilots.filter(registered_at__lte=at).exclude(registered_at=at, id__gte=number)


def walk_pilots(pilots: QuerySet[Pilot], scope: VoScope, cursor: Cursor | None, step: int) -> Iterator[PilotRow]:
    """All from the cursor down, `step` at a time; all there are where it goes up."""
    if cursor is not None and cursor.direction == "newer":
        cursor = None
    while True:
        page = pilots_page(pilots, scope, step, cursor)
        yield from page.rows
        cursor = page.older
        if cursor is None:
            return


def find_pilot(pilot_id: UUID) -> Pilot | None:
    return Pilot.objects.using(alias()).filter(id=pilot_id).first()


def pilot_details(pilot: Pilot, scope: VoScope) -> PilotDetails:
    """Seven statements, each by an index."""
    using = alias()
    (row,) = pilot_rows(Pilot.objects.using(using).filter(id=pilot.id), scope)
    asks = QueueAsk.objects.using(using).filter(queue_id=pilot.queue_id).order_by("-id")[:MOST_ASKS]
    mine = [ask for ask in asks if ask.pilot_id == pilot.id]
    shown = shown_asks(mine, None if scope.everything else scope.names)
    got = {job for ask in shown for job in ask.jobs}
    return PilotDetails(
        row=row,
        holds=job_rows(visible_jobs(scope).filter(lease_holder=pilot.id).order_by("id")),
        ended=job_rows(visible_jobs(scope).filter(id__in=got, ended_at__isnull=False).order_by("-id")),
        asks=shown,
    )


_REASON = 9
"""Place of the reason in what follows."""
_WORKERS = f"""
WITH seen AS (
    SELECT p.queue_id, count(*) FILTER (WHERE h.holds) AS busy,
        count(*) FILTER (WHERE i.pilot_id IS NOT NULL AND NOT h.holds) AS idle,
        count(*) FILTER (WHERE i.pilot_id IS NULL AND NOT h.holds) AS quiet,
        count(*) FILTER (WHERE p.registered_at > now() - interval '1 hour') AS young, max(p.registered_at) AS registered,
        max(p.last_seen) AS heard
    FROM brokerage_pilot p
    LEFT JOIN brokerage_idleslot i ON i.pilot_id = p.id AND i.until > now()
    CROSS JOIN LATERAL (SELECT EXISTS (SELECT FROM brokerage_job j WHERE j.lease_holder = p.id) AS holds) AS h
    WHERE p.last_seen > now() - make_interval(mins => %(minutes)s) GROUP BY 1
), asked AS (
    SELECT queue_id, sum(n) AS asks, sum(n) FILTER (WHERE outcome = '{GOT_JOBS}') AS with_job,
        (array_agg(outcome ORDER BY n DESC, outcome) FILTER (WHERE outcome <> '{GOT_JOBS}' AND n > 0))[1] AS reason
    FROM (
        SELECT h.queue_id, h.outcome, sum(u.n) AS n
        FROM brokerage_computingqueue q
        JOIN brokerage_askhour h ON h.queue_id = q.id AND h.hour >= date_trunc('hour', now()) - interval '1 hour'
        CROSS JOIN LATERAL unnest(h.minutes) WITH ORDINALITY AS u(n, minute)
        WHERE h.hour + make_interval(mins => u.minute::int) > now() - interval '1 hour' GROUP BY 1, 2) AS minutes
    GROUP BY 1
)
SELECT q.name, q.site_id, q.status, coalesce(s.busy, 0), coalesce(s.idle, 0), coalesce(s.quiet, 0), coalesce(a.asks, 0)::bigint,
    coalesce(a.with_job, 0)::bigint, (coalesce(a.asks, 0) - coalesce(a.with_job, 0))::bigint, coalesce(a.reason, ''),
    coalesce(s.young, 0), s.registered, s.heard
FROM brokerage_computingqueue q LEFT JOIN seen s ON s.queue_id = q.id LEFT JOIN asked a ON a.queue_id = q.id
WHERE s.queue_id IS NOT NULL OR a.queue_id IS NOT NULL ORDER BY q.name
"""


def worker_rows(scope: VoScope) -> list[WorkerRow]:
    """What pilots that were heard of lately do, by queue, and what asks there got; one statement."""
    told = [list(row) for row in rows(_WORKERS, {"minutes": SEEN_MIN})]
    for row in told:
        row[_REASON] = sentence_of(row[_REASON]) if row[_REASON] else ""
    return [WorkerRow(*row) for row in told]
