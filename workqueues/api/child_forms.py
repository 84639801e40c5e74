"""The forms of the page of the tree: child brokers are let in, drained and revoked there as by REST."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST

from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.access.guards import page_requires
from broker_site.foundation.access.password_again import password_again
from broker_site.foundation.access.problems import Refused
from workqueues.api.child_brokers import check_right, child_named
from workqueues.ledger.child_brokers import (
    BadChild,
    NewToken,
    add_child,
    drain_child,
    renew_child,
    revoke_child,
    undrain_child,
)
from workqueues.queries.child_brokers import EDIT

HOUR_S = 3600.0
UNCHANGED = "Nothing was changed."


@page_requires(EDIT)
@require_POST
def add_form(request: HttpRequest) -> HttpResponseBase:
    """Let a broker in and show its token in this answer alone."""
    name, team, vo = (request.POST.get(field, "").strip() for field in ("name", "team", "vo"))

    def make() -> NewToken:
        check_right(authenticate(request), vo)
        return add_child(name, team, vo, authenticate(request))

    return _token(request, make, reverse("page-tree"))


@page_requires(EDIT)
@require_POST
def renew_form(request: HttpRequest, name: str) -> HttpResponseBase:
    """Make a new token for a child and show it in this answer alone."""
    child = child_named(name)

    def make() -> NewToken:
        check_right(authenticate(request), child.vo)
        return renew_child(child, authenticate(request))

    return _token(request, make, reverse("page-child", args=[name]))


@page_requires(EDIT)
@require_POST
def drain_form(request: HttpRequest, name: str) -> HttpResponseBase:
    """Give it nothing new; what it has goes on for the hours of the form."""
    return _done(request, name, lambda child, by: drain_child(child, _grace_s(request), by), "drains: it gets nothing new")


@page_requires(EDIT)
@require_POST
def undrain_form(request: HttpRequest, name: str) -> HttpResponseBase:
    """Let it pull again."""
    return _done(request, name, undrain_child, "may pull again")


@page_requires(EDIT)
@require_POST
def revoke_form(request: HttpRequest, name: str) -> HttpResponseBase:
    """Refuse its messages from now on."""
    reason = request.POST.get("reason", "").strip()[:200]
    return _done(request, name, lambda child, by: revoke_child(child, by, reason), "is revoked: its messages are refused")


def _done(request: HttpRequest, name: str, act: Callable[[Any, Any], object], what: str) -> HttpResponseBase:
    """Do it and go back to the child's page; what is wrong is told there."""
    child, caller = child_named(name), authenticate(request)
    try:
        check_right(caller, child.vo)
        act(child, caller)
        messages.success(request, f"{child.name} {what}.")
    except Refused as refused:
        messages.error(request, f"{UNCHANGED} {refused.detail}")
    except BadChild as bad:
        messages.error(request, f"{UNCHANGED} {bad}")
    return HttpResponseRedirect(reverse("page-child", args=[name]))


def _token(request: HttpRequest, make: Callable[[], NewToken], back: str) -> HttpResponseBase:
    """Make a token after the password, and show it: it must not pass through a cookie or an address."""
    asked: Any = password_again(request)
    if asked.refused is not None:
        return asked.refused
    if not asked.fresh:
        messages.error(request, f"{UNCHANGED} {asked.fault or 'Give your password too.'}")
        return HttpResponseRedirect(back)
    try:
        made = make()
    except Refused as refused:
        messages.error(request, f"{UNCHANGED} {refused.detail}")
        return HttpResponseRedirect(back)
    except BadChild as bad:
        messages.error(request, f"{UNCHANGED} {bad}")
        return HttpResponseRedirect(back)
    answer = render(request, "monitoring/child_token.html", {"child": made.child, "secret": made.secret, "section": "tree"})
    answer.headers["Cache-Control"] = "no-store"
    return answer


def _grace_s(request: HttpRequest) -> float:
    """Hours of the form in seconds; what is no number is out of range."""
    try:
        return float(request.POST.get("hours", "")) * HOUR_S
    except ValueError:
        return float("nan")
