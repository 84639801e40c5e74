"""Agent stage. Takes jobs that wait for input, and the users and groups for whom it is brought. Leaves jobs activated whose input
came without word, and tasks throttled, or going on, as what is on the way for their owner says. Next: pilots, generate.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import Run, agent
from brokerage.ledger.transfers.look_ups import look_up
from brokerage.queries.owner_tasks import tasks_that_move
from brokerage.queries.owner_traffic import OwnerTraffic
from brokerage.rules.transfers.owner_limits import CAUSES, DISK_TRANSFERS, TAPE_STAGING
from workqueues.ledger.throttles import Cause, throttle

LOOKS_IN_A_PERIOD = 4
"""How often what is due is looked for in a period."""


class LookUps:
    """Looks for files now and then in each process that runs the agent: it costs as much as there are open transfers."""

    def __init__(self) -> None:
        self._last: datetime | None = None

    def run(self, run: Run) -> int:
        """Look, if it is time: how many files were there."""
        period_s = gdpconfig.value("inputs", "LOOK_UP_PERIOD")
        if self._last is not None and run.now - self._last < timedelta(seconds=period_s / LOOKS_IN_A_PERIOD):
            return 0
        self._last = run.now
        return look_up(period_s, gdpconfig.value("inputs", "LOOK_UP_PRIORITY"), run.who)


LOOK_UPS = LookUps()


@agent("stage")
def stage(run: Run) -> int:
    """Look for files that nobody told of, and throttle tasks: how many files were there and how many tasks changed."""
    return LOOK_UPS.run(run) + throttle_owners(run)


def throttle_owners(run: Run) -> int:
    """Throttle the tasks that move input of whoever has too much on the way (row J26); let the others go on."""
    traffic = OwnerTraffic()
    over = {(vo, owner): why for vo, owner in traffic.underway if (why := traffic.excess(vo, owner))}
    causes = set[Cause]()
    for owner, task_id, disk, tape in tasks_that_move(list(over)):
        for cause, moves in ((DISK_TRANSFERS, disk), (TAPE_STAGING, tape)):
            if moves and (excess := over.get(owner, {}).get(cause)):
                causes.add(Cause(task_id, cause, f"no new jobs are made while {excess}"))
    return throttle(causes, CAUSES, gdpconfig.value("anal_watchdog", "THROTTLE_PERIOD"), run.who)
