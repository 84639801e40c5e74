"""`/api/v1/me/`: who the caller is, and what a credential may do."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from broker_site.foundation.access.permissions import PERMISSIONS, may
from broker_site.foundation.access.rest import principal
from broker_site.foundation.rest.openapi import refusals


class CallerShown(serializers.Serializer[Any]):
    """The caller as the server sees it in this very call."""

    name = serializers.CharField()
    superuser = serializers.BooleanField()
    roles = serializers.DictField(
        child=serializers.ListField(child=serializers.CharField()), help_text="by VO: the roles that this credential has there"
    )
    permissions = serializers.ListField(child=serializers.CharField(), help_text="what the roles allow, in one VO at least")
    token = serializers.CharField(allow_blank=True, help_text="the part of the token that may be shown; empty in a session")
    limited = serializers.BooleanField(help_text="whether the token may less than its user")


class CallerView(APIView):
    permissions = {"get": "schema:read"}

    @extend_schema(
        tags=["system"],
        operation_id="me_retrieve",
        summary="Who you are",
        description="Name, roles and permissions of the caller: what a program can look at before it starts.",
        responses={200: CallerShown, **refusals()},
    )
    def get(self, request: Request) -> Response:
        """Nothing of it is looked up beyond what every call looks up."""
        caller = principal(request)
        body = {
            "name": caller.name,
            "superuser": caller.superuser,
            "roles": {vo: sorted(roles) for vo, roles in sorted(caller.roles.items())},
            "permissions": sorted(name for name in PERMISSIONS if may(caller, name)),
            "token": caller.prefix,
            "limited": caller.limited,
        }
        return Response(CallerShown(body).data)
