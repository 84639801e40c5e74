"""With which errors jobs ended: each error once, whatever numbers and names its messages have, with how often, where and when."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

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
from monitoring.queries.error_tasks import ErrorTasks, tasks_with_errors
from monitoring.queries.jobs import visible_jobs
from monitoring.queries.series import WINDOWS, counted
from monitoring.tables.facets import Facet, facet
from monitoring.tables.selection import Fault, Selection

MOST_ERRORS = 50
MOST_PLACES = 3
"""Queues, and owners, that are named with an error: those with most."""

IN_WINDOW = """
(%(vos)s::text[] IS NULL OR g.vo = ANY (%(vos)s)) AND b.step_s = %(step)s AND b.what = ANY (%(whats)s)
    AND b.at >= %(start)s AND b.at < %(end)s"""
_PLACES = KeptCounts(f"""
SELECT g.family, g.fingerprint, CASE g.family WHEN %(of_owner)s THEN g.user_name ELSE g.queue END, sum(b.n)::bigint
FROM brokerage_tallygroup g JOIN brokerage_tallybucket b ON b.group_id = g.id
WHERE g.family = ANY (%(families)s) AND g.fingerprint = ANY (%(errors)s)
    AND (%(groups)s::int[] IS NULL OR g.id = ANY (%(groups)s)) AND {IN_WINDOW}
