"""Invariants of tasks: states, claims, commands, ends."""

from __future__ import annotations

from brokerage.queries.invariants.statement import Invariant
from workqueues.states import INPUT_FILE, MASTER_TYPES, TASK

INVARIANTS = (
    Invariant(
        "task_ended",
        "A task has ended_at exactly in a final state.",
        """
        SELECT 'task ' || id || ' is ' || status || ', ended at ' || coalesce(ended_at::text, 'no time') FROM workqueues_task
        WHERE (ended_at IS NOT NULL) <> (status = ANY(%(task_final)s))
        """,
    ),
    Invariant(
        "task_parameters",
        "Every task has the parameters that it was submitted with.",
        """
        SELECT 'task ' || t.id FROM workqueues_task t
        WHERE NOT EXISTS (SELECT 1 FROM workqueues_taskparams p WHERE p.task_id = t.id)
        """,
    ),
    Invariant(
        "task_parent",
        "The parent of a task is a task, the task itself where there is no other.",
        """
        SELECT 'task ' || t.id || ' of the parent ' || coalesce(t.parent_tid::text, 'none') FROM workqueues_task t
        WHERE NOT EXISTS (SELECT 1 FROM workqueues_task p WHERE p.id = t.parent_tid)
        """,
    ),
    Invariant(
        "submission_task",
        "Every accepted idempotency key has its task.",
        """
        SELECT 'key ' || s.id || ' of ' || s.user_name || ': task ' || s.task_id FROM workqueues_submission s
        WHERE NOT EXISTS (SELECT 1 FROM workqueues_task t WHERE t.id = s.task_id)
        """,
    ),
    Invariant(
        "claim_whole",
        "Who holds a claim on a task and until when go together.",
        """
        SELECT 'task ' || id || ' by ' || quote_literal(locked_by) || ' until ' || coalesce(locked_time::text, 'no time')
        FROM workqueues_task WHERE (locked_by <> '') <> (locked_time IS NOT NULL)
        """,
    ),
    Invariant(
        "claim_taken_back",
        "No claim lies on a task minutes after it ran out, with the agent that takes claims back at work.",
        """
        SELECT 'task ' || t.id || ' by ' || t.locked_by || ' until ' || t.locked_time FROM workqueues_task t
        JOIN agency_agent a ON a.name = 'wake' WHERE t.locked_by <> '' AND t.locked_time < a.last_success - interval '5 minutes'
        """,
    ),
    Invariant(
        "final_task_at_rest",
        "A task that has ended has no claim, no command and no time of a next look.",
        """
        SELECT 'task ' || id || ' is ' || status || concat_ws(', ', '', nullif(locked_by, ''), nullif(command, ''), next_look_at)
        FROM workqueues_task
        WHERE status = ANY(%(task_final)s) AND (locked_by <> '' OR command <> '' OR next_look_at IS NOT NULL)
        """,
    ),
    Invariant(
        "pending_task_wakes",
        "A pending task has a time of its next look and the state that it goes back to.",
        """
        SELECT 'task ' || id || ', before ' || quote_literal(old_status) || ', next look '
            || coalesce(next_look_at::text, 'never')
        FROM workqueues_task WHERE status = 'pending' AND (next_look_at IS NULL OR old_status = '')
        """,
    ),
    Invariant(
        "final_task_without_live_jobs",
        "No job of a task that has ended is alive.",
        """
        SELECT 'job ' || j.id || ' is ' || j.status || ', its task ' || t.id || ' is ' || t.status
        FROM brokerage_job j JOIN workqueues_task t ON t.id = j.task_id WHERE j.ended_at IS NULL AND t.ended_at IS NOT NULL
        """,
    ),
    Invariant(
        "final_task_datasets_closed",
        "The datasets of a task that has ended are done, inputs perhaps broken.",
        """
        SELECT 'dataset ' || d.id || ' is ' || d.status || ', its task ' || t.id || ' is ' || t.status
        FROM workqueues_dataset d JOIN workqueues_task t ON t.id = d.task_id
        WHERE t.ended_at IS NOT NULL AND d.status <> 'done' AND NOT (d.status = 'broken' AND d.type = ANY(%(input_types)s))
        """,
    ),
    Invariant(
        "ended_task_inputs_settled",
        "A task that is done, finished or failed has no input file left over or in use.",
        f"""
        SELECT 'task ' || t.id || ' is ' || t.status || ', file ' || f.id || ' is ' || f.status
        FROM workqueues_task t JOIN workqueues_dataset d ON d.task_id = t.id JOIN workqueues_file f ON f.dataset_id = d.id
        WHERE t.status IN ({TASK.settled.sql}) AND d.type IN ({MASTER_TYPES.sql}) AND d.master_id IS NULL
          AND NOT d.excluded AND d.status <> 'broken' AND f.status IN ({INPUT_FILE.live.sql})
        """,
    ),
    Invariant(
        "done_task_complete",
        "A task that is done has processed every file of its inputs, and at least one.",
        f"""
        SELECT 'task ' || t.id || ': ' || coalesce(d.finished, 0) || ' of ' || coalesce(d.files, 0)
        FROM workqueues_task t CROSS JOIN LATERAL (
            SELECT sum(d.n_files_finished) AS finished, sum(d.n_files) AS files FROM workqueues_dataset d
            WHERE d.task_id = t.id AND d.type IN ({MASTER_TYPES.sql}) AND d.master_id IS NULL AND NOT d.excluded) d
        WHERE t.status = 'done' AND (coalesce(d.files, 0) = 0 OR d.finished <> d.files)
        """,
    ),
)
