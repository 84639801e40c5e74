"""An ask in vain that may wait: what the view says of it to the web server, which holds it without a thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from django.http import HttpRequest, HttpResponse

ATTRIBUTE = "waiting_ask"
AGAIN = "gridbroker.asked_again"
"""In the environ of a request that was held and is asked anew: no header can bring it."""


class WaitingAsk(NamedTuple):
    """The computing queue for whose jobs it waits, how long, s, and the credential that asks.

    `gone`: to be called when the pilot has hung up.
    """

    queue_id: int
    seconds: float
    credential: int
    gone: Callable[[], None]


def may_wait(response: HttpResponse, ask: WaitingAsk) -> HttpResponse:
    """The answer to an ask in vain, which is given only once nothing came in time."""
    setattr(response, ATTRIBUTE, ask)
    return response


def waiting_ask(response: object) -> WaitingAsk | None:
    """Whether, and for what, an answer may be held back."""
    ask = getattr(response, ATTRIBUTE, None)
    return ask if isinstance(ask, WaitingAsk) else None


def asked_again(request: HttpRequest) -> bool:
    """Whether the request was held and counts as asked before."""
    return bool(request.META.get(AGAIN))
