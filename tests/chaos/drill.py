"""`python -m tests.chaos.drill`: a backup is restored under working pilots, by the commands of the how-to page.

Prints one JSON object. Always on private servers of an instance of its own.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg2

from broker_site.roof.embedded import Instance, attached
from broker_site.roof.embedded.instance import ROOT
from broker_site.roof.embedded.place import STATE, read_private
from broker_site.roof.embedded.postgres import ADMIN, find_software
from broker_site.roof.embedded.process import free_port
from broker_site.roof.supervisor import Pilot, System, running
from tests.chaos.campaign import Campaign
from tests.chaos.checker import is_stream
from tests.chaos.history import History
from tests.chaos.outside_pilots import outside_pilots
from tests.chaos.run import FOREIGN, QUIET_S, check, own_instance
from tests.chaos.submitting import Submitter
from tests.chaos.watching import Progress, Watch

PAGE = ROOT / "docs" / "how-to" / "back-up-and-restore.md"
LONGEST_S = 150.0
JOBS, LEASE_S = 48, 4.0
DUMP_AT, STOP_AT = 0.25, 0.5
"""The parts of the work after which the dump is taken, and the system is lost."""


def block(containing: str) -> str:
    """The commands of the page's block that contains this text, as they are printed."""
    blocks = re.findall(r"^( *)```sh\n(.*?)^ *```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (text,) = [text for _, text in blocks if containing in text]
    return str(text)


def commands(text: str, folder: Path, environment: Mapping[str, str]) -> None:
    """Run printed commands; RuntimeError with what they said when one fails."""
    path = f"{find_software() / 'bin'}:{os.environ['PATH']}"
    ran = subprocess.run(
        ["/bin/sh", "-e", "-c", text.replace(".venv/bin/python manage.py", f"{sys.executable} {ROOT / 'manage.py'}")],
        cwd=folder,
        env={**environment, "PATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if ran.returncode:
        raise RuntimeError(f"{text}\nended with {ran.returncode}:\n{ran.stdout}{ran.stderr}")


@dataclass(slots=True)
class Drill:
    """One drill."""

    campaign: Campaign
    instance: str
    port: int = field(default_factory=free_port)
    began: float = field(default_factory=time.monotonic)
    marks: dict[str, float] = field(default_factory=dict)
    token: str = ""
    enrolments: Mapping[str, str] = field(default_factory=dict)

    def mark(self, name: str) -> None:
        """Note when something was reached."""
        self.marks[name] = round(time.monotonic() - self.began, 1)
        print(f"{self.marks[name]:6.1f} {name}", file=sys.stderr, flush=True)

    def run(self) -> dict[str, Any]:
        """Dump, lose the system, restore, go on to the end: the figures."""
        with attached(self.instance, need_redis=True) as servers, outside_pilots(self.campaign) as start_pilots:
            dsn = servers.services.database_url
            watch = Watch(dsn)
            with self._system(self._fill, fresh=True) as system:
                start_pilots(system.url, self.enrolments)
                submitter = Submitter(system.url, self.token, self.campaign, History(self.campaign.folder / "history.jsonl"))
                while not submitter.done:
                    submitter.next()
                self._wait(watch, lambda seen: seen.finished_files >= DUMP_AT * self.campaign.files)
                commands(block("pg_dump"), self.campaign.folder, {"DATABASE_URL": dsn})
                self.mark("dumped")
                lost = self._wait(watch, lambda seen: seen.finished_files >= STOP_AT * self.campaign.files)
            watch.close()
            self.mark("lost")
            environment = self._restore(servers)
            watch = Watch(dsn)
            restored = watch.progress()
            self.mark("restored")
            with self._system(lambda system: (), fresh=False):
                last = self._wait(watch, lambda seen: seen.open == 0)
                self._wait_for_clean_journals()
                self.mark("ended")
                orphans = len(list(self._orphans(dsn)))
                commands(block("check_storage"), self.campaign.folder, environment)
            watch.close()
            checked = check(dsn, self.campaign.folder / "none.jsonl")
            left = len(list(self._orphans(dsn)))
        return {
            "seconds": round(time.monotonic() - self.began, 1),
            "marks": self.marks,
            "files": self.campaign.files,
            "finished_before": lost.finished_files,
            "finished_in_dump": restored.finished_files if restored else 0,
            "finished": last.finished_files,
            "doubled": last.doubled,
            "open": last.open,
            "orphans": orphans,
            "orphans_left": left,
            **checked,
        }

    @contextmanager
    def _system(self, prepare: Callable[[System], Sequence[Pilot]], *, fresh: bool) -> Iterator[System]:
        """Web, worker and beat with a key that nobody had before."""
        environment = {"SECRET_KEY": secrets.token_urlsafe(50)}
        with running(
            self.instance, prepare=prepare, fresh=fresh, port=self.port, environment=environment, quiet_s=QUIET_S
        ) as system:
            yield system

    def _fill(self, system: System) -> Sequence[Pilot]:
        os.environ.update(system.owner_environment)
        import django

        django.setup()
        from tests.chaos.setup import make

        made = make(self.campaign)
        self.token, self.enrolments = made.token, made.enrolments
        return ()

    def _wait(self, watch: Watch, reached: Callable[[Progress], bool]) -> Progress:
        """Look until something is reached, or no longer."""
        end = time.monotonic() + LONGEST_S
        seen = watch.progress()
        while seen is None or (not reached(seen) and time.monotonic() < end):
            time.sleep(0.1)
            seen = watch.progress()
        return seen

    def _restore(self, servers: Instance) -> Mapping[str, str]:
        """The steps of the page until the system is started; what its commands had in their environment."""
        assert servers.postgres
        password = str(read_private(servers.folder / "secrets.json")["admin_password"])
        admin = f"postgresql://{ADMIN}:{quote(password)}@127.0.0.1:{servers.postgres.access.port}/postgres"
        urls = {"ADMIN_URL": admin, **servers.services.environment(), "GRIDBROKER_PROFILE": "local"}
        commands(block("pg_restore"), self.campaign.folder, urls)
        environment = {**urls, "GRIDBROKER_INSTANCE": self.instance}
        commands(block("after_restore"), self.campaign.folder, environment)
        return environment

    def _orphans(self, dsn: str) -> Iterator[Path]:
        """Whole files on storage that no table knows, found by SQL of our own and not by the application's."""
        with psycopg2.connect(dsn) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT name, path FROM brokerage_storageendpoint")
            roots = {name: Path(path) for name, path in cursor.fetchall()}
            cursor.execute(
                "SELECT r.storage, coalesce(nullif(r.path, ''), f.lfn) FROM workqueues_replica r"
                " JOIN workqueues_cataloguefile f ON f.id = r.file_id"
            )
            known = {roots[storage] / path for storage, path in cursor.fetchall()}
        connection.close()
        for root in roots.values():
            for path in root.rglob("*"):
                if path.is_file() and path not in known and not is_stream(path, known) and not path.name.startswith("."):
                    yield path

    def _wait_for_clean_journals(self) -> None:
        end = time.monotonic() + 10.0
        while time.monotonic() < end and any((self.campaign.folder / "work").glob("*/journal/*.journal")):
            time.sleep(0.1)


def main() -> int:
    """Exit code 1 when a check failed."""
    for name in FOREIGN:
        os.environ.pop(name, None)
    os.environ["GRIDBROKER_PROFILE"] = "local"
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    with own_instance("drill") as instance:
        campaign = Campaign(ROOT / STATE / instance / "campaign", seed=1, jobs=JOBS, tasks=2, lease_s=LEASE_S)
        shutil.rmtree(campaign.folder, ignore_errors=True)
        campaign.folder.mkdir(parents=True)
        (campaign.folder / "none.jsonl").touch()
        result = Drill(campaign, instance).run()
    print(json.dumps(result))
    return 1 if result["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
