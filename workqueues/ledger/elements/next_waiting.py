"""The next elements that a child broker may have, locked: by priority, then the older task, over all groups (rows W1, W2).

First a look at the front of all that waits, of a fixed length; only where that has too few for this child, what is further behind
is looked for group by group, a few groups first. So no look grows with what waits for others. What others have just locked is
passed over.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from broker_site.foundation.sql.prepared import Prepared
from workqueues.states import TASK

FRONT = 3000
"""Elements at the front of all that waits that are looked at one after the other."""
FEW_GROUPS = 8
MANY = 1000
"""Where more elements wait than these, who locks a few too many takes nothing from others: they find as many behind them."""
BEYOND, WIDER = 20, 8
"""So many more of a group behind the front are looked at than are wanted: some may be just in another's hands. At each further
look, where they were, so many times as many, as far as the front goes.
"""


class WaitingElement(NamedTuple):
    """A locked element that waits, with the number that a try of it gets, and the sites, of those asked for, at
    which it may run."""

    id: int
    task_id: int
    priority: int
    jobs: int
    n_files: int
    task_name: str
    vo: str
    try_nr: int
    sites: Sequence[str]
    team: str


class Page(NamedTuple):
    """The next elements; and, where these are fewer than were wanted, whether others have just locked some that were near."""

    mine: list[WaitingElement]
    others_hold: bool


_IN_ORDER = "ORDER BY e.priority DESC, e.task_id, e.id"
_MAY = "g.sites && $1::varchar[] AND (g.team = '' OR $2 = '' OR g.team = $2) AND ($3 = '' OR g.vo = $3)"
# OFFSET 0 keeps a part by itself: row by row in the order of the outer one, which ends as soon as enough are found.
_MAKES = f"""CROSS JOIN LATERAL (
    SELECT t.task_name, t.vo FROM workqueues_task t WHERE t.id = e.task_id AND t.status IN ({TASK.generating.sql}) OFFSET 0) t"""
_SITES = "ARRAY(SELECT s FROM unnest($1) AS s WHERE s = ANY(g.sites)) AS sites"
# Looked at once more when the lock is had; CASE, as the planner takes an equality for one that few rows fulfil.
_LOCKED = """
    SELECT e.id, e.task_id, e.priority, e.jobs, e.n_files, n.task_name, n.vo, n.sites, n.team
    FROM ({near}) n JOIN workqueues_element e ON e.id = n.id
    WHERE e.status = 'Available' AND CASE e.group_id WHEN n.group_id THEN TRUE END {others}
    ORDER BY n.priority DESC, n.task_id, n.id LIMIT {wanted} FOR NO KEY UPDATE OF e SKIP LOCKED"""
_WAITS = "workqueues_element e WHERE e.status = 'Available' AND NOT e.is_aside AND e.why_waiting = ''"
_FRONT = f"""
    SELECT e.id, e.priority, e.task_id, e.group_id, t.task_name, t.vo, g.sites, g.team FROM (
        SELECT e.id, e.priority, e.task_id, e.group_id FROM {_WAITS} {_IN_ORDER} LIMIT {FRONT}) e
    CROSS JOIN LATERAL (
        SELECT {_SITES}, g.team FROM workqueues_elementgroup g WHERE g.id = e.group_id AND {_MAY} OFFSET 0) g
    {_MAKES}
    WHERE NOT e.id IN (SELECT unnest($4))
    {_IN_ORDER}"""
_COLUMNS = "id, task_id, priority, jobs, n_files, task_name, vo, nextval('workqueues_element_try'), sites, team"
_LOOK = f"SELECT {_COLUMNS} FROM ({_LOCKED.format(near=_FRONT, wanted='$5', others='')}) AS mine"
_OF_GROUP = f"""CROSS JOIN LATERAL (
        SELECT e.id, e.priority, e.task_id, t.task_name, t.vo FROM workqueues_element e {_MAKES}
        WHERE e.group_id = g.id AND e.status = 'Available' AND NOT e.is_aside AND NOT e.id = ANY($4)
        {_IN_ORDER} LIMIT {{n}}) e"""
_HEADS = f"""
    SELECT g.id AS group_id, g.sites, g.team, e.priority, e.task_id, e.id, row_number() OVER ({_IN_ORDER}) AS place
    FROM workqueues_elementgroup g {_OF_GROUP.format(n=1)} WHERE {_MAY}"""
"""The first element of every group that may be."""
_OF_FIRST_GROUPS = f"""
    SELECT e.id, e.priority, e.task_id, g.id AS group_id, e.task_name, e.vo, g.sites, g.team
    FROM (SELECT g.group_id AS id, g.team, {_SITES} FROM heads g WHERE g.place <= {{groups}} OFFSET 0) g
    {_OF_GROUP.format(n="$5 + $6")}
    WHERE ((-e.priority, e.task_id, e.id) < (SELECT -priority, task_id, id FROM heads WHERE place = {{groups}} + 1)) IS NOT FALSE
    {_IN_ORDER}"""
"""What comes before the first element of the next group is all that comes before it; behind the n-th are n at least."""
_STILL_WANTED = "$5 - (SELECT count(*) FROM few)"
_OF_FEW = _LOCKED.format(near=_OF_FIRST_GROUPS.format(groups=FEW_GROUPS), wanted="$5", others="")
_OF_ENOUGH = _LOCKED.format(
    near="SELECT * FROM nearby",
    wanted=_STILL_WANTED,
    others=f"AND {_STILL_WANTED} > 0 AND NOT e.id IN (SELECT id FROM few)",
)
_LOOK_BEYOND = f"""
WITH heads AS MATERIALIZED ({_HEADS}),
few AS MATERIALIZED ({_OF_FEW}),
nearby AS MATERIALIZED ({_OF_FIRST_GROUPS.format(groups="$5 + $6")}),
enough AS MATERIALIZED ({_OF_ENOUGH}),
mine AS (SELECT * FROM few UNION ALL SELECT * FROM enough)
SELECT {_COLUMNS},
    (SELECT count(*) FROM mine) < $5 AND EXISTS (SELECT FROM nearby WHERE NOT id IN (SELECT id FROM mine))
