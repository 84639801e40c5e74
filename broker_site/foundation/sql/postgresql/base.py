"""The database backend; Django loads a backend's module `base`."""

from __future__ import annotations

import select
from typing import Any

from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection that has been idle is asked (`SELECT 1`) only where its socket has something to say.

    A server that ended or threw the session out has sent so, and what the kernel knows of a dead host shows there too. Django
    asks at the first statement of each request, which costs as much as a short verb.
    """

    prepared: set[str]
    """Names of the statements that the session has prepared."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """A session, which has prepared nothing yet."""
        self.prepared = set()
        return super().get_new_connection(conn_params)

    def plain_cursor(self) -> Any:
        """A cursor that gives rows as Django's do, without its wrapping, which costs as much as a short statement."""
        cursor = self.connection.cursor()
        cursor.tzinfo_factory = self.tzinfo_factory
        return cursor

    def close_if_health_check_failed(self) -> None:
        """Close it if it does not work any more, once a request."""
        if self.connection is None or not self.health_check_enabled or self.health_check_done:  # type: ignore[attr-defined,has-type]
            return
        if _is_quiet(self.connection):
            self.health_check_done = True
        else:
            super().close_if_health_check_failed()


def _is_quiet(connection: object) -> bool:
    """Whether nothing has come from the server since the last statement, no end of the connection either."""
    if connection.closed:  # type: ignore[attr-defined]
        return False
    look = select.poll()
    look.register(connection.fileno(), select.POLLIN)  # type: ignore[attr-defined]
    return not look.poll(0)
