"""Elements as pages and REST show them: one with its history, and why one that waits is not pulled. Each read is bounded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any

from django.db import connections
from django.db.models import F, QuerySet, Value
from django.db.models.functions import Coalesce

from broker_site.foundation.access.permissions import VoScope
from workqueues.models import Element, ElementChange, TaskParams
from workqueues.queries.child_brokers import stands
from workqueues.rules.elements import acquisition
from workqueues.rules.elements.element_sites import SiteWishes
from workqueues.rules.elements.why_waiting import WhyNot, why_waiting
from workqueues.states import TASK
from workqueues.states.elements import ELEMENT

MOST_COUNTED = 10_000
"""Elements of one state that are counted."""
MOST_MOVES = 200
ALL_IT_READS = "all that it reads"

_BY_STATE = """
SELECT s.status, (SELECT count(*) FROM (SELECT FROM workqueues_element e WHERE e.status = s.status LIMIT %(most)s) AS first)
FROM unnest(%(states)s::text[]) AS s(status)
"""


@dataclass(frozen=True, slots=True)
class ElementRow:
    """One element in a list. `child`: who has it, or had it last; `returned_by`: who gave it back last; `files_left`: without an
    end yet.
    """

    id: int
    task_id: int
    task_name: str
    vo: str
    team: str
    status: str
    status_since: datetime
    priority: int
    jobs: int
    n_files: int
    n_files_finished: int
    n_files_failed: int
    child: str
    site: str
    try_nr: int
    lease_until: datetime | None
    sentence: str
    told_at: datetime | None
    returned_by: str
    n_returned: int
    rests_until: datetime | None

    @property
    def files_left(self) -> int:
        return self.n_files - self.n_files_finished - self.n_files_failed

    @property
    def percent(self) -> int:
        """Of its files have ended."""
        return 100 * (self.n_files - self.files_left) // self.n_files if self.n_files else 0


@dataclass(frozen=True, slots=True)
class ChildAnswer:
    """Why one child does not get an element; no reason: it gets it once its turn in a pull has come."""

    child: str
    reasons: Sequence[WhyNot]


_SAME = (
    "id", "task_id", "status", "status_since", "priority", "jobs", "n_files", "n_files_finished", "n_files_failed", "site",
    "try_nr", "lease_until", "sentence", "told_at", "n_returned", "rests_until",
)  # fmt: skip


def elements_in(scope: VoScope, using: str = "default") -> QuerySet[Element]:
    """All elements of these VOs, to filter further."""
    return Element.objects.using(using).filter(scope.q("task__vo"))


def told_of(elements: QuerySet[Element]) -> QuerySet[Element]:
    """Elements with what of their tasks, groups and children is shown with them: of a group that is gone nothing."""
    child, team = Coalesce("child__name", Value("")), Coalesce("group__team", Value(""))
    giver = Coalesce("returned_by__name", Value(""))
    return elements.annotate(task_name=F("task__task_name"), vo=F("task__vo"), team=team, child_name=child, giver=giver)


def element_rows(elements: QuerySet[Element]) -> list[ElementRow]:
    """The rows of a bounded query, in its order; one statement."""
    return [element_row(element) for element in told_of(elements).defer("decision")]


def element_row(element: Element) -> ElementRow:
    """The row of an element of `told_of`."""
    beside = vars(element)
    return ElementRow(
        **{name: getattr(element, name) for name in _SAME},
        **{name: beside[name] for name in ("task_name", "vo", "team")},
        child=beside["child_name"],
        returned_by=beside["giver"],
    )


def find_element(element_id: int, scope: VoScope, using: str = "default") -> Element | None:
    """The element of `told_of` with its task, dataset and group, if it is in the scope."""
    elements = told_of(elements_in(scope, using)).select_related("task", "dataset", "group")
    return elements.filter(id=element_id).first()


def moves_of_element(element_id: int, using: str = "default") -> list[ElementChange]:
    """Its newest moves, the last first."""
    return list(ElementChange.objects.using(using).filter(element_id=element_id).order_by("-id")[:MOST_MOVES])


def elements_by_state(using: str = "default") -> dict[str, int]:
    """State -> elements in it, counted to MOST_COUNTED + 1; one statement, by an index."""
    with connections[using].cursor() as cursor:
        cursor.execute(_BY_STATE, {"most": MOST_COUNTED + 1, "states": list(ELEMENT.course)})
        return {status: n for status, n in cursor.fetchall() if n}


def why_no_child(element: Element) -> list[str]:
    """What keeps an element that waits from every child, in sentences: its task, or that no site has what it reads."""
    task, why = element.task, []
    if task.status not in TASK.generating:
        why.append(f"Its task is {task.status}: its elements are given to nobody meanwhile.")
    if element.why_waiting:
        why.append(element.why_waiting)
    return why


def why_each_child(element: Element, using: str = "default") -> list[ChildAnswer]:
    """Why each child does not get an element that waits, those first that may get it; three statements."""
    known = stands(using)
    lists = TaskParams.objects.using(using).filter(task_id=element.task_id).values_list("task_params", flat=True).first() or {}
    sites = {site for _, stand in known for site in stand.sites}
    waiting = acquisition.Element(
        id=str(element.id),
        priority=element.priority,
        created=0.0,
        jobs=element.jobs,
        wishes=_wishes(element, sites, lists),
        team=vars(element)["team"],
        task=str(element.task_id),
    )
    answers = [ChildAnswer(child.name, why_waiting(waiting, element.task.vo, stand)) for child, stand in known]
    return sorted(answers, key=lambda answer: (bool(answer.reasons), answer.child))


def _wishes(element: Element, sites: Iterable[str], lists: Mapping[str, Any]) -> SiteWishes:
    """Where it may run: at the sites of its group. A site that the task's lists let pass lacks data else."""
    possible = set(sites_of_group(element))
    listed = possible | {site for site in sites if _is_listed(site, lists)}
    return SiteWishes(included=listed, inputs={ALL_IT_READS: possible})


def sites_of_group(element: Element) -> Sequence[str]:
    """The sites that may have it; of a group that is gone none is known."""
    return element.group.sites if element.group is not None else ()


def _is_listed(site: str, lists: Mapping[str, Any]) -> bool:
    """Whether includedSite and excludedSite of the task let its work go to the site."""
    included, excluded = (_names(lists.get(name)) for name in ("includedSite", "excludedSite"))
    named = not included or any(fnmatchcase(site, name) for name in included)
    return named and not any(fnmatchcase(site, name) for name in excluded)


def _names(value: object) -> list[str]:
    """A list of names as a task has it: a list, or a text with commas between."""
    if isinstance(value, str):
        return [name.strip() for name in value.split(",") if name.strip()]
    return [str(name) for name in value] if isinstance(value, list) else []
