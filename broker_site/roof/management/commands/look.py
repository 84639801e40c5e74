"""`manage.py look (--task N | --queue NAME | --share NAME)`: look now at what waits."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from broker_site.foundation.access.principal import SYSTEM
from broker_site.foundation.kernel.registry import nearest
from brokerage.ledger.look_now import look_at_queue, look_at_share, look_at_task
from brokerage.models import ComputingQueue
from brokerage.queries.pilots import no_such_queue
from brokerage.rules.explain.look_now import told
from workqueues.models import GlobalShare, Task


class Command(BaseCommand):
    help = "Look now at a task that waits, or at all that waits for a queue or in a share."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("--task", type=int, metavar="N", help="number of the task")
        which.add_argument("--queue", metavar="NAME", help="name of the computing queue")
        which.add_argument("--share", metavar="NAME", help="name of the share")

    def handle(self, *args: Any, **options: Any) -> None:
        """One line; CommandError where there is no such thing."""
        if options["task"] is not None:
            task = Task.objects.filter(id=options["task"]).first()
            if task is None:
                raise CommandError(f"there is no task {options['task']}")
            target, n = f"task {task.id}", look_at_task(SYSTEM, task)
        elif options["queue"] is not None:
            queue = ComputingQueue.objects.filter(name=options["queue"]).first()
            if queue is None:
                raise CommandError(no_such_queue(options["queue"]))
            target, n = f"queue {queue.name}", look_at_queue(SYSTEM, queue)
        else:
            share = GlobalShare.objects.filter(name=options["share"]).first()
            if share is None:
                near = nearest(options["share"], GlobalShare.objects.values_list("name", flat=True))
                raise CommandError(f"there is no share {options['share']}" + (f"; the nearest name is {near}" if near else ""))
            target, n = f"share {share.name}", look_at_share(SYSTEM, share)
        self.stdout.write(told(target, n))
