"""The moves of the jobs of `filling_pages` and what is counted of them over time, as the agent tally would have counted it: by
the minute for two days, by five minutes for a fortnight, by the hour and by the day for the year.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing

from benchmarks.server import Bench
from brokerage.rules.facts.rollups import DAY_S, EVENTS, FILES, HOUR_S, MADE, STARTED
from brokerage.rules.facts.wait_classes import BOUNDS_S, WAITS
from brokerage.states import JOB

Together = Callable[[Bench, Sequence[str]], None]
Step = tuple[str, str, int]
"""A state, since when of the job's times (born, began, ended), and so many seconds later."""

WAITING: tuple[Step, ...] = (("activated", "born", 0),)
STARTING: tuple[Step, ...] = (*WAITING, ("sent", "began", -40), ("starting", "began", -20))
RUNNING: tuple[Step, ...] = (*STARTING, ("running", "began", 0))
HOLDING: tuple[Step, ...] = (*RUNNING, ("holding", "ended", -60))
PATHS: dict[str, tuple[Step, ...]] = {
    **{state: ((state, "born", 0),) for state in JOB.waiting},
    "throttled": (*WAITING, ("throttled", "born", 60)),
    "sent": STARTING[:2],
    "starting": STARTING,
    "running": RUNNING,
    "holding": HOLDING,
    "transferring": (*RUNNING, ("transferring", "ended", -60)),
    "merging": (*HOLDING, ("merging", "ended", -30)),
    "finished": (*HOLDING, ("finished", "ended", 0)),
    "failed": (*RUNNING, ("failed", "ended", 0)),
    "closed": (*STARTING[:2], ("closed", "ended", 0)),
    "cancelled": (*WAITING, ("cancelled", "ended", 0)),
}
"""State of a job -> how it came there."""
WHO = {"born": "agent:generate", "began": "pilot", "ended": "pilot"}

