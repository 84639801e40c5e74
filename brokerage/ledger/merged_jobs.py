"""Jobs whose outputs other jobs of their task merge (row J8): how the end of the one is the end of the others.

A job that is `merging` ends with the job that merges what it made, in one transaction. Of both rows those of merged jobs are
locked first, then those of merge jobs, each by id: that is one order for all, as a merge job is made later than what it merges.
Not here: making merge jobs (`merge_jobs`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.look import look_after_commit
from broker_site.foundation.sql.prepared import Prepared, run_together
from brokerage.ledger.ending_jobs import EndingJob, job_outcome, read_jobs, retry_pause, uses
from brokerage.ledger.moves import move_jobs
from brokerage.rules.facts.job_kind import JobKind
from brokerage.states import MERGE_FAILED
from workqueues.ledger.files import JobOutcome
from workqueues.rules.jobs.event_ranges import Outcome
from workqueues.rules.jobs.merge_tries import MergeVerdict, merge_verdict
from workqueues.states import PREMERGED_TYPES

MERGE = JobKind.MERGE.value
_TIES = Prepared(
    "ties_of_jobs",
    "bigint[]",
    f"""
    SELECT j.id, f.out_job_id FROM brokerage_job j JOIN brokerage_jobinput i ON i.job_id = j.id AND i.status = 'live'
        JOIN workqueues_file f ON f.id = i.file_id AND f.type IN ({PREMERGED_TYPES.sql})
    WHERE j.id = ANY($1) AND j.kind = {MERGE}
    UNION
    SELECT i.job_id, j.id FROM brokerage_job j
        JOIN workqueues_file f ON f.out_job_id = j.id AND f.type IN ({PREMERGED_TYPES.sql})
        JOIN brokerage_jobinput i ON i.file_id = f.id AND i.status = 'live' AND i.tracked AND i.event_range_id IS NULL
    WHERE j.id = ANY($1) AND j.status = 'merging'
    """,
)
_LOCK = Prepared(
    "lock_tied_jobs",
    "bigint[]",
    f"SELECT id FROM brokerage_job WHERE id = ANY($1) ORDER BY kind = {MERGE}, id FOR NO KEY UPDATE",
)
_FILES = Prepared(
    "files_to_merge",
    "bigint[]",
    f"""
    SELECT i.job_id, f.id, f.out_job_id, f.attempt_nr, f.lfn FROM brokerage_jobinput i
        JOIN workqueues_file f ON f.id = i.file_id AND f.type IN ({PREMERGED_TYPES.sql})
    WHERE i.job_id = ANY($1) AND f.status = 'merging' AND f.job_id = i.job_id ORDER BY f.id
    """,
)
_INPUTS = Prepared(
    "inputs_of_merged_jobs",
    "bigint[]",
    f"""
    SELECT DISTINCT u.file_id FROM brokerage_jobinput i
        JOIN workqueues_file f ON f.id = i.file_id AND f.type IN ({PREMERGED_TYPES.sql})
        JOIN brokerage_jobinput u ON u.job_id = f.out_job_id AND u.status = 'live' AND u.tracked
    WHERE i.job_id = ANY($1) AND i.status = 'live'
    """,
)
_TELL = Prepared(
    "tell_unmerged",
    "text, bigint[], text[]",
    """
    UPDATE brokerage_jobresult r SET error_code = left($1, 40), error_message = left(v.why, 500), fingerprint = NULL
    FROM unnest($2, $3) AS v(id, why) WHERE r.job_id = v.id
    """,
)


class Tie(NamedTuple):
    """A live merge job, and a job whose outputs it merges."""

    merge_id: int
    merged_id: int


@dataclass(frozen=True, slots=True)
class MergeEnd:
    """A merge job that ends. `unread`: names of files that its pilot could not read; `killed`: somebody wants no other one."""

    job: EndingJob
    outcome: Outcome
    unread: Collection[str] = ()
    killed: bool = False


@dataclass(slots=True)
class _MergedJobs:
    """What becomes of the jobs that a merge job merged, and of their files."""

    verdicts: dict[int, MergeVerdict] = field(default_factory=dict)
    finished: list[int] = field(default_factory=list)
    given_up: list[int] = field(default_factory=list)


def lock_tied(ids: Sequence[int]) -> list[Tie]:
    """Lock these jobs with those that they merge, or that merge them, in the caller's transaction: which belong together."""
    if not ids:
        return []
    locked = {*ids, *_jobs_of(Tie(*row) for row in _TIES.run(list(ids)))}
    _LOCK.run(sorted(locked))
    ties = [Tie(*row) for row in _TIES.run(list(ids))]
    if made := _jobs_of(ties) - locked:
        _LOCK.run(sorted(made))  # merge jobs of this moment: they come after all that they merge
    return ties


