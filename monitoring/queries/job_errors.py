"""With which errors jobs ended: each error once, whatever numbers and names its messages have, with how often, where and when."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from broker_site.foundation.access.permissions import VoScope
from broker_site.foundation.kernel import clock
from brokerage.models import ErrorFingerprint, TallyGroup
from brokerage.queries.kept_counts import KeptCounts, Rows
from brokerage.rules.dispatch.retry_rules import COMPONENTS
from brokerage.rules.facts.rollups import Family
from brokerage.rules.facts.series import Asked
from brokerage.states import JOB
from monitoring.error_words import known_help
from monitoring.queries.database import alias
from monitoring.queries.jobs import visible_jobs
from monitoring.queries.series import WINDOWS, counted

MOST_ERRORS = 50
MOST_QUEUES = 3
"""Queues that are named with an error, those with most."""

_BY_QUEUE = KeptCounts("""
SELECT g.fingerprint, g.queue, sum(b.n)::bigint FROM brokerage_tallygroup g JOIN brokerage_tallybucket b ON b.group_id = g.id
WHERE g.family = 'error_at' AND g.fingerprint = ANY (%(errors)s) AND (%(vos)s::text[] IS NULL OR g.vo = ANY (%(vos)s))
    AND (%(groups)s::int[] IS NULL OR g.id = ANY (%(groups)s))
    AND b.step_s = %(step)s AND b.what = ANY (%(whats)s) AND b.at >= %(start)s AND b.at < %(end)s
GROUP BY 1, 2 ORDER BY 1, 3 DESC, 2
""")


@dataclass(frozen=True, slots=True)
class JobErrorRow:
    """One error. `jobs` that ended with it in the window, `points` of them in each step of the window, `queues`: where most of
    them were, each with its number. `job_id`: one of them that the visitor may see. `helps`: what is known to help, empty for a
    code that is not ours. `followed`: what retry rules did when that job failed, `rule` and what it `told`.
    """

    id: str
    component: str
    code: str
    exit_code: int
    message: str
    jobs: int
    queues: Sequence[tuple[str, int]]
    n_queues: int
    first_seen: datetime
    last_seen: datetime
    job_id: int | None
    points: Sequence[int]
    helps: str
    followed: Sequence[Mapping[str, str]]

    @property
    def says(self) -> str:
        """Who says so, in words."""
        return COMPONENTS[self.component].split(":")[0]

    @property
    def bars(self) -> Sequence[int]:
        """The points as parts of the largest, of 100, taken together to at most 48."""
        together = -(-len(self.points) // 48)
        sums = [sum(self.points[i : i + together]) for i in range(0, len(self.points), together)]
        most = max(sums)
        return [-(-100 * n // most) for n in sums]


@dataclass(frozen=True, slots=True)
class JobErrors:
    """Errors of a window, the most frequent first; up to when jobs are counted; how many jobs ended with others."""

    rows: Sequence[JobErrorRow]
    counted_at: datetime | None
    others: int


def error_groups(scope: VoScope) -> QuerySet[TallyGroup]:
    """What errors are counted by, in the VOs of the scope, to filter further."""
    return TallyGroup.objects.using(alias()).filter(scope.q("vo"), family=Family.ERROR_AT)


def job_errors(
    scope: VoScope, window: str, queue: str = "", most: int = MOST_ERRORS, groups: Collection[int] | None = None
) -> JobErrors:
    """The errors with which most jobs ended in a window, of these VOs, at a queue, or of these groups; four statements."""
    window_s, step_s = WINDOWS[window]
    asked = Asked(tuple(JOB.unsuccessful), window_s, step_s, "error", {"queue": queue} if queue else {})
    found = counted(asked, scope, groups)
    points: dict[int, list[int]] = {}
    others = 0
    for line in found.lines:
        if not line.of.isdigit():
            others += line.total
        elif int(line.of):
            sums = points.setdefault(int(line.of), [0] * len(line.points))
            points[int(line.of)] = [a + b for a, b in zip(sums, line.points, strict=True)]
    first = sorted(points, key=lambda error: (-sum(points[error]), error))[:most]
    others += sum(sum(points[error]) for error in points.keys() - {*first})
    known = ErrorFingerprint.objects.using(alias()).in_bulk(first)
    queues = {error: [(queue, sum(points[error]))] for error in first} if queue else _by_queue(asked, first, scope, groups)
    samples = [known[error].sample_job_id for error in first if error in known]
    seen = dict(visible_jobs(scope).filter(id__in=samples).values_list("id", "result__retry_actions"))
    times = found.times
    table = [
        JobErrorRow(
            str(error), is_known.component, is_known.code, is_known.exit_code, is_known.message, sum(points[error]),
            queues.get(error, [])[:MOST_QUEUES], len(queues.get(error, [])), is_known.first_seen,
            max(is_known.first_seen, *(at for at, n in zip(times, points[error], strict=True) if n)),
            is_known.sample_job_id if is_known.sample_job_id in seen else None, points[error],
            known_help(is_known.code), seen.get(is_known.sample_job_id) or (),
        )
        for error in first if (is_known := known.get(error)) is not None
    ]  # fmt: skip
    return JobErrors(table, found.counted_at, others)


def _by_queue(
    asked: Asked, errors: Sequence[int], scope: VoScope, groups: Collection[int] | None
) -> Mapping[int, list[tuple[str, int]]]:
    """Error -> queues where jobs ended with it, with how many, those with most first."""
    if not errors:
        return {}
    start, end = asked.span(clock.now())
    vos = None if scope.everything else sorted(scope.names)
    of = {"errors": list(errors), "vos": vos, "groups": None if groups is None else list(groups)}
    values = {**of, "step": asked.step_s, "whats": list(asked.what), "start": start, "end": end}
    return _BY_QUEUE.answer(values, _queues_of, using=alias())


def _queues_of(found: Rows) -> Mapping[int, list[tuple[str, int]]]:
    queues: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for error, queue, n in found:
        queues[error].append((queue, n))
    return dict(queues)
