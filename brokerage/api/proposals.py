"""`/api/v1/config/proposals/`: changes that one person proposes and another approves; and the same by the pages' forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from django.contrib import messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from broker_site.foundation.access.auditing import audit
from broker_site.foundation.access.authentication import authenticate, shows_bearer
from broker_site.foundation.access.guards import page_requires
from broker_site.foundation.access.password_again import password_again
from broker_site.foundation.access.permissions import visible_vos
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.access.rest import principal
from broker_site.foundation.access.sessions import password_is_fresh
from broker_site.foundation.gdpconfig.changesets import MAX_WHY, Draft, Place
from broker_site.foundation.gdpconfig.keys import BadConfig
from broker_site.foundation.gdpconfig.models import ChangeSet, Proposal
from broker_site.foundation.gdpconfig.proposals import approve, decline, draft_of, propose
from broker_site.foundation.gdpconfig.visible_lines import hidden, seen_proposals, sees
from broker_site.foundation.rest.openapi import lists, refusals
from broker_site.foundation.rest.paging import LARGEST_ID, NewestFirst
from brokerage.api.configuration import BODY_LIMIT, EDIT, READ, refuse_lines, refuse_unseen, refused
from brokerage.api.configuration_bodies import ChangesAsked, ConfigurationChangesAsked, asked_lines
from brokerage.api.filtering import ProposalFilter
from workqueues.api.serializers import StrictBody

STALE = "Sign in again: configuration is changed within 15 minutes of the password."


class ProposalShown(serializers.ModelSerializer[Proposal]):
    """A proposed change and what became of it."""

    lines = serializers.SerializerMethodField(
        help_text="kind, key, app, component, name, vo, before, after, until of each line that you may see"
    )
    n_hidden = serializers.SerializerMethodField(help_text="lines for VOs that you may not look into, which are left out")
    outcome = serializers.CharField(help_text="empty while it waits; approved, refused, withdrawn or expired")
    revision = serializers.IntegerField(source="change_set_id", allow_null=True, help_text="the change set that it became")

    class Meta:
        model = Proposal
        fields = (
            "id", "at", "who", "why", "ticket", "source", "expires_at", "outcome", "decided_by", "decided_why", "decided_at",
            "revision", "lines", "n_hidden",
        )  # fmt: skip
        read_only_fields = fields

    @extend_schema_field(serializers.ListField(child=serializers.DictField()))
    def get_lines(self, proposal: Proposal) -> list[dict[str, Any]]:
        """Each with the key as it is written."""
        return [{**line, "key": Place(*(line[name] for name in Place._fields)).key} for line in self._seen(proposal)]

    def get_n_hidden(self, proposal: Proposal) -> int:
        return len(proposal.lines) - len(self._seen(proposal))

    def _seen(self, proposal: Proposal) -> list[dict[str, Any]]:
        scope = visible_vos(self.context["caller"], READ)
        return [line for line in proposal.lines if sees(scope, line["kind"], line["vo"])]


class DeclineAsked(StrictBody):
    """Why not."""

    reason = serializers.CharField(max_length=MAX_WHY, help_text="kept with the proposal")


@extend_schema(tags=["configuration"])
@lists("List proposals", "Changes that were proposed for somebody else to approve; newest first.", ProposalShown)
class Proposals(mixins.ListModelMixin, viewsets.GenericViewSet[Proposal]):
    queryset = Proposal.objects.all()
    serializer_class = ProposalShown
    pagination_class = NewestFirst
    filterset_class = ProposalFilter
    permissions: ClassVar = {"list": READ, "retrieve": READ, "create": EDIT, "approve": EDIT, "decline": EDIT}
    body_limit = BODY_LIMIT

    def get_queryset(self) -> QuerySet[Proposal]:
        return seen_proposals(visible_vos(principal(self.request), READ))

    def get_serializer_context(self) -> dict[str, Any]:
        """Who asks: lines are told by what he may see."""
        return {**super().get_serializer_context(), "caller": principal(self.request)}

    @extend_schema(summary="Read a proposal", responses={200: ProposalShown, **refusals(404)})
    def retrieve(self, request: Request, proposal_id: int) -> Response:
        """One proposal."""
        return Response(self.get_serializer(proposal_of(principal(request), proposal_id)).data)

    @extend_schema(
        summary="Propose a change",
        description="Checks the lines as a change does and keeps them for somebody else to approve. Nothing is changed yet.",
        request=ConfigurationChangesAsked,
        responses={201: ProposalShown, **refusals(400, 403, 409, 413, 415, 422)},
    )
    def create(self, request: Request) -> Response:
        """422 with every fault by its line, also where nothing would be changed."""
        body = ChangesAsked(data=request.data)
        body.is_valid(raise_exception=True)
        said, caller = body.validated_data, principal(request)
        draft = Draft(asked_lines(said["lines"]), caller.name, said["reason"], "rest", ticket=said["ticket"], base=said["base"])
        try:
            _fresh(request)
            made = propose_as(caller, draft)
        except BadConfig as bad:
            raise refused(bad) from None
        if made is None:
            raise Refused(422, "Nothing to propose", "All of it holds already.")
        return Response(self.get_serializer(made).data, status.HTTP_201_CREATED)

    @extend_schema(
        summary="Approve a proposal",
        description="Applies it as it was proposed. Not by its author; 409 where what it rests on was changed since.",
        request=None,
        responses={200: ProposalShown, **refusals(403, 404, 409, 422)},
    )
    def approve(self, request: Request, proposal_id: int) -> Response:
        """404, then 422 or 409."""
        caller = principal(request)
        proposal_of(caller, proposal_id)
        try:
            _fresh(request)
            approve_as(caller, proposal_id)
        except BadConfig as bad:
            raise refused(bad) from None
        return Response(self.get_serializer(proposal_of(caller, proposal_id)).data)

    @extend_schema(
        summary="Refuse or withdraw a proposal",
        description="Its author withdraws it, anybody else who might approve it refuses it.",
        request=DeclineAsked,
        responses={200: ProposalShown, **refusals(400, 403, 404, 415, 422)},
    )
    def decline(self, request: Request, proposal_id: int) -> Response:
        """404, then 422."""
        caller = principal(request)
        proposal_of(caller, proposal_id)
        body = DeclineAsked(data=request.data)
        body.is_valid(raise_exception=True)
        try:
            decline_as(caller, proposal_id, body.validated_data["reason"])
        except BadConfig as bad:
            raise refused(bad) from None
        return Response(self.get_serializer(proposal_of(caller, proposal_id)).data)


def proposal_of(caller: Principal, proposal_id: int) -> Proposal:
    """404 where there is none, or the caller sees none of its lines."""
    found = seen_proposals(visible_vos(caller, READ)).filter(pk=proposal_id).first() if proposal_id <= LARGEST_ID else None
    if found is None:
        raise Http404("There is no such proposal.")
    return found


def propose_as(caller: Principal, draft: Draft) -> Proposal | None:
    """Keep and audit in one transaction. Raises BadConfig, and Refused(403) for lines that the caller has no right to."""
    refuse_lines(caller, draft.lines)
    with transaction.atomic():
        made = propose(draft)
        if made is not None:
            audit("config.propose", caller, f"proposal {made.id}", reason=made.why, after={"lines": len(made.lines)})
    return made


def _refuse_to_decide(caller: Principal, proposal_id: int) -> None:
    """Refused(403) where the caller may not see a line, of which nothing is told then, or has no right to one."""
    lines = draft_of(proposal_of(caller, proposal_id)).lines
    refuse_unseen(len(list(hidden(visible_vos(caller, READ), lines))))
    refuse_lines(caller, lines)


def approve_as(caller: Principal, proposal_id: int) -> ChangeSet | None:
    """Apply and audit in one transaction. Raises BadConfig, and Refused(403) for lines that the caller has no right to."""
    _refuse_to_decide(caller, proposal_id)
    with transaction.atomic():
        made = approve(proposal_id, caller.name)
        audit("config.approve", caller, f"proposal {proposal_id}", after={"revision": made.revision if made else None})
    return made


def decline_as(caller: Principal, proposal_id: int, why: str) -> Proposal:
    """Close and audit in one transaction. Raises as `approve_as`."""
    _refuse_to_decide(caller, proposal_id)
    with transaction.atomic():
        proposal = decline(proposal_id, caller.name, why)
        audit("config.decline", caller, f"proposal {proposal_id}", reason=why, after={"outcome": proposal.outcome})
    return proposal


def _fresh(request: Request) -> None:
    if not shows_bearer(request._request) and not password_is_fresh(request._request.session):
        raise Refused(403, "Password needed", STALE)


@page_requires(EDIT)
@require_POST
def approve_form(request: HttpRequest, proposal_id: int) -> HttpResponseBase:
    """Approve and go to the set that it became."""

    def act() -> str:
        made = approve_as(authenticate(request), proposal_id)
        if made is None:
            messages.warning(request, "Nothing was changed: all of it holds already.")
            return reverse("page-proposal", args=[proposal_id])
        messages.success(request, f"Approved and applied as revision {made.revision}. It holds everywhere within two seconds.")
        return reverse("page-change-set", args=[made.revision])

    return _done(request, proposal_id, act)


@page_requires(EDIT)
@require_POST
def decline_form(request: HttpRequest, proposal_id: int) -> HttpResponseBase:
    """Refuse or withdraw."""

    def act() -> str:
        proposal = decline_as(authenticate(request), proposal_id, request.POST.get("why", ""))
        messages.success(request, f"The proposal was {proposal.outcome}. Nothing was changed.")
        return reverse("page-proposal", args=[proposal_id])

    return _done(request, proposal_id, act)


def _done(request: HttpRequest, proposal_id: int, act: Callable[[], str]) -> HttpResponseBase:
    proposal_of(authenticate(request), proposal_id)
    back = reverse("page-proposal", args=[proposal_id])
    asked: Any = password_again(request)
    if asked.refused is not None:
        return asked.refused
    if not asked.fresh:
        messages.error(request, f"Nothing was changed. {asked.fault or 'Give your password too.'}")
        return HttpResponseRedirect(back)
    try:
        return HttpResponseRedirect(act())
    except Refused as no:
        messages.error(request, no.detail)
    except BadConfig as bad:
        messages.error(request, f"Nothing was changed: {bad}.")
    return HttpResponseRedirect(back)
