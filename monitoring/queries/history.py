"""What the jobs of one queue, share or user did over time, and in which states they were: plots, and the same as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from broker_site.foundation.access.permissions import VoScope
from brokerage.rules.facts.series import USUAL, Asked, Series
from brokerage.states import JOB
from monitoring.plots import HOUR_S, Plot
from monitoring.queries.series import STATE_GROUPS, WINDOWS, added, by_state, counted, flows, in_steps

Only = Mapping[str, str | int | tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Step:
    """One step: when it begins, how many jobs waited, were being started, ran and had their outputs under way at its end, and how
    many started, finished and failed in it. The last one is not over.
    """

    at: datetime
    waiting: int
    starting: int
    running: int
    ending: int
    started: int
    finished: int
    failed: int


@dataclass(frozen=True, slots=True)
class History:
    """The counts of a window, in the VOs of the visitor."""

    found: Series

    @property
    def counted_at(self) -> datetime | None:
        return self.found.counted_at

    @property
    def step_s(self) -> int:
        return self.found.step_s

    @property
    def plots(self) -> list[Plot]:
        """Jobs by state, and what they did."""
        return [by_state(self.found), in_steps(flows(self.found, "Started, finished and failed"), HOUR_S)]

    @property
    def steps(self) -> list[Step]:
        lines = {name: added([self.found.line(state) for state in states]) for name, _, states in STATE_GROUPS}
        lines |= {what: list(self.found.line(what).points) for what in USUAL}
        return [Step(at, **{name: points[i] for name, points in lines.items()}) for i, at in enumerate(self.found.times)]

    def total(self, what: str) -> int:
        """How many jobs did it in the window."""
        return self.found.line(what).total

    def now(self, states: Sequence[str]) -> int:
        """How many jobs were in these states when they were last counted."""
        return sum(self.found.line(state).points[-1] for state in states)


def history(scope: VoScope, window: str, only: Only) -> History:
    """The counts of jobs that have these columns; one statement."""
    window_s, step_s = WINDOWS[window]
    return History(counted(Asked((*JOB.live, *USUAL), window_s, step_s, only=only), scope))
