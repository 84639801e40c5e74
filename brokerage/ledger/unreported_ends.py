"""Jobs that end without a word of their pilot: by silence, time-out, command, or since files are not brought. Each in one
transaction with everything it implies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from django.db import transaction

from broker_site.foundation.agency.look import look_after_commit
from broker_site.foundation.sql.prepared import Prepared, run_together
from brokerage.ledger.ending_jobs import FILE_OUTCOME, job_outcome, read_jobs, uses
from brokerage.ledger.moves import move_jobs
from brokerage.ledger.transfers.releasing import release
from brokerage.ledger.transfers.withdrawal import withdraw
from brokerage.models import JobResult
from brokerage.rules.dispatch.settlement import Ending
from brokerage.states import INPUT_MISSING, JOB
from workqueues.ledger.files import Hold, settling
from workqueues.ledger.moves import Stale

_LOCK = Prepared("lock_jobs", "bigint[]", "SELECT id FROM brokerage_job WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE")


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
) -> None:
    """End jobs without a report (lost lease, time-out, command), all of them or, raising Stale, none.

    `why` is one text for all or one for each. `holds`: by job, its inputs that are held back. `sources`, `epochs` and `only` say
    what must still hold (`move_jobs`). The epoch goes up, so that whatever a pilot still reports for the old lease is refused.
    """
    with transaction.atomic():
        _LOCK.run(list(ids))  # what is read of them still holds when they are moved
        seen = read_jobs(ids)
        ended = move_jobs(ids, ending, who, why, sub_status=sub_status, sources=sources, epochs=epochs, bump=1, only=only).run()
        if len(ended) != len(ids):
            raise Stale(f"{len(ids) - len(ended)} of {len(ids)} jobs moved meanwhile")
        code = (sub_status or ending).upper()
        whys = dict.fromkeys(ids, why) if isinstance(why, str) else dict(zip(ids, why, strict=True))
        if undelivered := [job for job in seen if job.delivers]:
            withdraw(undelivered, code, who, whys)
        if moving := [job.id for job in seen if job.status in JOB.moving]:
            release(moving)
        outcome = FILE_OUTCOME[ending]
        unreadable = sub_status == INPUT_MISSING
        given_back = settling([job_outcome(job, outcome, {}, holds.get(job.id, {}), unreadable=unreadable) for job in seen])
        run_together([uses([(job, outcome) for job in seen]), *given_back])
        JobResult.objects.bulk_create(
            [
                JobResult(job_id=j.id, pilot_id=j.holder, host=j.host, error_code=code[:40], error_message=whys[j.id][:500])
                for j in seen
            ],
            ignore_conflicts=True,
        )
        look_after_commit("generate", "finish", "command")
