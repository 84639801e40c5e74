"""What sites send of themselves: the advertisement, every field with its rule, all faults at once. Pure.

Each number may also be named as the document names it (MaxJobs). A name that is not known is refused: a limit that is misspelt
must not pass as one that is not advertised.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field

from broker_site.foundation.outside_data import LARGEST, STRICT, OutsideDataError, Whole, fault, problem, read
from brokerage.rules.dispatch.settlement import Time
from brokerage.rules.dispatch.site_limits import AS_WRITTEN, Advertisement

MOST_STATIONS = 1000
LONGEST_STATION = 60


def _station(value: object) -> str:
    if not isinstance(value, str):
        raise fault("type", "must be the name of a station")
    if not (name := value.strip()) or not name.isprintable() or "," in name or len(name) > LONGEST_STATION:
        raise fault("format", f"must be a name of 1 to {LONGEST_STATION} printable characters without a comma")
    return name


Number = Annotated[Whole, Field(ge=0, le=LARGEST)]
Station = Annotated[str, BeforeValidator(_station)]
REQUIRED: dict[str, Any] = {"required": True}


class SiteMessage(BaseModel):
    """An advertisement. Limits that are missing, or null, are not advertised: then nothing matches."""

    model_config = STRICT

    counted_at: Time = Field(description="When the site began to count its jobs, with its time zone.", json_schema_extra=REQUIRED)
    current_jobs: Number = Field(
        description="Jobs there in any state, those being submitted among them (CurrentJobs).", json_schema_extra=REQUIRED
    )
    current_submitting_jobs: Number = Field(
        description="Jobs being submitted there (CurrentSubmittingJobs).", json_schema_extra=REQUIRED
    )
    max_jobs: Number | None = Field(None, description="Most jobs in any state (MaxJobs).")
    max_submitting_jobs: Number | None = Field(None, description="Most jobs being submitted (MaxSubmittingJobs).")
    stations: Annotated[list[Station], Field(max_length=MOST_STATIONS)] = Field(
        [], description=f"Stations that its jobs use: names of 1 to {LONGEST_STATION} printable characters without a comma."
    )
    kind: Literal["native", "forwarding"] = Field(
        "native", description="native: it runs jobs itself; forwarding: it hands them to another grid."
    )

    @property
    def numbers(self) -> Advertisement:
        """What the limits are judged by."""
        return Advertisement(**{name: getattr(self, name) for name in AS_WRITTEN})


def read_advertisement(body: Mapping[str, Any]) -> SiteMessage:
    """The advertisement that a body says. Raises OutsideDataError with all faults."""
    ours = {theirs: name for name, theirs in AS_WRITTEN.items()}
    if twice := [name for name, theirs in AS_WRITTEN.items() if name in body and theirs in body]:
        raise OutsideDataError(problem(name, "contradiction", f"is also said as {AS_WRITTEN[name]}") for name in twice)
    return read(SiteMessage, {ours.get(name, name): value for name, value in body.items()}, noun="field")