TABLES = """
CREATE TABLE plan.path (status text, nr int, old text, new text, since text, later interval, who text);
CREATE TABLE plan.effect (status text, since text, later interval, what text, n int)
"""
MARK = "INSERT INTO brokerage_tallymark (id, seen, tasks_from) SELECT 1, pg_current_snapshot()::text, now() - interval '14 days'"
ERRORS = """
INSERT INTO brokerage_errorfingerprint (id, component, code, exit_code, message, first_seen, sample_job_id)
SELECT DISTINCT ON (e.fingerprint) e.fingerprint, CASE e.reported WHEN 'failed' THEN 'pilot' ELSE 'broker' END, e.code,
    coalesce(e.exit_code, 0), replace(e.message, '#', '*'), j.ended, j.id
FROM plan.job j JOIN plan.error e ON e.nr = j.error ORDER BY e.fingerprint, j.ended, j.id
"""
ERROR_TASKS = """
INSERT INTO brokerage_errortask (group_id, task_id, first_at, last_at)
SELECT g.id, j.task_id, date_trunc('minute', min(j.ended)), date_trunc('minute', max(j.ended))
FROM plan.job j JOIN plan.error e ON e.nr = j.error
    JOIN brokerage_tallygroup g
        ON g.family = 'error_of' AND (g.vo, g.user_name, g.fingerprint) = (j.vo, j.user_name, e.fingerprint)
WHERE j.ended >= timestamptz '{now}' - interval '14 days' GROUP BY 1, 2 ORDER BY 4, 2, 1
"""
COUNTED = """
INSERT INTO brokerage_tallybucket (step_s, group_id, what, at, n)
SELECT {step}, of_{family}, what, at, sum(n) FROM (
    SELECT of_{family}, e.what, date_bin('{step} s', greatest(j.born, least(timestamptz '{now}',
        CASE e.since WHEN 'born' THEN j.born WHEN 'began' THEN j.began ELSE j.ended END + e.later)), '2000-01-01 00:00+00') AS
            at, e.n
    FROM plan.counted j JOIN plan.effect e ON e.status = j.status {ends} WHERE j.ended >= timestamptz '{now}' - interval
        '{keep}') AS single
WHERE at >= timestamptz '{now}' - interval '{keep}' GROUP BY 2, 3, 4 HAVING sum(n) <> 0 ORDER BY 4, 2, 3
"""
WAITED = f"""
INSERT INTO brokerage_tallybucket (step_s, group_id, what, at, n)
SELECT {{step}}, of_{{family}}, (ARRAY[{", ".join(f"'{what}'" for what in WAITS)}])[
        1 + width_bucket(extract(epoch FROM began - born)::float8, ARRAY[{", ".join(map(str, BOUNDS_S))}]::float8[])],
    date_bin('{{step}} s', began, '2000-01-01 00:00+00'), count(*)
FROM plan.counted WHERE status IN ({{begun}}) AND began BETWEEN timestamptz '{{now}}' - interval '{{keep}}' AND '{{now}}'
GROUP BY 2, 3, 4 ORDER BY 4, 2, 3
"""
# In the order of time, as the agent writes them: what a page reads of a day lies together.
OF_SUMS = """
INSERT INTO brokerage_tallybucket (step_s, group_id, what, at, n)
SELECT b.step_s, s.id, b.what, b.at, sum(b.n) FROM brokerage_tallybucket b JOIN brokerage_tallygroup p ON p.id = b.group_id
    JOIN brokerage_tallygroup s USING ({columns})
WHERE p.family = '{of}' AND s.family = '{family}' AND b.step_s <> {day} GROUP BY 1, 2, 3, 4 HAVING sum(b.n) <> 0 ORDER BY 4, 2, 3
"""
OF_DAYS = """
INSERT INTO brokerage_tallybucket (step_s, group_id, what, at, n)
SELECT {day}, group_id, what, date_bin('1 day', at, '2000-01-01 00:00+00'), sum(n) FROM brokerage_tallybucket
WHERE step_s = {hour} GROUP BY 2, 3, 4 HAVING sum(n) <> 0 ORDER BY 4, 2, 3
"""
OF_GROUPS = """
CREATE UNLOGGED TABLE plan.counted AS
SELECT j.status, j.final, j.born, j.began, j.ended, v.id AS of_vo, q.id AS of_queue, s.id AS of_share, u.id AS of_user,
    p.id AS of_place, e.id AS of_error_at, o.id AS of_error_of
FROM (SELECT j.*, {queue}, x.fingerprint FROM plan.job j LEFT JOIN plan.error x ON x.nr = j.error) AS j
    JOIN brokerage_tallygroup v ON v.family = 'vo' AND v.vo = j.vo
    JOIN brokerage_tallygroup q ON q.family = 'queue' AND (q.vo, q.queue) = (j.vo, j.queue)
    JOIN brokerage_tallygroup s ON s.family = 'share' AND (s.vo, s.share, s.kind) = (j.vo, j.share, j.kind)
    JOIN brokerage_tallygroup u ON u.family = 'user' AND (u.vo, u.share, u.user_name) = (j.vo, j.share, j.user_name)
    JOIN brokerage_tallygroup p ON p.family = 'place' AND (p.vo, p.queue, p.share, p.kind) = (j.vo, j.queue, j.share, j.kind)
    LEFT JOIN brokerage_tallygroup e ON e.family = 'error_at' AND (e.vo, e.queue, e.fingerprint) = (j.vo, j.queue, j.fingerprint)
    LEFT JOIN brokerage_tallygroup o
        ON o.family = 'error_of' AND (o.vo, o.user_name, o.fingerprint) = (j.vo, j.user_name, j.fingerprint);
ANALYZE plan.counted
"""
GROUPS = """
INSERT INTO brokerage_tallygroup (family, {columns}) SELECT DISTINCT '{family}', {from_columns} FROM plan.job j {errors}
"""
LEVELS = """
INSERT INTO brokerage_tallylevel (group_id, what, n) SELECT of_{family}, status, count(*) FROM plan.counted
WHERE NOT final GROUP BY 1, 2
"""
QUEUE = (
    "CASE WHEN j.open THEN '' ELSE 'S' || to_char(j.queue_nr % 60, 'FM000') || '_Q' || to_char(j.queue_nr, 'FM000') END AS queue"
)
FAMILIES = {
    "place": ("vo, queue, share, kind", f"j.vo, {QUEUE}, j.share, j.kind", ""),
    "user": ("vo, share, user_name", "j.vo, j.share, j.user_name", ""),
    "vo": ("vo", "j.vo", ""),
    "queue": ("vo, queue", f"j.vo, {QUEUE}", ""),
    "share": ("vo, share, kind", "j.vo, j.share, j.kind", ""),
    "error": ("vo, fingerprint", "j.vo, x.fingerprint", "JOIN plan.error x ON x.nr = j.error"),
    "error_at": ("vo, queue, fingerprint", f"j.vo, {QUEUE}, x.fingerprint", "JOIN plan.error x ON x.nr = j.error"),
    "error_of": ("vo, user_name, fingerprint", "j.vo, j.user_name, x.fingerprint", "JOIN plan.error x ON x.nr = j.error"),
}
"""Family -> its columns, where they are from, and what else is read."""
WAITS_BY = ("vo", "queue", "share")
SUMS = {"vo": "place", "queue": "place", "share": "place", "error": "error_at"}
"""Family whose counts are sums -> those of which family."""
FILES_A_JOB, EVENTS_A_JOB = 8, 1000
KEPT = ((3600, "366 days"), (300, "14 days"), (60, "2 days"))


