"""`/api/v1/bulk/`: one act on many tasks or jobs, by their numbers or by a filter, carried out in the background."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.views.decorators.http import require_POST
from drf_spectacular.utils import extend_schema, extend_schema_field, inline_serializer
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.access.guards import page_requires
from broker_site.foundation.access.jsonbody import MAX_ITEMS
from broker_site.foundation.access.permissions import visible_vos
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.access.rest import principal
from broker_site.foundation.kernel import clock
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import NOT_BLANK
from broker_site.foundation.rest.openapi import lists, refusals
from broker_site.foundation.rest.paging import LARGEST_ID, NewestFirst
from brokerage.api.filtering import JobFilter
from brokerage.ledger.bulk import ACTS, Wish, start, stop
from brokerage.models import BulkAction, BulkTarget, Job
from brokerage.queries.bulk_actions import actions_of, may_stop
from workqueues.api.filtering import TaskFilter
from workqueues.api.serializers import StrictBody
from workqueues.models import Task
from workqueues.rules.task.changes import CHANGES

READ, MAKE = "bulk:read", "bulk:make"
MOST = 20_000
"""Targets of one act."""
SAMPLE = 10
"""Targets that a dry run names."""
MORE_ALLOWED = 1.05
"""By how much more rows than were seen may match; beyond, the caller is asked again."""
FILTERS: Mapping[str, Any] = {"tasks": TaskFilter, "jobs": JobFilter}


class BulkShown(serializers.ModelSerializer[BulkAction]):
    """An act and how far it is."""

    who = serializers.CharField(source="user.username")

    class Meta:
        model = BulkAction
        fields = (
            "id", "of", "act", "options", "comment", "who", "selection", "moment", "at", "stopped_at", "stopped_by", "ended_at",
            "n", "done", "skipped", "not_done",
        )  # fmt: skip
        read_only_fields = fields


class TargetShown(serializers.ModelSerializer[BulkTarget]):
    """One target and what became of it."""

    class Meta:
        model = BulkTarget
        fields = ("id", "target_id", "outcome", "said")
        read_only_fields = fields


_TEXT = {"type": "string", "pattern": NOT_BLANK}
_VALUE = (_TEXT, {"type": "number"}, {"type": "boolean"})
_SEVERAL = {"type": "array", "minItems": 1, "items": {"anyOf": _VALUE}}


@extend_schema_field({"type": "object", "minProperties": 1, "additionalProperties": {"anyOf": (*_VALUE, _SEVERAL)}})
class WantedField(serializers.DictField):
    """Filters with their values; a value that says nothing would mean any, and so is refused by its name."""


class BulkAsked(StrictBody):
    """What to do, and with which rows: `ids` or `filter`."""

    of = serializers.ChoiceField(choices=sorted(ACTS))
    act = serializers.ChoiceField(
        choices=sorted({act for acts in ACTS.values() for act in acts}), help_text="of jobs: kill, retry"
    )
    ids = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=LARGEST_ID), required=False, max_length=MAX_ITEMS, min_length=1
    )
    filter = WantedField(required=False, help_text="filters of the list of tasks or jobs, at least one")
    count = serializers.IntegerField(
        required=False, min_value=0, help_text="how many you saw; needed with a filter: 409 where more than 5 % more match"
    )
    moment = serializers.DateTimeField(required=False, help_text="when you saw them: what came later is left alone")
    priority = serializers.IntegerField(required=False, help_text="the new one, for the act priority")
    comment = serializers.CharField(max_length=200, default="", allow_blank=True)
    dry_run = serializers.BooleanField(default=False, help_text="true: nothing is begun, the answer says how many match")


class StopAsked(StrictBody):
    """Why it is stopped."""

    comment = serializers.CharField(max_length=200, default="", allow_blank=True)


BEGUN = inline_serializer(
    "BulkDryRun",
    {
        "of": serializers.CharField(),
        "act": serializers.CharField(),
        "n": serializers.IntegerField(help_text="how many match: the `count` to begin with"),
        "moment": serializers.DateTimeField(help_text="when they were looked at: the `moment` to begin with"),
        "ids": serializers.ListField(child=serializers.IntegerField(), help_text=f"the first {SAMPLE} of them"),
    },
)


@extend_schema(tags=["tasks"])
@lists(
    "List bulk actions",
    "Your acts on many tasks or jobs, newest first; operators see those within their VOs, superusers all.",
    BulkShown,
)
class BulkActions(mixins.ListModelMixin, viewsets.GenericViewSet[BulkAction]):
    queryset = BulkAction.objects.none()
    serializer_class = BulkShown
    pagination_class = NewestFirst
    permissions: ClassVar = {"list": READ, "retrieve": READ, "targets": READ, "create": MAKE, "stop": MAKE}

    def get_queryset(self) -> QuerySet[BulkAction]:
        return actions_of(principal(self.request)).select_related("user")

    @extend_schema(summary="Read a bulk action", responses={200: BulkShown, **refusals(404)})
    def retrieve(self, request: Request, action_id: int) -> Response:
        """How far it is."""
        return Response(BulkShown(action_of(principal(request), action_id)).data)

    @extend_schema(summary="List the targets of a bulk action", responses={200: TargetShown(many=True), **refusals(404)})
    def targets(self, request: Request, action_id: int) -> Response:
        """Page by page, newest first."""
        action = action_of(principal(request), action_id)
        targets: Any = BulkTarget.objects.filter(action=action)
        page: Any = self.paginate_queryset(targets)
        return self.get_paginated_response(TargetShown(page, many=True).data)

    @extend_schema(
        summary="Do something with many tasks or jobs",
        description="Each as if it was asked for alone, with your rights, in the background: the answer is the act, which says "
        "how far it is; its targets say what became of each and why any was skipped. `dry_run` only tells how many match.",
        request=BulkAsked,
        responses={200: BEGUN, 202: BulkShown, **refusals(400, 409, 413, 415, 422)},
    )
    def create(self, request: Request) -> Response:
        """422 with every fault, 409 where more match than were seen."""
        body = BulkAsked(data=request.data)
        body.is_valid(raise_exception=True)
        caller = principal(request)
        wish = wish_of(caller, body.validated_data)
        if body.validated_data["dry_run"]:
            told = {"of": wish.of, "act": wish.act, "n": len(wish.ids), "moment": wish.moment}
            return Response({**told, "ids": wish.ids[:SAMPLE]})
        action = start(caller, wish)
        shown = BulkShown(action_of(caller, action.id)).data
        return Response(shown, status.HTTP_202_ACCEPTED, headers={"Location": reverse("bulk-detail", args=[action.id])})

    @extend_schema(
        summary="Stop a bulk action",
        description="What is done stays done, what is being done ends, the rest is told as not done. By whoever asked for it, or "
        "an operator of all VOs in which it may act.",
        request=StopAsked,
        responses={200: BulkShown, **refusals(400, 403, 404, 409, 415, 422)},
    )
    def stop(self, request: Request, action_id: int) -> Response:
        """404, 403, then 409 where it is over."""
        caller = principal(request)
        action = action_of(caller, action_id)
        body = StopAsked(data=request.data)
        body.is_valid(raise_exception=True)
        stop_as(caller, action, body.validated_data["comment"])
        return Response(BulkShown(action_of(caller, action_id)).data)


def action_of(caller: Principal, action_id: int) -> BulkAction:
    """404 where there is none that the caller may see."""
    found = actions_of(caller).select_related("user").filter(pk=action_id).first() if action_id <= LARGEST_ID else None
    if found is None:
        raise Http404("There is no such bulk action.")
    return found


def wish_of(caller: Principal, said: Mapping[str, Any]) -> Wish:
    """What is asked for, with the numbers of its targets. Refused: 422 with every fault, 409 for more than were seen."""
    if problems := list(_faults(said)):
        raise Refused(422, "The act breaks rules", "Nothing was done; errors has each fault.", problems)
    moment: datetime = said.get("moment") or clock.now()
    rows = _selected(caller, said, moment)
    ids = list(rows.order_by("id").values_list("id", flat=True)[: MOST + 1])
    if len(ids) > MOST:
        raise _bad("filter", "range", f"more than {MOST} {said['of']} match: narrow the filter")
    if not ids:
        raise _bad("filter" if "filter" in said else "ids", "none", f"no {said['of']} that you may see match")
    seen = len(ids) if said.get("dry_run") else said.get("count", len(said.get("ids", ())))
    if len(ids) > seen * MORE_ALLOWED:
        problem = Problem(
            "count", "more", f"{len(ids)} {said['of']} match now, more than 5 % above the {seen} that you saw: ask again"
        )
        raise Refused(409, "More match now", f"Nothing was done: {problem.message}.", [problem])
    return Wish(said["of"], said["act"], ids, moment, said.get("filter"), said.get("comment", ""), said.get("priority"))


def _faults(said: Mapping[str, Any]) -> Any:
    if said["act"] not in ACTS[said["of"]]:
        yield Problem("act", "choice", f"with {said['of']} there is: {', '.join(ACTS[said['of']])}")
    if ("ids" in said) == ("filter" in said):
        yield Problem("ids", "rule", "give either ids or filter")
    if "filter" in said and "count" not in said and not said.get("dry_run"):
        yield Problem("count", "required", "with a filter: how many you saw")
    if said.get("moment") and said["moment"] > clock.now():
        yield Problem("moment", "range", "a time that is over")
    if said["act"] == "priority":
        _, problems = CHANGES["priority"].read({"priority": said.get("priority")})
        yield from problems
    elif "priority" in said:
        yield Problem("priority", "rule", "only the act priority has one")


def _selected(caller: Principal, said: Mapping[str, Any], moment: datetime) -> QuerySet[Any]:
    """The rows that the caller sees and that were there at the moment."""
    rows: QuerySet[Any]
    if said["of"] == "tasks":
        rows = Task.objects.filter(visible_vos(caller).q(), creation_date__lte=moment)
    else:
        rows = Job.objects.filter(visible_vos(caller, "job:read").q("spec__vo"), spec__created_at__lte=moment)
    if "ids" in said:
        return rows.filter(id__in=set(said["ids"]))
    wanted = said["filter"]
    filters = FILTERS[said["of"]]
    unknown = [name for name in wanted if name not in filters.base_filters]
    if unknown or not wanted:
        known = ", ".join(filters.base_filters)
        if not unknown:
            raise _bad("filter", "none", f"name at least one filter of {known}")
        raise _bad(f"filter.{unknown[0][:40]}", "unknown", f"no filter of that name; there are: {known}")
    if nothing := [name for name, value in wanted.items() if _blank(value)]:
        raise _bad(f"filter.{nothing[0]}", "blank", f"{nothing[0]} has no value, which would mean any: leave it out then")
    if wrong := [name for name, value in wanted.items() if not all(isinstance(v, str | int | float) for v in _listed(value))]:
        raise _bad(f"filter.{wrong[0]}", "type", f"{wrong[0]} takes a text, a number, true or false, or a list of them")
    query = QueryDict(urlencode({k: v if isinstance(v, list) else str(v) for k, v in wanted.items()}, doseq=True))
    found = filters(query, queryset=rows)
    if not found.form.is_valid():
        raise Refused(
            422,
            "The filter cannot be used",
            "Nothing was done.",
            [Problem(f"filter.{name}", "value", " ".join(map(str, errors))) for name, errors in found.form.errors.items()],
        )
    chosen: QuerySet[Any] = found.qs
    return chosen


def _blank(value: Any) -> bool:
    """Whether a list would take it for no filter at all: an empty variable of a script must not widen an act."""
    return not value or any(map(_blank, value)) if isinstance(value, list) else value is None or not str(value).strip()


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _bad(field: str, rule: str, message: str) -> Refused:
    return Refused(422, "The act breaks rules", f"Nothing was done: {message}.", [Problem(field, rule, message)])


def stop_as(caller: Principal, action: BulkAction, comment: str) -> None:
    """Refused: 403 for what somebody else's is, 409 for what is over."""
    if not may_stop(caller, action):
        raise Refused(403, "Not permitted", "Whoever asked for an act may stop it, and operators of the VOs that it is for.")
    stop(caller, action, clock.now(), comment)


