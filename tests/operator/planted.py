"""One violation for each invariant, as the SQL that plants it into a database that is otherwise right, with all guards off."""

from __future__ import annotations

ONE = "WHERE id = (SELECT min(id) FROM {table} WHERE {condition})"


def change(table: str, what: str, condition: str = "TRUE") -> str:
    """Change the first row that fits."""
    return f"UPDATE {table} SET {what} " + ONE.format(table=table, condition=condition)


TASK, DATASET, FILE = "workqueues_task", "workqueues_dataset", "workqueues_file"
JOB, INPUT, JOB_CHANGE = "brokerage_job", "brokerage_jobinput", "brokerage_jobchange"
RANGE, ELEMENT = "workqueues_eventrange", "workqueues_element"
TRANSFER, WISH, REPLICA = "brokerage_transfer", "brokerage_transferwish", "workqueues_replica"
AN_ENDED_JOB = f"(SELECT min(id) FROM {JOB} WHERE ended_at IS NOT NULL)"
CUT = f"id IN (SELECT file_id FROM {RANGE})"
INPUTS = "type IN ('input', 'pseudo_input')"
OF_DONE = "task_id IN (SELECT id FROM workqueues_task WHERE status = 'done')"

PLANTED: dict[str, str] = {
    "job_kind_known": change(JOB, "kind = 99"),
    "job_kind_built": change(JOB, "kind = 2"),
    "task_ended": change(TASK, "ended_at = NULL", "status = 'done'"),
    "task_parameters": "DELETE FROM workqueues_taskparams WHERE task_id = (SELECT min(id) FROM workqueues_task)",
    "task_parent": change(TASK, "parent_tid = 999999"),
    "submission_task": change("workqueues_submission", "task_id = 999999"),
    "claim_whole": change(TASK, "locked_by = 'somebody'", "status = 'pending'"),
    "claim_taken_back": change(TASK, "locked_by = 'x', locked_time = now() - interval '1 hour'", "status = 'pending'"),
    "final_task_at_rest": change(TASK, "next_look_at = now()", "status = 'done'"),
    "pending_task_wakes": change(TASK, "next_look_at = NULL", "status = 'pending'"),
    "final_task_without_live_jobs": change(
        TASK, "ended_at = now()", "id IN (SELECT task_id FROM brokerage_job WHERE ended_at IS NULL)"
    ),
    "live_job_has_its_task_queue": change(JOB, "task_queue_id = 999999", "ended_at IS NULL"),
    "job_held_back": change(TASK, "status = 'paused'", "id IN (SELECT task_id FROM brokerage_job WHERE status = 'activated')"),
    "final_task_datasets_closed": change(DATASET, "status = 'running'", f"type = 'output' AND {OF_DONE}"),
    "ended_task_inputs_settled": change(FILE, "status = 'ready'", f"{INPUTS} AND {OF_DONE}"),
    "done_task_complete": change(DATASET, "n_files_finished = n_files_finished - 1", f"{INPUTS} AND {OF_DONE}"),
    "input_counters": change(DATASET, "n_files_used = n_files_used - 1", f"{INPUTS} AND n_files_used > 0"),
    "open_input_read_again": change(DATASET, "state_check_expiration = now()", f"{INPUTS} AND {OF_DONE}"),
    "on_hold_counter": change(DATASET, "n_files_on_hold = n_files_on_hold + 1", INPUTS),
    "output_counters": change(DATASET, "n_files_failed = n_files_failed + 1", "type = 'output'"),
    "output_events": change(DATASET, "n_events = coalesce(n_events, 0) + 1", "type = 'output'"),
    "event_counters": change(DATASET, "n_events_used = n_events_used + 1", "n_events_used > 0"),
    "closed_input_at_rest": change(FILE, "status = 'picked'", f"{INPUTS} AND {OF_DONE}"),
    "one_live_use": f"""
        INSERT INTO {INPUT} (job_id, file_id, dataset_id, tracked, attempt_nr, status)
        SELECT job_id, file_id, dataset_id, tracked, attempt_nr, status FROM {INPUT} WHERE status = 'live' AND tracked LIMIT 1""",
    "one_successful_use": f"""
        INSERT INTO {INPUT} (job_id, file_id, dataset_id, tracked, attempt_nr, status)
        SELECT job_id, file_id, dataset_id, tracked, attempt_nr, status FROM {INPUT} WHERE status = 'used' AND tracked LIMIT 1""",
    "running_input_has_its_job": change(FILE, "status = 'ready'", f"{INPUTS} AND status = 'running'"),
    "finished_input_has_its_use": change(INPUT, "status = 'returned'", "status = 'used'"),
    "attempts_within_limits": change(FILE, "attempt_nr = max_attempt + 1", "max_attempt IS NOT NULL"),
    "attempts_counted": change(FILE, "failed_attempt = failed_attempt + 1", f"{INPUTS} AND status = 'finished'"),
    "given_up_for_a_reason": change(FILE, "status = 'failed'", f"{INPUTS} AND attempt_nr = 0"),
    "held_while_ready": change(FILE, "held = 'why not'", "status = 'finished'"),
    "picked_for_a_generator": change(
        FILE, "status = 'picked'", "task_id IN (SELECT id FROM workqueues_task WHERE status = 'pending')"
    ),
    "output_follows_its_job": change(FILE, "status = 'failed'", "type = 'output' AND status = 'finished'"),
    "output_name_once": f"""
        INSERT INTO {FILE} (dataset_id, task_id, lfn, type, status, out_job_id)
        SELECT dataset_id, task_id, lfn, type, status, out_job_id FROM {FILE} WHERE out_job_id IS NOT NULL
            AND status <> 'failed' LIMIT 1""",
    "finished_output_registered": f"""
        DELETE FROM workqueues_replica WHERE id = (
            SELECT max(r.id) FROM workqueues_replica r JOIN workqueues_cataloguefile c ON c.id = r.file_id
            JOIN {FILE} f ON f.lfn = c.lfn WHERE f.out_job_id IS NOT NULL)""",
    "failed_output_not_registered": f"""
        INSERT INTO workqueues_cataloguefile (dataset_id, lfn, fsize, checksum) SELECT c.id, f.lfn, 1, '00000001'
        FROM {FILE} f JOIN {DATASET} d ON d.id = f.dataset_id
        JOIN workqueues_cataloguedataset c ON c.name = d.dataset_name AND c.vo = d.vo
        WHERE f.out_job_id IS NOT NULL AND f.status = 'failed' LIMIT 1""",
    "moving_file_has_a_job": """
        UPDATE workqueues_cataloguefile SET moving = true WHERE id = (
            SELECT min(c.id) FROM workqueues_cataloguefile c JOIN workqueues_replica r ON r.file_id = c.id)""",
    "range_has_its_use": change(INPUT, "event_range_id = NULL", "event_range_id IS NOT NULL"),
    "use_of_a_range": f"DELETE FROM {RANGE} WHERE id = (SELECT min(id) FROM {RANGE})",
    "ranges_apart": change(RANGE, "def_min_event_id = 0", "status = 'ready'"),
    "range_in_its_file": change(RANGE, "def_max_event_id = 1000"),
    "events_accounted": change(RANGE, "def_max_event_id = def_max_event_id + 3", "status = 'done'"),
    "cut_file_follows_its_ranges": change(FILE, "status = 'running'", CUT),
    "cut_file_tries": change(FILE, "attempt_nr = attempt_nr - 1", CUT),
    "range_tries": change(RANGE, "attempt_nr = attempt_nr + 1"),
    "reused_inputs_untracked": change(INPUT, "tracked = false"),
    "job_ended": change(JOB, "ended_at = now()", "status = 'activated'"),
    "job_leased": change(JOB, "lease_holder = NULL", "status = 'running'"),
    "job_in_the_queue": change(JOB, "ready_priority = ready_priority - 1", "status = 'activated'"),
    "lease_taken_back": change(JOB, "lease_until = now() - interval '1 hour'", "status = 'running'"),
    "lease_of_a_pilot": change(JOB, "lease_holder = '00000000-0000-4000-8000-000000000001'", "status = 'running'"),
    "job_has_a_queue": change(JOB, "computing_queue_id = NULL", "status = 'running'"),
    "job_at_its_queue": change(JOB, "computing_queue_id = 999999"),
    "inputs_follow_their_job": change(INPUT, "status = 'live'", "status = 'returned'"),
    "job_whole": f"DELETE FROM {INPUT} WHERE id = (SELECT max(id) FROM {INPUT} WHERE status = 'returned')",
    "job_result": "DELETE FROM brokerage_jobresult WHERE job_id = (SELECT min(job_id) FROM brokerage_jobresult)",
    "job_decided": "UPDATE brokerage_jobspec SET decision_id = NULL WHERE job_id = (SELECT min(job_id) FROM brokerage_jobspec)",
    "job_attempt": change(JOB, "attempt_nr = attempt_nr + 1"),
    "retries_lead_forward": change("brokerage_jobretryhistory", "old_job_id = new_job_id"),
    "decision_of_a_task": change("brokerage_decision", "n_chosen = 1", "outcome = 'pending'"),
    "task_history_complete": change("workqueues_taskchange", "epoch = 99"),
    "task_history_path": change("workqueues_taskchange", "old = 'paused'", "old = 'registered'"),
    "task_history_end": change(TASK, "status = 'paused'", "status = 'pending'"),
    "dataset_history_complete": "DELETE FROM workqueues_datasetchange WHERE id = (SELECT max(id) FROM workqueues_datasetchange)",
    "dataset_history_path": change("workqueues_datasetchange", "new = 'prepared'", "new = 'ready'"),
    "dataset_history_end": change(DATASET, "status = 'pending'", f"{INPUTS} AND status = 'ready'"),
    "merging_job_has_outputs": change(FILE, "status = 'running'", "status = 'merging'"),
    "merging_job_keeps_its_inputs": change(
        FILE, "status = 'finished'", f"{INPUTS} AND job_id IN (SELECT id FROM {JOB} WHERE status = 'merging')"
    ),
    "merging_file_has_its_job": change(FILE, "job_id = 999999", "status = 'merging'"),
    "merged_together": change(JOB, "status = 'running'", "status = 'merging'"),
    "job_history_path": f"DELETE FROM {JOB_CHANGE} WHERE id = (SELECT min(id) FROM {JOB_CHANGE} WHERE new = 'running')",
    "job_history_end": change(JOB, "epoch = epoch + 1"),
    "job_epochs_grow": change(JOB_CHANGE, "epoch = 0", "new = 'sent'"),
    "transfer_open_once": f"""
        INSERT INTO {TRANSFER} (file_id, destination, destination_site, status, activity, vo, bytes, checksum)
        SELECT file_id, destination, destination_site, status, activity, vo, bytes, checksum FROM {TRANSFER}
        WHERE ended_at IS NULL LIMIT 1""",
    "picked_files_wait_in_an_element": change(FILE, "element_id = NULL", "status = 'picked' AND element_id IS NOT NULL"),
    "running_files_are_their_childs": change(FILE, "status = 'ready'", "status = 'running' AND element_id IS NOT NULL"),
    "live_uses_are_of_the_present_try": change(ELEMENT, "try_nr = try_nr + 1", "status = 'Running'"),
    "element_counts_its_files": change(ELEMENT, "n_files_finished = 1", "status = 'Running'"),
    "element_follows_its_history": change(ELEMENT, "epoch = epoch + 1"),
    "transfer_ended": change(TRANSFER, "ended_at = NULL", "status = 'cancelled'"),
    "transfer_keyed": change(TRANSFER, "key = NULL", "status = 'submitting'"),
    "wish_of_open_transfer": change(WISH, "closed_at = NULL", "closed_at IS NOT NULL"),
    "assigned_job_waits": change(JOB, "status = 'assigned'", "status = 'activated'"),
    "transferring_job_waits": change(JOB, "status = 'transferring'", "status = 'activated'"),
    "input_wish_of_assigned_job": change(WISH, f"role = 'input', job_id = {AN_ENDED_JOB}", "closed_at IS NULL"),
    "output_wish_of_transferring_job": change(WISH, f"role = 'output', job_id = {AN_ENDED_JOB}", "closed_at IS NULL"),
    "place_without_the_file": f"""
        INSERT INTO {REPLICA} (file_id, storage) SELECT file_id, destination FROM {TRANSFER} WHERE status = 'queued' LIMIT 1""",
    "done_transfer_has_its_copy": f"DELETE FROM {REPLICA} WHERE storage = 'BETA_DISK'",
    "copy_there_is_not_removed": change(REPLICA, "removal_at = now()"),
    "tally_levels": """
        WITH g AS (INSERT INTO brokerage_tallygroup (family, vo) VALUES ('vo', 'demo') RETURNING id)
        INSERT INTO brokerage_tallylevel (group_id, what, n) SELECT id, 'running', 1 FROM g""",
    "tally_steps": """
        WITH g AS (INSERT INTO brokerage_tallygroup (family, vo) VALUES ('vo', 'demo') RETURNING id)
        INSERT INTO brokerage_tallybucket (step_s, group_id, what, at, n)
        SELECT 60, id, 'failed', date_trunc('minute', now()), 1 FROM g""",
    "tally_days": """
        WITH g AS (INSERT INTO brokerage_tallygroup (family, vo) VALUES ('vo', 'demo') RETURNING id)
        INSERT INTO brokerage_tallybucket (step_s, group_id, what, at, n)
        SELECT 86400, id, 'activated', date_bin('1 day', now(), '2000-01-01 00:00+00'), 1 FROM g""",
    "tally_families": """
        WITH g AS (INSERT INTO brokerage_tallygroup (family, vo, queue) VALUES ('queue', 'demo', 'ALPHA') RETURNING id)
        INSERT INTO brokerage_tallybucket (step_s, group_id, what, at, n)
        SELECT 3600, id, 'failed', date_trunc('hour', now()), 1 FROM g""",
    "transfer_history_path": change("brokerage_transferchange", "old = 'done'", "new = 'submitting'"),
    "transfer_history_end": change(TRANSFER, "status = 'submitted'", "status = 'queued'"),
}
