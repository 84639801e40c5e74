"""The grid of one moment, and what of it concerns a task: shares, nucleus, input and users joined in as columns.

What does not depend on the task is made once, so are the parts of a share and of a nucleus; a further task costs its input.
Here: joining. Not here: rows that say nothing of a task (`grid_columns`), and the decision (`pipeline`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brokerage.rules.ask import Ask, ChunkDataset, Usage
from brokerage.rules.columns import Flags, Ints
from brokerage.rules.grid_columns import TO_NUCLEUS, default_output, nucleus_rows, outputs_of, places, queue_rows, up
from brokerage.rules.grid_document import Entry, Grid
from brokerage.rules.grid_facts import ALL, EXPRESS, PRODUCTION_OUTPUT, Facts
from brokerage.rules.network import latest
from brokerage.rules.snapshot import JOBS, Nuclei, Queues

COUNTED = {"sent": "starting"} | {state: state for state in (*JOBS, "transferring")}
"""Status of a job -> the column in which it counts."""

ENDED = ("finished", "failed", "closed")
WINDOWS = {"1h": timedelta(hours=1), "1d": timedelta(days=1), "1w": timedelta(days=7)}
"""How old a throughput may be (decision B14)."""

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class World:
    """A grid document at one moment. `scope` chooses the storages of queues: `analysis` for tasks of users."""

    grid: Grid
    facts: Facts
    now: datetime
    scope: str = ""

    def queues(self, ask: Ask, *, per_share: bool = True) -> Queues:
        """The queues as a task sees them; counts are of its share, or (`per_share` false) of all."""
        view = self._view(ask, per_share)
        return view.with_columns(**self._input(ask), **self._own(ask))

    def nuclei(self, ask: Ask, able_queues: Mapping[str, int] | None = None) -> Nuclei:
        """The nuclei as a task sees them; `able_queues` are those of the job broker's hint."""
        sites = self._nuclei
        columns: dict[str, NDArray[Any]] = dict(self._input_at_sites(ask))
        if able_queues is not None:
            columns["able_queues"] = np.array([able_queues.get(name, 0) for name in sites.name.tolist()], dtype=np.int64)
        return sites.with_columns(**columns)

    def completed(self, ask: Ask) -> Ask:
        """The ask with what only the grid knows: where its container is, and what its user has running."""
        tags = ((self.facts.software or {}).get(ALL) or {}).get("tags") or ()
        sources = [s for tag in tags if tag.get("container_name") == ask.container_name for s in tag.get("sources") or ()]
        if ask.container_name and not ask.container_sources:
            ask = replace(ask, container_sources=tuple(sources))
        return replace(ask, usage=self._usage(ask)) if ask.usage == Usage() else ask

    def _usage(self, ask: Ask) -> Usage:
        kind, name = ("group", ask.working_group) if ask.working_group else ("name", ask.user)
        for entry in self.facts.users:
            if name and entry[kind] == name:
                read = {member: value for member, value in entry.items() if member not in ("name", "group") and value is not None}
                return Usage(**read | {"full_storages": tuple(read.get("full_storages", ()))})
        return Usage()

    @cached_property
    def _storages(self) -> Mapping[str, Entry]:
        return {storage.name: storage for storage in self.grid.storages}

    @cached_property
    def _places(self) -> Mapping[str, Any]:
        return places(self.grid, self.scope)

    @cached_property
    def _base(self) -> Queues:
        return Queues.from_rows(queue_rows(self.grid, self.facts, self.now, self._places))

    @cached_property
    def _nuclei(self) -> Nuclei:
        return Nuclei.from_rows(nucleus_rows(self.grid, self.facts))

    @cached_property
    def _rows(self) -> Mapping[str, Ints]:
        """Queue of the document -> its rows: its own, or those of its pseudo-queues."""
        own = np.where(self._base.unified_name == "", self._base.name, self._base.unified_name)
        return _places_of(own.tolist())

    @cached_property
    def _readers(self) -> Mapping[str, Ints]:
        """Storage -> rows of the queues that read it where they are."""
        readers: dict[str, list[Ints]] = defaultdict(list)
        for queue, rows in self._rows.items():
            for storage in self._places[queue].reads:
                readers[storage.name].append(rows)
        return {storage: np.concatenate(rows) for storage, rows in readers.items()}

    @cached_property
    def _outputs(self) -> Mapping[str, Entry | None]:
        """Site -> the storage where a nucleus collects output."""
        return {site.name: default_output(outputs_of(self.grid, site.name)) for site in self.grid.sites}

    def _view(self, ask: Ask, per_share: bool) -> Queues:
        share = (ask.share or None) if per_share else None
        place = (share, ask.resource_type if per_share else None, ask.nucleus, ask.urgent)
        if place not in self._views:
            nucleus = self._nucleus(ask.nucleus, EXPRESS if ask.urgent else PRODUCTION_OUTPUT) if ask.nucleus else {}
            counted = self._base.with_columns(**self._counts(share, place[1]))
            self._views[place] = counted.with_columns(**self._users(share, counted), **nucleus)
        return self._views[place]

    @cached_property
    def _views(self) -> dict[tuple[Any, ...], Queues]:
        return {}

    def _counts(self, share: str | None, resource_type: str | None) -> Arrays:
        """Jobs of a share (None = of all) and of the others, and the slots declared for it."""
        found: dict[str, Ints] = defaultdict(lambda: np.zeros(len(self._base), dtype=np.int64))
        for job in self.facts.jobs:
            column, rows = COUNTED.get(job["status"]), self._rows.get(job["queue"])
            if column is None or rows is None:
                continue
            if column == "transferring":
                # What waits for a nucleus that cannot take it says nothing of the queue.
                stuck = job["nucleus"] and not up(self._outputs.get(job["nucleus"]), "write_wan")
                found[column][rows] += 0 if stuck else job["n"]
            elif share is None or job["share"] == share:
                found[column][rows] += job["n"]
            elif column in ("activated", "starting", "running"):
                found["others_running" if column == "running" else "others_waiting"][rows] += job["n"]
        for slot in self.facts.slots:
            open_to = slot["share"] in ("", "ANY", share) and slot["resource_type"] in ("", "ANY", resource_type)
            if (share is None or open_to) and (slot["expires"] is None or slot["expires"] > self.now):
                declared = found.setdefault("num_slots", self._base.num_slots.copy())
                rows = self._rows[slot["queue"]]
                declared[rows] = np.maximum(declared[rows], slot["n"])
        return found

    def _nucleus(self, nucleus: str, activity: str) -> Arrays:
        """What lies between each queue and a nucleus. A link begins at the site of the queue's output storage."""
        base, output = self._base, self._outputs.get(nucleus)
        at_site: Flags = base.site == nucleus
        shared = np.unique(base.storage[at_site])
        sources, at = np.unique([self._source(row) for row in range(len(base))], return_inverse=True)
        links = [self._link(source, nucleus, activity) for source in sources.tolist()]
        count, total = (
            len(base),
            sum(e["files_queued"] for e in self.facts.links if e["to"] == nucleus and e["activity"] in TO_NUCLEUS),
        )
        return {
            "at_nucleus": at_site | np.isin(base.storage, shared[shared != ""]),
            "nucleus_ok": np.full(count, output is None or up(output, "write_wan")),
            "nucleus_files": np.full(count, total, dtype=np.int64),
            "link_files": np.array([files for files, _, _ in links], dtype=np.int64)[at],
            "mbps": np.array([mbps for _, mbps, _ in links], dtype=np.float64)[at],
            "closeness": np.array([closeness for _, _, closeness in links], dtype=np.float64)[at],
        }

    def _source(self, row: int) -> str:
        storage = self._storages.get(self._base.storage[row].item())
        return str(self._base.site[row] if storage is None else storage.columns["site"])

    def _link(self, source: str, nucleus: str, activity: str) -> tuple[int, float, float]:
        """Files that wait, throughput and closeness of a link; not a number where that is not known."""
        files, mbps, closeness = 0, nan, nan
        for entry in self.facts.links:
            if (entry["from"], entry["to"]) != (source, nucleus):
                continue
            age = timedelta(0) if entry["at"] is None else self.now - entry["at"]
            if entry["activity"] == activity and age <= WINDOWS["1h"]:
                files = entry["files_queued"]
            fresh = [entry["mbps"].get(window) if age <= oldest else None for window, oldest in WINDOWS.items()]
            known = latest(*fresh)
            mbps = mbps if known is None else float(known)
            closeness = closeness if entry["closeness"] is None else float(entry["closeness"])
        return files, mbps, closeness

    def _input(self, ask: Ask) -> Arrays:
        """Where the input of the chunk is: what each queue has on local disk, and what further on local tape."""
        count = len(self._base)
        found: dict[str, NDArray[Any]] = {
            "available_gb": np.zeros(count),
            "missing_files": np.full(count, 0 if ask.chunk.datasets else ask.chunk.files, dtype=np.int64),
            "tape_gb": np.zeros(count),
            "tape_files": np.zeros(count, dtype=np.int64),
            "whole_datasets": np.zeros(count, dtype=np.int64),
            "source_ok": np.ones(count, dtype=np.bool_),
        }
        for dataset in ask.chunk.datasets:
            disk, tape = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
            known, sendable = False, False
            for entry in self._replicas.get(dataset.name, ()):
                storage = self._storages[entry["storage"]]
                known, sendable = True, sendable or up(storage, "read_wan")
                rows = self._readers.get(storage.name)
                if rows is not None:
                    files = tape if storage.columns["is_tape"] else disk
                    files[rows] = np.maximum(files[rows], min(entry["files"], dataset.files))
            further = np.maximum(tape - disk, 0)
            found["available_gb"] += disk * _gb_per_file(dataset)
            found["missing_files"] += dataset.files - disk
            found["tape_gb"] += further * _gb_per_file(dataset)
            found["tape_files"] += further
            found["whole_datasets"] += disk >= dataset.files
            if known and not sendable:
                found["source_ok"] &= np.maximum(disk, tape) >= dataset.files
        return found

    def _input_at_sites(self, ask: Ask) -> Arrays:
        """What of the input each nucleus has, on disk or tape."""
        names = self._nuclei.index
        gb, files = np.zeros(len(names)), np.zeros(len(names), dtype=np.int64)
        on_tape = np.zeros(len(names), dtype=np.bool_)
        for dataset in ask.chunk.datasets:
            disk, tape = np.zeros(len(names), dtype=np.int64), np.zeros(len(names), dtype=np.int64)
            for entry in self._replicas.get(dataset.name, ()):
                storage = self._storages[entry["storage"]]
                row = names.get(storage.columns["site"])
                if row is not None:
                    there = tape if storage.columns["is_tape"] else disk
                    there[row] = max(there[row], min(entry["files"], dataset.files))
            files += np.maximum(disk, tape)
            gb += np.maximum(disk, tape) * _gb_per_file(dataset)
            on_tape |= tape > disk
        return {"available_gb": gb, "available_files": files, "tape_only": on_tape}

    @cached_property
    def _replicas(self) -> Mapping[str, list[Mapping[str, Any]]]:
        return _grouped(self.facts.replicas, "dataset")

    @cached_property
    def _by_task(self) -> Mapping[Any, list[Mapping[str, Any]]]:
        return _grouped((job for job in self.facts.jobs if job["status"] in ENDED), "task_id")

    @cached_property
    def _by_user(self) -> Mapping[str, list[Mapping[str, Any]]]:
        return _grouped((job for job in self.facts.jobs if COUNTED.get(job["status"]) in JOBS and job["user"]), "user")

    def _users(self, share: str | None, view: Queues) -> Arrays:
        """How many users have jobs of the share at each queue, and how many of its jobs begin there in an hour."""
        names: dict[str, set[str]] = defaultdict(set)
        for user, jobs in self._by_user.items():
            for job in jobs:
                if share is None or job["share"] == share:
                    names[job["queue"]].add(user)
        users, starts = np.zeros(len(view), dtype=np.int64), np.zeros(len(view))
        for queue, known in names.items():
            users[self._rows[queue]] = len(known)
        for entry in self.facts.measured:
            starts[self._rows[entry["queue"]]] = entry["starts_per_hour"]
        return {"n_users": users, "starts_per_hour": starts * view.running / np.maximum(view.running_in_all, 1)}

    def _own(self, ask: Ask) -> Arrays:
        """Jobs of the task that ended lately, and those of its user and share."""
        found: dict[str, NDArray[Any]] = defaultdict(lambda: np.zeros(len(self._base), dtype=np.int64))
        for job in self._by_task.get(ask.task_id, ()):
            found[f"task_{job['status']}"][self._rows[job["queue"]]] += job["n"]
        for job in self._by_user.get(ask.user or "", ()):
            if not ask.share or job["share"] == ask.share:
                column = "user_running" if job["status"] == "running" else "user_queued"
                found[column][self._rows[job["queue"]]] += job["n"]
        return found


def _gb_per_file(dataset: ChunkDataset) -> float:
    return dataset.gb / dataset.files if dataset.files else 0.0


def _grouped(entries: Iterable[Mapping[str, Any]], attribute: str) -> Mapping[Any, list[Mapping[str, Any]]]:
    found: dict[Any, list[Mapping[str, Any]]] = defaultdict(list)
    for entry in entries:
        found[entry[attribute]].append(entry)
    return found


def _places_of(names: Iterable[str]) -> Mapping[str, Ints]:
    """Name -> where it stands."""
    found: dict[str, list[int]] = defaultdict(list)
    for row, name in enumerate(names):
        found[name].append(row)
    return {name: np.array(rows, dtype=np.int64) for name, rows in found.items()}
