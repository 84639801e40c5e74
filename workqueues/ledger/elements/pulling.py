"""A child broker pulls elements (row W2): by priority, then age, where its sites have a slot; under a lease."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

from django.db import transaction

from broker_site.foundation.sql.prepared import Prepared
from workqueues.ledger.elements.next_waiting import AT_FRONT, BY_GROUPS, WaitingElement, next_waiting
from workqueues.rules.elements import acquisition
from workqueues.rules.elements.element_sites import SiteWishes
from workqueues.rules.elements.messages import Pull
from workqueues.rules.elements.site_slots import SiteSlots, slots

_SITE = ("state", "pending_slots", "running_slots", "running_jobs")
ROUNDS = 20
"""So often the next elements are looked at, where others had those before or sites became full on the way."""


@dataclass(frozen=True, slots=True)
class PullTerms:
    """Under which terms elements are given: for how many seconds, by which incarnation of this broker."""

    lease_s: float
    incarnation: UUID


class Given(NamedTuple):
    """What a pull gave: an element and the site with its slot."""

    element: WaitingElement
    site: str


class _Child(NamedTuple):
    name: str
    team: str
    vo: str
    is_drained: bool
    answer: str | None
    """To a pull with this key, as JSON."""
    negotiating: int


_CHILD = Prepared(
    "pulling_child",
    "int, uuid",
    """
SELECT name, team, vo, drain_since IS NOT NULL, CASE WHEN last_pull_key = $2 THEN (last_pull -> 'answer')::text END,
    (SELECT count(*) FROM workqueues_element WHERE child_id = $1 AND status = 'Negotiating')
