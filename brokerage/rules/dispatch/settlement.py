"""How a job ends from what its pilot reports: pure. What that means for the files is `workqueues.rules.task.attempts`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

Ending = Literal["finished", "failed", "closed", "cancelled"]


@dataclass(frozen=True, slots=True)
class Seen:
    """A job as somebody read it: what is done to it later holds only if it is still so."""

    id: int
    epoch: int
    status: str


@dataclass(frozen=True, slots=True)
class ReportedOutput:
    """An output as the pilot stored it: size in bytes, adler32 as 8 hex digits, the storage endpoint it is on."""

    lfn: str
    size: int
    checksum: str
    storage: str
    n_events: int | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """A pilot's final report."""

    status: Literal["finished", "failed"]
    outputs: Sequence[ReportedOutput] = ()
    missing_inputs: Sequence[str] = ()
    corrupt_inputs: Sequence[str] = ()
    killed: bool = False
    exit_code: int | None = None
    error_code: str = ""
    error_message: str = ""
    start_time: datetime | None = None
    end_time: datetime | None = None
    metrics: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExpectedOutput:
    """An output that the job was made to write."""

    file_id: int
    lfn: str
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
    known = {e.lfn for e in expected}
    unknown = [lfn for lfn in reported if lfn not in known]
    if unknown:
        return Settlement("failed", "", "OUTPUT_UNKNOWN", f"not asked for: {', '.join(unknown)}"[:500])
    return Settlement("finished", made={e.file_id: reported[e.lfn] for e in expected if e.lfn in reported})
