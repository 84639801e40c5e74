"""Families about tries and endings of files and tasks."""

from __future__ import annotations

from broker_site.roof.conformance.registry import Answer, Given, family
from workqueues.rules.jobs.event_ranges import after_try
from workqueues.rules.task.finish import DatasetCounts, final_status


@family("retry_attempts", given="attempt max_attempt", expect="retry")
def retry_attempts(given: Given) -> Answer:
    """`attempt` counts the tries made; the rule is asked after the last of them."""
    tried = after_try(given["attempt"] - 1, given["max_attempt"], 0, None, "failed")
    return {"retry": tried.status == "ready"}


@family("task_final_status", given="n_total n_ok", expect="status")
def task_final_status(given: Given) -> Answer:
    """Input files of the master datasets, all tries over; neither goal nor parent."""
    total, good = given["n_total"], given["n_ok"]
    counts = DatasetCounts(
        "input",
        "ready",
        n_files=total,
        n_files_to_be_used=total,
        n_files_used=total,
        n_files_finished=good,
        n_files_failed=total - good,
    )
    return {"status": final_status("prepared", [counts]).status}
