"""What pilots send: every field with its rule, all faults at once. Fields that we do not know are passed over. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeVar
from uuid import UUID

from pydantic import BeforeValidator, Field

from broker_site.foundation.outside_data import Whole, fault, read, read_leaving_out
from brokerage.rules.dispatch.settlement import LARGEST, MOST_ENTRIES, Report

T = TypeVar("T")
MOST_JOBS = 100
"""Jobs in one request."""


def _request(value: object) -> UUID:
    try:
        return UUID(value if isinstance(value, str) and len(value) <= 36 else "")
    except ValueError:
        raise fault("type", "must be a UUID") from None


def _lease(value: object) -> tuple[int, int]:
    if isinstance(value, list) and len(value) == 2 and all(type(n) is int and 0 <= n <= 2**53 for n in value):
        return value[0], value[1]
    raise fault("type", "must be [job id, epoch]")


Amount = Annotated[Whole, Field(ge=0, le=LARGEST)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a pilot offers: cores, MB, MB, s; 0 = as much as the queue says."""

    cores: Annotated[Whole, Field(ge=1, le=10_000)] = 1
    memory_mb: Amount = 0
    disk_mb: Amount = 0
    walltime_s: Amount = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration(Offer):
    """A pilot that begins: its queue, where it runs, and what it offers. Process id 0 = not told."""

    queue: Annotated[str, Field(min_length=1, max_length=60)]
    host: Annotated[str, Field(min_length=1, max_length=255)]
    slot: Annotated[str, Field(min_length=1, max_length=128)]
    pid: Amount = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest(Offer):
    """An ask for a job, or for up to `n`; the same `request` again means that the answer was lost.

    `wait_s`: how long the pilot will wait for the answer, if there is no job yet; `last`: it leaves if there is none by then.
    """

    request: Annotated[UUID, BeforeValidator(_request)]
    wait_s: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] = 0.0
    n: Annotated[Whole, Field(ge=1, le=MOST_JOBS)] | None = None
    last: bool = False


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A sign of life, with the state the payload is in."""

    status: Literal["starting", "running"]


@dataclass(frozen=True, slots=True)
class PastLeases:
    """The (job, epoch) pairs whose outcome a pilot asks for."""

    jobs: Annotated[list[Annotated[tuple[int, int], BeforeValidator(_lease)]], Field(max_length=MOST_ENTRIES)] = field(
        default_factory=list
    )


@dataclass(frozen=True, slots=True)
class Reports:
    """What is told of several jobs: heartbeats and final reports, each with the token of its job."""

    jobs: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MOST_JOBS)]


def read_message(kind: type[T], body: Mapping[str, Any]) -> T:
    """A message as its kind declares it; null is as good as nothing. Raises OutsideDataError."""
    return read(kind, _visible_fields(body))


def read_report(body: Mapping[str, Any]) -> tuple[Report, list[str]]:
    """A final report, and what was left out of it, since it breaks a rule: that never keeps a job from its end.

    Raises OutsideDataError where not even the status can be read.
    """
    report, problems = read_leaving_out(Report, _visible_fields(body))
    return report, [f"{p.field}: {p.message}" if p.field else p.message for p in problems]


def _visible_fields(body: Mapping[str, Any]) -> dict[str, Any]:
    """What the body says: without null, and its texts without what would steer a terminal or turn a line around."""
    return {name: _visible(value) for name, value in body.items() if value is not None}


def _visible(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isprintable() else "".join(c if c.isprintable() or c in "\n\t" else " " for c in value)
    if isinstance(value, list):
        return [_visible(each) for each in value]
    return {_visible(name): _visible(each) for name, each in value.items()} if isinstance(value, dict) else value
