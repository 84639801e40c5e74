"""`/api/v1/config/draft/`: what is steered as a draft that people keep and edit, and one that they wrote as lines of a change.

Nothing is written here: the lines go to `/api/v1/config/changes/`, as any others do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from broker_site.foundation.access.jsonbody import read_stream
from broker_site.foundation.access.permissions import visible_vos
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.access.rest import principal
from broker_site.foundation.gdpconfig.changesets import CONFIG
from broker_site.foundation.gdpconfig.exchange import HEAD, as_text, read_document, row_kinds, standing
from broker_site.foundation.gdpconfig.keys import BadConfig
from broker_site.foundation.gdpconfig.visible_lines import sees
from broker_site.foundation.rest.filtering import take_only
from broker_site.foundation.rest.openapi import refusals
from brokerage.api.configuration import BODY_LIMIT, READ, refused

FILTERS = ("vo", "format")
_ENTRIES = serializers.ListField(child=serializers.DictField(), required=False)
DRAFT = inline_serializer("ConfigurationDraft", {"overrides": _ENTRIES, "shares": _ENTRIES, "work_queues": _ENTRIES})
DRAFT_READ = inline_serializer(
    "ConfigurationDraftRead",
    {
        "document": DRAFT,
        "lines": serializers.ListField(
            child=serializers.DictField(), help_text="kind, key, vo, value and until of each, as a change takes them"
        ),
        "at": serializers.DictField(
            child=serializers.IntegerField(), help_text="in which line of the text each entry stands: `overrides[0].value`"
        ),
    },
)


class DraftParser(BaseParser):
    """The text of a draft as it is: what it means is read by the one reader of drafts."""

    media_type = "application/yaml"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        """Refused(400) where it is no UTF-8, 413 where it is too long."""
        request = (parser_context or {})["request"]
        body = read_stream(stream, request.META.get("CONTENT_LENGTH"), BODY_LIMIT)
        try:
            return body.decode()
        except UnicodeDecodeError as fault:
            raise Refused(400, "Malformed body", f"The body is not UTF-8: byte {fault.start}.") from None


class DraftRenderer(BaseRenderer):
    """A draft as people read it."""

    media_type = "application/yaml"
    format = "yaml"

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Mapping[str, Any] | None = None
    ) -> bytes:
        return as_text(data, "yaml").encode()


class ConfigurationDraft(APIView):
    permissions: ClassVar = {"get": READ, "post": READ}
    parser_classes = [DraftParser]

    def get_renderers(self) -> list[BaseRenderer]:
        """What is steered is told in two forms, what a draft means in one."""
        return [JSONRenderer(), DraftRenderer()] if self.request.method == "GET" else [JSONRenderer()]

    @extend_schema(
        tags=["configuration"],
        operation_id="config_draft_export",
        summary="Export what is steered",
        description="Overrides, shares and work queues as a draft to keep, compare and edit: as JSON, or as YAML for people "
        "(`format=yaml`, or Accept: application/yaml). Shares and work queues are those of your VOs.",
        parameters=[
            OpenApiParameter("vo", str, description="only what is for this VO"),
            OpenApiParameter("format", str, enum=["json", "yaml"], description="the form; usual: as Accept says, else json"),
        ],
        responses={(200, "application/json"): DRAFT, (200, "application/yaml"): DRAFT, **refusals(400, 404)},
    )
    def get(self, request: Request) -> Response:
        """400 for a filter that there is not."""
        vo, scope = take_only(request, FILTERS)["vo"], visible_vos(principal(request), READ)
        kinds = {HEAD: CONFIG, **{kind.member: kind.kind for kind in row_kinds()}}
        return Response(
            {
                head: [
                    entry
                    for entry in entries
                    if (not vo or entry.get("vo", "") == vo) and sees(scope, kinds[head], entry.get("vo", ""))
                ]
                for head, entries in standing().items()
            }
        )

    @extend_schema(
        tags=["configuration"],
        operation_id="config_draft_read",
        summary="Read a draft",
        description="Reads a draft that somebody wrote, YAML or JSON, and answers its lines as a change takes them. Nothing is "
        "written, nor is looked whether the values may stand: `POST /api/v1/config/changes/` does, with `dry_run` too. A fault "
        "names the line of the text.",
        request={"application/yaml": OpenApiTypes.STR},
        responses={200: DRAFT_READ, **refusals(400, 413, 415, 422)},
    )
    def post(self, request: Request) -> Response:
        """422 with every fault of the form."""
        try:
            read = read_document(str(request.data or ""))
        except BadConfig as bad:
            raise refused(bad) from None
        lines = [
            {"kind": line.kind, "key": line.place.key if line.kind == "config" else line.name, "vo": line.vo,
             "value": line.value, "until": line.until}
            for line in read.lines
        ]  # fmt: skip
        return Response({"document": read.document, "lines": lines, "at": read.at})
