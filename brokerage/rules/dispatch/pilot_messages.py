"""What pilots send, read strictly: every field with its rule, all errors at once. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeVar, cast
from uuid import UUID

from broker_site.foundation.kernel.verdict import Problem
from brokerage.rules.dispatch.settlement import Report, ReportedOutput
from brokerage.states import JOB

T = TypeVar("T")
LONGEST_LIST = 1000
LARGEST = 2**31 - 1
LARGEST_SIZE = 2**53
ADLER32 = re.compile(r"(?:ad:)?([0-9a-fA-F]{8})")


class BadMessage(ValueError):
    """A message that breaks rules; `problems` has all of them."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(f"{p.field}: {p.message}" for p in problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class Registration:
    """A pilot that begins: its queue, where it runs, and what it offers (cores, MB, MB, s)."""

    queue: str
    host: str
    slot: str
    pid: int | None
    cores: int
    memory_mb: int
    disk_mb: int
    walltime_s: int


@dataclass(frozen=True, slots=True)
class Asking:
    """An ask for a job; the same `request` again means that the answer was lost."""

    request: UUID
    cores: int
    memory_mb: int
    disk_mb: int
    walltime_s: int


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A sign of life, with the state the payload is in."""

    status: Literal["starting", "running"]


class _Reader:
    """Takes fields out of a body and gathers what is wrong with them."""

    def __init__(self, body: Mapping[str, Any], path: str = "") -> None:
        self.body, self.path, self.problems = body, path, list[Problem]()

    def wrong(self, name: str, rule: str, message: str) -> None:
        self.problems.append(Problem(f"{self.path}{name}", rule, message))

    def text(self, name: str, most: int, *, required: bool = False) -> str:
        value = self.body.get(name)
        if value is None and not required:
            return ""
        if not isinstance(value, str) or (required and not value):
            self.wrong(name, "type", "must be a text")
            return ""
        if len(value) > most:
            self.wrong(name, "length", f"at most {most} characters")
        return value

    def clipped(self, name: str, most: int) -> str:
        """Free text of the pilot: too long is cut, not refused."""
        value = self.body.get(name)
        return value[:most] if isinstance(value, str) else ""

    def whole(self, name: str, low: int, high: int, default: int | None = None) -> int:
        value = self.body.get(name, default)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            self.wrong(name, "type", "must be a whole number")
            return low
        if not low <= value <= high:
            self.wrong(name, "range", f"must be from {low} to {high}")
        return value

    def one_of(self, name: str, words: Sequence[str]) -> str:
        value = self.body.get(name)
        if value not in words:
            self.wrong(name, "choice", f"must be one of {', '.join(words)}")
        return str(value)

    def flag(self, name: str) -> bool:
        value = self.body.get(name, False)
        if not isinstance(value, bool):
            self.wrong(name, "type", "must be true or false")
        return value is True

    def time(self, name: str) -> datetime | None:
        value = self.body.get(name)
        if value is None:
            return None
        try:
            read = datetime.fromisoformat(value)
        except (TypeError, ValueError):
            self.wrong(name, "type", "must be a time in ISO 8601")
            return None
        if read.tzinfo is None:
            self.wrong(name, "zone", "must say its time zone")
            return None
        return read

    def items(self, name: str) -> list[Any]:
        value = self.body.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            self.wrong(name, "type", "must be a list")
            return []
        if len(value) > LONGEST_LIST:
            self.wrong(name, "length", f"at most {LONGEST_LIST} entries")
        return value[:LONGEST_LIST]

    def names(self, name: str) -> list[str]:
        found = self.items(name)
        if any(not isinstance(item, str) for item in found):
            self.wrong(name, "type", "must be a list of texts")
        return [item for item in found if isinstance(item, str)]

    def done(self, made: Callable[[], T]) -> T:
        if self.problems:
            raise BadMessage(self.problems)
        return made()


def read_registration(body: Mapping[str, Any]) -> Registration:
    """Read a registration; BadMessage with every problem."""
    r = _Reader(body)
    queue, host, slot = r.text("queue", 60, required=True), r.text("host", 255, required=True), r.text("slot", 128, required=True)
    pid = r.whole("pid", 0, LARGEST, 0)
    sizes = _sizes(r)
    return r.done(lambda: Registration(queue, host, slot, pid or None, *sizes))


def read_asking(body: Mapping[str, Any]) -> Asking:
    """Read an ask for a job; BadMessage with every problem."""
    r = _Reader(body)
    request = UUID(int=0)
    try:
        request = UUID(r.text("request", 36, required=True))
    except ValueError:
        r.wrong("request", "type", "must be a UUID")
    sizes = _sizes(r)
    return r.done(lambda: Asking(request, *sizes))


def read_heartbeat(body: Mapping[str, Any]) -> Heartbeat:
    """Read a heartbeat; BadMessage with every problem."""
    r = _Reader(body)
    status = r.one_of("status", JOB.heartbeat)
    return r.done(lambda: Heartbeat(cast("Literal['starting', 'running']", status)))


def read_settled(body: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Read the (job, epoch) pairs whose outcome a pilot asks for; BadMessage with every problem."""
    r = _Reader(body)
    pairs = []
    for i, item in enumerate(r.items("jobs")):
        if isinstance(item, list) and len(item) == 2 and all(isinstance(n, int) and 0 <= n <= LARGEST_SIZE for n in item):
            pairs.append((item[0], item[1]))
        else:
            r.wrong(f"jobs[{i}]", "type", "must be [job id, epoch]")
    return r.done(lambda: pairs)