FROM (VALUES (1)) AS always(n) LEFT JOIN mine e ON TRUE {_IN_ORDER}
"""
TYPES = "text[], text, text, bigint[], int"
TYPES_BEYOND = f"{TYPES}, int"
NEXT = Prepared("next_elements", TYPES, _LOOK)
BEYOND_FRONT = Prepared("elements_beyond_front", TYPES_BEYOND, _LOOK_BEYOND)
MANY_WAIT = Prepared("many_elements", "int", f"SELECT e.id FROM {_WAITS} {_IN_ORDER} OFFSET $1 LIMIT 1")


def next_waiting(sites: Collection[str], team: str, vo: str, seen: Sequence[int], n: int, looks: int = 0) -> Page:
    """Lock the next `n` elements, but for those seen, of groups with one of these sites, for a team and VO (empty: any).

    `looks`: so often others were found to hold some of the next ones.
    """
    child = (sorted(sites), team, vo)
    mine = [WaitingElement(*row) for row in NEXT.run(*child, list(seen), n)]
    if len(mine) == n:
        return Page(mine, others_hold=False)
    rows = BEYOND_FRONT.run(*child, [*seen, *(one.id for one in mine)], n - len(mine), min(BEYOND * WIDER**looks, FRONT))
    mine += [WaitingElement(*row[:-1]) for row in rows if row[0] is not None]
    mine.sort(key=lambda one: (-one.priority, one.task_id, one.id))  # what was let go of since the first look may come before
    return Page(mine, rows[0][-1])


def next_in_order(sites: Collection[str], n: int, spare: int) -> list[WaitingElement]:
    """Lock the next `n` elements, as far as they are at the front, of groups with one of these sites, for any team and VO; and
    `spare` more where many wait.
    """
    if not sites:
        return []
    most = n + (spare if MANY_WAIT.run(MANY) else 0)
    return [WaitingElement(*row) for row in NEXT.run(sorted(sites), "", "", [], most)]
