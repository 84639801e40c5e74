"""What child brokers call: pull, fetch work, report. Plain views: hundreds of children pass here (rows W2, X5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, TypeVar

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_POST

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.guards import requires
from broker_site.foundation.access.jsonbody import read_object
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.kernel import clock
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import read
from brokerage.api import tree_operations
from brokerage.api.joint_verbs import Joint, Wish, jointly
from brokerage.api.messages import BROKEN_RULES, in_words, json_answer
from brokerage.queries.element_work import element_work
from brokerage.queries.output_places import output_places
from brokerage.queries.unknown_sites import SITE_NAMES
from workqueues.ledger.child_brokers import child_of
from workqueues.ledger.elements.contacts import Circle, TooSoon, meet, note_error
from workqueues.ledger.elements.lots import lot_of
from workqueues.ledger.elements.pulling import ChildPull, Pulled, PullTerms, pull_each
from workqueues.ledger.elements.reports import GONE, ReportTerms, take_reports
from workqueues.ledger.elements.returning import ReturnTerms
from workqueues.ledger.installation import Identity
from workqueues.models import Element
from workqueues.queries.speakers import Speaker
from workqueues.rules.elements.messages import PROTOCOL, FetchWork, Hello, Pull, Report
from workqueues.rules.jobs.retry_pause import RetryPause
from workqueues.states.elements import ELEMENT

T = TypeVar("T", bound=Hello)
NO_NUMBERS = "no serial numbers are left for it here: those that the parent of this broker gave are used up"
MOST_FILES = 20_000
"""Files in one answer with work: further elements are left for the next call."""
TRIES_A_FILE = 20
"""So many serial numbers are cut for each file of an element: when its jobs have used them up, it is given back."""


@tree_operations.PULL
@require_POST
@requires("tree:pull")
def pull_elements(request: HttpRequest) -> HttpResponse:
    """Elements for a child broker, as its sites have slots."""
    principal: Principal = request.principal  # type: ignore[attr-defined]
    said = _said(request, Pull)
    if unknown := SITE_NAMES.unknown(said.sites):
        told = f"the grid of this broker has no site {unknown[0]}"
        note_error(child_of(principal), told, clock.now())
        raise Refused(422, BROKEN_RULES, told, [Problem(f"sites.{name}", "exists", told) for name in unknown[:20]])
    return jointly(request, Wish(PULLS, ChildPull(principal.credential or 0, said), _tell_pulled))


def _pull_each(pulls: Sequence[ChildPull]) -> Sequence[Pulled | Exception]:
    config = gdpconfig.component("elements")
    return pull_each(pulls, PullTerms(config["LEASE"], config["MOST_HELD"], config["RETURN_PAUSE"]), clock.now())


PULLS = Joint(_pull_each, key=lambda pull: pull.credential, weight=lambda pull: max(1, pull.said.most))


def _tell_pulled(pulled: Pulled | Exception) -> HttpResponse:
    """Refused where it may not; raises what was in the way."""
    if isinstance(pulled, Pulled):
        return json_answer({**_reply(pulled.child, pulled.me), **pulled.answer})
    raise _refusal(pulled) if isinstance(pulled, (Circle, TooSoon)) else pulled


@tree_operations.WORK
@require_POST
@requires("tree:pull")
def fetch_work(request: HttpRequest) -> HttpResponse:
    """The work of elements that a child broker has pulled; those that it does not have are refused one by one."""
    child, me, ask = _heard(request, FetchWork)
    wanted = {one.id: one.try_nr for one in ask.elements}
    rows = Element.objects.filter(id__in=wanted, child_id=child.id, status__in=ELEMENT.taken)
    held = {row.id: row for row in rows.select_related("task__params", "dataset") if row.try_nr == wanted[row.id]}
    refused = {str(id_): GONE for id_ in wanted if id_ not in held}
    works, files = list[dict[str, Any]](), 0
    for id_ in wanted:
        if id_ in held and files < MOST_FILES:
            least = held[id_].n_files * max(1, held[id_].jobs // max(1, held[id_].n_files))
            lot = lot_of(id_, least * TRIES_A_FILE, least)
            if lot.last < lot.first:
                refused[str(id_)] = NO_NUMBERS
                continue
            work = element_work(held[id_], lot.first, lot.last - lot.first + 1)
            files += sum(len(dataset.files) for dataset in work.inputs)
            works.append(asdict(work))
    return json_answer({**_reply(child, me), "works": works, "refused": refused})


@tree_operations.REPORT
@require_POST
@requires("tree:report")
def report_elements(request: HttpRequest) -> HttpResponse:
    """What a child broker says of its elements, and what is wished of each."""
    child, me, ask = _heard(request, Report)
    config = gdpconfig.component("elements")
    returns = ReturnTerms(RetryPause(config["RETURN_PAUSE"], config["RETURN_PAUSE_MAX"]), config["MOST_RETURNS"])
    terms = ReportTerms(config["LEASE"], f"child:{child.name}", output_places(child.id, _storages(ask)), returns)
    verdicts = take_reports(child, ask.elements, terms)
    return json_answer({**_reply(child, me), "elements": [asdict(verdict) for verdict in verdicts]})


def _said(request: HttpRequest, kind: type[T]) -> T:
    """What a child says. Refused, and noted with the child, where it speaks another version or breaks a rule."""
    try:
        body = read_object(request)
        if (version := body.get("protocol")) != PROTOCOL:
            told = f"this broker speaks version {PROTOCOL} of the messages between brokers, not {str(version)[:20]}"
            raise Refused(422, "Another version", told, [Problem("protocol", "choice", told)])
        return in_words(partial(read, kind), body)
    except Refused as refused:
        note_error(child_of(request.principal), refused.detail, clock.now())  # type: ignore[attr-defined]
        raise


def _heard(request: HttpRequest, kind: type[T]) -> tuple[Speaker, Identity, T]:
    """Who speaks, who is spoken to, and what is said; noted with the child. Refused for who may not be its child."""
    said = _said(request, kind)
    child = child_of(request.principal)  # type: ignore[attr-defined]
    try:
        return child, meet(child, said, clock.now(), gdpconfig.value("elements", "RETURN_PAUSE")), said
    except (Circle, TooSoon) as fault:
        raise _refusal(fault) from None


def _refusal(fault: Circle | TooSoon) -> Refused:
    """For one of two brokers that have one token, or one that is above this broker."""
    if isinstance(fault, Circle):
        return Refused(409, "A circle of brokers", str(fault), [Problem("instance", "circle", str(fault))])
    return Refused(409, "Another broker speaks", str(fault), [Problem("incarnation", "another", str(fault))])


def _reply(child: Speaker, me: Identity) -> dict[str, Any]:
    return {
        "protocol": PROTOCOL,
        "version": settings.BROKER_VERSION,
        "instance": str(me.instance),
        "incarnation": str(me.incarnation),
        "now": clock.now().isoformat(),
        "lineage": [str(name) for name in (me.instance, *child.above)],
    }


def _storages(ask: Report) -> frozenset[str]:
    """The storage endpoints that a report names."""
    return frozenset(output.storage for element in ask.elements for end in element.ends for output in end.outputs)
