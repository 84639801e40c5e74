"""The end of a job: by its pilot's report, by silence, by time-out or by command. One transaction with everything it implies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction

from broker_site.agency.look import look_after_commit
from brokerage.ledger.moves import move_jobs
from brokerage.models import Job, JobInput, JobResult
from brokerage.rules.settlement import Ending, ExpectedOutput, Report, ReportedOutput, Settlement, settle
from workqueues.ledger.files import JobOutcome, MadeFile, Outcome, settle_files
from workqueues.ledger.moves import Stale
from workqueues.ledger.outputs import Registered, register_files
from workqueues.models import File

FILE_OUTCOME: dict[Ending, Outcome] = {"finished": "finished", "failed": "failed", "closed": "returned", "cancelled": "returned"}
"""What the end of a job is to its inputs: only `failed` is a failure (decision D1)."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The recorded end of a job."""

    status: str


def settle_job(job_id: int, epoch: int, report: Report, who: str, host: str = "") -> Ended:
    """Settle the lease `epoch` of a job by its pilot's report; a repeated report gets the recorded end again.

    Raises Stale when the lease is over without this report: it changed nothing.
    """
    try:
        return _settle(job_id, epoch, report, who, host)
    except Stale:
        # The same report at the same time, sent again by a pilot that got no answer: the other one may have settled it meanwhile.
        job = Job.objects.filter(id=job_id, ended_at__isnull=False).first()
        if job is None:
            raise
        return _recorded(job, epoch)


def _settle(job_id: int, epoch: int, report: Report, who: str, host: str) -> Ended:
    with transaction.atomic():
        job = Job.objects.filter(id=job_id).first()
        if job is None:
            raise Stale(f"there is no job {job_id}")
        if job.ended_at is not None:
            return _recorded(job, epoch)
        outputs = list(File.objects.filter(out_job_id=job_id).select_related("dataset").order_by("id"))
        expected = [ExpectedOutput(f.id, f.lfn, optional=f.dataset.no_output_allowed) for f in outputs]
        settlement = settle(report, expected, job.kill_requested, job.kill_outcome)
        not_needed = frozenset(e.file_id for e in expected if e.optional)
        _end_files({job_id: settlement.ending}, settlement.made, _suspects(job, report), not_needed)
        if not move_jobs([job_id], "holding", who, _said(report), epochs=[epoch]):
            raise Stale(f"the lease {epoch} of job {job_id} is over")
        move_jobs(
            [job_id], settlement.ending, who, settlement.error_message or settlement.error_code, sub_status=settlement.sub_status
        )
        _write_result(job, report, settlement, host)
        if settlement.made:
            _register(outputs, settlement)
        look_after_commit("generate", "finish", *(("command",) if settlement.ending == "cancelled" else ()))
        return Ended(settlement.ending)


def end_jobs(
    ids: Sequence[int],
    ending: Ending,
    who: str,
    why: str,
    *,
    sub_status: str = "",
    sources: Sequence[str] | None = None,
    epochs: Sequence[int] | None = None,
    only: str = "any",
) -> None:
    """End jobs without a report (lost lease, time-out, command), all of them or, raising Stale, none.

    `sources`, `epochs` and `only` say what must still hold (`move_jobs`). The epoch goes up, so that whatever a pilot still
    reports for the old lease is refused.
    """
    with transaction.atomic():
        _end_files(dict.fromkeys(ids, ending), {}, {})
        ended = move_jobs(ids, ending, who, why, sub_status=sub_status, sources=sources, epochs=epochs, bump=1, only=only)
        if len(ended) != len(ids):
            raise Stale(f"{len(ids) - len(ended)} of {len(ids)} jobs moved meanwhile")
        JobResult.objects.bulk_create(
            [JobResult(job_id=i, error_code=(sub_status or ending).upper()[:40], error_message=why[:500]) for i in ended],
            ignore_conflicts=True,
        )
        look_after_commit("generate", "finish", "command")


def _recorded(job: Job, epoch: int) -> Ended:
    """The answer to a report about a job that has ended: the same as before for the lease that ended it, else stale."""
    if job.epoch != epoch:
        raise Stale(f"job {job.id} ended as {job.status} under another lease")
    return Ended(job.status)


def _end_files(
    endings: Mapping[int, Ending],
    made: Mapping[int, ReportedOutput],
    suspects: Mapping[int, str],
    not_needed: frozenset[int] = frozenset(),
) -> None:
    inputs: dict[int, list[int]] = defaultdict(list)
    for job_id, file_id in JobInput.objects.filter(job_id__in=endings, status="live").values_list("job_id", "file_id"):
        inputs[job_id].append(file_id)
    outputs: dict[int, list[int]] = defaultdict(list)
    for maker, file_id in File.objects.filter(out_job_id__in=endings).values_list("out_job_id", "id"):
        outputs[maker or 0].append(file_id)
    facts = {file_id: MadeFile(o.size, o.checksum, o.n_events) for file_id, o in made.items()}
    settle_files(
        [
            JobOutcome(job_id, FILE_OUTCOME[ending], inputs[job_id], outputs[job_id], facts, suspects, not_needed)
            for job_id, ending in sorted(endings.items())
        ]
    )
    used = [job_id for job_id, ending in endings.items() if ending == "finished"]
    returned = [job_id for job_id, ending in endings.items() if ending != "finished"]
    JobInput.objects.filter(job_id__in=used, status="live").update(status="used")
    JobInput.objects.filter(job_id__in=returned, status="live").update(status="returned")


def _suspects(job: Job, report: Report) -> dict[int, str]:
    """The inputs the pilot could not read, with what to ask the catalogue about them."""
    why = dict.fromkeys(report.missing_inputs, "missing") | dict.fromkeys(report.corrupt_inputs, "corrupt")
    if not why:
        return {}
    ids = JobInput.objects.filter(job_id=job.id).values_list("file_id", flat=True)
    queue = job.computing_queue.name
    return {
        file_id: f"reported {why[lfn]} at {queue}"
        for file_id, lfn in File.objects.filter(id__in=list(ids), lfn__in=list(why)).values_list("id", "lfn")
    }


def _said(report: Report) -> str:
    return f"pilot reports {report.status}" + (f": {report.error_code} {report.error_message}" if report.error_code else "")


def _write_result(job: Job, report: Report, settlement: Settlement, host: str) -> None:
    JobResult.objects.create(
        job_id=job.id,
        reported_status=report.status,
        pilot_id=job.lease_holder,
        host=host[:255],
        start_time=report.start_time,
        end_time=report.end_time,
        exit_code=report.exit_code,
        error_code=settlement.error_code[:40],
        error_message=settlement.error_message[:500],
        metrics=dict(report.metrics),
    )


def _register(outputs: Sequence[File], settlement: Settlement) -> None:
    datasets = {f.id: f.dataset.dataset_name for f in outputs}
    register_files(
        [
            Registered(datasets[file_id], o.lfn, o.size, o.checksum, o.storage, o.n_events)
            for file_id, o in settlement.made.items()
        ]
    )
