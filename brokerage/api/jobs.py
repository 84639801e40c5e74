"""`/api/v1/jobs/` and the jobs of one task, to read. What pilots call is in `pilots`."""

from __future__ import annotations

from dataclasses import fields

from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from broker_site.foundation.access.permissions import visible_vos
from broker_site.foundation.access.rest import principal
from broker_site.foundation.rest.openapi import refusals
from broker_site.foundation.rest.paging import LARGEST_ID, NewestFirst
from brokerage.api.filtering import JobFilter
from brokerage.api.serializers import JobShown, JobWhole
from brokerage.models import Job
from brokerage.queries.jobs import parts_of_job
from workqueues.api.tasks import visible_task

READ = "job:read"


@extend_schema(tags=["jobs"])
@extend_schema_view(
    list=extend_schema(summary="List jobs", description="Newest first.", responses={200: JobShown(many=True), **refusals(400)})
)
class JobsView(mixins.ListModelMixin, viewsets.GenericViewSet[Job]):
    """Jobs of the VOs in which the caller has a role."""

    queryset = Job.objects.none()
    serializer_class = JobShown
    pagination_class = NewestFirst
    filterset_class = JobFilter
    permissions = {"list": READ, "retrieve": READ}

    def get_queryset(self) -> QuerySet[Job]:
        """Only what the caller may see."""
        scope = visible_vos(principal(self.request), READ).q("spec__vo")
        return Job.objects.filter(scope).select_related("spec", "computing_queue")

    @extend_schema(summary="Read a job", responses={200: JobWhole, **refusals(404)})
    def retrieve(self, request: Request, job_id: int) -> Response:
        """One job with its description, inputs, outputs, result, history and retries."""
        job = self.get_queryset().select_related("result").filter(id=job_id).first() if job_id <= LARGEST_ID else None
        if job is None:
            raise Http404("There is no such job.")
        parts = parts_of_job(job.id)
        vars(job).update({part.name: getattr(parts, part.name) for part in fields(parts)})
        return Response(JobWhole(job).data)


@extend_schema(tags=["jobs"])
@extend_schema_view(
    list=extend_schema(
        summary="The jobs of a task",
        description="Newest first, all tries.",
        responses={200: JobShown(many=True), **refusals(400, 404)},
    )
)
class TaskJobsView(mixins.ListModelMixin, viewsets.GenericViewSet[Job]):
    queryset = Job.objects.none()
    serializer_class = JobShown
    pagination_class = NewestFirst
    filterset_class = JobFilter
    permissions = {"list": READ}

    def get_queryset(self) -> QuerySet[Job]:
        """Those of the task in the address."""
        task = visible_task(self.request, self.kwargs["task_id"], READ)
        return Job.objects.filter(task_id=task.id).select_related("spec", "computing_queue")
