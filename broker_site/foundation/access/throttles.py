"""Limits of requests per credential, counted in the cache (Redis). Without the cache nothing is limited: work goes on."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rest_framework.request import Request
from rest_framework.settings import api_settings
from rest_framework.throttling import BaseThrottle, SimpleRateThrottle

from broker_site.foundation.access.counting import count
from broker_site.foundation.access.rest import principal

if TYPE_CHECKING:
    from rest_framework.views import APIView


class SubmitThrottle(BaseThrottle):
    """At most DEFAULT_THROTTLE_RATES["submit"] unsafe requests per credential; more get 429 with Retry-After.

    Windows are fixed: the count starts anew each minute (or hour), for all web processes together.
    """

    scope = "submit"
    default_rate = "600/min"

    def __init__(self) -> None:
        rate = (api_settings.DEFAULT_THROTTLE_RATES or {}).get(self.scope) or self.default_rate
        self.most, self.seconds = _parsed(str(rate))

    def allow_request(self, request: Request, view: APIView) -> bool:
        if request.method in ("GET", "HEAD", "OPTIONS"):
            return True
        window = int(time.time() // self.seconds)
        return count(f"throttle:{self.scope}:{principal(request).key}:{window}", self.seconds) <= self.most

    def wait(self) -> float:
        """Seconds until the window ends."""
        return self.seconds - time.time() % self.seconds


class CheckThrottle(SubmitThrottle):
    """The same for trials of submissions, which leave nothing: they are counted by themselves."""

    scope = "check"


def _parsed(rate: str) -> tuple[int, int]:
    number, seconds = SimpleRateThrottle.parse_rate(SimpleRateThrottle.__new__(SimpleRateThrottle), rate)
    if not number or not seconds:
        raise ValueError(f"rate {rate!r}: expected number/unit")
    return number, seconds
