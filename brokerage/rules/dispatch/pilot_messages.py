"""What pilots send: every field with its rule, all faults at once. Fields that we do not know are passed over. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from itertools import islice
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar
from uuid import UUID

from pydantic import AfterValidator, BeforeValidator, Field, GetJsonSchemaHandler, Strict, TypeAdapter
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import WHOLE, OutsideDataError, Whole, fault, problem, read, read_leaving_out
from brokerage.rules.dispatch.requirement import NONE
from brokerage.rules.dispatch.resource import named, processor_tags
from brokerage.rules.dispatch.settlement import LARGEST, MOST_ENTRIES, Report

T = TypeVar("T")
MOST_JOBS = 100
"""Jobs in one request."""
LONGEST_NAME = 64
"""Characters of a name that jobs are matched by: a tag, a platform, a site."""
MOST_NAMES = 1000
"""Names in one ask, of all lists together: a resource is kept in memory while it is asked for."""
MOST_UNKNOWN = 20
"""So many unknown fields of an ask are told by name."""


def _request(value: object) -> UUID:
    try:
        return UUID(value if isinstance(value, str) and len(value) <= 36 else "")
    except ValueError:
        raise fault("type", "must be a UUID") from None


def _lease(value: object) -> tuple[int, int]:
    if isinstance(value, list) and len(value) == 2 and all(type(n) is int and 0 <= n <= 2**53 for n in value):
        return value[0], value[1]
    raise fault("type", "must be [job id, epoch]")


def _names(value: object) -> frozenset[str]:
    """A text, or a list of texts, as a set: blanks are dropped, order and repetitions do not count."""
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise fault("type", "must be a text or a list of texts")
    if len(given) > MOST_ENTRIES:
        raise fault("length", f"has {len(given)} entries, at most {MOST_ENTRIES}")
    names = frozenset(filter(None, map(str.strip, given)))
    if names and len(longest := max(names, key=len)) > LONGEST_NAME:
        raise fault("length", f"{longest[:20]}... has {len(longest)} characters, at most {LONGEST_NAME}")
    return names


Amount = Annotated[int, Strict(), Field(ge=0, le=LARGEST), WHOLE]
Name = Annotated[str, Field(max_length=LONGEST_NAME), AfterValidator(str.strip)]
OneName = Annotated[str, Field(max_length=LONGEST_NAME)]
Names = Annotated[
    frozenset[str],
    BeforeValidator(_names, json_schema_input_type=OneName | Annotated[list[OneName], Field(max_length=MOST_ENTRIES)]),
]
Yes = Annotated[bool, Strict()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a pilot offers: cores, MB, MB, s; 0 = as much as the queue says."""

    cores: Annotated[int, Strict(), Field(ge=1, le=10_000), WHOLE] = 1
    memory_mb: Amount = 0
    disk_mb: Amount = 0
    walltime_s: Amount = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration(Offer):
    """A pilot that begins: its queue, where it runs, and what it offers. Process id 0 = not told.

    `pilot_id`: of a pilot that was submitted for a job, which this process is.
    """

    queue: Annotated[str, Field(min_length=1, max_length=60)]
    host: Annotated[str, Field(min_length=1, max_length=255)]
    slot: Annotated[str, Field(min_length=1, max_length=128)]
    pid: Amount = 0
    pilot_id: Annotated[UUID, BeforeValidator(_request)] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest(Offer):
    """An ask for a job, or for up to `n`; the same `request` again means that the answer was lost.

    `cpu_time_s`: CPU seconds that are left. `wait_s`: how long the pilot will wait for the answer, if there is no job yet;
    `last`: it leaves if there is none by then. `job`: the only one it wants, which was submitted with it: `request` is then the
    number of the pilot. `explain`: the answer to an ask in vain has a body that says why.
    """

    request: Annotated[UUID, BeforeValidator(_request)]
    cpu_time_s: Amount | None = None
    wait_s: Annotated[float, Strict(), Field(ge=0, le=3600, allow_inf_nan=False)] = 0.0
    n: Annotated[Whole, Field(ge=1, le=MOST_JOBS)] | None = None
    job: Annotated[Whole, Field(ge=1, le=2**53)] | None = None
    last: Yes = False
    explain: Yes = False


# Source: seed 002; facts on matching a3. Its documentation is read by users.
@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceAttributes:
    """What an ask says of its resource beside the sizes. Whatever it says of its `site`, that of its queue counts.

    `owner`, `owner_group`: the only ones whose jobs it wants, within what its credential allows. `required_tags`, of `tags`:
    what a job must, `banned_*`: what it must not name.
    """

    site: Name = ""
    grid_ce: Names = NONE
    platform: Names = NONE
    pilot_type: Names = NONE
    job_type: Names = NONE
    tags: Names = NONE
    required_tags: Names = NONE
    banned_sites: Names = NONE
    banned_grid_ces: Names = NONE
    banned_platforms: Names = NONE
    banned_job_types: Names = NONE
    banned_tags: Names = NONE
    setup: Name = ""
    owner: Names = NONE
    owner_group: Names = NONE
    whole_node: Yes = False


NOT_DESCRIBED: Final = ResourceAttributes()
"""Of an ask that tells its sizes only; it is this very object."""
_ASK = frozenset(f.name for f in fields(JobRequest))
_ATTRIBUTES = frozenset(f.name for f in fields(ResourceAttributes))
_SETS = tuple(f.name for f in fields(ResourceAttributes) if isinstance(f.default, frozenset))


