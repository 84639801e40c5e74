"""`python -m tests.chaos.wrecks WRECK`: `up` meets what happens to whole machines, and the work goes on. Prints one JSON object.

killed: `up` is killed, alone, with its process group, and with all that it has started, and is started again. disk: the disk of
the instance, of a storage and of a worker node is full for a while. network: database, Redis and API are reached through proxies
that delay, reset and fall silent. frozen: PostgreSQL, and single backends, stand still.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

import psutil
import psycopg2

from broker_site.roof.embedded import attached
from broker_site.roof.embedded.instance import ROOT
from broker_site.roof.embedded.place import STATE, make_passed
from broker_site.roof.embedded.process import last_lines
from tests.chaos import small_disk
from tests.chaos.campaign import Campaign
from tests.chaos.machine import Machine
from tests.chaos.outside_pilots import outside_pilots
from tests.chaos.proxy import Proxy
from tests.chaos.run import FOREIGN, check, own_instance

KILLS = ("alone", "all", "group")
DISKS: Mapping[str, tuple[str, str]] = {
    "home": (".", "1500m"),
    "storage": ("campaign/storage", "300m"),
    "worker node": ("work/ALPHA", "600m"),  # a job is counted with 500 MB at least
}
"""What is full: folder below the instance's, size of its disk."""
FROZEN = ("postgres", "backends")
FULL_S, SILENT_S, BAD_S, FROZEN_S = 15.0, 15.0, 10.0, 20.0
HEALED_S = 60.0
"""How long after a fault the next file must be finished."""
ENDED_S, CLEAN_S = 150.0, 15.0


@dataclass(slots=True)
class Wreck:
    """One run: the machine, and what was measured of each fault."""

    machine: Machine
    rounds: int
    measured: list[dict[str, Any]] = field(default_factory=list)

    def note(self, fault: str, **figures: object) -> None:
        """Write down the figures of a fault."""
        seen = self.machine.progress()
        self.measured.append({"fault": fault, "left": seen.open if seen else 0, **figures})
        self.machine.say(f"{fault}: {figures}")

    def each(self, faults: tuple[str, ...], do: Callable[[str], None]) -> None:
        """Do every fault so many times, spread over the first part of the work."""
        plan = faults * self.rounds
        for number, fault in enumerate(plan):
            self.machine.until_part(0.7 * (number + 0.3) / len(plan))
            do(fault)

    def killed(self, how: str) -> None:
        """Kill `up` and start it again."""
        machine = self.machine
        tree = machine.tree()
        if how == "group":
            os.killpg(tree[0].pid, signal.SIGKILL)
        machine.kill(tree if how == "all" else tree[:1])
        began = time.monotonic()
        started = machine.start()
        machine.until_progress(HEALED_S)
        progress = time.monotonic() - began
        left = [psutil.Process(each.pid).cmdline()[:4] for each in tree if each.alive()]
        self.note(f"up killed {how}", started_s=round(started, 1), progress_s=round(progress, 1), processes=left)

    def full(self, what: str) -> None:
        """Fill a disk, keep it full, free it."""
        machine = self.machine
        folder = ROOT / STATE / machine.instance / DISKS[what][0]
        said, end = [], time.monotonic() + FULL_S
        while time.monotonic() < end:
            ballast = small_disk.fill(folder)
            said += ready(machine.url)
            time.sleep(1.0)
        ballast.unlink()
        self.note(f"{what} full", progress_s=round(machine.until_progress(HEALED_S), 1), told=sorted(set(said)))

    def frozen(self, what: str) -> None:
        """Stop the postmaster with all backends, or half of the backends, and continue them."""
        machine = self.machine
        postmaster = next(each for each in machine.tree() if psutil.Process(each.pid).name() == "postgres")
        backends = [each.pid for each in psutil.Process(postmaster.pid).children()]
        pids = [postmaster.pid, *backends] if what == "postgres" else backends[::2]
        for pid in pids:
            signal_if_there(pid, signal.SIGSTOP)
        began, answered = time.monotonic(), 0
        while time.monotonic() < began + FROZEN_S:
            answered += alive(machine.url)
            time.sleep(1.0)
        for pid in pids:
            signal_if_there(pid, signal.SIGCONT)
        self.note(f"{what} frozen", healthz=answered, progress_s=round(machine.until_progress(HEALED_S), 1))

    def rest(self) -> str:
        """What is open, as the database has it: for whoever looks for the reason."""
        lines = []
        with psycopg2.connect(self.machine.dsn) as connection, connection.cursor() as cursor:
            for query in REST:
                cursor.execute(query)
                lines += [" | ".join(map(str, row)) for row in cursor.fetchmany(20)]
        connection.close()
        for log in sorted((ROOT / STATE / self.machine.instance / "logs").glob("*.log")):
            lines += [f"{log.name}:", last_lines(log, 4)]
        return "\n".join(lines)

    def result(self) -> dict[str, Any]:
        """Wait for the end, and check."""
        machine = self.machine
        try:
            machine.until(lambda: (seen := machine.progress()) and not seen.open, ENDED_S)
        except RuntimeError as late:
            raise RuntimeError(f"{late}\nopen:\n{self.rest()}") from None
        work = ROOT / STATE / machine.instance
        machine.until(lambda: not any(work.glob("**/journal/*.journal")), CLEAN_S)
        seen = machine.progress()
        assert seen
        with psycopg2.connect(machine.dsn) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM brokerage_job WHERE sub_status = 'lost_heartbeat'")
            (silent,) = cursor.fetchone() or (0,)
        connection.close()
        return {
            "seconds": round(time.monotonic() - machine.began, 1),
            "measured": self.measured,
            "jobs": seen.jobs,
            "files": machine.campaign.files,
            "finished": seen.finished_files,
            "doubled": seen.doubled,
            "stuck": seen.open,
            "lost_heartbeats": silent,
            **check(machine.dsn, machine.history),
        }


