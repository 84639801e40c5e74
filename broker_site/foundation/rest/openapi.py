"""What the OpenAPI document tells beyond the serializers: refusals, authenticators, and what the interface is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_view, inline_serializer
from rest_framework import serializers

from broker_site.foundation.rest.plain_operations import add_plain_operations, token_schemes

View = TypeVar("View", bound=type)

FAULT = inline_serializer(
    "Fault",
    {
        "field": serializers.CharField(help_text="where: a path such as jobParameters[2].dataset"),
        "rule": serializers.CharField(help_text="which rule: required, unknown, type, range, ..."),
        "message": serializers.CharField(help_text="in words"),
    },
    many=True,
    required=False,
)

PROBLEM = inline_serializer(
    "Problem",
    {
        "type": serializers.CharField(),
        "title": serializers.CharField(help_text="the kind of refusal"),
        "status": serializers.IntegerField(),
        "detail": serializers.CharField(help_text="what to do about it"),
        "trace_id": serializers.CharField(help_text="names this call in the server's logs and in the audit"),
        "errors": FAULT,
    },
)

REASONS: Mapping[int, str] = {
    400: "The body or the query string is malformed.",
    401: "No credential, or one that is not accepted.",
    403: "The credential does not have the right.",
    404: "There is nothing here, or nothing that you may see.",
    409: "The state forbids it; the detail names the state and those that accept the command. For a pilot: the lease is over.",
    410: "What was asked can no longer be made from what is kept.",
    408: "The body did not come in time.",
    413: "The body is too long.",
    415: "The content type is none that is read here: application/json, where the operation names no other.",
    422: "The body breaks rules; errors has every fault.",
    429: "Too many requests; Retry-After says how long to wait.",
    503: "The database or the catalogue does not answer, or a filter took too long.",
}


def refusals(*statuses: int) -> dict[Any, OpenApiResponse]:
    """The refusals of an operation, 401 and 403 always among them."""
    listed = sorted({401, 403, *statuses})
    return {(status, "application/problem+json"): OpenApiResponse(PROBLEM, REASONS[status]) for status in listed}


def lists(summary: str, description: str, rows: type[serializers.BaseSerializer[Any]], *statuses: int) -> Callable[[View], View]:
    """Document the list of a view set; `statuses`: refusals beside 400, 401 and 403."""
    responses = {200: rows(many=True), **refusals(400, *statuses)}
    return extend_schema_view(list=extend_schema(summary=summary, description=description, responses=responses))


class BearerScheme(OpenApiAuthenticationExtension):
    target_class = "broker_site.foundation.access.rest.Bearer"
    name = "bearer"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {"type": "http", "scheme": "bearer", "description": "A user token."}


class SessionScheme(OpenApiAuthenticationExtension):
    """The session of the pages."""

    target_class = "broker_site.foundation.access.rest.Session"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {"type": "apiKey", "in": "cookie", "name": settings.SESSION_COOKIE_NAME}


ABOUT = """Tasks, their datasets and files, jobs, the decisions of the brokerage, and the grid.

Send `Authorization: Bearer <token>`; pages of the same site may use their session with its CSRF token. What belongs to a VO is
seen by whoever has a role in it; everything else is as if it were not there (404). Lists come in pages: `page_size` (at most
1000) and the `cursor` of the links `next` and `previous`; a query parameter that a list does not know is refused, one that is
empty, as forms send it, is as one that is left out. Every refusal is application/problem+json with `title`, `detail`, `trace_id`
and, where a body or query is at fault, `errors`. What is sent uses PanDA's names of task parameters; what is read has the names
of the database. Times are UTC, sizes in bytes unless the field says otherwise. Pilots have their own verbs (`/api/v1/pilots/`,
`/api/v1/jobs/<id>/heartbeat/` and `report/`) and tokens: of an enrolment, of a pilot, of a job. There, null is as good as a field
that is left out, and a field that is not known changes nothing."""
"""Description of the whole interface."""


def describe(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """Hook of drf-spectacular: put in the description, and the views that are not REST framework's."""
    result["info"]["description"] = ABOUT
    result["components"]["securitySchemes"] |= token_schemes()
    add_plain_operations(result, REASONS)
    for path, item in result["paths"].items():
        for operation in item.values():
            _tell_what_any_takes(operation, result["components"]["schemas"])
            _tell_what_any_answers(operation, named="{" in path)
    return result


def _tell_what_any_takes(operation: dict[str, Any], schemas: Mapping[str, Any]) -> None:
    """That a body is needed where something in it is, and that a query parameter that is not needed may be empty."""
    for media in operation.get("requestBody", {}).get("content", {}).values():
        schema = media["schema"]
        if schemas.get(schema.get("$ref", "").rpartition("/")[2], schema).get("required"):
            operation["requestBody"]["required"] = True
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "query" and not parameter.get("required"):
            parameter["allowEmptyValue"] = True


def _tell_what_any_answers(operation: dict[str, Any], *, named: bool) -> None:
    """The refusals that stand before every view: of an address or a body that cannot be read, of one with names (`named`) that
    there is not, and of a database that is away.
    """
    before = (400, 503, *((404,) if named else ()), *((413, 415) if "requestBody" in operation else ()))
    problem = {"schema": {"$ref": "#/components/schemas/Problem"}}
    for status in before:
        operation["responses"].setdefault(
            str(status), {"description": REASONS[status], "content": {"application/problem+json": problem}}
        )
    operation["responses"] = dict(sorted(operation["responses"].items()))
