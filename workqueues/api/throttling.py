"""`/api/v1/throttle-verdicts/`: what the throttler said of units, that is of shares or work queues times resource type."""

from __future__ import annotations

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, viewsets

from broker_site.foundation.access.permissions import visible_vos
from broker_site.foundation.access.rest import principal
from broker_site.foundation.rest.filtering import AnyOf, IdFilter, ListFilter, NameFilter
from broker_site.foundation.rest.openapi import lists
from broker_site.foundation.rest.paging import NewestFirst
from workqueues.models import ThrottleVerdict

READ = "decision:read"


class VerdictShown(serializers.ModelSerializer[ThrottleVerdict]):
    """A verdict with the numbers it was based on."""

    class Meta:
        model = ThrottleVerdict
        fields = (
            "id", "vo", "prod_source_label", "unit", "work_queue_id", "resource_type", "decision", "rule", "reason", "max_jobs",
            "lock", "least_priority", "running", "defined", "assigned", "activated", "starting", "waiting", "stranded", "ratio",
            "limits", "practice", "config_revision", "n_times", "first_at", "last_at",
        )  # fmt: skip
        read_only_fields = fields


class VerdictFilter(ListFilter):
    decision = AnyOf(("PASS", "SKIP"))
    vo = NameFilter()
    prod_source_label = NameFilter()
    unit = NameFilter(help_text="name of the share or work queue")
    work_queue = IdFilter(field_name="work_queue_id", help_text="number of the work queue; 0: shares")
    resource_type = NameFilter()


@extend_schema(tags=["brokerage"])
@lists(
    "List verdicts of the throttler",
    "Newest first; equal ones in a row are one with a count, and the numbers of the last.",
    VerdictShown,
)
class ThrottleVerdicts(mixins.ListModelMixin, viewsets.GenericViewSet[ThrottleVerdict]):
    """Verdicts of the throttler."""

    queryset = ThrottleVerdict.objects.none()
    serializer_class = VerdictShown
    pagination_class = NewestFirst
    filterset_class = VerdictFilter
    permissions = {"list": READ}

    def get_queryset(self) -> QuerySet[ThrottleVerdict]:
        return ThrottleVerdict.objects.filter(visible_vos(principal(self.request), READ).q("vo"))
