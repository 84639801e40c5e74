"""Invariants of event-level splitting and of secondary datasets: no event lost, none processed twice (decisions F1, F2)."""

from __future__ import annotations

from brokerage.queries.invariants.statement import Invariant
from brokerage.states import STORAGE_DOWN
from workqueues.queries.ranges import COUNTS, IS_KEPT, IS_LIVE
from workqueues.states import INPUT_FILE

CUT = f"""
    FROM workqueues_file f CROSS JOIN LATERAL ({COUNTS}) AS c
    WHERE f.id IN (SELECT file_id FROM workqueues_eventrange)
"""
"""Files whose events jobs share, with the counts of their events."""

STATE = """CASE WHEN c.free > 0 AND c.done > 0 AND c.live = 0 AND f.held = '' THEN 'partial' WHEN c.free > 0 THEN 'ready'
    WHEN c.live > 0 THEN 'running' WHEN c.done = f.n_events THEN 'finished' ELSE 'failed' END"""

NO_JOB = "0"
"""The job of ranges whose events were given up without one."""

REUSED = "string_to_array(d.attributes, ',') && ARRAY['repeat', 'nosplit', 'ru', 'manytime']"

INVARIANTS = (
    Invariant(
        "range_has_its_use",
        "An event range is an input of its job: live while the job lives, used when it is done, else returned. Or it has no job.",
        f"""
        SELECT 'range ' || r.id || ' is ' || r.status || ', its use is ' || coalesce(i.status, 'not there')
        FROM workqueues_eventrange r LEFT JOIN brokerage_jobinput i
          ON i.event_range_id = r.id AND i.job_id = r.job_id AND i.file_id = r.file_id AND i.tracked
        WHERE r.job_id <> {NO_JOB} AND i.status IS DISTINCT FROM
            CASE WHEN {IS_LIVE} THEN 'live' WHEN {IS_KEPT} THEN 'used' ELSE 'returned' END
        """,
    ),
    Invariant(
        "use_of_a_range",
        "An input of a job that names an event range has one, of its file.",
        """
        SELECT 'job ' || i.job_id || ', file ' || i.file_id || ', range ' || i.event_range_id
        FROM brokerage_jobinput i LEFT JOIN workqueues_eventrange r ON r.id = i.event_range_id AND r.file_id = i.file_id
        WHERE i.event_range_id IS NOT NULL AND r.id IS NULL
        """,
    ),
    Invariant(
        "ranges_apart",
        "No two ranges of a file that are live or done have an event in common.",
        f"""
        SELECT 'file ' || file_id || ': range ' || id || ' begins at ' || def_min_event_id || ', one before ends at ' || above
        FROM (SELECT r.*, max(r.def_max_event_id) OVER (PARTITION BY r.file_id ORDER BY r.def_min_event_id, r.id
                  ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS above
              FROM workqueues_eventrange r WHERE {IS_LIVE} OR {IS_KEPT}) AS ordered
        WHERE def_min_event_id <= above
        """,
    ),
    Invariant(
        "range_in_its_file",
        "An event range lies within its file, of which a recovery may count only parts, and belongs to its dataset and task.",
        """
        SELECT 'range ' || r.id || ': ' || coalesce(r.def_min_event_id::text, '?') || ' to '
            || coalesce(r.def_max_event_id::text, '?') || ' of ' || coalesce(f.n_events::text, '?') || ' events'
        FROM workqueues_eventrange r JOIN workqueues_file f ON f.id = r.file_id
        WHERE coalesce(r.def_min_event_id, -1) < 0 OR coalesce(r.def_max_event_id, -1) < r.def_min_event_id
           OR (r.dataset_id, r.task_id) <> (f.dataset_id, f.task_id)
           OR r.def_max_event_id >= coalesce(f.n_events, 0) AND NOT EXISTS (
               SELECT FROM workqueues_task t WHERE t.id = f.task_id AND t.split_rule ~ '\\mRV=1')
        """,
    ),
    Invariant(
        "events_accounted",
        "Every event of a file that jobs share is free, with a live job, done, or out of tries, and only one of these.",
        f"""
        SELECT 'file ' || id || ': ' || free || ' free, ' || live || ' live, ' || done || ' done, ' || given_up || ' given up of '
            || n_events
        FROM (SELECT f.id, f.n_events, c.free, c.done, (
                  SELECT coalesce(sum(r.def_max_event_id - r.def_min_event_id + 1), 0) FROM workqueues_eventrange r
                  WHERE r.file_id = f.id AND {IS_LIVE}) AS live, (
                  SELECT coalesce(sum(upper(span) - lower(span)), 0) FROM unnest((
                      SELECT coalesce(range_agg(int4range(r.def_min_event_id, r.def_max_event_id + 1)) FILTER (
                                 WHERE r.attempt_nr >= f.max_attempt OR r.failed_attempt >= f.max_failure), '{{}}')
                          - coalesce(range_agg(int4range(r.def_min_event_id, r.def_max_event_id + 1)) FILTER (
                                 WHERE {IS_LIVE} OR {IS_KEPT}), '{{}}')
                      FROM workqueues_eventrange r WHERE r.file_id = f.id)) AS span) AS given_up {CUT}) AS counted
        WHERE free < 0 OR free + live + done + given_up <> n_events
        """,
    ),
    Invariant(
        "cut_file_follows_its_ranges",
        "The state of a file that jobs share is what its events say; one that was given up unused has that in its history.",
        f"""
        SELECT 'file ' || f.id || ' is ' || f.status || ': ' || c.free || ' events free, ' || c.done || ' done of ' || f.n_events
            || ', ' || c.live || ' live ranges' {CUT} AND f.status NOT IN ({INPUT_FILE.gone.sql})
          AND NOT (f.status = 'picked' AND c.free > 0) AND f.status <> {STATE}
          AND NOT (f.status = 'failed' AND c.live = 0
                   AND EXISTS (SELECT 1 FROM workqueues_filechange n WHERE n.file_id = f.id AND n.new = 'failed'))
        """,
    ),
    Invariant(
        "cut_file_tries",
        "A file that jobs share has as many tries and failures as the events of it that had most.",
        f"""
        SELECT 'file ' || f.id || ': ' || f.attempt_nr || ' tries for ' || c.attempt_nr || ', ' || f.failed_attempt
            || ' failures for ' || c.failed_attempt {CUT}
          AND (f.failed_attempt <> c.failed_attempt OR f.attempt_nr < c.attempt_nr OR f.attempt_nr > c.attempt_nr
               AND NOT EXISTS (SELECT 1 FROM workqueues_filechange n WHERE n.file_id = f.id AND n.new = 'failed'))
        """,
    ),
    Invariant(
        "range_tries",
        "A range has one try more than its events had before, unless a storage was down, and a failure more "
        "exactly when its job failed.",
        f"""
        SELECT 'range ' || r.id || ': try ' || r.attempt_nr || ' after ' || p.tries || ', ' || r.failed_attempt
            || ' failures after ' || p.failures || ', job ' || r.job_id || ' ' || coalesce(j.status, 'not there')
        FROM workqueues_eventrange r LEFT JOIN brokerage_job j ON j.id = r.job_id CROSS JOIN LATERAL (
            SELECT coalesce(max(b.attempt_nr), 0) AS tries, coalesce(max(b.failed_attempt), 0) AS failures
            FROM workqueues_eventrange b WHERE b.file_id = r.file_id AND b.id < r.id
              AND b.def_min_event_id <= r.def_max_event_id AND b.def_max_event_id >= r.def_min_event_id) p
        WHERE r.job_id <> {NO_JOB} AND (r.attempt_nr, r.failed_attempt)
            <> (p.tries + CASE WHEN j.sub_status = '{STORAGE_DOWN}' THEN 0 ELSE 1 END,
                p.failures + CASE WHEN j.status = 'failed' THEN 1 ELSE 0 END)
        """,
    ),
    Invariant(
        "reused_inputs_untracked",
        "A use does not count for the limit of one use exactly when its secondary dataset may be used again.",
        f"""
        SELECT 'job ' || i.job_id || ', file ' || i.file_id || CASE WHEN i.tracked THEN ' counts' ELSE ' does not count' END
            || ', dataset ' || d.id || ' has ' || quote_literal(d.attributes)
        FROM brokerage_jobinput i JOIN workqueues_dataset d ON d.id = i.dataset_id
        WHERE i.tracked = (d.master_id IS NOT NULL AND d.type <> 'random_seed' AND {REUSED})
        """,
    ),
)
