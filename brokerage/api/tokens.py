"""`/api/v1/tokens/`: one's own tokens, made with limits and an end, shown once, revoked; and the same by the page's forms.

A token that a token makes has no more than that one: its VO, some of its roles, and no later end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, ClassVar

from django.contrib import messages
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_POST
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from broker_site.foundation.access.authentication import authenticate, shows_bearer
from broker_site.foundation.access.credentials import IssuedCredential, issue_user_token, revoke
from broker_site.foundation.access.guards import page_requires
from broker_site.foundation.access.models import Credential, Role, User
from broker_site.foundation.access.password_again import password_again
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.access.rest import principal
from broker_site.foundation.access.roles import ROLES
from broker_site.foundation.access.sessions import password_is_fresh
from broker_site.foundation.kernel import clock
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.rest.openapi import lists, refusals
from broker_site.foundation.rest.paging import NewestFirst, one_of
from workqueues.api.serializers import StrictBody

OWN = "token:own"
MOST_DAYS, USUAL_DAYS = 365, 90
MOST_TOKENS = 50
"""Good tokens of one user."""
DAY_S = 86_400.0


class TokenShown(serializers.ModelSerializer[Credential]):
    """A token as it may be displayed: not its text."""

    roles = serializers.SerializerMethodField(help_text="the only roles that it has; empty: all of its user")

    class Meta:
        model = Credential
        fields = ("id", "prefix", "vo", "roles", "note", "created", "expires_at", "revoked_at", "last_used")
        read_only_fields = fields

    def get_roles(self, row: Credential) -> list[str]:
        return row.claims.get("roles") or []


class TokenMade(TokenShown):
    """A new token with its text, which is shown this once."""

    token = serializers.SerializerMethodField(help_text="to be kept secret; it is not stored and cannot be shown again")

    class Meta:
        model = Credential
        fields = (*TokenShown.Meta.fields, "token")
        read_only_fields = fields

    def get_token(self, row: Credential) -> str:
        return str(self.context["text"])


class TokenAsked(StrictBody):
    """Limits of a new token."""

    vo = serializers.CharField(max_length=64, default="", allow_blank=True, help_text="only in this VO; empty: in all of yours")
    roles = serializers.ListField(
        child=serializers.CharField(max_length=16), default=list, help_text="only these of your roles; empty: all"
    )
    days = serializers.IntegerField(default=USUAL_DAYS, help_text=f"how long it lives, 1 to {MOST_DAYS}")
    note = serializers.CharField(max_length=200, default="", allow_blank=True, help_text="what it is for")


@extend_schema(tags=["tokens"])
@lists(
    "List your tokens",
    "Your own, newest first, without their texts; a token that is limited sees itself alone.",
    TokenShown,
)
class Tokens(mixins.ListModelMixin, viewsets.GenericViewSet[Credential]):
    queryset = Credential.objects.none()
    serializer_class = TokenShown
    pagination_class = NewestFirst
    permissions: ClassVar = {"list": OWN, "create": OWN, "destroy": OWN}

    def get_queryset(self) -> QuerySet[Credential]:
        return tokens_of(principal(self.request))

    @extend_schema(
        summary="Make a token",
        description="It stands on your rights at the time of use, limited as you say. Made with a token, it has no more than "
        "that one. In a session the password must have been typed in the last 15 minutes. Its text is in this answer alone.",
        request=TokenAsked,
        responses={201: TokenMade, **refusals(400, 403, 415, 422)},
    )
    def create(self, request: Request) -> Response:
        """422 with every fault."""
        if not shows_bearer(request._request) and not password_is_fresh(request._request.session):
            raise Refused(403, "Password needed", "Sign in again: tokens are made within 15 minutes of the password.")
        body = TokenAsked(data=request.data)
        body.is_valid(raise_exception=True)
        issued = make(principal(request), body.validated_data)
        row = Credential.objects.get(pk=issued.credential.pk)
        shown = TokenMade(row, context={"text": issued.text}).data
        return Response(shown, status.HTTP_201_CREATED, headers={"Cache-Control": "no-store"})

    @extend_schema(
        summary="Revoke a token",
        description="Nobody gets in with it any more after five seconds. Your own alone, also the one that you show; a token "
        "that is limited revokes itself alone.",
        responses={204: OpenApiResponse(description="It is revoked."), **refusals(404)},
    )
    def destroy(self, request: Request, token_id: int) -> Response:
        """404 for a token that is not the caller's."""
        caller = principal(request)
        revoke([one_of(tokens_of(caller), token_id, "token")], reason="by its user", by=caller)
        return Response(status=status.HTTP_204_NO_CONTENT)


def tokens_of(caller: Principal) -> QuerySet[Credential]:
    """The caller's own; whoever shows a token that is limited has that one alone."""
    own = Credential.objects.filter(kind=Credential.Kind.USER, user=caller.user)
    return own.filter(pk=caller.credential or 0) if caller.limited else own