GROUP BY 1, 2, 3 ORDER BY 1, 2, 4 DESC, 3
""")
_IN_ALL = KeptCounts(f"""
SELECT g.family, CASE g.family WHEN %(of_owner)s THEN g.user_name ELSE g.queue END, sum(b.n)::bigint
FROM brokerage_tallygroup g JOIN brokerage_tallybucket b ON b.group_id = g.id
WHERE g.family = ANY (%(families)s) AND {IN_WINDOW} GROUP BY 1, 2 ORDER BY 1, 3 DESC, 2
""")


@dataclass(frozen=True, slots=True)
class Chosen:
    """Groups that the filters let pass: errors are counted by queue and by owner, not by both together. None: all of them."""

    family: Family = Family.ERROR_AT
    groups: Mapping[Family, Sequence[int]] | None = None
    told: Sequence[Family] = (Family.ERROR_AT, Family.ERROR_OF)

    @property
    def counted(self) -> Sequence[int] | None:
        """Those by which jobs are counted, once each."""
        return None if self.groups is None else self.groups.get(self.family, ())


ALL = Chosen()


@dataclass(frozen=True, slots=True)
class JobErrorRow:
    """One error. `jobs` that ended with it in the window, `points` of them in each step of the window, `queues`: where most of
    them were, each with its number, `users`: whose most were; none where the filter is by the other. `n_tasks`: of how many
    tasks, None where the filter is by queue; `more_tasks`: there may be more. `job_id`: one of them that the visitor may see.
    `helps`: what is known to help, empty for a code that is not ours. `followed`: what retry rules did when that job failed,
    `rule` and what it `told`.
    """

    id: str
    component: str
    code: str
    exit_code: int
    message: str
    jobs: int
    queues: Sequence[tuple[str, int]]
    n_queues: int
    users: Sequence[tuple[str, int]]
    n_users: int
    n_tasks: int | None
    more_tasks: bool
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
    """Errors of a window, the most frequent first; up to when jobs are counted; how many jobs ended with others. `at`: queue,
    code and jobs of each of the errors; empty where the filter is by owner.
    """

    rows: Sequence[JobErrorRow]
    counted_at: datetime | None
    others: int
    at: Sequence[tuple[str, str, int]] = ()


def error_groups(scope: VoScope) -> QuerySet[TallyGroup]:
    """What errors are counted by, in the VOs of the scope, to filter further."""
    return TallyGroup.objects.using(alias()).filter(scope.q("vo"), family__in=(Family.ERROR_AT, Family.ERROR_OF))


def together(selection: Selection) -> Mapping[str, Fault]:
    """The fault of filters that each are known, but not together."""
    if selection.parameters.get("queue") and selection.parameters.get("user_name"):
        return {"user_name": Fault("together", "errors are counted by queue and by owner, not by both: leave one of them out")}
    return {}


def chosen(groups: QuerySet[TallyGroup], selection: Selection) -> Chosen:
    """What the filters let pass; one statement, none without a filter."""
    if not selection.filtered:
        return ALL
    passed: dict[Family, list[int]] = {}
    for family, number in groups.values_list("family", "id"):
        passed.setdefault(Family(family), []).append(number)
    if selection.parameters.get("user_name"):
        return Chosen(Family.ERROR_OF, passed, (Family.ERROR_OF,))
    return Chosen(Family.ERROR_AT, passed, (Family.ERROR_AT,) if selection.parameters.get("queue") else ALL.told)


def job_errors(scope: VoScope, window: str, queue: str = "", most: int = MOST_ERRORS, of: Chosen = ALL) -> JobErrors:
    """The errors with which most jobs ended in a window, of these VOs, at a queue, or of what was chosen; five statements."""
    window_s, step_s = WINDOWS[window]
    asked = Asked(tuple(JOB.unsuccessful), window_s, step_s, "error", {"queue": queue} if queue else {})
    found = counted(asked, scope, of.counted)
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
    places: Mapping[tuple[int, Family], list[tuple[str, int]]] = {}
    if queue:
        places = {(error, Family.ERROR_AT): [(queue, sum(points[error]))] for error in first}
    elif first:
        places = _places(asked, first, scope, of)
    tasks = {} if queue else _tasks(asked, first, scope, of)
    samples = [known[error].sample_job_id for error in first if error in known]
    seen = dict(visible_jobs(scope).filter(id__in=samples).values_list("id", "result__retry_actions"))
    times = found.times
    began = {error: next(at for at, n in zip(times, points[error], strict=True) if n) for error in first}
    table = [
        JobErrorRow(
            str(error), is_known.component, is_known.code, is_known.exit_code, is_known.message, sum(points[error]),
            *_first(places.get((error, Family.ERROR_AT), ())), *_first(places.get((error, Family.ERROR_OF), ())),
            *_told(tasks.get(error), is_known.first_seen, began[error]), is_known.first_seen,
            max(is_known.first_seen, *(at for at, n in zip(times, points[error], strict=True) if n)),
            is_known.sample_job_id if is_known.sample_job_id in seen else None, points[error],
            known_help(is_known.code), seen.get(is_known.sample_job_id) or (),
        )
        for error in first if (is_known := known.get(error)) is not None
    ]  # fmt: skip
    at = [(name, known[error].code, n) for error in known for name, n in places.get((error, Family.ERROR_AT), ())]
    return JobErrors(table, found.counted_at, others, at)


def error_facets(scope: VoScope, window: str, selection: Selection) -> Sequence[Facet]:
    """Jobs that ended badly in a window by owner and by queue, whatever the filter; one statement, of the roll-ups."""
    window_s, step_s = WINDOWS[window]
    values = in_window(Asked(tuple(JOB.unsuccessful), window_s, step_s), scope)
    by = _IN_ALL.answer({**values, "families": list(ALL.told), "of_owner": Family.ERROR_OF}, _by_family, using=alias())
    words = "ended badly"
    return (
        facet(selection, "user_name", "Owner", words, by.get(Family.ERROR_OF, ()), nameless="no task", without=("queue",)),
        facet(selection, "queue", "Queue", words, by.get(Family.ERROR_AT, ()), nameless="no queue", without=("user_name",)),
    )


def _tasks(asked: Asked, errors: Sequence[int], scope: VoScope, of: Chosen) -> Mapping[int, ErrorTasks]:
    """Error -> the tasks that it was met in; none with a filter by queue, by which they are not noted."""
    if not errors or Family.ERROR_OF not in of.told:
        return {}
    groups = None if of.groups is None else of.groups.get(Family.ERROR_OF, ())
    values = in_window(asked, scope)
    found = tasks_with_errors(errors, values["vos"], values["start"], groups)
    return {error: found.get(error, ErrorTasks()) for error in errors}


def _told(tasks: ErrorTasks | None, first_seen: datetime, first_counted: datetime) -> tuple[int | None, bool]:
    return (None, False) if tasks is None else (tasks.n, tasks.may_be_more(first_seen, first_counted))


def _first(places: Sequence[tuple[str, int]]) -> tuple[Sequence[tuple[str, int]], int]:
    return places[:MOST_PLACES], len(places)


def in_window(asked: Asked, scope: VoScope) -> dict[str, Any]:
    """The parameters of IN_WINDOW."""
    start, end = asked.span(clock.now())
    vos = None if scope.everything else sorted(scope.names)
    return {"vos": vos, "step": asked.step_s, "whats": list(asked.what), "start": start, "end": end}


def _places(
    asked: Asked, errors: Sequence[int], scope: VoScope, of: Chosen
) -> Mapping[tuple[int, Family], list[tuple[str, int]]]:
    """Error and family -> queues where jobs ended with it, or owners of these, with how many, those with most first."""
    groups = None if of.groups is None else [number for family in of.told for number in of.groups.get(family, ())]
    values = {
        **in_window(asked, scope),
        "errors": list(errors),
        "groups": groups,
        "families": list(of.told),
        "of_owner": Family.ERROR_OF,
    }
    return _PLACES.answer(values, _by_error, using=alias())


def _by_error(found: Rows) -> Mapping[tuple[int, Family], list[tuple[str, int]]]:
    places: dict[tuple[int, Family], list[tuple[str, int]]] = defaultdict(list)
    for family, error, name, n in found:
        places[error, Family(family)].append((name, n))
    return dict(places)


def _by_family(found: Rows) -> Mapping[str, list[tuple[str, int]]]:
    by: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for family, name, n in found:
        by[family].append((name, n))
    return dict(by)
