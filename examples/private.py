"""A private system for an example: servers of its own and an empty database, Django set up."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from broker_site.roof.embedded import attached


@contextmanager
def empty_system(name: str) -> Iterator[None]:
    """The instance `name` for the time of a block, with an empty database.

    What an earlier run left in it is removed; a database that the environment names (DATABASE_URL) must be empty.
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "broker_site.settings")
    os.environ.setdefault("GRIDBROKER_PROFILE", "local")
    named = os.environ.get("DATABASE_URL")
    with attached(name, say=lambda line: print(line, file=sys.stderr)) as instance:
        if not (empty := instance.empty()) and named:
            raise SystemExit("the database of DATABASE_URL is not empty; this example would remove what is in it")
        os.environ.update(instance.services.environment())
        import django

        django.setup()
        from django.core.management import call_command

        if not empty:
            call_command("flush", verbosity=0, interactive=False)
        call_command("migrate", verbosity=0)
        yield
