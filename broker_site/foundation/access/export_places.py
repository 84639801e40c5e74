"""How many exports may be on their way at once, of one user and in all, at all web processes together: places in the cache.

A place that a process took with it into its death is free again when its time is over. Without the cache nothing is limited.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import uuid4

from django.core.cache import cache
from redis.exceptions import RedisError

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.counting import cache_answers, cache_failed
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.problems import Refused

AGAIN_S = 5
"""When somebody who found no place asks again."""
LAST_WORDS_S = 1_800
"""How long after its time an export may still wait for a client that does not read what was made for him."""


@dataclass(frozen=True, slots=True)
class Places:
    """What an export holds until it is over."""

    owner: str
    keys: tuple[str, ...] = ()

    def free(self) -> None:
        """It is over. What ran out meanwhile, and so is somebody else's, is left alone."""
        if not self.keys or not cache_answers():
            return
        try:
            cache.delete_many([key for key, owner in cache.get_many(self.keys).items() if owner == self.owner])
        except (RedisError, OSError) as exc:
            cache_failed(exc)


def take_places(caller: Principal) -> Places:
    """A place among the exports of the user, and one among all.

    Refused(429) where `access.EXPORTS_PER_USER` of the user are on their way, Refused(503) where `access.EXPORTS_AT_ONCE` of all
    are; both with Retry-After.
    """
    values = gdpconfig.component("access")
    owner, seconds = uuid4().hex, int(values["EXPORT_TIME"]) + LAST_WORDS_S
    own = _take(f"export:user:{caller.name}", values["EXPORTS_PER_USER"], owner, seconds)
    if own is None:
        detail = f"{values['EXPORTS_PER_USER']} exports of yours are on their way, the most at once (EXPORTS_PER_USER)"
        raise _refused(429, "Too many exports at once", detail)
    among_all = _take("export:all", values["EXPORTS_AT_ONCE"], owner, seconds)
    if among_all is None:
        Places(owner, own).free()
        detail = f"{values['EXPORTS_AT_ONCE']} exports of all users are on their way, the most at once (EXPORTS_AT_ONCE)"
        raise _refused(503, "Too many exports", detail)
    return Places(owner, own + among_all)


def _refused(status: int, title: str, detail: str) -> Refused:
    return Refused(status, title, f"{detail}; try again in {AGAIN_S} s.", headers={"Retry-After": str(AGAIN_S)})


def _take(name: str, most: int, owner: str, seconds: int) -> tuple[str, ...] | None:
    """The key of a place of this name, none where nothing is limited; None: all are taken."""
    if not most or not cache_answers():
        return ()
    try:
        return next(((key,) for key in (f"{name}:{n}" for n in range(most)) if cache.add(key, owner, timeout=seconds)), None)
    except (RedisError, OSError) as exc:
        cache_failed(exc)
        return ()
