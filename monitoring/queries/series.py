"""What jobs did over time and in which states they were, as plots show it, of the VOs that the visitor may look into."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from broker_site.foundation.access.permissions import VoScope
from broker_site.foundation.kernel import clock
from brokerage.queries.series import series
from brokerage.rules.facts.series import OTHERS, USUAL, Asked, Line, Series
from brokerage.states import JOB
from monitoring.plots import WIDE, Curve, Plot
from monitoring.queries.database import alias

WINDOWS = {"1h": (3_600, 60), "24h": (86_400, 300), "7d": (7 * 86_400, 3_600)}
"""Name of a window -> its length and that of its steps, s."""
USUAL_WINDOW = "24h"
SMALL_STEPS_S = {"1h": (60, 60), "24h": (3_600, 3_600), "7d": (3_600, 3 * 3_600)}
"""Of plots beside each other: length of the steps that are read, and of those that are drawn, s."""
BYS = {"queue": "queue", "share": "share", "vo": "VO"}
MOST_SMALL = 9
FLOW_COLOURS = {"started": "started", "finished": "done", "failed": "failed"}
STATE_GROUPS = (
    ("running", "running", JOB.begun - JOB.delivering),
    ("starting", "started", JOB.starting),
    ("ending", "done", JOB.delivering),
    ("waiting", "held", JOB.waiting),
)
"""What of the jobs by state is drawn in one colour: name, colour, states."""
NAMELESS = {"queue": "open to several queues", "share": "no share", "vo": "no VO"}


def counted(asked: Asked, scope: VoScope, groups: Collection[int] | None = None) -> Series:
    """The lines that are asked for, of these groups that are counted, None: of all; one statement."""
    return series(asked, clock.now(), None if scope.everything else scope.names, alias(), groups)


def states_plot(scope: VoScope, window: str = USUAL_WINDOW) -> tuple[Plot, datetime | None]:
    """Jobs by state, and up to when they are counted."""
    window_s, step_s = WINDOWS[window]
    found = counted(Asked(JOB.live, window_s, step_s), scope)
    return by_state(found), found.counted_at


def by_state(found: Series) -> Plot:
    """How many jobs were in the states of each group."""
    curves = [Curve(name, colour, added([found.line(state) for state in states])) for name, colour, states in STATE_GROUPS]
    return Plot("Jobs by state", found.times, found.step_s, curves, stacked=True)


def flow_plots(scope: VoScope, window: str, by: str) -> tuple[Plot, list[Plot], int, datetime | None]:
    """Started, finished and failed jobs: of all, and of each of the queues or shares with most; how many others there are, and up
    to when they are counted.
    """
    (window_s, step_s), (small_s, drawn_s) = WINDOWS[window], SMALL_STEPS_S[window]
    found = counted(Asked(USUAL, window_s, step_s), scope)
    parts = counted(Asked(USUAL, window_s, small_s, by), scope)
    totals: dict[str, int] = {}
    for line in parts.lines:
        if line.of != OTHERS:
            totals[line.of] = totals.get(line.of, 0) + line.total
    names = sorted(totals, key=lambda name: (-totals[name], name))
    small = [in_steps(flows(parts, name or NAMELESS[by], name), drawn_s) for name in names[:MOST_SMALL]]
    return replace(flows(found, "All jobs", ""), width=WIDE), small, len(names) - len(small), found.counted_at


def flows(found: Series, title: str, of: str = "") -> Plot:
    """What happened in the steps that are over: one that is not would look like a fall."""
    curves = [Curve(what, FLOW_COLOURS[what], found.line(what, of).points[:-1]) for what in USUAL]
    return Plot(title, found.times[:-1], found.step_s, curves)


def in_steps(plot: Plot, step_s: int) -> Plot:
    """What happened in the whole steps of this length, so that few jobs make no spikes; one step stays as it is."""
    size = step_s // plot.step_s
    if size <= 1 or len(plot.times) <= size:
        return plot
    first = next((i for i, at in enumerate(plot.times) if at.timestamp() % step_s == 0), len(plot.times))
    begins = range(first, len(plot.times) - size + 1, size)
    curves = [replace(curve, points=[sum(curve.points[i : i + size]) for i in begins]) for curve in plot.curves]
    return replace(plot, times=[plot.times[i] for i in begins], step_s=step_s, curves=curves)


def added(lines: Sequence[Line]) -> list[int]:
    """The lines as one."""
    return [sum(column) for column in zip(*(line.points for line in lines), strict=True)]
