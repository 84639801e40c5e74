"""A list as CSV, sent while it is read: it holds its places among the exports until it is over, after some time at most."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.access.export_places import Places, take_places
from broker_site.foundation.access.problems import Refused
from monitoring.tables.exports import COMMA_SEPARATED, csv_lines, headers_of


class Export(StreamingHttpResponse):
    """An answer that holds places until whoever serves it closes it."""

    def __init__(self, lines: Iterable[str], places: Places, headers: dict[str, str]) -> None:
        super().__init__(lines, content_type=COMMA_SEPARATED, headers=headers)
        self.places = places

    def close(self) -> None:
        super().close()
        self.places.free()


def export(request: HttpRequest, kind: type[Any], rows: Iterable[Any], name: str) -> HttpResponseBase:
    """All rows to the last; a problem where too many exports are on their way. `kind`: the dataclass of the rows."""
    try:
        places = take_places(authenticate(request))
    except Refused as refused:
        return refused.response()
    lines = _in_time(csv_lines(kind, rows), gdpconfig.value("access", "EXPORT_TIME"))
    return Export(lines, places, headers_of(name))


def _in_time(lines: Iterator[str], seconds: float) -> Iterator[str]:
    """The lines, until the time is over. Raises Refused then."""
    until = time.monotonic() + seconds
    for line in lines:
        if time.monotonic() > until:
            raise Refused(503, "Too long", f"An export takes at most {seconds:g} s (EXPORT_TIME): narrow its filter.")
        yield line
