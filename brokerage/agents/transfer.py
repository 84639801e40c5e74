"""Agent transfer. Takes transfers that are due or under way. Leaves them with a backend, queued for another try, or ended, and
what follows from that written: copies, jobs that may start or cannot. Next: the mover; pilots, and generate.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.batches import one_by_one
from broker_site.foundation.agency.run import Run, agent
from brokerage.agents.transfer_attempts import Attempts
from brokerage.agents.transfer_ends import Ends
from brokerage.ledger.transfers.ageing import cancel_unwished, fail_old
from brokerage.ledger.transfers.claims import UnderWay, claim_overdue, settling
from brokerage.ledger.transfers.rests import wake
from brokerage.rules.transfers.backoff import silent_s
from brokerage.transfers.choice import backends
from brokerage.transfers.port import Backend

BATCH = 500
ROUNDS = 4
"""Batches of each kind in a run at most; what is left is for the next, which comes at once."""

logger = logging.getLogger(__name__)


class Upkeep:
    """What need not be looked at in every run, once a period in each process that runs the agent."""

    def __init__(self) -> None:
        self._last: datetime | None = None

    def due(self, now: datetime, period_s: float) -> bool:
        """Whether the period is over; it begins anew."""
        if self._last is not None and timedelta(0) <= now - self._last < timedelta(seconds=period_s):
            return False
        self._last = now
        return True


UPKEEP = Upkeep()


@agent("transfer")
def transfer(run: Run) -> int:
    """Note what ended, ask for what is silent, begin what is due: how many transfers moved."""
    config = gdpconfig.component("transfers")
    known = backends()
    ends, attempts = Ends(run, config), Attempts(run, config, known)
    moved = sum(one_by_one(known.values(), lambda backend: note_ended(backend, ends), lambda b, error: run.leave(b.name, error)))
    upkeep = UPKEEP.due(run.now, config["UPKEEP"])
    if upkeep:
        moved += look_after(run, config, known, ends, attempts)
    moved += cancel_unwished(BATCH, run.who)
    wake(BATCH * ROUNDS)
    for _ in range(ROUNDS):
        begun = attempts.begin(hindered_too=upkeep)
        moved += begun
        upkeep = False
        if not begun:
            break
    ends.count_links()
    return moved


def note_ended(backend: Backend, ends: Ends) -> int:
    """What a backend is through with: how many transfers moved."""
    moved = 0
    for _ in range(ROUNDS):
        reports = backend.ended(BATCH)
        with settling() as mine:
            if not reports or not mine:
                break
            moved += ends.settle(reports)
        backend.forget([report.key for report in reports if report.key not in ends.unsettled])
    return moved


def look_after(run: Run, config: Mapping[str, Any], known: Mapping[str, Backend], ends: Ends, attempts: Attempts) -> int:
    """Those of which nothing was heard: asked for, submitted once more, or given up. And those that waited too long."""
    moved = 0
    overdue: dict[str, list[UnderWay]] = defaultdict(list)
    for one in claim_overdue(BATCH * ROUNDS, config["POLL"]):
        overdue[one.backend].append(one)

    def ask(name: str) -> int:
        return look_for(known[name], overdue[name], config, ends, attempts)

    moved += sum(one_by_one([name for name in overdue if name in known], ask, run.leave))
    for tape, key in ((False, "MAX_AGE"), (True, "MAX_AGE_TAPE")):
        moved += fail_old(tape, config[key], BATCH, run.who)
    return moved


def look_for(backend: Backend, asked: Sequence[UnderWay], config: Mapping[str, Any], ends: Ends, attempts: Attempts) -> int:
    """What became of these: how many moved. One that the backend does not know is submitted again, under its key, or
    lost if it was submitted.
    """
    found = backend.find([one.key for one in asked])
    over = [report for report in found.values() if report.state != "under way"]
    moved = ends.settle(over)
    backend.forget([report.key for report in over if report.key not in ends.unsettled])
    under_way = [one for one in asked if one.key in found and found[one.key].state == "under way"]
    attempts.note_submitted([(one.id, one.key) for one in under_way if one.status == "submitting"])
    silent = [one for one in under_way if one.status == "submitted" and one.for_s > _silent_s(one, config)]
    if silent:
        moved += ends.time_out([one.key for one in silent])
        backend.cancel([one.key for one in silent])
    unknown = [one for one in asked if one.key not in found]
    moved += ends.lose([one.key for one in unknown if one.status == "submitted"])
    return moved + attempts.submit_again([one.id for one in unknown])


def _silent_s(one: UnderWay, config: Mapping[str, Any]) -> float:
    return silent_s(one.bytes, config["SILENT_AFTER"], config["SILENT_RATE"], config["SILENT_MAX"])
