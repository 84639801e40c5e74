"""Jobs that end want no files any more."""

from __future__ import annotations

from collections.abc import Sequence

from broker_site.foundation.agency.look import look_after_commit
from broker_site.foundation.sql.prepared import Prepared

_RELEASE = Prepared(
    "release_wishes",
    "bigint[]",
    """
    UPDATE brokerage_transferwish SET closed_at = now(), released = true WHERE job_id = ANY($1) AND closed_at IS NULL RETURNING id
    """,
)


def release(job_ids: Sequence[int]) -> None:
    """Close the open wishes of these jobs, in the caller's transaction, which holds the jobs.

    The transfers stay as they are: the agent `transfer` cancels those that nobody wants and that have not begun.
    """
    if _RELEASE.run(list(job_ids)):
        look_after_commit("transfer")
