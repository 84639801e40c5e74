"""Which tasks have work for an agent, and when work is served, as SQL.

`t` is a table with vo, gshare and work_queue_id (tasks, task queues). A VO that its work queues drive has standings of them with
a place; others have those of their shares (the agent share).
"""

from __future__ import annotations

from workqueues.queries.ranges import IS_LIVE
from workqueues.rules.shares.usage import NO_LEAF, NO_TREE
from workqueues.states import INPUT_DATASET, INPUT_FILE, MASTER_TYPES, PREMERGED_TYPES

WAITING_ELEMENTS = "EXISTS (SELECT 1 FROM workqueues_element e WHERE e.task_id = t.id AND e.status = 'Available')"
"""Parts of its work wait for other brokers."""
_UNUSED = "d.n_files_to_be_used > d.n_files_used"
_INPUTS = f"""EXISTS (SELECT 1 FROM workqueues_dataset d WHERE d.task_id = t.id AND d.status = 'ready'
        AND d.type IN ({MASTER_TYPES.sql}) AND d.master_id IS NULL AND ({{unused}})
        AND EXISTS (SELECT 1 FROM workqueues_file f
            WHERE f.dataset_id = d.id AND f.status IN ({INPUT_FILE.usable.sql}) AND f.held = ''
                AND (f.retry_due IS NULL OR f.retry_due <= now())))"""

OF_OWN_QUEUES = "t.work_to <> 'children' AND " + _INPUTS.format(unused=_UNUSED)
"""A task has input for own queues that nothing has yet."""

WORK = {
    "any": "TRUE",
    # Own queues take back what waits of tasks whose work goes to whoever is first. Said inside, so that tasks are still joined.
    "unused inputs": "t.work_to <> 'children' AND "
    + _INPUTS.format(unused=f"{_UNUSED} OR t.work_to = 'first' AND {WAITING_ELEMENTS}"),
    "elements to cut": "t.work_to <> 'own' AND " + _INPUTS.format(unused=_UNUSED),
    "inputs to look for": "EXISTS (SELECT 1 FROM workqueues_file f WHERE f.task_id = t.id AND f.look_due <= now())",
    "inputs to read again": """EXISTS (SELECT 1 FROM workqueues_dataset d
        WHERE d.task_id = t.id AND d.state_check_expiration <= now())""",
    "all inputs settled": f"""NOT EXISTS (SELECT 1 FROM workqueues_dataset d WHERE d.task_id = t.id AND NOT d.excluded
        AND d.type IN ({MASTER_TYPES.sql}) AND d.master_id IS NULL AND d.status IN ({INPUT_DATASET.live.sql})
        AND (d.n_files_to_be_used > d.n_files_finished + d.n_files_failed
            OR d.n_files_missing > 0 AND EXISTS (SELECT 1 FROM workqueues_file f JOIN workqueues_eventrange r ON r.file_id = f.id
                WHERE f.dataset_id = d.id AND f.status IN ({INPUT_FILE.gone.sql}) AND {IS_LIVE})))""",
    "outputs to merge": f"""EXISTS (SELECT 1 FROM workqueues_file f WHERE f.task_id = t.id AND f.status = 'prepared'
        AND f.type IN ({PREMERGED_TYPES.sql}))""",
    "dead claim": "t.locked_by <> '' AND t.locked_time < now()",
}
"""What a task must have for a claim to be worth it: many that have nothing to do would keep others out of every batch."""


FREE = "t.quarantined_at IS NULL"
RESTED = f"{FREE} AND (t.next_look_at IS NULL OR t.next_look_at <= now())"
THROUGH = f"({RESTED} OR {FREE} AND t.status = 'throttled' AND t.agent_faults = 0)"
READ_OR_MERGED = ("inputs to look for", "inputs to read again", "outputs to merge")
DUE = {**dict.fromkeys(WORK, RESTED), **dict.fromkeys(READ_OR_MERGED, FREE), "all inputs settled": THROUGH}
"""When a task is due for a work: once it has rested, but files that are looked for, read again or merged have times of their own,
and one that is throttled ends when its inputs are through, whatever holds it. Never while it is in quarantine.
"""

STANDINGS = """LEFT JOIN workqueues_sharestanding s ON s.share_id = t.gshare
    LEFT JOIN workqueues_workqueuestanding w ON w.work_queue_id = t.work_queue_id AND w.vo = t.vo"""

PLACE = f"coalesce(w.place, s.place, CASE WHEN t.gshare = '' THEN {NO_TREE} ELSE {NO_LEAF} END)"
"""0 is served first, below 1; for dispatch."""

TURN = f"CASE WHEN w.place IS NULL THEN coalesce(s.above, FALSE) ELSE w.above END, {PLACE}"
"""For generation: units above what they are entitled to come after all others, then by place."""
