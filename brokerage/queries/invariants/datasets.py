"""Invariants of datasets: every counter is the number of rows that it counts (facts on datasets 1.2.4)."""

from __future__ import annotations

from brokerage.queries.invariants.statement import Invariant
from workqueues.queries.ranges import IS_KEPT
from workqueues.states import INPUT_FILE, MASTER_TYPES, WRITTEN_TYPES

INVARIANTS = (
    Invariant(
        "input_counters",
        "The counters of an input (files, to be used, used, finished, failed, missing) are its numbers of rows in such states.",
        f"""
        SELECT 'dataset ' || d.id || ': files ' || d.n_files || ' for ' || r.files || ', to be used ' || d.n_files_to_be_used
            || ', used ' || d.n_files_used || ' for ' || r.used || ', finished ' || d.n_files_finished || ' for ' || r.finished
            || ', failed ' || d.n_files_failed || ' for ' || r.failed || ', missing ' || d.n_files_missing || ' for ' || r.missing
        FROM workqueues_dataset d CROSS JOIN LATERAL (
            SELECT count(*) AS files,
                   count(*) FILTER (WHERE status IN ({INPUT_FILE.used.sql})) AS used,
                   count(*) FILTER (WHERE status = 'finished') AS finished,
                   count(*) FILTER (WHERE status = 'failed') AS failed,
                   count(*) FILTER (WHERE status IN ({INPUT_FILE.gone.sql})) AS missing
            FROM workqueues_file f WHERE f.dataset_id = d.id) r
        WHERE d.type = ANY(%(input_types)s)
          AND ((d.n_files, d.n_files_used, d.n_files_finished, d.n_files_failed, d.n_files_missing)
               <> (r.files, r.used, r.finished, r.failed, r.missing)
               OR d.n_files_to_be_used NOT BETWEEN d.n_files_used AND d.n_files - d.n_files_missing)
        """,
    ),
    Invariant(
        "open_input_read_again",
        "An input is read again exactly while its task follows it and has not closed it; one that a parent writes that is run "
        "again, once all else is through.",
        f"""
        SELECT 'dataset ' || d.id || ' is ' || d.status || ' and ' || d.state || ', read again '
            || coalesce('at ' || d.state_check_expiration, 'never')
        FROM workqueues_dataset d
        WHERE d.type = ANY(%(input_types)s) AND (d.state = 'mutable' OR d.state_check_expiration IS NOT NULL)
            AND (d.state_check_expiration IS NOT NULL) <> (d.state = 'mutable' AND d.status <> 'done')
            AND (d.state_check_expiration IS NOT NULL OR NOT EXISTS (
                SELECT FROM workqueues_dataset w WHERE d.dataset_name IN (w.dataset_name, w.container_name)
                    AND w.type IN ({WRITTEN_TYPES.sql}) AND w.vo = d.vo AND w.task_id <> d.task_id))
        """,
    ),
    Invariant(
        "on_hold_counter",
        "The files of an input that are on hold are those that jobs have whose outputs are on their way, once for each job; "
        "what is merged is none.",
        """
        SELECT 'dataset ' || d.id || ': on hold ' || d.n_files_on_hold || ' for ' || coalesce(u.n, 0)
        FROM workqueues_dataset d LEFT JOIN (
            SELECT f.dataset_id, count(DISTINCT (i.job_id, i.file_id)) AS n
            FROM brokerage_job j JOIN brokerage_jobinput i ON i.job_id = j.id AND i.status = 'live' AND i.tracked
                JOIN workqueues_file f ON f.id = i.file_id
            WHERE j.status = 'transferring' AND j.ended_at IS NULL AND j.kind <> %(merge_kind)s
            GROUP BY 1) u ON u.dataset_id = d.id
        WHERE d.n_files_on_hold <> coalesce(u.n, 0)
        """,
    ),
    Invariant(
        "output_counters",
        "The counters of an output are its rows in such states; those that failed count as used and failed, not as its files.",
        """
        SELECT 'dataset ' || d.id || ': files ' || d.n_files || ' and ' || d.n_files_to_be_used || ' for ' || r.files
            || ', used ' || d.n_files_used || ' for ' || r.used || ', finished ' || d.n_files_finished || ' for ' || r.finished
            || ', failed ' || d.n_files_failed || ' for ' || r.failed
        FROM workqueues_dataset d CROSS JOIN LATERAL (
            SELECT count(*) FILTER (WHERE status <> 'failed') AS files,
                   count(*) FILTER (WHERE status <> 'defined') AS used,
                   count(*) FILTER (WHERE status = 'finished') AS finished,
                   count(*) FILTER (WHERE status = 'failed') AS failed
            FROM workqueues_file f WHERE f.dataset_id = d.id) r
        WHERE d.type <> ALL(%(input_types)s)
          AND (d.n_files, d.n_files_to_be_used, d.n_files_used, d.n_files_finished, d.n_files_failed)
              <> (r.files, r.files, r.used, r.finished, r.failed)
        """,
    ),
    Invariant(
        "event_counters",
        "The events used of a dataset are those of its finished files and, where jobs share files, of its done event ranges.",
        f"""
        SELECT 'dataset ' || d.id || ': ' || coalesce(d.n_events_used::text, 'none')
            || ' for ' || w.events + coalesce(c.events, 0)
        FROM workqueues_dataset d CROSS JOIN LATERAL (
            SELECT coalesce(sum(n_events), 0) AS events FROM workqueues_file f
            WHERE f.dataset_id = d.id AND f.status = 'finished'
              AND NOT EXISTS (SELECT 1 FROM workqueues_eventrange r WHERE r.file_id = f.id)) w
        LEFT JOIN (SELECT r.dataset_id, sum(r.def_max_event_id - r.def_min_event_id + 1) AS events
                   FROM workqueues_eventrange r WHERE {IS_KEPT} GROUP BY r.dataset_id) c ON c.dataset_id = d.id
        WHERE coalesce(d.n_events_used, 0) <> w.events + coalesce(c.events, 0)
        """,
    ),
    Invariant(
        "output_events",
        "The events of an output are those of its finished files.",
        """
        SELECT 'dataset ' || d.id || ': ' || coalesce(d.n_events, 0) || ' for ' || coalesce(d.n_events_used, 0)
        FROM workqueues_dataset d
        WHERE d.type <> ALL(%(input_types)s) AND coalesce(d.n_events, 0) <> coalesce(d.n_events_used, 0)
        """,
    ),
    Invariant(
        "closed_input_at_rest",
        "No file of an input that is done is picked or running.",
        f"""
        SELECT 'dataset ' || d.id || ', file ' || f.id || ' is ' || f.status
        FROM workqueues_dataset d JOIN workqueues_file f ON f.dataset_id = d.id
        WHERE d.type IN ({MASTER_TYPES.sql}) AND d.status = 'done' AND f.status IN ({INPUT_FILE.in_use.sql})
        """,
    ),
)
