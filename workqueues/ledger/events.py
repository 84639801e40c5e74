"""Event ranges: given to jobs, ended with them; and what that makes of their files (decision F2).

The rules are `workqueues.rules.jobs.event_ranges`. Every verb works in the caller's transaction; files are locked after their
datasets, ranges only by those who hold the lock of their file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from django.db import connection, transaction

from broker_site.foundation.sql.copying import copy_rows, take_ids
from broker_site.foundation.sql.prepared import Prepared, run_together
from workqueues.ledger.claims import lock_claimed
from workqueues.ledger.moves import Stale
from workqueues.models import Dataset, File, FileChange
from workqueues.queries.ranges import GIVEN_BACK, USED_UP, FileEvents, file_events, read_file_events
from workqueues.rules.jobs.event_ranges import DroppedEvents, NewRange, Outcome, file_status
from workqueues.states import EVENT

NO_JOB = 0
"""The job of ranges whose events were given up without one."""


def insert_ranges(task_id: int, rows: Sequence[NewRange]) -> list[int]:
    """Insert one range a row by COPY, in the caller's transaction: their ids, in the same order.

    The database refuses events that another job has or had with success (IntegrityError).
    """
    ids = take_ids("workqueues_eventrange", len(rows))
    copy_rows(
        "workqueues_eventrange",
        ["id", "task_id", "dataset_id", "file_id", "status", "job_id", "job_process_id", "def_min_event_id", "def_max_event_id",
         "attempt_nr", "failed_attempt"],
        (
            (i, task_id, r.dataset_id, r.file_id, "ready", r.job_id, r.first, r.first, r.first + r.n_events - 1,
             r.attempt_nr + 1, r.failed_attempt)
            for i, r in zip(ids, rows, strict=True)
        ),
    )  # fmt: skip
    return ids


_LOCK = Prepared("lock_cut_files", "bigint[]", "SELECT id FROM workqueues_file WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE")

_USE = Prepared(
    "use_cut_files",
    "bigint[], text[], bigint[], bigint[], int[]",
    """
    WITH used AS (
        UPDATE workqueues_file f SET status = v.status, job_id = v.job_id, last_attempt_time = now(),
            held = CASE WHEN v.status = 'ready' THEN f.held ELSE '' END,
            held_storage = CASE WHEN v.status = 'ready' THEN f.held_storage ELSE '' END,
            look_due = CASE WHEN v.status = 'ready' THEN f.look_due END
        FROM unnest($1, $2, $3) AS v(id, status, job_id) WHERE f.id = v.id
    )
    UPDATE workqueues_dataset d SET n_files_used = d.n_files_used - v.n FROM unnest($4, $5) AS v(id, n) WHERE d.id = v.id
    """,
)
"""A file that was reported unreadable while it was picked and that is given out to its last event is held no more: whoever has
it now will say so again."""


def settle_file_states(file_ids: Sequence[int]) -> None:
    """After `insert_ranges`: picked files that gave events to jobs are running, or ready where events are left; counters too.

    Call it once in the transaction of the jobs, with every file that got a range there. The caller has locked the datasets of
    the files, together with its other datasets in order of id. The job of a file is that of its newest range. Raises Stale when
    one of the files is not picked.
    """
    ids = sorted(set(file_ids))
    if not ids:
        return
    files = read_file_events(run_together([_LOCK.with_values(ids), file_events(ids)]))
    if wrong := [i for i in ids if i not in files or files[i].status != "picked"]:
        raise Stale(f"{len(wrong)} of {len(ids)} files are no longer picked")
    now = {i: _status(files[i]) for i in ids}
    left = Counter(files[i].dataset_id for i in ids if now[i] == "ready")
    _USE.run(ids, [now[i] for i in ids], [files[i].job_id for i in ids], list(left), list(left.values()))


def _status(file: FileEvents) -> str:
    return file_status(file.live, file.done, file.free, file.n_events, bool(file.held))


_BEGUN = Prepared(
    "begin_ranges", "bigint[]", "UPDATE workqueues_eventrange SET status = 'sent' WHERE job_id = ANY($1) AND status = 'ready'"
)
_ENDED = Prepared(
    "end_ranges",
    "bigint[], text[]",
    f"""
    UPDATE workqueues_eventrange r
    SET status = CASE v.outcome WHEN 'returned' THEN
            CASE WHEN r.status = 'ready' AND {USED_UP} THEN 'fatal' ELSE 'cancelled' END
            WHEN 'untried' THEN 'cancelled' ELSE v.outcome END,
        attempt_nr = r.attempt_nr - CASE v.outcome WHEN 'untried' THEN 1 ELSE 0 END,
        failed_attempt = r.failed_attempt + CASE v.outcome WHEN 'failed' THEN 1 ELSE 0 END
    FROM unnest($1, $2) AS v(job_id, outcome), workqueues_file f
    WHERE r.job_id = v.job_id AND r.status IN ({EVENT.untold.sql}) AND f.id = r.file_id
    """,
)
_CLOSED = Prepared(
    "close_ranges",
    "bigint[]",
    f"""
    UPDATE workqueues_eventrange r SET status = CASE r.status WHEN 'finished' THEN 'done' ELSE 'fatal' END
    FROM workqueues_file f
    WHERE r.job_id = ANY($1) AND f.id = r.file_id AND (r.status = 'finished' OR r.status = 'failed' AND {USED_UP})
    """,
)


def end_ranges(file_ids: Sequence[int], outcomes: Mapping[int, Outcome]) -> dict[int, FileEvents]:
    """End the ranges of ended jobs (job -> outcome), whose files the caller has locked: how their files stand then.

    Those of finished jobs are done; those of failed ones failed, of closed and cancelled ones cancelled, but fatal where the
    tries of their events are used up. Along the machine, so in three steps; one round trip.
    """
    jobs = list(outcomes)
    worked = [job for job in jobs if outcomes[job] not in ("returned", "untried")]
    calls = [
        _BEGUN.with_values(worked),
        _ENDED.with_values(jobs, [outcomes[job] for job in jobs]),
        _CLOSED.with_values(worked),
        file_events(file_ids, jobs),
    ]
    return read_file_events(run_together(calls))


def mark_partial(file_ids: Sequence[int]) -> None:
    """Of files that are ready again, those that are partly done become partial; no counter counts them differently."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE workqueues_file f SET status = 'partial' WHERE id = ANY(%s) AND status = 'ready'"
            f" AND {GIVEN_BACK} = 'partial'",
            [list(file_ids)],
        )