class FullAsk(NamedTuple):
    """An ask with the attributes of its resource, and the names of its fields that we do not know: 20 at most."""

    request: JobRequest
    resource: ResourceAttributes = NOT_DESCRIBED
    unknown: tuple[str, ...] = ()


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
class HeldHeartbeat(Heartbeat):
    """A sign of life of one of several jobs, with its token."""

    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldReport(Report):
    """The final report of one of several jobs, with its token."""

    token: str


class _Entry:
    """Entries are read one by one, so that one does not touch another; the schema says what each is."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(TypeAdapter(HeldHeartbeat | HeldReport).core_schema)


@dataclass(frozen=True, slots=True)
class Reports:
    """What is told of several jobs: heartbeats and final reports, each with the token of its job."""

    jobs: Annotated[list[Annotated[dict[str, Any], _Entry()]], Field(min_length=1, max_length=MOST_JOBS)]


def read_message(kind: type[T], body: Mapping[str, Any]) -> T:
    """A message as its kind declares it; null is as good as nothing. Raises OutsideDataError."""
    return read(kind, _visible_fields(body, LINES if issubclass(kind, Report) else ""))


def read_ask(body: Mapping[str, Any]) -> FullAsk:
    """An ask for jobs with all that it says of its resource. Raises OutsideDataError with the faults of both.

    Most asks tell sizes only: these are read as if there were nothing else.
    """
    if body.keys() <= _ASK:
        return FullAsk(read(JobRequest, _visible_fields(body, "")))
    faults: list[Problem] = []
    sizes = {name: value for name, value in body.items() if name in _ASK}
    attributes = {name: value for name, value in body.items() if name in _ATTRIBUTES}
    request, resource = _read_part(JobRequest, _visible_fields(sizes, ""), faults), _attributes(attributes, faults)
    required = named(resource.required_tags) if resource and resource.required_tags else NONE
    if request and resource and required and (missing := sorted(required - tags_of(request, resource))):
        faults.append(problem("required_tags", "subset", f"must be among the tags: {', '.join(missing)}"))
    if request is None or resource is None or faults:
        raise OutsideDataError(faults)
    if len(sizes) + len(attributes) == len(body):
        return FullAsk(request, resource)
    unknown = (name for name, value in body.items() if name not in _ASK and name not in _ATTRIBUTES and value is not None)
    return FullAsk(request, resource, tuple(_visible(name[:LONGEST_NAME], "") for name in islice(unknown, MOST_UNKNOWN)))


def tags_of(request: JobRequest, resource: ResourceAttributes) -> frozenset[str]:
    """The tags of a resource: those that it names, and those that tell of its cores."""
    return resource.tags | processor_tags(request.cores, whole_node=resource.whole_node)


def _attributes(said: Mapping[str, Any], faults: list[Problem]) -> ResourceAttributes | None:
    """What is said of a resource; pilots say the same all day, which is read once."""
    told = tuple((name, type(value), tuple(value) if type(value) is list else value) for name, value in said.items())
    try:
        known = _known.get(told)
    except TypeError:  # something in a list is no text
        known, told = None, ()
    if known is not None:
        return known
    visible = _visible_fields(said, "")
    if (known := _read_part(ResourceAttributes, visible, faults) if visible else NOT_DESCRIBED) is None:
        return None
    if (n := sum(len(getattr(known, name)) for name in _SETS)) > MOST_NAMES:
        longest = max(_SETS, key=lambda name: len(getattr(known, name)))
        faults.append(problem(longest, "length", f"the ask names {n} tags, sites, platforms and the like, at most {MOST_NAMES}"))
    elif told and n <= MOST_KEPT_NAMES and len(str(said)) <= MOST_KEPT_CHARACTERS:
        if len(_known) >= MOST_KEPT:
            _known.clear()
        _known[told] = known
    return known


MOST_KEPT, MOST_KEPT_NAMES, MOST_KEPT_CHARACTERS = 1000, 100, 10_000
"""Descriptions that are kept, but those with more names or longer ones, blanks too, so that no pilot fills the memory."""
_known: dict[tuple[tuple[str, type, Any], ...], ResourceAttributes] = {}


def _read_part(kind: type[T], said: Mapping[str, Any], faults: list[Problem]) -> T | None:
    try:
        return read(kind, said)
    except OutsideDataError as error:
        faults.extend(error.problems)
        return None


def read_report(body: Mapping[str, Any]) -> tuple[Report, list[str]]:
    """A final report, and what was left out of it, since it breaks a rule: that never keeps a job from its end.

    Raises OutsideDataError where not even the status can be read.
    """
    report, problems = read_leaving_out(Report, _visible_fields(body, LINES))
    return report, [f"{p.field}: {p.message}" if p.field else p.message for p in problems]


_AS_THEY_ARE = frozenset({int, float, bool})


LINES = "\n\t"
"""What texts of several lines may have beside what is printed. Names have none of it: each is told within one line."""


def _visible_fields(body: Mapping[str, Any], kept: str) -> dict[str, Any]:
    """What the body says: without null, and its texts without what would steer a terminal or turn a line around, but `kept`."""
    return {
        name: value if type(value) in _AS_THEY_ARE or (type(value) is str and value.isprintable()) else _visible(value, kept)
        for name, value in body.items()
        if value is not None
    }


def _visible(value: Any, kept: str) -> Any:
    if isinstance(value, str):
        return value if value.isprintable() else "".join(c if c.isprintable() or c in kept else " " for c in value)
    if isinstance(value, list):
        return [_visible(each, kept) for each in value]
    return {_visible(name, kept): _visible(each, kept) for name, each in value.items()} if isinstance(value, dict) else value
