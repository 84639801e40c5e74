"""The message "look": wakes an agent sooner than its period. Whoever leaves work for an agent calls `look_after_commit`.

It carries nothing, so losing one costs a period and doubling one nothing. Looks that come while one is unanswered are joined with
it, and after each an agent has a pause: one that comes in it is sent by beat (`LaterLooks`) when it is over.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Iterable
from typing import cast

import redis
from celery import current_app
from django.conf import settings
from django.db import Error, connection, transaction
from kombu.exceptions import OperationalError
from redis.backoff import NoBackoff
from redis.retry import Retry

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.silence import SILENCE

logger = logging.getLogger(__name__)

PENDING_MS = 2000
"""How long an unanswered look stands for later ones; the agent's next run ends it sooner."""
LATER = "looks-later"
"""The list of agents that are to be told when their pause is over."""
AT = "@"
"""Between the name of such an agent and when it is to look, s since 1970, where that is not the end of its pause."""
LONGEST_BLOCK_S = 1.0


@functools.cache
def _redis(patience_s: float = 0.5) -> redis.Redis:
    once = Retry(NoBackoff(), 0)
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=patience_s, socket_connect_timeout=0.5, retry=once)


class Looks:
    """The agents that one transaction leaves work for."""

    def __init__(self, agents: Iterable[str]) -> None:
        self.agents = dict.fromkeys(agents)

    def __call__(self) -> None:
        look(*self.agents)


def look_after_commit(*agents: str) -> None:
    """Work is left for these agents by the current transaction: tell them once it is committed, each once."""
    open_savepoints = set(connection.savepoint_ids)
    for savepoints, hook, *_ in connection.run_on_commit:
        if isinstance(hook, Looks) and savepoints <= open_savepoints:  # it is called if ours is
            hook.agents.update(dict.fromkeys(agents))
            return
    transaction.on_commit(Looks(agents))


def look(*agents: str) -> None:
    """Tell the agents to look now. Never fails: without Redis their periods do."""
    if SILENCE.lasts():
        return
    try:
        messages = _redis().pipeline(transaction=False)  # one round trip, since every end of a job comes through here
        for name in agents:
            messages.incr(f"looks:{name}")
            messages.set(f"look:{name}", 1, nx=True, px=PENDING_MS)
        unanswered = messages.execute()[1::2]
        SILENCE.heard()
        _tell([name for name, first in zip(agents, unanswered, strict=True) if first])
    except (redis.RedisError, OperationalError, OSError, Error) as error:
        SILENCE.heard(error)
        logger.warning("no look message to %s: %s", ", ".join(agents), error)


def look_later(name: str, seconds: float) -> None:
    """Tell the agent to look after so many seconds, by beat: for work that rests until then. Never fails, as `look`.

    A look before makes this one void: who looks sees what still rests, and asks again.
    """
    try:
        _redis().rpush(LATER, f"{name}{AT}{time.time() + seconds:.3f}")
    except (redis.RedisError, OSError) as error:
        logger.warning("no later look of %s: %s", name, error)


def looking(name: str) -> int | None:
    """The agent begins to look: a look sent from here on is a new message, since this run may not see what it is about.

    How many looks there were before, for `look_again`.
    """
    try:
        messages = _redis().pipeline(transaction=False)
        messages.delete(f"look:{name}")
        messages.get(f"looks:{name}")
        return int(messages.execute()[1] or 0)
    except (redis.RedisError, OSError) as error:
        logger.warning("no look marker for %s: %s", name, error)
        return None


def look_again(name: str, before: int | None, rows: int) -> None:
    """The agent has looked: it looks again if it handled rows, since there may be more, or was told to meanwhile.

    Another run, which that look began, may have left out what this one held. This look itself is not counted: two runs would
    tell each other to look for ever.
    """
    try:
        again = rows or before != int(_redis().get(f"looks:{name}") or 0)
        if again and _redis().set(f"look:{name}", 1, nx=True, px=PENDING_MS):
            _tell([name])
    except (redis.RedisError, OperationalError, OSError, Error) as error:
        logger.warning("no look message to %s: %s", name, error)


def _tell(agents: Iterable[str]) -> None:
    """Send looks to agents that have had their pause; leave the others to beat."""
    for name in agents:
        if _redis().set(f"look-pause:{name}", 1, nx=True, px=_pause_ms()):
            _send(name)
        else:
            _redis().rpush(LATER, name)


def _send(name: str) -> None:
    current_app.send_task(f"agent.{name}", kwargs={"looked": True}, expires=60, retry=False)


def _pause_ms() -> int:
    return max(1, round(1000 * gdpconfig.value("agents", "LOOK_PAUSE")))


class LaterLooks:
    """Beat's part: looks that came in the pause of an agent, and when each is sent."""

    def __init__(self) -> None:
        self._due: dict[str, float] = {}

    def wait(self, seconds: float) -> None:
        """Send what is due for so many seconds. Without Redis nothing is: the periods do."""
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            try:
                self._send_due(now)
                self._note_next(min([end, *self._due.values()]) - now)
            except (redis.RedisError, OperationalError, OSError, Error):  # beat's own ticks tell of it
                self._due.clear()
                time.sleep(max(0.0, end - time.monotonic()))

    def _send_due(self, now: float) -> None:
        for name in [name for name, due in self._due.items() if due <= now]:
            del self._due[name]
            _redis().set(f"look-pause:{name}", 1, px=_pause_ms())
            _send(name)

    def _note_next(self, seconds: float) -> None:
        """Wait so long for an agent in its pause. A time of 0 would be for ever."""
        if answer := _redis(5.0).blpop([LATER], timeout=max(0.01, min(seconds, LONGEST_BLOCK_S))):
            name, _, at = cast("bytes", answer[1]).decode().partition(AT)
            wait_s = float(at) - time.time() if at else _redis().pttl(f"look-pause:{name}") / 1000
            due = time.monotonic() + max(0.0, wait_s)
            self._due[name] = min(due, self._due.get(name, due))
