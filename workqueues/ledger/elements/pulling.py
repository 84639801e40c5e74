"""Child brokers pull elements (row W2): by priority, then age, where their sites have slots; under a lease.

Those that pull at the same time are served in one transaction, in the order of their asks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, NamedTuple

from django.db import transaction

from broker_site.foundation.agency.batches import concerns_all, say_why_apart
from workqueues.ledger.child_brokers import child_with
from workqueues.ledger.elements.acquiring import Wish, acquire, next_of_all, wish_of
from workqueues.ledger.elements.contacts import check_child, if_as_known
from workqueues.ledger.elements.hand_over import Consignment, Given, hand_over
from workqueues.ledger.elements.pulling_children import PullingChild, lock_pulling
from workqueues.ledger.installation import Identity
from workqueues.models import ChildBroker
from workqueues.queries.speakers import Speaker
from workqueues.rules.elements.messages import Pull, PulledHead


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
        say_why_apart("pulls", fault)
        told = {}
    return [told.get(one.credential) or _pull_alone(one, terms, now) for one in pulls]


def _pull_alone(one: ChildPull, terms: PullTerms, now: datetime) -> Pulled | Exception:
    """What is not done together with others: all that has a fault or must be waited for, and what a child says that is not the
    one that it was.
    """
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
        # Who asked first chooses first.
        wishes = [wish_of(children[key], one, terms.most_held) for key, one in pulls if key in children and key not in answers]
        answers |= _hand_over(_consignments(wishes, terms), terms, now)
    return {key: _pulled(children[key], here[key], answers[key]) for key in children}


def _consignments(wishes: Sequence[Wish], terms: PullTerms) -> list[Consignment]:
    """What the children get, one after the other."""
    front, taken = next_of_all(wishes), set[int]()
    consignments: list[Consignment] = []
    for wish in wishes:
        given = acquire(wish, front, taken)
        taken.update(element.id for element, _ in given)
        told = [_told(one, terms) for one in sorted(given, key=_in_order)]
        answer = {"why": dict(+wish.why), "told": _TOLD, "elements": told}
        consignments.append(Consignment(wish.child.credential, wish.child.speaker, wish.said, given, answer))
    return consignments


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
