"""How many requests a minute a token of a user may make, and all tokens of a user together, of all verbs and pages. Without the
cache nothing is limited.

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
TOKENS = "/api/v1/tokens/"
"""Where a token is revoked, below its number."""


def refuse_too_many(caller: Principal, method: str, path: str) -> None:
    """Count a request that shows a user's token. Refused(429) with Retry-After beyond `access.TOKEN_REQUESTS_PER_MINUTE` of the
    token or `access.USER_REQUESTS_PER_MINUTE` of its user; 0 is no limit. A token may always revoke itself.

    Windows are fixed: the count starts anew each minute.
    """
    if caller.kind != "user" or caller.credential is None or (method, path) == ("DELETE", f"{TOKENS}{caller.credential}/"):
        return
    values = gdpconfig.component("access")
    most, most_of_user = values["TOKEN_REQUESTS_PER_MINUTE"], values["USER_REQUESTS_PER_MINUTE"]
    now = time.time()
    window, wait = int(now // WINDOW_S), max(1, math.ceil(WINDOW_S - now % WINDOW_S))
    if most and count(f"token:{caller.credential}:{window}", WINDOW_S) > most:
        raise _too_many(f"This token has made its {most} requests of this minute (TOKEN_REQUESTS_PER_MINUTE)", wait)
    if most_of_user and count(f"tokens-of:{caller.name}:{window}", WINDOW_S) > most_of_user:
        told = f"Your tokens have made their {most_of_user} requests of this minute (USER_REQUESTS_PER_MINUTE)"
        raise _too_many(told, wait)


def _too_many(told: str, wait: int) -> Refused:
    return Refused(429, "Too many requests", f"{told}; try again in {wait} s.", headers={"Retry-After": str(wait)})
