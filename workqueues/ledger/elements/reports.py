"""What a child broker reports of its elements: it has them, files of them ended, or it is done with them (decision J3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import connection, transaction
from django.db.models.functions import Now

from broker_site.foundation.agency.look import look_after_commit
from workqueues.ledger.elements.ends import NOWHERE, OutputPlaces, Refused, settle_ends
from workqueues.ledger.elements.files import leave_files, lock_datasets, use_files
from workqueues.ledger.elements.moves import move_elements
from workqueues.ledger.elements.renewals import Renewed, renew
from workqueues.ledger.elements.returning import NO_TERMS, ReturnTerms, give_back, return_unsettled
from workqueues.ledger.moves import move_dataset, move_task
from workqueues.models import Dataset, Element, File, Task
from workqueues.queries.speakers import Speaker
from workqueues.rules.elements.messages import ElementReport
from workqueues.states import INPUT_FILE, OUTPUT_DATASET, WRITTEN_TYPES
from workqueues.states.elements import ELEMENT

GONE = "this element is not this broker's, or not in this try"
"""What a child is told of an element that it does not have."""
MOST_REFUSALS = 20
"""So many ends of one element that cannot be taken are looked for; those behind them wait for the next report."""


@dataclass(slots=True)
class Verdict:
    """What becomes of a reported element, as the child is told."""

    id: int
    try_nr: int
    verdict: str = "refused"
    wish: str = "go"
    why: str = ""
    priority: int = 0
    lease_s: float = 0.0
    settled: int = 0


@dataclass(frozen=True, slots=True)
class ReportTerms:
    """How long an element stays with its child from now on, s, and who says so in histories; where its outputs may be; what
    becomes of an element that is given back.
    """

    lease_s: float
    who: str
    places: OutputPlaces = NOWHERE
    returns: ReturnTerms = NO_TERMS


def take_reports(child: Speaker, reports: Sequence[ElementReport], terms: ReportTerms) -> list[Verdict]:
    """Take what the child says of elements: of those that go on as they were together, of each other in a transaction of its own:
    one that cannot be taken holds up no other.
    """
    held = {(one.id, one.try_nr): one for one in renew(child, reports, terms.lease_s)}
    verdicts = []
    for report in reports:
        one = None if report.ends else held.get((report.id, report.try_nr))
        verdicts.append(_take(child, report, terms) if one is None else _renewed(one, terms))
    return verdicts


def _renewed(one: Renewed, terms: ReportTerms) -> Verdict:
    return Verdict(one.id, one.try_nr, "held", _wish(one.status, one.task_status), "", one.priority, terms.lease_s)


def _take(child: Speaker, report: ElementReport, terms: ReportTerms) -> Verdict:
    verdict = Verdict(report.id, report.try_nr)
    with transaction.atomic():
        element = Element.objects.select_for_update(no_key=True).filter(id=report.id).first()
        if element is None or not _is_of(element, child, report.try_nr, report.incarnation):
            verdict.why = GONE
            return verdict
        if element.status in ELEMENT.final or element.status in ELEMENT.waiting:
            verdict.verdict = "ended"
            return verdict
        if element.status == "Negotiating":
            _begin_task(element, child, terms.who)
        lock_datasets([element.id])
        if element.status == "Negotiating":
            _acquire(element, child, terms.who)
        if report.state == "Running" and element.status == "Acquired":
            _move(element, "Running", terms.who, f"{child.name} makes jobs of it")
        verdict.settled, verdict.why = _settle(element, report, terms)
        _note(element, report, terms.lease_s)
        if report.state in ELEMENT.final and not verdict.why:
            _end(element, report, child, terms)
        task = Task.objects.only("status", "current_priority").get(id=element.task_id)
        verdict.verdict = "held" if element.status in ELEMENT.taken else "ended"
        verdict.wish = _wish(element.status, task.status)
        verdict.priority, verdict.lease_s = task.current_priority, terms.lease_s
    return verdict


def _settle(element: Element, report: ElementReport, terms: ReportTerms) -> tuple[int, str]:
    """How many files of a locked element ended, and why ends could not be taken: one that cannot holds up no other."""
    settled, refusals, parts = 0, list[str](), [report.ends]
    while parts and len(refusals) < MOST_REFUSALS:
        ends = parts.pop()
        try:
            settled += settle_ends(element, ends, terms.places, terms.lease_s, terms.returns)
        except Refused as refused:
            if len(ends) == 1:
                refusals.append(str(refused))
            else:
                half = len(ends) // 2
                parts += [ends[half:], ends[:half]]
    return settled, refusals[0] if refusals else ""


def _is_of(element: Element, child: Speaker, try_nr: int, incarnation: UUID) -> bool:
    """Whether the child has it, or had it in this try until it was given back or ended."""
    had_by = element.returned_by_id if element.status in ELEMENT.waiting else element.child_id
    return (had_by, element.try_nr, element.incarnation) == (child.id, try_nr, incarnation)


def _wish(status: str, task_status: str) -> str:
    if status == "CancelRequested":
        return "cancel"
    return "pause" if task_status == "paused" else "go"


def _move(element: Element, new: str, who: str, why: str) -> None:
    if move_elements([element.id], new, who, why, [element.status]):
        element.refresh_from_db(fields=["status"])


def _begin_task(element: Element, child: Speaker, who: str) -> None:
    """Its task runs from its first element on. The lock of a task comes before those of its datasets, here as everywhere."""
    task = Task.objects.select_for_update(no_key=True).get(id=element.task_id)
    if task.status == "ready":
        claim = {"locked_by": task.locked_by, "locked_time": task.locked_time}
        columns = {"start_time": task.start_time or Now(), "frozen_time": None, "error_dialog": "", **claim}
        move_task(task, "running", who, f"{child.name} has its first element", **columns)


def _acquire(element: Element, child: Speaker, who: str) -> None:
    """The child says that it has it: its files run now, and jobs will write to the outputs."""
    use_files([element.id])
    _move(element, "Acquired", who, f"{child.name} has it")
    for dataset in (
        Dataset.objects.select_for_update(no_key=True)
        .filter(task_id=element.task_id, type__in=WRITTEN_TYPES, status__in=OUTPUT_DATASET.accepting("write"))
        .order_by("id")
    ):
        move_dataset(dataset, "running", who, "a child broker writes to it")


def _note(element: Element, report: ElementReport, lease_s: float) -> None:
    """What it said, and when: before its task is read for the answer, and after its task began to run by this very report."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE workqueues_element e SET sentence = %s, decision = %s, told_at = statement_timestamp(),"
            " lease_until = now() + make_interval(secs => %s), priority = t.current_priority"
            " FROM workqueues_task t WHERE e.id = %s AND t.id = e.task_id",
            [report.sentence, report.decision, lease_s, element.id],
        )


