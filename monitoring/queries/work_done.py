"""What jobs worked through over time, and how long they waited before they began, of the roll-ups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from broker_site.foundation.access.permissions import VoScope
from brokerage.queries.kept_counts import KeptCounts, Rows
from brokerage.rules.facts.rollups import DAY_S, EVENTS, FILES, STARTED
from brokerage.rules.facts.series import BYS, USUAL, Asked, Series
from brokerage.rules.facts.wait_classes import WAITS, percentile
from monitoring.plots import Curve, Plot
from monitoring.queries.database import alias
from monitoring.queries.job_errors import IN_WINDOW, in_window
from monitoring.queries.series import WINDOWS, counted, in_steps

STEPS_S = {"1h": (60, 300, 300), "24h": (3_600, 3_600, 3_600), "7d": (3_600, 3_600, 6 * 3_600)}
"""Length of the steps that are read, of those of work, and of those of waits: of few jobs no percentile says much; s."""
PARTS = {"half of them": (0.5, "done"), "90 %": (0.9, "held"), "99 %": (0.99, "failed")}
"""Name of a percentile -> its part and the colour of its line."""
MOST_WAITS = 20

BEGUN_IN_WINDOW = IN_WINDOW.replace("%(whats)s", "%(begun)s")
# Those with most jobs are found by what started: the classes are many rows of each.
_BY = KeptCounts(f"""
WITH g AS MATERIALIZED (
    SELECT g.id, g.vo, CASE %(by)s WHEN 'queue' THEN g.queue WHEN 'share' THEN g.share ELSE g.vo END AS of
    FROM brokerage_tallygroup g WHERE g.family = %(family)s
), first AS MATERIALIZED (
    SELECT g.of FROM g JOIN brokerage_tallybucket b ON b.group_id = g.id
    WHERE {BEGUN_IN_WINDOW} GROUP BY 1 ORDER BY sum(b.n) DESC, 1 LIMIT %(most)s
)
SELECT g.of, b.what, sum(b.n)::bigint FROM first JOIN g USING (of) JOIN brokerage_tallybucket b ON b.group_id = g.id
WHERE {IN_WINDOW} GROUP BY 1, 2
""")


@dataclass(frozen=True, slots=True)
class WorkStep:
    """One step: when it begins; jobs that started, finished and failed in it; input files and events of those that finished; and
    how long half, 90 and 99 % of those that started had waited at most, s. The last one is not over.
    """

    at: datetime
    started: int
    finished: int
    failed: int
    files: int
    events: int
    wait_50_s: float | None
    wait_90_s: float | None
    wait_99_s: float | None


@dataclass(frozen=True, slots=True)
class Waits:
    """How long half, 90 and 99 % of the jobs of a queue, share or VO that began had waited at most, s."""

    of: str
    started: int
    wait_50_s: float | None
    wait_90_s: float | None
    wait_99_s: float | None


@dataclass(frozen=True, slots=True)
class WorkDone:
    """The counts of a window, in the VOs of the visitor."""

    found: Series
    window: str

    @property
    def counted_at(self) -> datetime | None:
        return self.found.counted_at

    @property
    def plots(self) -> list[Plot]:
        """Input files, events, and waits, of the steps that are over."""
        _, work_s, waits_s = STEPS_S[self.window]
        titles = ((FILES, "Input files of finished jobs"), (EVENTS, "Events of finished jobs"))
        return [*(in_steps(self._plot(title, what, [what]), work_s) for what, title in titles), self._waits(waits_s)]

    @property
    def steps(self) -> list[WorkStep]:
        flows = [self.found.line(what).points for what in (*USUAL, FILES, EVENTS)]
        waited = [self.found.line(what).points for what in WAITS]
        return [
            WorkStep(at, *(points[i] for points in flows), *_percentiles([points[i] for points in waited]))
            for i, at in enumerate(self.found.times)
        ]

    def _plot(self, title: str, of: str, whats: Sequence[str]) -> Plot:
        curves = [Curve(what, "running", self.found.line(what).points[:-1]) for what in whats]
        return Plot(title, self.found.times[:-1], self.found.step_s, curves, of=of)

    def _waits(self, step_s: int) -> Plot:
        """Minutes; 0 where no job began."""
        counts = in_steps(self._plot("Wait until the payload began", "minutes", WAITS), step_s)
        columns = list(zip(*(curve.points for curve in counts.curves), strict=True))
        curves = [
            Curve(name, colour, [round((percentile([int(n) for n in column], part) or 0.0) / 60, 1) for column in columns])
            for name, (part, colour) in PARTS.items()
        ]
        return Plot(counts.title, counts.times, counts.step_s, curves, levels=True, of="minutes", of_steps=True)


def work_done(scope: VoScope, window: str) -> WorkDone:
    """One statement."""
    asked = Asked((*USUAL, FILES, EVENTS, *WAITS), WINDOWS[window][0], STEPS_S[window][0])
    return WorkDone(counted(asked, scope), window)


def waits_by(scope: VoScope, window: str, by: str, most: int | None = None) -> Sequence[Waits]:
    """Of each queue, share or VO of which jobs began in the window, or of so many, those with most first; one statement. A week
    is seven days of UTC, today among them.
    """
    window_s, _ = WINDOWS[window]
    asked = Asked(WAITS, window_s, STEPS_S[window][0] if window_s <= DAY_S else DAY_S, by)
    values = {**in_window(asked, scope), "family": asked.family.value, "by": BYS[by], "begun": [STARTED], "most": most}
    return _BY.answer(values, _waits_of, using=alias())


def _waits_of(found: Rows) -> Sequence[Waits]:
    counts: dict[str, dict[str, int]] = {}
    for of, what, n in found:
        counts.setdefault(of, {})[what] = n
    rows = [Waits(of, sum(of_it.values()), *_percentiles(_in_order(of_it))) for of, of_it in counts.items()]
    return sorted(rows, key=lambda row: (-row.started, row.of))


def _in_order(counts: Mapping[str, int]) -> list[int]:
    return [counts.get(what, 0) for what in WAITS]


def _percentiles(counts: Sequence[int]) -> list[float | None]:
    return [percentile(counts, part) for part, _ in PARTS.values()]
