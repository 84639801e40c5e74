"""What a grid document says of the moment: links, jobs, pilots, slots, workers, what was measured, replicas, users, software.

Pure. A decision without a database needs these parts; their references lead to the sites, storages and queues of the same
document. Here: the parts and their attributes, each declared once, and the JSON Schema of the whole document. Not here: columns
made of them (`queue_columns`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, Field, ValidationError, ValidationInfo

from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import AS_GIVEN, BOUNDED, LARGEST, WHOLE, Flag, fault, found, problems
from brokerage.rules.grid.attributes import (
    TEXT_NUMBER,
    Attributes,
    BadGrid,
    Count,
    Gigabytes,
    GridNames,
    Number,
    QueueName,
    SiteName,
    StorageName,
    Texts,
    Time,
    Work,
    attributes_of,
    number_from_text,
)
from brokerage.rules.grid.document import LACKING, Grid
from brokerage.states import JOB

PRODUCTION_OUTPUT, EXPRESS = "Production Output", "Express"
"""Activities whose files go to a nucleus."""

ALL = "ALL"
"""The entry of `software` that knows every tag."""

Window = Literal["1h", "1d", "1w"]
WINDOWS = get_args(Window)
"""Throughput is known of the last hour, day and week."""


def _status(status: str) -> str:
    if status not in JOB.states:
        raise fault("choice", f"expected one of {', '.join(sorted(JOB.states))}; found {found(status)}")
    return status


def _queue_or_all(name: str, info: ValidationInfo) -> str:
    if info.context is not None and name != ALL and name not in info.context.queues:
        raise fault("reference", f"{info.context.lacking} queue {found(name)}")
    return name


Share = Annotated[str, Field(max_length=64, description="Global share.")]
ResourceClass = Annotated[str, Field(max_length=32, description="Class of resources.")]


class Link(Attributes):
    """The way of files from one site to another."""

    from_: SiteName = Field(alias="from", description="Site where files come from.")
    to: SiteName = Field(description="Site where they go.")
    activity: str = Field(PRODUCTION_OUTPUT, max_length=64, description="What they are.")
    files_queued: Count = Field(0, description="Files that wait.")
    mbps: dict[Annotated[Window, BOUNDED], Annotated[float, Field(ge=0), AS_GIVEN] | None] = Field(
        {}, description="Throughput of the last hour (1h), day (1d), week (1w)."
    )
    closeness: Annotated[float, Field(ge=-1, le=11), AS_GIVEN, TEXT_NUMBER] | None = Field(
        None, description="0 nearest, 11 farthest, -1 blocked."
    )
    at: Time | None = Field(None, description="When it was measured.")


class QueueFigures(Attributes):
    """Something at a computing queue."""

    queue: QueueName = Field(description="Computing queue.")


class Jobs(QueueFigures):
    """Jobs of one kind at a queue."""

    share: Share = ""
    resource_type: ResourceClass = ""
    n: Count = Field(0, description="How many.")
    status: Annotated[str, AfterValidator(_status)] = Field(description="Status of the jobs.")
    nucleus: SiteName = Field("", description="Where their output goes.")
    processing_type: str = Field("", description="Their processing type.")
    task_id: Count | None = Field(None, description="Their task, for jobs that ended lately.")
    user: str = Field("", description="Their user.")


class Pilots(QueueFigures):
    """Pilots of a queue."""

    requests_3h: Count = Field(0, description="Requests and updates by pilots in three hours.")
    last_start: Time | None = Field(None, description="When a job last began.")
    waiting_since: Time | None = Field(None, description="Since when the job that has waited longest for a pilot waits.")
    idle: Count = Field(0, description="Pilots that ask for a job now and get none.")
    asked_lately: Flag = Field(False, description="A pilot asked, or held a job, in the last ten minutes.")


class Slots(QueueFigures):
    """How many jobs may run, as somebody declared it."""

    share: Share = ""
    resource_type: ResourceClass = ""
    n: Count = Field(0, description="How many.")
    expires: Time | None = Field(None, description="Until when they hold.")


class Workers(QueueFigures):
    """Batch jobs that wait to become pilots."""

    n: Count = Field(0, description="How many.")


class Measured(QueueFigures):
    """What is measured of a queue's running jobs."""

    disk_io_per_core: Number = Field(0, description="Disk I/O of running jobs, kB/s per core.")
    starts_per_hour: Number = Field(0, description="Jobs that begin in an hour.")


class Replica(Attributes):
    """A dataset at a storage endpoint."""

    dataset: str = Field(description="Name of the dataset.")
    storage: StorageName = Field(description="Where it is.")
    files: Count = Field(0, description="Files of it there.")
    gb: Gigabytes = Field(0, description="Their size, GB.")


