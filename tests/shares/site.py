"""A saturated site in virtual time: real database, agents and matching; slots whose jobs end by schedule.

The agents share and generate run at their default periods of that time, and what the matching keeps for a moment is kept for a
moment of it, so what is seen depends on no machine's speed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from heapq import heappop, heappush
from types import SimpleNamespace
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import pytest
from django.db.models.functions import Now

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.duties import AGENTS
from broker_site.foundation.agency.run import run_agent
from brokerage.api.matching import TRIES, policy_of
from brokerage.ledger.heartbeats import SignOfLife, beat
from brokerage.ledger.lease import Ask, HeldAtMost, Lease, lease
from brokerage.ledger.pilots import end_idling, note_vain_ask, register
from brokerage.models import ComputingQueue, Pilot, QueueStorage
from brokerage.queries import serving_since, waiting
from brokerage.queries.waiting import WAITING, AskedQueue
from brokerage.rules.dispatch.requirement import Resource
from brokerage.rules.dispatch.waiting_list import WaitingQueue
from tests.builders import grid, parameters, submitted
from tests.flow.steps import end, placed_at
from tests.shares.occupancy import Held
from workqueues.models import GlobalShare, ShareStanding, Task
from workqueues.rules.shares.tree import Node, targets, walk

SMALL, LARGE = 1, 8
"""Cores of the slots."""
POWER = 10.0
"""HS06 of a core at the queues."""
MORE = 2.0
"""Each leaf has so many times the work that its share does in the time."""
EVENTS = 10
LEASE_S = 3600.0


class Kind(NamedTuple):
    """Work of a leaf: cores of its jobs, and the seconds that they run, half as long or half as long again by chance."""

    cores: int
    run_s: float


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot of the site, with its pilot."""

    queue: ComputingQueue
    cores: int
    pilot: UUID


def queues_at_one_site(n: int) -> list[ComputingQueue]:
    """Unified queues of one site, for jobs of up to eight cores."""
    (first,) = grid("Q0")
    ComputingQueue.objects.filter(id=first.id).update(capability="ucore", corecount=LARGE, maxrss=LARGE * 2000)
    made = [ComputingQueue.objects.get(id=first.id)]
    for number in range(1, n):
        queue = ComputingQueue.objects.get(id=first.id)
        queue.pk, queue.name = None, f"Q{number}"
        queue.save(force_insert=True)
        for at in QueueStorage.objects.filter(queue=first):
            QueueStorage.objects.create(queue=queue, storage=at.storage, access=at.access, position=at.position)
        made.append(queue)
    return made


def plant(tree: Sequence[Node]) -> None:
    """The shares, as an operator would have them: a leaf takes the processing type of its name."""
    for place, (node, parent, _) in enumerate(walk(tree)):
        kind = "" if node.children else f"{node.name.lower()}$"
        GlobalShare.objects.create(
            name=node.name, parent_id=parent or None, vo="demo", value=node.value, position=place, processing_type=kind
        )


