"""The message "jobs are ready": wakes asks of pilots that wait at a queue, in every web process.

It carries which queues and how many jobs. Losing one costs the rest of the wait of an ask, and doubling one an ask in vain.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from functools import cache, partial

import redis
from django.conf import settings
from django.db import transaction
from redis.backoff import NoBackoff
from redis.retry import Retry

from broker_site.foundation.agency.silence import SILENCE

CHANNEL = "jobs-ready"
PATIENCE_S = 0.5
SILENCE_S = 15.0
"""After so long without a message Redis is asked whether it is there."""

logger = logging.getLogger(__name__)


def tell_after_commit(jobs: Mapping[int, int]) -> None:
    """So many jobs wait for pilots at these computing queues (ids) once the current transaction is committed."""
    if jobs:
        transaction.on_commit(partial(tell, dict(jobs)))


def tell(jobs: Mapping[int, int]) -> None:
    """So many jobs wait for pilots at these queues. Never fails: without Redis asks wait until their time is over."""
    if SILENCE.lasts():
        return
    try:
        _redis().publish(CHANNEL, json.dumps(jobs))
        SILENCE.heard()
    except (redis.RedisError, OSError) as error:
        SILENCE.heard(error)
        logger.warning("asks that wait are not told of jobs: %s", error)


def messages() -> Iterator[Mapping[int, int]]:
    """What is told from now on. Raises RedisError or OSError when Redis goes, ValueError at what is no such message."""
    listener = redis.Redis.from_url(settings.REDIS_URL, socket_timeout=SILENCE_S + PATIENCE_S, socket_connect_timeout=PATIENCE_S)
    try:
        with listener.pubsub(ignore_subscribe_messages=True) as channel:
            channel.subscribe(CHANNEL)
            while True:
                message = channel.get_message(timeout=SILENCE_S)
                if message is None:
                    channel.ping()
                elif message["type"] == "message":
                    yield {int(queue): int(n) for queue, n in json.loads(message["data"]).items()}
    finally:
        listener.close()


@cache
def _redis() -> redis.Redis:
    once = Retry(NoBackoff(), 0)
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=PATIENCE_S, socket_connect_timeout=PATIENCE_S, retry=once)
