"""Files that share jobs need the same memory; the hungriest come first, each group once."""

from __future__ import annotations

from brokerage.rules.placement.memory_turns import MemoryTurns
from workqueues.rules.jobs.event_ranges import InputFile
from workqueues.rules.jobs.split_rule import SplitRules

FILES = [InputFile(n, 1, f"f{n}", ram_count=ram) for n, ram in enumerate((0, 3000, 0, 2000, 3000, 900))]


def ids(turns: MemoryTurns) -> list[int]:
    return [file.id for file in turns.chosen(FILES)]


def test_each_need_has_its_turn() -> None:
    turns = MemoryTurns(1000, SplitRules())
    seen = []
    while True:
        seen.append((ids(turns), turns.more, turns.last))
        if not turns.more:
            break
    assert seen == [([1, 4], True, False), ([3], True, False), ([0, 2, 5], False, True)]
    assert ids(turns) == []


def test_below_what_the_task_asks_for_all_are_equal() -> None:
    turns = MemoryTurns(4000, SplitRules())
    assert ids(turns) == [0, 1, 2, 3, 4, 5]
    assert (turns.more, turns.last) == (False, True)


def test_what_belongs_together_stays_together() -> None:
    for rules in (SplitRules(boundary=3), SplitRules(skip_short_output=True)):
        turns = MemoryTurns(0, rules)
        assert ids(turns) == [0, 1, 2, 3, 4, 5]
        assert not turns.more
