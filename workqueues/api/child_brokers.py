"""`/api/v1/tree/`: this broker and its parent, and its child brokers, which operators let in, drain and revoke."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema, extend_schema_serializer
from rest_framework import serializers, status, viewsets
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from broker_site.foundation.access.authentication import shows_bearer
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.access.rest import principal
from broker_site.foundation.access.sessions import password_is_fresh
from broker_site.foundation.rest.filtering import take_no_filter
from broker_site.foundation.rest.openapi import refusals
from workqueues.api.serializers import StrictBody
from workqueues.ledger.child_brokers import (
    BadChild,
    NewToken,
    add_child,
    drain_child,
    renew_child,
    revoke_child,
    undrain_child,
)
from workqueues.models import ChildBroker, Installation, ParentBroker
from workqueues.queries.child_brokers import EDIT, ChildRow, child_rows, may_edit, sites_of
from workqueues.queries.element_rows import MOST_COUNTED, elements_by_state
from workqueues.rules.elements.child_names import LONGEST_GRACE_S, LONGEST_NAME, LONGEST_TEAM, LONGEST_VO, USUAL_GRACE_S
from workqueues.rules.elements.child_state import CHILD_STATES
from workqueues.states.elements import ELEMENT

READ = "grid:read"


class ChildShown(serializers.Serializer[Any]):
    """A child broker: what operators said of it, what it told last, and what it has."""

    name = serializers.CharField()
    state = serializers.CharField(help_text=f"one of {', '.join(CHILD_STATES)}")
    team = serializers.CharField(allow_blank=True, help_text="it gets no elements of other teams; empty: of any")
    vo = serializers.CharField(allow_blank=True, help_text="only elements of this VO; empty: of all")
    token = serializers.CharField(help_text="the part of its token that may be displayed")
    version = serializers.CharField(allow_blank=True)
    protocol = serializers.IntegerField(allow_null=True, help_text="version of the messages that it speaks")
    instance = serializers.CharField(allow_blank=True, help_text="the same as long as it lives; empty: not told yet")
    incarnation = serializers.CharField(allow_blank=True, help_text="new whenever it was restored from a backup")
    clock_ahead_s = serializers.FloatField(help_text="by how much its clock is ahead of ours, s")
    last_contact = serializers.DateTimeField(allow_null=True)
    last_error = serializers.CharField(allow_blank=True, help_text="why its last message failed")
    last_error_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()
    drain_since = serializers.DateTimeField(allow_null=True, help_text="since when it gets nothing new; null: it may pull")
    drain_until = serializers.DateTimeField(allow_null=True, help_text="when what it still has is taken back")
    is_draining = serializers.BooleanField(help_text="it said itself that it pulls nothing more")
    free_jobs = serializers.IntegerField(allow_null=True, help_text="jobs that it may still have; null: any number")
    n_sites = serializers.IntegerField()
    pending_slots = serializers.IntegerField(help_text="of all its sites")
    running_slots = serializers.IntegerField()
    running_jobs = serializers.IntegerField()
    waiting_jobs = serializers.IntegerField(help_text="jobs that wait there")
    elements = serializers.DictField(child=serializers.IntegerField(), help_text="state: elements that it has")
    elements_bounded = serializers.BooleanField(help_text="whether it has more than were counted")
    last_pull_at = serializers.DateTimeField(allow_null=True)
    asked = serializers.IntegerField(allow_null=True, help_text="elements that it wanted at its last pull")
    got = serializers.IntegerField(allow_null=True, help_text="elements that it got")
    why = serializers.DictField(child=serializers.IntegerField(), help_text="reason why it got no more: how often it held")


class ChildSiteShown(serializers.Serializer[Any]):
    """A site of a child as it told last."""

    name = serializers.CharField()
    state = serializers.CharField()
    pending_slots = serializers.IntegerField()
    running_slots = serializers.IntegerField()
    running_jobs = serializers.IntegerField()
    n_waiting = serializers.IntegerField(help_text="jobs that wait there")


class ChildWhole(ChildShown):
    """A child broker with its sites."""

    sites = ChildSiteShown(many=True)


class ChildAdded(ChildShown):
    """A child broker with its token, whose text is in this answer alone."""

    secret = serializers.CharField(help_text="to be kept secret; it is not stored and cannot be shown again")


@extend_schema_serializer(many=False)
class ChildrenShown(serializers.Serializer[Any]):
    """All child brokers, by name."""

    results = ChildShown(many=True)


class ChildAsked(StrictBody):
    """A new child broker."""

    name = serializers.CharField(max_length=LONGEST_NAME, help_text="letters, digits, dot, hyphen and underscore")
    team = serializers.CharField(
        max_length=LONGEST_TEAM, default="", allow_blank=True, help_text="it gets no elements of other teams; empty: of any"
    )
    vo = serializers.CharField(
        max_length=LONGEST_VO, default="", allow_blank=True, help_text="only elements of this VO; empty: of all"
    )


class DrainAsked(StrictBody):
    """How long it may keep what it has."""

    grace_s = serializers.FloatField(
        default=USUAL_GRACE_S, min_value=0, max_value=LONGEST_GRACE_S, help_text="s; then what it still has is taken back"
    )


class ReasonGiven(StrictBody):
    reason = serializers.CharField(max_length=200, default="", allow_blank=True, help_text="why, for the audit")


class BrokerShown(serializers.Serializer[Any]):
    """This broker."""

    instance = serializers.UUIDField(help_text="the same as long as it lives")
    incarnation = serializers.UUIDField(help_text="new whenever an older state of its database came back")
    changed_at = serializers.DateTimeField(help_text="when this incarnation began")
    why = serializers.CharField(allow_blank=True, help_text="why it began")


class ParentShown(serializers.Serializer[Any]):
    """The broker from which this one pulls, by its last answers."""

    url = serializers.CharField()
    instance = serializers.UUIDField(allow_null=True)
    incarnation = serializers.UUIDField(allow_null=True)
    version = serializers.CharField(allow_blank=True)
    protocol = serializers.IntegerField(allow_null=True)
    clock_ahead_s = serializers.FloatField(help_text="by how much its clock is ahead of ours, s")
    last_contact = serializers.DateTimeField(allow_null=True)
    last_error = serializers.CharField(allow_blank=True)
    last_error_at = serializers.DateTimeField(allow_null=True)
    lineage = serializers.ListField(child=serializers.CharField(), help_text="instances above this broker, nearest first")


class TreeShown(serializers.Serializer[Any]):
    """This broker, the one above it, and the elements here by state."""

    broker = BrokerShown(allow_null=True, help_text="null: it has not spoken to any other broker yet")
    parent = ParentShown(allow_null=True, help_text="null: it has none")
    elements = serializers.DictField(
        child=serializers.IntegerField(),
        help_text=f"state of {', '.join(ELEMENT.course)}: elements; at least, from {MOST_COUNTED + 1:,}",
    )


ADDED = OpenApiExample("A broker of one VO and team", {"name": "north", "team": "higgs", "vo": "demo"}, request_only=True)
AN_HOUR = OpenApiExample("An hour for what it has", {"grace_s": 3600}, request_only=True)


@extend_schema(tags=["tree"])
class Tree(APIView):
    permissions = {"get": READ}

    @extend_schema(summary="Read this broker's place in the tree", responses={200: TreeShown, **refusals()})
    def get(self, request: Request) -> Response:
        """As it is now, and as the parent was last heard of."""
        told = {
            "broker": Installation.objects.order_by("id").first(),
            "parent": ParentBroker.objects.order_by("id").first(),
            "elements": elements_by_state(),
        }
        return Response(TreeShown(told).data)


@extend_schema(tags=["tree"])
class Children(viewsets.GenericViewSet[ChildBroker]):
    """Child brokers. All who may look at the grid see all; who changes one is operator of its VO, or may configure everything."""

    queryset = ChildBroker.objects.none()
    serializer_class = ChildShown
    pagination_class = None
    permissions = {
        "list": READ, "retrieve": READ, "create": EDIT, "drain": EDIT, "undrain": EDIT, "revoke": EDIT, "renew": EDIT,
    }  # fmt: skip

    @extend_schema(
        operation_id="tree_children_list",
        summary="List child brokers",
        description="Those that may pull elements here, or might, by name.",
        responses={200: ChildrenShown, **refusals(400)},
    )
    def list(self, request: Request) -> Response:
        """All of them: there are some hundreds at most."""
        take_no_filter(request)
        return Response(ChildrenShown({"results": child_rows()}).data)

    @extend_schema(summary="Read a child broker", responses={200: ChildWhole, **refusals(404)})
    def retrieve(self, request: Request, name: str) -> Response:
        """With its sites, as it told last."""
        child = child_named(name)
        row = _row(child)
        return Response(ChildWhole(_with(row, sites=sites_of(child))).data)

    @extend_schema(
        summary="Let a broker pull elements",
        description="Makes a child broker and its token, which is in this answer alone. In a session the password must have been "
        "typed in the last 15 minutes.",
        request=ChildAsked,
        examples=[ADDED],
        responses={201: ChildAdded, **refusals(400, 403, 415, 422)},
    )
    def create(self, request: Request) -> Response:
        """422 with every fault."""
        body = ChildAsked(data=request.data)
        body.is_valid(raise_exception=True)
        caller = principal(request)
        check_right(caller, body.validated_data["vo"])
        check_password(request)
        try:
            made = add_child(**body.validated_data, by=caller)
        except BadChild as bad:
            raise refusal(bad) from None
        return _made(made, status.HTTP_201_CREATED)

    @extend_schema(
        summary="Drain a child broker",
        description="It gets nothing new from now on. What it has goes on for the grace time, and is taken back then.",
        request=DrainAsked,
        examples=[AN_HOUR],
        responses={200: ChildShown, **refusals(400, 403, 404, 415, 422)},
    )
    def drain(self, request: Request, name: str) -> Response:
        """Again it only sets another end."""
        child = self._mine(request, name)
        body = DrainAsked(data=request.data)
        body.is_valid(raise_exception=True)
        try:
            drain_child(child, body.validated_data["grace_s"], principal(request))
        except BadChild as bad:
            raise refusal(bad) from None
        return Response(ChildShown(_row(child)).data)

    @extend_schema(summary="Let a child broker pull again", request=None, responses={200: ChildShown, **refusals(403, 404, 422)})
    def undrain(self, request: Request, name: str) -> Response:
        """What was taken back meanwhile stays so."""
        child = self._mine(request, name)
        undrain_child(child, principal(request))
        return Response(ChildShown(_row(child)).data)

    @extend_schema(
        summary="Revoke the token of a child broker",
        description="It is refused from its next message on; what it has returns when its leases are over.",
        request=ReasonGiven,
        responses={204: OpenApiResponse(description="It is revoked."), **refusals(400, 403, 404, 415, 422)},
    )
    def revoke(self, request: Request, name: str) -> Response:
        """Once is as good as twice."""
        child = self._mine(request, name)
        body = ReasonGiven(data=request.data)
        body.is_valid(raise_exception=True)
        revoke_child(child, principal(request), body.validated_data["reason"])
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(
        summary="Make a new token for a child broker",
        description="The one before is good no longer. So comes back a child that was revoked, or whose token was lost.",
        request=None,
        responses={200: ChildAdded, **refusals(403, 404, 422)},
    )
    def renew(self, request: Request, name: str) -> Response:
        """The text of the token is in this answer alone."""
        child = self._mine(request, name)
        check_password(request)
        return _made(renew_child(child, principal(request)), status.HTTP_200_OK)

    def _mine(self, request: Request, name: str) -> ChildBroker:
        child = child_named(name)
        check_right(principal(request), child.vo)
        return child


def child_named(name: str) -> ChildBroker:
    """The child; 404."""
    child = ChildBroker.objects.filter(name=name).first()
    if child is None:
        raise Http404(f"There is no child broker {name[:60]}.")
    return child


def check_right(caller: Principal, vo: str) -> None:
    """Refused(403) without it."""
    if not may_edit(caller, vo):
        of = f"of VO {vo[:40]}" if vo else "of all VOs"
        raise Refused(403, "Not permitted", f"{caller.name} may not change a child broker that gets the work {of}.")


def check_password(request: Request) -> None:
    """Refused(403): a session makes tokens only within some minutes of the password."""
    if not shows_bearer(request._request) and not password_is_fresh(request._request.session):
        raise Refused(403, "Password needed", "Sign in again: tokens are made within 15 minutes of the password.")


def refusal(bad: BadChild) -> Refused:
    return Refused(422, "The child broker breaks rules", f"Nothing was changed. {bad}", bad.problems)


def _row(child: ChildBroker) -> ChildRow:
    return child_rows(name=child.name)[0]


def _with(row: ChildRow, **more: Any) -> dict[str, Any]:
    return {name: getattr(row, name) for name in ChildRow.__dataclass_fields__} | more


def _made(made: NewToken, code: int) -> Response:
    shown = ChildAdded(_with(_row(made.child), secret=made.secret)).data
    return Response(shown, code, headers={"Cache-Control": "no-store"})
