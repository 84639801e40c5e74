"""How a job ends from what its pilot reports: pure. What that means for the files is `workqueues.rules.jobs.event_ranges`."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field, Strict
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from broker_site.foundation.outside_data import Whole, fault
from brokerage.rules.dispatch.retry_rules import JobError
from brokerage.states import INPUT_MISSING, OUTPUT_EXISTS, PILOT_CLOSED, STORAGE_DOWN

LARGEST = 2**31 - 1
MOST_ENTRIES = 1000
"""The longest list of a message."""
LONGEST_LOG_END = 65_536
"""Characters kept of the log that comes with a report."""
LARGEST_FILE = 10**14
"""Bytes of an output: so many that all files of a job together stay below what a column holds."""
MOST_EVENTS = 10**9
"""Events of one file."""
LONGEST_METRIC, MOST_METRICS, METRICS_BYTES = 500, 100, 16_000
"""Characters of one text among the metrics, how many there are, and the bytes of all of them as JSON."""
MOST_SAMPLES, LONGEST_STEP_S = 200, 7 * 86_400
"""Steps of what a payload used over time, and the longest step."""
MOST_METADATA, METADATA_BYTES = 1000, 65_536
"""How many values a job may tell, and their bytes as JSON."""
ADLER32 = re.compile(r"(?:ad:)?([0-9a-fA-F]{8})")

Ending = Literal["finished", "failed", "closed", "cancelled"]


@dataclass(frozen=True, slots=True)
class JobVersion:
    """A job as somebody read it: what is done to it later holds only if it is still so. `task_id`: 0 where all are of one."""

    id: int
    epoch: int
    status: str
    task_id: int = 0


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


def _metric(value: object) -> object:
    if isinstance(value, str) and len(value) > LONGEST_METRIC:
        raise fault("length", f"has {len(value)} characters, at most {LONGEST_METRIC}")
    if not isinstance(value, int | float | str):
        raise fault("type", "must be a number or a text")
    return value


def _small(metrics: dict[str, object]) -> dict[str, object]:
    if (size := len(json.dumps(metrics))) > METRICS_BYTES:
        raise fault("length", f"{size} bytes as JSON, at most {METRICS_BYTES}")
    return metrics


def _metadata(value: object) -> object:
    """All of it or nothing: a part would be another answer than that of the payload."""
    if not isinstance(value, dict):
        raise fault("type", "must be an object")
    if len(value) > MOST_METADATA:
        raise fault("length", f"has {len(value)} values, at most {MOST_METADATA}")
    try:
        size = len(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode())
    except (ValueError, RecursionError):
        raise fault("range", "has a number that is not finite, a character that cannot be stored, or too many levels") from None
    if size > METADATA_BYTES:
        raise fault("length", f"{size} bytes as JSON, at most {METADATA_BYTES}")
    return value


def _error(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise fault("type", "must be an object with code and message")
    return value


class ErrorObject(TypedDict, total=False):
    """What went wrong: a code and a text."""

    code: str
    message: str


def _part_of_error(name: str, most: int) -> BeforeValidator:
    """Free text of the pilot: too long is cut, not refused, and what is no text says nothing."""

    def part(value: object) -> object:
        text = value.get(name) if isinstance(value, Mapping) else ""
        return text[:most] if isinstance(text, str) else ""

    return BeforeValidator(part, json_schema_input_type=ErrorObject)


def _log_end(value: object) -> str:
    """The last of it; what is no text says nothing."""
    return value[-LONGEST_LOG_END:] if isinstance(value, str) else ""


_ERROR = BeforeValidator(_error, json_schema_input_type=ErrorObject)
Names = Annotated[list[str], Field(max_length=MOST_ENTRIES)]
Time = Annotated[datetime, BeforeValidator(_time)]
Metrics = Annotated[
    dict[Annotated[str, Field(max_length=100)], Annotated[object, BeforeValidator(_metric, json_schema_input_type=float | str)]],
    Field(max_length=MOST_METRICS),
    AfterValidator(_small),
]


@dataclass(frozen=True, slots=True)
class ReportedOutput:
    """An output as the pilot stored it: size in bytes, adler32 as 8 hex digits, the storage endpoint it is on."""

    lfn: Annotated[str, Field(min_length=1, max_length=256)]
    size: Annotated[Whole, Field(ge=0, le=LARGEST_FILE)]
    checksum: Annotated[str, AfterValidator(_checksum)]
    storage: Annotated[str, Field(min_length=1, max_length=60)]
    n_events: Annotated[Whole, Field(ge=0, le=MOST_EVENTS)] | None = None


@dataclass(frozen=True, slots=True)
class Samples:
    """What a payload used in steps of so many seconds from its start: the most memory in each, MB, and all processor time up to
    its end, s.
    """

    step_s: Annotated[Whole, Field(ge=1, le=LONGEST_STEP_S)]
    memory_mb: Annotated[list[Annotated[Whole, Field(ge=0, le=LARGEST)]], Field(max_length=MOST_SAMPLES)]
    cpu_s: Annotated[list[Annotated[Whole, Field(ge=0, le=LARGEST)]], Field(max_length=MOST_SAMPLES)]

    def __post_init__(self) -> None:
        if len(self.cpu_s) != len(self.memory_mb):
            raise fault("length", f"{len(self.memory_mb)} steps of memory and {len(self.cpu_s)} of processor time")


@dataclass(frozen=True, slots=True)
class Report:
    """A pilot's final report. Code and message come as an object `error`; the first line of the message is the one that tells.

    `log_end`: the end of the log of a job that failed, where it could not be stored; `metadata`: what the payload tells, where
    the job is to tell something; `samples`: what the payload used over time.
    """

    status: Literal["finished", "failed"]
    outputs: Annotated[list[ReportedOutput], Field(max_length=MOST_ENTRIES)] = field(default_factory=list)
    missing_inputs: Names = field(default_factory=list)
    corrupt_inputs: Names = field(default_factory=list)
    down_storages: Names = field(default_factory=list)
    killed: Annotated[bool, Strict()] = False
    exit_code: Annotated[Whole, Field(ge=-LARGEST, le=LARGEST)] | None = None
    error_code: Annotated[str, Field(validation_alias="error"), _part_of_error("code", 40), _ERROR] = ""
    error_message: Annotated[str, Field(validation_alias="error"), _part_of_error("message", 500)] = ""
    start_time: Time | None = None
    end_time: Time | None = None
    metrics: Metrics = field(default_factory=dict)
    log_end: Annotated[str, BeforeValidator(_log_end)] = ""
    metadata: Annotated[dict[str, Any], BeforeValidator(_metadata)] | None = None
    samples: Samples | None = None

    @property
    def most_memory_mb(self) -> float:
        """The most memory that the payload used, MB; 0 where that was not measured."""
        for name in ("max_pss_mb", "max_rss_mb"):
            if isinstance(value := self.metrics.get(name), int | float):
                return float(value)
        return 0.0


def first_line(message: str) -> str:
    """The line of an error that tells: lists, histories and sentences show this one."""
    return message.partition("\n")[0]


class ExpectedOutput(NamedTuple):
    """An output that the job was made to write; `optional`: a finished job may leave it out (attribute allowNoOutput).

    `goes_to`: storage endpoint to which it is brought once it is made; empty: it stays where the job writes it. `also_to`:
    further ones. `premerged`: a later job of the task merges it. `n_events`: what is known to be in it, before it is
    made.
    """

    file_id: int
    lfn: str
    dataset_name: str
    optional: bool
    is_log: bool = False
    goes_to: str = ""
    also_to: Sequence[str] = ()
    premerged: bool = False
    n_events: int | None = None

    @property
    def leaves_for(self) -> Sequence[str]:
        """All storage endpoints to which it is brought."""
        return [*filter(None, [self.goes_to]), *self.also_to]


@dataclass(frozen=True, slots=True)
class JobOrder:
    """What a job was given to write and where: its outputs, the storage endpoint for them, and the bytes that this can hold at
    most (None: not known).

    `sources`: storage endpoints from which it may read its inputs. `registered`: size and checksum of files that the catalogue
    has under names of its outputs. `tells`: whether its payload is to tell something, the metadata.
    """

    outputs: Sequence[ExpectedOutput]
    storage: str
    space: int | None = None
    sources: Collection[str] = ()
    registered: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    tells: bool = False


class Kill(NamedTuple):
    """A kill that the pilot of a job was asked for: the final state then, and why and by whom."""

    outcome: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Settlement:
    """The end of a job: final state, sub-status, error, and the outputs that count, by file id; of a job that failed its log.

    `down`: the storage endpoint that was not there, for whose return the inputs wait; then it was no try of them.
    """

    ending: Ending
    sub_status: str = ""
    error_code: str = ""
    error_message: str = ""
    made: Mapping[int, ReportedOutput] = field(default_factory=dict)
    down: str = ""


def settle(report: Report, order: JobOrder, kill: Kill | None, notes: Sequence[str] = ()) -> Settlement:
    """Decide the end of a job. `kill`: what somebody has asked for. `notes`: what was left out of the report, since it breaks a
    rule.

    A payload that was killed on request ends as the request says (facts, jobs 1.5: holding -> cancelled). Inputs that the pilot
    could not read close the job (decision D9): it is no failure of the payload; nor is a storage that is down (decision D16), nor
    an output whose name a file has that an earlier try left behind: the next try has another name. A pilot that stops by itself
    closes it too (sub-status pilot_closed). A finished job must bring every output that is not optional, at the storage that it
    was given, and its metadata where it is to tell something; one that does not has failed. The log of a job that did not finish
    counts too (decision I4).
    """
    if report.status == "finished":
        return _finished(report, order, notes)
    return replace(_not_finished(report, order, kill), made=_logs(report, order))


def errors_of(settlement: Settlement, report: Report) -> list[JobError]:
    """The errors of a job that failed, as retry rules judge them: that of the pilot, or of the broker that does not believe its
    success, then that of the payload.
    """
    judge = "pilot" if report.status == "failed" else "broker"
    errors = [JobError(judge, settlement.error_code, settlement.error_message)]
    if report.exit_code:
        errors.append(JobError("payload", str(report.exit_code), settlement.error_message))
    return errors


def with_known_events(report: Report, expected: Sequence[ExpectedOutput]) -> Report:
    """The report with the events of outputs of which it says nothing, where they are known before."""
    known = {output.lfn: output.n_events for output in expected if output.n_events is not None}
    if not any(output.n_events is None and output.lfn in known for output in report.outputs):
        return report
    outputs = [o if o.n_events is not None else replace(o, n_events=known.get(o.lfn)) for o in report.outputs]
    return replace(report, outputs=outputs)


def _logs(report: Report, order: JobOrder) -> dict[int, ReportedOutput]:
    """The logs among the reported outputs, where they lie as the job was told, and no other file has their name."""
    logs = {e.lfn: e.file_id for e in order.outputs if e.is_log}
    return {
        logs[o.lfn]: o
        for o in report.outputs
        if o.lfn in logs
        and o.storage == order.storage
        and (order.space is None or o.size <= order.space)
        and not _of_another_file(o, order)
    }


def _of_another_file(output: ReportedOutput, order: JobOrder) -> bool:
    """Whether the catalogue has a file of this name with other content."""
    return order.registered.get(output.lfn, (output.size, output.checksum)) != (output.size, output.checksum)


def _not_finished(report: Report, order: JobOrder, kill: Kill | None) -> Settlement:
    if report.killed and kill is not None:
        why = f"killed on request: {kill.why}" if kill.why else "killed on request"
        return Settlement("closed" if kill.outcome == "closed" else "cancelled", "killed", "KILLED", why)
    if report.error_code == "STORAGE_DOWN":
        down = next((name for name in report.down_storages if name == order.storage or name in order.sources), "")
        if down:
            return Settlement("closed", STORAGE_DOWN, report.error_code, report.error_message, down=down)
    if report.missing_inputs or report.corrupt_inputs:
        said = report.error_message or ", ".join([*report.missing_inputs, *report.corrupt_inputs])
        return Settlement("closed", INPUT_MISSING, "INPUT", f"inputs that could not be read: {said}"[:500])
    if report.error_code == "OUTPUT_EXISTS":
        return Settlement("closed", OUTPUT_EXISTS, report.error_code, report.error_message)
    if report.error_code == "PILOT_STOPPED":
        return Settlement("closed", PILOT_CLOSED, report.error_code, report.error_message)
    return Settlement("failed", "", report.error_code or "PAYLOAD", report.error_message)


def _finished(report: Report, order: JobOrder, notes: Sequence[str]) -> Settlement:
    expected = order.outputs
    reported = {o.lfn: o for o in report.outputs}
    missing = [e.lfn for e in expected if e.lfn not in reported and not e.optional]
    if missing:
        why = "; ".join([f"not reported: {', '.join(missing)}"[:300], *(n for n in notes if n.startswith("outputs"))])
        return Settlement("failed", "", "OUTPUT_MISSING", why[:500])
    names = {e.lfn for e in expected}
    unknown = [lfn for lfn in reported if lfn not in names]
    if unknown:
        return Settlement("failed", "", "OUTPUT_UNKNOWN", f"not asked for: {', '.join(unknown)}"[:500])
    if elsewhere := [o for o in report.outputs if o.storage != order.storage]:
        told = ", ".join(f"{o.lfn} at {o.storage}" for o in elsewhere)
        return Settlement("failed", "", "OUTPUT_MISPLACED", f"not at {order.storage}, which the job was given: {told}"[:500])
    if order.space is not None and sum(o.size for o in report.outputs) > order.space:
        told = ", ".join(f"{o.lfn} {o.size}" for o in report.outputs)
        return Settlement("failed", "", "OUTPUT_TOO_LARGE", f"more bytes than {order.storage} can hold: {told}"[:500])
    if other := [o.lfn for o in report.outputs if _of_another_file(o, order)]:
        told = f"the catalogue has another file of that name: {', '.join(other)}"
        return Settlement("failed", "", "OUTPUT_REGISTERED", told[:500])
    if order.tells and report.metadata is None:
        told = "; ".join(["the job did not tell what it found", *(n for n in notes if n.startswith("metadata"))])
        return Settlement("failed", "", "BAD_METADATA", told[:500])
    return Settlement("finished", made={e.file_id: reported[e.lfn] for e in expected if e.lfn in reported})
