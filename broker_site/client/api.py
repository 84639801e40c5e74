"""`Client`: one server, and what can be asked of it."""

from __future__ import annotations

import os
from typing import Any

from broker_site.client import credentials
from broker_site.client.bulk import Bulk
from broker_site.client.configuration import Configuration
from broker_site.client.connection import Connection
from broker_site.client.grid import Datasets, Queues, Shares
from broker_site.client.jobs import Jobs
from broker_site.client.outputs import Outputs
from broker_site.client.own_tokens import Tokens
from broker_site.client.tasks import Tasks


class Client:
    """A server with the token of a user. `Client()` takes what the environment says, else what `broker login` kept.

    May be used by several threads. Nothing is asked of the server here.
    """

    def __init__(self, url: str | None = None, token: str | None = None, connection: Connection | None = None) -> None:
        if connection is None:
            found = credentials.find(os.environ) if url is None else None
            connection = Connection(found.url if found else url or "", token or (found.token if found else ""))
        self.connection = connection
        self.tasks, self.jobs = Tasks(connection), Jobs(connection)
        self.queues, self.shares, self.datasets = Queues(connection), Shares(connection), Datasets(connection)
        self.outputs = Outputs(connection)
        self.config, self.tokens, self.bulk = Configuration(connection), Tokens(connection), Bulk(connection)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The document of any address: below /api/v1/, or as it is where it begins with a slash."""
        return self.connection.ask(method, path, body=body).json()