class User(Attributes):
    """What a user or a working group has."""

    name: str = Field("", description="User.")
    group: str = Field("", description="Working group.")
    running_jobs: Count = Field(0, description="Running jobs.")
    queued_jobs: Count = Field(0, description="Queued jobs.")
    running_cores: Count = Field(0, description="Running cores.")
    queued_cores: Count = Field(0, description="Queued cores.")
    quota_exceeded: Flag = Field(False, description="The global disk quota is used up.")
    full_storages: Texts = Field([], description="Storages where the local quota is used up.")


class NucleusWork(Attributes):
    """Remaining work of the tasks of a nucleus."""

    nucleus: SiteName = Field(description="Where the output of the tasks is collected.")
    share: Share = ""
    priority: Annotated[int, Field(ge=-1_000_000, le=LARGEST), WHOLE, TEXT_NUMBER] = Field(
        0, description="Priority of the tasks."
    )
    rw: Work = Field(0, description="Remaining work of the tasks, HS06 s.")


class Tag(Attributes):
    """One release or container that a queue has."""

    cmtconfig: str = ""
    project: str = ""
    release: str = ""
    container_name: str = ""
    sources: Texts = []
    tag: str = ""


class Hardware(Attributes):
    """Processors of one kind; what is not listed is not published."""

    type: str = Field("", description="cpu or gpu.")
    arch: Texts = []
    vendor: Texts = []
    instr: Texts = []
    model: Texts = []


class Software(Attributes):
    """What a queue publishes."""

    cmtconfigs: Texts = []
    containers: Texts = []
    cvmfs: Texts = []
    tags: list[Annotated[Tag, BOUNDED]] = []
    architectures: list[Annotated[Hardware, BOUNDED]] = []


LINK, SLOT, MEASURED = (attributes_of(part) for part in (Link, Slots, Measured))
WORK, SOFTWARE = attributes_of(NucleusWork), attributes_of(Software)
NO_JOBS: Mapping[str, Any] = {name: attribute.default for name, attribute in attributes_of(Jobs).items()}
"""An entry of `jobs` that says nothing; what is known stands over it."""


class StoredParts(Attributes):
    """The parts that an import stores."""

    now: Time | None = None
    links: list[Annotated[Link, BOUNDED]] = Field([], description="Ways of files between sites; each from, to and activity once.")
    slots: list[Annotated[Slots, BOUNDED]] = Field([], description="Declared slots; each queue, share and resource type once.")
    measured: list[Annotated[Measured, BOUNDED]] = Field([], description="What is measured of running jobs; each queue once.")
    software: dict[Annotated[str, AfterValidator(_queue_or_all), BOUNDED], Annotated[Software, BOUNDED]] = Field(
        {}, description=f"What queues publish, by name; {ALL} knows every tag."
    )


class Parts(StoredParts):
    """All parts, for a decision without a database."""

    jobs: list[Annotated[Jobs, BOUNDED]] = []
    pilots: list[Annotated[Pilots, BOUNDED]] = []
    workers: list[Annotated[Workers, BOUNDED]] = []
    replicas: list[Annotated[Replica, BOUNDED]] = []
    users: list[Annotated[User, BOUNDED]] = []
    work: list[Annotated[NucleusWork, BOUNDED]] = []


Entries = tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """The parts as read: entries with all their attributes, times as datetimes; software per queue; remaining work per site.

    `misfits`: jobs that wait where they fit no idle slot, by queue and share. They are not among `jobs`, since they start nothing
    and keep no slot from a job that fits.
    """

    now: datetime | None
    links: Entries = ()
    jobs: Entries = ()
    pilots: Entries = ()
    slots: Entries = ()
    workers: Entries = ()
    measured: Entries = ()
    replicas: Entries = ()
    users: Entries = ()
    work: Entries = ()
    software: Mapping[str, Mapping[str, Any]] | None = None
    total_rw: Mapping[str, float] | None = None
    misfits: Entries = ()


def read_facts(document: Mapping[str, Any], grid: Grid, parts: type[StoredParts] = Parts) -> Facts:
    """Read the parts of a document whose grid was read. Raises BadGrid; rules as there, and `time`."""
    sites, storages, queues = ({entry.name for entry in part} for part in (grid.sites, grid.storages, grid.queues))
    try:
        read = parts.model_validate(document, context=GridNames(sites, storages, queues, LACKING))
    except ValidationError as error:
        raise BadGrid(problems(error, parts)) from None
    lists = {part: _entries(value) for part, value in read if isinstance(value, list)}
    work: dict[str, Any] = {
        name: number_from_text(raw.get("total_rw") or 0) for name, raw in (document.get("sites") or {}).items()
    }
    return Facts(read.now, **lists, software=document.get("software") or {}, total_rw=work)


def _entries(part: Iterable[BaseModel]) -> Entries:
    return tuple(entry.model_dump(by_alias=True) for entry in part)


def software_problems(published: object, path: str = "") -> Iterator[Problem]:
    """What is wrong with the software document of a queue."""
    try:
        Software.model_validate(published, context=GridNames())
    except ValidationError as error:
        yield from problems(error, Software, path)
