"""Counts of jobs over time, as the agent tally keeps them: one statement, whatever the number of jobs."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from functools import partial
from typing import Any

from brokerage.queries.kept_counts import KeptCounts, Rows
from brokerage.rules.facts.series import BYS, HAPPENED, KINDS, MOST_LINES, OTHERS, Asked, Series, filled

_OF = """CASE %(by)s WHEN 'vo' THEN g.vo WHEN 'queue' THEN g.queue WHEN 'share' THEN g.share WHEN 'user_name' THEN g.user_name
    WHEN 'kind' THEN g.kind::text WHEN 'fingerprint' THEN g.fingerprint::text ELSE '' END"""
_SERIES = KeptCounts(f"""
WITH g AS MATERIALIZED (
    SELECT g.id, {_OF} AS of FROM brokerage_tallygroup g
    WHERE (%(family)s::text IS NULL OR g.family = %(family)s) AND (%(vos)s::text[] IS NULL OR g.vo = ANY (%(vos)s))
        AND (%(vo)s::text IS NULL OR g.vo = %(vo)s) AND (%(queue)s::text IS NULL OR g.queue = %(queue)s)
        AND (%(share)s::text[] IS NULL OR g.share = ANY (%(share)s)) AND (%(kind)s::int IS NULL OR g.kind = %(kind)s)
        AND (%(user_name)s::text IS NULL OR g.user_name = %(user_name)s)
        AND (%(groups)s::int[] IS NULL OR g.id = ANY (%(groups)s))
), counted AS MATERIALIZED (
    SELECT b.what, g.of, b.at, sum(b.n::int)::int AS n FROM g JOIN brokerage_tallybucket b ON b.group_id = g.id
    WHERE b.step_s = %(step)s AND b.what = ANY (%(whats)s) AND b.at >= %(start)s AND b.at < %(end)s
    GROUP BY 1, 2, 3 HAVING sum(b.n::int) <> 0
), small AS (
    SELECT what, of FROM (
        SELECT what, of, row_number() OVER (PARTITION BY what ORDER BY sum(n) DESC, of) AS place FROM counted
        WHERE what = ANY (%(flows)s) GROUP BY 1, 2
    ) AS ranked WHERE place > {MOST_LINES}
)
SELECT c.what, CASE WHEN s.of IS NULL THEN c.of ELSE '{OTHERS}' END, c.at, sum(c.n)::bigint
FROM counted c LEFT JOIN small s ON s.what = c.what AND s.of = c.of GROUP BY 1, 2, 3
UNION ALL
SELECT l.what, g.of, NULL, sum(l.n)::bigint FROM g JOIN brokerage_tallylevel l ON l.group_id = g.id
WHERE l.what = ANY (%(states)s) GROUP BY 1, 2 HAVING sum(l.n) > 0
UNION ALL SELECT '', '', counted_at, 0 FROM brokerage_tallymark
""")
# Sums of small integers are fast. Flows of lines that are not shown are added up here; which lines of states are large is known
# behind the levels only.
_LABELS = {str(value): label for label, value in KINDS.items()}


def series(
    asked: Asked, now: datetime, vos: Collection[str] | None, using: str = "default", groups: Collection[int] | None = None
) -> Series:
    """The lines that are asked for, of jobs of these VOs, and counted in these groups, None: of a whole family. One statement."""
    start, end = asked.span(now)
    only: dict[str, Any] = {column: asked.only.get(column) for column in ("vo", "queue", "share", "kind", "user_name")}
    if isinstance(only["share"], str):
        only["share"] = (only["share"],)
    values = {
        **only,
        "share": None if only["share"] is None else list(only["share"]),
        "by": BYS.get(asked.by, ""),
        "family": asked.family.value if groups is None else None,
        "vos": None if vos is None else sorted(vos),
        "groups": None if groups is None else sorted(groups),
        "step": asked.step_s,
        "whats": list(asked.what),
        "flows": [what for what in asked.what if what in HAPPENED],
        "states": [what for what in asked.what if what not in HAPPENED],
        "start": start,
        "end": end,
    }
    return _SERIES.answer(values, partial(_series, asked, (start, end)), using=using, beside=asked.by)


def _series(asked: Asked, span: tuple[datetime, datetime], found: Rows) -> Series:
    """The lines of a statement's rows."""
    counted_at = next((at for what, _, at, _ in found if not what), None)
    labels = _LABELS if asked.by == "kind" else {}
    rows = [(str(what), str(labels.get(of, of)), at, int(n)) for what, of, at, n in found if what]
    happened = [row for row in rows if row[2] is not None]
    return filled(asked, span, counted_at, happened, [(what, of, n) for what, of, at, n in rows if at is None])
