"""Invariants of jobs whose outputs are merged by others, and of the files between them."""

from __future__ import annotations

from brokerage.queries.invariants.statement import Invariant
from workqueues.states import INPUT_TYPES, OUTPUT_FILE, PREMERGED_TYPES

INVARIANTS = (
    Invariant(
        "merging_job_has_outputs",
        "A job that waits for a merge has made files that wait too, or are being merged, and none that it still makes.",
        f"""
        SELECT 'job ' || j.id || ': ' || count(f.id) FILTER (WHERE f.status IN ({OUTPUT_FILE.unmerged.sql}))
            || ' files to merge, '
            || count(f.id) FILTER (WHERE f.status = 'running') || ' being made'
        FROM brokerage_job j LEFT JOIN workqueues_file f ON f.out_job_id = j.id
        WHERE j.status = 'merging' AND j.ended_at IS NULL GROUP BY j.id
        HAVING count(f.id) FILTER (WHERE f.status IN ({OUTPUT_FILE.unmerged.sql})) = 0
            OR count(f.id) FILTER (WHERE f.status = 'running') > 0
        """,
    ),
    Invariant(
        "merging_job_keeps_its_inputs",
        "The inputs of a job that waits for a merge are not finished before it is.",
        f"""
        SELECT 'job ' || j.id || ' is merging, its input ' || f.id || ' is ' || f.status
        FROM brokerage_job j JOIN brokerage_jobinput i ON i.job_id = j.id AND i.tracked AND i.event_range_id IS NULL
            JOIN workqueues_file f ON f.id = i.file_id
        WHERE j.status = 'merging' AND j.ended_at IS NULL AND f.type IN ({INPUT_TYPES.sql}) AND f.keep_track
            AND (f.status, f.job_id) IS DISTINCT FROM ('running', j.id)
        """,
    ),
    Invariant(
        "merging_file_has_its_job",
        "A file is being merged exactly while a live merge job, the one that it names, has it.",
        f"""
        SELECT coalesce('file ' || f.id || ' is merging for job ' || f.job_id || ', which does not have it',
                        'job ' || u.job_id || ' has file ' || u.file_id || ', which is not merging for it')
        FROM (SELECT id, coalesce(job_id, 0) AS job_id FROM workqueues_file
              WHERE status = 'merging' AND type IN ({PREMERGED_TYPES.sql})) f
        FULL JOIN (SELECT i.file_id, i.job_id FROM brokerage_jobinput i JOIN brokerage_job j ON j.id = i.job_id
                   WHERE i.status = 'live' AND j.kind = %(merge_kind)s) u ON u.file_id = f.id AND u.job_id = f.job_id
        WHERE f.id IS NULL OR u.file_id IS NULL
        """,
    ),
    Invariant(
        "merged_together",
        "A live merge job has all files of the jobs that it merges, which wait for it where it runs.",
        """
        SELECT 'job ' || m.id || ' merges job ' || coalesce(j.id::text, 'none')
            || ', which is ' || coalesce(j.status, 'not there') || ', with file ' || f.id || ' ' || f.status
        FROM brokerage_job m JOIN brokerage_jobinput i ON i.job_id = m.id AND i.status = 'live'
            JOIN workqueues_file own ON own.id = i.file_id JOIN workqueues_file f ON f.out_job_id = own.out_job_id
            LEFT JOIN brokerage_job j ON j.id = own.out_job_id
        WHERE m.kind = %(merge_kind)s AND m.ended_at IS NULL AND NOT f.no_output
            AND (j.status IS DISTINCT FROM 'merging' OR j.computing_queue_id <> m.computing_queue_id
                OR (f.status, f.job_id) IS DISTINCT FROM ('merging', m.id))
        """,
    ),
)
