"""`manage.py explain TASK_ID [--queue NAME] [--json]`: the last decisions of a task, and why each queue was chosen or not."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from broker_site.management.telling import against, head, story
from brokerage.models import Decision
from brokerage.queries.decisions import NotACandidate, NotTold, latest, told, told_why_not
from brokerage.rules.why_not import WhyNot
from workqueues.models import Task
from workqueues.rules.standing import standing


class Command(BaseCommand):
    """Tells from what is stored; decides nothing anew."""

    help = "Tell why a task is where it is: its last decisions, and why each queue was or was not chosen."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Which task, which queue."""
        parser.add_argument("task_id", type=int, metavar="TASK_ID")
        parser.add_argument(
            "--queue", metavar="NAME", help="every verdict on this queue (or site, for the choice of the nucleus)"
        )
        parser.add_argument("--json", action="store_true", help="one JSON document instead of text")

    def handle(self, *args: Any, **options: Any) -> None:
        """Tell; CommandError where there is no such task, or no decision that knew the queue."""
        task = Task.objects.filter(id=options["task_id"]).first()
        if task is None:
            raise CommandError(f"there is no task {options['task_id']}")
        decisions = latest(task.id)
        asked = self._asked(decisions, options["queue"]) if options["queue"] else {}
        if options["json"]:
            self.stdout.write(json.dumps(document(task, decisions, asked), indent=1))
        else:
            for line in text(task, decisions, asked):
                self.stdout.write(line)

    def _asked(self, decisions: Sequence[Decision], name: str) -> dict[int, WhyNot]:
        """Decision to its verdicts on the candidate, for those that knew it."""
        found: dict[int, WhyNot] = {}
        faults = [] if decisions else ["no decision has been taken for the task yet"]
        for decision in decisions:
            try:
                found[decision.id] = told_why_not(decision, name)
            except (NotACandidate, NotTold) as no:
                faults.append(f"decision {decision.id} ({decision.policy}): {no}")
        if not found:
            raise CommandError("\n".join(faults))
        return found


def where(task: Task) -> str:
    """Where the task stands, in one sentence."""
    return standing(task.status, old_status=task.old_status, reason=task.error_dialog, next_look_at=task.next_look_at)


def text(task: Task, decisions: Sequence[Decision], asked: dict[int, WhyNot]) -> Iterator[str]:
    """The lines for a terminal."""
    yield f"Task {task.id} {task.task_name} of {task.user_name} ({task.vo})"
    yield f"  since {task.status_since:%Y-%m-%d %H:%M:%S} UTC {where(task)}"
    if not decisions:
        yield "  no queue has been considered yet: no decision is stored for the task"
    for decision in decisions:
        if asked and decision.id not in asked:
            continue
        yield ""
        yield head(decision)
        yield from against(asked[decision.id]) if asked else story(told(decision))


def document(task: Task, decisions: Sequence[Decision], asked: dict[int, WhyNot]) -> dict[str, Any]:
    """The same as JSON data."""
    found: dict[str, Any] = {
        "task_id": task.id,
        "task_name": task.task_name,
        "status": task.status,
        "status_since": task.status_since.isoformat(),
        "standing": where(task),
        "decisions": [_decision(d, asked.get(d.id)) for d in decisions if not asked or d.id in asked],
    }
    return found


def _decision(decision: Decision, why_not: WhyNot | None) -> dict[str, Any]:
    story_of = told(decision)
    return {
        "id": decision.id,
        "policy": decision.policy,
        "outcome": decision.outcome,
        "n_times": decision.n_times,
        "first_at": decision.first_at.isoformat(),
        "last_at": decision.last_at.isoformat(),
        "config_revision": decision.config_revision,
        **({"why_not": why_not.to_document()} if why_not else {"explanation": story_of.to_document() if story_of else None}),
    }
