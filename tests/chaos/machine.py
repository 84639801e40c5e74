"""A machine on which `up` runs, seen from outside: started, killed, looked at. Nothing of the system runs in this process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from broker_site.roof.embedded import Instance, attached
from broker_site.roof.embedded.instance import ROOT
from broker_site.roof.embedded.place import read_private
from broker_site.roof.embedded.process import Identity, free_port, last_lines
from tests.chaos.campaign import QUEUES, Campaign
from tests.chaos.history import History
from tests.chaos.submitting import Submitter
from tests.chaos.watching import Progress, Watch

START_S, STOP_S, PROGRESS_S = 60.0, 40.0, 120.0
READY = "Ctrl-C stops everything"


@dataclass(slots=True)
class Machine:
    """`up` on an instance of its own with a campaign in its database. `environment` is added to that of `up`."""

    campaign: Campaign
    instance: str
    environment: Mapping[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    token: str = ""
    dsn: str = ""
    enrolments: Mapping[str, str] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)
    up: subprocess.Popen[bytes] | None = None
    _watch: Watch | None = None
    _submitter: Submitter | None = None

    @property
    def url(self) -> str:
        """Where the web server is."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def console(self) -> Path:
        """What `up` says."""
        return self.campaign.folder / "console.log"

    @property
    def history(self) -> Path:
        """What the user was answered."""
        return self.campaign.folder / "history.jsonl"

    def say(self, text: str) -> None:
        """A line for whoever looks on."""
        print(f"{time.monotonic() - self.began:6.1f} {text}", file=sys.stderr, flush=True)

    def prepare(self, pilots: Mapping[str, int] = QUEUES) -> None:
        """An empty database with grid, configuration and inputs; `up` will run so many pilots at each queue."""
        with attached(self.instance, need_redis=True) as servers:
            if servers.postgres:
                servers.postgres.renew_database()
            self.fill(servers, pilots)

    def fill(self, servers: Instance, pilots: Mapping[str, int]) -> None:
        """Write the campaign to the database of these servers."""
        os.environ.update(servers.services.environment(), DJANGO_SETTINGS_MODULE="broker_site.settings")
        import django

        django.setup()
        from brokerage.models import ComputingQueue
        from tests.chaos.setup import make

        made = make(self.campaign)
        for queue, n in pilots.items():
            ComputingQueue.objects.filter(name=queue).update(local_pilots=n)
        self.token, self.enrolments, self.dsn = made.token, made.enrolments, servers.services.database_url
        for name in servers.services.environment():
            os.environ.pop(name)
        self._watch = Watch(self.dsn)
        self._submitter = Submitter(self.url, self.token, self.campaign, History(self.history))

    def start(self) -> float:
        """Start `up` and wait until it says that all runs: the seconds it took."""
        before = self.console.stat().st_size if self.console.exists() else 0
        began = time.monotonic()
        command = [sys.executable, "-m", "tests.chaos.up", str(self.campaign.software)]
        names = {"GRIDBROKER_INSTANCE": self.instance, "GRIDBROKER_PORT": str(self.port), "GRIDBROKER_PROFILE": "local"}
        with self.console.open("ab") as out:
            self.up = subprocess.Popen(
                command, cwd=ROOT, env={**os.environ, **names, **self.environment}, stdout=out, stderr=out, start_new_session=True
            )
        while READY not in self.said(before):
            if self.up.poll() is not None or time.monotonic() > began + START_S:
                raise RuntimeError(f"up did not start:\n{last_lines(self.console, 30)}")
            time.sleep(0.05)
        return time.monotonic() - began

    def stop(self) -> None:
        """End `up` as Ctrl-C does."""
        if self._watch:
            self._watch.close()
        if self.up and self.up.poll() is None:
            self.up.send_signal(signal.SIGINT)
            try:
                self.up.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self.kill(self.tree())

    def said(self, start: int = 0) -> str:
        """What the console shows from this byte on."""
        if not self.console.exists():
            return ""
        with self.console.open("rb") as file:
            file.seek(start)
            return file.read().decode(errors="replace")

    def tree(self) -> list[Identity]:
        """`up` and all that it has started, itself first."""
        assert self.up
        pids = [self.up.pid, *(each.pid for each in psutil.Process(self.up.pid).children(recursive=True))]
        return [identity for pid in pids if (identity := Identity.of(pid))]

    def kill(self, identities: list[Identity]) -> None:
        """SIGKILL, in this order."""
        for identity in identities:
            identity.signal(signal.SIGKILL)
        if self.up:
            self.up.wait(10)

    def submit(self) -> None:
        """Submit all tasks of the campaign."""
        assert self._submitter
        self.until(self._submitter.next_or_done, 60.0)

    def progress(self) -> Progress | None:
        """How far the work is; None while the database does not answer."""
        assert self._watch
        return self._watch.progress()

    def part(self) -> float:
        """How much of the work is done, 0 to 1; -1 while the database does not answer."""
        seen = self.progress()
        return seen.finished_files / self.campaign.files if seen else -1.0

    def until(self, happened: Callable[[], object], seconds: float) -> float:
        """Wait for something: the seconds it took. RuntimeError when it does not happen."""
        began = time.monotonic()
        while not happened():
            if time.monotonic() > began + seconds:
                raise RuntimeError(f"nothing after {seconds:.0f} s; the console ends with:\n{last_lines(self.console, 30)}")
            time.sleep(0.1)
        return time.monotonic() - began

    def until_part(self, part: float, seconds: float = PROGRESS_S) -> float:
        """Wait until so much of the work is done: the seconds it took."""
        return self.until(lambda: self.part() >= part, seconds)

    def until_progress(self, seconds: float = PROGRESS_S) -> float:
        """Wait until one more file is finished: the seconds it took."""
        began = time.monotonic()
        self.until(lambda: self.progress() is not None, seconds)
        before = self.progress()
        self.until(
            lambda: (seen := self.progress()) and before and (seen.finished_files > before.finished_files or not seen.open),
            seconds,
        )
        return time.monotonic() - began

    def pid_noted(self) -> int:
        """The process that the instance names as its supervisor."""
        return int(str(read_private(ROOT / ".gridbroker" / self.instance / "system.json").get("pid", 0)))