class Off(Exception):
    """The counts do not agree with the jobs."""


def fill_paths(bench: Bench) -> None:
    """How jobs came to their states, and what of that is counted."""
    with closing(bench.connect()) as connection, connection.cursor() as cursor:
        cursor.execute(TABLES)
        for status, path in PATHS.items():
            old = "-"
            for nr, (new, since, later) in enumerate(path):
                row = (status, nr, old, new, since, f"{later} s", WHO[since])
                cursor.execute("INSERT INTO plan.path VALUES (%s, %s, %s, %s, %s, %s, %s)", row)
                effects = [(old, -1)] * (old != "-") + [(new, 1)] + [(MADE, 1)] * (old == "-")
                effects += [(STARTED, 1)] * (old in JOB.starting and new in JOB.begun)
                effects += [(FILES, FILES_A_JOB), (EVENTS, EVENTS_A_JOB)] * (new == "finished")
                for what, n in effects:
                    cursor.execute("INSERT INTO plan.effect VALUES (%s, %s, %s, %s, %s)", (status, since, f"{later} s", what, n))
                old = new
        cursor.execute("ANALYZE plan.path; ANALYZE plan.effect")


def fill_rollups(bench: Bench, now: str, together: Together) -> None:
    """Groups, buckets and levels; Off where the levels are not those of the jobs."""
    from brokerage.ledger.tally import compare_levels

    groups = [
        GROUPS.format(family=family, columns=columns, from_columns=from_columns, errors=errors)
        for family, (columns, from_columns, errors) in FAMILIES.items()
    ]
    together(bench, [ERRORS, *groups])
    bench.execute("ANALYZE brokerage_tallygroup", OF_GROUPS.format(queue=QUEUE))
    together(bench, [ERROR_TASKS.format(now=now), *_buckets(now)])
    sums = [OF_SUMS.format(family=family, columns=FAMILIES[family][0], of=of, day=DAY_S) for family, of in SUMS.items()]
    together(bench, sums)
    bench.execute(OF_DAYS.format(day=DAY_S, hour=HOUR_S))
    bench.execute(*(LEVELS.format(family=family) for family in FAMILIES if not family.startswith("error")), MARK)
    compared = compare_levels()
    if compared is None or compared.off or compared.moved:
        raise Off(f"the counts by state differ from the jobs: {compared}")


def _buckets(now: str) -> Iterator[str]:
    """The longest first."""
    for step, keep in KEPT:
        for family in ("place", "user", "error_at", "error_of"):
            ends = f"AND e.what = j.status AND j.of_{family} IS NOT NULL" if family.startswith("error") else ""
            yield COUNTED.format(family=family, ends=ends, now=now, step=step, keep=keep)
        begun = ", ".join(f"'{status}'" for status, path in PATHS.items() if any(new in JOB.begun for new, _, _ in path))
        for family in WAITS_BY:
            yield WAITED.format(family=family, begun=begun, now=now, step=step, keep=keep)
