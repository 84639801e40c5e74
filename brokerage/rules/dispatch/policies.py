"""The dispatch policies that come with the broker: `panda` and `dirac` (decision H4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import groupby

from brokerage.rules.dispatch.dispatch_policy import FIRST_JOB, DispatchPolicy, JobWindow, Turn, dispatch_policy
from brokerage.rules.dispatch.random_choice import WINDOW, QueueChance, fresh, queues_in_turn, winning_priority_of
from brokerage.rules.dispatch.waiting_list import Fitting, WaitingQueue
from brokerage.rules.facts.cpu_classes import DOCUMENT, cpu_class


@dispatch_policy
class Panda(DispatchPolicy):
    """By shares: at each node the one that used least of its target, then the highest priority, then the oldest job."""

    name = "panda"

    def order(self, fitting: Fitting, turn: Turn) -> Iterator[WaitingQueue]:
        """Units that stand equally are served together, by priority and age."""
        stands = {unit: turn.places(unit) for unit in fitting.units()}
        for _, equal in groupby(sorted(stands, key=stands.__getitem__), key=stands.__getitem__):
            yield from fitting.of_units(list(equal))

    def cpu_class(self, cpu_time_s: int) -> int:
        """Exactly: walltimes, of which it is made, are steps of a ladder (decision H5)."""
        return cpu_time_s


@dispatch_policy
class Dirac(DispatchPolicy):
    """At random, as seed 002 has it: the highest class of CPU time, then RAND() / priority, then the oldest jobs."""

    name = "dirac"
    by_group = True

    def order(self, fitting: Fitting, turn: Turn) -> Iterator[WaitingQueue]:
        """The others of the highest class follow, should the first have no job; then those of the next class."""
        proportional = bool(turn.options.get("PROPORTIONAL_CHOICE", False))
        classes = fitting.by_cpu_class(self.cpu_class) if turn.options.get("HIGHEST_CPU_FIRST", True) else iter([list(fitting)])
        for waiting in classes:
            chances = {number: QueueChance(0, one.weight) for number, one in enumerate(waiting)}
            for number in queues_in_turn(chances, fresh(turn.dice), proportional=proportional):
                yield waiting[number]

    def cpu_class(self, cpu_time_s: int) -> int:
        """The four classes of the document."""
        return cpu_class(cpu_time_s, DOCUMENT) if cpu_time_s > 0 else 0

    def job_window(self, waiting: WaitingQueue, turn: Turn, priorities: Callable[[int], Mapping[float, int]]) -> JobWindow:
        """The user priority by RAND() / user priority, each job counting on its own; of its ten oldest jobs one at random."""
        proportional = bool(turn.options.get("PROPORTIONAL_CHOICE", False))
        real = bool(turn.options.get("REAL_PRIORITY", False))
        winner = winning_priority_of(priorities(waiting.id), turn.dice, real=real, proportional=proportional)
        return FIRST_JOB if winner is None else JobWindow(int(winner), WINDOW)
