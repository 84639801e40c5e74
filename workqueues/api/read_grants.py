"""`/api/v1/read-grants/`: who else may read datasets of a VO."""

from __future__ import annotations

from django.db.models import Q, QuerySet
from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from broker_site.foundation.access.permissions import may, visible_vos
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.access.rest import principal
from broker_site.foundation.rest.openapi import lists, refusals
from broker_site.foundation.rest.paging import NewestFirst, one_of
from workqueues.api.filtering import ReadGrantFilter
from workqueues.api.serializers import StrictBody
from workqueues.ledger.read_grants import BadGrant, give_grant, withdraw_grant
from workqueues.models import ReadGrant
from workqueues.queries.read_grants import check_names
from workqueues.rules.refine.data_rights import Grant, check_grant

READ, GRANT = "dataset:read", "dataset:grant"


class ReadGrantShown(serializers.ModelSerializer[ReadGrant]):
    """Who may read which datasets, who said so, and until when."""

    class Meta:
        model = ReadGrant
        fields = ("id", "vo", "pattern", "owner", "grantee_kind", "grantee", "made_by", "made_at", "ends_at")
        read_only_fields = fields


class ReadGrantAsked(StrictBody):
    """A new grant."""

    vo = serializers.CharField(max_length=32, help_text="whose datasets they are")
    pattern = serializers.CharField(max_length=255, help_text="their names in that VO; `*` stands for any text")
    grantee_kind = serializers.CharField(max_length=32, help_text="vo or user; group is not supported yet")
    grantee = serializers.CharField(max_length=128, help_text="the VO or the user whose tasks may read them")
    ends_at = serializers.DateTimeField(default=None, allow_null=True, help_text="until when; without it until it is withdrawn")


@extend_schema(tags=["data"])
@lists("List grants", "Those on datasets of your VOs, and those that let your VOs or you read, newest first.", ReadGrantShown)
class ReadGrants(mixins.ListModelMixin, viewsets.GenericViewSet[ReadGrant]):
    """Grants that the caller may see: who gives and who gets."""

    queryset = ReadGrant.objects.none()
    serializer_class = ReadGrantShown
    pagination_class = NewestFirst
    filterset_class = ReadGrantFilter
    permissions = {"list": READ, "retrieve": READ, "create": GRANT, "destroy": GRANT}

    def get_queryset(self) -> QuerySet[ReadGrant]:
        caller = principal(self.request)
        scope = visible_vos(caller, READ)
        got = Q(grantee_kind="vo") & scope.q("grantee") | Q(grantee_kind="user", grantee=caller.name)
        return ReadGrant.objects.filter(Q() if scope.everything else scope.q("vo") | got)

    @extend_schema(summary="Read a grant", responses={200: ReadGrantShown, **refusals(404)})
    def retrieve(self, request: Request, grant_id: int) -> Response:
        """One grant."""
        return Response(ReadGrantShown(one_of(self.get_queryset(), grant_id, "grant")).data)

    @extend_schema(
        summary="Give a grant",
        description="Lets tasks of another VO, or of a user, read datasets of yours. An operator of the VO opens every dataset "
        "whose name fits, anybody else who may submit there only his own.",
        request=ReadGrantAsked,
        responses={201: ReadGrantShown, **refusals(400, 415, 422)},
    )
    def create(self, request: Request) -> Response:
        """Refused: 403 without the right in the VO of the datasets, 422 with every fault."""
        body = ReadGrantAsked(data=request.data)
        body.is_valid(raise_exception=True)
        ends_at, caller = body.validated_data.pop("ends_at"), principal(request)
        vo = body.validated_data["vo"]
        grant = Grant(owner=_owner(caller, vo), **body.validated_data)
        grant = grant._replace(pattern=grant.pattern.removeprefix(f"{vo}:"))
        try:
            if wrong := [*check_grant(grant, ends_at, timezone.now()), *check_names(grant)]:
                raise BadGrant(wrong)
            given = give_grant(grant, ends_at, caller)
        except BadGrant as refused:
            raise Refused(422, "The grant breaks rules", str(refused)[:1000], refused.problems) from None
        location = request.build_absolute_uri(f"{request.path}{given.id}/")
        return Response(ReadGrantShown(given).data, status.HTTP_201_CREATED, headers={"Location": location})

    @extend_schema(
        summary="Withdraw a grant",
        description="Jobs that were made go on; tasks wait with the reason before they take new input.",
        responses={204: OpenApiResponse(description="It is withdrawn."), **refusals(404)},
    )
    def destroy(self, request: Request, grant_id: int) -> Response:
        """404 for a grant that the caller may not see, 403 for one that is not his to withdraw."""
        grant, caller = one_of(self.get_queryset(), grant_id, "grant"), principal(request)
        if not may(caller, GRANT, grant.vo, grant.owner or None):
            raise Refused(403, "Not permitted", f"{caller.name} may not withdraw this grant of VO {grant.vo}.")
        withdraw_grant(grant, caller)
        return Response(status=status.HTTP_204_NO_CONTENT)


def _owner(caller: Principal, vo: str) -> str:
    """To whose datasets a grant of the caller is limited; empty: to none of them, as he is an operator. Refused(403)."""
    if may(caller, GRANT, vo):
        return ""
    if may(caller, GRANT, vo, caller.name):
        return caller.name
    raise Refused(403, "Not permitted", f"{caller.name} may not grant datasets of VO {vo[:64]}.")
