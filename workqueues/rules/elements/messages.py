"""What a child broker and its parent say to each other, version 1: every field with its rule. Pure.

Fields that one of them does not know are passed over, so that either may be updated first; a version that this broker does not
speak is refused. Times are told only to find a clock that is off: leases are durations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BeforeValidator,
    Field,
    Strict,
    ValidationError,
    WithJsonSchema,
    WrapValidator,
)

from broker_site.foundation.outside_data import LARGEST, WHOLE, Whole, fault, problems, read
from workqueues.rules.elements.site_slots import SiteSlots
from workqueues.states import SITE_CLOSED, SITE_DRAINED, SITE_OPEN
from workqueues.states.elements import ELEMENT

PROTOCOL = 1
MOST_ELEMENTS = 1000
"""Elements of one pull, or of one report."""
MOST_WORK = 50
"""Elements whose work is fetched at once."""
MOST_SITES = 1000
MOST_PRIORITIES = 500
"""Priorities of jobs that wait at a site."""
MOST_COUNTS = 40_000
"""Priorities of all sites of a pull together."""
MOST_ENDS = 5000
"""Jobs whose ends are told in one report, of all its elements together."""
MOST_REASONS = 100
LONGEST_DECISION = 8192
LONGEST_LEASE_S = 365 * 86_400.0
MOST_OUTPUTS = 10_000
"""Files that were made of files that ended together."""
SITE_STATES = SITE_OPEN | SITE_DRAINED | SITE_CLOSED


def _uuid(value: object) -> UUID:
    try:
        return value if isinstance(value, UUID) else UUID(value if isinstance(value, str) and len(value) <= 36 else "")
    except ValueError:
        raise fault("type", "must be a UUID") from None


def _site_state(value: object) -> str:
    if value not in SITE_STATES:
        raise fault("choice", f"must be one of {', '.join(SITE_STATES)}")
    return str(value)


def _element_state(value: object) -> str:
    if value not in ELEMENT.states:
        raise fault("choice", f"must be one of {', '.join(ELEMENT.course)}")
    return str(value)


def _file_name(value: str) -> str:
    if value in (".", "..") or "/" in value or not value.isprintable():
        raise fault("characters", "a name of a file has no slash and no character that is not seen, and is not . or ..")
    return value


def _path(value: str) -> str:
    if not value.isprintable() or any(part in ("", ".", "..") for part in value.split("/")):
        raise fault("characters", "must be a path below the root of a storage, without . and .., of characters that are seen")
    return value


Amount = Annotated[int, Strict(), Field(ge=0, le=LARGEST), WHOLE]
Number = Annotated[int, Strict(), Field(ge=0, le=2**63 - 1), WHOLE]
Priority = Annotated[int, Strict(), Field(ge=-LARGEST, le=LARGEST), WHOLE]
# OpenAPI 3.0 has no word for the pattern of a key.
PriorityText = Annotated[str, Strict(), Field(pattern=r"^-?[0-9]{1,9}$"), WithJsonSchema({"type": "string"})]
Counts = Annotated[dict[PriorityText, Amount], Field(max_length=MOST_PRIORITIES)]
Id = Annotated[UUID, BeforeValidator(_uuid, json_schema_input_type=str)]
Name = Annotated[str, Strict(), Field(min_length=1, max_length=128)]
Vo = Annotated[str, Strict(), Field(min_length=1, max_length=32)]
FileName = Annotated[str, Strict(), Field(min_length=1, max_length=256), AfterValidator(_file_name)]
Path = Annotated[str, Strict(), Field(min_length=1, max_length=1000), AfterValidator(_path)]
CopyPath = Annotated[str, Strict(), Field(max_length=1000), AfterValidator(lambda path: path and _path(path))]
"""Empty: by its name."""
Words = Annotated[str, Strict(), Field(max_length=510)]
SiteState = Annotated[str, BeforeValidator(_site_state, json_schema_input_type=str)]
ElementState = Annotated[str, BeforeValidator(_element_state, json_schema_input_type=str)]
Yes = Annotated[bool, Strict()]
LeaseSeconds = Annotated[float, Field(ge=0, le=LONGEST_LEASE_S, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """How every message of a child begins. `lineage`: the instances above it as it knows them, its parent first."""

    protocol: Whole
    version: Annotated[str, Strict(), Field(max_length=40)]
    instance: Id
    incarnation: Id
    now: AwareDatetime
    lineage: Annotated[list[Id], Field(max_length=100)] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """How every answer of a parent begins. `lineage`: the parent itself, then the instances above it."""

    protocol: int
    version: str
    instance: str
    incarnation: str
    now: str
    lineage: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteTold(SiteSlots):
    state: SiteState = "Normal"
    pending_slots: Amount
    running_slots: Amount
    running_jobs: Amount = 0


SitesTold = Annotated[dict[Name, SiteTold], Field(max_length=MOST_SITES)]
JobsTold = Annotated[dict[Name, Counts], Field(max_length=MOST_SITES)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pull(Hello):
    """An ask for elements; the same `key` again means that the answer was lost.

    `jobs`: site -> priority -> jobs that wait at the child and count there; `free_jobs`: that it may still have, null: any
    number; `most`: elements that it wants.
    """

    key: Id
    sites: SitesTold
    jobs: JobsTold = field(default_factory=dict)
    free_jobs: Annotated[Whole, Field(ge=-LARGEST, le=LARGEST)] | None = None
    draining: Yes = False
    most: Annotated[Whole, Field(ge=0, le=MOST_ELEMENTS)] = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PulledHead:
    """An element that the child has now, for `lease_s` seconds from the answer on. Its work is fetched by itself."""

    id: Number
    try_nr: Number
    task_id: Number
    task_name: str
    vo: Vo
    priority: Priority
    jobs: Amount
    n_files: Amount
    site: Name
    lease_s: LeaseSeconds


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementTry:
    """One try of an element: what all that is said of it names."""

    id: Number
    try_nr: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class PullAnswer(Reply):
    """`why`: reason -> how many elements, or groups of them, were not given for it. `steered`: those that the child has, and of
    which something else is wished than it was told: it reports them now, and is told with the answer.
    """

    elements: Annotated[list[PulledHead], Field(max_length=MOST_ELEMENTS)] = field(default_factory=list)
    why: Annotated[dict[str, int], Field(max_length=MOST_REASONS)] = field(default_factory=dict)
    steered: Annotated[list[ElementTry], Field(max_length=MOST_ELEMENTS)] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchWork(Hello):
    elements: Annotated[list[ElementTry], Field(max_length=MOST_WORK)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    storage: Annotated[str, Strict(), Field(max_length=60)]
    path: CopyPath


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkFile:
    """A file of an input dataset as the parent's catalogue has it; size in bytes, checksum adler32. A record has a name alone."""

    lfn: FileName
    size: Number | None = None
    checksum: Annotated[str, Strict(), Field(max_length=36)] = ""
    guid: Annotated[str, Strict(), Field(max_length=64)] = ""
    n_events: Amount | None = None
    boundary_id: Number | None = None
    lumi_block_nr: Number | None = None
    copies: list[Copy] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkDataset:
    """An input dataset, and which VO has it. `whole`: all of its files, which elements of the task share."""

    name: Annotated[str, Strict(), Field(min_length=1, max_length=255)]
    vo: Vo
    whole: Yes = False
    files: list[WorkFile] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementWork:
    """All that the child needs to make a task of an element.

    `parameters`: those of the task at the parent, made those of this element: its files, the serial numbers and seeds that it may
    use, and what was measured. `sites`: where it may run. `owner`: whose task it is.
    `serials`: how many serial numbers it may use from the offset of each output on.
    """

    id: Number
    try_nr: Number
    owner: Annotated[str, Strict(), Field(min_length=1, max_length=128)]
    parameters: dict[str, Any]
    inputs: list[WorkDataset]
    sites: list[str]
    serials: Amount


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableWork(ElementTry):
    """Work that breaks a rule of these messages; `unreadable`: which one. That of other elements is not held up by it."""

    unreadable: str


