"""`manage.py demo`: a real campaign through a private system of its own, checked from outside; ends with one line of figures."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from broker_site.roof import demo
from broker_site.roof.embedded import NoPlace, NotStarted
from broker_site.roof.supervisor import NotRunning, Pilot, System, running, sites_apart
from broker_site.roof.supervisor.local_site import GRID, People, local_pilots, mark_storages, people, set_local_slots

LIMIT_S = 300.0


class Command(BaseCommand):
    help = "Run the demo campaign of examples/demo on private servers and check its output."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--sites-apart", action="store_true", help="with a storage server for each site, and nothing shared but HTTP"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """CommandError when anything is not as promised."""
        began = time.monotonic()
        accounts: list[People] = []

        def prepare(system: System) -> Sequence[Pilot]:
            call_command("migrate", verbosity=0, interactive=False)
            accounts.append(people(system.folder))
            if options["sites_apart"]:
                sites_apart.set_apart(system.folder, system.supervisor, system.environment)
            else:
                sites_apart.put_together(system.folder)
                call_command("import_grid", str(GRID), verbosity=0)  # also over the grid of an older demo
            mark_storages(system.folder)
            demo.set_pace()
            set_local_slots(system)
            return list(local_pilots(system.folder, say=self.stdout.write))

        try:
            with running(settings.ENV.instance, prepare=prepare, port=settings.ENV.port, say=self.stdout.write) as system:
                self.stdout.write(f"system up after {time.monotonic() - began:.0f} s at {system.url}/, {system.n_pilots} pilots")
                verdict = self._campaign(demo.Client(system.url, accounts[0].token))
        except (NotRunning, NoPlace, NotStarted, demo.CampaignFailed) as error:
            raise CommandError(str(error)) from error
        self._tell(verdict, time.monotonic() - began)

    def _campaign(self, client: demo.Client) -> demo.Verdict:
        run = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        ids = demo.submit(client, run)
        console = Console(file=sys.stdout, soft_wrap=True)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[status]}"))
        with Progress(*columns, TimeElapsedColumn(), console=console) as bars:
            rows = {task_id: bars.add_task(f"task {task_id}", total=None, status="") for task_id in ids}

            def show(tasks: list[demo.Progress]) -> None:
                for p in tasks:
                    bars.update(rows[p.task_id], description=p.name, total=p.files or None, completed=p.finished, status=p.status)

            demo.follow(client, ids, show, LIMIT_S)
        return demo.verdict(ids, run)

    def _tell(self, verdict: demo.Verdict, seconds: float) -> None:
        for problem in verdict.problems:
            self.stdout.write(f"problem: {problem}")
        for name, sentence in verdict.shown.items():
            self.stdout.write(f"{name}: {sentence}")
        work = ", ".join(f"{name} {n}" for name, n in verdict.queues.items())
        self.stdout.write(f"jobs finished at {work}; {verdict.retried} retries")
        self.stdout.write(f"{seconds:.1f} s in all; `make up DEMO=1` shows such tasks on pages, and keeps running")
        self.stdout.write(
            f"demo: {verdict.tasks} tasks done, {verdict.jobs} jobs finished, {verdict.files} files, {verdict.lost} lost"
        )
        if verdict.problems:
            self.stdout.flush()
            raise SystemExit(1)
