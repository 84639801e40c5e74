"""How a job ends from what its pilot reports: pure. What that means for the files is `workqueues.rules.jobs.event_ranges`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field, Strict

from broker_site.foundation.outside_data import Whole, fault

LARGEST = 2**31 - 1
MOST_ENTRIES = 1000
"""The longest list of a message."""
ADLER32 = re.compile(r"(?:ad:)?([0-9a-fA-F]{8})")

Ending = Literal["finished", "failed", "closed", "cancelled"]


@dataclass(frozen=True, slots=True)
class JobVersion:
    """A job as somebody read it: what is done to it later holds only if it is still so."""

    id: int
    epoch: int
    status: str


def _checksum(value: str) -> str:
    if (digits := ADLER32.fullmatch(value)) is None:
        raise fault("format", "must be an adler32, 8 hex digits")
    return digits[1].lower()


def _time(value: object) -> datetime:
    try:
        read = datetime.fromisoformat(value)  # type: ignore[arg-type]  # what is no text is a TypeError
    except (TypeError, ValueError):
        raise fault("type", "must be a time in ISO 8601") from None
    if read.tzinfo is None:
        raise fault("zone", "must say its time zone")
    return read


def _metrics(value: object) -> object:
    if isinstance(value, Mapping) and len(value) <= 100 and all(isinstance(v, int | float | str) for v in value.values()):
        return value
    raise fault("type", "must be an object of at most 100 numbers and texts")


def _error(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise fault("type", "must be an object with code and message")
    return value


def _part_of_error(name: str, most: int) -> BeforeValidator:
    """Free text of the pilot: too long is cut, not refused, and what is no text says nothing."""

    def part(value: object) -> object:
        text = value.get(name) if isinstance(value, Mapping) else ""
        return text[:most] if isinstance(text, str) else ""

    return BeforeValidator(part)


Names = Annotated[list[str], Field(max_length=MOST_ENTRIES)]
Time = Annotated[datetime, BeforeValidator(_time)]


@dataclass(frozen=True, slots=True)
class ReportedOutput:
    """An output as the pilot stored it: size in bytes, adler32 as 8 hex digits, the storage endpoint it is on."""

    lfn: Annotated[str, Field(min_length=1, max_length=256)]
    size: Annotated[Whole, Field(ge=0, le=2**53)]
    checksum: Annotated[str, AfterValidator(_checksum)]
    storage: Annotated[str, Field(min_length=1, max_length=60)]
    n_events: Annotated[Whole, Field(ge=0, le=LARGEST)] | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """A pilot's final report. Code and message come as an object `error`."""

    status: Literal["finished", "failed"]
    outputs: Annotated[list[ReportedOutput], Field(max_length=MOST_ENTRIES)] = field(default_factory=list)
    missing_inputs: Names = field(default_factory=list)
    corrupt_inputs: Names = field(default_factory=list)
    killed: Annotated[bool, Strict()] = False
    exit_code: Annotated[Whole, Field(ge=-LARGEST, le=LARGEST)] | None = None
    error_code: Annotated[str, Field(validation_alias="error"), _part_of_error("code", 40), BeforeValidator(_error)] = ""
    error_message: Annotated[str, Field(validation_alias="error"), _part_of_error("message", 500)] = ""
    start_time: Time | None = None
    end_time: Time | None = None
    metrics: Annotated[dict[str, object], BeforeValidator(_metrics)] = field(default_factory=dict)


class ExpectedOutput(NamedTuple):
    """An output that the job was made to write; `optional`: a finished job may leave it out (attribute allowNoOutput)."""

    file_id: int
    lfn: str
    dataset_name: str
    optional: bool


@dataclass(frozen=True, slots=True)
class Settlement:
    """The end of a job: final state, sub-status, error, and the outputs that count, by file id."""

    ending: Ending
    sub_status: str = ""
    error_code: str = ""
    error_message: str = ""
    made: Mapping[int, ReportedOutput] = field(default_factory=dict)


def settle(report: Report, expected: Sequence[ExpectedOutput], kill_requested: bool, kill_outcome: str) -> Settlement:
    """Decide the end of a job.

    A payload that was killed on request ends as the request says (facts, jobs 1.5: holding -> cancelled). Inputs that the pilot
    could not read close the job (decision D9): it is no failure of the payload. A pilot that stops by itself closes it too
    (sub-status pilot_closed). A finished job must bring every output that is not optional; one that does not has failed.
    """
    if report.status == "finished":
        return _finished(report, expected)
    if report.killed and kill_requested:
        return Settlement("closed" if kill_outcome == "closed" else "cancelled", "killed", "KILLED", "killed on request")
    if report.missing_inputs or report.corrupt_inputs:
        names = ", ".join([*report.missing_inputs, *report.corrupt_inputs])
        return Settlement("closed", "input_missing", "INPUT", f"inputs that could not be read: {names}"[:500])
    if report.error_code == "PILOT_STOPPED":
        return Settlement("closed", "pilot_closed", report.error_code, report.error_message)
    return Settlement("failed", "", report.error_code or "PAYLOAD", report.error_message)


def _finished(report: Report, expected: Sequence[ExpectedOutput]) -> Settlement:
    reported = {o.lfn: o for o in report.outputs}
    missing = [e.lfn for e in expected if e.lfn not in reported and not e.optional]
    if missing:
        return Settlement("failed", "", "OUTPUT_MISSING", f"not reported: {', '.join(missing)}"[:500])
    names = {e.lfn for e in expected}
    unknown = [lfn for lfn in reported if lfn not in names]
    if unknown:
        return Settlement("failed", "", "OUTPUT_UNKNOWN", f"not asked for: {', '.join(unknown)}"[:500])
    return Settlement("finished", made={e.file_id: reported[e.lfn] for e in expected if e.lfn in reported})
