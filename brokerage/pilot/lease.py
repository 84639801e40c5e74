"""The lease of a job: renewed by heartbeats from a thread, judged by the clock since boot.

A lease that could not be renewed for 80 % of its length is lost; the last 20 % are the margin before the server gives the job's
files to others.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

from brokerage.pilot import messages
from brokerage.pilot.clocks import Wake, now
from brokerage.pilot.job import Job
from brokerage.pilot.payload import Keeper
from brokerage.pilot.server import Answer, Server

MARGIN = 0.8
LONGEST_INTERVAL_S = 60.0
"""Heartbeats come at least this often, so that a command reaches the payload soon also under leases of hours."""


class Lease:
    """Held from the first answered heartbeat until it is lost or closed.

    token: of the latest renewal. until: the moment the lease counts as lost. lost: why, or None. kill_asked: the server wants the
    job ended.
    """

    def __init__(self, job: Job, url: str, main: Wake, keeper: Keeper) -> None:
        self.job = job
        self.token = job.token
        self.lease_s = job.lease_s
        self.until = now() + MARGIN * job.lease_s
        self.lost: str | None = None
        self.kill_asked = False
        self.status = "starting"
        self._main = main
        self._keeper = keeper
        self._wake = Wake()
        self._server = Server(url, self._wake)
        self._thread: threading.Thread | None = None
        self.renewed: Callable[[str], None] = lambda token: None
        """Called with each new token, from the thread that renews."""

    def holds(self) -> bool:
        """False once lost; to be asked before anything that others see."""
        if self.lost is None and now() >= self.until:
            self._lose("not renewed in time")
        return self.lost is None

    def beat(self, server: Server, status: str) -> bool:
        """One heartbeat from the calling thread, which also tells the server the new status.

        False when the lease is lost or we must stop.
        """
        self.status = status
        sent = now()
        # The first beat asks the server itself whether the job is still ours, however old the answer to the match is.
        deadline = self.until if self._thread else sent + MARGIN * self.lease_s
        answer = self._ask(server, deadline)
        return self._take(answer, sent, server.wake)

    def keep(self) -> None:
        """Start renewing from a thread, until `close`."""
        self._thread = threading.Thread(target=self._renew, name="lease", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop renewing. The thread has ended when this returns, so that the next job may fork."""
        self._wake.stop()
        if self._thread is not None:
            self._thread.join()
        self._server.close()
        self._wake.close()

    def _ask(self, server: Server, deadline: float) -> Answer | None:
        message = messages.heartbeat(self.job.id, self.status, *self._keeper.usage())
        return server.ask(*message, self.token, deadline=deadline, attempt_s=min(10.0, max(0.5, self.lease_s / 6)))

    def _renew(self) -> None:
        while True:
            self._wake.sleep(min(self.lease_s / 3, LONGEST_INTERVAL_S) * random.uniform(0.7, 1.0))  # noqa: S311 - jitter, no secret
            if self._wake.stopping or not self.holds():
                return
            sent = now()
            answer = self._ask(self._server, self.until)
            if not self._take(answer, sent, self._wake):
                return

    def _take(self, answer: Answer | None, sent: float, wake: Wake) -> bool:
        """Use an answer. The server counted from a moment after `sent`, so counting from `sent` errs on the safe side."""
        if answer is None:
            if not wake.stopping:
                self._lose("no answer to heartbeats")
            return False
        if answer.status != 200:
            self._lose(f"heartbeat refused with status {answer.status}")
            return False
        self.lease_s = float(answer.body.get("lease_s") or self.lease_s)
        if (token := str(answer.body.get("token") or self.token)) != self.token:
            self.token = token
            self.renewed(token)
        self.until = max(self.until, sent + MARGIN * self.lease_s)
        self._keeper.renew(self.until)
        if answer.body.get("command") == "tobekilled" and not self.kill_asked:
            self.kill_asked = True
            self._main.ring()
        return True

    def _lose(self, why: str) -> None:
        if self.lost is None:
            self.lost = why
            self._main.ring()
