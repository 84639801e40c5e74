"""The page of the visitor's own tasks, with its JSON."""

from __future__ import annotations

from dataclasses import asdict

from django.http import HttpRequest, HttpResponseBase, JsonResponse

from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.access.permissions import may
from broker_site.foundation.kernel import clock
from monitoring.queries.my_work import LATELY, MOST, my_work
from monitoring.views.page import page, scope_of, show

READ = "task:read"


@page(READ, ())
def mine(request: HttpRequest, data: bool = False) -> HttpResponseBase:
    """What needs attention, with the reason; then the live tasks, and those that ended lately."""
    caller = authenticate(request)
    user = caller.name
    work = my_work(user, scope_of(request, READ), clock.now())
    if data:
        needing = [{**asdict(task.row), "attention": task.attention} for task in work.needing]
        return JsonResponse(
            {
                "user": user,
                "needs_attention": needing,
                "live": [asdict(row) for row in work.live],
                "ended": [asdict(row) for row in work.ended],
                "more": work.more,
            }
        )
    told = {"work": work, "owner": user, "days": LATELY.days, "most": MOST, "may_submit": may(caller, "task:submit")}
    return show(request, "me.html", "me", told)
