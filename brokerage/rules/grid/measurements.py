"""What a grid document says of the moment: links, jobs, pilots, slots, workers, what was measured, replicas, users, software.

Pure. A decision without a database needs these parts; their references lead to the sites, storages and queues of the same
document. Here: the parts, their attributes and their faults. Not here: columns made of them (`grid_columns`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from brokerage.rules.grid.attributes import LONGEST_NAME, Table, table
from brokerage.rules.grid.document import Grid
from brokerage.rules.grid.reading import Reading, read_columns
from brokerage.states import JOB
from workqueues.rules.task_parameters import Parameter, found

PRODUCTION_OUTPUT, EXPRESS = "Production Output", "Express"
"""Activities whose files go to a nucleus."""

ALL = "ALL"
"""The entry of `software` that knows every tag."""

_QUEUE = Parameter("queue", "text", "Computing queue.", required=True, length=LONGEST_NAME)
_N = Parameter("n", "int", "How many.", default=0)
_SHARE = Parameter("share", "text", "Global share.", default="", length=64)
_TYPE = Parameter("resource_type", "text", "Class of resources.", default="", length=32)

LINK = table(
    Parameter("from", "text", "Site where files come from.", required=True),
    Parameter("to", "text", "Site where they go.", required=True),
    Parameter("activity", "text", "What they are.", default=PRODUCTION_OUTPUT, length=64),
    Parameter("files_queued", "int", "Files that wait.", default=0),
    Parameter("mbps", "object", "Throughput of the last hour (1h), day (1d), week (1w).", default={}),
    Parameter("closeness", "number", "0 nearest, 11 farthest, -1 blocked.", low=-1, high=11),
    Parameter("at", "text", "When it was measured."),
)
JOBS = table(
    *(_QUEUE, _SHARE, _TYPE, _N),
    Parameter("status", "text", "Status of the jobs.", required=True, choices=tuple(sorted(JOB.states))),
    Parameter("nucleus", "text", "Where their output goes.", default=""),
    Parameter("processing_type", "text", "Their processing type.", default=""),
    Parameter("task_id", "int", "Their task, for jobs that ended lately."),
    Parameter("user", "text", "Their user.", default=""),
)
PILOT = table(
    _QUEUE,
    Parameter("requests_3h", "int", "Requests and updates by pilots in three hours.", default=0),
    Parameter("last_start", "text", "When a job last began."),
)
SLOT = table(_QUEUE, _SHARE, _TYPE, _N, Parameter("expires", "text", "Until when they hold."))
WORKER = table(_QUEUE, _N)
MEASURED = table(
    _QUEUE,
    Parameter("disk_io_per_core", "number", "Disk I/O of running jobs, kB/s per core.", default=0),
    Parameter("starts_per_hour", "number", "Jobs that begin in an hour.", default=0),
)
REPLICA = table(
    Parameter("dataset", "text", "Name of the dataset.", required=True),
    Parameter("storage", "text", "Where it is.", required=True),
    Parameter("files", "int", "Files of it there.", default=0),
    Parameter("gb", "number", "Their size, GB.", default=0, high=1e12),
)
USER = table(
    Parameter("name", "text", "User.", default=""),
    Parameter("group", "text", "Working group.", default=""),
    *(
        Parameter(f"{state}_{what}", "int", f"{state} {what}", default=0)
        for what in ("jobs", "cores")
        for state in ("running", "queued")
    ),
    Parameter("quota_exceeded", "flag", "The global disk quota is used up.", default=False),
    Parameter("full_storages", "texts", "Storages where the local quota is used up.", default=()),
)
WORK = table(
    Parameter("nucleus", "text", "Where the output of the tasks is collected.", required=True, length=LONGEST_NAME),
    _SHARE,
    Parameter("priority", "int", "Priority of the tasks.", default=0, low=-1_000_000),
    Parameter("rw", "number", "Remaining work of the tasks, HS06 s.", default=0, high=1e18),
)
NUCLEUS = table(Parameter("total_rw", "number", "Remaining work of the tasks of a nucleus, HS06 s.", default=0, high=1e18))

PARTS: Mapping[str, Table] = {
    "links": LINK,
    "jobs": JOBS,
    "pilots": PILOT,
    "slots": SLOT,
    "workers": WORKER,
    "measured": MEASURED,
    "replicas": REPLICA,
    "users": USER,
    "work": WORK,
}
"""Parts that are lists, with the attributes of an entry."""

_TIMES = ("at", "last_start", "expires")
WINDOWS = ("1h", "1d", "1w")
"""Throughput is known of the last hour, day and week."""
SOFTWARE_LISTS = ("cmtconfigs", "containers", "cvmfs")
SOFTWARE_OBJECTS = ("tags", "architectures")
"""Members of a software document: lists of texts, and lists of objects."""

Entries = tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """The parts as read: entries with all their attributes, times as datetimes; software per queue; remaining work per site."""

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


def read_facts(document: Mapping[str, Any], grid: Grid, wanted: Collection[str] = tuple(PARTS)) -> Facts:
    """Read the parts of a document whose grid was read: `wanted` ones, software and time always.

    Raises BadGrid; rules as there, and `time`.
    """
    reading = Reading()
    now = _time(document.get("now"), "now", reading)
    parts = {
        part: tuple(_entries(document.get(part), part, attributes, reading))
        for part, attributes in PARTS.items()
        if part in wanted
    }
    software = dict(_software(document.get("software"), grid, reading))
    sites = document.get("sites") or {}
    work = {name: read_columns(NUCLEUS, raw, f"sites.{name}", reading)["total_rw"] for name, raw in sites.items()}
    _references(parts, grid, reading)
    reading.end()
    return Facts(now, **parts, software=software, total_rw=work)


def moment(text: str) -> datetime:
    """A time as documents write it; without zone it is UTC. Raises ValueError."""
    read = datetime.fromisoformat(text)
    return read.replace(tzinfo=UTC) if read.tzinfo is None else read


def _time(raw: object, path: str, reading: Reading) -> datetime | None:
    if raw in (None, ""):
        return None
    try:
        return moment(str(raw))
    except ValueError:
        reading.fault(path, "time", f"expected a time like 2026-11-21T12:00:00Z, found {found(raw)}")
        return None


def _entries(raw: object, part: str, attributes: Table, reading: Reading) -> Iterator[dict[str, Any]]:
    if raw is None:
        return
    if not isinstance(raw, list):
        reading.fault(part, "type", f"expected a list, found {found(raw)}")
        return
    for position, entry in enumerate(raw):
        path = f"{part}[{position}]"
        if not isinstance(entry, Mapping):
            reading.fault(path, "type", f"expected an object, found {found(entry)}")
            continue
        columns = read_columns(attributes, entry, path, reading)
        for name in _TIMES:
            if name in columns:
                columns[name] = _time(columns[name], f"{path}.{name}", reading)
        if part == "links":
            _windows(columns["mbps"] or {}, path, reading)
        yield columns


def _windows(mbps: Mapping[str, Any], path: str, reading: Reading) -> None:
    for window, value in mbps.items():
        if window not in WINDOWS:
            reading.fault(f"{path}.mbps.{window}", "unknown", f"expected one of {', '.join(WINDOWS)}")
        elif value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            reading.fault(f"{path}.mbps.{window}", "type", f"expected a number, found {found(value)}")
        elif value is not None and value < 0:
            reading.fault(f"{path}.mbps.{window}", "range", f"expected 0 or more, found {found(value)}")


def _software(raw: object, grid: Grid, reading: Reading) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if raw is None:
        return
    if not isinstance(raw, Mapping):
        reading.fault("software", "type", f"expected an object with one member for each queue, found {found(raw)}")
        return
    known = {queue.name for queue in grid.queues} | {ALL}
    for name, published in raw.items():
        path = f"software.{name}"
        if name not in known:
            reading.fault(path, "reference", f"the document has no queue {found(name)}")
        elif not isinstance(published, Mapping):
            reading.fault(path, "type", f"expected an object, found {found(published)}")
        else:
            for fault in software_faults(published):
                reading.fault(
                    f"{path}.{fault}", "type", "expected a list of texts, in an object of a list: texts and lists of texts"
                )
            yield name, published


def software_faults(published: Mapping[str, Any]) -> Iterator[str]:
    """The members of a software document that are not what the broker reads."""
    for name in SOFTWARE_LISTS:
        if not _texts(published.get(name) or []):
            yield name
    for name in SOFTWARE_OBJECTS:
        entries = published.get(name) or []
        if not isinstance(entries, list):
            yield name
            continue
        for position, entry in enumerate(entries):
            if not isinstance(entry, Mapping):
                yield f"{name}[{position}]"
                continue
            yield from (
                f"{name}[{position}].{member}"
                for member, value in entry.items()
                if not (value is None or isinstance(value, str) or _texts(value))
            )


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _references(parts: Mapping[str, Entries], grid: Grid, reading: Reading) -> None:
    known = {
        "queue": {queue.name for queue in grid.queues},
        "storage": {storage.name for storage in grid.storages},
        "site": {site.name for site in grid.sites},
    }
    kinds = {"queue": "queue", "storage": "storage", "from": "site", "to": "site", "nucleus": "site"}
    for part, entries in parts.items():
        for position, entry in enumerate(entries):
            for attribute, kind in kinds.items():
                name = entry.get(attribute)
                if isinstance(name, str) and name and name not in known[kind]:
                    noun = "storage endpoint" if kind == "storage" else kind
                    reading.fault(f"{part}[{position}].{attribute}", "reference", f"the document has no {noun} {found(name)}")