_FATAL = Prepared(
    "drop_ranges", "bigint[]", "UPDATE workqueues_eventrange SET status = 'fatal' WHERE id = ANY($1) AND status = 'ready'"
)
_RELEASED = Prepared(
    "release_dropped", "bigint[]", "UPDATE workqueues_file SET status = 'ready' WHERE id = ANY($1) AND status = 'picked'"
)
_DROPPED = Prepared(
    "drop_files",
    "bigint[], text[]",
    """
    WITH dropped AS (
        UPDATE workqueues_file f SET status = v.status, attempt_nr = greatest(f.attempt_nr, f.max_attempt)
        FROM unnest($1, $2) AS v(id, status) WHERE f.id = v.id RETURNING f.dataset_id, f.status
    )
    UPDATE workqueues_dataset d SET n_files_failed = d.n_files_failed + v.n
    FROM (SELECT dataset_id, count(*) AS n FROM dropped WHERE status = 'failed' GROUP BY dataset_id) v WHERE d.id = v.dataset_id
    """,
)


def drop(run_id: str, task_id: int, rows: Sequence[DroppedEvents], why: str, who: str) -> None:
    """Give up events of picked files that no job will ever take (too few for a job that must not be short): own transaction.

    They are fatal ranges of no job at the limit of tries, so that a retry of the task frees them as it does others. A file
    without free events goes on as its other ranges say, failed where none is live. Every file has a row in `file_change`. Call
    it before other events of the files are given to jobs, for files of master datasets: they have a limit of tries.
    Raises Stale when the claim is gone or a file is not picked.
    """
    ids = sorted({row.file_id for row in rows})
    with transaction.atomic():
        lock_claimed(task_id, run_id)
        datasets = Dataset.objects.select_for_update(no_key=True).filter(
            id__in=File.objects.filter(id__in=ids).values("dataset_id")
        )
        list(datasets.order_by("id").values_list("id"))
        files = {f.id: f for f in File.objects.select_for_update(no_key=True).filter(id__in=ids, status="picked").order_by("id")}
        if len(files) < len(ids):
            raise Stale(f"{len(ids) - len(files)} of {len(ids)} files are no longer picked")
        given_up = [
            NewRange(files[i].dataset_id, i, NO_JOB, first, n_events, (files[i].max_attempt or 1) - 1)
            for i, first, n_events in rows
            if n_events
        ]
        stands = read_file_events(run_together([_FATAL.with_values(insert_ranges(task_id, given_up)), file_events(ids)]))
        whole = {row.file_id for row in rows if not row.n_events}
        now = {i: "failed" if i in whole else "picked" if stands[i].free else _status(stands[i]) for i in ids}
        failed = [i for i in ids if now[i] == "failed"]
        run_together([_RELEASED.with_values(failed), _DROPPED.with_values(ids, [now[i] for i in ids])])
        FileChange.objects.bulk_create(
            FileChange(
                file_id=i,
                task_id=task_id,
                old="picked",
                new="failed" if now[i] == "failed" else "dropped",
                who=who[:128],
                why=why[:510],
            )
            for i in ids
        )