def make(caller: Principal, said: Mapping[str, Any]) -> IssuedCredential:
    """Make a token of the caller. Refused(422) with every fault by its field."""
    user = caller.user
    assert user is not None  # noqa: S101 - only users have the right
    with transaction.atomic():
        User.objects.select_for_update().get(pk=user.pk)  # of two at once the second counts the first
        if problems := list(_faults(caller, said)):
            raise Refused(422, "The token breaks rules", f"No token was made: {problems[0].message}.", problems)
        return issue_user_token(
            user, vo=said["vo"], roles=said["roles"], seconds=said["days"] * DAY_S, note=said["note"], by=caller
        )


def _faults(caller: Principal, said: Mapping[str, Any]) -> Iterator[Problem]:
    held = dict[str, set[str]]()
    for vo, role in Role.objects.filter(user=caller.user).values_list("vo", "role"):
        held.setdefault(vo, set()).add(role)
    if said["vo"] and said["vo"] not in held:
        yield Problem("vo", "unknown", f"you have no role in a VO {said['vo'][:40]!r}")
    mine = held.get(said["vo"], set()) if said["vo"] else set().union(*held.values())
    for role in said["roles"]:
        if role not in ROLES:
            yield Problem("roles", "choice", f"there is no role {role[:20]!r}; there are: {', '.join(ROLES)}")
        elif role not in mine:
            yield Problem("roles", "held", f"you do not have the role {role}{' in ' + said['vo'] if said['vo'] in held else ''}")
    if not 1 <= said["days"] <= MOST_DAYS:
        yield Problem("days", "range", f"days are 1 to {MOST_DAYS}")
    if "\x00" in said["note"]:
        yield Problem("note", "characters", "a note has no NUL")
    now = clock.now()
    own = Credential.objects.filter(kind=Credential.Kind.USER, user=caller.user)
    good = own.filter(Q(expires_at=None) | Q(expires_at__gt=now), revoked_at=None)
    if good.count() >= MOST_TOKENS:
        yield Problem("", "many", f"you have {MOST_TOKENS} good tokens: revoke some")
    shown = Credential.objects.filter(pk=caller.credential).first() if caller.credential else None
    if shown is not None:
        yield from _beyond(shown, said)


def _beyond(shown: Credential, said: Mapping[str, Any]) -> Iterator[Problem]:
    """What a token may not give to one that it makes."""
    if shown.vo and said["vo"] != shown.vo:
        yield Problem("vo", "limit", f"the token that you show is for {shown.vo} only")
    limit = shown.claims.get("roles")
    if limit and (not said["roles"] or not set(said["roles"]) <= set(limit)):
        yield Problem("roles", "limit", f"the token that you show has only: {', '.join(limit)}")
    ends = clock.now() + timedelta(days=min(max(said["days"], 0), MOST_DAYS))
    if shown.expires_at is not None and ends > shown.expires_at:
        yield Problem("days", "limit", f"it may not end after the token that you show: {shown.expires_at:%Y-%m-%d %H:%M} UTC")


@page_requires(OWN)
@require_POST
def make_form(request: HttpRequest) -> HttpResponseBase:
    """Make a token and show it in this answer alone: it must not pass through a cookie or an address."""
    sent = request.POST
    typed = {"vo": sent.get("vo", ""), "roles": sent.getlist("roles"), "days": sent.get("days", ""), "note": sent.get("note", "")}
    back = f"{reverse('page-tokens')}?{urlencode(typed, doseq=True)}"
    asked: Any = password_again(request)
    if asked.refused is not None:
        return asked.refused
    if not asked.fresh:
        messages.error(request, f"No token was made. {asked.fault or 'Give your password too.'}")
        return HttpResponseRedirect(back)
    days = sent.get("days", "").strip()
    said = {**typed, "days": int(days) if days.isascii() and days.isdigit() and len(days) < 6 else 0, "note": typed["note"][:200]}
    try:
        issued = make(authenticate(request), said)
    except Refused as refused:
        for problem in refused.errors:
            if isinstance(problem, Problem):
                messages.error(request, f"{problem.field}: {problem.message}")
        return HttpResponseRedirect(back)
    context = {"secret": issued.text, "row": issued.credential, "section": "me"}
    answer = render(request, "monitoring/token_made.html", context)
    answer.headers["Cache-Control"] = "no-store"
    return answer


@page_requires(OWN)
@require_POST
def revoke_form(request: HttpRequest, token_id: int) -> HttpResponseBase:
    """Revoke one and go back to the list."""
    caller = authenticate(request)
    row = one_of(tokens_of(caller), token_id, "token")
    revoke([row], reason="by its user", by=caller)
    messages.success(request, f"{row.prefix} is revoked.")
    return HttpResponseRedirect(reverse("page-tokens"))
