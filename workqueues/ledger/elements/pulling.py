"""A child broker pulls elements (row W2): by priority, then age, where its sites have a slot; under a lease."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

from django.db import transaction

from broker_site.foundation.sql.prepared import Prepared
from workqueues.ledger.elements.next_waiting import WaitingElement, next_waiting
from workqueues.models import ChildBroker
from workqueues.queries.steered_elements import STEERED
from workqueues.rules.elements import acquisition
from workqueues.rules.elements.element_sites import SiteWishes
from workqueues.rules.elements.messages import Pull, PulledHead
from workqueues.rules.elements.site_slots import SiteSlots, slots
from workqueues.states.elements import ELEMENT

ROUNDS = 20
"""So often the next elements are looked at, where sites became full on the way."""
WAITS = 3
"""So often they are looked at again where others have just locked some: they take these, or let go of them."""


@dataclass(frozen=True, slots=True)
class PullTerms:
    """Under which terms elements are given: for how many seconds, by which incarnation of this broker, and so many that a child
    has no more of them then.
    """

    lease_s: float
    incarnation: UUID
    most_held: int = 1_000_000


class Given(NamedTuple):
    """What a pull gave: an element and the site with its slot."""

    element: WaitingElement
    site: str


_TOLD = [field.name for field in fields(PulledHead)]
"""What a child is told of an element. Of all together the names are kept once, which is half as much to write."""


class _Child(NamedTuple):
    name: str
    team: str
    vo: str
    is_drained: bool
    answer: str | None
    """To a pull with this key, as JSON."""
    negotiating: int
    held: int
    """As far as it matters."""
    steered: str | None
    """Elements that it should report, as JSON."""


_CHILD = Prepared(
    "pulling_child",
    "int, uuid, int",
    f"""
SELECT name, team, vo, drain_since IS NOT NULL, CASE WHEN last_pull_key = $2 THEN (last_pull -> 'answer')::text END,
    (SELECT count(*) FROM workqueues_element WHERE child_id = $1 AND status = 'Negotiating'),
    (SELECT count(*) FROM (
        SELECT FROM workqueues_element WHERE child_id = $1 AND status IN ({ELEMENT.taken.sql}) LIMIT $3) AS held),
    (SELECT json_agg(s)::text FROM ({STEERED}) AS s)
