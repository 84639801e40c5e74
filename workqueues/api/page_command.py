"""The buttons of the pages: a form posts a command on a task with session and CSRF token, and comes back with a message."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.access.guards import page_requires
from broker_site.foundation.access.permissions import visible_vos
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.rest.paging import LARGEST_ID
from workqueues.ledger.orders import COMMANDS, give
from workqueues.models import Task

DONE = {"kill": "is being killed", "finish": "is being finished", "retry": "is being retried"}


@page_requires("task:command")
@require_POST
def task_command(request: HttpRequest, task_id: int, command: str) -> HttpResponse:
    """Give the command and go back to `next`, or to the task's page. `hard` in the form stops running jobs of a finish too."""
    principal = authenticate(request)
    task = Task.objects.filter(visible_vos(principal).q("vo"), id=task_id).first() if task_id <= LARGEST_ID else None
    if task is None or command not in COMMANDS:
        raise Http404("There is no such task or command.")
    try:
        give(principal, task, command, request.POST.get("comment", "")[:200], soft=not request.POST.get("hard"))
    except Refused as refused:
        if refused.status == 403:
            raise PermissionDenied(refused.detail) from None
        messages.error(request, refused.detail)
    else:
        messages.success(request, f"Task {task_id} {DONE[command]}.")
    return HttpResponseRedirect(_back(request, task_id))


def _back(request: HttpRequest, task_id: int) -> str:
    """The page of ours that the form names, else the task's."""
    asked = request.POST.get("next", "")
    if url_has_allowed_host_and_scheme(asked, allowed_hosts={request.get_host()}, require_https=request.is_secure()):
        return asked
    return f"/tasks/{task_id}/"
