"""How many requests a token of a user may make a minute, of all verbs and pages together. Without the cache nothing is limited.

Not here: limits of pilots and of submissions, which have rules of their own (`pace`, `throttles`).
"""

from __future__ import annotations

import math
import time

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.counting import count
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.problems import Refused

WINDOW_S = 60


def refuse_too_many(caller: Principal) -> None:
    """Count a request of a user's token. Refused(429) with Retry-After beyond `access.TOKEN_REQUESTS_PER_MINUTE`; 0 is no limit.

    Windows are fixed: the count starts anew each minute.
    """
    if caller.kind != "user" or caller.credential is None:
        return
    most: int = gdpconfig.value("access", "TOKEN_REQUESTS_PER_MINUTE")
    now = time.time()
    if most and count(f"token:{caller.credential}:{int(now // WINDOW_S)}", WINDOW_S) > most:
        wait = max(1, math.ceil(WINDOW_S - now % WINDOW_S))
        detail = f"This token has made its {most} requests of this minute (TOKEN_REQUESTS_PER_MINUTE); try again in {wait} s."
        raise Refused(429, "Too many requests", detail, headers={"Retry-After": str(wait)})
