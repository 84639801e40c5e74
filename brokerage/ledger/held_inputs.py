"""Inputs of a job that are held back after its pilot's last word, and until when."""

from __future__ import annotations

from broker_site.foundation import gdpconfig
from brokerage.ledger.ending_jobs import EndingJob, retry_pause
from brokerage.models import JobInput
from brokerage.rules.dispatch.settlement import Report, Settlement
from workqueues.ledger.files import Hold
from workqueues.models import File
from workqueues.queries.datasets import waits_for_storages
from workqueues.rules.jobs.held_files import REPORTED
from workqueues.rules.jobs.retry_pause import RetryPause


def held_inputs(job: EndingJob, report: Report, settlement: Settlement) -> dict[int, Hold]:
    """The inputs that are held back, and why: those that the pilot could not read are looked for at once, all of them wait for a
    storage that is down, longer each time that it was found to be up.
    """
    if job.merges:
        return {}  # what of its inputs could not be read is a try to merge them
    unread = dict.fromkeys(report.missing_inputs, "missing") | dict.fromkeys(report.corrupt_inputs, "corrupt")
    holds: dict[int, Hold] = {}
    if settlement.down:
        first_s = gdpconfig.value("storage", "LOOK_AGAIN")
        growing = RetryPause(first_s, max(first_s, retry_pause(job.vo).longest_s))
        why, waiting = f"storage {settlement.down} was down at {job.queue}", [*job.inputs, *job.cut]
        before = dict.fromkeys(waiting, 0) | waits_for_storages(waiting)
        holds = {i: Hold(_once_more(why, n), settlement.down, growing.after(n + 1)) for i, n in before.items()}
    if not unread:
        return holds
    ids = JobInput.objects.filter(job_id=job.id).values_list("file_id", flat=True)
    return holds | {
        file_id: Hold(f"{REPORTED}{unread[lfn]} at {job.queue}")
        for file_id, lfn in File.objects.filter(id__in=list(ids), lfn__in=list(unread)).values_list("id", "lfn")
    }


def _once_more(why: str, before: int) -> str:
    """The word of a pilot; `before`: how often the storage was found well after such a word, about the same file."""
    return f"{why}, told {before + 1} times, and found up {'once' if before == 1 else f'{before} times'}" if before else why
