"""The tree of brokers as pages show it: this broker, its parent, its children; and one child with its sites and elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import QuerySet

from broker_site.foundation.access.permissions import VoScope
from monitoring.queries.database import alias
from workqueues.models import ChildBroker, Element, Installation, ParentBroker
from workqueues.queries.child_brokers import ChildRow, ChildSite, child_rows, children, quiet_after_s, sites_of
from workqueues.queries.element_rows import MOST_COUNTED, ElementRow, element_rows, elements_by_state, elements_in
from workqueues.states.elements import ELEMENT

SHOWN = 50
"""Elements that the page of a child shows: the newest that it has."""


@dataclass(frozen=True, slots=True)
class ChildDetails:
    """A child with its sites and the newest of the elements that it has, of the VOs that the visitor may look into."""

    row: ChildRow
    sites: Sequence[ChildSite]
    elements: Sequence[ElementRow]
    last_pull: Mapping[str, Any]
    child: ChildBroker


def tree_around() -> Mapping[str, Any]:
    """What the page of the tree shows above the children; three statements."""
    using = alias()
    return {
        "version": settings.BROKER_VERSION,
        "installation": Installation.objects.using(using).order_by("id").first(),
        "parent": ParentBroker.objects.using(using).order_by("id").first(),
        "states": [(state, min(n, MOST_COUNTED), n > MOST_COUNTED) for state, n in elements_by_state(using).items()],
        "quiet_s": quiet_after_s(),
    }


def visible_elements(scope: VoScope) -> QuerySet[Element]:
    """All elements of these VOs, to filter further."""
    return elements_in(scope, alias())


def tree_children() -> list[ChildRow]:
    """The children by name."""
    return child_rows(alias())


def child_details(name: str, scope: VoScope) -> ChildDetails | None:
    """All that the page of a child shows; four statements. None: there is no such child."""
    using = alias()
    if not (found := child_rows(using, name)):
        return None
    child = children(using).get(name=name)
    taken = elements_in(scope, using).filter(child_id=child.id, status__in=sorted(ELEMENT.taken)).order_by("-id")
    return ChildDetails(found[0], sites_of(child), element_rows(taken[:SHOWN]), child.last_pull, child)
