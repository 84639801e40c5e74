"""`/api/v1/elements/`: parts of tasks that child brokers pull; one with its history, and why it waits."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from broker_site.foundation.access.permissions import visible_vos
from broker_site.foundation.access.rest import principal
from broker_site.foundation.rest.openapi import lists, refusals
from broker_site.foundation.rest.paging import NewestFirst, one_of
from workqueues.api.filtering import ElementFilter
from workqueues.models import Element, ElementChange
from workqueues.queries.element_rows import elements_in, moves_of_element, sites_of_group, told_of, why_each_child, why_no_child
from workqueues.rules.elements.why_waiting import REASONS
from workqueues.states.elements import ELEMENT

READ = "task:read"


class ElementShown(serializers.ModelSerializer[Element]):
    """An element as lists show it."""

    status = serializers.CharField(read_only=True, help_text=f"one of {', '.join(ELEMENT.course)}")
    task_id = serializers.IntegerField(read_only=True)
    vo = serializers.CharField(read_only=True)
    team = serializers.CharField(read_only=True, help_text="only child brokers of this team; empty: any")
    child = serializers.CharField(
        source="child_name", read_only=True, help_text="the child broker that has it, or had it last; empty: none"
    )
    returned_by = serializers.CharField(
        source="giver", read_only=True, help_text="the child broker that gave it back last; empty: none"
    )

    class Meta:
        model = Element
        fields = (
            "id", "task_id", "vo", "team", "status", "status_since", "priority", "jobs", "n_files", "n_files_finished",
            "n_files_failed", "child", "site", "try_nr", "lease_until", "sentence", "told_at", "returned_by", "n_returned",
            "rests_until",
        )  # fmt: skip
        read_only_fields = fields


class ElementMoveShown(serializers.ModelSerializer[ElementChange]):
    """One move of an element."""

    class Meta:
        model = ElementChange
        fields = ("at", "epoch", "old", "new", "who", "why")
        read_only_fields = fields


class WhyNotShown(serializers.Serializer[Any]):
    """One reason why a child does not get the element."""

    kind = serializers.CharField(help_text=f"one of {', '.join(REASONS)}")
    why = serializers.CharField(help_text="in words")
    site = serializers.CharField(allow_blank=True, help_text="of the child, where it is about one")


class ChildAnswerShown(serializers.Serializer[Any]):
    """Why one child does not get the element, as it stands now."""

    child = serializers.CharField()
    reasons = WhyNotShown(many=True, help_text="empty: it gets the element once its turn in a pull has come")


class ElementWhole(ElementShown):
    """An element with where it may run, what its child said, its history and, where it waits, why."""

    dataset = serializers.CharField(source="dataset.dataset_name", read_only=True)
    sites = serializers.ListField(
        child=serializers.CharField(),
        source="group.sites",
        read_only=True,
        help_text="that have all it reads, and that lists allow",
    )
    history = ElementMoveShown(many=True, read_only=True, help_text="the newest first")
    why_no_child = serializers.ListField(
        child=serializers.CharField(), read_only=True, help_text="what keeps it from every child"
    )
    why_waiting = ChildAnswerShown(many=True, read_only=True, source="answers", help_text="for each child; empty unless it waits")

    class Meta(ElementShown.Meta):
        fields = (  # type: ignore[assignment]
            *ElementShown.Meta.fields, "epoch", "n_events", "dataset", "places", "located_at", "sites",
            "serial_first", "serial_last", "incarnation", "decision", "history", "why_no_child", "why_waiting",
        )  # fmt: skip
        read_only_fields = fields  # type: ignore[assignment]


@extend_schema(tags=["tree"])
@lists("List elements", "Parts of tasks of your VOs that child brokers pull, newest first.", ElementShown)
class Elements(mixins.ListModelMixin, viewsets.GenericViewSet[Element]):
    """Elements of the VOs in which the caller has a role."""

    queryset = Element.objects.none()
    serializer_class = ElementShown
    pagination_class = NewestFirst
    filterset_class = ElementFilter
    permissions = {"list": READ, "retrieve": READ}

    def get_queryset(self) -> QuerySet[Element]:
        return told_of(elements_in(visible_vos(principal(self.request), READ)))

    @extend_schema(summary="Read an element", responses={200: ElementWhole, **refusals(404)})
    def retrieve(self, request: Request, element_id: int) -> Response:
        """Why it waits is worked out for this answer, of the children as they were last heard of."""
        element = one_of(self.get_queryset().select_related("task", "dataset", "group"), element_id, "element")
        waits = element.status in ELEMENT.waiting
        parts = {
            "known_sites": sites_of_group(element),
            "history": moves_of_element(element.id),
            "why_no_child": why_no_child(element) if waits else [],
            "answers": why_each_child(element) if waits else [],
        }
        vars(element).update(parts)
        return Response(ElementWhole(element).data)
