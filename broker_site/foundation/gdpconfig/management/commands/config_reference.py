"""`manage.py config_reference`: every declared configuration key as a Markdown page; needs no database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from django.core.management.base import BaseCommand

from broker_site.foundation.gdpconfig import keys
from broker_site.foundation.gdpconfig.keys import APP, Key


class Command(BaseCommand):
    help = "Print every configuration key with type, range, default and documentation, as Markdown."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write("\n".join(reference(keys.KEYS)))


def reference(declared: Iterable[Key]) -> Iterator[str]:
    yield "# Configuration keys"
    yield ""
    yield "Read by `gdpconfig`; overridden in the admin, per VO or for all. Parts in angle brackets are filled in when read."
    for (app, component), group in groupby(sorted(declared, key=_place), key=_place):
        yield ""
        yield f"## {component}" if app == APP else f"## {component} (app {app})"
        yield ""
        yield "| key | type | default | range | meaning |"
        yield "|---|---|---|---|---|"
        for key in group:
            kind = f"{key.type}, {key.unit}" if key.unit else key.type
            cells = (f"`{key.name}`", kind, f"`{key.write(key.default)}`", key.bounds, key.doc)
            yield f"| {' | '.join(' '.join(cell.replace('|', chr(92) + '|').split()) for cell in cells)} |"


def _place(key: Key) -> tuple[str, str]:
    return key.app, key.component
