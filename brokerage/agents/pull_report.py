"""The part of the agent pull that tells: how elements stand and which files ended; and that does what the parent says to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.agency.run import Run
from broker_site.foundation.kernel.machine import NotAllowed
from broker_site.foundation.outside_data import LARGEST
from brokerage.agents.pull_words import Words, words_of
from brokerage.feeds.parent import LARGEST_MESSAGE, encoded
from brokerage.ledger.task_changes import follow_priority
from brokerage.queries.element_ends import made_of
from workqueues.ledger.commands import command
from workqueues.ledger.pulled_elements import ToldElement, note_given_back, note_paused, note_refused, note_told, want_cancelled
from workqueues.models import File, Task
from workqueues.queries.pulled_elements import TellableElement, files_left
from workqueues.rules.elements.ends import MOST_INPUTS, ToldEnds, come_back, told_ends, unused
from workqueues.rules.elements.messages import LONGEST_LEASE_S, MOST_ENDS, MOST_OUTPUTS, ElementReport, ElementVerdict, Ends
from workqueues.states import INPUT_FILE, MASTER_TYPES
from workqueues.states.elements import ELEMENT

MOST_FILES = 5000
"""Files whose ends are looked up for one report."""
MOST_BYTES_TOGETHER = LARGEST_MESSAGE - 100_000
"""Of files that ended together, with all that was made of them."""
TOO_MANY = "more files hang together here than one message can tell"


@dataclass(slots=True)
class ReportedElement:
    """An element with what is told of it, and the states of the files for which it speaks."""

    element: TellableElement
    report: ElementReport
    files: dict[int, str] = field(default_factory=dict)


def reports_of(elements: Sequence[TellableElement]) -> list[ReportedElement]:
    """What is told of these elements now, as much as one message holds; those that it does not hold are told with the next."""
    tasks = {e.task_id for e in elements if e.task_id is not None}
    ended = {e.task_id for e in elements if e.task_id is not None and e.task_ended}
    words = words_of(elements, tasks)
    made = made_of({e.task_id for e in elements if e.due and e.task_id is not None}, ended, MOST_FILES)
    left = files_left([e.id for e in elements if e.status in ELEMENT.final])
    reported, size, n_ends = list[ReportedElement](), 0, 0
    for element in elements:
        told = told_ends(made[element.task_id], task_ended=element.task_ended) if element.task_id in made else []
        said = words.get(element.id, Words())
        report = _report(element, said, unused(left.get(element.id, ()), said.sentence or "its task ended without it"))
        one = ReportedElement(element, report)
        size += len(encoded(report))
        if reported and (size > LARGEST_MESSAGE or n_ends + len(report.ends) > MOST_ENDS):
            break
        size, n_ends = _with_ends(one, told, size, n_ends + len(report.ends))
        reported.append(one)
    return reported


def _report(element: TellableElement, words: Words, ends: list[Ends]) -> ElementReport:
    return ElementReport(
        id=element.element_id,
        try_nr=element.try_nr,
        incarnation=element.incarnation,
        state=element.status,
        percent=100 if element.status in ELEMENT.final else element.percent,
        sentence=words.sentence,
        decision=words.decision,
        ends=ends,
    )


def _with_ends(one: ReportedElement, told: Iterable[ToldEnds], size: int, n_ends: int) -> tuple[int, int]:
    """Add as many ends as there is room for: bytes and ends of the message with them."""
    ends = list(one.report.ends)
    for group in chain.from_iterable(map(_tellable, told)):
        more = len(encoded(group.ends))
        if n_ends + 1 > MOST_ENDS or size + more > LARGEST_MESSAGE:
            break
        ends.append(group.ends)
        one.files |= group.states
        size, n_ends = size + more, n_ends + 1
    one.report = replace(one.report, ends=ends)
    return size, n_ends


def _tellable(group: ToldEnds) -> list[ToldEnds]:
    """What ended together, where one message can hold it; else its files, which come back unused."""
    n_files, n_outputs = len(group.ends.inputs), len(group.ends.outputs)
    if n_files <= MOST_INPUTS and n_outputs <= MOST_OUTPUTS and len(encoded(group.ends)) <= MOST_BYTES_TOGETHER:
        return [group]
    return come_back(group, TOO_MANY)


def take_verdicts(run: Run, reported: Sequence[ReportedElement], verdicts: Sequence[ElementVerdict], at: datetime) -> int:
    """Do what the parent said to a report that was sent `at` this time: how many elements have moved on by it.

    One that it holds, but whose ends it could not take, is told again; why stands in the record of the agent. If it has not taken
    them long after its task ended, these files go back to it as if they were not used.
    """
    who = run.who
    said = {(verdict.id, verdict.try_nr): verdict for verdict in verdicts}
    known = [(one, said[key]) for one in reported if (key := (one.element.element_id, one.element.try_nr)) in said]
    refused = {one.element.id: verdict.why for one, verdict in known if verdict.verdict == "refused"}
    taken = [(one, verdict) for one, verdict in known if verdict.verdict != "refused"]
    note_refused(refused)
    want_cancelled([one.element.id for one, verdict in taken if verdict.wish == "cancel" and verdict.verdict == "held"])
    for paused in (True, False):
        same = [one.element.id for one, verdict in taken if (verdict.wish == "pause") is paused]
        note_paused(same, paused=paused)
    for one, verdict in taken:
        if verdict.why and one.report.ends and verdict.verdict == "held":
            run.left.append(f"ends of element {one.element.element_id}: the parent could not take them: {verdict.why}")
            if one.element.ended_s is not None and one.element.ended_s > gdpconfig.value("elements", "STANDSTILL"):
                note_given_back(one.element.id, f"the parent does not take what became of its files: {verdict.why}")
            else:
                one.files.clear()
    note_told([_told(one, verdict) for one, verdict in taken], {id_: s for one, _ in taken for id_, s in one.files.items()}, at)
    for one, verdict in taken:
        _steer(one.element, verdict, who)
    _stop_useless([one.element for one, verdict in taken if verdict.verdict == "ended"], who)
    new = sum(one.element.status != one.element.told or bool(one.files) for one, _ in taken)
    return new + len(refused)


def _told(one: ReportedElement, verdict: ElementVerdict) -> ToldElement:
    lease_s = min(max(verdict.lease_s, 0.0), LONGEST_LEASE_S)
    priority = max(-LARGEST, min(verdict.priority, LARGEST))
    return ToldElement(one.element.id, one.element.status, priority, lease_s, verdict.verdict == "ended")


def _steer(element: TellableElement, verdict: ElementVerdict, who: str) -> None:
    """The task follows the parent's: its priority, and whether it goes on. Who paused it here decides when it goes on."""
    if element.task_id is None or element.task_ended or verdict.verdict != "held":
        return
    if verdict.priority != element.priority:
        follow_priority(element.task_id, verdict.priority)
    if verdict.wish == "pause" and element.task_status != "paused":
        give(element.task_id, "pause", who, "the task is paused at the parent")
    elif verdict.wish == "go" and element.task_status == "paused" and element.command_by == who:
        give(element.task_id, "resume", who, "the task goes on at the parent")


def _stop_useless(elements: Sequence[TellableElement], who: str) -> None:
    """Tasks with work left of which nothing is open at the parent any more."""
    live = [element.task_id for element in elements if element.task_id is not None and not element.task_ended]
    at_work = File.objects.filter(task_id__in=live, report_due=True, type__in=MASTER_TYPES).exclude(status__in=INPUT_FILE.final)
    for task_id in sorted(set(at_work.values_list("task_id", flat=True))):
        give(task_id, "kill", who, "nothing of its element is open at the parent any more")


def give(task_id: int, name: str, who: str, why: str) -> None:
    """Give a task a command of the parent; a state that does not take it now does so at a later look, or needs it no more."""
    with suppress(NotAllowed, Refused, Task.DoesNotExist):
        command(task_id, name, who, why[:255])
