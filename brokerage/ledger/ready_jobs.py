"""The message "jobs are ready": wakes asks of pilots that wait at a queue, in every web process.

It carries which queues and how many jobs. Losing one costs the rest of the wait of an ask, and doubling one an ask in vain.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache, partial

import redis
from django.conf import settings
from django.db import connection, transaction
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


_PLACES = """
SELECT t.id, p.computing_queue_id FROM brokerage_taskqueue t
    JOIN brokerage_requirementplace p ON p.requirement_set_id = t.requirement_set_id
WHERE t.id = ANY (%s) AND t.computing_queue_id IS NULL
"""


def tell_of_jobs(jobs: Mapping[tuple[int | None, int], int]) -> None:
    """The same of jobs by (computing queue, task queue): without the first they are open, to all queues of the second."""
    queues: Counter[int] = Counter()
    open_jobs = {task_queue: n for (queue, task_queue), n in jobs.items() if queue is None}
    for (queue, _), n in jobs.items():
        if queue is not None:
            queues[queue] += n
    if open_jobs:
        with connection.cursor() as cursor:
            cursor.execute(_PLACES, [list(open_jobs)])
            for task_queue, queue in cursor.fetchall():
                queues[queue] += open_jobs[task_queue]
    tell_after_commit(queues)


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
