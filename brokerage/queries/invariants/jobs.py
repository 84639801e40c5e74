"""Invariants of jobs: states and leases, inputs, results, decisions, retries."""

from __future__ import annotations

from brokerage.queries.invariants.statement import Invariant
from brokerage.states import JOB
from workqueues.states import MASTER_TYPES

INVARIANTS = (
    Invariant(
        "job_kind_known",
        "A job has a kind.",
        "SELECT 'job ' || id || ' is of kind ' || kind FROM brokerage_job WHERE kind <> ALL(%(known_kinds)s)",
    ),
    Invariant(
        "job_kind_built",
        "A job is of a kind of which jobs are made.",
        """
        SELECT 'job ' || id || ' is of kind ' || kind FROM brokerage_job
        WHERE kind <> ALL(%(built_kinds)s) AND kind = ANY(%(known_kinds)s)
        """,
    ),
    Invariant(
        "job_ended",
        "A job has ended_at exactly in a final state.",
        """
        SELECT 'job ' || id || ' is ' || status || ', ended at ' || coalesce(ended_at::text, 'no time') FROM brokerage_job
        WHERE (ended_at IS NOT NULL) <> (status = ANY(%(job_final)s))
        """,
    ),
    Invariant(
        "job_leased",
        "A job has a lease, with its holder and its end, exactly while it is sent, starting or running.",
        """
        SELECT 'job ' || id || ' is ' || status || ', lease of ' || coalesce(lease_holder::text, 'nobody') || ' until '
            || coalesce(lease_until::text, 'no time')
        FROM brokerage_job
        WHERE (lease_until IS NOT NULL) <> (status = ANY(%(leased)s)) OR (lease_holder IS NOT NULL) <> (status = ANY(%(leased)s))
        """,
    ),
    Invariant(
        "job_in_the_queue",
        "A job waits for a pilot exactly while it is activated, at the place of its priority.",
        """
        SELECT 'job ' || id || ' is ' || status || ', place ' || coalesce(ready_priority::text, 'none') FROM brokerage_job
        WHERE ready_priority IS DISTINCT FROM CASE WHEN status = 'activated' THEN -priority END
        """,
    ),
    Invariant(
        "job_held_back",
        "A job is held back exactly while its task is paused, or soon after, or while its owner has enough running.",
        """
        SELECT 'job ' || j.id || ' is ' || j.status || ', its task ' || t.id || ' is ' || t.status
        FROM brokerage_job j JOIN workqueues_task t ON t.id = j.task_id
        WHERE t.command = '' AND (t.status = 'paused') <> (j.status = 'throttled')
            AND j.status = ANY(%(ready_or_held)s) AND j.sub_status <> %(user_cap)s
        """,
    ),
    Invariant(
        "lease_taken_back",
        "No lease lies on a job minutes after it ran out, with the agent that takes leases back at work.",
        """
        SELECT 'job ' || j.id || ' until ' || j.lease_until FROM brokerage_job j JOIN agency_agent a ON a.name = 'reap'
        WHERE j.lease_until < a.last_success - interval '5 minutes'
        """,
    ),
    Invariant(
        "lease_of_a_pilot",
        "A leased job is held by a pilot of its queue.",
        """
        SELECT 'job ' || j.id || ' held by ' || j.lease_holder FROM brokerage_job j
        LEFT JOIN brokerage_pilot p ON p.id = j.lease_holder
        WHERE j.lease_holder IS NOT NULL AND p.queue_id IS DISTINCT FROM j.computing_queue_id
        """,
    ),
    Invariant(
        "job_at_its_queue",
        "A job is at the computing queue of its task queue; one that waits in one of open jobs is at none, and has no storage.",
        """
        SELECT 'job ' || j.id || ' at ' || coalesce(j.computing_queue_id::text, 'no queue') || ', its task queue at '
            || coalesce(t.computing_queue_id::text, 'none')
        FROM brokerage_job j JOIN brokerage_taskqueue t ON t.id = j.task_queue_id
        WHERE j.computing_queue_id IS DISTINCT FROM t.computing_queue_id
            AND (t.computing_queue_id IS NOT NULL OR j.status = ANY(%(job_waiting)s) AND j.ended_at IS NULL)
            OR j.computing_queue_id IS NULL AND j.storage <> ''
        """,
    ),
    Invariant(
        "job_has_a_queue",
        "A job that a pilot holds, or held and that is not over, has a queue.",
        """
        SELECT 'job ' || id || ' is ' || status || ' at no queue' FROM brokerage_job
        WHERE computing_queue_id IS NULL AND ended_at IS NULL AND status <> ALL(%(job_waiting)s)
        """,
    ),
    Invariant(
        "live_job_has_its_task_queue",
        "The task queue of a job that has not ended exists.",
        """
        SELECT 'job ' || j.id || ' is ' || j.status || ', its task queue ' || j.task_queue_id || ' is gone'
        FROM brokerage_job j LEFT JOIN brokerage_taskqueue t ON t.id = j.task_queue_id WHERE j.ended_at IS NULL AND t.id IS NULL
        """,
    ),
    Invariant(
        "inputs_follow_their_job",
        "The inputs of a job are live while it lives, used when it finished, else returned.",
        """
        SELECT 'job ' || j.id || ' is ' || j.status || ', file ' || i.file_id || ' is ' || i.status
        FROM brokerage_jobinput i JOIN brokerage_job j ON j.id = i.job_id
        WHERE i.status <> CASE WHEN j.ended_at IS NULL THEN 'live' WHEN j.status = 'finished' THEN 'used' ELSE 'returned' END
        """,
    ),
    Invariant(
        "job_whole",
        "Every job has its description and as many inputs as that says.",
        """
        SELECT 'job ' || j.id || ': ' || coalesce(s.n_input_files::text, 'no') || ' inputs described, '
            || coalesce(i.n, 0) || ' there'
        FROM brokerage_job j LEFT JOIN brokerage_jobspec s ON s.job_id = j.id
        LEFT JOIN (SELECT job_id, count(*) AS n FROM brokerage_jobinput GROUP BY job_id) i ON i.job_id = j.id
        WHERE s.n_input_files IS DISTINCT FROM coalesce(i.n, 0)
        """,
    ),
    Invariant(
        "job_result",
        "A job has a result exactly when it has ended, or when its outputs are on their way or wait to be merged.",
        f"""
        SELECT 'job ' || j.id || ' is ' || j.status || CASE WHEN r.job_id IS NULL THEN ' without' ELSE ' with' END || ' a result'
        FROM brokerage_job j LEFT JOIN brokerage_jobresult r ON r.job_id = j.id
        WHERE (r.job_id IS NOT NULL) <> (j.ended_at IS NOT NULL OR j.status IN ({JOB.settled.sql}))
        """,
    ),
    Invariant(
        "job_decided",
        "Every job was placed by a stored decision to assign, taken for its task; merge jobs run where their input is.",
        """
        SELECT 'job ' || s.job_id || ', decision ' || coalesce(s.decision_id::text, 'none')
        FROM brokerage_jobspec s JOIN brokerage_job j ON j.id = s.job_id LEFT JOIN brokerage_decision d ON d.id = s.decision_id
        WHERE j.kind <> %(merge_kind)s AND (d.task_id, d.outcome) IS DISTINCT FROM (j.task_id, 'assign'::varchar)
        """,
    ),
    Invariant(
        "job_attempt",
        "The attempt number of a job is one more than the tries that its input files had before.",
        f"""
        SELECT 'job ' || j.id || ': attempt ' || j.attempt_nr || ' for ' || (1 + i.tries)
        FROM brokerage_job j JOIN (
            SELECT u.job_id, max(u.attempt_nr) AS tries FROM brokerage_jobinput u JOIN workqueues_file f ON f.id = u.file_id
            WHERE f.type IN ({MASTER_TYPES.sql}) GROUP BY u.job_id) i ON i.job_id = j.id
        WHERE j.attempt_nr <> 1 + i.tries
        """,
    ),
    Invariant(
        "retries_lead_forward",
        "A retry leads from an ended job to a later one of the same task, and its origin is not later than either; what is "
        "merged need not have ended.",
        """
        SELECT 'retry ' || h.id || ': ' || h.old_job_id || ' to ' || h.new_job_id || ' from ' || h.origin_job_id
        FROM brokerage_jobretryhistory h
        LEFT JOIN brokerage_job o ON o.id = h.old_job_id LEFT JOIN brokerage_job n ON n.id = h.new_job_id
        WHERE h.old_job_id >= h.new_job_id OR h.origin_job_id > h.old_job_id
           OR o.ended_at IS NULL AND h.relation_type <> 'merge'
           OR (o.task_id, n.task_id) IS DISTINCT FROM (h.task_id, h.task_id)
        """,
    ),
    Invariant(
        "decision_of_a_task",
        "Every decision belongs to a task, and has chosen somebody exactly when it says assign.",
        """
        SELECT 'decision ' || d.id || ' of task ' || d.task_id || ': ' || d.outcome || ', ' || d.n_chosen || ' chosen'
        FROM brokerage_decision d LEFT JOIN workqueues_task t ON t.id = d.task_id
        WHERE t.id IS NULL OR (d.outcome = 'assign') <> (d.n_chosen > 0)
        """,
    ),
)
