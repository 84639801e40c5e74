"""Agent stage. Takes jobs that wait for input, files that are held until they are staged from tape, and the users and groups for
whom input is brought. Leaves jobs activated whose input came without word, files ready that a disk has, and tasks throttled, or
going on, as what is on the way for their owner says. Next: pilots, generate.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import Run, agent
from brokerage.ledger.transfers.cached_copies import keep_copies
from brokerage.ledger.transfers.look_ups import look_up
from brokerage.ledger.transfers.pre_staging import release_staging, stage_files
from brokerage.queries.owner_tasks import tasks_that_move
from brokerage.queries.owner_traffic import OwnerTraffic
from brokerage.queries.staged_files import staged_files, staging_disks, staging_tasks
from brokerage.rules.transfers.owner_limits import CAUSES, DISK_TRANSFERS, TAPE_STAGING
from workqueues.ledger.staging import release_blocks
from workqueues.ledger.throttles import Cause, Rest, throttle, throttle_for_tries
from workqueues.queries.tries import often_tried
from workqueues.rules.throttle.attempts import EVERY, rest_min

LOOKS_IN_A_PERIOD = 4
"""How often what is due is looked for in a period."""


class LookUps:
    """Looks for files, and for copies in use, now and then in each process that runs the agent: it costs as much as there are."""

    def __init__(self) -> None:
        self._last: datetime | None = None

    def run(self, run: Run) -> int:
        """Look, if it is time: how many files were there."""
        period_s = gdpconfig.value("inputs", "LOOK_UP_PERIOD")
        if self._last is not None and run.now - self._last < timedelta(seconds=period_s / LOOKS_IN_A_PERIOD):
            return 0
        self._last = run.now
        keep_copies(gdpconfig.value("transfers", "ONETIME_LIFETIME"))
        return look_up(period_s, gdpconfig.value("inputs", "LOOK_UP_PRIORITY"), run.who)


LOOK_UPS = LookUps()


@agent("stage")
def stage(run: Run) -> int:
    """Look for files, have others staged, and throttle tasks: how many files were there and how many tasks changed."""
    return LOOK_UPS.run(run) + stage_inputs(run) + throttle_owners(run) + throttle_tried(run)


def stage_inputs(run: Run) -> int:
    """Have input staged from tape for tasks that wait for it: how many files are there."""
    release_staging()
    tasks, after, n = staging_tasks(), 0, 0
    disks, again_s = staging_disks() if tasks else {}, gdpconfig.value("inputs", "STAGE_AGAIN")
    while tasks and (files := staged_files(tasks, after, again_s)):
        n += stage_files(files, disks, run.who)
        after = files[-1].id
    return n + (release_blocks(tasks, run.who) if tasks else 0)


def throttle_tried(run: Run) -> int:
    """Let tasks rest of which a file was tried again and again."""
    rests = []
    for task in often_tried():
        if minutes := rest_min(task.most, task.times):
            why = f"a file was tried {task.most} times without success"
            rests.append(Rest(task.task_id, minutes, task.most // EVERY, why))
    return throttle_for_tries(rests, run.who) if rests else 0


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
