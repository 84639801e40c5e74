"""Agent links. Takes open transfers and those that ended. Leaves what waits on each link and how fast it goes, and removes
transfers that ended long ago. Next: whoever reads the grid.
"""

from __future__ import annotations

import time

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import Run, agent
from brokerage.ledger.transfers.figures import Caps, count_links, forget_ended

BATCH = 2000
LONGEST_S = 30.0
"""Time after which a run removes no further batch."""


@agent("links")
def links(run: Run) -> int:
    """Count, and remove what is old. Always 0: an agent that handled rows is run again at once, and counting has its period."""
    keep_s, end = gdpconfig.value("transfers", "KEEP_ENDED"), time.monotonic() + LONGEST_S
    brokers = gdpconfig.component("jobbroker")
    nucleus = gdpconfig.value("taskbrokerage", "NQUEUED_NUC_CAP")
    count_links(keep_s, Caps(brokers["NQUEUED_SAT_CAP"], nucleus, brokers["NQUEUED_NUC_CAP_FOR_JOBS"]))
    while time.monotonic() < end and forget_ended(keep_s, BATCH) == BATCH:
        continue
    return 0
