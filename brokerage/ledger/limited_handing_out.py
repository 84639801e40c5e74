"""What one ask may get of its site, within what the site advertises, its running limits and its delays."""

from __future__ import annotations

import time
from collections.abc import Collection

from brokerage.ledger.handing_out import hand_out
from brokerage.ledger.lease import Ask
from brokerage.ledger.match_limits import LIMITS
from brokerage.ledger.site_room import SITE_ROOM
from brokerage.queries.job_document import LeasedJob, Untold
from brokerage.rules.dispatch.match_limits import FREE
from brokerage.rules.dispatch.requirement import Hits
from brokerage.rules.dispatch.waiting_list import WaitingQueue


class SiteTurn:
    """One ask at a site. `ces`: the computing elements that the pilot names: the limits of each hold; none: unknown.

    Room is taken when the first task queue suits (`allowed`), and what no job came of goes back (`end`).
    """

    def __init__(self, site: str, ces: Collection[str] = ()) -> None:
        self.site, self.ces = site, ces
        self.by_kind = LIMITS.has(site)
        """Whether there are limits on kinds of jobs: such an ask is carried out by itself."""
        self.held = LIMITS.at(site, self.ces) if self.by_kind else FREE
        self.no_room = False
        """Whether a job would have suited, and the site takes none."""
        self._taken: int | None = None

    @property
    def hits(self) -> Hits:
        """Values that are at their limit, by attribute."""
        return self.held.values

    def allowed(self, n: int) -> int:
        """How many of `n` jobs the site takes now; asked more than once the first answer holds."""
        if self._taken is None:
            if (room := SITE_ROOM.take(self.site, 1 if self.by_kind else n)) is None:
                return 1 if self.by_kind else n
            self._taken, self.no_room = room, room == 0
        return self._taken

    def hand_out(self, ask: Ask, waiting: WaitingQueue) -> list[LeasedJob] | Untold:
        """What the ask gets of the task queue, within the limits on kinds of jobs."""
        if not self.by_kind:
            return hand_out([ask])[0]
        values = {name: waiting.values(name) for name in LIMITS.attributes(self.site)}
        if (limits := LIMITS.passing(self.site, values, self.ces)) is None:
            return hand_out([ask])[0]
        began = time.monotonic()
        jobs = hand_out([ask._replace(limits=limits)], LIMITS.noting(self.site, self.ces, ask.pilot, ask.request))[0]
        if jobs.used if isinstance(jobs, Untold) else any(job.is_new for job in jobs):
            LIMITS.matched(self.site, limits)
            return jobs
        LIMITS.not_matched(limits)
        if not jobs and any(block.is_over() for block in limits.blocks):
            return self.hand_out(ask, waiting)  # this thread had to sleep, and there may be a job
        # Under blocks alone no limit refuses a match, as the room was taken before: there was no job.
        if not jobs and limits.ids and (held := LIMITS.refused(self.site, limits, time.monotonic() - began)):
            self.held = LIMITS.at(self.site, self.ces) or held
        return jobs

    def keep(self) -> None:
        """The room that was taken stays used: jobs may have been handed out."""
        self._taken = None

    def end(self, jobs: int) -> None:
        """The ask got so many jobs: the room that they do not take goes back."""
        if self._taken is not None and self._taken > jobs:
            SITE_ROOM.give_back(self.site, self._taken - jobs)
        self._taken = None

    def why_no_room(self) -> str:
        """In words why the site takes no job."""
        return f"{self.site}: {SITE_ROOM.reason(self.site) or 'its room went to other pilots at this moment'}"

    def limits(self, kinds: Collection[str]) -> tuple[list[str], float]:
        """In words what holds jobs of these kinds back (`Limited.kind`), and for how many seconds at least."""
        waits = [wait_s for limited, wait_s in self.held.waits_s.items() if limited.kind in kinds]
        return [why for limited, why in self.held.why if limited.kind in kinds], min(waits, default=0.0)
