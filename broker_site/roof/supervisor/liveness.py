"""What each process of a running system is asked, and what is done with one that does not answer."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from math import inf

import psutil

from broker_site.roof.embedded import Instance, Services
from broker_site.roof.embedded.process import Identity
from broker_site.roof.supervisor import signs
from broker_site.roof.supervisor.console import Event
from broker_site.roof.supervisor.servers import LABELS, PrivateServers
from broker_site.roof.supervisor.signs import ASK_EVERY_S, MOST_PATIENCE, Probe, Signs, Watched
from broker_site.roof.supervisor.watch import Supervisor

FROZEN_S = 30.0
"""A process that has not answered for so long is ended and started anew."""
WEB_READY_S = 60.0
AGENTS = ("worker", "beat")
FIRST_PATIENCE = 4
"""The first run of all, by which a new system shows that it has come up, may take so many times longer than the later ones."""


def watch_servers(found: Signs, instance: Instance, services: Services, servers: PrivateServers, frozen_s: float) -> None:
    """Ask PostgreSQL and Redis. Those of somebody else are only told of."""
    period_s = min(ASK_EVERY_S, frozen_s / 4)
    questions = {
        "postgres": partial(signs.postgres, services.database_url),
        "redis": partial(signs.redis_server, services.redis_url),
    }
    for name, ask in questions.items():
        private = instance.is_private(name)
        end = partial(instance.kill, name) if private else None
        began = partial(servers.began, name) if private else lambda: 0.0
        found.watched.append(Watched(LABELS[name], Probe(name, ask, period_s), began, end, frozen_s))


def watch_web(found: Signs, supervisor: Supervisor, url: str, frozen_s: float) -> None:
    """Ask the web server at /healthz."""
    child = supervisor.children["web"]
    probe = Probe("web", partial(signs.web, url), min(ASK_EVERY_S, frozen_s / 4))
    end = partial(supervisor.destroy, "web")
    found.watched.append(Watched("web", probe, lambda: child.began if child.pid else None, end, frozen_s, WEB_READY_S))


@dataclass(slots=True)
class QuietAgents:
    """Worker and beat show that they live by the runs of agents, which the database knows.

    They are started anew when no agent has begun a run for `quiet_s` while both were up and PostgreSQL and Redis answered.
    """

    supervisor: Supervisor
    signs: Signs
    probe: Probe[float]
    quiet_s: float
    _able_since: float = field(default_factory=time.monotonic)
    _patience: int = 1

    def look(self) -> Iterator[Event]:
        """Start worker and beat anew if they do nothing."""
        now = time.monotonic()
        children = [self.supervisor.children[name] for name in AGENTS]
        silent = [each for each in self.signs.watched if each.name in LABELS.values() and now - each.probe.at > 3 * ASK_EVERY_S]
        if silent or any(child.pid is None for child in children):
            self._able_since = now
            return
        silence = self.probe.value
        if silence is not None and silence < self.quiet_s:
            self._patience = 1
            yield Event("agents", "", "agents run again")
        up_s = now - max(self._able_since, *(child.began for child in children))
        limit_s = self.quiet_s * max(self._patience, FIRST_PATIENCE if silence == inf else 1)
        if silence is None or silence < limit_s or up_s < limit_s:
            return
        for child in children:
            self.supervisor.restart(child.spec.name)
        self._patience = min(2 * self._patience, MOST_PATIENCE)
        yield Event("agents", "quiet", f"no agent has begun for {min(silence, up_s):.0f} s: worker and beat started anew")


@dataclass(slots=True)
class StoppedProcesses:
    """Processes that web server and worker have started and that stand still (stopped by a signal) are killed after `limit_s`.

    Their parents, which do answer, replace them. The same is done with the mover, which nobody asks anything: it is started anew.
    """

    supervisor: Supervisor
    limit_s: float
    _seen: dict[Identity, float] = field(default_factory=dict)

    def look(self) -> Iterator[Event]:
        """Kill what has stood still for too long."""
        now = time.monotonic()
        stopped = {identity: name for name in ("web", "worker", "mover") for identity in self._stopped(name)}
        self._seen = {identity: self._seen.get(identity, now) for identity in stopped}
        for identity, name in stopped.items():
            if now - self._seen[identity] > self.limit_s:
                identity.signal(signal.SIGKILL)
                yield Event(
                    name, "stopped", f"a process of {name} stood still for {self.limit_s:.0f} s: killed (pid {identity.pid})"
                )

    def _stopped(self, name: str) -> Iterator[Identity]:
        child = self.supervisor.children.get(name)
        first = 0 if name == "mover" else 1
        for pid in child.pids()[first:] if child else ():
            try:
                if psutil.Process(pid).status() == psutil.STATUS_STOPPED and (identity := Identity.of(pid)):
                    yield identity
            except psutil.Error:
                continue
