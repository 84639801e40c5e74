"""`/api/v1/saved-views/`: filters of lists under a name, one's own or shared with a VO; and the forms of the pages."""

from __future__ import annotations

from collections.abc import Mapping

from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.views.decorators.http import require_POST
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_field
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.access.guards import page_requires
from broker_site.foundation.access.permissions import may, visible_vos
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.access.rest import principal
from broker_site.foundation.kernel.registry import nearest
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.rest.filtering import AnyOf, ListFilter, NameFilter
from broker_site.foundation.rest.openapi import lists, refusals
from broker_site.foundation.rest.paging import NewestFirst, one_of
from brokerage.api.filtering import FILTERS
from brokerage.ledger.saved_views import NotSaved, delete_view, save_view
from brokerage.models import SavedView
from brokerage.queries.saved_views import visible_views
from workqueues.api.serializers import StrictBody

READ, SAVE = "view:read", "view:save"
LONGEST = 4000
"""Characters of a filter as an address."""
ALSO = ("window",)
"""Parameters of lists that a view keeps beside the filters."""


class SavedViewFilter(ListFilter):
    list = AnyOf(tuple(FILTERS), field_name="list_name")
    name = NameFilter()
    owner = NameFilter()
    vo = NameFilter()


class SavedViewShown(serializers.ModelSerializer[SavedView]):
    """A view."""

    list = serializers.CharField(source="list_name", read_only=True, help_text=f"one of {', '.join(FILTERS)}")

    class Meta:
        model = SavedView
        fields = ("id", "list", "name", "query", "owner", "vo", "created_at")
        read_only_fields = fields


@extend_schema_field({"type": "string", "maxLength": LONGEST, "pattern": "[^&=]=[^&]"})
class QueryField(serializers.CharField):
    """The query of an address; at least one filter in it has a value."""


class SavedViewAsked(StrictBody):
    """A view to keep."""

    list = serializers.ChoiceField(choices=list(FILTERS), help_text="which list it filters")
    name = serializers.CharField(max_length=60)
    query = QueryField(
        max_length=LONGEST, help_text="filter as the address of the list has it, such as status=running&age=2h; at least one"
    )
    vo = serializers.CharField(
        max_length=32, default="", allow_blank=True, help_text="VO with which it is shared; empty: with nobody"
    )


@extend_schema(tags=["views"])
@lists("List saved views", "Your own, and those that are shared with your VOs, newest first.", SavedViewShown)
class SavedViews(mixins.ListModelMixin, viewsets.GenericViewSet[SavedView]):
    queryset = SavedView.objects.none()
    serializer_class = SavedViewShown
    pagination_class = NewestFirst
    filterset_class = SavedViewFilter
    permissions = {"list": READ, "retrieve": READ, "create": SAVE, "destroy": SAVE}

    def get_queryset(self) -> QuerySet[SavedView]:
        caller = principal(self.request)
        return visible_views(caller.name, visible_vos(caller, READ))

    @extend_schema(summary="Read a saved view", responses={200: SavedViewShown, **refusals(404)})
    def retrieve(self, request: Request, view_id: int) -> Response:
        """One view."""
        return Response(SavedViewShown(one_of(self.get_queryset(), view_id, "view")).data)

    @extend_schema(
        summary="Save a view",
        description="Keeps a filter of a list under a name, for yourself or, with `vo`, for everybody in that VO.",
        request=SavedViewAsked,
        responses={201: SavedViewShown, **refusals(400, 413, 415, 422)},
    )
    def create(self, request: Request) -> Response:
        """403 without a role in the VO, 422 for a filter that the list does not have, or a name that is taken."""
        body = SavedViewAsked(data=request.data)
        body.is_valid(raise_exception=True)
        made = _saved(principal(request), body.validated_data)
        location = request.build_absolute_uri(f"{request.path}{made.id}/")
        return Response(SavedViewShown(made).data, status.HTTP_201_CREATED, headers={"Location": location})

    @extend_schema(
        summary="Delete a saved view",
        responses={204: OpenApiResponse(description="It is deleted."), **refusals(404)},
    )
    def destroy(self, request: Request, view_id: int) -> Response:
        """404 for a view that the caller may not see, 403 for one of somebody else."""
        caller = principal(request)
        delete_view(caller, _own(caller, one_of(self.get_queryset(), view_id, "view")))
        return Response(status=status.HTTP_204_NO_CONTENT)


