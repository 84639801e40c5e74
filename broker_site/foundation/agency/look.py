"""The message "look": wakes an agent sooner than its period.

It carries nothing, so losing one costs a period and doubling one nothing.
"""

from __future__ import annotations

import functools
import logging

import redis
from celery import current_app
from django.conf import settings
from django.db import transaction
from kombu.exceptions import OperationalError
from redis.backoff import NoBackoff
from redis.retry import Retry

logger = logging.getLogger(__name__)

PENDING_MS = 2000
"""How long an unanswered look stands for later ones; the agent's next run ends it sooner."""


@functools.cache
def _redis() -> redis.Redis:
    once = Retry(NoBackoff(), 0)
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=0.5, socket_connect_timeout=0.5, retry=once)


def look(*agents: str) -> None:
    """Tell the agents to look now. Never fails: without Redis their periods do."""
    try:
        messages = _redis().pipeline(transaction=False)  # one round trip, since every end of a job comes through here
        for name in agents:
            messages.set(f"look:{name}", 1, nx=True, px=PENDING_MS)
        for name, unanswered in zip(agents, messages.execute(), strict=True):
            if unanswered:
                current_app.send_task(f"agent.{name}", kwargs={"looked": True}, expires=60, retry=False)
    except (redis.RedisError, OperationalError, OSError) as error:
        logger.warning("no look message to %s: %s", ", ".join(agents), error)


def look_after_commit(*agents: str) -> None:
    """Tell the agents to look once the current transaction is committed."""
    transaction.on_commit(lambda: look(*agents))


def looking(name: str) -> None:
    """The agent begins to look: a look sent from here on is a new message, since this run may not see what it is about."""
    try:
        _redis().delete(f"look:{name}")
    except (redis.RedisError, OSError) as error:
        logger.warning("no look marker for %s: %s", name, error)
