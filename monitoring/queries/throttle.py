"""Rows of the list of throttler verdicts: the last one on each unit, and those of the last 24 hours."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.permissions import VoScope
from monitoring.queries.database import rows, seen_by

RIBBON_H = 24
RUNS, RUN_S = 2, 5.0
"""A unit is judged now if it was in one of so many runs of generate, each of which may take so many seconds."""
MOST_SPELLS = 200
"""Spells of a unit that are shown, the newest."""


class Spell(NamedTuple):
    """A time during which the throttler gave the same verdict on a unit."""

    decision: str
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True)
class ThrottleRow:
    """One unit. Counts in jobs. `ratio`: startable for each that runs, None where none runs; `threshold`: from which on it skips.

    `judged_now`: in the last runs of generate; a unit that is not, since it has no files left to make jobs of, has no numbers.
    `stranded`: those of the queued that cannot start where they wait, which the ratio does not count.
    `lower`, `cap`, `running_cap`: the limits in force, with the keys that have them in `keys`. `max_jobs`: that one run
    may make, None without limit. `spells`: of the last 24 h, newest first.
    """

    vo: str
    label: str
    kind: str
    unit: str
    resource_type: str
    decision: str
    rule: str
    reason: str
    judged_now: bool
    queued: int | None
    stranded: int | None
    running: int | None
    ratio: float | None
    threshold: float
    lower: int | None
    cap: int | None
    running_cap: int | None
    keys: tuple[str, ...]
    max_jobs: int | None
    lock: bool
    least_priority: int | None
    n_times: int
    first_at: datetime
    last_at: datetime
    spells: tuple[Spell, ...]


_LAST = """
WITH last AS (
    SELECT DISTINCT ON (vo, prod_source_label, unit, work_queue_id, resource_type) *
    FROM workqueues_throttleverdict WHERE (%(everything)s OR vo = ANY(%(vos)s))
    ORDER BY vo, prod_source_label, unit, work_queue_id, resource_type, id DESC
)
"""
_ROWS = f"""{_LAST}
SELECT id, limits, vo, prod_source_label, CASE WHEN work_queue_id <> 0 THEN 'work queue' ELSE 'share' END, unit, resource_type,
    decision, rule, reason, last_at > now() - make_interval(secs => %(fresh)s), defined + assigned + activated + starting,
    stranded, running, ratio, max_jobs, lock, least_priority, n_times, first_at, last_at
FROM last ORDER BY 11 DESC, vo, unit, prod_source_label, resource_type
"""
COLUMNS = (
    "vo", "label", "kind", "unit", "resource_type", "decision", "rule", "reason", "judged_now", "queued", "stranded",
    "running", "threshold", "max_jobs", "lock", "least_priority", "n_times", "first_at", "last_at",
)  # fmt: skip
"""Columns of _ROWS after id and limits."""
LIMITS = ("lower", "cap", "running_cap")
_SPELLS = f"""{_LAST}
SELECT last.id, v.decision, v.first_at, v.last_at FROM last CROSS JOIN LATERAL (
    SELECT o.decision, o.first_at, o.last_at FROM workqueues_throttleverdict o
    WHERE o.vo = last.vo AND o.prod_source_label = last.prod_source_label AND o.unit = last.unit
        AND o.work_queue_id = last.work_queue_id AND o.resource_type = last.resource_type
        AND o.last_at > now() - make_interval(hours => %(hours)s)
    ORDER BY o.id DESC LIMIT %(most)s) v
"""


def throttle_rows(scope: VoScope) -> list[ThrottleRow]:
    """The last verdict on each unit of these VOs, those that are judged now first; two statements."""
    seen = seen_by(scope)
    fresh = RUNS * gdpconfig.value("agents", "PERIOD_generate") + RUN_S
    spells: dict[int, list[Spell]] = defaultdict(list)
    for id_, *spell in rows(_SPELLS, {**seen, "hours": RIBBON_H, "most": MOST_SPELLS}):
        spells[id_].append(Spell(*spell))
    return [
        _row(dict(zip(COLUMNS, row, strict=True)), json.loads(limits), tuple(spells[id_]))
        for id_, limits, *row in rows(_ROWS, {**seen, "fresh": fresh})
    ]


def _row(verdict: dict[str, Any], limits: dict[str, dict[str, Any]], spells: tuple[Spell, ...]) -> ThrottleRow:
    if not verdict["judged_now"]:
        verdict |= dict.fromkeys(("queued", "stranded", "running"))
    values: dict[str, Any] = {name: limits.get(name, {}).get("value") for name in LIMITS}
    return ThrottleRow(
        **verdict,
        **values,
        ratio=(verdict["queued"] - verdict["stranded"]) / verdict["running"] if verdict["running"] else None,
        keys=tuple(limits[name]["key"] for name in LIMITS if name in limits),
        spells=spells,
    )