def _saved(caller: Principal, said: Mapping[str, str]) -> SavedView:
    """Refused: 403 without a role in the VO, 422."""
    if said["vo"] and not may(caller, SAVE, said["vo"]):
        raise Refused(403, "Not permitted", f"{caller.name} has no role in VO {said['vo'][:32]}.")
    query, wrong = tidy_query(said["list"], said["query"])
    if wrong:
        raise Refused(422, "The filter breaks rules", "; ".join(f"{p.field}: {p.message}" for p in wrong)[:1000], wrong)
    try:
        return save_view(caller, said["list"], said["name"], query, said["vo"])
    except NotSaved as refused:
        raise Refused(422, "Not saved", str(refused), [Problem(refused.field, refused.rule, str(refused))]) from None


def tidy_query(list_name: str, query: str) -> tuple[str, list[Problem]]:
    """The filters of a query under their own names, and what is wrong with them; place, size and what is blank is left out."""
    filters = FILTERS[list_name]
    sent = filters.renamed(QueryDict(query.removeprefix("?")))
    for name in ("cursor", "limit", "page_size", "live", "format"):
        sent.pop(name, None)
    known = (*filters.base_filters, *ALSO)
    wrong = [Problem(name[:100], "unknown", _unknown(name, known)) for name in sent if name not in known]
    form = filters(sent, queryset=SavedView.objects.none()).form
    for name, errors in form.errors.as_data().items():
        wrong.append(Problem(name, errors[0].code or "value", " ".join(m for error in errors for m in error.messages)))
    kept = QueryDict(mutable=True)
    for name in known:
        if sent.get(name) and (name in ALSO or form.cleaned_data.get(name) is not None):
            kept[name] = str(sent[name])
    tidy = kept.urlencode()
    if not kept and not wrong:
        wrong.append(Problem("query", "none", "names no filter with a value, as in status=running"))
    elif len(tidy) > LONGEST:
        wrong.append(Problem("query", "length", f"as an address it has {len(tidy)} characters, more than {LONGEST}"))
    if "\0" in sent.get("window", ""):
        wrong.append(Problem("window", "characters", "a window has no NUL"))
    return tidy, wrong


def _unknown(name: str, known: tuple[str, ...]) -> str:
    near = nearest(name, known)
    return "not a filter of this list" + (f"; the nearest one is {near}" if near else "")


def _own(caller: Principal, view: SavedView) -> SavedView:
    """The view. Refused(403) where it is somebody else's."""
    if view.owner != caller.name and not caller.superuser:
        raise Refused(403, "Not permitted", f"The view belongs to {view.owner}.")
    return view


@page_requires(SAVE)
@require_POST
def save_form(request: HttpRequest, list_name: str) -> HttpResponse:
    """Keep the filter of a page under a name, and go back to it; what is wrong is told there."""
    if list_name not in FILTERS:
        raise Http404(f"There is no list {list_name[:60]}.")
    query = request.POST.get("query", "")[:LONGEST]
    body = SavedViewAsked(data={"list": list_name, **{name: request.POST.get(name, "") for name in ("name", "query", "vo")}})
    try:
        if not body.is_valid():
            faults = "; ".join(f"{name}: {' '.join(map(str, texts))}" for name, texts in body.errors.items())
            raise Refused(422, "Not valid", faults)
        made = _saved(authenticate(request), body.validated_data)
    except Refused as refused:
        messages.error(request, f"The view is not saved. {refused.detail}")
    else:
        query = made.query
        messages.success(request, f"The view {made.name} is saved.")
    return HttpResponseRedirect(f"/{list_name}/?{QueryDict(query.removeprefix('?')).urlencode()}")


@page_requires(SAVE)
@require_POST
def delete_form(request: HttpRequest, view_id: int) -> HttpResponse:
    """Delete a view and go to its list."""
    caller = authenticate(request)
    view = one_of(visible_views(caller.name, visible_vos(caller, READ)), view_id, "view")
    try:
        delete_view(caller, _own(caller, view))
    except Refused as refused:
        messages.error(request, refused.detail)
    else:
        messages.success(request, f"The view {view.name} is deleted.")
    return HttpResponseRedirect(f"/{view.list_name}/")
