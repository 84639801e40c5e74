"""How many more jobs sites take now, whatever their thresholds allow: as they advertise (decision H8), and by running limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

ADVERTISED, RUNNING_LIMIT = "NoAdvertisedRoom", "RunningLimit"
"""Why a site takes no more jobs, or no more with a value."""

JobValue = tuple[str, str]
"""An attribute of a job, and a value that it has."""


class Cap(NamedTuple):
    """What is capped at a site: jobs with this value of this attribute; an empty attribute: all jobs."""

    site: str
    attribute: str = ""
    value: str = ""

    @property
    def reason(self) -> str:
        """Why the next job waits that it holds back."""
        return RUNNING_LIMIT if self.attribute else ADVERTISED


Caps = Mapping[Cap, int]
"""Jobs that may yet go; what is not there is not capped."""
NO_CAPS: Caps = MappingProxyType({})


def caps_on(caps: Caps, site: str, values: Iterable[JobValue]) -> list[Cap]:
    """Those that a job with these values has to pass at a site, each of them."""
    wanted = [Cap(site), *(Cap(site, *value) for value in values)]
    return [cap for cap in wanted if cap in caps]


def tightest(caps: Caps, on: Iterable[Cap]) -> list[tuple[int, str]]:
    """How many jobs that have to pass all of these may yet go, and why no more: of the tightest one; none: any number."""
    return sorted((max(caps[cap], 0), cap.reason) for cap in on)[:1]