REST = (
    "SELECT id, status, now() - status_since, progress, locked_by, error_dialog FROM workqueues_task WHERE ended_at IS NULL",
    """
    SELECT q.name, j.status, j.sub_status, j.lease_holder, count(*), max(now() - j.status_since), min(j.lease_until - now())
    FROM brokerage_job j JOIN brokerage_computingqueue q ON q.id = j.computing_queue_id WHERE ended_at IS NULL GROUP BY 1, 2, 3, 4
    """,
    """
    SELECT type, status, held, held_storage, count(*), max(attempt_nr), min(look_due - now()), min(retry_due - now())
    FROM workqueues_file WHERE type IN ('input', 'pseudo_input') AND status <> 'finished' GROUP BY 1, 2, 3, 4
    """,
    "SELECT error_code, count(*) FROM brokerage_jobresult WHERE error_code <> '' GROUP BY 1",
    "SELECT name, root_state FROM brokerage_storageendpoint",
    "SELECT slot, now() - last_seen FROM brokerage_pilot ORDER BY last_seen DESC",
)


def ready(url: str) -> list[str]:
    """What keeps the system from working, as /readyz says."""
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=8):  # noqa: S310 - our own http URL
            return []
    except urllib.error.HTTPError as answer:
        return [problem for problem in json.loads(answer.read())["problems"] if not problem.startswith("agent ")]
    except OSError:
        return ["no answer"]


def alive(url: str) -> bool:
    """Whether /healthz answers within two seconds."""
    try:
        with urllib.request.urlopen(f"{url}/healthz", timeout=2) as answer:  # noqa: S310 - our own http URL
            return bool(answer.status == 200)
    except OSError:
        return False


