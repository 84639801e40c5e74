"""The end of a job: by its pilot's report, by silence, by time-out or by command. One transaction with everything it implies."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from django.db import IntegrityError, transaction

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.look import look_after_commit
from broker_site.foundation.sql.prepared import Call, Prepared, run_together
from brokerage.ledger.lease import ANY_TOKEN, OVERLAP_S
from brokerage.ledger.moves import move_jobs
from brokerage.models import JobInput, JobResult
from brokerage.models.job import NOTES
from brokerage.rules.dispatch.job_life import PayloadTimes, is_within, payload_times
from brokerage.rules.dispatch.settlement import (
    Ending,
    ExpectedOutput,
    JobOrder,
    Report,
    ReportedOutput,
    Settlement,
    first_line,
    settle,
)
from brokerage.states import INPUT_MISSING, JOB
from workqueues.ledger.files import Hold, JobOutcome, MadeFile, settling
from workqueues.ledger.moves import Stale
from workqueues.ledger.outputs import CatalogueEntry, add_replica, registered_before, registering
from workqueues.models import File
from workqueues.queries.datasets import waits_for_storages
from workqueues.queries.read_grants import INPUT_IN_CATALOGUE
from workqueues.rules.jobs.event_ranges import Outcome
from workqueues.rules.jobs.held_files import REPORTED
from workqueues.rules.jobs.retry_pause import RetryPause

FILE_OUTCOME: dict[Ending, Outcome] = {"finished": "finished", "failed": "failed", "closed": "returned", "cancelled": "returned"}
"""What the end of a job is to its inputs: only `failed` is a failure (decision D1)."""

_SEE = Prepared(
    "see_jobs",
    "bigint[]",
    """
    SELECT j.id, j.epoch, j.status, j.ended_at IS NOT NULL, j.kill_requested, j.kill_outcome, j.lease_holder::text,
        coalesce((SELECT host FROM brokerage_pilot WHERE id = j.lease_holder), ''), q.name,
        coalesce(s.vo, ''), s.storage, least(1e9 * coalesce(e.root_gb, e.free_gb + coalesce(e.expired_gb, 0)), 9e18)::bigint,
        u.whole, u.cut,
        ARRAY(SELECT json_build_array(f.id, f.lfn, d.dataset_name, f.optional, f.type = 'log')
            FROM workqueues_file f JOIN workqueues_dataset d ON d.id = f.dataset_id WHERE f.out_job_id = j.id ORDER BY f.id),
        coalesce(s.created_at, j.status_since), now(), j.token_since
    FROM brokerage_job j JOIN brokerage_computingqueue q ON q.id = j.computing_queue_id
    LEFT JOIN brokerage_jobspec s ON s.job_id = j.id LEFT JOIN brokerage_storageendpoint e ON e.name = s.storage
    CROSS JOIN LATERAL (
        SELECT coalesce(array_agg(file_id) FILTER (WHERE event_range_id IS NULL), '{}') AS whole,
            coalesce(array_agg(DISTINCT file_id) FILTER (WHERE event_range_id IS NOT NULL), '{}') AS cut
        FROM brokerage_jobinput WHERE job_id = j.id AND status = 'live' AND tracked
    ) AS u WHERE j.id = ANY($1)
    """,
)
_SOURCES = Prepared(
    "sources_of_job",
    "bigint",
    f"""
    SELECT DISTINCT r.storage FROM brokerage_jobinput i JOIN workqueues_file f ON f.id = i.file_id
        JOIN workqueues_dataset d ON d.id = f.dataset_id
        JOIN workqueues_cataloguedataset c ON {INPUT_IN_CATALOGUE}
        JOIN workqueues_cataloguefile t ON t.dataset_id = c.id AND t.lfn = f.lfn JOIN workqueues_replica r ON r.file_id = t.id
    WHERE i.job_id = $1
    """,
)
_BEGUN = Prepared(
    "begin_of_payload",
    "bigint, int",
    f"""
    SELECT at FROM brokerage_jobchange WHERE job_id = $1 AND epoch = $2 AND new IN ({JOB.leased.sql})
    ORDER BY id DESC LIMIT 1
    """,
)
_USES = Prepared(
    "end_uses",
    "bigint[], text[]",
    """
    UPDATE brokerage_jobinput i SET status = v.status FROM unnest($1, $2) AS v(job_id, status)
    WHERE i.job_id = v.job_id AND i.status = 'live'
    """,
)
_RESULT = Prepared(
    "write_result",
    "bigint, text, uuid, text, timestamptz, timestamptz, int, text, text, jsonb, text, text",
    """
    INSERT INTO brokerage_jobresult (job_id, reported_status, pilot_id, host, start_time, end_time, exit_code, error_code,
        error_message, metrics, log_end, notes)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
    """,
)


class _Job(NamedTuple):
    """A job as it was read; `holder`: the pilot that holds it, `host`: where that runs.

    `storage`: where its outputs go, and the bytes that are there at most. `inputs`: its live tracked files, whole ones; `cut`:
    those of which it has event ranges. `made`: when the job was made; `now`: when it was read. `token_since`: when the job token
    that counts was issued.
    """

    id: int
    epoch: int
    status: str
    ended: bool
    kill_requested: bool
    kill_outcome: str
    holder: str | None
    host: str
    queue: str
    vo: str
    storage: str
    space: int | None
    inputs: Sequence[int]
    cut: Sequence[int]
    outputs: Sequence[ExpectedOutput]
    made: datetime
    now: datetime
    token_since: datetime | None


def settle_job(job_id: int, epoch: int, report: Report, who: str, notes: Sequence[str] = (), token: int = ANY_TOKEN) -> str:
    """Settle the lease `epoch` of a job by its pilot's report: the final state; a repeated report gets the recorded one again.

    `notes`: what of the report could not be used; `token`: when the job token of the caller was issued. Raises Stale when the
    lease is over without this report, or goes on under a newer token: it changed nothing.
    """
    try:
        try:
            return _settle(job_id, epoch, report, who, notes, token)
        except IntegrityError:  # the catalogue has a file of a name already
            return _settle(job_id, epoch, report, who, notes, token, names_known=True)
    except Stale:
        # The same report at the same time, sent again by a pilot that got no answer: the other one may have settled it meanwhile.
        jobs = _read([job_id])
        if not jobs or not jobs[0].ended:
            raise
        return _recorded(jobs[0], epoch)


def _settle(
    job_id: int, epoch: int, report: Report, who: str, notes: Sequence[str], token: int, *, names_known: bool = False
) -> str:
    """`names_known`: files that the catalogue has under the names of the outputs are looked up first."""
    with transaction.atomic():
        jobs = _read([job_id])
        if not jobs:
            raise Stale(f"there is no job {job_id}")
        job = jobs[0]
        if job.ended:
            return _recorded(job, epoch)
        if job.token_since is not None and token < job.token_since.timestamp() <= job.now.timestamp() - OVERLAP_S:
            raise Stale(f"the token for job {job_id} was replaced")
        sources = [name for (name,) in _SOURCES.run(job_id)] if report.down_storages else ()
        known = registered_before(job.vo, _entries(job, report.outputs)) if names_known else {}
        registered = {lfn: (file.fsize, file.checksum) for (_, lfn), file in known.items()}
        order = JobOrder(job.outputs, job.storage, job.space, sources, registered)
        settlement = settle(report, order, job.kill_requested, job.kill_outcome, notes)
        outcome: Outcome = "untried" if settlement.down else FILE_OUTCOME[settlement.ending]
        unreadable = settlement.sub_status == INPUT_MISSING
        holds = _holds(job, report, settlement)
        made_files = _entries(job, list(settlement.made.values()))
        new_files = [entry for entry in made_files if (entry.dataset_name, entry.lfn) not in known]
        error = f": {report.error_code} {first_line(report.error_message)}" if report.error_code else ""
        made = len(settlement.made)
        why = (
            first_line(settlement.error_message) or settlement.error_code or f"{made} output{'' if made == 1 else 's'} registered"
        )
        writes = [
            move_jobs([job_id], "holding", who, f"pilot reports {report.status}{error}", epochs=[epoch]),
            *registering(job.vo, new_files),
            _result(job, report, settlement, notes),
            _uses([job], outcome),
            move_jobs(
                [job_id], settlement.ending, who, why, sub_status=settlement.sub_status, sources=["holding"], epochs=[epoch]
            ),
        ]
        # The datasets come last: while they are locked, the ends of other jobs of the task wait.
        if not run_together(writes):
            raise Stale(f"the lease {epoch} of job {job_id} is over")
        for entry in made_files:
            if file := known.get((entry.dataset_name, entry.lfn)):
                add_replica(file, entry)
        run_together(_ending_files([job], outcome, settlement.made, holds, unreadable=unreadable))
        more = ("command",) if settlement.ending == "cancelled" else ("storage",) if settlement.down else ()
        look_after_commit("generate", "finish", *more)
        return settlement.ending


def _entries(job: _Job, outputs: Sequence[ReportedOutput]) -> list[CatalogueEntry]:
    """What is to be registered of these outputs, those that nobody asked for left out."""
    datasets = {o.lfn: o.dataset_name for o in job.outputs}
    return [
        CatalogueEntry(datasets[o.lfn], o.lfn, o.size, o.checksum, o.storage, o.n_events) for o in outputs if o.lfn in datasets
    ]


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
        seen = _read(ids)
        ended = move_jobs(ids, ending, who, why, sub_status=sub_status, sources=sources, epochs=epochs, bump=1, only=only).run()
        if len(ended) != len(ids):
            raise Stale(f"{len(ids) - len(ended)} of {len(ids)} jobs moved meanwhile")
        run_together([_uses(seen, FILE_OUTCOME[ending]), *_ending_files(seen, FILE_OUTCOME[ending], {}, {})])
        code = (sub_status or ending).upper()
        JobResult.objects.bulk_create(
            [JobResult(job_id=j.id, pilot_id=j.holder, host=j.host, error_code=code[:40], error_message=why[:500]) for j in seen],
            ignore_conflicts=True,
        )
        look_after_commit("generate", "finish", "command")


def _read(ids: Sequence[int]) -> list[_Job]:
    jobs = [_Job(*row) for row in _SEE.run(list(ids))]
    return [job._replace(outputs=[ExpectedOutput(*output) for output in job.outputs]) for job in jobs]


def _recorded(job: _Job, epoch: int) -> str:
    """The answer to a report about a job that has ended: the same as before for the lease that ended it, else stale."""
    if job.epoch != epoch:
        raise Stale(f"job {job.id} ended as {job.status} under another lease")
    return job.status


def _ending_files(
    jobs: Sequence[_Job], outcome: Outcome, made: Mapping[int, ReportedOutput], holds: Mapping[int, Hold], *,
    unreadable: bool = False,
) -> list[Call]:  # fmt: skip
    """What the end of the jobs writes to their files, which are locked."""
    facts = {file_id: MadeFile(o.size, o.checksum, o.n_events) for file_id, o in made.items()}
    not_needed = frozenset(o.file_id for job in jobs for o in job.outputs if o.optional)
    outcomes = [
        JobOutcome(
            j.id, outcome, j.inputs, [o.file_id for o in j.outputs], facts, holds, not_needed, j.cut, _pause(j.vo), unreadable
        )
        for j in jobs
    ]  # fmt: skip
    return settling(outcomes)


def _uses(jobs: Sequence[_Job], outcome: Outcome) -> Call:
    """The jobs have used their inputs, or give them back."""
    return _USES.with_values([j.id for j in jobs], ["used" if outcome == "finished" else "returned"] * len(jobs))


def _pause(vo: str) -> RetryPause:
    """How long files wait after a try that failed."""
    return RetryPause(*(gdpconfig.value("jobbroker", name, vo=vo) for name in ("RETRY_PAUSE", "RETRY_PAUSE_MAX")))


def _holds(job: _Job, report: Report, settlement: Settlement) -> dict[int, Hold]:
    """The inputs that are held back, and why: those that the pilot could not read are looked for at once, all of them wait for a
    storage that is down, longer each time that it was found to be up.
    """
    unread = dict.fromkeys(report.missing_inputs, "missing") | dict.fromkeys(report.corrupt_inputs, "corrupt")
    holds: dict[int, Hold] = {}
    if settlement.down:
        first_s = gdpconfig.value("storage", "LOOK_AGAIN")
        pause = RetryPause(first_s, max(first_s, _pause(job.vo).longest_s))
        why, waiting = f"storage {settlement.down} was down at {job.queue}", [*job.inputs, *job.cut]
        before = dict.fromkeys(waiting, 0) | waits_for_storages(waiting)
        holds = {i: Hold(_once_more(why, n), settlement.down, pause.after(n + 1)) for i, n in before.items()}
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


def _result(job: _Job, report: Report, settlement: Settlement, notes: Sequence[str]) -> Call:
    times = PayloadTimes(report.start_time, report.end_time)
    if not is_within(times.start, times.end, job.made, job.now):
        begun = next((at for (at,) in _BEGUN.run(job.id, job.epoch)), job.made)
        times = payload_times(report.start_time, report.end_time, job.made, begun, job.now)
    return _RESULT.with_values(
        job.id,
        report.status,
        job.holder,
        job.host,
        times.start,
        times.end,
        report.exit_code,
        settlement.error_code[:40],
        settlement.error_message[:500],
        json.dumps(dict(report.metrics)),
        "" if settlement.ending == "finished" or settlement.made else report.log_end,
        "\n".join([*times.notes, *notes])[:NOTES],
    )
