"""Tables filled as after months of work, by SQL. Which statements are planned on them is in `test_typical_queries`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from django.db import connection

from tests.emptying import WITH_TRIGGERS, WITHOUT_TRIGGERS, may_do_without_triggers
from workqueues.models import WorkQueue

TASKS, JOBS = 20_000, 30_000
LARGE_TASK, LARGE_FILES = 19_999, 10_000
"""A task that runs, with far more files than the others, and how many."""

EMPTIED = """
TRUNCATE workqueues_task, workqueues_submission, workqueues_taskchange, workqueues_datasetchange, workqueues_filechange,
    workqueues_cataloguedataset, workqueues_readgrant, brokerage_site, brokerage_job, brokerage_jobchange,
    brokerage_jobretryhistory, brokerage_decision CASCADE
"""
"""New files for the tables: the rollback at the end drops them, and leaves no trace in the database of the other tests."""

ROWS = (
    "INSERT INTO brokerage_site (name, state, nucleus) SELECT 'S' || n, 'ACTIVE', false FROM generate_series(1, 20) n",
    """
    INSERT INTO brokerage_computingqueue (id, name, site_id, status, type, capability, corecount, corepower, maxrss, minrss,
        maxtime, mintime, maxwdir, transferringlimit, workflow, catchall, attributes, local_pilots, submission)
    SELECT n, 'Q' || n, 'S' || 1 + n % 20, 'online', 'unified', '', 1, 10, 8000, 0, 0, 0, 0, 0, '', '', '{}', 0, 'none'
    FROM generate_series(1, 200) n
    """,
    """
    INSERT INTO brokerage_taskqueue (id, computing_queue_id, vo, ram_mb)
    SELECT n, 1 + n % 200, CASE WHEN n = 1000 THEN 'small' WHEN n % 3 = 0 THEN 'other' ELSE 'demo' END, n
    FROM generate_series(1, 1000) n
    """,
    """
    INSERT INTO brokerage_pilot (id, queue_id, host, slot, core_count, memory_mb, disk_mb, registered_at, last_seen)
    SELECT gen_random_uuid(), 1 + n % 200, 'node' || n, 'slot', 1, 0, 0, seen, seen
    FROM generate_series(1, 15000) n, LATERAL (SELECT now() - n * interval '1 minute' AS seen) AS s
    """,
    """
    INSERT INTO brokerage_idleslot (pilot_id, queue_id, core_count, until)
    SELECT id, queue_id, 1, now() + interval '1 hour' FROM brokerage_pilot
    WHERE last_seen > now() - interval '5 hours'
    """,
    """
    INSERT INTO brokerage_idlehour (queue_id, hour, looked_at, idle)
    SELECT q, date_trunc('hour', now()) - h * interval '1 hour', now() - h * interval '1 hour', 1
    FROM generate_series(1, 200) q, generate_series(0, 47) h
    """,
    # One task in fifty has not ended; these are spread over all states.
    """
    INSERT INTO workqueues_task (id, task_name, user_name, vo, working_group, prod_source_label, task_type, processing_type,
        parent_tid, work_queue_id, status, ended_at, creation_date, locked_by, locked_time, command, command_time,
        current_priority, next_look_at)
    SELECT n, 'task.' || n, 'user' || n % 20, CASE WHEN n % 7000 = 0 THEN 'small' WHEN n % 3 = 0 THEN 'other' ELSE 'demo' END,
        'group' || n % 9, 'user', CASE WHEN n % 2 = 0 THEN 'anal' ELSE 'prod' END, 'proc' || n % 5, n - n % 4,
        (SELECT min(id) FROM workqueues_workqueue),
        CASE WHEN live THEN states[1 + n / 50 % array_length(states, 1)] ELSE 'done' END, CASE WHEN NOT live THEN now() END,
        now() - (20000 - n) * interval '5 minutes', CASE WHEN n % 200 = 1 THEN 'run' ELSE '' END,
        CASE WHEN n % 200 = 1 THEN now() - interval '1 minute' END, CASE WHEN n % 400 = 0 THEN 'kill' ELSE '' END,
        CASE WHEN n % 400 = 0 THEN now() END, n % 1000, CASE WHEN n % 100 = 0 THEN now() - interval '1 minute' END
    FROM generate_series(1, {tasks}) n, LATERAL (SELECT n % 50 = 0 OR n = {large} AS live) AS l,
        (SELECT ARRAY['ready', 'running', 'running', 'pending', 'registered', 'defined', 'assigning', 'aborting', 'prepared']
            AS states) AS s
    """,
    "INSERT INTO workqueues_taskparams (task_id, task_params) SELECT n, '{}' FROM generate_series(1, {tasks}) n",
    """
    INSERT INTO workqueues_taskchange (task_id, epoch, old, new, who, at)
    SELECT n, e, '-', 'registered', 'user', now() FROM generate_series(1, {tasks}) n, generate_series(0, 1) e
    """,
    """
    INSERT INTO workqueues_submission (user_name, key, body_sha256, task_id, at)
    SELECT 'user' || n % 500, 'key' || n, '', n, now() FROM generate_series(1, {tasks}) n
    """,
    """
    INSERT INTO workqueues_dataset (id, task_id, dataset_name, container_name, type, stream_name, attributes, vo, cloud, site,
        storage_token, destination, status, state, state_check_time, state_check_expiration, locked_by, locked_time, n_files,
        n_files_to_be_used, n_files_used, n_files_finished)
    SELECT n * 2 + i, n, (ARRAY['in.', 'out.'])[1 + i] || n, CASE WHEN n % 10 = 0 THEN 'box.' || n / 100 ELSE '' END,
        (ARRAY['input', 'output'])[1 + i], '', '', CASE WHEN n % 7000 = 0 THEN 'small' ELSE 'demo' END,
        '', '', '', '',
        CASE WHEN live THEN 'ready' ELSE 'done' END, 'open', now() - n * interval '1 minute',
        CASE WHEN n % 100 = 0 THEN now() END, CASE WHEN n % 200 = 1 THEN 'run' ELSE '' END,
        CASE WHEN n % 200 = 1 THEN now() END, 10, 10, CASE WHEN live THEN 5 ELSE 10 END, CASE WHEN live THEN 5 ELSE 10 END
    FROM generate_series(1, {tasks}) n, generate_series(0, 1) i, LATERAL (SELECT n % 50 = 0 OR n = {large} AS live) AS l
    """,
    """
    INSERT INTO workqueues_dataset (id, task_id, dataset_name, type, status, container_name, stream_name, attributes, vo, cloud,
        site, storage_token, destination, state, locked_by)
    VALUES (1, {large}, 'seeds', 'random_seed', 'ready', '', '', '', 'demo', '', '', '', '', '', '')
    """,
    """
    INSERT INTO workqueues_datasetchange (dataset_id, task_id, epoch, old, new, who, at)
    SELECT n, n / 2, 0, '-', 'defined', 'agent', now() FROM generate_series(2, {tasks}) n
    """,
    """
    INSERT INTO workqueues_outputtemplate (task_id, dataset_id, filename_template, source_name, stream_name, out_type)
    SELECT n, n * 2 + 1, '', '', '', 'output' FROM generate_series(1, {tasks}) n
    """,
    # The job that makes the output of a task has its number.
    """
    INSERT INTO workqueues_file (dataset_id, task_id, lfn, type, status, job_id, out_job_id, held)
    SELECT n * 2 + i, n, (ARRAY['in.', 'out.'])[1 + i] || n, (ARRAY['input', 'output'])[1 + i], 'finished',
        CASE i WHEN 0 THEN n END, CASE i WHEN 1 THEN n END, CASE WHEN n % 1000 + i = 0 THEN 'missing' ELSE '' END
    FROM generate_series(1, {tasks}) n, generate_series(0, 1) i
    """,
    """
    INSERT INTO workqueues_file (dataset_id, task_id, lfn, type, status)
    SELECT {large} * 2, {large}, 'large.' || n, 'input', CASE WHEN n % 4 = 0 THEN 'ready' ELSE 'finished' END
    FROM generate_series(1, {files}) n
    """,
    """
    INSERT INTO workqueues_file (dataset_id, task_id, lfn, type, status, first_event)
    SELECT 1, {large}, 'seed.' || n, 'random_seed', 'finished', n FROM generate_series(1, {files}) n
    """,
    """
    INSERT INTO workqueues_filechange (file_id, task_id, old, new, who, at)
    SELECT n, n, 'ready', 'held', 'job', now() FROM generate_series(1, {tasks}) n
    """,
    # Four jobs on each input of a task, the first of them the one that the file names.
    """
    INSERT INTO workqueues_eventrange (task_id, dataset_id, file_id, job_id, status, def_min_event_id, def_max_event_id,
        attempt_nr)
    SELECT f.task_id, f.dataset_id, f.id, f.task_id + n * {tasks}, CASE n WHEN 3 THEN 'failed' ELSE 'done' END, n * 10,
        n * 10 + 9, 1
    FROM workqueues_file f, generate_series(0, 3) n WHERE f.type = 'input' AND f.job_id IS NOT NULL
    """,
    """
    INSERT INTO workqueues_datasetwriter (id, vo, dataset_name, user_name)
    SELECT n, 'demo', 'out.' || n, 'user7' FROM generate_series(1, {tasks}) n
    """,
    "INSERT INTO workqueues_plannedoutput (task_id, writer_id) SELECT n, n FROM generate_series(1, {tasks}) n",
    """
    INSERT INTO workqueues_inputwriter (task_id, writer_id, dataset_name)
    SELECT n, n - 1, 'out.' || n - 1 FROM generate_series(2, {tasks}) n
    """,
    """
    INSERT INTO workqueues_cataloguedataset (id, vo, name, state)
    SELECT n, CASE WHEN n % 7000 = 0 THEN 'small' ELSE 'demo' END, 'in.' || n, 'open' FROM generate_series(1, {tasks}) n
    """,
    """
    INSERT INTO workqueues_readgrant (vo, pattern, grantee_kind, grantee, made_by)
    SELECT 'demo', 'in.' || n % 20, CASE n % 2 WHEN 0 THEN 'vo' ELSE 'user' END,
        CASE n % 2 WHEN 0 THEN 'vo' ELSE 'user' END || n / 20, 'test' FROM generate_series(1, 20000) n
    """,
    """
    INSERT INTO workqueues_cataloguefile (id, dataset_id, lfn, fsize, checksum)
    SELECT n, n, 'in.' || n, 1, '00000001' FROM generate_series(1, {tasks}) n
    """,
    "INSERT INTO workqueues_replica (file_id, storage) SELECT n, 'S' || n % 20 FROM generate_series(1, {tasks}) n",
    # One job in fifty is ready, as many are held by pilots, the others have ended.
    """
    INSERT INTO brokerage_job (id, task_id, status, ended_at, priority, ready_priority, task_queue_id, computing_queue_id,
        lease_holder, lease_request, lease_until, status_since)
    SELECT n, 1 + n % {tasks}, CASE n % 50 WHEN 0 THEN 'activated' WHEN 1 THEN 'running' ELSE 'finished' END,
        CASE WHEN n % 50 > 1 THEN now() END, 500, CASE WHEN n % 50 = 0 THEN -500 END, q, 1 + q % 200,
        CASE WHEN n % 50 = 1 THEN gen_random_uuid() END, CASE WHEN n % 50 = 1 THEN gen_random_uuid() END,
        CASE WHEN n % 50 = 1 THEN now() + (n % 100) * interval '1 s' END, now()
    FROM generate_series(1, {jobs}) n, LATERAL (SELECT CASE WHEN n % 5000 = 0 THEN 1000 ELSE 1 + n * 7 % 999 END AS q) AS l
    """,
    """
    INSERT INTO brokerage_jobspec (job_id, job_name, vo, user_name)
    SELECT n, 'job.' || n, q.vo, 'user' || n % 500
    FROM generate_series(1, {jobs}) n JOIN brokerage_job j ON j.id = n JOIN brokerage_taskqueue q ON q.id = j.task_queue_id
    """,
    "INSERT INTO brokerage_jobresult (job_id, host) SELECT id, 'node' FROM brokerage_job WHERE ended_at IS NOT NULL",
    """
    INSERT INTO brokerage_jobinput (job_id, file_id, dataset_id, status)
    SELECT id, id, 2, CASE WHEN ended_at IS NULL THEN 'live' ELSE 'used' END FROM brokerage_job
    """,
    """
    INSERT INTO brokerage_jobchange (job_id, old, new, epoch, who)
    SELECT n, '-', 'activated', 0, 'agent' FROM generate_series(1, {jobs}) n
    """,
    """
    INSERT INTO brokerage_jobretryhistory (task_id, old_job_id, new_job_id, origin_job_id)
    SELECT n, n, n + 1, n FROM generate_series(1, {tasks}) n
    """,
    """
    INSERT INTO brokerage_decision (task_id, policy, outcome, n_candidates, n_chosen, ask, record, config, config_revision, seed,
        own)
    SELECT n, 'generic', 'assign', 1, 1, '{}', '', '{}', 0, '', '' FROM generate_series(1, {tasks}) n
    """,
)
GUARDED = ("workqueues_task", "workqueues_dataset", "workqueues_file", "workqueues_eventrange", "brokerage_job")


SIZES = (("{tasks}", str(TASKS)), ("{jobs}", str(JOBS)), ("{large}", str(LARGE_TASK)), ("{files}", str(LARGE_FILES)))


def fill(*, checked: bool = False) -> dict[str, float]:
    """Fill the tables, in the caller's transaction: table -> number of rows, as PostgreSQL estimates it.

    With `checked` the foreign keys of each row are looked after: once in a run is enough, and takes half of the time again.
    """
    WorkQueue.objects.get_or_create(queue_name="default", queue_type="", vo="*", defaults={"queue_order": 1000})
    with connection.cursor() as cursor:
        cursor.execute(EMPTIED)
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        unchecked = not checked and may_do_without_triggers()
        if unchecked:
            cursor.execute(WITHOUT_TRIGGERS)
        for table in GUARDED:
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        for statement in ROWS:
            cursor.execute(reduce(lambda text, size: text.replace(*size), SIZES, statement))
        for table in GUARDED:
            cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")
        if unchecked:
            cursor.execute(WITH_TRIGGERS)
        cursor.execute("ANALYZE")
    return estimated_rows()


def fill_beside(statements: Sequence[str], *values: int) -> dict[str, float]:
    """`fill`, and what these statements add; `values` are those of each with a place for them."""
    fill()
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement, values if "%s" in statement else None)
    return estimated_rows()


def estimated_rows() -> dict[str, float]:
    """Table -> how many rows it is thought to have since it was last analyzed."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname, reltuples FROM pg_class WHERE relkind = 'r'")
        return dict(cursor.fetchall())
