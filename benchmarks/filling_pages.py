"""Rows that the pages are measured on, made inside the database by INSERT .. SELECT: a year of tasks, jobs and files, most of
them young, as a system has them that grew.

Numbers are drawn from the ids by a hash, so each run makes the same rows. First what each task and job is and when (`plan`), then
the tables of the system from that, in parts, by two sessions.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import pairwise

from psycopg2.extras import execute_values

from benchmarks import filling_world
from benchmarks.filling_rollups import fill_paths, fill_rollups
from benchmarks.filling_tables import MADE, PARTS, PER_JOB, PER_TASK
from benchmarks.server import Bench
from broker_site.foundation.kernel.machine import Names
from broker_site.roof.embedded.postgres import OWNER
from brokerage.rules.dispatch.error_fingerprint import EndError, fingerprint
from brokerage.states import JOB
from workqueues.states import TASK

JOBS_OF_A_TASK = 10
"""On average; most have few."""
PART = 50_000
"""Jobs whose rows one statement makes."""
GUARDED = (
    "brokerage_job",
    "brokerage_jobinput",
    "brokerage_transfer",
    "workqueues_task",
    "workqueues_dataset",
    "workqueues_file",
)
UNCHECKED = "SET session_replication_role = replica"
"""Neither guards nor references are looked at, row by row; where the server is not ours, references are."""
SESSION = "SET synchronous_commit = off; SET work_mem = '512MB'; SET max_parallel_workers_per_gather = 0"
SESSIONS = 2

RANDOM = """
CREATE SCHEMA plan;
CREATE FUNCTION plan.u(n bigint, salt int) RETURNS float8 IMMUTABLE PARALLEL SAFE LANGUAGE sql AS
    'SELECT (hashint8extended($1, $2) & 9007199254740991)::float8 / 9007199254740992'
"""
ERRORS = "CREATE TABLE plan.error (nr int PRIMARY KEY, reported text, code text, exit_code int, message text, fingerprint bigint)"
TASKS = """
CREATE UNLOGGED TABLE plan.drawn AS
SELECT k AS id, least((1 - plan.u(k, 1)) ^ (-1 / 1.1), greatest({tasks} / 5, 4)) AS weight,
    timestamptz '{now}' - interval '365 days' * (1 - (k - 0.5) / {tasks}) ^ 2.5 AS created,
    CASE WHEN v < 0.8 THEN 'north' WHEN v < 0.98 THEN 'south' ELSE 'west' END AS vo,
    floor({users} * plan.u(k, 3) ^ 3)::int AS who, floor({queues} * plan.u(k, 4) ^ 2)::int AS main_queue
FROM generate_series(1, {tasks}) AS k, LATERAL (SELECT plan.u(k, 2) AS v) AS draw;
CREATE UNLOGGED TABLE plan.sized AS
SELECT id, vo, 'user' || to_char(who, 'FM000') AS user_name, created, main_queue,
    vo || to_char(floor(CASE vo WHEN 'north' THEN 12 WHEN 'south' THEN 6 ELSE 2 END * plan.u(id, 5) ^ 2), 'FM00') AS share,
    id + floor(({jobs} - {tasks}) * (sum(weight) OVER w - weight) / sum(weight) OVER ())::bigint AS first,
    id + floor(({jobs} - {tasks}) * sum(weight) OVER w / sum(weight) OVER ())::bigint AS last
FROM plan.drawn WINDOW w AS (ORDER BY id)
"""
JOBS = """
CREATE UNLOGGED TABLE plan.job AS
WITH times AS (
    SELECT n AS id, t.id AS task_id, t.vo, t.share, t.user_name,
        CASE WHEN t.last - t.first >= 20 AND n < t.first + 3 THEN 1 ELSE 0 END AS kind,
        CASE WHEN plan.u(n, 6) < 0.5 THEN t.main_queue ELSE floor({queues} * plan.u(n, 7) ^ 2)::int END AS queue_nr,
        t.created + least((n - t.first) * interval '15 s', (timestamptz '{now}' - t.created) * 0.98) AS born,
        interval '1 s' * (120 - ln(1 - plan.u(n, 8)) * 5400) AS wait, interval '1 s' * (600 - ln(1 - plan.u(n, 9)) * 10000) AS run
    FROM plan.sized t, generate_series(t.first, t.last) AS n
), stated AS (
    SELECT id, task_id, vo, share, user_name, kind, queue_nr, born, born + wait AS began, born + wait + run AS ended,
        CASE WHEN born + wait > '{now}' THEN ({waiting})[1 + floor(d * 30)::int]
            WHEN born + wait + run > '{now}' THEN ({begun})[1 + floor(d * 25)::int]
            WHEN d < 0.88 THEN 'finished' WHEN d < 0.955 THEN 'failed' WHEN d < 0.98 THEN 'closed' ELSE 'cancelled' END AS drawn
    FROM times, LATERAL (SELECT plan.u(id, 10) AS d) AS draw
), known AS (
    SELECT *, coalesce(drawn, CASE WHEN began > '{now}' THEN 'activated' ELSE 'running' END) AS status FROM stated
), tried AS (
    SELECT *, CASE WHEN status = 'failed' AND lead(task_id) OVER w = task_id AND lead(status) OVER w = 'finished'
        THEN id + 1 END AS retry_by FROM known WINDOW w AS (ORDER BY id)
)
SELECT *, status IN ({final}) AS final, status IN ({leased}) AS leased, status = 'activated' AND plan.u(id, 11) < 0.1 AS open,
    lag(retry_by) OVER (ORDER BY id) = id AS is_retry,
    CASE status WHEN 'failed' THEN 1 + floor({errors} * plan.u(id, 12) ^ 8)::int WHEN 'closed' THEN 6 END AS error
