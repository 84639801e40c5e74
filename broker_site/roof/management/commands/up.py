"""`manage.py up`: the whole system on this machine, kept running until Ctrl-C; data are kept between runs."""

from __future__ import annotations

import json
import signal
import threading
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from broker_site.roof import tour
from broker_site.roof.demo import CampaignFailed, Client
from broker_site.roof.embedded import NoPlace, NotStarted
from broker_site.roof.supervisor import NotRunning, Pilot, System, running, sites_apart
from broker_site.roof.supervisor.local_site import GRID, People, load_grid, local_pilots, mark_storages, people, set_local_slots
from brokerage.models import ComputingQueue


class Command(BaseCommand):
    help = "Run web, worker, beat and local pilots on private servers until Ctrl-C."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        number = parser.add_mutually_exclusive_group()
        number.add_argument("--pilots", type=int, metavar="N", help="pilots for each local queue (default: as the grid says)")
        number.add_argument("--no-pilots", action="store_true", help="start no pilot")

        kind = parser.add_mutually_exclusive_group()
        kind.add_argument("--demo", action="store_true", help="an instance of its own, with tasks that show what there is to see")
        kind.add_argument(
            "--sites-apart",
            action="store_true",
            help="the demo grid with a storage server for each site, and nothing shared but HTTP; an instance stays so",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until SIGINT, SIGTERM or SIGHUP; CommandError when something does not come up."""
        wanted = 0 if options["no_pilots"] else options["pilots"]
        if wanted is not None and not 0 <= wanted <= 50:
            raise CommandError("--pilots must be from 0 to 50")
        end = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: end.set())
        accounts: list[People] = []

        def prepare(system: System) -> Sequence[Pilot]:
            call_command("migrate", verbosity=0, interactive=False)
            accounts.append(people(system.folder))
            self._load_grid(system, apart=options["sites_apart"])
            if options["demo"]:
                tour.prepare()
            for name in mark_storages(system.folder):
                self._say(f"storage {name} is not marked, so that its loss would not be seen: manage.py storage mark {name}")
            set_local_slots(system)
            return list(local_pilots(system.folder, wanted, say=self._say))

        shown = {"GRIDBROKER_BANNER": settings.ENV.banner or tour.BANNER} if options["demo"] else {}
        place = settings.ENV.instance
        try:
            with running(place, prepare=prepare, port=settings.ENV.port, environment=shown, say=self._say) as system:
                sights = tour.submit_missing(Client(system.url, accounts[0].token)) if options["demo"] else {}
                self._welcome(system, accounts[0])
                self._tell_sights(system, sights)
                end.wait()
                self._say("stopping ...")
        except (NotRunning, NoPlace, NotStarted, CampaignFailed) as error:
            raise CommandError(str(error)) from error

    def _load_grid(self, system: System, *, apart: bool) -> None:
        """The demo grid where there is none; where the sites of this instance are apart, with their servers."""
        if not (apart or sites_apart.are_apart(system.folder)):
            if load_grid():
                self._say("loaded the demo grid")
            return
        others = ComputingQueue.objects.exclude(name__in=json.loads(GRID.read_text(encoding="utf-8"))["queues"])
        if others.exists():
            raise CommandError(
                "--sites-apart is for the demo grid, and this system has another one; "
                "docs/how-to/storage.md says how to run storage servers for it"
            )
        sites_apart.set_apart(system.folder, system.supervisor, system.environment)
        self._say("each site has a storage server of its own, and shares no directory with the others")

    def _welcome(self, system: System, who: People) -> None:
        self._say(f"web, worker, beat and {system.n_pilots} pilots run; logs are in {system.folder / 'logs'}")
        self._say("")
        self._say(f"  GridBroker  {system.url}/")
        self._say(f"  user        {who.admin}     password {who.password}     (everything but submitting)")
        self._say(f"  user        {who.member}      password {who.member_password}     (submits, operates and audits in VO demo)")
        self._say(f"  token       {who.token}     (of {who.member}; Authorization: Bearer ...)")
        self._say("")

    def _tell_sights(self, system: System, sights: Mapping[str, int]) -> None:
        for name, id_ in sights.items():
            if name in tour.SIGHTS:
                self._say(f"  {system.url}/tasks/{id_}/  {name}: {tour.SIGHTS[name]}")
        if sights:
            self._say(f"  {system.url}/throughput/?window=1h, /errors/, /shares/ and /throttle/ show all of them together")
            self._say("")
        self._say("Ctrl-C stops everything; data are kept.")

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
