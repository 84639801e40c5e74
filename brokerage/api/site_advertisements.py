"""`/api/v1/sites/<site>/advertisement/`: a site tells its jobs and limits; people read that, and what room is left."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.access.rest import principal
from broker_site.foundation.access.throttles import SubmitThrottle
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.rest.openapi import refusals
from brokerage.api.messages import BROKEN_RULES, in_words
from brokerage.ledger.site_limits import RefusedAdvertisement, SiteCount, advertise
from brokerage.models import Site
from brokerage.queries.site_limits import AdvertisedSite, advertised_sites, max_age_s
from brokerage.rules.dispatch.site_messages import SiteMessage, read_advertisement
from workqueues.api.submission_schema import model_schema

READ, ADVERTISE = "grid:read", "site:advertise"


class AdvertisementShown(serializers.Serializer[Any]):
    """The last advertisement of a site, and what follows from it now."""

    site = serializers.CharField()
    kind = serializers.CharField(help_text="native: it runs jobs itself; forwarding: it hands them to another grid")
    stations = serializers.ListField(child=serializers.CharField(), help_text="stations that its jobs use")
    counted_at = serializers.DateTimeField(help_text="when the site counted its jobs")
    arrived_at = serializers.DateTimeField()
    age_s = serializers.FloatField(help_text="since the count, s")
    max_jobs = serializers.IntegerField(allow_null=True, help_text="MaxJobs; null: not advertised, no match")
    max_submitting_jobs = serializers.IntegerField(allow_null=True, help_text="MaxSubmittingJobs; null: not advertised, no match")
    current_jobs = serializers.IntegerField(help_text="CurrentJobs")
    current_submitting_jobs = serializers.IntegerField(help_text="CurrentSubmittingJobs")
    matched = serializers.IntegerField(
        help_text="JobsMatchedSinceLastAdvertisement; room that web processes hold for a second is among them"
    )
    cur_matches = serializers.IntegerField(help_text="CurMatches: current_jobs and matched")
    room = serializers.IntegerField(help_text="how many jobs the site gets before its next advertisement")
    why_no_room = serializers.CharField(allow_blank=True, help_text="in words; empty: there is room")


class SiteAdvertisementView(APIView):
    permissions = {"get": READ, "post": ADVERTISE}

    def get_throttles(self) -> list[BaseThrottle]:
        """Only who advertises is slowed down."""
        return [SubmitThrottle()]

    @extend_schema(
        tags=["grid"],
        operation_id="site_advertisement_read",
        summary="Read a site's last advertisement",
        description="404 where the site has never advertised itself: then it has no such limits.",
        responses={200: AdvertisementShown, **refusals(404)},
    )
    def get(self, request: Request, site: str) -> Response:
        """The grid is the same for all VOs."""
        return _shown(site)

    @extend_schema(
        tags=["grid"],
        operation_id="site_advertisement_send",
        summary="Advertise a site",
        description="With an enrolment secret of the site. The site gets jobs until one of both limits is reached, by what it "
        "counted and what it got since. 409: a newer count is there. The same once more changes nothing.",
        auth=[{"enrolment": []}],  # type: ignore[list-item]  # it is put into the document as it is
        request={"application/json": model_schema(SiteMessage)},
        responses={200: AdvertisementShown, **refusals(400, 404, 409, 422, 429)},
    )
    def post(self, request: Request, site: str) -> Response:
        """404, 403, then what is wrong with the message."""
        if not Site.objects.filter(name=site).exists():
            raise Http404("There is no such site.")
        sender = principal(request)
        _check_site(sender, site)
        if not isinstance(request.data, dict):
            raise Refused(400, "Not valid", "An object is expected.")
        said = in_words(read_advertisement, request.data)
        count = SiteCount(said.numbers, said.counted_at, tuple(sorted(set(said.stations))), said.kind)
        try:
            advertise(site, count, f"{sender.name} {sender.prefix}")
        except RefusedAdvertisement as refused:
            problem = Problem("counted_at", "order" if refused.stale else "range", str(refused))
            raise Refused(409 if refused.stale else 422, BROKEN_RULES, str(refused), [problem]) from None
        return _shown(site)


def _check_site(sender: Principal, site: str) -> None:
    """Refused(403) with an enrolment of another site, one of no site, one for one VO, or that of an owner's private pilots."""
    if sender.private:
        raise Refused(403, "A private enrolment", f"The enrolment is for pilots of {sender.owner}; the site has one of its own.")
    if sender.site != site:
        told = f"is for {sender.site}, not for {site}" if sender.site else "names no site; make one that does"
        raise Refused(403, "Another site", f"The enrolment {told}.")
    if sender.vo:
        told = f"The enrolment is for jobs of {sender.vo}, the limits of a site hold for those of all VOs; use one for all."
        raise Refused(403, "For one VO", told)


def _shown(site: str) -> Response:
    told = advertised_sites([site]).get(site)
    if told is None:
        raise Http404("The site has never advertised itself, or there is no such site.")
    return Response(AdvertisementShown(document(told)).data)


def document(told: AdvertisedSite) -> dict[str, Any]:
    """A site's advertisement as it is shown."""
    state, most_s = told.state, max_age_s()
    return {
        "site": told.site,
        "kind": told.kind,
        "stations": told.stations,
        "counted_at": told.counted_at,
        "arrived_at": told.arrived_at,
        "age_s": told.age_s,
        "max_jobs": state.ad.max_jobs,
        "max_submitting_jobs": state.ad.max_submitting_jobs,
        "current_jobs": state.ad.current_jobs,
        "current_submitting_jobs": state.ad.current_submitting_jobs,
        "matched": state.matched,
        "cur_matches": state.cur_matches,
        "room": told.room(most_s),
        "why_no_room": told.why_no_room(most_s),
    }
