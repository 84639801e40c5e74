"""Counts in the cache (Redis), for all web processes together; while it cannot be reached nobody waits for it."""

from __future__ import annotations

import logging
import time

from django.core.cache import cache
from redis.exceptions import RedisError

_BLIND_S = 5.0
_blind_until = 0.0

logger = logging.getLogger(__name__)


def cache_answers() -> bool:
    """Whether to ask the cache: not for a while after it could not be reached."""
    return time.monotonic() >= _blind_until


def cache_failed(exc: Exception) -> None:
    """The cache could not be reached."""
    global _blind_until
    _blind_until = time.monotonic() + _BLIND_S
    logger.warning("the cache does not answer, requests are counted by each process or not at all: %s", exc)


def count(key: str, seconds: int) -> int:
    """One more for this key; 0 while the cache cannot be reached, without asking it again for a while."""
    if not cache_answers():
        return 0
    try:
        try:
            return int(cache.incr(key))
        except ValueError:  # nobody has counted it yet
            cache.add(key, 0, timeout=seconds + 1)
            return int(cache.incr(key))
    except ValueError:  # the key ran out between the two calls
        return 0
    except (RedisError, OSError) as exc:
        cache_failed(exc)
        return 0
