"""What becomes of the files of a job when it ends: its inputs and its outputs. How they are picked before: `picking`.

Every verb keeps the counters of the datasets in the same transaction; what a counter counts: facts on datasets 1.2.4.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from broker_site.foundation.agency.look import look_after_commit
from broker_site.foundation.sql.prepared import Call, Prepared
from workqueues.ledger.events import end_ranges
from workqueues.models import FileChange
from workqueues.queries.ranges import FileEvents
from workqueues.rules.jobs.event_ranges import Outcome, after_try, file_status
from workqueues.rules.jobs.merge_tries import MergeVerdict
from workqueues.rules.jobs.retry_pause import NO_PAUSE, RetryPause
from workqueues.states import INPUT_FILE, INPUT_TYPES, MASTER_TYPES, OUTPUT_FILE


@dataclass(frozen=True, slots=True)
class MadeFile:
    """What is known of an output that a job made: size in bytes, adler32 as 8 hex digits."""

    size: int
    checksum: str
    n_events: int | None = None


class Hold(NamedTuple):
    """Why a file is held back, the storage endpoint whose return it waits for (empty: the file itself is in doubt), and in how
    many seconds it is looked for.
    """

    reason: str
    storage: str = ""
    due_s: float = 0.0


class TryLimit(NamedTuple):
    """How many tries the files of a job get at most, and why; `most` None: none after this, the `attempt_nr`-th of the job."""

    most: int | None
    attempt_nr: int
    why: str


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """The end of one job as its files see it.

    `inputs`: tracked files that it had whole; `cut`: files of which it had event ranges.
    `made` maps ids of output files to what was made; the others failed, unless they are among `not_needed`, which a finished job
    may leave out.
    `holds`: ids of input files that the job could not read, or that wait for a storage. `pause`: how long files of masters wait
    for their next try after one that failed, or that was closed because an input could not be read (`unreadable`). `on_hold`: its
    outputs were on their way, and its inputs counted as on hold. `premerged`: what it made waits to be merged; `merges`: files of
    others that it was to merge, and what becomes of each. `limit`: of the tries of its inputs, from now on.
    `element_id`: it is no job but files of this element that ended at a child broker; `job_id` is 0.
    """

    job_id: int
    outcome: Outcome
    inputs: Sequence[int]
    outputs: Sequence[int] = ()
    made: Mapping[int, MadeFile] = field(default_factory=dict)
    holds: Mapping[int, Hold] = field(default_factory=dict)
    not_needed: frozenset[int] = frozenset()
    cut: Sequence[int] = ()
    pause: RetryPause = NO_PAUSE
    unreadable: bool = False
    on_hold: bool = False
    premerged: bool = False
    merges: Mapping[int, MergeVerdict] = field(default_factory=dict)
    limit: TryLimit | None = None
    element_id: int | None = None

    @property
    def who(self) -> str:
        return f"job:{self.job_id}" if self.element_id is None else f"element:{self.element_id}"

    def pause_s(self, attempt_nr: int, failed_attempt: int) -> float:
        """How long a file with so many tries and failures, this one included, waits for its next try."""
        if self.outcome == "failed":
            return self.pause.after(failed_attempt)
        return self.pause.after(attempt_nr) if self.unreadable else 0.0


_LOCK = Prepared(
    "lock_files",
    "bigint[]",
    f"""
    WITH datasets AS MATERIALIZED (
        SELECT id, master_id IS NULL AND type IN ({MASTER_TYPES.sql}) AS master FROM workqueues_dataset
        WHERE id IN (SELECT dataset_id FROM workqueues_file WHERE id = ANY($1))
        ORDER BY id FOR NO KEY UPDATE
    )
    SELECT id, dataset_id, task_id, status, job_id, out_job_id, attempt_nr, max_attempt, failed_attempt, max_failure,
        held, held_storage, fsize, checksum, n_events, no_output, element_id,
        (SELECT d.master FROM datasets d WHERE d.id = dataset_id)
    FROM workqueues_file WHERE id = ANY($1) AND (SELECT count(*) FROM datasets) > 0 ORDER BY id FOR NO KEY UPDATE
    """,
)
"""Locks files after their datasets: the count stands before the scan of the files, so every dataset is locked by then."""

IS_INPUT = f"d.type IN ({INPUT_TYPES.sql})"

_SETTLE = Prepared(
    "settle_files",
    "bigint[], text[], int[], int[], text[], bigint[], text[], int[], bool[], text[], float8[],"
    " float8[], bigint[], int[], int[], int[], bigint[], int[]",
    f"""
    WITH settled AS (
        UPDATE workqueues_file f SET status = v.status, attempt_nr = v.attempt_nr, failed_attempt = v.failed_attempt,
            held = v.held, fsize = v.fsize, checksum = v.checksum, n_events = v.n_events, no_output = v.no_output,
            held_storage = v.storage, look_due = coalesce(now() + make_interval(secs => v.due_s), f.look_due),
            retry_due = CASE WHEN v.pause_s > 0 THEN now() + make_interval(secs => v.pause_s) ELSE f.retry_due END
        FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
            AS v(id, status, attempt_nr, failed_attempt, held, fsize, checksum, n_events, no_output, storage, due_s, pause_s)
        WHERE f.id = v.id
    )
    UPDATE workqueues_dataset d SET modification_time = now(), n_files_used = d.n_files_used + v.used,
        n_files = d.n_files - CASE WHEN {IS_INPUT} THEN 0 ELSE v.failed END,
        n_files_to_be_used = d.n_files_to_be_used - CASE WHEN {IS_INPUT} THEN 0 ELSE v.failed END,
        n_events = CASE WHEN v.events = 0 OR {IS_INPUT} THEN d.n_events ELSE coalesce(d.n_events, 0) + v.events END,
        n_files_finished = d.n_files_finished + v.finished, n_files_failed = d.n_files_failed + v.failed,
        n_files_on_hold = d.n_files_on_hold + v.on_hold,
        n_events_used = CASE WHEN v.events = 0 THEN d.n_events_used ELSE coalesce(d.n_events_used, 0) + v.events END
    FROM unnest($13, $14, $15, $16, $17, $18) AS v(id, used, finished, failed, events, on_hold) WHERE d.id = v.id
    """,
)
"""An output that failed is no file of its dataset any more, and the events of an output are those of its finished files."""
_LIMIT = Prepared(
    "limit_tries",
    "bigint[], int[]",
    "UPDATE workqueues_file f SET max_attempt = v.most FROM unnest($1, $2) AS v(id, most) WHERE f.id = v.id",
)
_SETTLED = (
    "id",
    "status",
    "attempt_nr",
    "failed_attempt",
    "held",
    "fsize",
    "checksum",
    "n_events",
    "no_output",
    "held_storage",
    "due_s",
    "pause_s",
)
_COUNTED = ("used", "finished", "failed", "events", "on_hold")
"""Columns of _SETTLE: of the files, and behind the id of their dataset those of its counters."""


@dataclass(slots=True)
class _File:
    """A locked file, with the columns that the end of a job may change."""

    id: int
    dataset_id: int
    task_id: int
    status: str
    job_id: int | None
    out_job_id: int | None
    attempt_nr: int
    max_attempt: int | None
    failed_attempt: int
    max_failure: int | None
    held: str
    held_storage: str
    fsize: int | None
    checksum: str
    n_events: int | None
    no_output: bool
    element_id: int | None
    master: bool
    due_s: float | None = None
    pause_s: float = 0.0

    def is_input_of(self, job: JobOutcome) -> bool:
        """Whether it runs for this job, or for this element, and for no other since."""
        return self.element_id == job.element_id and (job.element_id is not None or self.job_id == job.job_id)

    def is_output_of(self, job: JobOutcome) -> bool:
        return self.element_id == job.element_id and (job.element_id is not None or self.out_job_id == job.job_id)


@dataclass(slots=True)
class _Delta:
    """What is added to the counters of a dataset."""

    used: int = 0
    finished: int = 0
    failed: int = 0
    events: int = 0
    on_hold: int = 0


def settling(outcomes: Sequence[JobOutcome]) -> list[Call]:
    """Lock the files of ended jobs and their datasets, in the caller's transaction: the writes that their ends imply.

    The caller runs them together with its own, so that the rows are locked for few round trips. Ranges of events end at once.
    """
    by_input = {file_id: o for o in outcomes for file_id in o.inputs}
    by_output = {file_id: o for o in outcomes for file_id in o.outputs}
    by_cut = {file_id: o for o in outcomes for file_id in o.cut}
    by_merge = {file_id: o for o in outcomes for file_id in o.merges}
    unread = {file_id: o for o in outcomes for file_id in o.holds}
    released = Counter(file_id for o in outcomes if o.on_hold for file_id in (*o.inputs, *o.cut))
    ids = sorted({*by_input, *by_output, *by_cut, *by_merge, *unread})
    if not ids:
        return []
    deltas: dict[int, _Delta] = defaultdict(_Delta)
    notes: list[FileChange] = []
    settled = []
    files = [_File(*row) for row in _LOCK.run(ids)]
    if any(o.limit for o in outcomes):
        _limit_tries(files, by_input, by_cut, notes)
    stands = end_ranges(sorted(by_cut), {o.job_id: o.outcome for o in outcomes if o.cut}) if by_cut else {}
    for file in files:
        delta = deltas[file.dataset_id]
        delta.on_hold -= released[file.id]
        if file.id in by_input:
            moved = _settle_input(file, by_input[file.id], delta, notes)
        elif file.id in by_merge:
            moved = _settle_premerged(file, by_merge[file.id], delta)
        elif file.id in by_output:
            moved = _settle_output(file, by_output[file.id], delta)
        elif file.id in stands:
            moved = _settle_cut(file, by_cut[file.id], stands[file.id], delta)
            moved |= file.id in unread and _hold(file, unread[file.id], notes)
        else:
            moved = _hold(file, unread[file.id], notes)
        if moved:
            settled.append(file)
    FileChange.objects.bulk_create(notes)
    if not (settled or released):
        return []
    columns = [[getattr(file, name) for file in settled] for name in _SETTLED]
    counted = sorted(deltas)
    return [_SETTLE.with_values(*columns, counted, *([getattr(deltas[i], name) for i in counted] for name in _COUNTED))]


def _limit_tries(
    files: Sequence[_File], whole: Mapping[int, JobOutcome], cut: Mapping[int, JobOutcome], notes: list[FileChange]
) -> None:
    """Locked files of masters whose tries are limited by the end of their job: before the tries are counted, and told of."""
    limited = []
    for file in files:
        job = whole.get(file.id) or cut.get(file.id)
        if job is None or job.limit is None or not file.master or (file.id in whole and not file.is_input_of(job)):
            continue
        most = job.limit.most
        if most is None:
            most = file.attempt_nr + 1 if file.id in whole else job.limit.attempt_nr
        if file.max_attempt is None or most < file.max_attempt:
            file.max_attempt = most
            limited.append(file)
            notes.append(_note(file, job, "limited", job.limit.why))
    if limited:
        _LIMIT.run([file.id for file in limited], [file.max_attempt for file in limited])


def _note(file: _File, job: JobOutcome, new: str, why: str) -> FileChange:
    return FileChange(file_id=file.id, task_id=file.task_id, old=file.status, new=new, who=job.who, why=why[:510])


_HOLD_ON = Prepared(
    "hold_on",
    "bigint[], bigint[]",
    """
    WITH held AS (
        SELECT f.dataset_id, count(*) AS n FROM unnest($1) AS u(id) JOIN workqueues_file f ON f.id = u.id GROUP BY 1
    ), locked AS MATERIALIZED (
        SELECT d.id FROM workqueues_dataset d
        WHERE d.id IN (SELECT dataset_id FROM workqueues_file WHERE id = ANY($1) OR id = ANY($2))
        ORDER BY d.id FOR NO KEY UPDATE
    )
    UPDATE workqueues_dataset d SET modification_time = now(), n_files_on_hold = d.n_files_on_hold + held.n
    FROM locked JOIN held ON held.dataset_id = locked.id WHERE d.id = locked.id
    """,
)


def hold_on(file_ids: Sequence[int], beside: Sequence[int]) -> None:
    """The outputs of jobs that had these inputs are on their way: until they are there the inputs count as on hold.

    A file stands as often among them as there are such jobs. `beside`: files that the transaction settles later; all datasets are
    locked here, in the one order that keeps two such transactions from waiting for each other.
    """
    if file_ids:
        _HOLD_ON.run(list(file_ids), list(beside))


def _settle_input(file: _File, job: JobOutcome, delta: _Delta, notes: list[FileChange]) -> bool:
    """Whether the end moved the file; not when another job has it by now, about which this end says nothing."""
    if file.status != "running" or not file.is_input_of(job):
        return False
    tried = after_try(file.attempt_nr, file.max_attempt, file.failed_attempt, file.max_failure, job.outcome)
    file.attempt_nr, file.failed_attempt, file.status = tried.attempt_nr, tried.failed_attempt, tried.status
    if file.status == "finished":
        delta.finished += 1
        delta.events += file.n_events or 0
    elif file.status == "failed":
        delta.failed += 1
        if file.master:
            notes.append(_note(file, job, "given up", f"no try is left: {_tries(file)}"))
    else:
        delta.used -= 1
        file.pause_s = job.pause_s(file.attempt_nr, file.failed_attempt) if file.master else 0.0
        if file.id in job.holds:
            _hold(file, job, notes)
    return True


def _tries(file: _File) -> str:
    most = "" if file.max_attempt is None else f" of {file.max_attempt}"
    failures = "" if file.max_failure is None else f", failures {file.failed_attempt} of {file.max_failure}"
    return f"tries {file.attempt_nr}{most}{failures}"


def _settle_cut(file: _File, job: JobOutcome, stands: FileEvents, delta: _Delta) -> bool:
    """Whether the end of jobs that had events of the file changed it; it stays picked while a generator has it."""
    delta.events += stands.newly
    before = (file.status, file.attempt_nr, file.failed_attempt)
    file.attempt_nr, file.failed_attempt = max(before[1], stands.attempt_nr), max(before[2], stands.failed_attempt)
    file.pause_s = job.pause_s(file.attempt_nr, file.failed_attempt) if file.master else 0.0
    if file.status in INPUT_FILE.shared:
        file.status = file_status(stands.live, stands.done, stands.free, stands.n_events, bool(file.held))
        delta.used += (file.status in INPUT_FILE.used) - (before[0] in INPUT_FILE.used)
        delta.finished += file.status == "finished"
        delta.failed += file.status == "failed"
    return (file.status, file.attempt_nr, file.failed_attempt) != before or stands.newly > 0 or file.pause_s > 0


def _hold(file: _File, job: JobOutcome, notes: list[FileChange]) -> bool:
    """Hold back a file, if it can still be given to other jobs: whether it is held now (decisions D9, D16)."""
    if file.status not in INPUT_FILE.usable:
        return False
    hold = job.holds[file.id]
    file.status = "ready" if file.status == "partial" else file.status
    file.held, file.held_storage, file.due_s = hold.reason[:255], hold.storage, hold.due_s
    if not hold.due_s:
        look_after_commit("feed")  # it is to be looked for at once
    notes.append(_note(file, job, "held", hold.reason))
    return True


def _settle_premerged(file: _File, job: JobOutcome, delta: _Delta) -> bool:
    """Whether the end of the merge job moved the file; not when another one has it by now."""
    if file.status != "merging" or file.job_id != job.job_id:
        return False
    verdict = job.merges[file.id]
    file.attempt_nr += verdict in ("again", "given_up")
    if verdict == "merged":
        file.status = "finished"
        delta.finished += 1
        delta.events += file.n_events or 0
    elif verdict == "given_up":
        file.status = "failed"
        delta.failed += 1
    else:
        file.status, file.pause_s = "prepared", job.pause.after(file.attempt_nr or 1)
    return True


def _settle_output(file: _File, job: JobOutcome, delta: _Delta) -> bool:
    if file.status not in OUTPUT_FILE.live or not file.is_output_of(job):
        return False
    made = job.made.get(file.id)
    if made is not None and job.premerged:
        file.status, file.fsize, file.checksum, file.n_events = "prepared", made.size, made.checksum, made.n_events
    elif made is not None:
        file.status, file.fsize, file.checksum, file.n_events = "finished", made.size, made.checksum, made.n_events
        delta.finished += 1
        delta.events += made.n_events or 0
    elif job.outcome == "finished" and file.id in job.not_needed:
        file.status, file.no_output = "finished", True
        delta.finished += 1
    else:
        file.status = "failed"
        delta.failed += 1
    return True
