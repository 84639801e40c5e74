"""The statements of `filling_pages`: rows of the tables of the system, as the ledgers leave them, from what is planned of each
task and job.

File ids: ten of each job, seven inputs, two outputs and a log. Dataset ids: three of each task, its input, output and log. What
is in the catalogue has the same ids; there are the files of the youngest tasks only, since older ones were removed.
"""

from __future__ import annotations

INPUTS = 7
MADE = (
    "workqueues_task", "workqueues_dataset", "workqueues_file", "workqueues_cataloguedataset", "workqueues_cataloguefile",
    "brokerage_job",
)  # fmt: skip
"""Tables whose ids are given here."""

TASKS = """
INSERT INTO workqueues_task (id, task_name, user_name, submitted_by, vo, prod_source_label, task_type, processing_type, gshare,
    resource_type, status, old_status, status_since, ended_at, error_dialog, next_look_at, creation_date, modification_time,
    start_time, task_priority, current_priority, progress, failure_rate, split_rule, trans_path, core_count, ram_count, ram_unit,
    cpu_time, cpu_time_unit, out_disk_count, out_disk_unit, nucleus, epoch)
SELECT id, vo || '.' || share || '.campaign' || id % 40 || '.t' || id, user_name, user_name, vo,
    CASE WHEN id % 3 = 0 THEN 'user' ELSE 'managed' END, CASE WHEN id % 3 = 0 THEN 'anal' ELSE 'prod' END, 'simul', share,
        'MCORE',
    status, CASE WHEN status IN ({interrupted}) THEN 'running' ELSE '' END,
    coalesce(ended, created + interval '2 min'), ended,
    CASE WHEN status = 'pending' THEN 'no candidate: 120 of 200 queues lack the input' WHEN status = 'failed' THEN
        'all tries failed'
        ELSE '' END,
    CASE WHEN status IN ({resting}) THEN timestamptz '{now}' + interval '10 min' END, created, coalesce(ended,
        '{now}'),
    created + interval '2 min', 500, 500, 100 * finished / (last - first + 1),
    CASE WHEN ended IS NOT NULL THEN 100 * failed / (last - first + 1) END, 'NF=7', 'run.py', 8, 1500, 'MBPerCore', 200,
    'HS06sPerEvent', 500, 'kBPerEvent', 'S' || to_char(id % 10, 'FM000'), 5
FROM plan.task ORDER BY id
"""
PARAMS = """
INSERT INTO workqueues_taskparams (task_id, task_params)
SELECT id, jsonb_build_object('taskName', vo || '.t' || id, 'userName', user_name, 'vo', vo, 'transPath', 'run.py',
    'nFilesPerJob', 7,
    'coreCount', 8, 'ramCount', 1500, 'ramUnit', 'MBPerCore', 'prodSourceLabel', 'managed', 'processingType', 'simul',
    'jobParameters', jsonb_build_array(jsonb_build_object('type', 'constant', 'value', repeat('--option value ', 10))))
FROM plan.task ORDER BY id
"""
TASK_CHANGES = """
INSERT INTO workqueues_taskchange (task_id, epoch, at, old, new, who, why)
SELECT t.id, c.epoch, c.at, c.old, c.new, c.who, '' FROM plan.task t, LATERAL (VALUES
    (0, t.created, '-', 'registered', t.user_name), (1, t.created + interval '10 s', 'registered', 'defined', 'agent:refine'),
    (2, t.created + interval '30 s', 'defined', 'ready', 'agent:feed'),
    (3, t.created + interval '2 min', 'ready', 'running', 'agent:generate'),
    (4, coalesce(t.ended, t.created + interval '2 min'), 'running', CASE WHEN t.status <> 'running' THEN t.status END,
        'agent:achieve')
) AS c (epoch, at, old, new, who) WHERE c.new IS NOT NULL ORDER BY t.id, c.epoch
"""
DATASETS = """
INSERT INTO workqueues_dataset (id, task_id, dataset_name, container_name, type, stream_name, attributes, vo, cloud, site,
    storage_token, destination, status, state, locked_by, creation_time, status_since, n_files, n_files_to_be_used, n_files_used,
    n_files_finished, n_files_failed, n_events, n_events_used)
SELECT 3 * (t.id - 1) + k, t.id, t.vo || '.t' || t.id || '.' || d.type, '', d.type, '', '', t.vo, '', '', '', '',
    CASE WHEN t.ended IS NOT NULL THEN 'done' WHEN k = 1 THEN 'ready' ELSE 'running' END,
    CASE WHEN k = 1 THEN 'closed' ELSE '' END, '', t.created, t.created, d.files * (t.last - t.first + 1),
    CASE WHEN k = 1 THEN d.files * (t.last - t.first + 1) ELSE 0 END,
    CASE WHEN k = 1 THEN d.files * (t.last - t.first + 1 - CASE WHEN t.ended IS NULL THEN t.failed ELSE 0 END) ELSE 0 END,
    d.files * t.finished, CASE WHEN t.ended IS NOT NULL THEN d.files * t.failed ELSE 0 END,
    CASE WHEN k = 1 THEN 10 * d.files * (t.last - t.first + 1) END, CASE WHEN k = 1 THEN 10 * d.files * t.finished END
FROM plan.task t, LATERAL (VALUES (1, 'input', 7), (2, 'output', 2), (3, 'log', 1)) AS d (k, type, files) ORDER BY t.id, k
"""
KNOWN_DATASETS = """
INSERT INTO workqueues_cataloguedataset (id, vo, name, owner, folder, state)
SELECT d.id, d.vo, d.dataset_name, t.user_name, d.dataset_name, CASE WHEN t.ended IS NULL AND d.type <> 'input' THEN 'open'
    ELSE 'closed' END
FROM workqueues_dataset d JOIN plan.task t ON t.id = d.task_id WHERE t.id > {copied} ORDER BY d.id
"""
QUEUES = """
CREATE UNLOGGED TABLE plan.queue AS
SELECT row_number() OVER (ORDER BY id) - 1 AS nr, id, name, site_id FROM brokerage_computingqueue;
ANALYZE plan.queue
"""
TASK_QUEUES = """
WITH sets AS (
    INSERT INTO brokerage_requirementset (digest) SELECT DISTINCT 'open ' || share FROM plan.job WHERE open RETURNING id, digest
), places AS (
    INSERT INTO brokerage_requirementplace (requirement_set_id, computing_queue_id, storage)
    SELECT s.id, q.id, '' FROM sets s JOIN brokerage_computingqueue q ON hashint4(s.id + 7 * q.id) % 10 = 0
)
INSERT INTO brokerage_taskqueue (computing_queue_id, vo, gshare, prod_source_label, resource_type, core_count, ram_mb,
    requirement_set_id)
SELECT DISTINCT q.id, j.vo, j.share, 'managed', 'MCORE', 8, 12000, s.id FROM plan.job j
    LEFT JOIN plan.queue q ON NOT j.open AND q.nr = j.queue_nr
    LEFT JOIN sets s ON j.open AND s.digest = 'open ' || j.share
WHERE NOT j.final
;
ANALYZE brokerage_taskqueue
"""
PER_TASK = (TASKS, PARAMS, TASK_CHANGES, DATASETS, KNOWN_DATASETS, QUEUES, TASK_QUEUES)

