"""Files that leave the place where a job wrote them: wishes for its outputs, and for its log, where their datasets are collected.

Written in the transaction that registers them. Not here: what follows when they arrive (`delivery`), or do not (`withdrawal`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from broker_site.foundation.sql.prepared import Prepared
from brokerage.ledger.transfers.asking import ask
from brokerage.rules.grid.measurements import EXPRESS, PRODUCTION_OUTPUT
from brokerage.rules.transfers.wishes import FileWish, is_express


class LeavingFile(NamedTuple):
    """An output of a job that is registered, by the number of its file, and the storage endpoint to which it goes."""

    job_id: int
    file_id: int
    destination: str


_LEAVING = Prepared(
    "leaving_files",
    "bigint[], bigint[], text[]",
    """
    SELECT o.job_id, c.id, o.destination, f.type, f.task_id, f.dataset_id, j.priority, s.processing_type, s.vo, s.user_name,
        s.working_group, q.gshare
    FROM unnest($1, $2, $3) WITH ORDINALITY AS o(job_id, file_id, destination, number)
        JOIN brokerage_job j ON j.id = o.job_id
        JOIN brokerage_jobspec s ON s.job_id = j.id
        JOIN brokerage_taskqueue q ON q.id = j.task_queue_id
        JOIN workqueues_file f ON f.id = o.file_id
        JOIN workqueues_dataset d ON d.id = f.dataset_id
        JOIN workqueues_cataloguedataset cd ON cd.name = d.dataset_name AND cd.vo = s.vo
        JOIN workqueues_cataloguefile c ON c.dataset_id = cd.id AND c.lfn = f.lfn
    ORDER BY o.number
    """,
)


def send_off(files: Sequence[LeavingFile], who: str) -> set[int]:
    """Wish these files where they go, in the caller's transaction, which holds the jobs: the jobs that wait for any of them."""
    if not files:
        return set()
    rows = _LEAVING.run([f.job_id for f in files], [f.file_id for f in files], [f.destination for f in files])
    wishes = [
        FileWish(
            file_id,
            destination,
            role=type_,
            activity=EXPRESS if is_express(processing, priority) else PRODUCTION_OUTPUT,
            vo=vo,
            owner=f"group:{group}" if group else user,
            share=share,
            priority=priority,
            express=is_express(processing, priority),
            job_id=job_id,
            task_id=task_id,
            dataset_id=dataset_id,
        )
        for job_id, file_id, destination, type_, task_id, dataset_id, priority, processing, vo, user, group, share in rows
    ]
    asked = ask(wishes, who, "outputs are collected there")
    return {wish.job_id for wish, transfer in zip(wishes, asked, strict=True) if wish.job_id and transfer is not None}
