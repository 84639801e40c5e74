"""`/api/v1/links/`: links between sites as transfers use them, and their limits, by REST and by the form of the pages."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.access.guards import page_requires
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.access.rest import principal
from broker_site.foundation.kernel import clock
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.rest.openapi import refusals
from brokerage.ledger.transfers.links import edit_link
from brokerage.models import Site
from brokerage.queries.transfer_links import link_row, link_rows
from workqueues.api.serializers import StrictBody

READ, EDIT = "grid:read", "link:edit"
MOST_ACTIVE = 100_000
LONGEST_BLOCK_D = 366


class LinkShown(serializers.Serializer[Any]):
    """A link from one site to another."""

    source = serializers.CharField(help_text="site where files come from")  # type: ignore[assignment]
    destination = serializers.CharField(help_text="site where they go")
    queued = serializers.IntegerField(help_text="transfers that wait, those that rest among them; at least, from 10,000 on")
    queued_bytes = serializers.IntegerField()
    resting = serializers.IntegerField(help_text="transfers that wait for their next attempt")
    active = serializers.IntegerField(help_text="transfers under way")
    active_bytes = serializers.IntegerField()
    done = serializers.IntegerField(help_text="in the last hour")
    failed = serializers.IntegerField(help_text="in the last hour")
    mb_per_s = serializers.FloatField(help_text="brought in the last hour, MB/s")
    failures = serializers.SerializerMethodField(help_text="reason: transfers that failed with it, or rest after it")
    max_active = serializers.IntegerField(allow_null=True, help_text="most under way, the link's own limit; null: as configured")
    most_active = serializers.IntegerField(help_text="most under way now, as configured or by its own limit, halved by failures")
    halved_until = serializers.DateTimeField(allow_null=True, help_text="half as many until then, since many failed")
    attempts_done = serializers.IntegerField(help_text="attempts that ended well among those by which the link is judged")
    attempts_failed = serializers.IntegerField(help_text="attempts among them that failed by the link's fault")
    limit_mb_per_s = serializers.FloatField(allow_null=True, help_text="most MB/s of all its copies; null: no limit")
    blocked_until = serializers.DateTimeField(allow_null=True, help_text="no transfer begins before; null: it is open")
    blocked_why = serializers.CharField()
    load_files = serializers.IntegerField(help_text="open transfers as last counted for the brokerage")
    load_bytes = serializers.IntegerField(help_text="their size")
    mbps_1h = serializers.FloatField(allow_null=True, help_text="MB/s while something moved, in this hour and the one before")
    mbps_1d = serializers.FloatField(allow_null=True, help_text="the same of a day")

    def get_failures(self, link: Any) -> dict[str, int]:
        return dict(link.failures)


class LinksShown(serializers.Serializer[Any]):
    """The links on which anything is, or of which something was said; the fullest first."""

    results = LinkShown(many=True)


class LinkAsked(StrictBody):
    """What is to be another than it is."""

    max_active = serializers.IntegerField(
        min_value=0, max_value=MOST_ACTIVE, allow_null=True, required=False, help_text="0: nothing begins; null: as configured"
    )
    mb_per_s = serializers.FloatField(min_value=0.001, max_value=1e6, allow_null=True, required=False, help_text="null: no limit")
    blocked_until = serializers.DateTimeField(allow_null=True, required=False, help_text="null: it is opened")
    blocked_why = serializers.CharField(
        max_length=255, allow_blank=True, required=False, help_text="told wherever it is blocked; needed with blocked_until"
    )

    def validate_blocked_until(self, value: Any) -> Any:
        """A time that is yet to come and not further than a year."""
        now = clock.now()
        if value is not None and not now < value <= now + timedelta(days=LONGEST_BLOCK_D):
            raise serializers.ValidationError(f"a time to come, at most {LONGEST_BLOCK_D} days ahead", "range")
        return value

    def validate_mb_per_s(self, value: float | None) -> float | None:
        """A number: not a number is neither below the least nor above the most."""
        if value is not None and not math.isfinite(value):
            raise serializers.ValidationError("a number", "range")
        return value

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """A block has a reason, and a link that is open none."""
        if attrs.get("blocked_until") is not None and not attrs.get("blocked_why"):
            raise serializers.ValidationError({"blocked_why": serializers.ErrorDetail("say why it is blocked", "required")})
        if "blocked_until" in attrs and attrs["blocked_until"] is None:
            attrs["blocked_why"] = ""
        elif "blocked_why" in attrs and "blocked_until" not in attrs:
            raise serializers.ValidationError({"blocked_until": serializers.ErrorDetail("say until when", "required")})
        return attrs


class Links(APIView):
    permissions = {"get": READ}

    @extend_schema(
        tags=["transfers"],
        operation_id="links_list",
        summary="List links",
        description="The links on which anything is, or of which something was said; the fullest first. All VOs see the same.",
        parameters=[OpenApiParameter("site", str, description="only links from or to this site")],
        responses={200: LinksShown, **refusals(400)},
    )
    def get(self, request: Request) -> Response:
        """400 for a filter that there is not."""
        wrong = [
            Problem(name[:100], "unknown", "not a filter of this list; there is: site")
            for name in request.query_params
            if name != "site"
        ]
        if wrong:
            raise Refused(400, "Not valid", "; ".join(f"{p.field}: {p.message}" for p in wrong), wrong)
        site = request.query_params.get("site")
        return Response(LinksShown({"results": link_rows([site] if site else None)}).data)


class OneLink(APIView):
    permissions = {"get": READ, "patch": EDIT}

    @extend_schema(tags=["transfers"], summary="Read a link", responses={200: LinkShown, **refusals(404)})
    def get(self, request: Request, source: str, destination: str) -> Response:
        """Any two sites have a link."""
        check_sites(source, destination)
        return Response(LinkShown(link_row(source, destination)).data)

    @extend_schema(
        tags=["transfers"],
        summary="Edit a link",
        description="Sets the limits of the link, or blocks it until some time. What is not named stays.",
        request=LinkAsked,
        responses={200: LinkShown, **refusals(400, 404, 422)},
    )
    def patch(self, request: Request, source: str, destination: str) -> Response:
        """404, then 422."""
        check_sites(source, destination)
        body = LinkAsked(data=request.data)
        body.is_valid(raise_exception=True)
        check_block(source, destination, body.validated_data)
        edit_link(principal(request), source, destination, body.validated_data)
        return Response(LinkShown(link_row(source, destination)).data)


def check_sites(source: str, destination: str) -> None:
    """404 where one of them is no site."""
    if Site.objects.filter(name__in={source, destination}).count() != len({source, destination}):
        raise Http404("There is no such link: a link leads from a site to a site.")


def check_block(source: str, destination: str, changes: dict[str, Any]) -> None:
    """Refused(422): within a site there is no link to pass."""
    if source == destination and changes.get("blocked_until") is not None:
        problem = Problem("blocked_until", "contradiction", "within a site nothing can be blocked; block a storage instead")
        raise Refused(422, "Not valid", problem.message, [problem])


@page_requires(EDIT)
@require_POST
def edit_form(request: HttpRequest, source: str, destination: str) -> HttpResponse:
    """Do what the form says and go back to the link's page; what is wrong with it is told there."""
    check_sites(source, destination)
    back = HttpResponseRedirect(reverse("page-link", args=[source, destination]))
    body = LinkAsked(data=_from_form(request))
    try:
        if not body.is_valid():
            faults = "; ".join(f"{name}: {' '.join(map(str, texts))}" for name, texts in body.errors.items())
            raise Refused(422, "Not valid", faults)
        check_block(source, destination, body.validated_data)
    except Refused as refused:
        messages.error(request, f"Nothing was changed. {refused.detail}")
        return back
    edit_link(authenticate(request), source, destination, body.validated_data)
    messages.success(request, f"The link from {source} to {destination} is changed.")
    return back


def _from_form(request: HttpRequest) -> dict[str, Any]:
    """The fields of the pressed button as the body of REST; an empty field is none."""
    sent = request.POST
    if sent.get("act") == "open":
        return {"blocked_until": None}
    if sent.get("act") != "block":
        return {name: sent.get(name, "").strip() or None for name in ("max_active", "mb_per_s")}
    try:
        until = clock.now() + timedelta(hours=float(sent.get("hours", "")))
    except (ValueError, OverflowError):
        return {"blocked_until": "", "blocked_why": sent.get("blocked_why", "")}
    return {"blocked_until": until.isoformat(), "blocked_why": sent.get("blocked_why", "").strip()}
