"""The end of a job by its pilot's report, in one transaction with everything it implies. Others: `unreported_ends`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from django.db import IntegrityError, transaction

from broker_site.foundation.agency.batches import concerns_all, say_why_apart
from broker_site.foundation.agency.look import look_after_commit
from broker_site.foundation.sql.prepared import Call, Prepared, run_together
from brokerage.ledger.ending_jobs import FILE_OUTCOME, EndingJob, job_outcome, read_jobs, uses
from brokerage.ledger.held_inputs import held_inputs
from brokerage.ledger.lease import ANY_TOKEN, OVERLAP_S
from brokerage.ledger.lock_patience import LockPatience
from brokerage.ledger.merged_jobs import MergeEnd, end_merged, files_beside, lock_tied
from brokerage.ledger.moves import move_jobs
from brokerage.ledger.retry_actions import Failure, Followings, carry_out, followings
from brokerage.ledger.transfers.delivery import finish_delivered
from brokerage.ledger.transfers.departure import LeavingFile, send_off
from brokerage.models.job import NOTES
from brokerage.rules.dispatch.error_fingerprint import EndError, fingerprint
from brokerage.rules.dispatch.job_life import PayloadTimes, is_within, payload_times
from brokerage.rules.dispatch.settlement import (
    JobOrder,
    Kill,
    Report,
    ReportedOutput,
    Settlement,
    errors_of,
    first_line,
    settle,
    with_known_events,
)
from brokerage.rules.facts.job_kind import JobKind
from brokerage.states import INPUT_MISSING, JOB
from workqueues.ledger.files import Hold, JobOutcome, hold_on, settling
from workqueues.ledger.moves import Stale
from workqueues.ledger.outputs import CatalogueEntry, add_replica, registered_before, registering
from workqueues.models import CatalogueFile
from workqueues.queries.read_grants import INPUT_IN_CATALOGUE
from workqueues.rules.jobs.event_ranges import Outcome

Registered = Mapping[tuple[str, str], CatalogueFile]
"""Files that the catalogue has, by dataset and name."""

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
_RESULT = Prepared(
    "write_result",
    "bigint[], text[], text[], text[], timestamptz[], timestamptz[], int[], text[], text[], bigint[], text[], text[], text[], "
    "text[], text[]",
    """
    INSERT INTO brokerage_jobresult (job_id, reported_status, pilot_id, host, start_time, end_time, exit_code, error_code,
        error_message, fingerprint, metrics, log_end, notes, metadata, samples)
    SELECT id, reported, holder::uuid, host, begun, ended, exit_code, code, message, fingerprint, metrics::jsonb, log_end, notes,
        metadata::jsonb, samples::jsonb
    FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
        AS word(id, reported, holder, host, begun, ended, exit_code, code, message, fingerprint, metrics, log_end, notes,
            metadata, samples)
    """,
)


@dataclass(frozen=True, slots=True)
class LastWord:
    """What the pilot of a job reports at its end, under the lease `epoch`.

    `notes`: what of the report could not be used; `token`: when the job token of the caller was issued.
    """

    job_id: int
    epoch: int
    report: Report
    who: str
    notes: Sequence[str] = ()
    token: int = ANY_TOKEN


class _End(NamedTuple):
    """A job that ends by its pilot's word, and how."""

    job: EndingJob
    word: LastWord
    settlement: Settlement

    @property
    def merging(self) -> bool:
        """Whether what it made is merged by a later job, for whose end it waits."""
        made = self.settlement.made if self.settlement.ending == "finished" else ()
        return any(output.premerged and output.file_id in made for output in self.job.outputs)

    @property
    def target(self) -> str:
        """The state in which it is then, but for outputs on their way."""
        return "merging" if self.merging else self.settlement.ending

    @property
    def outcome(self) -> Outcome:
        """What this end is to the job's inputs."""
        return "untried" if self.settlement.down else FILE_OUTCOME[self.settlement.ending]

    @property
    def why(self) -> str:
        """The reason in the job's history."""
        said, made = self.settlement, len(self.settlement.made)
        return first_line(said.error_message) or said.error_code or f"{made} output{'' if made == 1 else 's'} registered"

    @property
    def leaving(self) -> list[LeavingFile]:
        """Its files that are to be brought elsewhere."""
        made = [output for output in self.job.outputs if output.file_id in self.settlement.made]
        return [LeavingFile(self.job.id, output.file_id, place) for output in made for place in output.leaves_for]

    @property
    def delivers(self) -> bool:
        """Whether the job waits for its outputs to arrive; the log of one that failed travels behind it."""
        return self.settlement.ending == "finished" and bool(self.leaving)

    def entries(self) -> list[CatalogueEntry]:
        """The files that it brings; nobody sees those of a job that waits for any."""
        return _entries(self.job, list(self.settlement.made.values()), all_move=self.delivers)