def read_report(body: Mapping[str, Any]) -> Report:
    """Read a final report; BadMessage with every problem."""
    r = _Reader(body)
    status = r.one_of("status", JOB.reported)
    outputs = [_output(r, i, item) for i, item in enumerate(r.items("outputs"))]
    error = body.get("error") or {}
    if not isinstance(error, Mapping):
        r.wrong("error", "type", "must be an object with code and message")
        error = {}
    said = _Reader(error, "error.")
    metrics = body.get("metrics") or {}
    if (
        not isinstance(metrics, Mapping)
        or any(not isinstance(v, int | float | str) for v in metrics.values())
        or len(metrics) > 100
    ):
        r.wrong("metrics", "type", "must be an object of at most 100 numbers and texts")
        metrics = {}
    missing, corrupt = r.names("missing_inputs"), r.names("corrupt_inputs")
    killed, start, end = r.flag("killed"), r.time("start_time"), r.time("end_time")
    exit_code = None if body.get("exit_code") is None else r.whole("exit_code", -LARGEST, LARGEST)
    return r.done(
        lambda: Report(
            status=cast("Literal['finished', 'failed']", status),
            outputs=[o for o in outputs if o is not None],
            missing_inputs=missing,
            corrupt_inputs=corrupt,
            killed=killed,
            exit_code=exit_code,
            error_code=said.clipped("code", 40),
            error_message=said.clipped("message", 500),
            start_time=start,
            end_time=end,
            metrics=dict(metrics),
        )
    )


def _output(r: _Reader, i: int, item: Any) -> ReportedOutput | None:
    if not isinstance(item, Mapping):
        r.wrong(f"outputs[{i}]", "type", "must be an object")
        return None
    one = _Reader(item, f"outputs[{i}].")
    lfn, storage = one.text("lfn", 256, required=True), one.text("storage", 60, required=True)
    size = one.whole("size", 0, LARGEST_SIZE)
    checksum = ADLER32.fullmatch(one.text("checksum", 36, required=True))
    if checksum is None:
        one.wrong("checksum", "format", "must be an adler32, 8 hex digits")
    n_events = None if item.get("n_events") is None else one.whole("n_events", 0, LARGEST)
    r.problems += one.problems
    return ReportedOutput(lfn, size, checksum[1].lower(), storage, n_events) if checksum else None


def _sizes(r: _Reader) -> tuple[int, int, int, int]:
    return (
        r.whole("cores", 1, 10_000, 1),
        r.whole("memory_mb", 0, LARGEST, 0),
        r.whole("disk_mb", 0, LARGEST, 0),
        r.whole("walltime_s", 0, LARGEST, 0),
    )
