"""What the facets of lists count: jobs that have not ended, from the roll-ups; tasks by state, by an index, to a bound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from broker_site.foundation.access.permissions import VoScope
from brokerage.api.filtering import SEEN_MIN
from brokerage.models import ComputingQueue
from brokerage.queries.kept_counts import KeptCounts, Rows
from brokerage.rules.facts.job_kind import JobKind
from brokerage.states import JOB
from monitoring.queries.database import alias, rows, seen_by
from monitoring.tables.facets import Facet, facet
from monitoring.tables.selection import Selection
from workqueues.queries.element_rows import MOST_COUNTED as MOST_ELEMENTS
from workqueues.queries.element_rows import elements_by_state
from workqueues.states import TASK
from workqueues.states.elements import ELEMENT

MOST_TASKS = 1_000
"""Tasks of one state that are counted."""
ALIVE = "that have not ended"
OF_JOBS = "their live jobs"

# Each family is counted by itself: the sums of one are a few hundred, and the others would only be added up in vain.
_OF_FAMILY = """
SELECT '{by}', {value}, sum(l.n::int) FROM brokerage_tallygroup g JOIN brokerage_tallylevel l ON l.group_id = g.id
WHERE g.family = '{family}' AND (%(everything)s OR g.vo = ANY(%(vos)s)) GROUP BY 2 HAVING sum(l.n::int) > 0
"""
_OF_STATUS = _OF_FAMILY.format(by="status", family="vo", value="l.what")
_OF_QUEUE = _OF_FAMILY.format(by="queue", family="queue", value="g.queue")
_OF_SHARE = _OF_FAMILY.format(by="share", family="share", value="g.share")
_OF_KIND = _OF_FAMILY.format(by="kind", family="share", value="g.kind::text")
_OF_OWNER = _OF_FAMILY.format(by="user_name", family="user", value="g.user_name")
_JOBS = KeptCounts(f"{_OF_STATUS} UNION ALL {_OF_QUEUE} UNION ALL {_OF_SHARE} UNION ALL {_OF_KIND} UNION ALL {_OF_OWNER}")
_TASKS = """
SELECT s.status, (SELECT count(*) FROM (
    SELECT FROM workqueues_task t WHERE t.status = s.status AND (%(everything)s OR t.vo = ANY(%(vos)s)) LIMIT %(most)s) AS first)
FROM unnest(%(states)s::text[]) AS s(status)
"""


def live_jobs(scope: VoScope) -> Mapping[str, Sequence[tuple[str, int]]]:
    """Jobs that have not ended by status, queue, share, kind and owner, the most first; one statement, of the roll-ups."""
    return _JOBS.answer(seen_by(scope), _most_first, using=alias())


def _most_first(found: Rows) -> Mapping[str, Sequence[tuple[str, int]]]:
    numbers: dict[str, list[tuple[str, int]]] = {by: [] for by in ("status", "queue", "share", "kind", "user_name")}
    for by, value, n in found:
        numbers[by].append((value, n))
    return {by: sorted(of, key=lambda pair: (-pair[1], pair[0])) for by, of in numbers.items()}


def job_facets(scope: VoScope, selection: Selection) -> Sequence[Facet]:
    """Live jobs by state, queue, share, kind and owner."""
    live = live_jobs(scope)
    kinds = [(JobKind(int(kind)).label, n) for kind, n in live["kind"]]
    return (
        facet(selection, "status", "State", ALIVE, _in_order(JOB.states, live["status"])),
        facet(selection, "queue", "Queue", ALIVE, live["queue"], nameless="open to several"),
        facet(selection, "share", "Share", ALIVE, live["share"], nameless="no share"),
        facet(selection, "kind", "Kind", ALIVE, kinds),
        facet(selection, "user_name", "Owner", ALIVE, live["user_name"]),
    )


def task_facets(scope: VoScope, selection: Selection) -> Sequence[Facet]:
    """Tasks by state; and their live jobs by share, queue and owner."""
    values = {**seen_by(scope), "states": list(TASK.states), "most": MOST_TASKS + 1}
    states = _in_order(TASK.states, rows(_TASKS, values))
    live = live_jobs(scope)
    return (
        facet(selection, "status", "State", "tasks", states, most=MOST_TASKS),
        facet(selection, "share", "Share", OF_JOBS, live["share"], nameless="no share"),
        facet(selection, "queue", "Queue", OF_JOBS, live["queue"], nameless="open to several"),
        facet(selection, "user_name", "Owner", OF_JOBS, live["user_name"]),
    )


def queue_facets(scope: VoScope, selection: Selection) -> Sequence[Facet]:
    """Queues by status, type and site; one statement, of as many rows as there are queues."""
    queues = list(ComputingQueue.objects.using(alias()).values_list("status", "type", "site_id"))
    columns = (("status", "Status"), ("type", "Type"), ("site", "Site"))
    return [
        facet(selection, name, label, "queues", Counter(queue[i] for queue in queues).most_common())
        for i, (name, label) in enumerate(columns)
    ]


_PILOTS = """
SELECT q.name, q.site_id, s.n FROM brokerage_computingqueue q
JOIN (
    SELECT queue_id, count(*) AS n FROM brokerage_pilot WHERE last_seen > now() - make_interval(mins => %(minutes)s) GROUP BY 1
) AS s ON s.queue_id = q.id
"""


def pilot_facets(scope: VoScope, selection: Selection) -> Sequence[Facet]:
    """Pilots that were heard of lately by queue and site; one statement, by an index."""
    by_queue: Counter[str] = Counter()
    by_site: Counter[str] = Counter()
    for queue, site, n in rows(_PILOTS, {"minutes": SEEN_MIN}):
        by_queue[queue] += n
        by_site[site] += n
    lately = "heard of lately"
    return (
        facet(selection, "queue", "Queue", lately, by_queue.most_common()),
        facet(selection, "site", "Site", lately, by_site.most_common()),
    )


def element_facets(scope: VoScope, selection: Selection) -> Sequence[Facet]:
    """Elements by state, counted to a bound where the visitor may look into every VO; else not counted."""
    if not scope.everything:
        return (facet(selection, "status", "State", "", ((state, None) for state in ELEMENT.course)),)
    states = elements_by_state(alias())
    return (facet(selection, "status", "State", "elements", states.items(), most=MOST_ELEMENTS),)


def _in_order(order: Sequence[str], numbers: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    known = dict(numbers)
    return [(value, known[value]) for value in order if value in known]