FROM workqueues_childbroker WHERE id = $1 FOR NO KEY UPDATE
""",
)
_GIVE = """
WITH open AS MATERIALIZED (
    SELECT count(*)::int AS n FROM workqueues_element WHERE child_id = $1 AND status = 'Negotiating'
), given AS (
    UPDATE workqueues_element e SET status = 'Negotiating', status_since = now(), epoch = e.epoch + 1, child_id = $1,
        site = v.site, try_nr = v.try_nr, incarnation = $2, lease_until = now() + make_interval(secs => $3),
        serial_first = NULL, serial_last = NULL, sentence = '', decision = '', told_at = NULL
    FROM unnest($4, $5, $6) AS v(id, site, try_nr), open WHERE e.id = v.id AND e.status = 'Available' AND open.n = 0
    RETURNING e.id, e.task_id, e.epoch
), noted AS (
    INSERT INTO workqueues_elementchange (element_id, task_id, epoch, old, new, who, why)
    SELECT id, task_id, epoch, 'Available', 'Negotiating', $7, $8 FROM given
), kept AS (
    UPDATE workqueues_childbroker SET instance = $15, incarnation = $16, version = $17, protocol = $18, clock_ahead_s = $19,
        last_contact = $20, last_pull_key = $9, last_pull_at = now(), sites = $10::jsonb,
        jobs_by_priority = $11::jsonb, free_jobs = $12, is_draining = $13, last_pull = $14::jsonb
    WHERE id = $1
)
SELECT (SELECT count(*) FROM given), open.n FROM open"""
"""`open`: what another pull of the child got while this one waited for its row; the statement that waited does not see it."""
_TYPES = """int, uuid, float8, bigint[], text[], bigint[], text, text, uuid, text, text, int, bool, text,
uuid, uuid, text, smallint, float8, timestamptz"""
_HAND_OVER = Prepared("hand_over_elements", _TYPES, _GIVE)


def pull(child_id: int, ask: Pull, terms: PullTerms, dice: Random, who: str, now: datetime) -> dict[str, Any]:
    """What the child gets, as it is told and kept: `elements` and `why`; and which it should report: `steered`. The same key
    again gets the same, and no more.

    The contact with the child is noted with it; `now`: when it was heard.
    """
    with transaction.atomic():
        child = _Child(*_CHILD.run(child_id, str(ask.key), terms.most_held)[0])
        steered = json.loads(child.steered or "[]")
        if child.answer is not None:
            ChildBroker.objects.filter(id=child_id).update(last_contact=now)
            return {**_in_words(json.loads(child.answer)), "steered": steered}
        why = _refusals(child, ask, terms.most_held)
        given = [] if why else _acquire(child, ask, dice, why, terms.most_held - child.held)
        answer = {"why": dict(+why), "told": _TOLD, "elements": [_told(one, terms) for one in sorted(given, key=_in_order)]}
        if negotiating := _hand_over(child_id, child.name, ask, given, answer, terms, who[:128], now):
            answer = {"why": {"negotiating": negotiating}, "elements": []}
            _hand_over(child_id, child.name, ask, [], answer, terms, who[:128], now)
        return {**_in_words(answer), "steered": steered}


def _refusals(child: _Child, ask: Pull, most_held: int) -> Counter[str]:
    """Why the child gets nothing at all, with numbers; empty where it may."""
    why: Counter[str] = Counter()
    if ask.draining or child.is_drained:
        why["draining"] = 1
    if ask.free_jobs is not None and ask.free_jobs <= 0:
        why["no_free_job"] = 1
    if child.negotiating:
        why["negotiating"] = child.negotiating
    if child.held >= most_held:
        why["holds_most"] = most_held
    return why


def _acquire(child: _Child, ask: Pull, dice: Random, why: Counter[str], most: int) -> list[Given]:
    """Go through the elements in order, page by page, until the child has as many as it wants, or as it may have, or nothing more
    has a slot.
    """
    room: Mapping[str, float] = slots(
        {name: SiteSlots(site.state, site.pending_slots, site.running_slots) for name, site in ask.sites.items()}, "pull"
    )
    counts: acquisition.JobCounts = {site: {int(priority): n for priority, n in jobs.items()} for site, jobs in ask.jobs.items()}
    room = {site: n for site, n in room.items() if n > 0}
    given: list[Given] = []
    seen: list[int] = []
    waits = 0
    for _ in range(ROUNDS + len(room)):
        wanted = min(ask.most, most) - len(given)
        if not wanted or not room:
            break
        page = next_waiting(room, child.team, child.vo, seen, wanted)
        acquired = acquisition.acquire(_elements(page.mine), room, dice, counts=counts, most=wanted)
        by_id = {str(one.id): one for one in page.mine}
        given += [Given(by_id[element.id], site) for element, site in acquired.elements]
        waits += page.others_hold
        if len(page.mine) < wanted and not 0 < waits <= WAITS:
            break
        counts = acquired.counts
        seen += [one.id for one in page.mine]
        if page.mine:  # a site that is full for the last of them is full for all that come after it
            last = page.mine[-1].priority
            room = {site: n for site, n in room.items() if acquisition.has_slot(last, n, counts.get(site, {}))}
    if not given and not +why:
        why["in_other_hands" if waits else "nothing_waits"] = 1
    return given


def _elements(waiting: Sequence[WaitingElement]) -> list[acquisition.Element]:
    wishes = {sites: SiteWishes(included=sites) for sites in {tuple(one.sites) for one in waiting}}
    return [
        acquisition.Element(
            id=str(one.id), priority=one.priority, created=one.task_id, jobs=one.jobs, wishes=wishes[tuple(one.sites)]
        )
        for one in waiting
    ]


def _in_order(given: Given) -> tuple[int, int, int]:
    return -given.element.priority, given.element.task_id, given.element.id


def _told(given: Given, terms: PullTerms) -> list[Any]:
    """What the child is told of an element: the values of _TOLD."""
    e = given.element
    return [e.id, e.try_nr, e.task_id, e.task_name, e.vo, e.priority, e.jobs, e.n_files, given.site, terms.lease_s]


def _in_words(answer: Mapping[str, Any]) -> dict[str, Any]:
    """An answer as the child gets it; an older broker kept it so too."""
    names, elements = answer.get("told"), answer["elements"]
    return {"why": answer["why"], "elements": [dict(zip(names, one, strict=True)) for one in elements] if names else elements}


def _hand_over(
    child_id: int,
    child_name: str,
    ask: Pull,
    given: Sequence[Given],
    answer: Mapping[str, Any],
    terms: PullTerms,
    who: str,
    now: datetime,
) -> int:
    """The elements are the child's, and what it said and is told is kept. Not 0: so many that it got before are open, and these
    are not its.
    """
    sites = {
        site: {
            "state": s.state,
            "pending_slots": s.pending_slots,
            "running_slots": s.running_slots,
            "running_jobs": s.running_jobs,
        }
        for site, s in ask.sites.items()
    }
    ((moved, negotiating),) = _HAND_OVER.run(
        *(child_id, str(terms.incarnation), terms.lease_s),
        *(_array(one.element.id for one in given), [one.site for one in given], _array(one.element.try_nr for one in given)),
        *(who, f"pulled by {child_name}", str(ask.key)),
        *(json.dumps(sites), json.dumps(ask.jobs), ask.free_jobs, ask.draining),
        json.dumps({"most": ask.most, "answer": answer}),
        *(str(ask.instance), str(ask.incarnation), ask.version, ask.protocol, (ask.now - now).total_seconds(), now),
    )
    if given and negotiating:
        return int(negotiating)
    if moved != len(given):
        raise RuntimeError(f"{len(given)} elements were locked, {moved} of them waited")
    return 0


def _array(numbers: Iterable[int]) -> str:
    """As PostgreSQL reads it: psycopg2 would quote one after the other."""
    return f"{{{','.join(map(str, numbers))}}}"