JOBS = """
INSERT INTO brokerage_job (id, task_id, kind, status, status_since, ended_at, epoch, priority, ready_priority, task_queue_id,
    computing_queue_id, storage, resource_type, core_count, attempt_nr, lease_holder, lease_until, lease_s, last_seen)
SELECT j.id, j.task_id, j.kind, j.status, CASE WHEN j.final THEN j.ended WHEN j.began <= '{now}' THEN j.began ELSE j.born END,
    CASE WHEN j.final THEN j.ended END, CASE WHEN j.began <= '{now}' THEN 1 ELSE 0 END, 500 + j.id % 11,
    CASE WHEN j.status = 'activated' THEN -(500 + j.id % 11) END, coalesce(t.id, 0), CASE WHEN NOT j.open THEN q.id END,
    CASE WHEN j.open THEN '' ELSE q.site_id || '_DATADISK' END, 'MCORE', 8, CASE WHEN j.is_retry THEN 2 ELSE 1 END,
    CASE WHEN j.leased THEN lpad(to_hex(j.queue_nr * 1000 + j.id % {pilots} + 1), 32, '0')::uuid END,
    CASE WHEN j.leased THEN timestamptz '{now}' + interval '2 hours' END, CASE WHEN j.leased THEN 7200 ELSE 0 END,
    CASE WHEN j.leased THEN timestamptz '{now}' END
FROM plan.job j JOIN plan.queue q ON q.nr = j.queue_nr
    LEFT JOIN brokerage_taskqueue t ON NOT j.final AND t.vo = j.vo AND t.gshare = j.share
        AND t.computing_queue_id IS NOT DISTINCT FROM CASE WHEN NOT j.open THEN q.id END
WHERE j.id BETWEEN {first} AND {last} ORDER BY j.id
"""
SPECS = """
INSERT INTO brokerage_jobspec (job_id, job_name, vo, user_name, prod_source_label, processing_type, transformation,
    job_parameters, ram_mb, disk_mb, walltime_s, n_input_files, input_bytes, n_events, created_at)
SELECT j.id, j.vo || '.t' || j.task_id || '.' || j.id, j.vo, j.user_name, 'managed', 'simul', 'run.py',
    '--seed ' || j.id || repeat(' --option value', 8) || ' --out=out.' || j.id, 12000, 20000, 86400, 7, 7000000000, 70,
    j.born
FROM plan.job j WHERE j.id BETWEEN {first} AND {last} ORDER BY j.id
"""
RESULTS = """
INSERT INTO brokerage_jobresult (job_id, reported_status, pilot_id, host, start_time, end_time, exit_code, error_code,
    error_message, fingerprint, metrics)
SELECT j.id, CASE j.status WHEN 'finished' THEN 'finished' ELSE coalesce(e.reported, '') END,
    lpad(to_hex(j.queue_nr * 1000 + j.id % {pilots} + 1), 32, '0')::uuid, 'node' || j.id % {pilots}, j.began, j.ended,
    CASE j.status WHEN 'finished' THEN 0 ELSE e.exit_code END, coalesce(e.code, ''),
    coalesce(replace(e.message, '#', (j.id % 9973)::text), ''), e.fingerprint,
    jsonb_build_object('cpu_s', 3000 + j.id % 5000, 'max_rss_mb', 900 + j.id % 700, 'max_pss_mb', 800 + j.id % 700,
        'read_bytes', 1000000, 'written_bytes', 1000000)
FROM plan.job j LEFT JOIN plan.error e ON e.nr = j.error
WHERE j.id BETWEEN {first} AND {last} AND j.status IN ({tried}) ORDER BY j.id
"""
RETRIES = """
INSERT INTO brokerage_jobretryhistory (task_id, old_job_id, new_job_id, origin_job_id, at)
SELECT task_id, id, retry_by, id, ended FROM plan.job WHERE id BETWEEN {first} AND {last} AND retry_by IS NOT NULL ORDER BY id
"""
CHANGES = """
INSERT INTO brokerage_jobchange (job_id, at, old, new, epoch, who)
SELECT j.id, m.at, m.old, m.new, m.epoch, m.who FROM plan.job j JOIN plan.path p USING (status) CROSS JOIN LATERAL (
    SELECT greatest(j.born, least(timestamptz '{now}',
        CASE p.since WHEN 'born' THEN j.born WHEN 'began' THEN j.began ELSE j.ended END + p.later)) AS at,
        p.old, p.new, p.nr AS epoch, p.who) AS m
WHERE j.id BETWEEN {first} AND {last} ORDER BY j.id, p.nr
"""
FILES = """
INSERT INTO workqueues_file (id, dataset_id, task_id, lfn, type, status, fsize, checksum, n_events, attempt_nr, max_attempt,
    failed_attempt, job_id, out_job_id, creation_date)
SELECT 10 * (j.id - 1) + i, 3 * (j.task_id - 1) + CASE WHEN i <= 7 THEN 1 WHEN i <= 9 THEN 2 ELSE 3 END, j.task_id,
    CASE WHEN i <= 7 THEN 'data.' WHEN i <= 9 THEN 'made.' ELSE 'log.' END || lpad((10 * (j.id - 1) + i)::text, 9, '0'),
    CASE WHEN i <= 7 THEN 'input' WHEN i <= 9 THEN 'output' ELSE 'log' END, CASE WHEN i <= 7 THEN s.input ELSE s.output END,
    1000000000, '00000001', 10, CASE WHEN i <= 7 THEN 1 ELSE 0 END, CASE WHEN i <= 7 THEN 3 END,
    CASE WHEN i <= 7 AND j.status = 'failed' THEN 1 ELSE 0 END, CASE WHEN i <= 7 THEN coalesce(j.retry_by, j.id) END,
    CASE WHEN i > 7 THEN j.id END, j.born
FROM plan.job j JOIN plan.task t ON t.id = j.task_id CROSS JOIN LATERAL (
    SELECT CASE WHEN j.status = 'finished' OR j.retry_by IS NOT NULL THEN 'finished'
        WHEN NOT j.final THEN 'running' WHEN t.ended IS NULL THEN 'ready'
        ELSE 'failed' END AS input,
        CASE WHEN j.status = 'finished' THEN 'finished' WHEN j.final THEN 'failed'
        ELSE 'running' END AS output) AS s, generate_series(1, 10) AS i
WHERE j.id BETWEEN {first} AND {last} ORDER BY j.id, i
"""
USES = """
INSERT INTO brokerage_jobinput (job_id, file_id, dataset_id, attempt_nr, status)
SELECT use.job, 10 * (j.id - 1) + i, 3 * (j.task_id - 1) + 1, use.attempt, use.status FROM plan.job j CROSS JOIN LATERAL (
    SELECT j.id AS job, 0 AS attempt, CASE WHEN j.status = 'finished' THEN 'used'
        WHEN j.final THEN 'returned' ELSE 'live' END AS status
    UNION ALL SELECT j.retry_by, 1, 'used' WHERE j.retry_by IS NOT NULL) AS use, generate_series(1, 7) AS i
WHERE j.id BETWEEN {first} AND {last} ORDER BY use.job, i
"""
KNOWN_FILES = """
INSERT INTO workqueues_cataloguefile (id, dataset_id, lfn, fsize, checksum, n_events)
SELECT id, dataset_id, lfn, fsize, checksum, n_events FROM workqueues_file
WHERE id BETWEEN 10 * ({first} - 1) + 1 AND 10 * {last} AND task_id > {copied} AND (type = 'input' OR status = 'finished')
ORDER BY id
"""
COPIES = """
INSERT INTO workqueues_replica (file_id, storage)
SELECT f.id, 'S' || to_char(c.site, 'FM000') || '_DATADISK' FROM workqueues_cataloguefile f CROSS JOIN LATERAL (
    SELECT (f.dataset_id % 60)::int AS site UNION ALL SELECT ((f.dataset_id + 17) % 60)::int WHERE f.id % 2 = 0) AS c
WHERE f.id BETWEEN 10 * ({first} - 1) + 1 AND 10 * {last} ORDER BY f.id
"""
PER_JOB = ((JOBS,), (SPECS, RESULTS, RETRIES, CHANGES, FILES), (USES, KNOWN_FILES), (COPIES,))
"""Statements that may run beside each other, before those that need them."""

