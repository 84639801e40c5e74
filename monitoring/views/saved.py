"""The saved views that a list's page offers."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.access.permissions import may, visible_vos
from brokerage.queries.saved_views import visible_views
from monitoring.queries.database import alias

MOST = 50


def saved_views(request: HttpRequest, list_name: str) -> dict[str, Any]:
    """What the part `views` of a page needs; one statement, none for a panel that is fetched again."""
    if request.headers.get("HX-Request") == "true":
        return {"views": None}
    caller = authenticate(request)
    seen = visible_views(caller.name, visible_vos(caller, "view:read"), alias()).filter(list_name=list_name)
    views = list(seen.order_by("name", "id")[:MOST])
    return {
        "views": views,
        "own_views": [view for view in views if view.owner == caller.name],
        "own_vos": sorted(vo for vo in caller.roles if may(caller, "view:save", vo)),
        "listing_name": list_name,
    }
