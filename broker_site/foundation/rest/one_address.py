"""One address for a plain view that takes POST and a view of REST framework that answers everything else."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponseBase

from broker_site.foundation.access.routes import MARKS, permission_of, permissions_of
from broker_site.foundation.rest.plain_operations import OPERATION

View = Callable[..., HttpResponseBase]


def one_address(post: View, rest: View) -> View:
    """Both views as one, with the permissions of each, and both in the OpenAPI document."""

    @wraps(post)
    def view(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.method == "POST":
            return post(request, *args, **kwargs)
        answer = rest(request, *args, **kwargs)
        if "Allow" in answer:
            answer["Allow"] += ", POST"
        return answer

    told = {"cls": rest.cls, "actions": rest.actions, "initkwargs": rest.initkwargs}  # type: ignore[attr-defined]
    view.__dict__.update(told | {"csrf_exempt": True, OPERATION: getattr(post, OPERATION)})
    view.__dict__[MARKS] = {**permissions_of(rest), "POST": permission_of(post, "POST")}
    return view
