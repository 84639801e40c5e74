"""Jobs that several queues may run: cut so that each of them can, with one slot that suits all (row X4, decision H7).

Not here: whether a task has such jobs (`brokerage.rules.placement.binding`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from brokerage.rules.facts.ask import Ask
from brokerage.rules.facts.cpu_classes import on_ladder
from brokerage.rules.facts.snapshot import Queues
from brokerage.rules.placement.binding import Binding, spread
from brokerage.rules.placement.distribution import Block, ChosenQueue
from brokerage.rules.placement.new_job import Place, PlacedJob
from brokerage.rules.placement.slots import DISK_STEP_MB, LARGEST_NEED, RAM_STEP_MB, Need, Slot, SlotsAt, rounded_up
from workqueues.rules.jobs.job_size import Budget
from workqueues.splitters.protocol import JobLimits, JobPlan

OPEN = ""
"""Stands for all queues of open jobs together, where queues are drawn by name."""
LEAST = 2
"""Queues to which a job is open; that of a single one is known when it is made."""


def smallest(limits: Iterable[JobLimits]) -> JobLimits:
    """What a job may take that is to run at each of several queues."""
    all_limits = list(limits)
    least: dict[tuple[object, ...], Budget] = {}
    for budget in (budget for each in all_limits for budget in each.budgets):
        kind = (budget.per_byte, budget.per_event, budget.below, budget.hard, budget.what)
        if kind not in least or budget.most < least[kind].most:
            least[kind] = budget
    return replace(
        all_limits[0],
        max_files=min(each.max_files for each in all_limits),
        max_inputs=min(each.max_inputs for each in all_limits),
        budgets=tuple(least.values()),
    )


def together(queues: Sequence[ChosenQueue]) -> ChosenQueue:
    """The queues of open jobs as one: what each has room for, it has."""
    return ChosenQueue(OPEN, 1.0, room=sum(max(queue.room, 0) for queue in queues))


def one_then_others(there: Sequence[ChosenQueue], chosen: Sequence[ChosenQueue]) -> list[ChosenQueue]:
    """The queues of open jobs as one; behind it the other chosen ones, to which input must come.

    These get jobs of their own once open ones fill those: else their slots would idle beside input that is due (decision B18).
    """
    names = {queue.name for queue in there}
    others = [replace(queue, untouched=False, last=True) for queue in chosen if queue.name not in names]
    return [together(there), *others]


class _Alike(NamedTuple):
    """Queues at which a job needs the same, with their limits of memory, disk and time; 0: none."""

    slots: SlotsAt
    most: tuple[float, float, float]
    places: list[Place]


class OpenSlots:
    """What open jobs require of a slot, and where they may go: to those of the queues at which they need no more than fits there.

    `ask` as the policy prepared it; `ids`: of queues, by name; `compensation` as of SlotsAt.
    """

    def __init__(
        self, ask: Ask, queues: Queues, chosen: Sequence[ChosenQueue], ids: Mapping[str, int], compensation: float
    ) -> None:
        alike: dict[tuple[float, ...], _Alike] = {}
        self._order: dict[str, int] = {}
        for queue in chosen:
            row = queues.index[queue.name]
            name = queues.own_names[row]
            most = (float(queues.maxrss[row]), float(queues.maxwdir[row]), float(queues.maxtime[row]))
            kind = (float(queues.corecount[row]), float(queues.corepower[row]), *most)
            if kind not in alike:
                alike[kind] = _Alike(SlotsAt(ask, queues, row, compensation), most, [])
            alike[kind].places.append(Place(ids[name], name, str(queues.storage[row])))
            self._order[name] = len(self._order)
        self._alike = list(alike.values())
        self._known: dict[tuple[int, int], tuple[Slot, tuple[Place, ...]]] = {}

    def of(self, plan: JobPlan) -> tuple[Slot, tuple[Place, ...]]:
        """The slot for a job, and its places in the order of the queues."""
        key = (plan.size, plan.n_events)
        if key not in self._known:
            self._known[key] = self._widest([alike.slots.need(*key) for alike in self._alike])
        return self._known[key]

    def _widest(self, needs: Sequence[Need]) -> tuple[Slot, tuple[Place, ...]]:
        """With the longest walltime of those that suit most places: a slow queue must not keep out all with short slots."""
        ram, disk = max(need.ram_mb for need in needs), max(need.disk_mb for need in needs)
        suited: list[tuple[int, float, list[_Alike]]] = []
        for walltime in {need.walltime_s for need in needs}:
            fits = [
                alike
                for need, alike in zip(needs, self._alike, strict=True)
                if need.walltime_s <= walltime and _holds(alike.most, (ram, disk, walltime))
            ]
            suited.append((sum(len(alike.places) for alike in fits), walltime, fits))
        _, walltime, fits = max(suited, key=lambda one: one[:2])
        most_ram, most_disk, most_time = (_least(alike.most[i] for alike in fits) for i in range(3))
        slot = Slot(
            needs[0].core_count,
            rounded_up(ram, RAM_STEP_MB, most_ram),
            rounded_up(disk, DISK_STEP_MB, most_disk),
            on_ladder(min(walltime, LARGEST_NEED), most_time),
        )
        places = sorted((place for alike in fits for place in alike.places), key=lambda place: self._order[place.queue])
        return slot, tuple(places)


def _holds(most: Sequence[float], needs: Sequence[float]) -> bool:
    return all(not limit or need <= limit for limit, need in zip(most, needs, strict=True))


def _least(limits: Iterable[float]) -> float:
    """The smallest limit; 0 where there is none."""
    return min((limit for limit in limits if limit), default=0.0)


def open_jobs(block: Block, slots: OpenSlots) -> list[PlacedJob | JobPlan]:
    """The jobs of a block that all queues share; the plan of one that fewer than two of them can run comes back as it is."""
    placed: list[PlacedJob | JobPlan] = []
    for plan in block.jobs:
        slot, places = slots.of(plan)
        placed.append(PlacedJob(*places[0], plan, slot, places, is_open=True) if len(places) >= LEAST else plan)
    return placed


def to_be_opened(job: PlacedJob, slots: OpenSlots) -> PlacedJob:
    """A job of one queue with the places to which it may be opened later; as it is where there is no other."""
    slot, places = slots.of(job.plan)
    if len(places) < LEAST or all(place.queue != job.queue for place in places):
        return job
    return job._replace(slot=slot, places=places)


def jobs_by_queue(jobs: Iterable[PlacedJob], turn: int) -> Counter[str]:
    """How many jobs count at each queue: those of their own, and 1/k of open ones at each of their k."""
    counts: Counter[str] = Counter()
    of_places: Counter[tuple[Place, ...]] = Counter()
    for job in jobs:
        if job.is_open:
            of_places[job.places] += 1
        else:
            counts[job.queue] += 1
    for places, n in of_places.items():
        for place, some in zip(places, spread(n, len(places), turn), strict=True):
            counts[place.queue] += some
        turn += n
    return counts


def only_early(binding: Binding, queues: int) -> str:
    """Why the jobs of a late task get their queue now, where so many queues may run them and have their input; else empty."""
    if queues >= LEAST or not binding.is_late:
        return binding.why_early
    return "one queue only may run them and has their input" if queues else "no queue has all of their input"
