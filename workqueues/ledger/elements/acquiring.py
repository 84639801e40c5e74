"""Which of the elements that wait a child broker gets, locked: by the rule of acquisition, a look at the next ones at a time.

Children that pull together have a first look in common; who finds too few there looks by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from broker_site.foundation.kernel.dice import dice
from workqueues.ledger.elements.hand_over import Given
from workqueues.ledger.elements.next_waiting import Page, WaitingElement, next_in_order, next_waiting
from workqueues.ledger.elements.pulling_children import PullingChild
from workqueues.rules.elements import acquisition
from workqueues.rules.elements.element_sites import SiteWishes
from workqueues.rules.elements.messages import Pull
from workqueues.rules.elements.site_slots import slots

ROUNDS = 20
"""So often the next elements are looked at, where sites became full on the way."""
WAITS = 3
"""So often they are looked at again where others have just locked some: they take these, or let go of them."""
SPARE = 2
"""At the look in common, so many elements for one that is wanted: not each suits each child. Of the last ones that wait no more
are locked than are wanted: children of other processes would find none.
"""


class Wish(NamedTuple):
    """What a child may get: at most so many elements, at sites with so many slots, under which so many jobs count.

    `why`: why it gets no more, with numbers; it is added to.
    """

    child: PullingChild
    said: Pull
    most: int
    room: Mapping[str, float]
    why: Counter[str]


def wish_of(child: PullingChild, said: Pull, most_held: int) -> Wish:
    """What a child may get that says this. `most_held`: no child has more elements than that."""
    why = _refusals(child, said, most_held)
    most = 0 if why else min(said.most, most_held - child.held)
    return Wish(child, said, most, {site: n for site, n in slots(said.sites, "pull").items() if n > 0}, why)


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


def next_of_all(wishes: Sequence[Wish]) -> list[WaitingElement]:
    """The next elements for any of several children, locked; none where one child alone asks."""
    wanted = sum(wish.most for wish in wishes)
    if len(wishes) < 2 or not wanted:
        return []
    sites = {site for wish in wishes if wish.most for site in wish.room}
    return next_in_order(sites, wanted, SPARE * (wanted + len(wishes)) - wanted)


def acquire(wish: Wish, front: Sequence[WaitingElement], taken: Collection[int]) -> list[Given]:
    """Go through the elements in order, page by page, until the child has as many as it may, or nothing more has a slot.

    `front`: the next ones for any child; `taken`: elements that others get in this transaction.
    """
    child, room = wish.child, wish.room
    counts: dict[str, dict[float, float]] = {}
    chance = dice("pull", child.speaker.name, str(wish.said.key))  # the same pull always chooses the same sites
    given: list[Given] = []
    seen = list(taken)
    waits = 0
    page = Page(list(islice(_for_child(front, wish, taken), wish.most)), others_hold=False)
    looks_itself = not page.mine
    for _ in range(ROUNDS + len(room)):
        wanted = wish.most - len(given)
        if not wanted or not room:
            break
        if looks_itself:
            page = next_waiting(room, child.team, child.vo, seen, wanted, waits)
        _count(wish.said, {site for one in page.mine for site in one.sites}, counts)
        acquired = acquisition.acquire(_elements(page.mine), room, chance, counts=counts, most=wanted)
        by_id = {str(one.id): one for one in page.mine}
        given += [Given(by_id[element.id], site) for element, site in acquired.elements]
        waits += page.others_hold
        if looks_itself and len(page.mine) < wanted and not (page.others_hold and waits <= WAITS):
            break
        looks_itself = True
        counts = acquired.counts
        seen += [one.id for one in page.mine]
        if page.mine and len(given) < wish.most:  # a site that is full for the last of them is full for all that come after it
            last = page.mine[-1].priority
            _count(wish.said, room, counts)
            room = {site: n for site, n in room.items() if acquisition.has_slot(last, n, counts[site])}
    if not given and not +wish.why:
        wish.why["in_other_hands" if waits else "nothing_waits"] = 1
    return given


def _count(said: Pull, sites: Iterable[str], counts: dict[str, dict[float, float]]) -> None:
    """Add the jobs that count at these sites by what the child says: of hundreds of sites a pull of one element needs a few."""
    for site in sites:
        if site not in counts:
            counts[site] = {int(priority): n for priority, n in said.jobs.get(site, {}).items()}


def _for_child(front: Sequence[WaitingElement], wish: Wish, taken: Collection[int]) -> Iterator[WaitingElement]:
    """Those that a child may have, each with the sites of it."""
    team, vo = wish.child.team, wish.child.vo
    for one in front:
        of_team = not team or not one.team or one.team == team
        if of_team and (not vo or one.vo == vo) and one.id not in taken:
            sites = [site for site in one.sites if site in wish.room]
            if sites:
                yield one._replace(sites=sites)


def _elements(waiting: Sequence[WaitingElement]) -> list[acquisition.Element]:
    wishes = {sites: SiteWishes(included=sites) for sites in {tuple(one.sites) for one in waiting}}
    return [
        acquisition.Element(
            id=str(one.id), priority=one.priority, created=one.task_id, jobs=one.jobs, wishes=wishes[tuple(one.sites)]
        )
        for one in waiting
    ]