FROM workqueues_childbroker WHERE id = $1 FOR NO KEY UPDATE
""",
)
_GIVE = """
WITH open AS MATERIALIZED (
    SELECT count(*) AS n FROM workqueues_element WHERE child_id = $1 AND status = 'Negotiating'
), given AS (
    UPDATE workqueues_element e SET status = 'Negotiating', status_since = now(), epoch = e.epoch + 1, child_id = $1,
        site = v.site, try_nr = nextval('workqueues_element_try'), incarnation = $2,
        lease_until = now() + make_interval(secs => $3), serial_first = NULL, serial_last = NULL,
        sentence = '', decision = '', told_at = NULL
    FROM unnest($4, $5) AS v(id, site), open WHERE e.id = v.id AND e.status = 'Available' AND open.n = 0
    RETURNING e.id, e.task_id, e.epoch, e.try_nr, e.priority, e.jobs, e.n_files, e.site
), noted AS (
    INSERT INTO workqueues_elementchange (element_id, task_id, epoch, old, new, who, why)
    SELECT id, task_id, epoch, 'Available', 'Negotiating', $6, $7 FROM given
), told AS (
    SELECT jsonb_build_object('why', CASE WHEN (SELECT n FROM open) > 0
        THEN jsonb_build_object('negotiating', (SELECT n FROM open)) ELSE $8::jsonb END,
        'elements', coalesce(jsonb_agg(jsonb_build_object(
        'id', g.id, 'try_nr', g.try_nr, 'task_id', g.task_id, 'task_name', t.task_name, 'vo', t.vo, 'priority', g.priority,
        'jobs', g.jobs, 'n_files', g.n_files, 'site', g.site, 'lease_s', $3
    ) ORDER BY g.priority DESC, g.task_id, g.id), '[]')) AS answer
    FROM given g JOIN workqueues_task t ON t.id = g.task_id
), kept AS (
    UPDATE workqueues_childbroker SET instance = $15, incarnation = $16, version = $17, protocol = $18, clock_ahead_s = $19,
        last_contact = $20, last_pull_key = $9, last_pull_at = now(), sites = $10::jsonb,
        jobs_by_priority = $11::jsonb, free_jobs = $12, is_draining = $13,
        last_pull = jsonb_build_object('most', $14, 'answer', told.answer)
    FROM told WHERE workqueues_childbroker.id = $1
)
SELECT answer::text FROM told
"""
"""What another pull of the child got while this one waited for its row is seen here, and not by the statement that waited."""
_TYPES = """int, uuid, float8, bigint[], text[], text, text, text, uuid, text, text, int, bool, int,
uuid, uuid, text, smallint, float8, timestamptz"""
_HAND_OVER = Prepared("hand_over_elements", _TYPES, _GIVE)


def pull(child_id: int, ask: Pull, terms: PullTerms, dice: Random, who: str, now: datetime) -> dict[str, Any]:
    """What the child gets, as it is told and kept: `elements` and `why`. The same key again gets the same, and no more.

    The contact with the child is noted with it; `now`: when it was heard.
    """
    with transaction.atomic():
        child = _Child(*_CHILD.run(child_id, str(ask.key))[0])
        if child.answer is not None:
            return dict(json.loads(child.answer))
        why = _refusals(child, ask)
        given = [] if why else _acquire(child, ask, dice, why)
        answer: dict[str, Any] = json.loads(_hand_over(child_id, child.name, ask, given, why, terms, who[:128], now))
        return answer


def _refusals(child: _Child, ask: Pull) -> Counter[str]:
    """Why the child gets nothing at all, with numbers; empty where it may."""
    why: Counter[str] = Counter()
    if ask.draining or child.is_drained:
        why["draining"] = 1
    if ask.free_jobs is not None and ask.free_jobs <= 0:
        why["no_free_job"] = 1
    if child.negotiating:
        why["negotiating"] = child.negotiating
    return why


def _acquire(child: _Child, ask: Pull, dice: Random, why: Counter[str]) -> list[Given]:
    """Go through the elements in order, page by page, until the child has as many as it wants or nothing more has a slot."""
    room: Mapping[str, float] = slots(
        {name: SiteSlots(site.state, site.pending_slots, site.running_slots) for name, site in ask.sites.items()}, "pull"
    )
    counts: acquisition.JobCounts = {site: {int(priority): n for priority, n in jobs.items()} for site, jobs in ask.jobs.items()}
    room = {site: n for site, n in room.items() if n > 0}
    given: list[Given] = []
    seen: list[int] = []
    look = AT_FRONT
    for _ in range(ROUNDS + len(room)):
        wanted = ask.most - len(given)
        if not wanted or not room:
            break
        page = next_waiting(look, room, child.team, child.vo, seen, wanted)
        acquired = acquisition.acquire([_element(one) for one in page.mine], room, dice, counts=counts, most=wanted)
        by_id = {str(one.id): one for one in page.mine}
        given += [Given(by_id[element.id], site) for element, site in acquired.elements]
        counts = acquired.counts
        why["in_other_hands"] += len(page.looked_at) - len(page.mine)
        seen += page.looked_at
        if page.mine:  # a site that is full for the last of them is full for all that come after it
            last = page.mine[-1].priority
            room = {site: n for site, n in room.items() if acquisition.has_slot(last, n, counts.get(site, {}))}
        if len(page.mine) < wanted:
            if look is BY_GROUPS and not page.looked_at:
                break
            look = BY_GROUPS
    if not given and not +why:
        why["nothing_waits"] = 1
    return given


def _element(one: WaitingElement) -> acquisition.Element:
    return acquisition.Element(
        id=str(one.id), priority=one.priority, created=one.task_id, jobs=one.jobs, wishes=SiteWishes(included=one.sites)
    )


def _hand_over(
    child_id: int,
    child_name: str,
    ask: Pull,
    given: Sequence[Given],
    why: Counter[str],
    terms: PullTerms,
    who: str,
    now: datetime,
) -> str:
    """The elements are the child's, and what it said is kept: what it is told of each, as JSON."""
    sites = {
        site: {
            "state": s.state,
            "pending_slots": s.pending_slots,
            "running_slots": s.running_slots,
            "running_jobs": s.running_jobs,
        }
        for site, s in ask.sites.items()
    }
    ((answer,),) = _HAND_OVER.run(
        *(child_id, str(terms.incarnation), terms.lease_s),
        *([one.element.id for one in given], [one.site for one in given]),
        *(who, f"pulled by {child_name}", json.dumps(+why), str(ask.key)),
        *(json.dumps(sites), json.dumps(ask.jobs), ask.free_jobs, ask.draining, ask.most),
        *(str(ask.instance), str(ask.incarnation), ask.version, ask.protocol, (ask.now - now).total_seconds(), now),
    )
    return str(answer)
