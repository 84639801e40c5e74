"""Child brokers pull elements (row W2): by priority, then age, where their sites have slots; under a lease.

Those that pull at the same time are served in one transaction, in the order of their asks.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, NamedTuple

from django.db import transaction

from broker_site.foundation.agency.batches import concerns_all
from broker_site.foundation.kernel.dice import dice
from workqueues.ledger.child_brokers import child_with
from workqueues.ledger.elements.contacts import check_child, if_as_known
from workqueues.ledger.elements.hand_over import Consignment, Given, hand_over
from workqueues.ledger.elements.next_waiting import WaitingElement, next_waiting
from workqueues.ledger.elements.pulling_children import PullingChild, lock_pulling
from workqueues.ledger.installation import Identity
from workqueues.models import ChildBroker
from workqueues.queries.speakers import Speaker
from workqueues.rules.elements import acquisition
from workqueues.rules.elements.element_sites import SiteWishes
from workqueues.rules.elements.messages import Pull, PulledHead
from workqueues.rules.elements.site_slots import SiteSlots, slots

ROUNDS = 20
"""So often the next elements are looked at, where sites became full on the way."""
WAITS = 3
"""So often they are looked at again where others have just locked some: they take these, or let go of them."""


@dataclass(frozen=True, slots=True)
class PullTerms:
    """Under which terms elements are given: for how many seconds, so many that a child has no more of them then, and how long
    nobody else may come with a child's token (s).
    """

    lease_s: float
    most_held: int = 1_000_000
    pause_s: float = 0.0


class ChildPull(NamedTuple):
    """What the child broker with this credential says."""

    credential: int
    said: Pull


class Pulled(NamedTuple):
    """Who pulled, from whom, and what it is told: `elements` and `why`, and which elements it should report, `steered`."""

    child: Speaker
    me: Identity
    answer: dict[str, Any]


_TOLD = [field.name for field in fields(PulledHead)]
"""What a child is told of an element. Of all together the names are kept once, which is half as much to write."""


def pull_each(pulls: Sequence[ChildPull], terms: PullTerms, now: datetime) -> list[Pulled | Exception]:
    """What each of these children gets, or why not; none is among them twice. The same key again gets the same, and no more.

    The contact with each is noted with it; `now`: when they were heard.
    """
    try:
        told = _pull_together(pulls, terms, now)
    except Exception as fault:
        if concerns_all(fault) or len(pulls) == 1:
            raise
        told = {}
    return [told.get(one.credential) or _pull_alone(one, terms, now) for one in pulls]


def _pull_alone(one: ChildPull, terms: PullTerms, now: datetime) -> Pulled | Exception:
    """What is not done together with others: all that has a fault, and what a child says that is not the one that it was."""
    try:
        check_child(child_with(one.credential), one.said, now, terms.pause_s)
        told = _pull_together([one], terms, now)
    except Exception as fault:
        if concerns_all(fault):
            raise
        return fault
    return told.get(one.credential) or _pull_alone(one, terms, now)  # another may have spoken with its token meanwhile


def _pull_together(pulls: Sequence[ChildPull], terms: PullTerms, now: datetime) -> dict[int, Pulled]:
    """What these children get, by their credentials, in one transaction; without those for whom there is more to do."""
    said = dict(pulls)
    with transaction.atomic():
        locked = lock_pulling({credential: one.key for credential, one in pulls}, terms.most_held)
        here = {key: me for key, child in locked.items() if (me := if_as_known(child.speaker, said[key]))}
        children = {key: locked[key] for key in here}
        answers: dict[int, Mapping[str, Any]] = {
            key: json.loads(child.answer) for key, child in children.items() if child.answer is not None
        }
        if answers:
            again = [children[key].speaker.id for key in answers]
            ChildBroker.objects.filter(id__in=again).update(last_contact=now)
        consignments: list[Consignment] = []
        for key, one in pulls:  # who asked first chooses first
            if key in children and key not in answers:
                taken = [element.id for before in consignments for element, _ in before.given]
                consignments.append(_consignment(children[key], one, terms, taken))
        answers |= _hand_over(consignments, terms, now)
    return {key: _pulled(children[key], here[key], answers[key]) for key in children}


def _consignment(child: PullingChild, said: Pull, terms: PullTerms, taken: Sequence[int]) -> Consignment:
    """What a child gets; `taken`: elements that others get in this transaction."""
    why = _refusals(child, said, terms.most_held)
    given = [] if why else _acquire(child, said, why, terms.most_held - child.held, taken)
    told = [_told(one, terms) for one in sorted(given, key=_in_order)]
    return Consignment(child.credential, child.speaker, said, given, {"why": dict(+why), "told": _TOLD, "elements": told})


def _hand_over(consignments: Sequence[Consignment], terms: PullTerms, now: datetime) -> dict[int, Mapping[str, Any]]:
    """Give them: what each child is told. One that got others meanwhile, by another pull, gets none of these."""
    told = {one.credential: one.answer for one in consignments}
    if others := hand_over(consignments, terms.lease_s, now):
        nothing = [
            one._replace(given=(), answer={"why": {"negotiating": others[one.child.id]}, "elements": []})
            for one in consignments
            if one.child.id in others
        ]
        hand_over(nothing, terms.lease_s, now)
        told |= {one.credential: one.answer for one in nothing}
    return told


def _pulled(child: PullingChild, me: Identity, answer: Mapping[str, Any]) -> Pulled:
    return Pulled(child.speaker, me, {**_in_words(answer), "steered": json.loads(child.steered or "[]")})


def _refusals(child: PullingChild, said: Pull, most_held: int) -> Counter[str]:
    """Why the child gets nothing at all, with numbers; empty where it may."""
    why: Counter[str] = Counter()
    if said.draining or child.is_drained:
        why["draining"] = 1
    if said.free_jobs is not None and said.free_jobs <= 0:
        why["no_free_job"] = 1
    if child.negotiating:
        why["negotiating"] = child.negotiating
    if child.held >= most_held:
        why["holds_most"] = most_held
    return why


def _acquire(child: PullingChild, said: Pull, why: Counter[str], most: int, taken: Sequence[int]) -> list[Given]:
    """Go through the elements in order, page by page, until the child has as many as it wants, or as it may have, or nothing more
    has a slot.
    """
    room: Mapping[str, float] = slots(
        {name: SiteSlots(site.state, site.pending_slots, site.running_slots) for name, site in said.sites.items()}, "pull"
    )
    counts: acquisition.JobCounts = {site: {int(priority): n for priority, n in jobs.items()} for site, jobs in said.jobs.items()}
    room = {site: n for site, n in room.items() if n > 0}
    chance = dice("pull", child.speaker.name, str(said.key))  # the same pull always chooses the same sites
    given: list[Given] = []
    seen = list(taken)
    waits = 0
    for _ in range(ROUNDS + len(room)):
        wanted = min(said.most, most) - len(given)
        if not wanted or not room:
            break
        page = next_waiting(room, child.team, child.vo, seen, wanted)
        acquired = acquisition.acquire(_elements(page.mine), room, chance, counts=counts, most=wanted)
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