TRANSFERS = """
INSERT INTO brokerage_transfer (file_id, destination, destination_site, source, source_site, status, status_since, reason,
    activity,
    priority, vo, bytes, checksum, attempt, created_at, ended_at)
SELECT f.id, 'S' || to_char(d.site, 'FM000') || '_DATADISK', 'S' || to_char(d.site, 'FM000'), 'S' || to_char(d.from, 'FM000') ||
    '_DATADISK',
    'S' || to_char(d.from, 'FM000'), d.status, f.created_at, CASE d.status WHEN 'failed' THEN 'no_source' ELSE '' END,
        'Datasets', 500,
    c.vo, f.fsize, f.checksum, 1, f.created_at, CASE WHEN d.status <> 'queued' THEN f.created_at END
FROM workqueues_cataloguefile f JOIN workqueues_cataloguedataset c ON c.id = f.dataset_id CROSS JOIN LATERAL (
    SELECT (f.dataset_id % 60)::int AS from, ((f.dataset_id + 1 + f.id % 50) % 60)::int AS site,
        CASE WHEN f.id % 100 < 7 THEN 'queued' WHEN f.id % 100 < 10 THEN 'failed' ELSE 'done' END AS status) AS d
WHERE f.id % 33 = 0 AND d.from <> d.site ORDER BY f.id
"""
TRANSFER_CHANGES = """
INSERT INTO brokerage_transferchange (transfer_id, at, old, new, attempt, who, why)
SELECT t.id, coalesce(t.ended_at, t.created_at) - interval '1 s' * m.before, m.old, m.new, m.attempt, 'agent:transfer', t.reason
FROM brokerage_transfer t CROSS JOIN LATERAL (VALUES
    ('-', 'queued', 0, 300), ('queued', 'submitting', 1, 20 + t.id % 100), ('submitting', 'submitted', 1, 20 + t.id % 100),
    ('submitted', t.status, 1, 0)) AS m (old, new, attempt, before)
WHERE m.new = 'queued' OR t.ended_at IS NOT NULL ORDER BY t.id, m.before DESC
"""
"""Without them a link would have carried all of its files in no time."""
PARTS = (TRANSFERS, TRANSFER_CHANGES)
