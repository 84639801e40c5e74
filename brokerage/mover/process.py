"""The loop of a mover: claim copies, give them to lanes, keep the claims, write down how they ended.

It never touches storage itself. Killed at any moment it leaves claims, which run out, and parts, which the next try removes.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import Error, close_old_connections, connection

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.look import look
from brokerage.ledger.transfers.local_copies import (
    Claim,
    ClaimedCopy,
    CopyEnd,
    claim_copies,
    end_copies,
    given_up,
    put_back_copies,
    renew_copies,
)
from brokerage.mover.bandwidth import Bandwidth
from brokerage.mover.batch import SMALL, Task
from brokerage.mover.lanes import Lanes

PAIR_ROOM = 512
"""Copies of a pair of endpoints that a mover holds at most, those that wait for its threads included."""
AHEAD_BYTES = 64.0 * SMALL
ENDS = 500
BUSY_WAIT_S = 0.04
RENEWALS = 4
"""So many times in the time of a claim it is renewed."""
CANCEL_LOOK_S = 1.0
TROUBLE_S = 1.0

logger = logging.getLogger(__name__)


class Mover:
    """One process that copies. `stop` ends it."""

    def __init__(self) -> None:
        self.name = f"{socket.gethostname()[:20]}-{os.getpid()}-{uuid.uuid4().hex[:12]}"
        self.stopping = threading.Event()
        self._lanes = Lanes()
        self._links: dict[tuple[str, str], Bandwidth] = {}
        self._unwritten: list[CopyEnd] = []
        self._held_then = 0
        self._renewed = self._looked = self._claimed = time.monotonic()

    def stop(self) -> None:
        """Begin nothing more, and give up what is under way."""
        self.stopping.set()

    def run(self) -> None:
        """Copy until it is stopped. While the database does not answer, copies under way go on."""
        while not self.stopping.is_set():
            try:
                close_old_connections()
                self.round()
            except Error as error:
                logger.warning("the mover waits for the database: %s", error)
                connection.close()
                self.stopping.wait(TROUBLE_S)
        self._leave()

    def round(self) -> int:
        """Claim, copy, tell: how many copies were claimed and ended."""
        config = gdpconfig.component("transfers")
        claimed = self._claim(config) if self._claim_due(config["MOVER_POLL"]) else []
        if claimed:
            from_disk = config["READ_BACK"] == "disk"
            self._lanes.give([Task(row, self._bandwidth(row), from_disk) for row in claimed], config["MOVER_STREAMS"])
            self._held_then = len(self._lanes.held)
        wait_s = BUSY_WAIT_S if claimed or self._lanes.held else config["MOVER_POLL"]
        self._unwritten += self._lanes.ended(wait_s, ENDS)
        ended = self._tell()
        self._keep(config["MOVER_CLAIM"])
        return len(claimed) + ended

    def _claim_due(self, period_s: float) -> bool:
        """Whether to look for copies: half of what was held is through, or the period is over."""
        now = time.monotonic()
        if 2 * len(self._lanes.held) > self._held_then and now - self._claimed < period_s:
            return False
        self._claimed = now
        return True

    def _claim(self, config: Mapping[str, Any]) -> Sequence[ClaimedCopy]:
        claim = Claim(config["MOVER_CLAIM"], PAIR_ROOM, config["MOVER_STREAMS"], AHEAD_BYTES)
        return claim_copies(self.name, claim, self._lanes.rooms(PAIR_ROOM))

    def _tell(self) -> int:
        """Write down how copies ended; they stay noted here until that is done."""
        if not self._unwritten:
            return 0
        written = end_copies(self.name, self._unwritten)
        self._unwritten.clear()
        look("transfer")
        return written

    def _keep(self, claim_s: float) -> None:
        """Renew the claims, and stop what was cancelled or was lost to another mover."""
        now, held = time.monotonic(), self._lanes.held
        if held and now - self._looked >= CANCEL_LOOK_S:
            self._looked = now
            for key in given_up(self.name, list(held)):
                held[key].given_up = True
        if held and now - self._renewed >= claim_s / RENEWALS:
            self._renewed = now
            kept = renew_copies(self.name, claim_s, [(key, task.copied) for key, task in held.items()])
            for key in held.keys() - kept:
                held[key].given_up = True

    def _bandwidth(self, row: ClaimedCopy) -> Bandwidth:
        link = self._links.setdefault((row.source.site, row.destination.site), Bandwidth(row.mb_per_s))
        link.mb_per_s = row.mb_per_s
        return link

    def _leave(self) -> None:
        """Stop the copies, and leave them to the next mover."""
        for task in list(self._lanes.held.values()):
            task.given_up = True
        try:
            put_back_copies(self.name)
        except Error as error:
            logger.warning("claims are left to run out: %s", error)
