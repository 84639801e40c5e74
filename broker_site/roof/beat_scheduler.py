"""Celery beat's scheduler: a tick for each agent on the period that the configuration gives it, also after it was changed, and
looks that agents are told of later.

Nothing is kept on disk: a restarted beat ticks everybody at once, which is harmless.
"""

from __future__ import annotations

import logging
import time
from datetime import timedelta
from typing import Any, cast

from celery.beat import Scheduler
from celery.schedules import schedule
from django.db import Error, connection

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.duties import AGENTS
from broker_site.foundation.agency.look import LaterLooks

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
"""How soon a changed period has an effect."""
STANDS_S = 60.0
"""So long a tick is good at least, as a look is: where workers are behind by more than two short periods, each tick of such an
agent would be void before its turn, and it would never run. Ticks that it has no use for cost it nothing.
"""


class PeriodScheduler(Scheduler):
    """One entry per agent; periods are read anew every LOOK_EVERY_S, and kept as they are while the database does not answer."""

    looked = float("-inf")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._later = LaterLooks()
        super().__init__(*args, **kwargs)

    def setup_schedule(self) -> None:
        self.follow_configuration()

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Send what is due until the next tick is."""
        if time.monotonic() - self.looked >= LOOK_EVERY_S:
            self.follow_configuration()
        self._later.wait(min(super().tick(*args, **kwargs), LOOK_EVERY_S))
        return 0.0

    def follow_configuration(self) -> None:
        """Bring the entries to the configured periods."""
        self.looked = time.monotonic()
        try:
            periods = {name: float(gdpconfig.value("agents", f"PERIOD_{name}")) for name in AGENTS}
        except Error as error:
            connection.close()  # a broken one is opened anew at the next look
            logger.warning("periods stay as they are, the database does not answer: %s", error)
            return
        for name, period in periods.items():
            self._set(name, period)

    def _set(self, name: str, period: float) -> None:
        entries = cast("dict[str, Any]", self.schedule)
        known = entries.get(name)
        if known is not None and known.schedule.run_every.total_seconds() == period:
            return
        # A new entry is due at once: Celery takes "never" for "just now", so a beat that is restarted often enough would
        # never tick an agent of a long period, and the broker would not be ready before each period has gone by.
        last = known.last_run_at if known is not None else self.app.now() - timedelta(seconds=period)
        entries[name] = self.Entry(
            name=name,
            task=f"agent.{name}",
            schedule=schedule(period, app=self.app),
            options={"expires": max(STANDS_S, 2 * period)},
            last_run_at=last,
            app=self.app,
        )
        self._heap = None  # made anew from the entries at the next tick
