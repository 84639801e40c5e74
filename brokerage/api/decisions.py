"""`/api/v1/decisions/`: the decisions of the brokerage about a task, and why each queue was chosen or not."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import mixins, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from broker_site.foundation.access.permissions import visible_vos
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.access.rest import principal
from broker_site.foundation.rest.openapi import refusals
from broker_site.foundation.rest.paging import LARGEST_ID, NewestFirst
from brokerage.api.filtering import DecisionFilter
from brokerage.api.serializers import DecisionShown, DecisionWhole
from brokerage.models import Decision
from brokerage.queries.decisions import NotACandidate, NotReproducible, explanation_of, why_not_of, with_snapshot
from workqueues.api.tasks import visible_task
from workqueues.models import Task

READ = "decision:read"
QUEUE = OpenApiParameter(
    "queue", str, description="also tell every verdict on this candidate, or on each part of this unified queue"
)


@extend_schema(tags=["brokerage"])
@extend_schema_view(
    list=extend_schema(
        summary="The decisions about a task",
        description="Newest first; equal ones in a row are one with a count.",
        responses={200: DecisionShown(many=True), **refusals(400, 404)},
    )
)
class TaskDecisionsView(mixins.ListModelMixin, viewsets.GenericViewSet[Decision]):
    queryset = Decision.objects.none()
    serializer_class = DecisionShown
    pagination_class = NewestFirst
    filterset_class = DecisionFilter
    permissions = {"list": READ}

    def get_queryset(self) -> QuerySet[Decision]:
        """Those of the task in the address."""
        task = visible_task(self.request, self.kwargs["task_id"], READ)
        return Decision.objects.filter(task_id=task.id).defer("record", "ask", "own")


@extend_schema(tags=["brokerage"])
class DecisionsView(viewsets.GenericViewSet[Decision]):
    queryset = Decision.objects.none()
    serializer_class = DecisionWhole
    permissions = {"retrieve": READ}

    @extend_schema(summary="Explain a decision", parameters=[QUEUE], responses={200: DecisionWhole, **refusals(404, 410)})
    def retrieve(self, request: Request, decision_id: int) -> Response:
        """Why each queue was chosen or not, with the numbers that were compared, told from the snapshot it was taken on."""
        decision = self._visible(decision_id)
        explanation = explanation_of(decision)
        decision.explanation = explanation.to_document() if explanation else None  # type: ignore[attr-defined]
        decision.why_not = _why_not(decision, request.query_params.get("queue", ""))  # type: ignore[attr-defined]
        return Response(DecisionWhole(decision).data)

    def _visible(self, decision_id: int) -> Decision:
        tasks = Task.objects.filter(visible_vos(principal(self.request), READ).q("vo"))
        rows = with_snapshot(Decision.objects.all())
        decision = rows.filter(id=decision_id).first() if decision_id <= LARGEST_ID else None
        if decision is None or not tasks.filter(id=decision.task_id).exists():
            raise Http404("There is no such decision.")
        return decision


def _why_not(decision: Decision, name: str) -> list[dict[str, Any]] | None:
    if not name:
        return None
    try:
        return [verdicts.to_document() for verdicts in why_not_of(decision, name)]
    except NotACandidate as unknown:
        raise Refused(404, "Not a candidate", f"{unknown}.") from None
    except NotReproducible as gone:
        raise Refused(410, "No longer kept", f"{gone}.") from None
