"""`python -m tests.chaos.run`: one run of the campaign under faults, checked at the end. Prints one JSON object.

Always on private servers of an instance of its own. `--mutant` switches the fences off and ends as soon as a file was used twice.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from broker_site.roof.embedded.instance import ROOT
from broker_site.roof.embedded.place import STATE, make_folder
from broker_site.roof.embedded.users import own_user
from broker_site.roof.supervisor import Pilot, System, running
from tests.chaos.campaign import QUEUES, SUBMITTED, SUBMITTED_SLOTS, Campaign
from tests.chaos.faults import SMOKE, SMOKE_STANDSTILLS, STANDSTILLS, STOP, STOPS, Faults
from tests.chaos.history import History
from tests.chaos.sleeping import Sleepers
from tests.chaos.storage_faults import StorageFaults
from tests.chaos.submitting import Submitter
from tests.chaos.watching import Progress, Watch

CALM_S = 60.0
"""How long after the last fault everything must have ended."""
CLEAN_S = 10.0
"""How much longer pilots may take to remove what dead ones left on storage."""
LONGEST_S = 400.0
"""How long a run may take for each time that the faults of the smoke test are done."""
SHORTEST_GAP_S, LONGEST_GAP_S = 1.0, 3.0
"""Faults are spread over the work, but come no more and no less often than this."""
MUTANT_GAP_S = 4.0
"""They come more slowly where all that is waited for is the effect of a planted bug."""
SPREAD = 0.8
"""The part of the work over which the faults are spread."""
TICK_S, LOOK_S = 0.1, 0.4
QUIET_S = 10.0
"""Worker and beat are started anew when no agent began for so long: 45 s with the shortest default periods, these are shorter."""
FROZEN_S = 5.0
"""The same for web server, PostgreSQL and Redis that do not answer."""
FIRST_TASKS = 3
"""Tasks submitted at the beginning; the others come while faults happen."""
FOREIGN = ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "SECRET_KEY_FILE", "SECRET_KEY_FALLBACKS", "GRIDBROKER_PORT")
"""Variables of the caller that a run must not see."""


@dataclass(slots=True)
class Run:
    """One run: what is done, and what is seen of it."""

    campaign: Campaign
    mutant: bool
    history: History
    times: int = 1
    began: float = field(default_factory=time.monotonic)
    marks: dict[str, float] = field(default_factory=dict)
    token: str = ""
    seen: Progress | None = None
    looked_at: float = 0.0

    def say(self, text: str) -> None:
        """A line with the seconds since the beginning, for whoever looks on."""
        print(f"{time.monotonic() - self.began:6.1f} {text.rstrip()}", file=sys.stderr, flush=True)

    def mark(self, name: str) -> None:
        """Note when something was reached."""
        self.marks[name] = round(time.monotonic() - self.began, 1)
        self.say(name)

    def prepare(self, system: System) -> Sequence[Pilot]:
        """Fill the database; the pilots to start."""
        os.environ.update(system.owner_environment)
        import django

        django.setup()
        from tests.chaos.mutants.unfenced import switch_off
        from tests.chaos.setup import make

        made = make(self.campaign)
        self.token = made.token
        if self.mutant:
            switch_off(system.services.database_url)
        self._let_submit(system)
        self.mark("prepared")
        return list(self._pilots(made.enrolments))

    def _pilots(self, enrolments: Mapping[str, str]) -> Iterator[Pilot]:
        for queue, n in QUEUES.items():
            secret = self.campaign.folder / f"enrolment-{queue}"
            secret.write_text(enrolments[queue] + "\n", encoding="ascii")
            work = self.campaign.folder / "work" / queue
            options = ("--operations", str(self.history.file))
            for slot in range(n):
                name = f"{queue}-{slot}"
                uid = self._uid(name)
                yield Pilot(queue, name, secret, work / str(slot), self.campaign.software, options, payload_uid=uid)

    def _let_submit(self, system: System) -> None:
        """Tell the worker how it starts the pilots of submitted jobs."""
        slots, work = range(SUBMITTED_SLOTS), self.campaign.folder / "work" / SUBMITTED
        work.mkdir(parents=True)
        told = {
            "server": system.url,
            "software": str(self.campaign.software),
            "work": str(work),
            "enrolments": str(self.campaign.folder / "enrolments"),
            "slots": len(slots),
            "payload_uids": [uid for slot in slots if (uid := self._uid(f"{SUBMITTED}-{slot}")) is not None],
        }
        file = self.campaign.folder / "local-pilots.json"
        file.write_text(json.dumps(told), encoding="utf-8")
        system.environment["GRIDBROKER_LOCAL_PILOTS"] = str(file)

    def _uid(self, slot: str) -> int | None:
        """As whom the payloads of a slot run."""
        return own_user(self.campaign.folder, slot).uid if os.geteuid() == 0 else None

    def work(self, system: System) -> dict[str, Any]:
        """Submit, break, wait, check: the result."""
        from tests.chaos.invariants import Invariants

        self.mark("started")
        watch = Watch(system.services.database_url)
        submitter = Submitter(system.url, self.token, self.campaign, self.history)
        rounds = 0 if self.mutant else self.times
        faults = Faults.planned(
            system,
            self.history,
            random.Random(self.campaign.seed),
            self.campaign.lease_s + 2,
            {kind: n * self.times for kind, n in SMOKE.items()},
            STOPS * self.times,
            SMOKE_STANDSTILLS * rounds,
        )
        sleepers = Sleepers(system, self.campaign, self.history, watch)
        sleepers.start()
        storages = StorageFaults.planned(self.campaign, self.history, rounds)
        invariants = Invariants()
        while not self._over(submitter.done, faults, sleepers, storages):
            time.sleep(TICK_S)
            if time.monotonic() > self.looked_at + LOOK_S:
                self.seen, self.looked_at = watch.progress() or self.seen, time.monotonic()
            faults.tend()
            sleepers.tend()
            storages.tend()
            if not self.mutant:
                invariants.tend()
            if not submitter.done and self._part() >= 0.1 * (len(submitter.tasks) - FIRST_TASKS + 1):
                submitter.next()
            if faults.kinds and self._due(faults) and faults.inject():
                self.say(f"{faults.last} at {self._part():.0%} of the files")
            if storages.kinds and self._part() >= SPREAD * storages.done.total() / (storages.done.total() + len(storages.kinds)):
                storages.inject()
        storages.restore()
        self.mark("ended")
        if not self.mutant:
            sleepers.wake()
            self._clean()
            invariants.look()
        watch.close()
        outages = {"outages": dict(sorted(storages.done.items())), "written": storages.written}
        return {**self._result(system, faults, sleepers), **outages, "looks": invariants.looks, "broken": invariants.broken}

    def _part(self) -> float:
        """How much of the work is done, 0 to 1."""
        return self.seen.finished_files / self.campaign.files if self.seen else 0.0

    def _due(self, faults: Faults) -> bool:
        """Whether the next fault may come."""
        gap, part = time.monotonic() - faults.last_at, self._part()
        if gap < (MUTANT_GAP_S if self.mutant else SHORTEST_GAP_S) or part == 0:
            return False
        injected = faults.done.total()
        return gap > LONGEST_GAP_S or part >= SPREAD * injected / (injected + len(faults.kinds))

    def _over(self, submitted: bool, faults: Faults, sleepers: Sleepers, storages: StorageFaults) -> bool:
        """Whether there is nothing left to do, or no hope."""
        if time.monotonic() - self.began > LONGEST_S * self.times:
            return True
        if self.mutant:
            return self.seen is not None and self.seen.doubled > 0
        if not (submitted and faults.over and storages.over and self.seen):
            return False
        last_fault = max(faults.last_at, sleepers.last_at, storages.last_at)
        return time.monotonic() - last_fault > CALM_S or (self.seen.open == 0 and not sleepers.asleep)

    def _clean(self) -> None:
        """Wait for the pilots to have looked after what dead ones left."""
        end = time.monotonic() + CLEAN_S
        while time.monotonic() < end and any((self.campaign.folder / "work").glob("*/journal/*.journal")):
            time.sleep(TICK_S)
        self.mark("clean")

    def _result(self, system: System, faults: Faults, sleepers: Sleepers) -> dict[str, Any]:
        seen = self.seen or Progress(*[0] * 12)
        checked = check(system.services.database_url, self.history.file)
        self.mark("checked")
        doubled = [v for v in checked["violations"] if v["what"].endswith(("used twice", "doubled"))]
        return {
            "seed": self.campaign.seed,
            "seconds": round(time.monotonic() - self.began, 1),
            "marks": self.marks,
            "kills": {kind: n for kind, n in sorted(faults.done.items()) if kind in SMOKE},
            "standstills": sorted(set(STANDSTILLS) & set(faults.done)),
            "stopped": faults.done[STOP],
            "late": sleepers.late,
            "jobs": seen.jobs,
            "files": self.campaign.files,
            "finished": seen.finished_files,
            "lost": self.campaign.files - seen.finished_files - seen.open_files,
            "doubled": max([seen.doubled, *(v["n"] for v in doubled)]),
            "stuck": seen.open,
            "brought": seen.brought,
            "placed": seen.placed,
            "opened": seen.opened,
            "submitted": seen.submitted,
            **checked,
        }


def check(dsn: str, history: Path) -> dict[str, Any]:
    """What the checker, a program of its own, has to say."""
    checker = Path(__file__).with_name("checker.py")
    command = [sys.executable, str(checker), "--dsn", dsn, "--history", str(history), "--lines"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env={"PATH": os.environ["PATH"]})
    if not ran.stdout:
        raise RuntimeError(f"the checker ended with {ran.returncode}:\n{ran.stderr}")
    answer: dict[str, Any] = json.loads(ran.stdout)
    return answer


@contextmanager
def own_instance(first: str) -> Iterator[str]:
    """The name of an instance that no other run uses at this moment: `first`, `first`-2, ..."""
    for name in (first, *(f"{first}-{n}" for n in range(2, 10))):
        with (make_folder(ROOT, name) / "run.lock").open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield name
            return
    raise RuntimeError(f"nine runs are going on in {ROOT / STATE}")


def run(campaign: Campaign, instance: str, *, mutant: bool, times: int = 1) -> dict[str, Any]:
    """Run a campaign on an empty instance."""
    shutil.rmtree(campaign.folder, ignore_errors=True)
    campaign.folder.mkdir(parents=True)
    one = Run(campaign, mutant, History(campaign.folder / "history.jsonl"), times)
    planted = {"DJANGO_SETTINGS_MODULE": "tests.chaos.mutants.settings"} if mutant else {}
    with running(
        instance, prepare=one.prepare, fresh=True, environment=planted, quiet_s=QUIET_S, frozen_s=FROZEN_S, say=one.say
    ) as system:
        return one.work(system)


def main() -> int:
    """Run as the arguments say; exit code 1 when a check failed."""
    parser = argparse.ArgumentParser(
        description="Run jobs while processes are killed, and check that nothing is lost or doubled."
    )
    parser.add_argument("--seed", type=int, default=None, help="order of the faults; the same seed, the same order")
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--lease", type=float, default=10.0, metavar="S", help="length of a job's lease")
    parser.add_argument("--outage", type=float, default=4.0, metavar="S", help="how long the root of a storage is away")
    parser.add_argument("--times", type=int, default=1, metavar="N", help="N times the faults of the smoke test")
    parser.add_argument("--mutant", action="store_true", help="switch the fences off: a double use must show")
    options = parser.parse_args()
    seed = random.randrange(10**6) if options.seed is None else options.seed
    for name in FOREIGN:
        os.environ.pop(name, None)
    os.environ["GRIDBROKER_PROFILE"] = "local"
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # through the blocks that stop everything
    with own_instance("unfenced" if options.mutant else "chaos") as instance:
        campaign = Campaign(
            ROOT / STATE / instance / "campaign", seed, options.jobs, lease_s=options.lease, outage_s=options.outage, submits=True
        )
        result = run(campaign, instance, mutant=options.mutant, times=options.times)
        (campaign.folder / "result.json").write_text(json.dumps(result, indent=1), encoding="utf-8")
    print(json.dumps(result))
    return 1 if result["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
