"""The connection that pages read through: read-only, with a statement time-out (`settings.MONITORING_DATABASE`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db import connections
from psycopg2 import errorcodes

from broker_site.foundation.access.permissions import VoScope


def alias() -> str:
    """Name of the connection, for `using`."""
    return str(settings.MONITORING_DATABASE)


def rows(sql: str, parameters: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
    """The rows of one statement with named parameters."""
    with connections[alias()].cursor() as cursor:
        cursor.execute(sql, parameters or {})
        return cursor.fetchall()


def seen_by(scope: VoScope) -> dict[str, Any]:
    """Parameters of the condition `(%(everything)s OR vo = ANY(%(vos)s))`."""
    return {"everything": scope.everything, "vos": sorted(scope.names)}


def ran_too_long(error: BaseException) -> bool:
    return getattr(error.__cause__, "pgcode", None) == errorcodes.QUERY_CANCELED