def signal_if_there(pid: int, number: int) -> None:
    """Send a signal to a process that may have ended."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


@contextmanager
def behind_proxies(machine: Machine) -> Iterator[dict[str, Proxy]]:
    """Servers of another instance, which `up` reaches through proxies only."""
    with attached(f"{machine.instance}-servers", need_redis=True) as servers:
        assert servers.postgres and servers.redis
        servers.postgres.renew_database()
        servers.postgres.grant_roles()
        dice = random.Random(machine.campaign.seed)
        proxies = {
            "database": Proxy(("127.0.0.1", servers.postgres.access.port), dice),
            "redis": Proxy(("127.0.0.1", servers.redis.port), dice),
            "api": Proxy(("127.0.0.1", machine.port), dice),
        }
        for proxy in proxies.values():
            proxy.start()
        machine.fill(servers, {})
        owner, key = urlsplit(servers.services.database_url), servers.services.secret_key
        database = f"postgresql://{owner.username}:{quote(owner.password or '')}@127.0.0.1:{proxies['database'].port}{owner.path}"
        redis = f"redis://:{servers.redis.password}@127.0.0.1:{proxies['redis'].port}/0"
        machine.environment = {"DATABASE_URL": database, "REDIS_URL": redis, "SECRET_KEY": key}
        try:
            yield proxies
        finally:
            machine.stop()
            for proxy in proxies.values():
                proxy.stop()


def network(wreck: Wreck) -> dict[str, Any]:
    """Bad seconds of every kind on every path."""
    machine = wreck.machine
    with behind_proxies(machine) as proxies, outside_pilots(machine.campaign) as start_pilots:
        machine.start()
        start_pilots(f"http://127.0.0.1:{proxies['api'].port}", machine.enrolments)
        machine.submit()

        def bad(fault: str) -> None:
            where, _, what = fault.partition(" ")
            proxy = proxies[where]
            proxy.done.clear()
            if what == "slow":
                proxy.delay_s = 0.5
            elif what == "resets":
                proxy.reset_part = 0.05
            else:
                proxy.silence()
            time.sleep(SILENT_S if what == "silent" else BAD_S)
            proxy.heal()
            wreck.note(fault, progress_s=round(machine.until_progress(HEALED_S), 1), links=proxy.links, **proxy.done)

        wreck.each(tuple(f"{where} {what}" for where in proxies for what in ("slow", "resets", "silent")), bad)
        return wreck.result()


def run(name: str, wreck: Wreck) -> dict[str, Any]:
    """Prepare, break, go on to the end: the result."""
    machine = wreck.machine
    home = ROOT / STATE / machine.instance
    if name == "disk":
        small_disk.mount(home, DISKS["home"][1])
    shutil.rmtree(machine.campaign.folder, ignore_errors=True)
    machine.campaign.folder.mkdir(parents=True)
    if name == "disk":
        small_disk.mount(machine.campaign.storage, DISKS["storage"][1])
        make_passed(home / "work" / "ALPHA", home)
        small_disk.mount(home / "work" / "ALPHA", DISKS["worker node"][1])
    if name == "network":
        return network(wreck)
    machine.prepare()
    try:
        machine.start()
        machine.submit()
        faults = {"killed": (KILLS, wreck.killed), "disk": (tuple(DISKS), wreck.full), "frozen": (FROZEN, wreck.frozen)}
        wreck.each(*faults[name])
        return wreck.result()
    finally:
        machine.stop()


def main() -> int:
    """Exit code 1 when a check failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wreck", choices=("killed", "disk", "network", "frozen"))
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--lease", type=float, default=20.0)
    options = parser.parse_args()
    for name in FOREIGN:
        os.environ.pop(name, None)
    os.environ["GRIDBROKER_PROFILE"] = "local"
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    with own_instance("wreck") as instance:
        campaign = Campaign(ROOT / STATE / instance / "campaign", seed=1, jobs=options.jobs, tasks=3, lease_s=options.lease)
        result = run(options.wreck, Wreck(Machine(campaign, instance), options.rounds))
    print(json.dumps(result))
    return 1 if result["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
