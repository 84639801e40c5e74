"""The pages that show two tasks, or two queues, beside each other, with their JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.http import HttpRequest, HttpResponseBase, JsonResponse

from broker_site.foundation.access.problems import problem_response
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.rest.keyset import LARGEST_ID
from monitoring.queries.compare import Part, compared_queues, compared_tasks
from monitoring.tables.selection import not_known
from monitoring.views.page import page, scope_of, show

KNOWN = ("a", "b")


@page("task:read")
def tasks(request: HttpRequest, data: bool = False) -> HttpResponseBase:
    """Outcomes and parameters of the tasks `a` and `b`."""
    wrong = [
        Problem(name, "form", f"{text[:40]!r} is no number of a task")
        for name in KNOWN
        if (text := request.GET.get(name, "").strip())
        and not (text.isascii() and text.isdigit() and int(text[:20]) <= LARGEST_ID)
    ]
    scope = scope_of(request)
    return _answer(request, "task", data, wrong, lambda a, b: compared_tasks(int(a), int(b), scope))


@page("grid:read")
def queues(request: HttpRequest, data: bool = False) -> HttpResponseBase:
    """The configuration of the queues `a` and `b`."""
    return _answer(request, "queue", data, [], compared_queues)


def _answer(
    request: HttpRequest,
    noun: str,
    data: bool,
    wrong: list[Problem],
    compare: Callable[[str, str], Sequence[Part] | None],
) -> HttpResponseBase:
    """400 for what is no name, 404 where one of the two is not there; without both, the form."""
    a, b = (request.GET.get(name, "").strip() for name in KNOWN)
    if data:
        wrong += [Problem(name, "required", f"which {noun}") for name, value in (("a", a), ("b", b)) if not value]
        wrong += not_known(request.GET, KNOWN)
    parts = compare(a, b) if a and b and not wrong else ()
    missing = parts is None
    status = 400 if wrong else 404 if missing else 200
    told = f"There is no {noun} {a[:60]} or no {noun} {b[:60]}, or you cannot look into its VO." if missing else ""
    if data and status != 200:
        title = "Not valid" if wrong else "Not found"
        return problem_response(status, title, told or "Each fault is listed in errors.", wrong)
    if data:
        return JsonResponse({"a": a, "b": b, "parts": [_document(part) for part in parts or ()]})
    context = {"noun": noun, "many": f"{noun}s", "a": a, "b": b, "parts": parts or (), "told": told, "wrong": wrong}
    return show(request, "compare.html", f"{noun}s", context, status=status, knows=KNOWN)


def _document(part: Part) -> dict[str, Any]:
    lines = [{"name": line.name, "a": line.a, "b": line.b, "same": line.same} for line in part.lines]
    return {"title": part.title, "lines": lines}