@dataclass(slots=True)
class SaturatedSite:
    """The site: its slots, the jobs that run there until when, and those that ran."""

    slots: list[Slot]
    kinds: dict[int, tuple[str, Kind]] = field(default_factory=dict)
    """Task -> its leaf, and what its jobs are like."""
    held: list[Held] = field(default_factory=list)
    now: float = 0.0
    """Virtual time, s."""
    _free: list[Slot] = field(default_factory=list)
    _ends: list[tuple[float, int, Slot, Lease]] = field(default_factory=list)
    _dice: random.Random = field(default_factory=lambda: random.Random(15))

    @classmethod
    def of(cls, small: int, large: int, queues: int) -> SaturatedSite:
        """So many slots of one core and of eight, dealt to so many queues; each has a pilot that asks."""
        made, slots = queues_at_one_site(queues), []
        for number, cores in enumerate([LARGE] * large + [SMALL] * small):
            queue = made[number % queues]
            row = Pilot(id=uuid4(), queue=queue, host="n1", slot=f"s{number}", core_count=cores, memory_mb=0, disk_mb=0)
            register(row)
            slots.append(Slot(queue, cores, row.id))
        return cls(slots)

    @property
    def cores(self) -> int:
        return sum(slot.cores for slot in self.slots)

    def submit(self, tree: Sequence[Node], work: Mapping[str, Sequence[Kind]], seconds: float, **more: Any) -> None:
        """A task for each kind of work of each leaf, each with more of it than the share can do in the time."""
        part = targets(tree, 1.0)
        for leaf, kinds in work.items():
            for kind in kinds:
                jobs = int(MORE * part[leaf] * self.cores / kind.cores * (seconds / kind.run_s + 1)) + 10
                wanted = {"coreCount": kind.cores, "processingType": leaf.lower(), "nEvents": EVENTS * jobs, **more}
                name = f"{leaf}.{kind.cores}.{kind.run_s:g}"
                production = {"prodSourceLabel": "managed", "taskType": "prod", "nEventsPerJob": EVENTS}
                self.kinds[submitted(parameters(name, **production, **wanted)).id] = leaf, kind
        for agent in ("refine", "feed", "assign", "share"):
            run_agent(agent, looked=True)

    def run(self, seconds: float) -> None:
        """Let so much time go by: jobs end, free slots ask, and the agents run when their periods are over."""
        with pytest.MonkeyPatch.context() as patch:
            for module in (waiting, serving_since):
                patch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now))
            WAITING.forget()
            self._run(seconds)
        WAITING.forget()
        self.held = [job._replace(end=min(job.end, seconds)) for job in self.held]

    def _run(self, seconds: float) -> None:
        self._free = list(self.slots)
        self._dice.shuffle(self._free)
        due = dict.fromkeys(("generate", "share"), 0.0)
        self._ask_all(0.0)
        while (now := min(self._ends[0][0] if self._ends else seconds, *due.values())) < seconds:
            self.now = now
            for name in [name for name, at in due.items() if at <= now]:
                Task.objects.filter(next_look_at__isnull=False).update(next_look_at=None)
                if name == "share":
                    _let_pass(AGENTS[name].period_s)
                run_agent(name, looked=True)
                due[name] += AGENTS[name].period_s
            while self._ends and self._ends[0][0] <= now:
                _, _, slot, leased = heappop(self._ends)
                end(leased)
                self._free.append(slot)
            self._ask_all(now)

    def _ask_all(self, now: float) -> None:
        """Every free slot asks once."""
        asking, self._free = self._free, []
        for slot in asking:
            if (leased := ask(slot)) is None:
                self._free.append(slot)
                continue
            leaf, kind = self.kinds[leased.task_id]
            until = now + kind.run_s * self._dice.uniform(0.5, 1.5)
            self.held.append(Held(leaf, POWER * kind.cores, now, until))
            heappush(self._ends, (until, leased.job_id, slot, leased))


def _let_pass(seconds: float) -> None:
    """The last count of the shares is so old by now."""
    ShareStanding.objects.update(at=Now() - timedelta(seconds=seconds))


def ask(slot: Slot) -> Lease | None:
    """What the pilot of a slot gets when it asks; it runs then."""
    asked = AskedQueue(slot.queue.id, partial(policy_of, slot.queue.name), gdpconfig.component("dispatch"))
    resource = Resource(slot.queue.name, cores=slot.cores, tags=None, grid_ces=None)
    tried: list[WaitingQueue] = []
    request, most = uuid4(), HeldAtMost(slot.cores, 1)

    def offers() -> Iterator[int | Ask]:
        for fresh, _ in TRIES[:2]:
            for one, _ in WAITING.offers(asked, resource, fresh=fresh):
                tried.append(one)
                ask = Ask(one.id, slot.pilot, request, LEASE_S, most)
                yield placed_at(slot.queue.id, ask, one) if one.is_open else ask

    leased = lease(offers(), slot.pilot, request, LEASE_S, most)
    if leased is None:
        note_vain_ask(slot.pilot, slot.queue.id, resource, 1.0)
        return None
    WAITING.handed_out(tried[-1], POWER * tried[-1].requirement.cores)
    end_idling([slot.pilot])
    beat([SignOfLife(leased.job_id, leased.epoch, "running")])
    return leased
