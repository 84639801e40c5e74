"""How many more jobs may wait at a queue, and the requirements that a job states there. Source: facts on splitting 8.1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from math import ceil, floor
from typing import NamedTuple

import numpy as np

from brokerage.rules.decision.pipeline import Choice
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.cpu_classes import on_ladder
from brokerage.rules.facts.needs import job_walltime_s, memory_mb, output_mb, size_mb, slot_cores, slot_power
from brokerage.rules.facts.overload import LEAST_QUEUED
from brokerage.rules.facts.snapshot import BUSY, JOBS, Queues
from brokerage.rules.placement.distribution import ChosenQueue
from brokerage.rules.placement.job_limits import walltime_per_byte
from brokerage.rules.placement.room import NO_SHARE, UNKNOWN, QueueLoad

RAM_STEP_MB, DISK_STEP_MB = 100, 500
"""Requirements are rounded up to these, so that jobs of nearly equal needs share a task queue."""

LARGEST_NEED = 2_000_000_000
"""More than any slot has, and as much as its column holds: of an input that claims to be larger."""

ANALYSIS = "analysis"
"""Activity of the policies by which a queue is full when it is overloaded."""


class Slot(NamedTuple):
    """What a job asks of a pilot: cores, MB, MB, s; 0 = no demand."""

    core_count: int
    ram_mb: int
    disk_mb: int
    walltime_s: int


class Need(NamedTuple):
    """The same as a job needs it, before anything is rounded."""

    core_count: int
    ram_mb: float
    disk_mb: float
    walltime_s: float


class JobGrants:
    """Jobs given to queues since the grid was looked at, by share; a pseudo-queue counts as its unified queue.

    `loads`: slots and jobs of each queue, as they were then; `seen` stands for them where something made of them is kept.
    `parts`: of what waits at a queue, what each of several shares may have (`room.parts_of_shares`). `in_turn`: those of them
    that have a turn in this round; until they had it, their part is kept for them.
    """

    def __init__(
        self,
        loads: Mapping[str, QueueLoad] | None = None,
        parts: Mapping[str, float] | None = None,
        in_turn: Iterable[str] = (),
    ) -> None:
        self._loads, self._parts = loads or {}, parts or {}
        self._in_turn = {share for share in in_turn if share in self._parts}
        self.kept = False
        """Whether a share got less than there was because something was kept for others."""
        self.seen = object()
        self._jobs: Counter[tuple[str, str]] = Counter()
        self._all: Counter[str] = Counter()

    @contextmanager
    def leaving_misfits_aside(self, queues: Iterable[str]) -> Iterator[None]:
        """For a while the jobs that fit no idle slot of these queues take no room there: for a job that does."""
        before = self._loads, self.seen
        self._loads = {**self._loads, **{queue: self._loads.get(queue, UNKNOWN).without_misfits() for queue in queues}}
        self.seen = object()
        try:
            yield
        finally:
            self._loads, self.seen = before

    def any_misfits(self) -> bool:
        """Whether jobs wait somewhere that fit no slot which idles there."""
        return any(load.misfits for load in self._loads.values())

    def misfits(self, queue: str, share: str | None) -> int:
        """Jobs that fit no idle slot of their queue and take room there: of a share, or (None) of all."""
        misfits = self._loads.get(queue, UNKNOWN).misfits
        return sum(misfits.values()) if share is None else misfits.get(share, 0)

    def idle(self) -> Mapping[str, int]:
        """Queue -> slots that idle there for whoever comes first, below zero where more jobs wait; of those that have slots."""
        return {queue: load.idle() - self._all[queue] for queue, load in self._loads.items() if load.slots}

    def add(self, share: str, jobs: Mapping[str, int]) -> None:
        """Count jobs of a share: queue -> how many more."""
        for queue, n in jobs.items():
            self._jobs[share, queue] += n
            self._all[queue] += n

    def had_turn(self, share: str) -> None:
        """Nothing is kept for the share any more."""
        self._in_turn.discard(share)

    def at(self, queue: str, share: str | None) -> int:
        """Jobs given to a queue: of a share, or (None) of all."""
        return self._all[queue] if share is None else self._jobs[share, queue]

    def queues(self) -> Iterable[str]:
        """Those that were given any."""
        return self._all

    def room(self, queue: str, limit: int, share: str | None, *, local: bool = True) -> int:
        """Jobs of a share that the queue may still get in this round (decision B19); `limit` as of `limit_of`."""
        given = self._all[queue], self._jobs[share or "", queue]
        room = self._room(queue, limit, share, *given, local=local)
        return room if room <= 0 or not self._in_turn else min(room, self._beside_kept(queue, limit, share, room))

    def first_room(self, queue: str, limit: int, share: str | None) -> int:
        """The same before anything was given."""
        return self._room(queue, limit, share, 0, 0)

    def _room(self, queue: str, limit: int, share: str | None, given: int, given_share: int, *, local: bool = True) -> int:
        load = self._loads.get(queue, UNKNOWN)
        room = load.room(limit, local=local) - given
        part = self._parts.get(share or "")
        if part is None or share is None:
            return room
        return min(room, max(load.room_of_share(share, limit, part) - given_share, load.idle() - given))

    def _beside_kept(self, queue: str, limit: int, share: str | None, room: int) -> int:
        """Of this room what is left beside the parts of shares that have not had their turn, but its own part in any case."""
        load = self._loads.get(queue, UNKNOWN)
        kept = sum(load.part_left(one, limit, self._parts[one]) for one in self._in_turn - {share or NO_SHARE})
        left = floor(load.room(limit) - self._all[queue] - kept)
        if left >= room:
            return room
        self.kept |= load.idle() > self._all[queue]
        part = None if share is None else self._parts.get(share)
        own = 0.0 if part is None or share is None else load.part_left(share, limit, part) - self._jobs[share, queue]
        return max(left, ceil(round(own, 6)), 0)

    def any_idle(self) -> bool:
        """Whether some queue has a slot that idles and for which no job waits."""
        return any(n > 0 for n in self.idle().values())

    def untouched(self, queue: str) -> bool:
        """Whether no job is there, in any state."""
        return not self._loads.get(queue, UNKNOWN).jobs and not self._all[queue]


def limit_of(activity: str, share: str | None, config: Config) -> int:
    """Jobs that may always wait at a queue, for a policy of this activity: of analysis at least until a queue is overloaded.

    `config`: component jobbroker.
    """
    of_share = config.get(f"NQUEUELIMITSITE_{share}") if share else None
    limit = int(config["NQUEUELIMITSITE"] if of_share is None else of_share)
    return max(limit, LEAST_QUEUED) if activity == ANALYSIS else limit


def total_room(queues: Queues, limit: int, grants: JobGrants, share: str | None) -> int:
    """Jobs that may still be made for all queues together; parts of a unified queue have the room of the whole.

    As nothing is known of the input yet, jobs whose input moves take no room.
    """

    def free(table: Queues) -> tuple[int, dict[str, int]]:
        """All room before anything was given, and how many jobs of the share each queue may still have waiting."""
        misfits = [grants.misfits(queue, share) for queue in table.own_names]
        left = np.maximum(table.cap(limit) - table.waiting_or_defined - misfits, 0).tolist()
        by_queue = dict(zip(table.own_names, left, strict=True))
        return sum(max(min(left, grants.first_room(queue, limit, share)), 0) for queue, left in by_queue.items()), by_queue

    total, by_queue = queues.derived(("room", limit, grants.seen, share), free, ("name", "unified_name", *JOBS, *BUSY))
    for queue in grants.queues():
        left = by_queue.get(queue, 0)
        total -= max(min(left, grants.first_room(queue, limit, share)), 0)
        total += max(min(left - grants.at(queue, share), grants.room(queue, limit, share)), 0)
    return total


def chosen_queues(
    chosen: Iterable[Choice], queues: Queues, limit: int, grants: JobGrants, share: str | None
) -> list[ChosenQueue]:
    """The chosen queues that can take outputs, with what waits there and how much they may get.

    Of several parts of one unified queue the best. Jobs whose input moves count where that of the task must move too (decision
    B9). What was given meanwhile counts as waiting and lowers the weight.
    """
    by_queue: dict[str, ChosenQueue] = {}
    names = queues.own_names
    for choice in chosen:
        queue, row = names[choice.row], choice.row
        if queue not in by_queue and queues.storage[row]:
            waiting, given = int(queues.queued[row]), grants.at(queue, share)
            of_share = int(queues.cap(limit)[row]) - waiting - given - grants.misfits(queue, share)
            room = min(of_share, grants.room(queue, limit, share, local=bool(queues.local[row])))
            seen = ChosenQueue(choice.name, choice.weight, waiting).filled(given)
            by_queue[queue] = replace(seen, room=room, untouched=grants.untouched(queue))
    return list(by_queue.values())


class SlotsAt:
    """What the jobs of an ask require of a slot at one queue: rounded up, within the limits of the queue.

    `ask` as the policy prepared it. Memory counts times `compensation`, as the policy compared it: a job asks for no more than
    what the queue was found to give. What all jobs have in common is worked out once.
    """

    def __init__(self, ask: Ask, queues: Queues, row: int, compensation: float) -> None:
        at_row = slice(row, row + 1)
        cores = slot_cores(ask, queues.corecount[at_row])
        self._ask = ask
        self._cores = int(cores[0]) if ask.core_count == 0 else max(ask.core_count or 1, 1)
        self._needed_ram = float(memory_mb(ask, cores)[0]) * compensation
        self._ram = rounded_up(self._needed_ram, RAM_STEP_MB, float(queues.maxrss[row]))
        self._most_disk, self._most_time = float(queues.maxwdir[row]), float(queues.maxtime[row])
        self._work_mb = size_mb(ask.work_disk_count, ask.work_disk_unit)
        self._power = float(slot_power(ask, queues)[row])
        self._per_byte = walltime_per_byte(ask)
        self._known: dict[tuple[int, int], Slot] = {}

    def of(self, input_bytes: int, n_events: int) -> Slot:
        """That of a job with so much input and so many events."""
        if (slot := self._known.get((input_bytes, n_events))) is None:
            slot = self._known[input_bytes, n_events] = self._slot(input_bytes, n_events)
        return slot

    def _slot(self, input_bytes: int, n_events: int) -> Slot:
        need = self.need(input_bytes, n_events)
        return Slot(
            self._cores,
            self._ram,
            rounded_up(min(need.disk_mb, self._most_disk) if self._most_disk else need.disk_mb, DISK_STEP_MB, self._most_disk),
            on_ladder(min(need.walltime_s, LARGEST_NEED), self._most_time),
        )

    def need(self, input_bytes: int, n_events: int) -> Need:
        """What a job with so much input and so many events needs, before anything is rounded."""
        input_mb = input_bytes / 1e6
        disk = input_mb + output_mb(self._ask, n_events, input_mb) + self._work_mb
        return Need(self._cores, self._needed_ram, disk, self._walltime_s(input_bytes, n_events))

    def _walltime_s(self, input_bytes: int, n_events: int) -> float:
        """Expected walltime, s; 0 where it is not known."""
        if self._per_byte:
            return self._per_byte * input_bytes
        if self._ask.walltime_s:
            return self._ask.walltime_s
        return job_walltime_s(self._ask, n_events, self._power) or 0.0


def rounded_up(need: float, step: int, limit: float) -> int:
    rounded = -(-int(-(-min(need, LARGEST_NEED) // 1)) // step) * step
    return int(min(rounded, limit)) if 0 < limit < rounded and need <= limit else rounded
