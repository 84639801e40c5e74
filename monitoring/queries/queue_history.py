"""A computing queue over time: its jobs, errors and idle slots, and its limits beside what is used of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.permissions import VoScope
from broker_site.foundation.kernel import clock
from brokerage.models import ComputingQueue
from brokerage.queries.idle_slots import idle_at_queues
from brokerage.rules.facts.snapshot import TRANSFERRING_LIMIT
from brokerage.states import JOB
from monitoring.plots import HOUR_S, WIDE, Curve, Plot
from monitoring.queries.database import alias
from monitoring.queries.history import History, history
from monitoring.queries.job_errors import JobErrors, job_errors
from monitoring.queries.levels import levels_at_queues
from monitoring.queries.queues import site_limits

MOST_ERRORS = 10
IDLE_H = 24
TRANSFERRING, TAKEN = "transferring", JOB.placed + JOB.starting
"""States of jobs that count for a limit: whose outputs are under way; those that wait, or that a pilot has only just taken."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A limit: of what, how much of it is used, None: not known, the limit, and where it comes from. `key`: that sets it."""

    of: str
    used: int | None
    most: int
    why: str
    key: str = ""

    @property
    def full(self) -> bool:
        return self.used is not None and self.used >= self.most


@dataclass(frozen=True, slots=True)
class QueueHistory:
    """`idle`: minutes of idle slots by hour, None where no slot idled."""

    history: History
    errors: JobErrors
    idle: Plot | None
    bounds: Sequence[Bound]


def queue_history(queue: ComputingQueue, scope: VoScope, window: str) -> QueueHistory:
    """What a queue did in a window, in the VOs of the scope; its limits count the jobs of all. Eight statements at most."""
    return QueueHistory(
        history(scope, window, {"queue": queue.name}),
        job_errors(scope, window, queue.name, MOST_ERRORS),
        _idle(queue),
        [*_queue_bounds(queue), *_site_bounds(queue.site_id)],
    )


def _idle(queue: ComputingQueue) -> Plot | None:
    """Idle slots by hour of the last day: in all, beside work that they may do, and beside work that is held."""
    at_queue = idle_at_queues(queue.id, alias()).get(queue.id)
    if at_queue is None:
        return None
    end = clock.now().replace(minute=0, second=0, microsecond=0)
    times = [end - timedelta(hours=h) for h in reversed(range(IDLE_H))]
    hours = {hour.hour: hour for hour in at_queue.hours}
    curves = [
        Curve(name, colour, [round(getattr(hours[at], column) / 60) if at in hours else 0 for at in times])
        for name, colour, column in (
            ("idle", "target", "idle_s"),
            ("beside work", "failed", "beside_s"),
            ("beside held work", "held", "held_s"),
        )
    ]
    return Plot("Idle slots", times, HOUR_S, curves, of="slot minutes", width=WIDE)


def _queue_bounds(queue: ComputingQueue) -> list[Bound]:
    """Limits of the brokerage, beside all jobs at the queue as they were last counted."""
    jobs = levels_at_queues(queue.name).get(queue.name, {})
    least, key = gdpconfig.value("jobbroker", "NQUEUELIMITSITE"), "jobbroker.NQUEUELIMITSITE"
    running = jobs.get("running", 0)
    most = max(queue.transferringlimit or TRANSFERRING_LIMIT, 2 * running)
    waits = "twice those that run, or the least that may wait where that is more; a share may have a least of its own"
    moves = f"twice those that run, or {queue.transferringlimit or TRANSFERRING_LIMIT:,} where that is more"
    return [
        Bound("Jobs that wait", sum(jobs.get(state, 0) for state in TAKEN), max(least, 2 * running), waits, key),
        Bound("Jobs whose outputs are moved", jobs.get(TRANSFERRING, 0), most, moves),
    ]


def _site_bounds(site: str) -> list[Bound]:
    """Limits of its site, for all its queues together."""
    limits = site_limits(site)
    bounds: list[Bound] = []
    if limits.ad is not None:
        ad, matched = limits.ad.state.ad, limits.ad.state.matched
        for name, used, most in (
            ("Jobs at the site", ad.current_jobs, ad.max_jobs),
            ("Jobs being submitted there", ad.current_submitting_jobs, ad.max_submitting_jobs),
        ):
            if most is not None:
                bounds.append(Bound(name, None if used is None else used + matched, most, f"as {site} advertised it"))
    for row in limits.limits:
        if row.most is not None:
            where = f"at {row.on.ce}" if row.on.ce else f"at {site}"
            name = f"Jobs with {row.on.attribute} {row.on.value}"
            bounds.append(Bound(name, row.there, row.most, where, "dispatch.RUNNING_LIMITS"))
    return bounds
