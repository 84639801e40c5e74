"""Elements become those of the children that pulled them, and what these said and are told is kept: one statement for all."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from broker_site.foundation.outside_data import text_of
from broker_site.foundation.sql.prepared import Prepared, array_text
from workqueues.ledger.elements.next_waiting import WaitingElement
from workqueues.queries.speakers import Speaker
from workqueues.rules.elements.messages import JobsTold, Pull, SitesTold


class Given(NamedTuple):
    """What a pull gave: an element and the site with its slot."""

    element: WaitingElement
    site: str


class Consignment(NamedTuple):
    """What a child gets for what it said, and how it is told."""

    credential: int
    child: Speaker
    said: Pull
    given: Sequence[Given]
    answer: Mapping[str, Any]


_HAND_OVER = Prepared(
    "hand_over_elements",
    "int[], bigint[], text[], bigint[], uuid, float8, int[], text[], uuid[], uuid[], uuid[], text[], smallint[], float8[], "
    "timestamptz, text[], text[], int[], bool[], text[]",
    """
WITH said AS MATERIALIZED (
    SELECT * FROM unnest($7, $8, $9, $10, $11, $12, $13, $14, $16, $17, $18, $19, $20) AS s(child_id, name, key, instance,
        incarnation, version, protocol, ahead_s, sites, jobs, free_jobs, draining, last_pull)
), open AS MATERIALIZED (
    SELECT s.child_id, s.name,
        (SELECT count(*)::int FROM workqueues_element e WHERE e.child_id = s.child_id AND e.status = 'Negotiating') AS n
    FROM said s
), given AS (
    UPDATE workqueues_element e SET status = 'Negotiating', status_since = now(), epoch = e.epoch + 1, child_id = v.child_id,
        site = v.site, try_nr = v.try_nr, incarnation = $5, lease_until = now() + make_interval(secs => $6),
        serial_first = NULL, serial_last = NULL, sentence = '', decision = '', told_at = NULL
    FROM unnest($1, $2, $3, $4) AS v(child_id, id, site, try_nr), open
    WHERE e.id = v.id AND e.status = 'Available' AND open.child_id = v.child_id AND open.n = 0
    RETURNING e.id, e.task_id, e.epoch, open.child_id, open.name
), noted AS (
    INSERT INTO workqueues_elementchange (element_id, task_id, epoch, old, new, who, why)
    SELECT id, task_id, epoch, 'Available', 'Negotiating', left('child:' || name, 128), 'pulled by ' || name FROM given
), kept AS (
    UPDATE workqueues_childbroker c SET instance = s.instance, incarnation = s.incarnation, version = s.version,
        protocol = s.protocol, clock_ahead_s = s.ahead_s, last_contact = $15, last_pull_key = s.key, last_pull_at = now(),
        sites = s.sites::jsonb, jobs_by_priority = s.jobs::jsonb, free_jobs = s.free_jobs, is_draining = s.draining,
        last_pull = s.last_pull::jsonb
    FROM said s CROSS JOIN LATERAL (SELECT ctid AS place FROM workqueues_childbroker WHERE id = s.child_id OFFSET 0) AS mine
    WHERE c.ctid = mine.place
)
SELECT child_id, n, (SELECT count(*) FROM given WHERE given.child_id = open.child_id) FROM open
""",
)
"""`open`: what another pull of the child got while this one waited for its row; the statement that waited does not see it.

`mine`: the rows are locked, so they stay where they are; joined by their ids, a scan of all children would seem to cost less.
"""


def hand_over(consignments: Sequence[Consignment], lease_s: float, now: datetime) -> dict[int, int]:
    """Give the locked elements for `lease_s` seconds; `now`: when the children were heard.

    Children whose elements of before are open get none: their ids, each with how many these are.
    """
    if not consignments:
        return {}
    given = [(each.child.id, *one) for each in consignments for one in each.given]
    saids = [(each.child, each.said) for each in consignments]
    rows = _HAND_OVER.run(
        array_text(child_id for child_id, _, _ in given),
        array_text(element.id for _, element, _ in given),
        _texts([site for _, _, site in given]),
        array_text(element.try_nr for _, element, _ in given),
        *(_incarnation(consignments), lease_s),
        array_text(child.id for child, _ in saids),
        [child.name for child, _ in saids],
        *(array_text(getattr(said, of) for _, said in saids) for of in ("key", "instance", "incarnation")),
        [said.version for _, said in saids],
        array_text(said.protocol for _, said in saids),
        array_text((said.now - now).total_seconds() for _, said in saids),
        now,
        [text_of(SitesTold, said.sites) for _, said in saids],
        [text_of(JobsTold, said.jobs) for _, said in saids],
        array_text(said.free_jobs for _, said in saids),
        array_text(said.draining for _, said in saids),
        [json.dumps({"most": each.said.most, "answer": each.answer}) for each in consignments],
    )
    told = {child_id: (n, moved) for child_id, n, moved in rows}
    held_up: dict[int, int] = {}
    for each in consignments:
        negotiating, moved = told[each.child.id]
        if each.given and negotiating:
            held_up[each.child.id] = negotiating
        elif moved != len(each.given):
            raise RuntimeError(f"{len(each.given)} elements were locked, {moved} of them waited")
    return held_up


def _incarnation(consignments: Sequence[Consignment]) -> str | None:
    """That of this broker, as its children were told."""
    here = consignments[0].child.here
    return str(here[1]) if here else None


def _texts(values: Sequence[str]) -> list[str] | str:
    return list(values) or "{}"
