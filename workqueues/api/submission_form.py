"""The page on which a task is submitted: an example to begin with, the same checks as by REST, faults beside the text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import uuid4

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.access.guards import page_requires
from broker_site.foundation.access.jsonbody import decode
from broker_site.foundation.access.permissions import visible_vos
from broker_site.foundation.access.problems import Refused
from workqueues.api.submission import submit_task
from workqueues.rules.submission_examples import EXAMPLES

RIGHT = "task:submit"
LONGEST = 1_000_000
"""Characters of a document that the form takes; REST takes more."""


class Fault(NamedTuple):
    """What is wrong with a field, and the line of the text where that first stands; None where it does not."""

    field: str
    message: str
    line: int | None


@page_requires(RIGHT)
@require_http_methods(["GET", "HEAD", "POST"])
def submission_page(request: HttpRequest) -> HttpResponseBase:
    """Show the form; submit what was sent, and go to the task."""
    if request.method != "POST":
        return _form(request, _example(request, request.GET.get("example", "")))
    text, key = request.POST.get("document", ""), request.POST.get("key", "")
    try:
        if len(text) > LONGEST:
            raise Refused(422, "Too long", f"The form takes {LONGEST:,} characters; REST takes more.")
        made = submit_task(decode(text.encode()), authenticate(request), key)
    except Refused as refused:
        return _form(request, text, refused)
    messages.success(request, made.told or ("Submitted." if made.new else "It was submitted before; this is that task."))
    return HttpResponseRedirect(reverse("page-task", args=[made.task.id]))


def _form(request: HttpRequest, text: str, refused: Refused | None = None) -> HttpResponse:
    context = {
        "section": "tasks",
        "document": text,
        "examples": EXAMPLES,
        "refused": refused,
        "faults": faults(text, refused) if refused else [],
        # Whoever sends the same form twice submits one task.
        "key": uuid4(),
        "longest": LONGEST,
    }
    if refused is None:
        return render(request, "monitoring/task_submit.html", context)
    return render(request, "monitoring/task_submit.html", context, status=refused.status)


def faults(text: str, refused: Refused) -> list[Fault]:
    """Each fault of a refusal with the line where the last name of its field first stands as a key."""
    lines = text.splitlines()
    return [Fault(told["field"], told["message"], _line(lines, told["field"])) for told in refused.problem().get("errors", ())]


def _line(lines: Sequence[str], field: str) -> int | None:
    names = [part.partition("[")[0] for part in field.split(".") if part]
    for name in reversed(names):
        for number, line in enumerate(lines, 1):
            if f'"{name}"' in line:
                return number
    return None


def _example(request: HttpRequest, name: str) -> str:
    """The document of an example, for a VO in which the visitor may submit."""
    example = EXAMPLES.get(name) or next(iter(EXAMPLES.values()))
    vos = sorted(visible_vos(authenticate(request), RIGHT).names)
    document: dict[str, Any] = {"taskName": example.parameters["taskName"], "vo": vos[0] if vos else "", **example.parameters}
    return json.dumps(document, indent=1)
