"""What a task must have for an agent to have work with it, as SQL over the table of tasks under the name `t`."""

from __future__ import annotations

from workqueues.states import INPUT_DATASET, INPUT_FILE, MASTER_TYPES

WORK = {
    "any": "TRUE",
    "unused inputs": f"""EXISTS (SELECT 1 FROM workqueues_dataset d WHERE d.task_id = t.id AND d.status = 'ready'
        AND d.type IN ({MASTER_TYPES.sql}) AND d.master_id IS NULL AND d.n_files_to_be_used > d.n_files_used
        AND EXISTS (SELECT 1 FROM workqueues_file f
            WHERE f.dataset_id = d.id AND f.status IN ({INPUT_FILE.usable.sql}) AND f.held = ''))""",
    "held inputs": "EXISTS (SELECT 1 FROM workqueues_file f WHERE f.task_id = t.id AND f.type = 'input' AND f.held <> '')",
    "all inputs settled": f"""NOT EXISTS (SELECT 1 FROM workqueues_dataset d WHERE d.task_id = t.id AND NOT d.excluded
        AND d.type IN ({MASTER_TYPES.sql}) AND d.master_id IS NULL AND d.status IN ({INPUT_DATASET.live.sql})
        AND d.n_files_to_be_used > d.n_files_finished + d.n_files_failed)""",
    "dead claim": "t.locked_by <> '' AND t.locked_time < now()",
}
"""What a task must have for a claim to be worth it: many that have nothing to do would keep others out of every batch."""
