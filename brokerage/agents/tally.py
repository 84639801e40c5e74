"""Agent tally. Takes changes of jobs that are not counted yet. Leaves counts by minute, and removes those that are too old. Next:
whoever looks at what happened over time.
"""

from __future__ import annotations

import time

from django.utils import timezone

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import Run, agent
from brokerage.ledger.tally import compare_levels, count_changes, forget_buckets
from brokerage.models import TallyMark
from brokerage.rules.facts.rollups import STEPS

BATCH = 20_000
LONGEST_S = 30.0
"""Time after which a run begins no further batch."""


@agent("tally")
def tally(run: Run) -> int:
    """Count, compare where it is time, and remove what is old. Always 0: an agent that handled rows is run again at once, and
    counting has its period.
    """
    config, end = gdpconfig.component("tally"), time.monotonic() + LONGEST_S
    counted: int | None = BATCH
    while counted == BATCH and time.monotonic() < end:
        counted = count_changes(BATCH)
    if counted is None:
        return 0
    if counted < BATCH and _is_due(config["COMPARE"]):
        compared = compare_levels()
        if compared is not None and compared.off:
            off = f"{compared.off} jobs differ from what was counted; the counts are put right"
            run.leave("levels", RuntimeError(off))
    keep = dict(zip(STEPS, (config["KEEP_MINUTES"], config["KEEP_5_MINUTES"], config["KEEP_HOURS"]), strict=True))
    for step_s, keep_s in keep.items():
        while time.monotonic() < end and forget_buckets(step_s, keep_s, BATCH) == BATCH:
            continue
    return 0


def _is_due(period_s: float) -> bool:
    """Whether the last comparison is so long ago."""
    at = TallyMark.objects.values_list("compared_at", flat=True).first()
    return at is None or (timezone.now() - at).total_seconds() >= period_s