def _work_or_fault(value: object, check: Callable[[object], ElementWork]) -> ElementWork | UnreadableWork:
    try:
        return check(value)
    except ValidationError as error:
        told = read(ElementTry, {name: value.get(name) for name in ("id", "try_nr")} if isinstance(value, dict) else value)
        words = "; ".join(f"{one.field}: {one.message}" for one in islice(problems(error, ElementWork), 3))
        return UnreadableWork(id=told.id, try_nr=told.try_nr, unreadable=words)


GivenWork = Annotated[ElementWork, WrapValidator(_work_or_fault)]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkAnswer(Reply):
    """`refused`: element -> why the child does not have it any more."""

    works: Annotated[list[GivenWork], Field(max_length=MOST_ELEMENTS)] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class InputEnd:
    """What became of a file of an element; one that is neither, such as a file that was lost, comes back unused."""

    lfn: Annotated[str, Strict(), Field(max_length=256)]
    end: Literal["finished", "failed", "unused"]
    why: Words = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputTold:
    """A file that the child made, and where it is: size in bytes, checksum adler32 as 8 hex digits."""

    dataset: Annotated[str, Strict(), Field(min_length=1, max_length=255)]
    lfn: FileName
    size: Number
    checksum: Annotated[str, Strict(), Field(pattern=r"^[0-9a-f]{8}$")]
    n_events: Amount | None = None
    storage: Annotated[str, Strict(), Field(min_length=1, max_length=60)]
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """Files that ended together, with all that was made of them: settled together or not at all."""

    inputs: Annotated[list[InputEnd], Field(min_length=1, max_length=1000)]
    outputs: Annotated[list[OutputTold], Field(max_length=MOST_OUTPUTS)] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementReport(ElementTry):
    """How an element stands at the child, and what ended since it last told. `incarnation`: of the parent, when it was pulled.

    `percent`: files that have ended of it. `sentence`, `decision`: what the child says of its task, and its last decision.
    """

    incarnation: Id
    state: ElementState
    percent: Annotated[Whole, Field(ge=0, le=100)] = 0
    sentence: Words = ""
    decision: Annotated[str, Strict(), Field(max_length=LONGEST_DECISION)] = ""
    ends: Annotated[list[Ends], Field(max_length=MOST_ENDS)] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Hello):
    elements: Annotated[list[ElementReport], Field(max_length=MOST_ELEMENTS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementVerdict:
    """What the parent says of an element that was reported.

    `verdict`: held: the child has it on, its lease begins anew; ended: nothing of it is open any more; refused: it was never this
    child's, or no longer is: the child stops it. `wish`: go, pause or cancel. `settled`: files that this report ended.
    """

    id: int
    try_nr: int
    verdict: Literal["held", "ended", "refused"]
    wish: Literal["go", "pause", "cancel"] = "go"
    why: str = ""
    priority: int = 0
    lease_s: float = 0.0
    settled: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportAnswer(Reply):
    elements: list[ElementVerdict] = field(default_factory=list)
