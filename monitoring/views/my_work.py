"""The page of the visitor's own tasks, with its JSON."""

from __future__ import annotations

from dataclasses import asdict

from django.http import HttpRequest, HttpResponseBase, JsonResponse

from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.kernel import clock
from monitoring.queries.my_work import LATELY, MOST, my_work
from monitoring.views.page import page, scope_of, show

READ = "task:read"


@page(READ)
def mine(request: HttpRequest, data: bool = False) -> HttpResponseBase:
    """What needs attention, with the reason; then the live tasks, and those that ended lately."""
    user = authenticate(request).name
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
    return show(request, "me.html", "me", {"work": work, "owner": user, "days": LATELY.days, "most": MOST})
