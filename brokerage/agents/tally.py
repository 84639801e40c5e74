"""Agent tally. Takes changes of jobs that are not counted yet. Leaves counts by minute, and removes those that are too old. Next:
whoever looks at what happened over time.
"""

from __future__ import annotations

import time

from django.utils import timezone

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import Run, agent
from brokerage.ledger.error_tasks import forget_tasks
from brokerage.ledger.tally import compare_levels, count_changes, forget_buckets
from brokerage.models import TallyMark
from brokerage.rules.facts.rollups import STEPS

BATCH = 20_000
LONGEST_S = 30.0
"""Time after which a run begins no further batch."""
KEPT = ("KEEP_MINUTES", "KEEP_5_MINUTES", "KEEP_HOURS", "KEEP_DAYS")
"""The keys that say how long buckets of each length are kept."""


@agent("tally")
def tally(run: Run) -> int:
    """Count, and where it is time compare and remove what is old. Always 0: an agent that handled rows is run again at once, and
    counting has its period.
    """
    config, end = gdpconfig.component("tally"), time.monotonic() + LONGEST_S
    counted: int | None = BATCH
    while counted is not None and counted >= BATCH and time.monotonic() < end:
        counted = count_changes(BATCH)
    if counted is None or counted >= BATCH or not _is_due(config["COMPARE"]):
        return 0
    compared = compare_levels()
    if compared is not None and compared.off:
        off = f"{compared.off} jobs differ from what was counted; the counts are put right"
        run.leave("levels", RuntimeError(off))
    for step_s, key in zip(STEPS, KEPT, strict=True):
        while time.monotonic() < end and forget_buckets(step_s, config[key], BATCH) == BATCH:
            continue
    while time.monotonic() < end and forget_tasks(config["KEEP_ERROR_TASKS"], BATCH) == BATCH:
        continue
    return 0


def _is_due(period_s: float) -> bool:
    """Whether the last comparison is so long ago."""
    at = TallyMark.objects.values_list("compared_at", flat=True).first()
    return at is None or (timezone.now() - at).total_seconds() >= period_s
