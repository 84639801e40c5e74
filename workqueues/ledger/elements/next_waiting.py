"""The next elements that a child broker may have, locked: by priority, then the older task, over all groups (rows W1, W2).

First a look at the front of all that waits, of a fixed length; what is further behind is looked for group by group, so that no
look grows with what waits for others.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from broker_site.foundation.sql.prepared import Prepared
from workqueues.states import TASK

FRONT = 3000
"""Elements at the front of all that waits that are looked at one after the other."""
BEYOND = 20
"""So many more are looked at than are wanted: some may be just in another's hands."""


class WaitingElement(NamedTuple):
    """A locked element that waits, and the sites of the child at which it may run."""

    id: int
    task_id: int
    priority: int
    jobs: int
    sites: Sequence[str]


class Page(NamedTuple):
    """The next elements, and the ids of all that need not be looked at again: these, and those that others hold."""

    mine: list[WaitingElement]
    looked_at: list[int]


_IN_ORDER = "ORDER BY e.priority DESC, e.task_id, e.id"
_MAY = "g.sites && $1::varchar[] AND (g.team = '' OR $2 = '' OR g.team = $2) AND ($3 = '' OR g.vo = $3)"
# OFFSET 0 keeps a part by itself: row by row in the order of the outer one, which ends as soon as enough are found.
_MAKES = f"""CROSS JOIN LATERAL (
    SELECT FROM workqueues_task t WHERE t.id = e.task_id AND t.status IN ({TASK.generating.sql}) OFFSET 0) t"""
_FRONT = f"""
    SELECT e.id, e.priority, e.task_id FROM (
        SELECT e.id, e.priority, e.task_id, e.group_id FROM workqueues_element e
        WHERE e.status = 'Available' {_IN_ORDER} LIMIT {FRONT}) e
    CROSS JOIN LATERAL (SELECT FROM workqueues_elementgroup g WHERE g.id = e.group_id AND {_MAY} OFFSET 0) g
    {_MAKES}
    WHERE NOT e.id = ANY($4)
    {_IN_ORDER} LIMIT $5 + {BEYOND}"""
_OF_GROUP = f"""CROSS JOIN LATERAL (
        SELECT e.id, e.priority, e.task_id FROM workqueues_element e {_MAKES}
        WHERE e.group_id = g.id AND e.status = 'Available' AND NOT e.id = ANY($4)
        {_IN_ORDER} LIMIT {{n}}) e"""
_BY_GROUPS = f"""
    SELECT e.id, e.priority, e.task_id FROM (
        SELECT g.id FROM workqueues_elementgroup g {_OF_GROUP.format(n=1)} WHERE {_MAY}
        {_IN_ORDER} LIMIT $5 + {BEYOND}) g
    {_OF_GROUP.format(n=f"$5 + {BEYOND}")}
    {_IN_ORDER} LIMIT $5 + {BEYOND}"""
"""Those of the first groups: what is behind the n-th group is behind n elements."""
_LOCK = f"""
WITH near AS MATERIALIZED ({{near}}), mine AS (
    SELECT e.id, e.task_id, e.priority, e.jobs, e.group_id FROM near n JOIN workqueues_element e ON e.id = n.id
    WHERE e.status = 'Available' ORDER BY n.priority DESC, n.task_id, n.id LIMIT $5 FOR NO KEY UPDATE OF e SKIP LOCKED
)
SELECT e.id, e.task_id, e.priority, e.jobs,
    (SELECT ARRAY(SELECT s FROM unnest($1) AS s WHERE s = ANY(g.sites)) FROM workqueues_elementgroup g WHERE g.id = e.group_id),
    CASE WHEN row_number() OVER ({_IN_ORDER}) = 1 THEN (SELECT array_agg(id) FROM near) END
FROM (VALUES (1)) AS always(n) LEFT JOIN mine e ON TRUE {_IN_ORDER}
"""
_TYPES = "text[], text, text, bigint[], int"
AT_FRONT = Prepared("elements_at_front", _TYPES, _LOCK.format(near=_FRONT))
BY_GROUPS = Prepared("elements_by_groups", _TYPES, _LOCK.format(near=_BY_GROUPS))


def next_waiting(look: Prepared, sites: Collection[str], team: str, vo: str, seen: Sequence[int], n: int) -> Page:
    """Lock the next `n` elements, but for those seen, of groups with one of these sites, for a team and VO (empty: any)."""
    rows = look.run(sorted(sites), team, vo, list(seen), n)
    mine = [WaitingElement(*row[:5]) for row in rows if row[0] is not None]
    return Page(mine, [one.id for one in mine] if len(mine) == n else rows[0][5] or [])
