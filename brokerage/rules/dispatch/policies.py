"""The dispatch policies that come with the broker: `panda` and `dirac` (decision H4)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

from brokerage.rules.dispatch.dispatch_policy import FIRST_JOB, DispatchPolicy, JobWindow, Turn, dispatch_policy
from brokerage.rules.dispatch.random_choice import WINDOW, QueueChance, fresh, queues_in_turn, winning_priority_of
from brokerage.rules.dispatch.waiting_list import Fitting, Unit, WaitingQueue
from brokerage.rules.facts.cpu_classes import DOCUMENT, cpu_class


@dispatch_policy
class Panda(DispatchPolicy):
    """By shares: at each node the one that used least of its target, then the highest priority, then the oldest job.

    VOs take turns at random, each as often as the others: where a share stands says nothing of work outside its tree, and who has
    no shares must not wait until all shares of the others are served.
    """

    name = "panda"

    def order(self, fitting: Fitting, turn: Turn) -> Iterator[WaitingQueue]:
        """Those of the VO whose turn it is, then the others; units of a VO that stand equally together, by priority and age."""
        vos, units = fitting.vos, fitting.units()
        # Of a single one nobody asks: after each job that may put its whole tree in order anew.
        places = [*map(turn.places, units)] if len(units) > 1 else [0.0] * len(units)
        if len(vos) == 1 and places.count(places[0]) == len(places):
            yield from fitting.of_units(units)
            return
        turns = {vo: number for number, vo in enumerate(turn.dice.sample(vos, len(vos)) if len(vos) > 1 else vos)}
        stands: defaultdict[tuple[int, float], list[Unit]] = defaultdict(list)
        for unit, place in zip(units, places, strict=True):
            stands[turns[unit.vo], place].append(unit)
        for _, equal in sorted(stands.items()):
            yield from fitting.of_units(equal)

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
