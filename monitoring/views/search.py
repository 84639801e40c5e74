"""One search for all kinds of things: a number or a part of a name. A number or name that is of one thing alone leads there."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect, JsonResponse

from monitoring.queries.search import SHORTEST, look_for
from monitoring.views.page import page, scope_of, show

LONGEST = 256


@page("task:read", ("q",))
def search(request: HttpRequest, data: bool = False) -> HttpResponseBase:
    """What the text finds, by kind."""
    scope, text = scope_of(request), request.GET.get("q", "").strip()[:LONGEST]
    found = look_for(text, scope)
    fault = f"Type {SHORTEST} letters at least, or a number." if len(text) in range(1, SHORTEST) and not found else ""
    if data:
        told = [
            {"kind": f.kind, "name": one.name, "status": one.state, "url": request.build_absolute_uri(one.address)}
            for f in found
            for one in f.found
        ]
        return JsonResponse({"q": text, "rows": told, "whole": not any(f.partly for f in found)})
    finds = [one for each in found for one in each.found]
    if len(finds) == 1 and not any(each.partly for each in found):
        return HttpResponseRedirect(finds[0].address)
    context = {"text": text, "found": [each for each in found if each.found], "fault": fault,
               "partly": any(each.partly for each in found)}  # fmt: skip
    return show(request, "search.html", "search", context, knows=("q",))
