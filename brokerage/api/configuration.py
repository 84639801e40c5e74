"""`/api/v1/config/`: the keys with what holds, and the sets of changes: tried, applied, listed, taken back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.db.models import Prefetch, QuerySet
from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import mixins, status, viewsets
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from broker_site.foundation.access.auditing import audit
from broker_site.foundation.access.authentication import shows_bearer
from broker_site.foundation.access.permissions import may, visible_vos
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.access.rest import principal
from broker_site.foundation.access.sessions import password_is_fresh
from broker_site.foundation.gdpconfig.changesets import CONFIG, Draft, Line
from broker_site.foundation.gdpconfig.effects import effects_of
from broker_site.foundation.gdpconfig.keys import BadConfig
from broker_site.foundation.gdpconfig.listing import effective
from broker_site.foundation.gdpconfig.models import Change, ChangeSet, Revision
from broker_site.foundation.gdpconfig.store import apply, preview, revert_draft
from broker_site.foundation.gdpconfig.visible_lines import hidden, seen_lines, seen_sets
from broker_site.foundation.kernel import clock
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.rest.openapi import lists, refusals
from broker_site.foundation.rest.paging import LARGEST_ID, NewestFirst
from brokerage.api.configuration_bodies import (
    DRY_RUN,
    FIRST_LINES,
    ChangesAsked,
    ChangeSetListed,
    ChangeSetShown,
    ConfigurationChangesAsked,
    ConfigurationShown,
    ReasonAsked,
    asked_lines,
    dry_run_document,
)
from brokerage.api.filtering import ChangeSetFilter
from brokerage.queries.config_replay import replayed
from brokerage.queries.steering_trial import steering_trial
from brokerage.queries.submission_trial import submission_trial
from brokerage.queries.what_if import reading_only
from brokerage.rules.submission.site_states import SITE_LINE

READ, EDIT = "config:read", "change:draft"
"""Who may draft at all; each line then asks for a right of its own."""
RIGHTS = {CONFIG: "config:edit", "share": "share:edit", "work_queue": "share:edit", SITE_LINE: "config:edit"}
"""Kind of a line -> the right to it; of rows in their VO, of keys and sites in none."""
OF_NO_VO = (CONFIG, SITE_LINE)
FILTERS = ("component", "q", "overridden")
BODY_LIMIT = 5_000_000


class Configuration(APIView):
    permissions = {"get": READ}

    @extend_schema(
        tags=["configuration"],
        operation_id="config_list",
        summary="List configuration keys",
        description="Every key with type, range, default, overrides and the value that holds, by app and component.",
        parameters=[
            OpenApiParameter("component", str, description="only keys of this component"),
            OpenApiParameter("q", str, description="only keys with all of these words in key or documentation"),
            OpenApiParameter("overridden", bool, description="true: only keys with an override"),
        ],
        responses={200: ConfigurationShown, **refusals(400)},
    )
    def get(self, request: Request) -> Response:
        """400 for a filter that there is not."""
        sent = request.query_params
        wrong = [
            Problem(name[:100], "unknown", f"not a filter of this list; there are: {', '.join(FILTERS)}")
            for name in sent
            if name not in FILTERS
        ]
        asked = {name: str(value) for name, value in sent.items() if value}
        if asked.get("overridden", "true") not in ("true", "false"):
            wrong.append(Problem("overridden", "choice", "true or false"))
        if wrong:
            raise Refused(400, "Not valid", "; ".join(f"{p.field}: {p.message}" for p in wrong), wrong)
        revision = Revision.objects.filter(id=1).values_list("number", flat=True).first() or 0
        rows = [
            row
            for row in effective()
            if ("component" not in asked or row.component == asked["component"])
            and row.says(asked.get("q", ""))
            and ("overridden" not in asked or bool(row.settings) == (asked["overridden"] == "true"))
        ]
        return Response(ConfigurationShown({"revision": revision, "results": rows}).data)


@extend_schema(tags=["configuration"])
@lists("List change sets", "What was changed in the configuration, by whom and why; newest first.", ChangeSetListed)
class ConfigurationChanges(mixins.ListModelMixin, viewsets.GenericViewSet[ChangeSet]):
    queryset = ChangeSet.objects.none()
    serializer_class = ChangeSetListed
    pagination_class = NewestFirst
    filterset_class = ChangeSetFilter
    permissions = {"list": READ, "retrieve": READ, "create": EDIT, "revert": EDIT}
    body_limit = BODY_LIMIT

    def get_queryset(self) -> QuerySet[ChangeSet]:
        scope = visible_vos(principal(self.request), READ)
        lines = Change.objects.filter(seen_lines(scope)).order_by("id")
        return seen_sets(scope).prefetch_related(Prefetch("lines", lines[:FIRST_LINES], to_attr="first_lines"))

    @extend_schema(summary="Read a change set", responses={200: ChangeSetShown, **refusals(404)})
    def retrieve(self, request: Request, revision: int) -> Response:
        """One set with its lines."""
        return Response(ChangeSetShown(set_of(principal(request), revision)).data)

    @extend_schema(
        summary="Change the configuration",
        description="Applies all lines or none, with one new revision; answers 200 with revision null where nothing differs. "
        "`dry_run`: everything is checked, nothing written, and kept decisions of the brokerage are taken again with the old and "
        "the new values. 409 where somebody else has changed what a line rests on. A session has to have given its password in "
        "the last 15 minutes.",
        request=ConfigurationChangesAsked,
        responses={200: DRY_RUN, 201: ChangeSetShown, **refusals(400, 409, 413, 415, 422)},
    )
    def create(self, request: Request) -> Response:
        """422 with every fault by its line, then 409 for lines that rest on what is no longer so."""
        body = ChangesAsked(data=request.data)
        body.is_valid(raise_exception=True)
        said, caller = body.validated_data, principal(request)
        draft = Draft(asked_lines(said["lines"]), caller.name, said["reason"], "rest", ticket=said["ticket"], base=said["base"])
        return _answered(request, caller, draft, dry_run=said["dry_run"])

    @extend_schema(
        summary="Take a change set back",
        description="Brings back what its lines found, by a new set that names it. 409 where one was changed since.",
        request=ReasonAsked,
        responses={200: DRY_RUN, 201: ChangeSetShown, **refusals(400, 404, 409, 415, 422)},
    )
    def revert(self, request: Request, revision: int) -> Response:
        """404, then 422, then 409; `dry_run` as for a change."""
        caller = principal(request)
        made = whole_set_of(caller, revision)
        body = ReasonAsked(data=request.data)
        body.is_valid(raise_exception=True)
        said = body.validated_data
        try:
            draft = revert_draft(made, who=caller.name, why=said["reason"], source="rest")
        except BadConfig as bad:
            raise refused(bad) from None
        return _answered(request, caller, draft, dry_run=said["dry_run"])


def set_of(caller: Principal, revision: int) -> ChangeSet:
    """With the lines that the caller sees; 404 where there is none."""
    scope = visible_vos(caller, READ)
    lines = Change.objects.filter(seen_lines(scope)).order_by("id")
    sets = seen_sets(scope).prefetch_related(Prefetch("lines", lines))
    made = sets.filter(revision=revision).first() if revision <= LARGEST_ID else None
    if made is None:
        raise Http404("There is no such change set.")
    return made


def whole_set_of(caller: Principal, revision: int) -> ChangeSet:
    """The same with all of its lines, to be taken back: 404 where the caller sees none of them, Refused(403) where not all."""
    made = set_of(caller, revision)
    refuse_unseen(made.n_hidden)  # type: ignore[attr-defined]
    return ChangeSet.objects.get(pk=made.pk)


def refused(bad: BadConfig) -> Refused:
    """409 where all that is wrong is that others were faster, else 422."""
    if {problem.rule for problem in bad.problems} == {"stale"}:
        return Refused(
            409, "Changed meanwhile", "Somebody else has changed what this rests on; nothing was changed.", bad.problems
        )
    return Refused(422, "The change breaks rules", "Nothing was changed; errors has each line that is refused.", bad.problems)


def refuse_unseen(n: int) -> None:
    """Refused(403) where somebody would decide on lines that he may not see; of these nothing is told."""
    if n:
        message = f"{n} of its lines are for VOs that you may not look into: somebody who may has to"
        raise Refused(403, "Not allowed", f"Nothing was changed: {message}.", [Problem("lines", "right", message)])


def refuse_lines(caller: Principal, lines: Sequence[Line]) -> None:
    """Refused(403) where somebody has no right to a line."""
    for number, line in enumerate(lines):
        right = RIGHTS.get(line.kind, RIGHTS[CONFIG])
        if not may(caller, right, None if line.kind in OF_NO_VO else line.vo):
            where = f" in {line.vo or 'all VOs'}" if line.kind not in OF_NO_VO else ""
            message = f"{line.place} asks for the right {right}{where}"
            problem = Problem(f"lines[{number}]", "right", message)
            raise Refused(403, "Not allowed", f"Nothing was changed: {message}.", [problem])


def apply_as(caller: Principal, draft: Draft) -> ChangeSet | None:
    """Apply and audit in one transaction. Raises BadConfig, and Refused(403) for what the caller has no right to."""
    refuse_lines(caller, draft.lines)
    with transaction.atomic():
        made = apply(draft)
        if made is not None:
            after = {"revision": made.revision, "lines": made.lines.count(), "reverts": draft.reverts}
            audit("config.change", caller, f"configuration revision {made.revision}", reason=made.why, after=after)
    return made


def dry_run_of(draft: Draft) -> dict[str, Any]:
    """What would be; raises BadConfig. In a transaction that cannot write."""
    with reading_only():
        steps = preview(draft)
        effects = effects_of(steps)
        replay = replayed(effects.before, effects.after) if effects.of_keys else None
        submission = submission_trial(steps, effects.before, effects.after)
        return dry_run_document(effects, replay, steering_trial(steps, clock.now()), submission)


def _answered(request: Request, caller: Principal, draft: Draft, *, dry_run: bool) -> Response:
    if unseen := list(hidden(visible_vos(caller, READ), draft.lines)):
        if not dry_run and draft.reverts is None:
            refuse_lines(caller, draft.lines)  # what somebody named himself is told by its name
        raise Refused(403, "Not allowed", f"Nothing was changed: {unseen[0].field}: {unseen[0].message}.", unseen)
    try:
        if dry_run:
            return Response(dry_run_of(draft))
        preview(draft)  # what is wrong is told before the password is asked for
        if not shows_bearer(request._request) and not password_is_fresh(request._request.session):
            raise Refused(403, "Password needed", "Sign in again: configuration is changed within 15 minutes of the password.")
        made = apply_as(caller, draft)
    except BadConfig as bad:
        raise refused(bad) from None
    if made is None:
        return Response({"revision": None, "lines": []})
    return Response(ChangeSetShown(set_of(caller, made.revision)).data, status.HTTP_201_CREATED)