def _jobs_of(ties: Iterable[Tie]) -> set[int]:
    return {id_ for tie in ties for id_ in tie}


def files_beside(ids: Sequence[int]) -> list[int]:
    """Files of other jobs that the ends of these merge jobs settle."""
    return [file_id for (file_id,) in _INPUTS.run(list(ids))] if ids else []


def end_merged(ends: Sequence[MergeEnd], who: str, *, without: Collection[int] = ()) -> list[JobOutcome]:
    """End the jobs that these ended merge jobs merged, where they do, and say what that means to all their files, which the
    caller settles. The jobs are locked (`lock_tied`); those in `without` end by themselves.
    """
    if not ends:
        return []
    judged = _judged(ends, without)
    outcomes = [
        JobOutcome(end.job.id, end.outcome, (), merges=judged[end.job.id].verdicts, pause=retry_pause(end.job.vo)) for end in ends
    ]
    finished = {id_: end.job.id for end in ends for id_ in judged[end.job.id].finished}
    given_up = {id_: end.job.id for end in ends for id_ in judged[end.job.id].given_up}
    outcomes += _end(finished, "finished", who)
    outcomes += _end(given_up, "cancelled", who)
    look_after_commit("merge")
    return outcomes


def tell_unmerged(ids: Sequence[int], code: str, whys: Mapping[int, str]) -> None:
    """The results of jobs that ended before they were merged, which their pilots' words wrote, tell why."""
    _TELL.run(code, list(ids), [whys[id_] for id_ in ids])


def _judged(ends: Sequence[MergeEnd], without: Collection[int]) -> Mapping[int, _MergedJobs]:
    by_job = {end.job.id: end for end in ends}
    most = {vo: gdpconfig.value("jobbroker", "MERGE_MAX_ATTEMPT", vo=vo) for vo in {end.job.vo for end in ends}}
    files: dict[tuple[int, int], dict[int, MergeVerdict]] = defaultdict(dict)
    for merge_id, file_id, merged_id, tries, lfn in _FILES.run(sorted(by_job)):
        if merged_id in without:
            continue
        end = by_job[merge_id]
        faultless = bool(end.unread) and lfn not in end.unread
        verdict = merge_verdict(end.outcome, tries, most[end.job.vo], faultless=faultless, killed=end.killed)
        files[merge_id, merged_id][file_id] = verdict
    judged = {merge_id: _MergedJobs() for merge_id in by_job}
    for (merge_id, merged_id), verdicts in files.items():
        merged = judged[merge_id]
        given_up = "given_up" in verdicts.values()
        merged.verdicts |= dict.fromkeys(verdicts, "given_up") if given_up else verdicts
        if given_up:
            merged.given_up.append(merged_id)
        elif "merged" in verdicts.values():
            merged.finished.append(merged_id)
    return judged


def _end(merged_by: Mapping[int, int], new: str, who: str) -> list[JobOutcome]:
    """Move merged jobs, each with the merge job, to their end: what that is to their inputs."""
    if not merged_by:
        return []
    ids = sorted(merged_by)
    finished = new == "finished"
    outcome: Outcome = "finished" if finished else "returned"
    jobs = read_jobs(ids)
    if finished:
        whys = [f"job {merged_by[id_]} has merged its outputs" for id_ in ids]
    else:
        whys = [f"job {merged_by[id_]} could not merge its outputs, and there is no further try" for id_ in ids]
    sub_status, bump = ("", 0) if finished else (MERGE_FAILED, 1)
    moved = move_jobs(ids, new, who, whys, sources=["merging"], sub_status=sub_status, bump=bump)
    run_together([moved, uses([(job, outcome) for job in jobs])])
    if not finished:
        tell_unmerged(ids, MERGE_FAILED.upper(), dict(zip(ids, whys, strict=True)))
    return [replace(job_outcome(job, outcome, {}, {}), outputs=()) for job in jobs]
