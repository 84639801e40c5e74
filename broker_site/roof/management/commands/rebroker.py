"""`manage.py rebroker (--queue NAME | --task N | --job N)`: broker waiting jobs anew."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from broker_site.foundation.access.principal import SYSTEM
from brokerage.ledger.rebrokering import rebroker_at_queue, rebroker_job, rebroker_task
from brokerage.models import ComputingQueue, Job
from brokerage.queries.movable_jobs import EVERY_VO
from brokerage.queries.pilots import no_such_queue
from brokerage.rules.explain.rebrokering import told
from workqueues.models import Task


class Command(BaseCommand):
    help = "Close the jobs that wait at a queue, those of a task that wait, or one job, so that their files are brokered anew."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("--queue", metavar="NAME", help="name of the computing queue")
        which.add_argument("--task", type=int, metavar="N", help="number of the task")
        which.add_argument("--job", type=int, metavar="N", help="number of the job")

    def handle(self, *args: Any, **options: Any) -> None:
        """One line; CommandError where there is no such thing, or the one job stays."""
        if options["queue"] is not None:
            queue = ComputingQueue.objects.filter(name=options["queue"]).first()
            if queue is None:
                raise CommandError(no_such_queue(options["queue"]))
            target, done = f"queue {queue.name}", rebroker_at_queue(SYSTEM, queue, EVERY_VO)
        elif options["task"] is not None:
            task = Task.objects.filter(id=options["task"]).first()
            if task is None:
                raise CommandError(f"there is no task {options['task']}")
            target, done = f"task {task.id}", rebroker_task(SYSTEM, task)
        else:
            job = Job.objects.filter(id=options["job"]).select_related("spec").first()
            if job is None:
                raise CommandError(f"there is no job {options['job']}")
            target, done = f"task {job.task_id}", rebroker_job(SYSTEM, job, job.spec.vo)
            if not done.jobs:
                raise CommandError(f"job {job.id} stays where it is: {done.why}")
        self.stdout.write(told(target, *done))
