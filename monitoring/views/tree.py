"""The tree of brokers, the page of one child, and that of one element, with their JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.http import Http404, HttpRequest, HttpResponseBase, JsonResponse

from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.access.permissions import may
from broker_site.foundation.access.sessions import password_is_fresh
from monitoring.queries.changes import element_moves
from monitoring.queries.database import alias
from monitoring.queries.tree import child_details, tree_around, tree_children
from monitoring.views.listing import ShortList, answer
from monitoring.views.page import page, scope_of, show
from monitoring.wording import WORDS
from workqueues.queries.child_brokers import EDIT, EVERYTHING, ChildRow, may_edit
from workqueues.queries.element_rows import ChildAnswer, element_row, find_element, sites_of_group, why_each_child, why_no_child
from workqueues.rules.elements.child_names import USUAL_GRACE_S
from workqueues.rules.elements.why_waiting import PULL_REASONS
from workqueues.states.elements import ELEMENT

READ = "task:read"
REASONS_SHOWN = 5
"""Reasons of one child that the page of an element shows; sites differ, their reasons seldom."""
GRACE_H = int(USUAL_GRACE_S // 3600)

TREE = ShortList("tree", ChildRow, "tree.html", lambda _: tree_children(), "grid:read", around=lambda _: tree_around())
"""The children by name, below this broker and its parent."""


@page(TREE.permission)
def tree(request: HttpRequest, **named: str) -> HttpResponseBase:
    """The list of children; who may let one in finds the form."""
    caller = authenticate(request)
    more = {
        "may_add": may(caller, EDIT),
        "may_all": may(caller, EVERYTHING),
        "vos": sorted(vo for vo in caller.roles if may(caller, EDIT, vo)),
        "grace_h": GRACE_H,
        "asks_password": caller.user is not None and not password_is_fresh(request.session),
    }
    return answer(request, TREE, named.get("format", "html"), more)


@page(TREE.permission, ())
def child(request: HttpRequest, name: str, data: bool = False) -> HttpResponseBase:
    """What it told last, its sites, and the elements that it has."""
    details = child_details(name, scope_of(request, READ))
    if details is None:
        raise Http404(f"There is no child broker {name[:60]}.")
    row = details.row
    if data:
        sites = [asdict(site) for site in details.sites]
        return JsonResponse({**asdict(row), "sites": sites, "having": [asdict(one) for one in details.elements]})
    context = {
        "child": row,
        "details": details,
        "word": WORDS["child"][row.state],
        "may_edit": may_edit(authenticate(request), row.vo),
        "asks_password": authenticate(request).user is not None and not password_is_fresh(request.session),
        "grace_h": GRACE_H,
        "why": [(PULL_REASONS.get(reason, reason), n) for reason, n in row.why.items()],
    }
    return show(request, "child.html", "tree", context)


@page(READ, ())
def element(request: HttpRequest, element_id: int, data: bool = False) -> HttpResponseBase:
    """Where it is, why it waits, what its child said, and its history."""
    found = find_element(element_id, scope_of(request, READ), alias())
    if found is None:
        raise Http404(f"There is no element {element_id}, or it belongs to a VO that you cannot look into.")
    waits, row, moves = found.status in ELEMENT.waiting, element_row(found), element_moves(element_id)
    for_all = why_no_child(found) if waits else []
    answers = why_each_child(found, alias()) if waits else []
    if data:
        return JsonResponse(
            {
                **asdict(row),
                **{
                    name: getattr(found, name)
                    for name in ("decision", "n_events", "places", "located_at", "serial_first", "serial_last")
                },
                "dataset": found.dataset.dataset_name,
                "sites": list(sites_of_group(found)),
                "why_no_child": for_all,
                "why_waiting": [_plain(each) for each in answers],
                "history": [asdict(move) for move in moves],
            }
        )
    context: dict[str, Any] = {
        "element": found,
        "row": row,
        "word": WORDS["element"][found.status],
        "final": found.status in ELEMENT.final,
        "waits": waits,
        "why_no_child": for_all,
        "answers": [(each.child, each.reasons[:REASONS_SHOWN], len(each.reasons) - REASONS_SHOWN) for each in answers],
        "free": [each.child for each in answers if not each.reasons],
        "moves": moves,
    }
    return show(request, "element.html", "elements", context)


def _plain(answer_of: ChildAnswer) -> dict[str, Any]:
    return {"child": answer_of.child, "reasons": [reason._asdict() for reason in answer_of.reasons]}
