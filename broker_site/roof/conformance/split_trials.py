"""Random questions for splitters: files, rules, limits and secondary datasets, also those that nobody expects.

Here: what a question is made of. Not here: what is asked of a splitter (`broker_site.roof.conformance.splitters`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from broker_site.foundation.kernel.dice import dice
from workqueues.rules.jobs.dataset_attributes import Attributes
from workqueues.rules.jobs.job_size import Budget
from workqueues.rules.jobs.split_rule import SplitRules
from workqueues.splitters.choice import Kind, SplitterDeclaration
from workqueues.splitters.protocol import Files, JobLimits, Secondary

NAMES = ("lab.run{}.left", "data_{}", "{}", "x-{}_y.z", "", "ünï{}")
"""Forms of names of files; a number that repeats is filled in."""


@dataclass(frozen=True, slots=True)
class SplitTrial:
    """One question; the same number gives the same one."""

    number: int
    kind: Kind
    files: Files
    rules: SplitRules
    limits: JobLimits
    secondaries: tuple[Secondary, ...]
    most: int | None

    def __str__(self) -> str:
        return f"question {self.number}, {self.kind}: {len(self.files)} pieces, {self.most} jobs asked for, {self.rules}"


def split_trial(splitter: SplitterDeclaration, number: int) -> SplitTrial:
    """The question of that number for a splitter, of one of the kinds that it cuts."""
    random = dice("split", splitter.name, number)
    kind = random.choice(splitter.kinds)
    return SplitTrial(
        number,
        kind,
        _files(random, kind),
        _rules(random, kind, "events" in splitter.kinds),
        _limits(random),
        () if kind == "numbers" else tuple(_secondary(random) for _ in range(random.choice((0, 0, 1, 2)))),
        random.choice((None, None, 1, 3)),
    )


def _files(random: Random, kind: Kind) -> Files:
    n = random.choice((0, 1, 2, 5, 14))
    if kind == "numbers":
        return Files(range(n), [0] * n, [random.choice((0, 10))] * n, names=[f"number.{i}" for i in range(n)])
    totals = [random.choice((0, 1, 7, 20)) for _ in range(n)]
    firsts, events = [0] * n, list(totals)
    if kind == "events":
        for i, total in enumerate(totals):
            if total > 1 and random.random() < 0.3:
                firsts[i] = random.randrange(total)
                events[i] = random.randint(1, total - firsts[i])
    pieces: dict[str, Any] = {"firsts": firsts, "totals": totals} if kind == "events" else {}
    form, last = random.choice(NAMES), max(n // 3, 1)
    return Files(
        range(100, 100 + n),
        [random.choice((0, 1, 5, 15)) for _ in range(n)],
        events,
        boundaries=_grouped(random, n),
        lumi_blocks=_grouped(random, n),
        complete=random.random() < 0.6,
        names=[form.format(number) for number in sorted(random.randint(1, last) for _ in range(n))],
        **pieces,
    )


def _grouped(random: Random, n: int) -> list[int | None]:
    """Ids of groups that stand together, one of them without."""
    return [None if each == 3 else each for each in sorted(random.randint(1, 5) for _ in range(n))]


def _rules(random: Random, kind: Kind, cuts_events: bool) -> SplitRules:
    """Boundaries that are not split leave no room for cutting events (decision F3)."""
    count = (None, None, 1, 2, 5)
    plain = SplitRules(
        files_per_job=random.choice(count), max_files_per_job=random.choice(count), skip_short_output=random.random() < 0.3
    )
    if kind == "events":
        target = random.choice((None, None, 6))
        asked = None if target else random.choice((1, 4, 30))
        return replace(plain, events_per_job=asked, target_events=target, boundary=0 if target else random.choice((0, 1, 2)))
    return replace(plain, boundary=random.randint(0, 2 if cuts_events else 4), respect_lb=random.random() < 0.3)


def _limits(random: Random) -> JobLimits:
    prices = ((1.0, 0.0), (0.0, 1.0), (1.1, 0.3))
    budgets = [
        Budget(*random.choice(prices), float(random.choice((0, 9, 60))), random.random() < 0.5, random.random() < 0.5)
        for _ in range(random.choice((0, 0, 1, 2)))
    ]
    return JobLimits(random.choice((1, 4, 200)), random.choice((2, 25, 1000)), tuple(budgets))


def _secondary(random: Random) -> Secondary:
    kind = random.choice(("", "repeat", "nosplit", "many_time"))
    rule = Attributes(ratio=random.choice((0.3, 1.0, 2.0)), **({kind: True} if kind else {}))
    n = random.choice((0, 3, 20))
    boundaries: Sequence[int | None] = random.choice(((), _grouped(random, n)))
    files = Files(range(n), [random.choice((0, 5))] * n, [10] * n, boundaries=boundaries, complete=random.random() < 0.5)
    return Secondary(rule, files, random.randint(0, n) if rule.repeat or rule.tracked else 0)
