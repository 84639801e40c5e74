"""`manage.py explain [TASK_ID] [--queue NAME] [--what-if NAME=VALUE] [--ask QUEUE]`: why a task waits, why a queue is empty,
what if, what the last asks of pilots got.
"""

from __future__ import annotations

import json
import shlex
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from broker_site.client.command.terminal import safe
from broker_site.roof.management.text_report import against, empty, head, last_asks, story, what_if_report
from brokerage.models import ComputingQueue, Decision
from brokerage.queries.automatic_steps import steps_of
from brokerage.queries.decisions import NotACandidate, NotReproducible, decision_facts, explanation_of, latest, why_not_of
from brokerage.queries.last_asks import asks_at
from brokerage.queries.pilots import no_such_queue
from brokerage.queries.task_status import task_status
from brokerage.queries.what_if import NothingToDecide, what_if
from brokerage.queries.why_empty import why_empty_of
from brokerage.rules.explain.edits import BadEdits, read_edits
from brokerage.rules.explain.task_status_text import headline, reasons
from brokerage.rules.explain.why_not import WhyNot
from workqueues.models import Task
from workqueues.queries.needs_changes import needs_changes

Verdicts = Mapping[int, Sequence[WhyNot]]
"""Decision -> what it said of the candidate asked for; of a unified queue, of each of its parts."""


MOST_STEPS = 10
"""Steps that the system took, in the text."""