class _Apart(Exception):
    """These ends cannot be written together: they differ in state."""


def settle_job(job_id: int, epoch: int, report: Report, who: str, notes: Sequence[str] = (), token: int = ANY_TOKEN) -> str:
    """Settle a lease by its pilot's last word: the final state; a repeated report gets the recorded one again.

    The arguments are those of LastWord. Raises Stale when the lease is over without this report, or goes on under a newer token:
    it changed nothing.
    """
    return _settle_alone(LastWord(job_id, epoch, report, who, notes, token))


def _settle_alone(word: LastWord, patience: LockPatience | None = None) -> str:
    try:
        try:
            return _settle([word], patience=patience)[0]
        except IntegrityError:  # the catalogue has a file of a name already
            return _settle([word], names_known=True, patience=patience)[0]
    except Stale:
        # The same report at the same time, sent again by a pilot that got no answer: the other one may have settled it meanwhile.
        jobs = read_jobs([word.job_id])
        if not jobs or not jobs[0].told:
            raise
        return _recorded(jobs[0], word.epoch)


def settle_jobs(words: Sequence[LastWord]) -> list[str | Exception]:
    """What `settle_job` gives, or what it raises, for each word.

    Jobs that finish are written in one transaction, others one by one, as all are where a fault is in the way: it is that of one
    of them. None of several waits long for whoever works on the files of its task.
    """
    if len(words) == 1:
        return [_end_or_fault(words[0], None)]
    ends: dict[int, str | Exception] = {}
    finished = [i for i, word in enumerate(words) if word.report.status == "finished"]
    if len({words[i].job_id for i in finished}) == len(finished) > 1:
        try:
            ends = dict(zip(finished, _settle([words[i] for i in finished], patience=LockPatience()), strict=True))
        except Exception as fault:  # one of them needs an answer of its own
            if concerns_all(fault):
                raise
            if not isinstance(fault, Stale | _Apart):
                say_why_apart("ends of jobs", fault)
    patience = LockPatience()
    return [ends[i] if i in ends else _end_or_fault(word, patience) for i, word in enumerate(words)]


def _end_or_fault(word: LastWord, patience: LockPatience | None) -> str | Exception:
    try:
        return _settle_alone(word, patience)
    except Exception as fault:
        if concerns_all(fault):
            raise
        return fault


def _settle(words: Sequence[LastWord], *, names_known: bool = False, patience: LockPatience | None = None) -> list[str]:
    """Settle jobs in one transaction, all or, raising, none. `names_known`: files that the catalogue has under the names of the
    outputs are looked up first.
    """
    with transaction.atomic():
        if patience is not None:
            patience.limit()
        jobs = _read([word.job_id for word in words])
        for word in words:
            if word.job_id not in jobs:
                raise Stale(f"there is no job {word.job_id}")
        told = {id_ for id_, job in jobs.items() if job.told}
        recorded = {w.job_id: _recorded(jobs[w.job_id], w.epoch) for w in words if w.job_id in told}
        open_words = [word for word in words if word.job_id not in recorded]
        known = {w.job_id: _known(jobs[w.job_id], w.report) for w in open_words} if names_known else {}
        ends = [_judge(jobs[w.job_id], w, known.get(w.job_id, {})) for w in open_words]
        delivering = _write(ends, known) if ends else set()
        states = recorded | {e.job.id: "transferring" if e.job.id in delivering else e.target for e in ends}
        return [states[word.job_id] for word in words]