def _end(element: Element, report: ElementReport, child: Speaker, terms: ReportTerms) -> None:
    """The child is done with it. Files that it did not settle wait for another try, unless they are not wanted any more."""
    return_unsettled([element.id])
    element.refresh_from_db(fields=["n_files_finished", "n_files_failed", "status"])
    look_after_commit("offer", "finish", "command")
    came_back = File.objects.filter(element_id=element.id, status__in=INPUT_FILE.unused).count()
    if came_back and element.status != "CancelRequested":
        tried = element.status == "Running" or report.state != "Canceled"
        why = report.sentence if report.state != "Done" else "it is done, but without these files"
        give_back(element, child, why, terms.returns, terms.who, tried=tried)
        element.refresh_from_db(fields=["status"])
        return
    leave_files([element.id])
    counted = f"{element.n_files_finished} of {element.n_files} files finished, {element.n_files_failed} failed"
    why = f"{child.name}: {counted}" + (f", {came_back} came back" if came_back else "")
    whole = element.n_files_finished + element.n_files_failed == element.n_files
    if element.status == "CancelRequested" or (report.state == "Canceled" and not whole):
        end = "Canceled"
    else:
        end = "Done" if element.n_files_finished or not element.n_files_failed else "Failed"
    _move(element, end, terms.who, why)