FROM tried;
UPDATE plan.job SET error = 1 WHERE status = 'failed' AND error = 6;
CREATE UNIQUE INDEX ON plan.job (id);
ANALYZE plan.job
"""
ENDS = """
CREATE UNLOGGED TABLE plan.task AS
SELECT t.*, j.live, j.failed, j.finished, CASE WHEN j.live = 0 AND plan.u(t.id, 13) > 0.01 THEN j.ended END AS ended,
    CASE WHEN j.live > 0 OR plan.u(t.id, 13) <= 0.01 THEN
        CASE WHEN d < 0.80 THEN 'running' WHEN d < 0.85 THEN 'scouting' WHEN d < 0.90 THEN 'pending'
            WHEN d < 0.93 THEN 'throttled' WHEN d < 0.95 THEN 'paused' WHEN d < 0.97 THEN 'exhausted'
            ELSE ({states})[1 + floor((d - 0.97) / 0.03 * {n_states})::int] END
    WHEN d < 0.03 THEN 'aborted' WHEN d < 0.04 THEN 'broken' WHEN j.failed = 0 THEN 'done' WHEN j.finished = 0 THEN 'failed'
    ELSE 'finished' END AS status
FROM plan.sized t JOIN (
    SELECT task_id, count(*) FILTER (WHERE NOT final) AS live,
        count(*) FILTER (WHERE final AND status <> 'finished' AND retry_by IS NULL) AS failed,
        count(*) FILTER (WHERE status = 'finished' OR retry_by IS NOT NULL) AS finished, max(ended) + interval '5 min' AS ended
    FROM plan.job GROUP BY 1) AS j ON j.task_id = t.id, LATERAL (SELECT plan.u(t.id, 14) AS d) AS draw;
CREATE UNIQUE INDEX ON plan.task (id);
ANALYZE plan.task
"""


def fill(bench: Bench, jobs: int) -> None:
    """So many jobs, a tenth as many tasks, ten times as many files, and their counts over the year."""
    filling_world.fill_grid()
    filling_world.fill_shares()
    filling_world.fill_changes(min(5 + jobs // 1000, 300))
    tasks = max(jobs // JOBS_OF_A_TASK, 1)
    now = _plan(bench, jobs, tasks)
    fill_paths(bench)
    # The guards of states hold for what the system does; these rows were never anything else.
    bench.execute(*(f"ALTER TABLE {table} DISABLE TRIGGER USER" for table in GUARDED))
    _allow_unchecked(bench)
    values = {
        "now": now,
        "copied": tasks - tasks // 10,
        "queues": filling_world.QUEUES,
        "pilots": filling_world.PILOTS,
        "interrupted": TASK.interrupted.sql,
        "resting": TASK.resting.sql,
        "tried": JOB.tried.sql,
    }
    bench.execute(*(statement.format(**values) for statement in PER_TASK))
    starts = [*range(1, jobs + 1, PART), jobs + 1]
    ranges = [(first, after - 1) for first, after in pairwise(starts)]
    for statements in PER_JOB:
        together(bench, [s.format(**values, first=first, last=last) for first, last in ranges for s in statements])
    bench.execute(*(statement.format(**values) for statement in PARTS))
    fill_rollups(bench, now, together)
    bench.execute(*(f"ALTER TABLE {table} ENABLE TRIGGER USER" for table in GUARDED), "DROP SCHEMA plan CASCADE")
    for table in MADE:
        bench.number(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), greatest((SELECT max(id) FROM {table}), 1))")
    filling_world.fill_pilots()
    bench.execute("VACUUM (ANALYZE)")
    bench.settle()


def _plan(bench: Bench, jobs: int, tasks: int) -> str:
    """What each task and job is: up to when."""
    with closing(bench.connect()) as connection, connection.cursor() as cursor:
        cursor.execute(f"{SESSION}; {RANDOM}; {ERRORS}")
        errors = list(filling_world.errors())
        rows = [
            (
                nr,
                reported,
                code,
                exit_code,
                message,
                fingerprint(EndError(reported, code, exit_code, message.replace("#", "1"))).id,
            )
            for nr, (reported, code, exit_code, message) in enumerate(errors, 1)
        ]
        execute_values(cursor, "INSERT INTO plan.error VALUES %s", rows, page_size=1000)
        cursor.execute("SELECT now()::text")
        (now,) = cursor.fetchone() or ("",)
        values = {
            "now": now, "jobs": jobs, "tasks": tasks, "errors": len(errors), "users": filling_world.USERS - 1,
            "queues": filling_world.QUEUES - 1, "n_states": len(TASK.live), "states": _array(TASK.live),
            "waiting": _array(JOB.waiting - ["activated"]), "begun": _array(JOB.live - JOB.waiting - ["running"]),
            "final": Names(sorted(JOB.final)).sql, "leased": JOB.leased.sql,
        }  # fmt: skip
        for part in (TASKS, JOBS, ENDS):
            cursor.execute(part.format(**values))
    return now


def _array(names: Names) -> str:
    return f"ARRAY[{names.sql}]"


def together(bench: Bench, statements: Sequence[str]) -> None:
    """Run the statements by several sessions."""
    session = f"{SESSION}; {UNCHECKED}" if bench.instance.postgres else SESSION
    with ThreadPoolExecutor(SESSIONS) as pool:
        list(pool.map(lambda statement: bench.execute(f"{session}; {statement}"), statements))


def _allow_unchecked(bench: Bench) -> None:
    if bench.instance.postgres:
        with bench.instance.postgres.administer() as connection, connection.cursor() as cursor:
            cursor.execute(f"GRANT SET ON PARAMETER session_replication_role TO {OWNER}")