@page_requires(MAKE)
@require_POST
def stop_form(request: HttpRequest, action_id: int) -> HttpResponse:
    """Stop it and go back to its page."""
    caller = authenticate(request)
    try:
        stop_as(caller, action_of(caller, action_id), request.POST.get("comment", "")[:200])
        messages.success(request, "Stopped. What was done stays done.")
    except Refused as refused:
        messages.error(request, refused.detail)
    return HttpResponseRedirect(reverse("page-bulk", args=[action_id]))


@page_requires(MAKE)
@require_POST
def start_form(request: HttpRequest) -> HttpResponse:
    """Begin what the page of a selection asked for and go to its page; where more match now, back to be asked again."""
    sent = request.POST
    back = f"{reverse('page-bulk-new')}?{sent.get('back', '')}"
    said: dict[str, Any] = {name: sent.get(name, "") for name in ("of", "act", "comment")}
    said["comment"] = said["comment"][:200]
    try:
        if said["of"] not in ACTS:
            raise _bad("of", "choice", "tasks or jobs")
        if sent.get("priority"):
            said["priority"] = _whole(sent["priority"], "priority")
        said["moment"] = _moment(sent.get("moment", ""))
        said["count"] = _whole(sent.get("count", ""), "count")
        if ids := sent.getlist("id"):
            said["ids"] = [_whole(text, "id") for text in ids]
        else:
            query = QueryDict(sent.get("filter", ""))
            said["filter"] = {name: query.getlist(name) for name in query}
        caller = authenticate(request)
        action = start(caller, wish_of(caller, said))
    except Refused as refused:
        messages.error(request, refused.detail)
        return HttpResponseRedirect(back)
    messages.success(request, f"Begun with {action.n} {action.of}.")
    return HttpResponseRedirect(reverse("page-bulk", args=[action.id]))


def _moment(text: str) -> datetime:
    """The time that the page of the selection has sent; now where it has sent none."""
    field = serializers.DateTimeField()
    try:
        return field.run_validation(text) if text else clock.now()
    except serializers.ValidationError:
        raise _bad("moment", "type", "moment is to be a time") from None


def _whole(text: str, field: str) -> int:
    digits = text.strip().removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 19):
        raise _bad(field, "type", f"{field} is to be a whole number")
    return int(text)
