"""Which files of a dataset share jobs: those whose next try gets the same memory. Pure.

Source: facts on commands and retry 3.3. A job asks for the memory of its hungriest file, so files that never ran out of it would
wait for large slots beside one that did. Not where a boundary is kept whole, or short jobs are dropped: there files belong
together whatever they need.
"""

from __future__ import annotations

from collections.abc import Sequence

from workqueues.rules.jobs.event_ranges import InputFile
from workqueues.rules.jobs.split_rule import SplitRules
from workqueues.splitters.runs import WHOLE


class MemoryTurns:
    """The groups of one dataset that one run makes jobs of, the hungriest first, each once.

    `of_task`: the least that every job asks for, in the unit of the task. `more`: whether files are left for another turn;
    `last`: whether files that come later may join those of this one.
    """

    def __init__(self, of_task: int, rules: SplitRules) -> None:
        self._of_task, self._apart = of_task, rules.boundary < WHOLE and not rules.skip_short_output
        self._tried: set[int] = set()
        self.more, self.last = False, True

    def chosen(self, files: Sequence[InputFile]) -> list[InputFile]:
        """Those of the picked files that share jobs in this turn."""
        if not self._apart:
            return list(files)
        all_needs = {max(ram, self._of_task) for ram in {file.ram_count for file in files}}
        needs = sorted(all_needs - self._tried, reverse=True)
        self.more, self.last = len(needs) > 1, not needs or needs[0] == min(all_needs)
        if not needs:
            return []
        self._tried.add(needs[0])
        if len(all_needs) == 1:
            return list(files)
        return [file for file in files if max(file.ram_count, self._of_task) == needs[0]]
