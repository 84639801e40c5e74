"""Where shares stand, written anew by the agent share."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from workqueues.models import GlobalShare, ShareStanding
from workqueues.rules.share_standing import Standing

COLUMNS = tuple(f.attname for f in ShareStanding._meta.concrete_fields if not f.primary_key)


def note_standings(standings: Iterable[Standing], at: datetime) -> int:
    """Replace what is known of these shares: how many. A share that is gone meanwhile is passed over."""
    there = set(GlobalShare.objects.values_list("name", flat=True))
    rows = [_row(standing, at) for standing in standings if standing.name in there]
    ShareStanding.objects.bulk_create(rows, update_conflicts=True, unique_fields=["share"], update_fields=COLUMNS)
    return len(rows)


def _row(standing: Standing, at: datetime) -> ShareStanding:
    use = standing.use
    return ShareStanding(
        share_id=standing.name,
        at=at,
        place=standing.place,
        percent=standing.percent,
        target=standing.target,
        entitled=standing.entitled,
        hs06_running=use.hs06_running,
        hs06_queued=use.hs06_queued,
        jobs_running=use.jobs_running,
        jobs_queued=use.jobs_queued,
        cores_running=use.cores_running,
        cores_queued=use.cores_queued,
    )
