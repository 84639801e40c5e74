"""The pages of the REST API: what programs may ask, as people read it; a page for all operations and one for each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache

from django.http import Http404, HttpRequest, HttpResponseBase
from drf_spectacular.generators import SchemaGenerator

from monitoring.api_reference import Operation, subjects
from monitoring.markdown_blocks import blocks
from monitoring.views.page import page, show

READ = "schema:read"


@page(READ)
def api(request: HttpRequest) -> HttpResponseBase:
    """Every operation, by subject."""
    about, by_subject = _reference()
    return show(request, "api.html", "api", {"about": blocks(about), "subjects": by_subject})


@page(READ)
def api_operation(request: HttpRequest, operation_id: str) -> HttpResponseBase:
    """One operation with its parameters, its body and its answers; 404 for one that there is not."""
    operation = next((each for of in _reference()[1].values() for each in of if each.id == operation_id), None)
    if operation is None:
        raise Http404(f"The API has no operation “{operation_id[:60]}”.")
    example = "" if operation.example is None else json.dumps(operation.example, indent=1)
    context = {"operation": operation, "about": blocks(operation.about), "example": example}
    return show(request, "api_operation.html", "api", context)


@cache
def _reference() -> tuple[str, Mapping[str, Sequence[Operation]]]:
    """What stands at the beginning, and the operations by subject. Made once in a process: the API does not change meanwhile."""
    document = SchemaGenerator().get_schema(request=None, public=True)
    return document["info"]["description"], subjects(document)
