"""What a child broker did not settle comes back: it gives it back, its lease is over, or it was cancelled (decision J3)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from django.db import connection, transaction
from django.db.models import Q
from django.db.models.functions import Now

from broker_site.foundation.agency.look import look_after_commit
from broker_site.foundation.sql.prepared import run_together
from workqueues.ledger.elements.files import free_files, give_up_files, keep_files, leave_files, lock_datasets, pick_again
from workqueues.ledger.elements.moves import move_elements
from workqueues.ledger.files import JobOutcome, settling
from workqueues.models import ChildBroker, Element, ElementInput, File
from workqueues.queries.speakers import Speaker
from workqueues.rules.elements.giving_back import given_up, is_given_up, rest_s, returns_in_a_row
from workqueues.rules.jobs.retry_pause import NO_PAUSE, RetryPause
from workqueues.states import INPUT_FILE
from workqueues.states.elements import ELEMENT

_END_USES = """
UPDATE workqueues_elementinput i SET status = 'untried'
FROM workqueues_element e WHERE e.id = ANY(%s) AND i.element_id = e.id AND i.try_nr = e.try_nr AND i.status = 'live'
"""


def return_unsettled(elements: Sequence[int]) -> dict[int, int]:
    """The running files of these locked elements are ready again: how many of each. That a child vanished is no try of theirs.

    The caller holds the locks of their datasets.
    """
    files: dict[int, list[int]] = {}
    for file_id, element_id in File.objects.filter(element_id__in=elements, status="running", out_job_id=None).values_list(
        "id", "element_id"
    ):
        files.setdefault(element_id or 0, []).append(file_id)
    run_together(settling([JobOutcome(0, "untried", ids, element_id=element_id) for element_id, ids in files.items()]))
    with connection.cursor() as cursor:
        cursor.execute(_END_USES, [list(elements)])
    return {element_id: len(ids) for element_id, ids in files.items()}


def lapse(limit: int, who: str) -> int:
    """Elements whose leases are over are available again, with what was not settled of them; cancelled ones end: how many."""
    due = Element.objects.filter(lease_until__lt=Now()).order_by("lease_until").values_list("id", flat=True)[:limit]
    return sum(_lapse(id_, who) for id_ in due)


def take_all_back(child_id: int, why: str, who: str) -> int:
    """Take back all that a child broker has: how many elements."""
    ids = Element.objects.filter(child_id=child_id, status__in=ELEMENT.taken).order_by("id").values_list("id", flat=True)
    return sum(_take_back(id_, why, who) for id_ in ids)


def take_back_from_drained(who: str) -> int:
    """Take back what child brokers still have whose time to drain is over: how many elements."""
    drained = ChildBroker.objects.filter(drain_until__lt=Now()).order_by("id").values_list("id", flat=True)
    return sum(take_all_back(child_id, "its child was drained, and its time is over", who) for child_id in drained)


def _lapse(element_id: int, who: str) -> int:
    return _take_back(element_id, "nothing was heard of it until its lease ended", who, Q(lease_until__lt=Now()))


def _take_back(element_id: int, why: str, who: str, due: Q | None = None) -> int:
    with transaction.atomic():
        held = Element.objects.select_for_update(no_key=True, skip_locked=True).filter(due or Q(), id=element_id)
        element = held.filter(status__in=ELEMENT.taken).select_related(None).first()
        if element is None:
            return 0
        lock_datasets([element.id])
        return_unsettled([element.id])
        if element.status == "CancelRequested":
            leave_files([element.id])
            move_elements([element.id], "Canceled", who, why)
        else:
            _wait_again(element, why, who)
    look_after_commit("offer", "finish", "command")
    return 1


def _wait_again(element: Element, why: str, who: str) -> None:
    """Files that are left wait in it again, to be located anew; where none is left it ends as its files did."""
    waiting = _waiting(element)
    leave_files([element.id])
    if waiting:
        move_elements([element.id], "Available", who, f"{why}; {waiting} of its {element.n_files} files are left")
        Element.objects.filter(id=element.id).update(located_at=element.status_since)
    else:
        move_elements([element.id], "Done" if element.n_files_finished else "Failed", who, f"{why}; nothing of it is left")


class ReturnTerms(NamedTuple):
    """How long an element rests that a child gave back, and how often in a row it may be given back; 0: any number of times."""

    pause: RetryPause = NO_PAUSE
    most: int = 0


NO_TERMS = ReturnTerms()


def give_back(element: Element, child: Speaker, why: str, terms: ReturnTerms, who: str, *, tried: bool) -> None:
    """A child gives a locked element back whose files are not all ended: they wait in it again, and it rests, in no group until
    the agent `offer` has located it. The caller holds the locks of their datasets, and none of them runs any more.

    Given back too often in a row, without the end of a file between, its files fail. `tried`: whether this time counts.
    """
    progress = ElementInput.objects.filter(element_id=element.id, try_nr=element.try_nr, status__in=("used", "failed")).exists()
    n = returns_in_a_row(element.n_returned, tried=tried, progress=progress)
    why = f"{child.name} gave it back: {why}" if why else f"{child.name} gave it back"
    if is_given_up(n, terms.most):
        why = given_up(n, why)
        give_up_files(element.id, element.try_nr, f"element:{element.id}", why)
    rest = timedelta(seconds=rest_s(n, terms.pause))
    left = File.objects.filter(element_id=element.id, status__in=INPUT_FILE.unused)
    keep_files(list(left.values_list("id", flat=True)), rest.total_seconds())  # what is cut anew rests too
    _wait_again(element, why, who)
    columns = {"returned_by_id": child.id, "n_returned": n}
    Element.objects.filter(id=element.id).update(**columns)
    Element.objects.filter(id=element.id, status="Available").update(group=None, rests_until=Now() + rest)


def _waiting(element: Element) -> int:
    """How many files wait in it. Of records, whose numbers follow each other, none do once some have ended: they are cut anew."""
    left = File.objects.filter(element_id=element.id, status__in=INPUT_FILE.unused)
    if element.dataset.type == "pseudo_input" and left.count() < element.n_files:
        return 0
    pick_again([element.id])
    return File.objects.filter(element_id=element.id, status="picked").count()


def cancel(task_id: int, who: str, why: str, *, spared: bool = False) -> int:
    """Cancel what other brokers have or may pull of a task: how many elements its children still have.

    What waits ends at once, what a child has when the child says so, or its grace is over. `spared`: what a child has goes on.
    """
    with transaction.atomic():
        locked = Element.objects.select_for_update(no_key=True).filter(task_id=task_id, status__in=ELEMENT.live).order_by("id")
        rows = list(locked.values_list("id", "status"))
        if waiting := [id_ for id_, status in rows if status == "Available"]:
            free_files(waiting)
            move_elements(waiting, "Canceled", who, why)
        if untold := [id_ for id_, status in rows if status == "Negotiating"]:
            free_files(untold)
            move_elements(untold, "Canceled", who, f"{why}, before its child said that it has it")
        if not spared:
            move_elements([id_ for id_, status in rows if status in ELEMENT.at_work], "CancelRequested", who, why)
        return sum(status in ELEMENT.at_work for _, status in rows)


def end_overdue_cancellations(grace_s: float, limit: int, who: str) -> int:
    """Elements whose cancellation was asked for so long ago end, whatever their child says: how many."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM workqueues_element WHERE status = 'CancelRequested'"
            " AND status_since < now() - make_interval(secs => %s) ORDER BY status_since LIMIT %s",
            [grace_s, limit],
        )
        ids = [id_ for (id_,) in cursor.fetchall()]
    return sum(
        _take_back(id_, "its child did not confirm the cancellation in time", who, Q(status="CancelRequested")) for id_ in ids
    )
