"""Jobs that end without a word of their pilot: by silence, time-out, command, or since files are not brought. Each in one
transaction with everything it implies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from django.db import transaction

from broker_site.foundation.agency.look import look_after_commit
from broker_site.foundation.sql.prepared import run_together
from brokerage.ledger.ending_jobs import FILE_OUTCOME, EndingJob, job_outcome, read_jobs, uses
from brokerage.ledger.merged_jobs import MergeEnd, Tie, end_merged, lock_tied, tell_unmerged
from brokerage.ledger.moves import move_jobs
from brokerage.ledger.retry_actions import Failure, carry_out, followings
from brokerage.ledger.transfers.releasing import release
from brokerage.ledger.transfers.withdrawal import withdraw
from brokerage.models import JobResult
from brokerage.rules.dispatch.error_fingerprint import EndError, fingerprint
from brokerage.rules.dispatch.retry_rules import JobError
from brokerage.rules.dispatch.settlement import Ending
from brokerage.states import INPUT_MISSING, JOB, MERGE_GONE
from workqueues.ledger.files import Hold, settling
from workqueues.ledger.moves import Stale

POINTLESS = "a job that it was to merge has ended"


def end_jobs(
    ids: Sequence[int],
    ending: Ending,
    who: str,
    why: str | Sequence[str],
    *,
    sub_status: str = "",
    sources: Sequence[str] | None = None,
    epochs: Sequence[int] | None = None,
    only: str = "any",
    holds: Mapping[int, Mapping[int, Hold]] = MappingProxyType({}),
    code: str = "",
) -> None:
    """End jobs without a report (lost lease, time-out, command), all of them or, raising Stale, none.

    `why` is one text for all or one for each. `holds`: by job, its inputs that are held back. `sources`, `epochs` and `only` say
    what must still hold (`move_jobs`); `code` of the error: where it is not that of the sub status. The epoch goes up, so that
    whatever a pilot still reports for the old lease is refused.
    """
    with transaction.atomic():
        ties = lock_tied(ids)  # what is read of the jobs still holds when they are moved
        seen = read_jobs(ids)
        ended = move_jobs(ids, ending, who, why, sub_status=sub_status, sources=sources, epochs=epochs, bump=1, only=only).run()
        if len(ended) != len(ids):
            raise Stale(f"{len(ids) - len(ended)} of {len(ids)} jobs moved meanwhile")
        code = code or (sub_status or ending).upper()
        whys = dict.fromkeys(ids, why) if isinstance(why, str) else dict(zip(ids, why, strict=True))
        gone = _end_pointless_merges(ties, ids, who)
        _take_back([*seen, *gone], code, who, {**dict.fromkeys((job.id for job in gone), POINTLESS), **whys})
        outcome = FILE_OUTCOME[ending]
        failures = seen if ending == "failed" else []
        follow = followings([Failure(job, [JobError("broker", code, whys[job.id])]) for job in failures])
        unreadable = sub_status == INPUT_MISSING
        outcomes = [job_outcome(job, outcome, {}, holds.get(job.id, {}), unreadable=unreadable) for job in seen]
        outcomes = [follow[o.job_id].limited(o) if o.job_id in follow else o for o in outcomes]
        outcomes += [job_outcome(job, "returned", {}, {}) for job in gone]
        merges = [MergeEnd(job, outcome, killed=ending == "cancelled") for job in seen if job.merges]
        merges += [MergeEnd(job, "untried") for job in gone]
        outcomes += end_merged(merges, who, without=set(ids))
        run_together([uses([*((job, outcome) for job in seen), *((job, "returned") for job in gone)]), *settling(outcomes)])
        results = [(job, code, whys[job.id]) for job in seen] + [(job, MERGE_GONE.upper(), POINTLESS) for job in gone]
        JobResult.objects.bulk_create(
            [
                JobResult(
                    job_id=j.id,
                    pilot_id=j.holder,
                    host=j.host,
                    error_code=error[:40],
                    error_message=text[:500],
                    fingerprint=fingerprint(EndError("", error[:40], None, text[:500])).id,
                )
                for j, error, text in results
            ],
            ignore_conflicts=True,
        )
        carry_out(follow)
        look_after_commit("generate", "finish", "command", *(["merge"] if ties else []))


def _end_pointless_merges(ties: Sequence[Tie], ids: Sequence[int], who: str) -> list[EndingJob]:
    """End the merge jobs of which one of these jobs was to be merged: what they make would hold its outputs. The other files that
    they had are merged later.
    """
    merges = sorted({tie.merge_id for tie in ties if tie.merged_id in set(ids)} - set(ids))
    if not merges:
        return []
    jobs = read_jobs(merges)
    move_jobs(merges, "cancelled", who, POINTLESS, sub_status=MERGE_GONE, bump=1).run()
    return jobs


def _take_back(jobs: Sequence[EndingJob], code: str, who: str, whys: Mapping[int, str]) -> None:
    """What is on its way for these jobs is not wanted any more; what the others had made is told of in their results."""
    if undelivered := [job for job in jobs if job.delivers]:
        withdraw(undelivered, code, who, whys)
    if moving := [job.id for job in jobs if job.status in JOB.moving]:
        release(moving)
    if unmerged := [job.id for job in jobs if job.status == "merging"]:
        tell_unmerged(unmerged, code, {id_: whys[id_] for id_ in unmerged})