def _read(ids: Sequence[int]) -> dict[int, EndingJob]:
    """The jobs as they are now; those that merge others are locked, with these."""
    jobs = {job.id: job for job in read_jobs(ids)}
    if any(job.merges for job in jobs.values()):
        lock_tied(ids)
        jobs = {job.id: job for job in read_jobs(ids)}
    return jobs


def _known(job: EndingJob, report: Report) -> Registered:
    return registered_before(job.vo, _entries(job, report.outputs))


def _judge(job: EndingJob, word: LastWord, known: Registered) -> _End:
    """How the job ends; raises Stale."""
    if job.token_since is not None and word.token < job.token_since.timestamp() <= job.now.timestamp() - OVERLAP_S:
        raise Stale(f"the token for job {job.id} was replaced")
    sources = [name for (name,) in _SOURCES.run(job.id)] if word.report.down_storages else ()
    registered = {lfn: (file.fsize, file.checksum) for (_, lfn), file in known.items()}
    order = JobOrder(job.outputs, job.storage, job.space, sources, registered, job.tells)
    report = with_known_events(word.report, job.outputs)
    kill = Kill(job.kill_outcome, job.kill_why) if job.kill_requested else None
    return _End(job, word, settle(report, order, kill, word.notes))


def _write(ends: Sequence[_End], known: Mapping[int, Registered]) -> set[int]:
    """All that the ends imply: the jobs that go on to deliver their outputs. Raises Stale where a lease is over, and
    IntegrityError where a file has the name of a new one.
    """
    settlement = ends[0].settlement
    if any((e.target, e.settlement.sub_status) != (ends[0].target, settlement.sub_status) for e in ends):
        raise _Apart
    ids, epochs, who = [e.job.id for e in ends], [e.word.epoch for e in ends], [e.word.who for e in ends]
    departing = [end for end in ends if end.delivers]
    staying = [end for end in ends if not end.delivers] if departing else ends
    new_files: dict[str, list[CatalogueEntry]] = {}
    for end in ends:
        registered = known.get(end.job.id, {})
        fresh = [entry for entry in end.entries() if (entry.dataset_name, entry.lfn) not in registered]
        new_files.setdefault(end.job.vo, []).extend(fresh)
    holds = {end.job.id: held_inputs(end.job, end.word.report, end.settlement) for end in ends}
    follow = _followings(ends) if settlement.ending == "failed" else {}
    writes = [
        move_jobs(ids, "holding", who, [_told(end.word.report) for end in ends], epochs=epochs),
        *(call for vo, files in new_files.items() for call in registering(vo, files)),
        _RESULT.with_values(*map(list, zip(*(_result(end) for end in ends), strict=True))),
    ]  # fmt: skip
    moved = len(run_together([*writes, _moved(departing, "transferring")])) if departing else 0
    # The datasets come last: while they are locked, the ends of other jobs of the task wait.
    if staying:
        used = [uses([(end.job, end.outcome) for end in staying])] if ends[0].target != "merging" else []
        moved += len(run_together([*([] if departing else writes), *used, _moved(staying, ends[0].target)]))
    if moved != len(ends):
        raise Stale(f"the lease {epochs[0]} of job {ids[0]} is over" if len(ends) == 1 else "a lease is over")
    for end in ends:
        for entry in end.entries():
            if file := known.get(end.job.id, {}).get((entry.dataset_name, entry.lfn)):
                add_replica(file, entry)
    delivering = _depart(ends, departing)
    merged = end_merged([_merge_end(end) for end in staying if end.job.merges], ends[0].word.who)
    run_together(settling([*(_outcome(end, holds[end.job.id], follow) for end in staying), *merged]))
    carry_out(follow)
    more = {
        "command": any(end.job.commanded for end in ends),
        "storage": any(end.settlement.down for end in ends),
        "assess": any(end.job.kind == JobKind.SCOUT for end in ends),
        "merge": any(output.premerged for end in ends for output in end.job.outputs),
    }
    look_after_commit("generate", "finish", *(agent for agent, wanted in more.items() if wanted))
    return delivering


def _followings(ends: Sequence[_End]) -> Followings:
    return followings([Failure(e.job, errors_of(e.settlement, e.word.report), e.word.report.most_memory_mb) for e in ends])


