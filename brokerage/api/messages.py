"""How the verbs of pilots read what is sent, and the tokens that they give."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from django.http import HttpRequest, HttpResponse

from broker_site.foundation.access.jsonbody import read_object
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.access.tokens import mint_job_token
from broker_site.foundation.outside_data import OutsideDataError
from brokerage.ledger.heartbeats import LeaseState
from brokerage.ledger.lease import ROTATE_S
from brokerage.queries.job_document import LeasedJob
from brokerage.rules.dispatch.pilot_messages import read_message

T = TypeVar("T")
BROKEN_RULES = "The message breaks rules"
MARGIN_S = 60.0 + ROTATE_S
"""How much longer than its lease a job token lives: a late report is refused by its epoch, with a reason that says so."""


def message(request: HttpRequest, kind: type[T]) -> T:
    """The body of a request. Refused with all that is wrong."""
    return in_words(partial(read_message, kind), read_object(request))


def message_of(request: HttpRequest, read: Callable[[dict[str, Any]], T]) -> T:
    """The same, as `read` reads it."""
    return in_words(read, read_object(request))


def json_answer(told: Mapping[str, Any], status: int = 200) -> HttpResponse:
    """As Django's JsonResponse, whose search for a character set costs more than all the rest of it."""
    return HttpResponse(json.dumps(told).encode(), status=status, content_type="application/json")


def in_words(read: Callable[[dict[str, Any]], T], body: dict[str, Any]) -> T:
    """The body as `read` reads it. Refused with all that is wrong."""
    try:
        return read(body)
    except OutsideDataError as bad:
        raise Refused(422, BROKEN_RULES, str(bad), bad.problems) from None


def job_token(job_id: int, epoch: int, lease: LeasedJob | LeaseState, pilot: int) -> str:
    """The token for a lease. `pilot`: the id of the pilot's credential."""
    return mint_job_token(job_id, epoch, lease.lease_s + MARGIN_S, pilot=pilot, issued=lease.issued)
