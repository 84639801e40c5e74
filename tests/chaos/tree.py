"""`python -m tests.chaos.tree`: a parent and two child brokers, each killed, cut off and restored from a backup while they work.

Three instances with databases of their own in one private PostgreSQL; the children reach the parent through a proxy each. Prints
one JSON object, and the same as a table for whoever looks on.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import astuple, dataclass, field
from typing import Any

from broker_site.roof.embedded import attached
from broker_site.roof.embedded.instance import ROOT
from broker_site.roof.embedded.place import STATE
from tests.chaos.proxy import Proxy
from tests.chaos.run import FOREIGN, own_instance
from tests.chaos.tree_broker import PARTS, Broker, Databases, few_processes, setup, stop_all
from tests.chaos.tree_campaign import CHILDREN, PARENT, TreeCampaign, tree_task, write_inputs
from tests.chaos.tree_verdict import Seen, look, open_work, verdict

NUMBERS = {PARENT: 1, "west": 2, "east": 3}
"""The part of Redis that each broker has."""
SPREAD = 0.85
LONGEST_GAP_S, SHORTEST_GAP_S = 12.0, 4.0
BACKUP_BEFORE = 2
"""A broker is backed up so many faults before it is restored."""
SHORT_CUT, LONG_CUT = 0.5, 1.8
"""How long a child is cut off, in leases: what it has stays its own, or returns."""
RESETS_S, RESET_PART = 5.0, 0.3
TICK_S = 0.25

Fault = tuple[str, str]
"""What is done to which broker."""


def full_plan(dice: random.Random) -> list[Fault]:
    """Every part of every broker is killed, each child is cut off shortly and for long, and every broker is restored once."""
    names = [PARENT, *CHILDREN]
    plan: list[Fault] = [(f"kill {part}", name) for name in names for part in (*PARTS, "all")]
    plan += [(cut, name) for name in CHILDREN for cut in ("cut short", "cut long", "resets")]
    plan += [("restore", name) for name in names]
    dice.shuffle(plan)
    backed_up = list(plan)
    for name in names:
        backed_up.insert(max(backed_up.index(("restore", name)) - BACKUP_BEFORE, 0), ("back up", name))
    return backed_up


SMALL_PLAN: Sequence[Fault] = (("kill all", "west"), ("cut long", "east"))


@dataclass(slots=True)
class Tree:
    """A run: the brokers, the proxies between them, and what is done to them."""

    campaign: TreeCampaign
    instance: str
    databases: Databases
    dice: random.Random
    plan: list[Fault]
    longest_s: float
    began: float = field(default_factory=time.monotonic)
    done: Counter[str] = field(default_factory=Counter)
    last_at: float = 0.0
    seen: Seen | None = None
    brokers: dict[str, Broker] = field(default_factory=dict)
    proxies: dict[str, Proxy] = field(default_factory=dict)
    healing: dict[str, float] = field(default_factory=dict)
    renewed: list[str] = field(default_factory=list)

    def stop_proxies(self) -> None:
        """Nothing passes between the brokers any more."""
        for proxy in self.proxies.values():
            proxy.stop()

    def say(self, text: str) -> None:
        """A line for whoever looks on."""
        print(f"{time.monotonic() - self.began:6.1f} {text}", file=sys.stderr, flush=True)

    def run(self) -> dict[str, Any]:
        """Prepare, start, break, wait, look: the figures."""
        try:
            token = self._start()
            self.say("started")
            for number in range(self.campaign.tasks):
                self._submit(token, number)
            self._work()
            for proxy in self.proxies.values():
                proxy.heal()
            self._wait_for_quiet()
        finally:
            stop_all(list(self.brokers.values()))
        self.say("ended")
        parent, *children = self.brokers.values()
        found = verdict(parent, children, self.campaign.files, self.campaign.of_jobs.storage)
        found["wrong"] += self._not_renewed()
        self.say("checked")
        return {
            "seed": self.campaign.seed,
            **found,
            "faults": dict(self.done),
            "seconds": round(time.monotonic() - self.began, 1),
        }

    def _start(self) -> str:
        """Databases, inputs, brokers and proxies; the token of the user. Children are filled while their parent starts."""
        said = {"campaign": self.campaign.dump()}
        inputs = write_inputs(self.campaign)
        template = "tree_template"
        self.databases.make(template)
        setup(self.databases.url(template), "tables", **said)
        self.databases.grant(template)
        folder, software = self.campaign.folder, self.campaign.of_jobs.software
        for name, number in NUMBERS.items():
            one = Broker(name, f"{self.instance}-{name}", number, self.databases, folder, software, CHILDREN.get(name, {}))
            self.databases.make(one.database, template)
            self.brokers[name] = one
        self.say("prepared")
        parent = self.brokers[PARENT]
        files = {name: [astuple(file) for file in of] for name, of in inputs.items()}
        with ThreadPoolExecutor(len(CHILDREN)) as side:
            filled = {name: side.submit(self.brokers[name].setup, name, **said) for name in CHILDREN}
            made = parent.setup(PARENT, inputs=files, **said)
            parent.begin()
            parent.start()
            for name, enrolments in filled.items():
                self._start_child(name, made["children"][name], enrolments.result()["enrolments"])
        return str(made["token"])

    def _start_child(self, name: str, token: str, enrolments: dict[str, str]) -> None:
        """Start a child that reaches its parent through a proxy of its own."""
        child = self.brokers[name]
        proxy = self.proxies[name] = Proxy(("127.0.0.1", self.brokers[PARENT].port), random.Random(self.campaign.seed))
        proxy.start()
        child.more = {"GRIDBROKER_PARENT": f"http://127.0.0.1:{proxy.port}", "GRIDBROKER_PARENT_TOKEN": token}
        child.enrolments = enrolments
        child.begin()
        child.start()

    def _submit(self, token: str, number: int) -> None:
        """Submit a task to the parent, as a user does."""
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Idempotency-Key": f"tree-{number}"}
        url = f"http://127.0.0.1:{self.brokers[PARENT].port}/api/v1/tasks/"
        body = json.dumps(tree_task(self.campaign, number)).encode()
        request = urllib.request.Request(url, body, headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=30):  # noqa: S310 - loopback
                return
        except urllib.error.HTTPError as refused:
            raise RuntimeError(f"task {number} was refused: {refused.read().decode(errors='replace')[:2000]}") from None

    def _work(self) -> None:
        """Do the faults while the work goes on, until all has ended or there is no hope."""
        said_at = 0.0
        self.last_at = time.monotonic()
        while time.monotonic() < self.began + self.longest_s:
            time.sleep(TICK_S)
            self.seen = look(self.brokers[PARENT]) or self.seen
            self._heal()
            if time.monotonic() > said_at + 10:
                said_at = time.monotonic()
                self.say(f"{self._part():.0%} of the files, {len(self.plan)} faults to come")
            if self.plan and self._due():
                self._inject(*self.plan.pop(0))
            if not self.plan and not self.healing and self.seen and self.seen.tasks and not self.seen.open_tasks:
                return

    def _part(self) -> float:
        return self.seen.finished / self.campaign.files if self.seen else 0.0

    def _due(self) -> bool:
        """Whether the next fault may come: spread over the work, in no great haste."""
        gap, part = time.monotonic() - self.last_at, self._part()
        if gap < SHORTEST_GAP_S or (part == 0 and not self.done):
            return False
        n = self.done.total()
        return gap > LONGEST_GAP_S or part >= SPREAD * n / (n + len(self.plan))

    def _inject(self, what: str, name: str) -> None:
        """Do one fault."""
        self.say(f"{what}: {name}, at {self._part():.0%}")
        broker, kind = self.brokers[name], what.partition(" ")[0]
        if kind == "kill":
            part = what.partition(" ")[2]
            broker.kill(*(PARTS if part == "all" else (part,)))
        elif kind == "cut":
            self.proxies[name].silence()
            self.healing[name] = time.monotonic() + self.campaign.lease_s * (SHORT_CUT if what == "cut short" else LONG_CUT)
        elif kind == "resets":
            self.proxies[name].reset_part = RESET_PART
            self.healing[name] = time.monotonic() + RESETS_S
        elif kind == "back":
            broker.back_up()
        else:
            broker.restore()
            self.renewed.append(name)
            self.say(f"{name} was restored")
        self.done[what] += 1
        self.last_at = time.monotonic()

    def _heal(self) -> None:
        for name in [name for name, until in self.healing.items() if time.monotonic() > until]:
            self.proxies[name].heal()
            del self.healing[name]
            self.last_at = time.monotonic()

    def _wait_for_quiet(self) -> None:
        """What the children still have of ended tasks ends too."""
        end = time.monotonic() + 60.0
        while (left := open_work(list(self.brokers.values()))) and time.monotonic() < end:
            time.sleep(TICK_S)
        self.say(f"left: {left}" if left else "nothing is left")

    def _not_renewed(self) -> Iterator[str]:
        """Brokers that were restored, and did not find out by themselves."""
        for name in self.renewed:
            ((why,),) = self.brokers[name].rows("SELECT why FROM workqueues_installation")
            if why != "an older state of the database came back":
                yield f"{name} was restored and says of its incarnation: {why}"


Plan = Callable[[random.Random], list[Fault]]


@contextmanager
def prepared(first: str, seed: int, longest_s: float, plan: Plan, **size: Any) -> Iterator[Tree]:
    """A tree on empty databases of an instance of its own."""
    few_processes()
    with own_instance(first) as instance, ExitStack() as stack:
        servers = stack.enter_context(attached(instance, need_redis=True, follow=True))
        folder = ROOT / STATE / instance / "campaign"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        dice = random.Random(seed)
        tree = Tree(TreeCampaign(folder, seed, **size), instance, Databases(servers), dice, plan(dice), longest_s)
        stack.callback(tree.stop_proxies)
        yield tree


def table(result: dict[str, Any]) -> str:
    """The figures, one a line."""
    lines = []
    for name, value in result.items():
        if name != "wrong":
            shown = ", ".join(f"{n} {what}" for what, n in value.items()) or "0" if isinstance(value, dict) else value
            lines.append(f"{name:>10}  {shown}")
    return "\n".join([*lines, *result["wrong"]])


def main() -> int:
    """Run as the arguments say; exit code 1 when something is lost, twice or stuck."""
    parser = argparse.ArgumentParser(description="A tree of brokers works while each is killed, cut off and restored.")
    parser.add_argument("--seed", type=int, default=None, help="order of the faults; the same seed, the same order")
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--small", action="store_true", help="one kill and one partition alone")
    parser.add_argument("--calm", action="store_true", help="no fault at all")
    parser.add_argument("--lease", type=float, default=5.0, metavar="S", help="of elements; more where a restart takes long")
    parser.add_argument("--longest", type=float, default=1800.0, metavar="S", help="after this time what is open is stuck")
    options = parser.parse_args()
    seed = random.randrange(10**6) if options.seed is None else options.seed
    for name in FOREIGN:
        os.environ.pop(name, None)
    os.environ["GRIDBROKER_PROFILE"] = "local"
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    small: Plan = lambda _: [] if options.calm else list(SMALL_PLAN)  # noqa: E731
    plan = small if options.small or options.calm else full_plan
    with prepared("tree", seed, options.longest, plan, jobs=options.jobs, lease_s=options.lease) as tree:
        result = tree.run()
    print(table(result), file=sys.stderr, flush=True)
    print(json.dumps(result))
    return 1 if result["wrong"] or result["lost"] or result["stuck"] else 0


if __name__ == "__main__":
    assert threading.current_thread() is threading.main_thread()
    sys.exit(main())
