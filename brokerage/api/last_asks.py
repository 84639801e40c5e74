"""`/api/v1/queues/<name>/asks/`: what the last asks of pilots got; `/api/v1/jobs/<id>/waiting/`: which passed a job by."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from broker_site.foundation.access.permissions import visible_vos
from broker_site.foundation.access.rest import principal
from broker_site.foundation.rest.openapi import refusals
from broker_site.foundation.rest.paging import LARGEST_ID
from brokerage.models import ComputingQueue, Job
from brokerage.queries.job_standing import job_standing
from brokerage.queries.last_asks import asks_at
from brokerage.rules.dispatch.queue_asks import OUTCOMES

READ_GRID, READ_JOBS = "grid:read", "job:read"


class LackShown(serializers.Serializer[Any]):
    """An attribute by which a pilot did not suit jobs."""

    attribute = serializers.CharField()
    needs = serializers.CharField()
    has = serializers.CharField()


class AskShown(serializers.Serializer[Any]):
    """One ask of a pilot. What concerns jobs of VOs that the caller may not look into is left out."""

    at = serializers.DateTimeField()
    pilot_id = serializers.UUIDField()
    outcome = serializers.CharField(help_text=f"one of {', '.join(OUTCOMES)}: it got jobs, or why there was nothing")
    jobs = serializers.ListField(child=serializers.IntegerField(), help_text="jobs that it got")
    offer = serializers.CharField(help_text="what the pilot offered, in words")
    text = serializers.CharField(help_text="the outcome in words")
    task_queue = serializers.IntegerField(allow_null=True, help_text="that was served, or that was missed by least")
    lacks = LackShown(many=True, help_text="what the pilot lacked for the closest task queue")
    limits = serializers.ListField(child=serializers.CharField(), help_text="limits that held jobs back")
    unknown = serializers.ListField(child=serializers.CharField(), help_text="fields of the ask that are not known here")
    took_ms = serializers.FloatField(help_text="how long the match took, ms")


class AskCountShown(serializers.Serializer[Any]):
    """Asks that ended in one way."""

    outcome = serializers.CharField(help_text=f"one of {', '.join(OUTCOMES)}")
    text = serializers.CharField(help_text="the outcome in words")
    ten_minutes = serializers.IntegerField(help_text="in the last ten minutes")
    hour = serializers.IntegerField(help_text="in the last hour")
    day = serializers.IntegerField(help_text="in the last day")
    minutes = serializers.ListField(child=serializers.IntegerField(), help_text="in each minute of the last hour, oldest first")


class QueueAsksShown(serializers.Serializer[Any]):
    """The last asks at a queue, newest first, and the numbers of all."""

    queue = serializers.CharField()
    asks = AskShown(many=True)
    counts = AskCountShown(many=True)


class PlaceAtQueue(serializers.Serializer[Any]):
    """Where the job's task queue stands at one computing queue, among those of its VO."""

    queue = serializers.CharField()
    policy = serializers.CharField(help_text="dispatch policy; empty: it cannot be used now, nothing is handed out")
    task_queues = serializers.IntegerField(help_text="those of its VO with jobs at the queue")
    ahead = serializers.IntegerField(allow_null=True, help_text="task queues that are served before; null: chance decides")
    share = serializers.CharField(help_text="share or work queue of the job; empty: none")
    share_place = serializers.IntegerField(help_text="turn of the share among those of its VO with jobs at the queue, from 1")
    shares = serializers.IntegerField(help_text="how many those are")
    other_vos = serializers.IntegerField(help_text="other VOs with jobs at the queue, with which its VO takes turns")
    fault = serializers.CharField(help_text="why there is no policy; empty: there is one")


class PassedByShown(serializers.Serializer[Any]):
    """An ask that passed the job by."""

    at = serializers.DateTimeField()
    queue = serializers.CharField()
    pilot_id = serializers.UUIDField()
    suited = serializers.BooleanField(help_text="whether the job suited the pilot")
    lacks = LackShown(many=True, help_text="what the pilot lacked for the job")
    why = serializers.CharField(help_text="why it did not get the job")


class SiteWaitShown(serializers.Serializer[Any]):
    """What keeps a job from being submitted to a site."""

    site = serializers.CharField()
    reason = serializers.CharField(help_text="NoPendingSlot, NoTaskPendingSlot, NoRunningSlot, NoTaskRunningSlot, HardLimit, ...")
    text = serializers.CharField(help_text="the same in words")


class JobStandingShown(serializers.Serializer[Any]):
    """Where a job stands that waits for a pilot, and the last asks that passed it by."""

    ready = serializers.BooleanField(help_text="whether it is handed out now; else it waits for something else first")
    task_queue = serializers.IntegerField()
    requires = serializers.CharField(help_text="what all jobs of its task queue require, in words")
    ahead = serializers.IntegerField(help_text="jobs of its task queue that go before it")
    waiting = serializers.IntegerField(help_text="jobs of its task queue that wait")
    more = serializers.BooleanField(help_text="whether there are more than were counted")
    places = PlaceAtQueue(many=True, help_text="one for each computing queue to which it may go")
    asks = serializers.IntegerField(help_text="asks since it waits that are still known")
    suited = serializers.IntegerField(help_text="those that it suited")
    lacked = serializers.DictField(child=serializers.IntegerField(), help_text="attribute: asks that lacked it")
    passed = PassedByShown(many=True, help_text="the newest of these asks")
    submission = SiteWaitShown(
        many=True, allow_null=True, help_text="of a job that is to be submitted; null: it goes to pilots that ask"
    )


@extend_schema(tags=["grid"])
class QueueAsksView(viewsets.GenericViewSet[ComputingQueue]):
    queryset = ComputingQueue.objects.none()
    serializer_class = QueueAsksShown
    permissions = {"retrieve": READ_GRID}

    @extend_schema(summary="What the last asks at a queue got", responses={200: QueueAsksShown, **refusals(404)})
    def retrieve(self, request: Request, name: str) -> Response:
        """The last hundred asks of pilots with their outcome, and how many ended in which way, a second after they were asked."""
        queue = ComputingQueue.objects.filter(name=name).first()
        if queue is None:
            raise Http404("There is no such queue.")
        scope = visible_vos(principal(request), READ_JOBS)
        return Response(QueueAsksShown(asks_at(queue, None if scope.everything else scope.names).to_document()).data)


@extend_schema(tags=["jobs"])
class JobStandingView(viewsets.GenericViewSet[Job]):
    queryset = Job.objects.none()
    serializer_class = JobStandingShown
    permissions = {"retrieve": READ_JOBS}

    @extend_schema(summary="Where a job stands that waits", responses={200: JobStandingShown, **refusals(404)})
    def retrieve(self, request: Request, job_id: int) -> Response:
        """The jobs and task queues before it, and which asks passed it by. 404 where it does not wait for a pilot (any more)."""
        scope = visible_vos(principal(request), READ_JOBS)
        visible = Job.objects.filter(scope.q("spec__vo"))
        job = visible.filter(id=job_id).first() if job_id <= LARGEST_ID else None
        standing = job_standing(job, None if scope.everything else scope.names) if job is not None else None
        if standing is None:
            raise Http404("There is no such job, or it does not wait.")
        return Response(JobStandingShown(standing.to_document()).data)
