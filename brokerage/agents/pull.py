"""Agent pull. Takes elements of the parent broker (GRIDBROKER_PARENT). Leaves them tasks here, and what became of them told to
the parent. Next: refine. Without a parent it does nothing.

Every step holds if the run is killed after it, or another run does the same at once; no step speaks to the parent within a
transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar
from uuid import UUID

from django.conf import settings

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.batches import one_by_one
from broker_site.foundation.agency.run import Run, agent
from broker_site.foundation.kernel import clock
from broker_site.foundation.kernel.dice import dice
from broker_site.foundation.kernel.machine import NotAllowed
from broker_site.foundation.outside_data import LARGEST
from brokerage.agents.pull_report import give, reports_of, take_verdicts
from brokerage.feeds.parent import Parent, ParentUnavailable, encoded
from brokerage.queries.pulling_sites import PullingSites, known_storages, pulling_sites
from brokerage.queries.standing_elements import standing_elements
from brokerage.rules.submission.pulling_sites import fewer_priorities, waiting_jobs
from workqueues.agents.element_tasks import start_element
from workqueues.ledger.installation import renew_if_restored
from workqueues.ledger.parent_contact import (
    alone,
    last_asked,
    note_answer,
    note_asked,
    note_fault,
    parent_row,
    pull_key,
    store_pull,
)
from workqueues.ledger.pulled_elements import follow_tasks, give_back, note_refused, store_work, tell_again
from workqueues.models import Installation, ParentBroker
from workqueues.queries.pulled_elements import (
    anything_negotiated,
    to_fetch,
    to_start,
    to_stop,
    to_tell,
    waiting_elements,
    why_all_broke_rules,
)
from workqueues.rules.elements.acquisition import Element, acquire
from workqueues.rules.elements.element_sites import SiteWishes
from workqueues.rules.elements.giving_back import ChildSites, IdleLimits, why_given_back
from workqueues.rules.elements.messages import (
    MOST_COUNTS,
    MOST_PRIORITIES,
    MOST_SITES,
    PROTOCOL,
    ElementTry,
    FetchWork,
    Pull,
    Reply,
    Report,
    SiteTold,
)
from workqueues.rules.elements.parent_news import KnownParent, NotUsable, parent_news
from workqueues.rules.elements.site_slots import slots
from workqueues.states import SITE_CLOSED

BATCH = 200
"""Elements of one report."""
WORKS = 10
"""Elements whose work is fetched at once."""
MOST_WORKS = 1000
"""Elements among which those to be fetched are chosen."""
MOST_FAULTS = 3
"""Faults of fetching one by one with which one run puts up."""
ROUNDS = 10
"""Reports, or fetches, of one run at most: what is left is told by the next one."""
MOST_BROKEN = 20
"""After so many elements in a row that break rules here, each of which the parent gives again, it waits before it pulls more."""
MOST_STARTED = 1000
"""Elements that are looked at, the most urgent first, to become tasks."""

R = TypeVar("R", bound=Reply)


@dataclass(slots=True)
class Session:
    """One run with the parent: who we are, what we know of it, and how it is reached."""

    run: Run
    own: Installation
    row: ParentBroker
    parent: Parent
    failed_before: bool = False
    """The last run could not do all."""

    def ask(self, call: Callable[[Any], R], message: Callable[..., Any], **said: Any) -> tuple[R, datetime]:
        """The answer to a message, and when it was sent; what it says of the parent is kept. Raises ParentUnavailable."""
        sent_at = clock.now()
        answer = call(message(**self._hello(sent_at), **said))
        middle = sent_at + (clock.now() - sent_at) / 2
        known = KnownParent(self.row.instance, self.row.incarnation)
        try:
            error_s = gdpconfig.value("elements", "CLOCK_ERROR")
            note_answer(self.row, answer, parent_news(known, answer, self.own.instance, middle, error_s))
        except NotUsable as fault:
            raise ParentUnavailable(str(fault)) from None
        return answer, sent_at

    def _hello(self, now: datetime) -> dict[str, Any]:
        return {
            "protocol": PROTOCOL,
            "version": settings.BROKER_VERSION[:40],
            "instance": self.own.instance,
            "incarnation": self.own.incarnation,
            "now": now,
            "lineage": [UUID(one) for one in self.row.lineage],
        }

    @property
    def circle(self) -> bool:
        """Whether this broker is above its own parent."""
        return str(self.own.instance) in self.row.lineage


@agent("pull")
def pull(run: Run) -> int:
    """One cycle: tell, fetch, start, ask for more. How many elements moved on."""
    if not settings.PARENT:
        return 0
    with alone() as mine:
        return _cycle(run) if mine else 0


def _cycle(run: Run) -> int:
    timeout_s = gdpconfig.value("elements", "PARENT_TIMEOUT")
    parent = Parent(settings.PARENT, settings.PARENT_TOKEN, timeout_s)
    row = parent_row(settings.PARENT)
    session = Session(run, renew_if_restored(), row, parent, failed_before=bool(row.last_error))
    moved = _follow(session) + give_back_standing(run)
    try:
        moved += _report(session)
        if fetched := _fetch(session):
            moved += fetched + _report(session)  # the parent waits for that before it gives more
        moved += start(run)
        return moved + (0 if session.circle else _pull(session))
    except ParentUnavailable as fault:
        note_fault(session.row, str(fault))
        run.left.append(f"the parent {settings.PARENT}: {fault}")
        return moved + start(run)  # what is here already needs nobody


def _follow(session: Session) -> int:
    """Elements follow their tasks, and tasks that are no longer wanted are killed."""
    for task_id, refused in to_stop(BATCH):
        why = f"the parent no longer gives it to us: {refused}" if refused else "it is cancelled at the parent"
        give(task_id, "kill", session.run.who, why)
    return follow_tasks()


def give_back_standing(run: Run) -> int:
    """Elements that make no progress here any more go back to the parent: how many. What of them has ended stays so."""
    config = gdpconfig.component("elements")
    limits = IdleLimits(config["STANDSTILL"], config["WORK_WAIT"])
    if not (standing := standing_elements(run.who, limits, MOST_STARTED)):
        return 0
    sites = _sites(pulling_sites())
    reasons = {str(id_): why for id_, element in standing.items() if (why := why_given_back(element, sites))}

    def back(id_: str) -> bool:
        with suppress(NotAllowed):  # it ends by itself
            return give_back(int(id_), reasons[id_], run.who)
        return False

    return sum(one_by_one(list(reasons), back, lambda id_, error: run.leave(f"pulled element {id_}", error)))


def _sites(grid: PullingSites) -> ChildSites:
    """Those that take work, and those that have some."""
    takes = {name for name, site in grid.sites.items() if site.state not in SITE_CLOSED and site.running_slots > 0}
    running = {name for name, site in grid.sites.items() if site.running_jobs > 0}
    return ChildSites(takes, running | grid.ready.keys() | {name for name, n in grid.not_ready.items() if n > 0})


def _report(session: Session) -> int:
    """Tell what is due, report by report; a parent that we do not know, or that is in a circle with us, at least who we are."""
    moved = 0
    for number in range(ROUNDS):
        due = to_tell(BATCH)
        if not due and (number or (session.row.incarnation and not session.circle)):
            break
        reported = reports_of(due)
        answer, at = session.ask(session.parent.report, Report, elements=[one.report for one in reported])
        new = take_verdicts(session.run, reported, answer.elements, at)
        moved += new + _follow(session)
        if not new and len(due) < BATCH:
            break
    return moved


def _fetch(session: Session) -> int:
    """Fetch the work of elements that were pulled, and store it. One of which no answer comes holds up no others: after a fault
    they are asked for one by one, in turn, and some may fail.
    """
    wanted, fetched, faults = (
        [] if session.circle else to_fetch(session.row.incarnation, MOST_WORKS),
        0,
        list[ParentUnavailable](),
    )
    if session.failed_before:
        last = last_asked(session.row)
        wanted.sort(key=lambda one: (one[0] <= last, one[0]))
    for _ in range(ROUNDS):
        asked = wanted[: 1 if session.failed_before else WORKS]
        if not asked or len(faults) == MOST_FAULTS:
            break
        wanted = wanted[len(asked) :]
        try:
            given = _fetched(session, asked)
        except ParentUnavailable as fault:
            if not session.failed_before:
                raise
            faults.append(fault)
            continue
        if given is None:
            break
        fetched += len(given)
        if given:  # it gives as much as one answer holds
            wanted = [one for one in asked if one[0] not in given] + wanted
    if faults and not fetched:
        raise faults[-1]
    session.run.left.extend(f"the parent {settings.PARENT}: {fault}" for fault in faults[-1:])
    return fetched


def _fetched(session: Session, asked: Sequence[tuple[int, int, int]]) -> set[int] | None:
    """Ask for the work of these: those of which it was given, or refused; None: the parent was restored meanwhile, and knows of
    other elements by these numbers.
    """
    incarnation = session.row.incarnation
    note_asked(session.row, asked[-1][0])
    tries = [ElementTry(id=element, try_nr=try_nr) for _, element, try_nr in asked]
    answer, _ = session.ask(session.parent.work, FetchWork, elements=tries)
    if session.row.incarnation != incarnation or incarnation is None:
        return None
    refused = {id_: answer.refused[str(element)] for id_, element, _ in asked if str(element) in answer.refused}
    note_refused(refused)
    given = {(work.id, work.try_nr) for work in answer.works}
    if given:
        store_work(incarnation, [(work.id, work.try_nr, encoded(work).decode()) for work in answer.works])
    return {id_ for id_, element, try_nr in asked if id_ in refused or (element, try_nr) in given}


def start(run: Run) -> int:
    """What was pulled becomes tasks, the most urgent first, where slots are empty of jobs that run or wait: how many."""
    waiting = to_start(MOST_STARTED)
    if not waiting:
        return 0
    grid, storages = pulling_sites(), known_storages()
    elements = [
        Element(str(one.id), one.priority, one.created, one.jobs, SiteWishes(included=tuple(one.sites or ()))) for one in waiting
    ]
    counts = waiting_jobs(grid.ready, grid.not_ready, waiting_elements(unstarted=False))
    acquired = acquire(elements, slots(grid.sites, step="start"), dice(run.id), counts=counts)
    sites = {str(one.id): one.sites for one in waiting}

    def begin(id_: str) -> bool:
        queues = [queue for site in sites[id_] or () if site in grid.sites for queue in grid.queues[site]]
        return start_element(int(id_), queues, storages, run.who) is not None

    ids = [element.id for element, _ in acquired.elements]
    ids += [id_ for id_, wished in sites.items() if grid.sites.keys().isdisjoint(wished or ())]  # nothing can make them tasks
    return sum(one_by_one(ids, begin, lambda id_, error: run.leave(f"pulled element {id_}", error)))


def _pull(session: Session) -> int:
    """Ask for more, unless the last answer is not wholly ours yet. The key is kept before, so that a lost answer comes again."""
    if anything_negotiated():
        return 0
    if fault := why_all_broke_rules(MOST_BROKEN, lease_s := gdpconfig.value("elements", "LEASE")):
        told = f"the last {MOST_BROKEN} elements could be no tasks here, so none is pulled for {lease_s:g} s; the last: {fault}"
        note_fault(session.row, told)
        session.run.left.append(told)
        return 0
    grid, draining = pulling_sites(), gdpconfig.value("elements", "CHILD_DRAINS")
    key = pull_key(session.row)
    answer, at = session.ask(session.parent.pull, Pull, key=key, draining=draining, **_offer(grid, draining=draining))
    if session.row.incarnation is None or session.circle:
        return 0
    new = store_pull(session.row, key, answer, session.row.incarnation, at)
    return new + _report(session) if tell_again(answer.steered, session.row.incarnation) else new


def _offer(grid: PullingSites, *, draining: bool) -> dict[str, Any]:
    """What our sites take."""
    jobs = waiting_jobs(grid.ready, grid.not_ready, waiting_elements(unstarted=True))
    sites = dict(islice(grid.sites.items(), MOST_SITES))
    most = min(MOST_PRIORITIES, MOST_COUNTS // max(len(sites), 1))
    return {
        "sites": {
            name: SiteTold(
                state=site.state,
                pending_slots=site.pending_slots,
                running_slots=site.running_slots,
                running_jobs=site.running_jobs,
            )
            for name, site in sites.items()
        },
        "jobs": {
            site: {f"{p:.0f}": min(int(n), LARGEST) for p, n in fewer_priorities(counts, most).items()}
            for site, counts in jobs.items()
            if site in sites
        },
        "free_jobs": grid.free_jobs,
        "most": 0 if draining else gdpconfig.value("elements", "WORK_PER_CYCLE"),
    }