def _outcome(end: _End, holds: Mapping[int, Hold], follow: Followings) -> JobOutcome:
    """The end as the job's own files see it; inputs of one whose outputs are to be merged wait with it."""
    unreadable = end.settlement.sub_status == INPUT_MISSING
    outcome = job_outcome(end.job, end.outcome, end.settlement.made, holds, unreadable=unreadable)
    if end.job.id in follow:
        outcome = follow[end.job.id].limited(outcome)
    return replace(outcome, inputs=(), cut=(), premerged=True) if end.merging else outcome


def _merge_end(end: _End) -> MergeEnd:
    report, killed = end.word.report, end.settlement.ending == "cancelled"
    unread = {*report.missing_inputs, *report.corrupt_inputs} if end.settlement.sub_status == INPUT_MISSING else ()
    return MergeEnd(end.job, end.outcome, unread, killed)


def _moved(ends: Sequence[_End], new: str) -> Call:
    """The move on from holding."""
    ids, epochs, who = [e.job.id for e in ends], [e.word.epoch for e in ends], [e.word.who for e in ends]
    sub_status = ends[0].settlement.sub_status
    return move_jobs(ids, new, who, [e.why for e in ends], sub_status=sub_status, sources=["holding"], epochs=epochs)


def _depart(ends: Sequence[_End], departing: Sequence[_End]) -> set[int]:
    """Files go to where they are collected: the jobs that wait for theirs. Those whose files are there already finish at once."""
    leaving = [file for end in ends for file in end.leaving]
    if not leaving:
        return set()
    waiting = send_off(leaving, ends[0].word.who)
    hold_on(
        [file_id for end in departing for file_id in (*end.job.own_inputs, *end.job.cut)],
        beside=[
            *(file_id for end in ends for file_id in (*end.job.inputs, *end.job.cut, *(o.file_id for o in end.job.outputs))),
            *files_beside([end.job.id for end in ends if end.job.merges]),
        ],
    )
    there = finish_delivered([end.job.id for end in departing if end.job.id not in waiting], ends[0].word.who)
    return {end.job.id for end in departing} - set(there)


def _told(report: Report) -> str:
    error = f": {report.error_code} {first_line(report.error_message)}" if report.error_code else ""
    return f"pilot reports {report.status}{error}"


def _entries(job: EndingJob, outputs: Sequence[ReportedOutput], *, all_move: bool = False) -> list[CatalogueEntry]:
    """What is to be registered of these outputs, those that nobody asked for left out."""
    asked = {o.lfn: o for o in job.outputs}
    return [
        CatalogueEntry(
            asked[o.lfn].dataset_name, o.lfn, o.size, o.checksum, o.storage, o.n_events, all_move or bool(asked[o.lfn].leaves_for)
        )
        for o in outputs
        if o.lfn in asked
    ]


def _recorded(job: EndingJob, epoch: int) -> str:
    """The answer to a report about a job that has ended: the same as before for the lease that ended it, else stale."""
    if job.epoch != epoch:
        raise Stale(f"job {job.id} ended as {job.status} under another lease")
    return job.status


def _result(end: _End) -> tuple[Any, ...]:
    """The columns of _RESULT."""
    job, report, settlement = end.job, end.word.report, end.settlement
    times = PayloadTimes(report.start_time, report.end_time)
    if not is_within(times.start, times.end, job.made, job.now):
        begun = next((at for (at,) in _BEGUN.run(job.id, job.epoch)), job.made)
        times = payload_times(report.start_time, report.end_time, job.made, begun, job.now)
    code, message = settlement.error_code[:40], settlement.error_message[:500]
    error = fingerprint(EndError(report.status, code, report.exit_code, message)) if code or message else None
    return (
        job.id,
        report.status,
        job.holder,
        job.host,
        times.start,
        times.end,
        report.exit_code,
        code,
        message,
        error and error.id,
        json.dumps(dict(report.metrics)),
        "" if settlement.ending == "finished" or settlement.made else report.log_end,
        "\n".join([*times.notes, *end.word.notes])[:NOTES],
        json.dumps(report.metadata) if job.tells and report.metadata is not None else None,
        json.dumps(asdict(report.samples)) if report.samples else None,
    )
