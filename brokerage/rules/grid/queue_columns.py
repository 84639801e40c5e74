"""Columns made of a grid document: what stands in it for queues and nuclei, whatever the task.

Here: one row for each queue and nucleus. Not here: reading the document (`document`, `measurements`), and what depends on the
task (`world`). Attributes and roles of storage: facts on queues 5.1 to 5.3.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from brokerage.rules.grid.attributes import FURTHER, QUEUE
from brokerage.rules.grid.document import Entry, Grid, QueueEntry
from brokerage.rules.grid.measurements import EXPRESS, PRODUCTION_OUTPUT, Facts
from brokerage.rules.grid.output_storages import OutputStorage, written
from brokerage.rules.grid.pseudo_queues import Row, expanded
from brokerage.states import JOB


def switches_in(catchall: str) -> dict[str, str]:
    """The comma list `name` or `name=value` of a queue; a name alone has an empty value. Names are compared exactly."""
    parts = (item.partition("=") for item in catchall.split(","))
    return {name.strip(): value.strip() for name, _, value in parts if name.strip()}


class Switches:
    """What is switched on at a queue; `params` come before `catchall`."""

    def __init__(self, catchall: str, params: Mapping[str, Any] | None = None) -> None:
        self._values: dict[str, Any] = {name: value or True for name, value in switches_in(catchall).items()}
        self._values |= dict(params or {})

    def on(self, name: str) -> bool:
        """Whether the switch is there and not off."""
        return str(self._values.get(name, "")).lower() not in ("", "false", "0", "none")

    def text(self, name: str) -> str:
        """The value of a switch, empty where it is not there or has none."""
        value = self._values.get(name)
        return "" if value is None or isinstance(value, bool) else str(value)

    def number(self, name: str) -> float:
        """The value of a switch as a number; 0 where it is not there or is none."""
        try:
            return float(self.text(name) or 0)
        except ValueError:
            return 0.0


IN_USE = "ACTIVE"
VIRTUAL = "_VP_DISK"
"""How names of storages end that are caches of virtual placement."""

SEEN_SPACE = "free_gb_from"
"""Attribute of a storage whose free space is not published: where the number comes from."""

TO_NUCLEUS = (PRODUCTION_OUTPUT, EXPRESS)


@dataclass(frozen=True, slots=True)
class QueueStorages:
    """The storages in use that a queue reads and writes, the default first in each."""

    reads: tuple[Entry, ...]
    writes: tuple[Entry, ...]

    @property
    def output(self) -> Entry | None:
        """Where output goes."""
        return self.writes[0] if self.writes else None


def queue_storages(grid: Grid, scope: str = "") -> Mapping[str, QueueStorages]:
    """Queue -> its storages. `scope` (as `analysis`): roles of that scope where the queue has them.

    A queue that gives storages for one of reading and writing only has the same for both.
    """
    active = {storage.name: storage for storage in grid.storages if storage.columns["state"] == IN_USE}
    by_queue = {}
    for queue in grid.queues:
        reads, writes = (_role(queue, f"{role}_lan", scope, active) for role in ("read", "write"))
        by_queue[queue.name] = QueueStorages(reads or writes, writes or reads)
    return by_queue


def _role(queue: QueueEntry, role: str, scope: str, active: Mapping[str, Entry]) -> tuple[Entry, ...]:
    scoped = [entry for entry in queue.storages if scope and entry[0] == f"{role}_{scope}"]
    listed = scoped or [entry for entry in queue.storages if entry[0] == role]
    return tuple(active[name] for _, name, _ in sorted(listed, key=lambda entry: entry[2]) if name in active)


def up(storage: Entry | None, access: str) -> bool:
    """Whether a storage is in use and in service for an access; what is not said is."""
    if storage is None or storage.columns["state"] != IN_USE:
        return False
    status: Mapping[str, str] = storage.columns["status"] or {}
    return status.get(access, "ON") == "ON"


def usable_gb(storage: Entry) -> float | None:
    """Free and expired space; None where neither is published."""
    free, expired = storage.columns["free_gb"], storage.columns["expired_gb"]
    return None if free is None and expired is None else (free or 0.0) + (expired or 0.0)


def queue_rows(
    grid: Grid,
    facts: Facts,
    now: datetime,
    storages_of: Mapping[str, QueueStorages],
    attributes: Collection[str] = (*QUEUE, *FURTHER),
) -> Iterator[Row]:
    """Rows of `Queues` in which nothing is said of a task, with these attributes; unified queues as their pseudo-queues."""
    busy = _Activity(facts, now)
    states = {site.name: site.columns["state"] for site in grid.sites}
    rows = ((_queue_row(queue, storages_of[queue.name], facts, busy, attributes), queue) for queue in grid.queues)
    return expanded((_closed(row, states[queue.columns["site"]]), queue.columns["capability"] or "") for row, queue in rows)


def _closed(row: Row, state: str) -> Row:
    """The queues of a site that is not in use are not either."""
    return row if state == IN_USE else {**row, "status": f"closed with its site ({state})"}


class _Activity:
    """What is known of the pilots, workers and jobs at each queue."""

    def __init__(self, facts: Facts, now: datetime) -> None:
        self.requests = _sums(facts.pilots, "requests_3h")
        self.workers = _sums(facts.workers, "n")
        self.disk_io = {entry["queue"]: entry["disk_io_per_core"] for entry in facts.measured}
        self.running = _sums((job for job in facts.jobs if job["status"] in JOB.leased), "n")
        self.idle: dict[str, float] = {}
        for entry in facts.pilots:
            if (since := entry["last_start"] or entry.get("waiting_since")) is not None:
                idle = (now - since).total_seconds()
                self.idle[entry["queue"]] = min(idle, self.idle.get(entry["queue"], idle))


def _sums(entries: Iterable[Mapping[str, Any]], attribute: str) -> Mapping[str, int]:
    sums: dict[str, int] = defaultdict(int)
    for entry in entries:
        sums[entry["queue"]] += entry[attribute]
    return sums


def _queue_row(queue: QueueEntry, storages: QueueStorages, facts: Facts, busy: _Activity, attributes: Collection[str]) -> Row:
    columns, name = queue.columns, queue.name
    further = columns["attributes"]
    switches = Switches(columns["catchall"] or "", further.get("params"))
    source, output = storages.reads[0] if storages.reads else None, storages.output
    row: dict[str, Any] = {name: columns.get(name) if name in QUEUE else further.get(name) for name in attributes}
    cores = max(columns["corecount"], 1)
    if switches.on("per_core_attr"):
        row |= {column: row[column] * cores for column in ("maxrss", "minrss", "maxwdir")}
    if per_core := switches.number("maxDiskPerCore"):
        row["maxwdir"] = per_core * cores
    if switches.on("grandly_unified"):
        row["type"] = "unified"
    return row | {
        "name": name,
        "site": columns["site"],
        "cloud": str(further.get("cloud") or "").split(",")[0].strip(),
        "storage": "" if output is None else output.name,
        "output_site": "" if output is None else output.columns["site"],
        "space_gb": None if output is None else usable_gb(output),
        "space_origin": "" if output is None else output.columns["attributes"].get(SEEN_SPACE, ""),
        "input_space_gb": None if source is None or source is output else usable_gb(source),
        "max_io_intensity": switches.number("max_io_intensity"),
        "use_only_local_data": switches.on("use_only_local_data"),
        "allow_no_pilot": switches.on("allow_no_pilot") or columns.get("submission", "none") != "none",
        "gpu": switches.on("gpu"),
        "allowed_processing": switches.text("allowed_processing"),
        "excluded_processing": switches.text("excluded_processing"),
        "virtual": any(storage.name.endswith(VIRTUAL) for storage in storages.reads),
        "direct_access_lan": further.get("direct_access_lan") is True,
        "any_release": "ANY" in (further.get("releases") or ()),
        "software": _software(name, further.get("releases") or (), facts),
        "read_lan_ok": any(up(storage, "read_lan") for storage in storages.reads),
        "write_lan_ok": any(up(storage, "write_lan") for storage in storages.writes),
        "read_wan_ok": up(output, "read_wan"),
        "write_wan_ok": up(source, "write_wan"),
        "requests_3h": busy.requests.get(name),
        "idle_s": busy.idle.get(name),
        "disk_io": busy.disk_io.get(name),
        "n_batch": busy.workers.get(name),
        "running_cores": busy.running.get(name, 0) * cores,
    }


def _software(queue: str, releases: Sequence[str], facts: Facts) -> str:
    """What the queue publishes, with the releases that its own document names."""
    published: dict[str, Any] = dict((facts.software or {}).get(queue) or {})
    named = [release for release in releases if release not in ("ANY", "AUTO")]
    if named:
        published["releases"] = named
    return json.dumps(published, sort_keys=True) if published else ""


def nucleus_rows(grid: Grid, facts: Facts, files: Mapping[str, int]) -> Iterator[Row]:
    """Rows of `Nuclei` in which nothing is said of a task; `files`: how many are on their way to each."""
    for site in grid.sites:
        if site.columns["nucleus"]:
            storages = outputs_of(grid, site.name)
            default = default_output(storages)
            yield {
                "name": site.name,
                "state": site.columns["state"],
                "free_gb": None if default is None else usable_gb(default),
                "storages": written(output_storage(storage) for storage in storages),
                "can_send": up(default, "read_wan"),
                "can_receive": up(default, "write_wan"),
                "files_queued": files.get(site.name),
                "total_rw": (facts.total_rw or {}).get(site.name),
            }


def outputs_of(grid: Grid, site: str) -> list[Entry]:
    """The storages in use of a site."""
    return [storage for storage in grid.storages if storage.columns["site"] == site and storage.columns["state"] == IN_USE]


def default_output(storages: Iterable[Entry]) -> Entry | None:
    """Where the output of tasks is collected: the roomiest one that is no tape."""
    return max((s for s in storages if not s.columns["is_tape"]), key=lambda s: usable_gb(s) or 0.0, default=None)


def output_storage(storage: Entry) -> OutputStorage:
    """An endpoint as one that takes output."""
    kind = storage.columns["type"] or ""
    return OutputStorage(storage.name, kind, usable_gb(storage) or 0.0, up(storage, "read_wan"), up(storage, "write_wan"))
