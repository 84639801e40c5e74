"""What-if over REST: what the brokerage would decide about a task now or with changes, and why a queue gets no work.

They change nothing. Not here: decisions that were stored (`brokerage.api.decisions`).
"""

from __future__ import annotations

from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework import serializers, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from broker_site.foundation.access.permissions import visible_vos
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.access.rest import principal
from broker_site.foundation.rest.openapi import refusals
from brokerage.models import ComputingQueue
from brokerage.queries.what_if import NothingToDecide, what_if
from brokerage.queries.why_empty import MOST, why_empty_of
from brokerage.rules.explain.edits import MOST as MOST_EDITS
from brokerage.rules.explain.edits import BadEdits, Edit
from workqueues.api.serializers import StrictBody
from workqueues.api.tasks import visible_task

READ = "decision:read"


class WhatIfBody(StrictBody):
    """What is different, as an object of names and values; nothing: how it is now."""

    edits = serializers.DictField(
        child=serializers.JSONField(allow_null=True),
        default=dict,
        help_text="task parameters (`ramCount`); `queue.NAME.ATTRIBUTE`, `site.NAME.ATTRIBUTE`, `storage.NAME.ATTRIBUTE` as in "
        f"the grid document (NAME `*` for all); `config.KEY`; at most {MOST_EDITS}",
    )

    def validate_edits(self, edits: dict[str, Any]) -> dict[str, Any]:
        """Not more than may be made at once."""
        if len(edits) > MOST_EDITS:
            raise serializers.ValidationError(f"{len(edits)} edits, at most {MOST_EDITS} at once", "range")
        return edits


WHAT_IF = inline_serializer(
    "WhatIf",
    {
        "before": serializers.DictField(help_text="the explanation of what would be decided now"),
        "after": serializers.DictField(allow_null=True, help_text="the same with the edits; null without any"),
        "edits": serializers.ListField(child=serializers.DictField(), help_text="name, before, after"),
        "changed": serializers.ListField(
            child=serializers.DictField(), help_text="candidates whose first criterion differs: name, before, after and why"
        ),
        "jobs": serializers.DictField(
            allow_null=True,
            help_text="where a nucleus is chosen: what the job broker says of every queue, each as one of it",
        ),
        "jobs_after": serializers.DictField(allow_null=True, help_text="the same with the edits"),
    },
)

WHY_EMPTY = inline_serializer(
    "WhyEmpty",
    {
        "name": serializers.CharField(),
        "verdict": serializers.CharField(help_text="in one line"),
        "decisions": serializers.IntegerField(help_text=f"latest decisions about tasks that have not ended, at most {MOST}"),
        "chosen": serializers.ListField(
            child=serializers.ListField(child=serializers.IntegerField()), help_text="[task, decision] that took the queue"
        ),
        "absent": serializers.IntegerField(help_text="decisions in which the queue took no part"),
        "tallies": serializers.ListField(
            child=serializers.DictField(),
            help_text="per criterion: how often it skipped the queue first, how often at all, how often alone; whether it lasts",
        ),
    },
)


@extend_schema(tags=["brokerage"])
class WhatIfView(viewsets.GenericViewSet[Any]):
    serializer_class = WhatIfBody
    permissions = {"ask": READ}

    @extend_schema(
        summary="What would be decided now, and what if",
        request=WhatIfBody,
        responses={200: WHAT_IF, **refusals(400, 404, 409, 422)},
    )
    def ask(self, request: Request, task_id: int) -> Response:
        """Decide on the grid of this moment, and once more with the edits. Nothing is written, nothing is picked or sent.

        409 where the task has nothing to decide.
        """
        task = visible_task(request, task_id, READ)
        body = WhatIfBody(data=request.data)
        body.is_valid(raise_exception=True)
        edits = [Edit(name, value) for name, value in body.validated_data["edits"].items()]
        try:
            result = what_if(task, edits)
        except BadEdits as bad:
            raise Refused(
                422, "Edits that cannot be made", "Some edits cannot be made; nothing was decided.", bad.problems
            ) from None
        except NothingToDecide as nothing:
            raise Refused(409, "Nothing to decide", f"Nothing would be decided about the task now: {nothing}.") from None
        return Response(result.to_document())


@extend_schema(tags=["brokerage"])
class WhyEmptyView(viewsets.GenericViewSet[Any]):
    serializer_class = serializers.Serializer
    permissions = {"retrieve": READ}

    @extend_schema(summary="Why a queue gets no work", responses={200: WHY_EMPTY, **refusals(404)})
    def retrieve(self, request: Request, name: str) -> Response:
        """What the latest decisions said of the queue, about tasks that have not ended, of the VOs that the caller may see."""
        queue = ComputingQueue.objects.filter(name=name).first()
        if queue is None:
            raise Http404("There is no such queue.")
        scope = visible_vos(principal(request), READ)
        return Response(why_empty_of(queue, None if scope.everything else sorted(scope.names)).to_document())