class Command(BaseCommand):
    help = (
        "Tell why a task is where it is, why a queue gets no work, or what would be decided now or if something were different."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("task_id", type=int, nargs="?", metavar="TASK_ID")
        parser.add_argument(
            "--queue",
            metavar="NAME",
            help="with a task: every verdict on this queue (or site, for the choice of the nucleus); alone: why it gets no work",
        )
        parser.add_argument("--ask", metavar="QUEUE", help="alone: what the last asks of pilots at this queue got, and why")
        dry_run = "what would be decided now, without writing anything; --try-again is its former name"
        parser.add_argument("--dry-run", "--try-again", action="store_true", help=dry_run)
        parser.add_argument(
            "--what-if",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="the same with a change, as ramCount=4000, queue.ALPHA.maxrss=8000, config.NQUEUELIMITSITE=5; repeatable",
        )
        parser.add_argument(
            "--export",
            type=Path,
            metavar="DIR",
            help="write task.json, grid.json and config.json of its newest decision, for `decide`",
        )
        parser.add_argument("--json", action="store_true", help="one JSON document instead of text")

    def handle(self, *args: Any, **options: Any) -> None:
        """Tell; CommandError where there is no such task or queue, or no decision that knew the queue."""
        if options["ask"]:
            document, lines = self._asks(options)
        elif options["task_id"] is None:
            document, lines = self._queue(options)
        elif options["export"] is not None:
            self._export(_task(options["task_id"]), options["export"])
            return
        elif options["dry_run"] or options["what_if"]:
            document, lines = self._what_if(_task(options["task_id"]), options)
        else:
            document, lines = self._task(_task(options["task_id"]), options["queue"])
        if options["json"]:
            self.stdout.write(json.dumps(document, indent=1, default=str))
        else:
            for line in lines:
                self.stdout.write(safe(line))  # comments and messages are of users and pilots

    def _task(self, task: Task, queue: str | None) -> tuple[Any, Iterator[str]]:
        decisions = latest(task.id)
        verdicts = self._verdicts(decisions, queue) if queue else {}
        return document(task, decisions, verdicts), text(task, decisions, verdicts)

    def _queue(self, options: dict[str, Any]) -> tuple[Any, Iterator[str]]:
        if not options["queue"]:
            raise CommandError("give a TASK_ID, --queue NAME to see why that queue gets no work, or --ask QUEUE")
        if options["dry_run"] or options["what_if"]:
            raise CommandError("--dry-run and --what-if need a TASK_ID")
        answer = why_empty_of(_queue_named(options["queue"]))
        return answer.to_document(), empty(answer)

    def _asks(self, options: dict[str, Any]) -> tuple[Any, Iterator[str]]:
        if options["task_id"] is not None or any(options[name] for name in ("queue", "dry_run", "what_if", "export")):
            raise CommandError("--ask tells of a queue: it takes no TASK_ID and no other option but --json")
        answer = asks_at(_queue_named(options["ask"]))
        return answer.to_document(), last_asks(answer)

    def _what_if(self, task: Task, options: dict[str, Any]) -> tuple[Any, Iterator[str]]:
        if options["queue"]:
            raise CommandError("--queue tells stored decisions; leave it out for --dry-run and --what-if")
        try:
            result = what_if(task, read_edits(options["what_if"]))
        except BadEdits as bad:
            raise CommandError("\n".join(f"{p.field}: {p.rule}: {p.message}" for p in bad.problems)) from bad
        except NothingToDecide as nothing:
            raise CommandError(f"nothing would be decided about task {task.id} now: {nothing}") from nothing
        return result.to_document(), what_if_report(result)

    def _export(self, task: Task, folder: Path) -> None:
        """Write what the newest decision was taken on, and say how to take it again."""
        for decision in latest(task.id):
            if (documents := decision_facts(decision).documents()) is None:
                continue
            try:
                folder.mkdir(parents=True, exist_ok=True)
                for name, document in documents.items():
                    (folder / f"{name}.json").write_text(json.dumps(document, indent=1), encoding="utf-8")
            except OSError as error:
                raise CommandError(f"{error.filename}: {error.strerror}") from error
            files = " ".join(f"--{name} {shlex.quote(str(folder / f'{name}.json'))}" for name in documents)
            self.stdout.write(f"decision {decision.id}; it is taken again by")
            self.stdout.write(f"manage.py decide {files} --policy {decision.policy} --seed {decision.seed}")
            return
        raise CommandError(f"no decision about task {task.id} can be exported: none is stored, or its snapshot is no longer kept")

    def _verdicts(self, decisions: Sequence[Decision], name: str) -> Verdicts:
        """Decision to its verdicts on the candidate or its parts, for those that knew it."""
        verdicts: dict[int, Sequence[WhyNot]] = {}
        faults = [] if decisions else ["no decision has been taken for the task yet"]
        for decision in decisions:
            try:
                verdicts[decision.id] = why_not_of(decision, name)
            except (NotACandidate, NotReproducible) as no:
                faults.append(f"decision {decision.id} ({decision.policy}): {no}")
        if not verdicts:
            raise CommandError("\n".join(faults))
        return verdicts


def _queue_named(name: str) -> ComputingQueue:
    queue = ComputingQueue.objects.filter(name=name).first()
    if queue is None:
        raise CommandError(no_such_queue(name))
    return queue


def _task(task_id: int) -> Task:
    task = Task.objects.filter(id=task_id).first()
    if task is None:
        raise CommandError(f"there is no task {task_id}")
    return task


def text(task: Task, decisions: Sequence[Decision], verdicts: Verdicts) -> Iterator[str]:
    yield f"Task {task.id} {task.task_name} of {task.user_name} ({task.vo})"
    status = task_status(task)
    yield f"  since {task.status_since:%Y-%m-%d %H:%M:%S} UTC: {headline(status)}"
    yield from (f"  {reason.kind}: {reason.message}" for reason in reasons(status))
    yield from (f"  errors: {sentence}" for sentence in status.errors.sentences())
    for element in status.elements.at_children:
        if element.decision:
            yield f"  last decision of {element.child} about element {element.id}:"
            yield from (f"    {line}" for line in element.decision.splitlines())
    if status.next_look:
        yield f"  {status.next_look}"
    told = [(step.at, step.sentence) for step in steps_of(task.id)[:MOST_STEPS]]
    told += [(change.at, change.sentence) for change in needs_changes(task.id)]
    yield from (f"  {at:%Y-%m-%d %H:%M:%S} UTC {sentence}" for at, sentence in sorted(told, reverse=True))
    if not decisions:
        yield "  no queue has been considered yet: no decision is stored for the task"
    for decision in decisions:
        if verdicts and decision.id not in verdicts:
            continue
        yield ""
        yield head(decision)
        if verdicts:
            for each in verdicts[decision.id]:
                yield from against(each)
        else:
            yield from story(explanation_of(decision))


def document(task: Task, decisions: Sequence[Decision], verdicts: Verdicts) -> dict[str, Any]:
    return {
        "task_id": task.id,
        "task_name": task.task_name,
        "status": task.status,
        "status_since": task.status_since.isoformat(),
        "waiting": task_status(task).to_document(),
        "steps": [{**asdict(step), "at": step.at.isoformat()} for step in steps_of(task.id)],
        "needs_changes": [{**change.to_document(), "at": change.at.isoformat()} for change in needs_changes(task.id)],
        "decisions": [_decision(d, verdicts.get(d.id)) for d in decisions if not verdicts or d.id in verdicts],
    }


def _decision(decision: Decision, why_not: Sequence[WhyNot] | None) -> dict[str, Any]:
    story_of = explanation_of(decision)
    return {
        "id": decision.id,
        "policy": decision.policy,
        "outcome": decision.outcome,
        "n_times": decision.n_times,
        "first_at": decision.first_at.isoformat(),
        "last_at": decision.last_at.isoformat(),
        "config_revision": decision.config_revision,
        **(
            {"why_not": [each.to_document() for each in why_not]}
            if why_not
            else {"explanation": story_of.to_document() if story_of else None}
        ),
    }
