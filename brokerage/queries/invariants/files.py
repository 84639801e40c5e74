"""Invariants of files: who uses an input and how often, what became of each output."""

from __future__ import annotations

from brokerage.queries.invariants.statement import Invariant
from brokerage.states import STORAGE_DOWN
from workqueues.states import INPUT_FILE, LOG_TYPES, MASTER_TYPES, OUTPUT_FILE, OUTPUT_TYPES, PREMERGED_TYPES, TASK

WHOLE = "NOT EXISTS (SELECT 1 FROM workqueues_eventrange r WHERE r.file_id = f.id)"
"""Whether jobs have the file whole; what holds of files of which they have event ranges stands in `events`."""

INVARIANTS = (
    Invariant(
        "one_live_use",
        "A tracked file or event range is given to at most one live job.",
        """
        SELECT 'file ' || file_id || coalesce(', range ' || event_range_id, '') || ': ' || count(*) || ' live jobs'
        FROM brokerage_jobinput WHERE tracked AND status = 'live' GROUP BY file_id, event_range_id HAVING count(*) > 1
        """,
    ),
    Invariant(
        "one_successful_use",
        "A tracked file or event range is used successfully at most once.",
        """
        SELECT 'file ' || file_id || coalesce(', range ' || event_range_id, '') || ': used ' || count(*) || ' times'
        FROM brokerage_jobinput WHERE tracked AND status = 'used' GROUP BY file_id, event_range_id HAVING count(*) > 1
        """,
    ),
    Invariant(
        "running_input_has_its_job",
        "An input file is running exactly while a live job, the one that it names, has it whole.",
        f"""
        SELECT coalesce('file ' || f.id || ' is running for job ' || f.job_id || ', which does not have it',
                        'job ' || u.job_id || ' has file ' || u.file_id || ', which is not running for it')
        FROM (SELECT id, coalesce(job_id, 0) AS job_id FROM workqueues_file f
              WHERE status = 'running' AND type = ANY(%(input_types)s) AND keep_track AND element_id IS NULL AND {WHOLE}) f
        FULL JOIN (SELECT DISTINCT i.file_id, i.job_id FROM brokerage_jobinput i JOIN brokerage_job j ON j.id = i.job_id
                   WHERE i.tracked AND i.status = 'live' AND i.event_range_id IS NULL AND j.kind <> %(merge_kind)s) u
          ON u.file_id = f.id AND u.job_id = f.job_id
        WHERE f.id IS NULL OR u.file_id IS NULL
        """,
    ),
    Invariant(
        "finished_input_has_its_use",
        "An input file is finished exactly when a job used it whole.",
        f"""
        SELECT coalesce('file ' || f.id || ' is finished, no job used it',
                        'file ' || u.file_id || ' was used, it is not finished')
        FROM (SELECT id FROM workqueues_file f
              WHERE status = 'finished' AND type = ANY(%(input_types)s) AND keep_track AND {WHOLE}) f
        FULL JOIN (SELECT DISTINCT i.file_id FROM brokerage_jobinput i JOIN brokerage_job j ON j.id = i.job_id
                   WHERE i.tracked AND i.status = 'used' AND i.event_range_id IS NULL AND j.kind <> %(merge_kind)s
                   UNION SELECT file_id FROM workqueues_elementinput WHERE status = 'used') u
          ON u.file_id = f.id
        WHERE f.id IS NULL OR u.file_id IS NULL
        """,
    ),
    Invariant(
        "attempts_within_limits",
        "A file has no more tries and failures than allowed, and no more failures than tries.",
        """
        SELECT 'file ' || id || ': ' || attempt_nr || ' of ' || coalesce(max_attempt::text, 'any') || ' tries, '
            || failed_attempt || ' of ' || coalesce(max_failure::text, 'any') || ' failures'
        FROM workqueues_file
        WHERE attempt_nr < 0 OR failed_attempt NOT BETWEEN 0 AND attempt_nr
           OR attempt_nr > max_attempt OR failed_attempt > max_failure
        """,
    ),
    Invariant(
        "attempts_counted",
        "Tries and failures of an input file are those of its jobs, but for storages that were down; one given up unused "
        "stands at its limit of tries.",
        f"""
        SELECT 'file ' || f.id || ': ' || f.attempt_nr || ' tries for ' || coalesce(u.tries, 0) || ', '
            || f.failed_attempt || ' failures for ' || coalesce(u.failures, 0)
        FROM workqueues_file f LEFT JOIN (
            SELECT file_id, count(*) AS tries, count(*) FILTER (WHERE failed) AS failures FROM (
                SELECT i.file_id, j.status = 'failed' AS failed FROM brokerage_jobinput i JOIN brokerage_job j ON j.id = i.job_id
                WHERE i.tracked AND i.status <> 'live' AND j.sub_status <> '{STORAGE_DOWN}'
                UNION ALL SELECT file_id, status = 'failed' FROM workqueues_elementinput
                WHERE status NOT IN ('live', 'untried')) AS ended GROUP BY file_id
        ) u ON u.file_id = f.id
        WHERE f.type = ANY(%(input_types)s) AND f.keep_track AND {WHOLE} AND (
            f.failed_attempt <> coalesce(u.failures, 0) OR f.attempt_nr < coalesce(u.tries, 0)
            OR f.attempt_nr > coalesce(u.tries, 0)
               AND NOT EXISTS (SELECT 1 FROM workqueues_filechange c WHERE c.file_id = f.id AND c.new = 'failed'))
        """,
    ),
    Invariant(
        "given_up_for_a_reason",
        "An input file that is failed reached a limit, or its history says who gave it up.",
        """
        SELECT 'file ' || f.id || ': ' || f.attempt_nr || ' of ' || coalesce(f.max_attempt::text, 'any') || ' tries'
        FROM workqueues_file f
        WHERE f.status = 'failed' AND f.type = ANY(%(input_types)s)
          AND NOT (coalesce(f.attempt_nr >= f.max_attempt, false) OR coalesce(f.failed_attempt >= f.max_failure, false))
          AND NOT EXISTS (SELECT 1 FROM workqueues_filechange c WHERE c.file_id = f.id AND c.new = 'failed')
        """,
    ),
    Invariant(
        "held_while_ready",
        "Only a ready file is held back, or one whose other events a generator has picked.",
        f"""
        SELECT 'file ' || id || ' is ' || status || ': ' || held FROM workqueues_file
        WHERE held <> '' AND status NOT IN ({INPUT_FILE.held.sql})
        """,
    ),
    Invariant(
        "picked_for_a_generator",
        "A picked file belongs to a task whose claim holder makes jobs of it, or to one that somebody will look at.",
        f"""
        SELECT 'file ' || f.id || ' is picked, its task ' || t.id || ' is ' || t.status
            || CASE WHEN t.locked_by = '' THEN ' and nobody has claimed it' ELSE '' END
        FROM workqueues_file f JOIN workqueues_task t ON t.id = f.task_id
        WHERE f.status = 'picked' AND f.element_id IS NULL AND (
            t.status NOT IN ({TASK.generating.sql}, {TASK.commanded.sql})
            OR t.locked_by = '' AND t.status IN ({TASK.generating.sql}) AND NOT EXISTS (
                SELECT 1 FROM workqueues_dataset d WHERE d.task_id = t.id AND d.status = 'ready' AND d.master_id IS NULL
                  AND d.type IN ({MASTER_TYPES.sql}) AND d.n_files_to_be_used > d.n_files_used))
        """,
    ),
    Invariant(
        "output_follows_its_job",
        "An output file is running while its job lives, finished when the job finished, else failed; a log may be finished too, "
        "and what is to be merged waits.",
        f"""
        SELECT 'file ' || f.id || ' is ' || f.status || ', job ' || f.out_job_id || ' is ' || coalesce(j.status, 'not there')
        FROM workqueues_file f LEFT JOIN brokerage_job j ON j.id = f.out_job_id
        WHERE f.out_job_id IS NOT NULL AND NOT (f.type IN ({LOG_TYPES.sql}) AND f.status = 'finished' AND j.ended_at IS NOT NULL)
          AND NOT (j.status = 'merging' AND (f.status IN ({OUTPUT_FILE.unmerged.sql}) OR f.no_output))
          AND f.status IS DISTINCT FROM
            CASE WHEN j.status = 'finished' THEN 'finished' WHEN j.ended_at IS NOT NULL THEN 'failed'
                 WHEN j.id IS NOT NULL THEN 'running' END
        """,
    ),
    Invariant(
        "output_name_once",
        "No two output files of a dataset have the same name, but for those that were not made.",
        """
        SELECT 'dataset ' || dataset_id || ': ' || count(*) || ' times ' || lfn FROM workqueues_file
        WHERE out_job_id IS NOT NULL AND status <> 'failed' GROUP BY dataset_id, lfn HAVING count(*) > 1
        """,
    ),
    Invariant(
        "finished_output_registered",
        "A finished output is in the catalogue once, with its size and checksum and a replica.",
        f"""
        SELECT 'file ' || f.id || ' ' || f.lfn || ': ' || count(DISTINCT c.id) || ' times in the catalogue, '
            || count(r.id) || ' replicas'
        FROM workqueues_file f JOIN workqueues_dataset d ON d.id = f.dataset_id
        LEFT JOIN workqueues_cataloguedataset cd ON cd.name = d.dataset_name AND cd.vo = d.vo
        LEFT JOIN workqueues_cataloguefile c
          ON c.dataset_id = cd.id AND c.lfn = f.lfn AND c.fsize = f.fsize AND c.checksum = f.checksum
        LEFT JOIN workqueues_replica r ON r.file_id = c.id
        WHERE (f.out_job_id IS NOT NULL OR f.element_id IS NOT NULL AND f.type IN ({OUTPUT_TYPES.sql}))
            AND f.status = 'finished' AND NOT f.no_output AND f.lost_at IS NULL
        GROUP BY f.id HAVING count(DISTINCT c.id) <> 1 OR count(r.id) = 0
        """,
    ),
    Invariant(
        "failed_output_not_registered",
        "An output that was not made, or is on its way, is not in the catalogue for readers, but for files that were registered "
        "under its name by others, or made again under it, and for those that were to be merged.",
        f"""
        SELECT 'file ' || f.id || ' ' || f.lfn || ' is ' || f.status
        FROM workqueues_file f JOIN workqueues_dataset d ON d.id = f.dataset_id
        JOIN workqueues_cataloguedataset cd ON cd.name = d.dataset_name AND cd.vo = d.vo
        JOIN workqueues_cataloguefile c ON c.dataset_id = cd.id AND c.lfn = f.lfn
        WHERE f.out_job_id IS NOT NULL AND NOT c.moving AND (f.status <> 'finished' OR f.no_output)
            AND f.type NOT IN ({PREMERGED_TYPES.sql}) AND NOT EXISTS (
            SELECT 1 FROM brokerage_jobresult r WHERE r.job_id = f.out_job_id AND r.error_code = 'OUTPUT_REGISTERED')
            AND NOT EXISTS (
            SELECT 1 FROM workqueues_dataset e JOIN workqueues_file g ON g.dataset_id = e.id AND g.lfn = f.lfn
            WHERE e.dataset_name = d.dataset_name AND e.vo = d.vo AND g.out_job_id IS NOT NULL AND g.status = 'finished'
                AND NOT g.no_output AND g.lost_at IS NULL AND f.status = 'failed')
        """,
    ),
    Invariant(
        "moving_file_has_a_job",
        "A file on its way belongs to a job that waits for it, is the log of one that ended, or was withdrawn.",
        """
        SELECT 'file ' || c.lfn || ' of ' || d.name || ', its job is ' || coalesce(j.status, 'not there')
        FROM workqueues_cataloguefile c JOIN workqueues_cataloguedataset d ON d.id = c.dataset_id
        LEFT JOIN LATERAL (
            SELECT f.out_job_id, f.type, f.status FROM workqueues_file f JOIN workqueues_dataset e ON e.id = f.dataset_id
            WHERE f.lfn = c.lfn AND e.dataset_name = d.name AND e.vo = d.vo AND f.out_job_id IS NOT NULL) f ON TRUE
        LEFT JOIN brokerage_job j ON j.id = f.out_job_id
        WHERE c.moving AND j.status IS DISTINCT FROM 'transferring' AND (f.type, f.status) IS DISTINCT FROM ('log', 'finished')
            AND EXISTS (SELECT FROM workqueues_replica r WHERE r.file_id = c.id AND r.state = 'available')
        """,
    ),
)
