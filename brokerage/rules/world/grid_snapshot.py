"""The grid of one moment, and what of it concerns a task: shares, nucleus, input and users joined in as columns.

What does not depend on the task is made once, so are the parts of a share and of a nucleus; a further task costs its input.
Here: joining. Not here: rows that say nothing of a task (`grid_columns`), counting jobs (`job_counts`), links
(`link_columns`), and the decision (`pipeline`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brokerage.rules.facts.ask import Ask, ChunkDataset, Usage
from brokerage.rules.facts.columns import Flags, Ints
from brokerage.rules.facts.snapshot import Nuclei, Queues
from brokerage.rules.facts.software import container_sources
from brokerage.rules.grid.attributes import FURTHER, QUEUE
from brokerage.rules.grid.document import Entry, Grid
from brokerage.rules.grid.measurements import ALL, EXPRESS, PRODUCTION_OUTPUT, Facts
from brokerage.rules.grid.queue_columns import (
    QueueStorages,
    default_output,
    nucleus_rows,
    outputs_of,
    queue_rows,
    queue_storages,
    up,
)
from brokerage.rules.world.job_counts import JobCounts
from brokerage.rules.world.link_columns import LinkColumns, files_to_nuclei
from brokerage.states import JOB

Arrays = Mapping[str, NDArray[Any]]

ATTRIBUTES = tuple(name for name in (*QUEUE, *FURTHER) if name in Queues.kinds())
"""Attributes of a queue that rules read."""


@dataclass(frozen=True, eq=False)
class GridSnapshot:
    """A grid document at one moment. `scope` chooses the storages of queues: `analysis` for tasks of users."""

    grid: Grid
    facts: Facts
    now: datetime
    scope: str = ""

    def queues(self, ask: Ask, *, per_share: bool = True) -> Queues:
        """The queues as a task sees them; counts are of its share, or (`per_share` false) of all."""
        view = self._view(ask, per_share)
        of_task = {**self._input(ask), **self._ended_and_used(ask)}
        return view.with_columns(**of_task) if of_task else view

    def nuclei(self, ask: Ask, able_queues: Mapping[str, int] | None = None, added: Sequence[Mapping[str, Any]] = ()) -> Nuclei:
        """The nuclei as a task sees them.

        `able_queues` are those of the job broker's hint, `added` is work that came to nuclei since, as the part
        `work` has it.
        """
        sites, names = self._nuclei, self._nuclei.name.tolist()
        columns: dict[str, NDArray[Any]] = dict(self._input_at_sites(ask))
        if able_queues is not None:
            columns["able_queues"] = np.array([able_queues.get(name, 0) for name in names], dtype=np.int64)
        if added:
            columns["total_rw"] = sites.total_rw + _sums(added, names)
        if work := (*self.facts.work, *added):
            ahead = (e for e in work if e["priority"] >= ask.priority and (not ask.share or e["share"] == ask.share))
            columns["ahead_rw"] = _sums(ahead, names)
        return sites.with_columns(**columns) if columns else sites

    def completed(self, ask: Ask) -> Ask:
        """The ask with what only the grid knows: where its container is, and what its user has running."""
        if ask.container_name and not ask.container_sources:
            ask = replace(ask, container_sources=self._container_sources.get(ask.container_name, ()))
        return replace(ask, usage=self._usage(ask)) if ask.usage == Usage() else ask

    def knowing(self, replicas: Sequence[Mapping[str, Any]], ended: Sequence[Mapping[str, Any]]) -> GridSnapshot:
        """The same grid, which also knows where the input of some tasks is and how their jobs ended lately.

        What was made of the rest is not made again.
        """
        if not replicas and not ended:
            return self
        facts = replace(self.facts, replicas=(*self.facts.replicas, *replicas))
        if ended:
            facts = replace(facts, jobs=(*facts.jobs, *ended))
        self._warm()
        snapshot = object.__new__(GridSnapshot)
        parts = {"_replicas": {**self._replicas, **_grouped(facts.replicas, "dataset")}} if replicas else {}
        if ended:
            jobs = [job for task_id in {job["task_id"] for job in ended} for job in self._by_task.get(task_id, ())]
            parts["_by_task"] = {**self._by_task, **_grouped((*jobs, *ended), "task_id")}
        snapshot.__dict__.update(self.__dict__, facts=facts, _scoped={}, **parts)
        return snapshot

    def _warm(self) -> None:
        """Make what copies share before there is a copy, or each would make its own."""
        _ = self._base, self._nuclei, self._rows, self._readers, self._jobs, self._links, self._starts, self._outputs, self._views
        _ = self._replicas, self._by_task

    def scoped(self, scope: str) -> GridSnapshot:
        """The same grid as tasks of another scope see it."""
        if scope == self.scope:
            return self
        if scope not in self._scoped:
            self._scoped[scope] = GridSnapshot(self.grid, self.facts, self.now, scope)
        return self._scoped[scope]

    @cached_property
    def _scoped(self) -> dict[str, GridSnapshot]:
        return {}

    def _usage(self, ask: Ask) -> Usage:
        who = ("group", ask.working_group) if ask.working_group else ("name", ask.user or "")
        return self._usages.get(who, Usage())

    @cached_property
    def _usages(self) -> Mapping[tuple[str, str], Usage]:
        usages: dict[tuple[str, str], Usage] = {}
        for entry in self.facts.users:
            read = {member: value for member, value in entry.items() if member not in ("name", "group") and value is not None}
            usage = Usage(**read | {"full_storages": tuple(read.get("full_storages", ()))})
            for kind in ("name", "group"):
                if entry[kind]:
                    usages.setdefault((kind, entry[kind]), usage)
        return usages

    @cached_property
    def _container_sources(self) -> Mapping[str, tuple[str, ...]]:
        return container_sources(((self.facts.software or {}).get(ALL) or {}).get("tags") or ())

    @property
    def has_nuclei(self) -> bool:
        """Whether output can be collected anywhere."""
        return any(site.columns["nucleus"] for site in self.grid.sites)

    @cached_property
    def storages(self) -> Mapping[str, Entry]:
        """The storages by name."""
        return {storage.name: storage for storage in self.grid.storages}

    @cached_property
    def queue_storages(self) -> Mapping[str, QueueStorages]:
        """The storages of each queue in this scope."""
        return queue_storages(self.grid, self.scope)

    @cached_property
    def far_readers(self) -> Collection[str]:
        """The queues at which jobs read input directly, in the site and from other sites."""
        both = ("direct_access_lan", "direct_access_wan")
        return {q.name for q in self.grid.queues if all(q.columns["attributes"].get(name) is True for name in both)}

    @cached_property
    def far_sources(self) -> Collection[str]:
        """The storages from which other sites may read."""
        return {storage.name for storage in self.grid.storages if not storage.columns["is_tape"] and up(storage, "read_wan")}

    @cached_property
    def _far_reading(self) -> Flags:
        return np.array([name in self.far_readers for name in self._base.own_names], dtype=np.bool_)

    @cached_property
    def _base(self) -> Queues:
        return Queues.from_rows(queue_rows(self.grid, self.facts, self.now, self.queue_storages, ATTRIBUTES))

    @cached_property
    def _nuclei(self) -> Nuclei:
        return Nuclei.from_rows(nucleus_rows(self.grid, self.facts, files_to_nuclei(self.facts.links, self.now)))

    @cached_property
    def _rows(self) -> Mapping[str, Ints]:
        """Queue of the document -> its rows: its own, or those of its pseudo-queues."""
        rows_of: dict[str, list[int]] = defaultdict(list)
        for row, name in enumerate(self._base.own_names):
            rows_of[name].append(row)
        return {name: np.array(rows, dtype=np.int64) for name, rows in rows_of.items()}

    @cached_property
    def _readers(self) -> Mapping[str, Ints]:
        """Storage -> rows of the queues that read it where they are."""
        readers: dict[str, list[Ints]] = defaultdict(list)
        for queue, rows in self._rows.items():
            for storage in self.queue_storages[queue].reads:
                if up(storage, "read_lan"):
                    readers[storage.name].append(rows)
        return {storage: np.concatenate(rows) for storage, rows in readers.items()}

    @cached_property
    def _outputs(self) -> Mapping[str, Entry | None]:
        """Site -> the storage where a nucleus collects output."""
        return {site.name: default_output(outputs_of(self.grid, site.name)) for site in self.grid.sites}

    @cached_property
    def _jobs(self) -> JobCounts:
        names = list(self._rows)
        at = {name: i for i, name in enumerate(names)}
        rows_at = np.array([at[name] for name in self._base.own_names], dtype=np.int64)
        return JobCounts(self.facts.jobs, names, rows_at, lambda nucleus: not up(self._outputs.get(nucleus), "write_wan"))

    @cached_property
    def _links(self) -> LinkColumns:
        return LinkColumns(self.facts.links, self._base, self.now)

    def _view(self, ask: Ask, per_share: bool) -> Queues:
        share = (ask.share or None) if per_share else None
        counted = self._counted(share, ask.resource_type if per_share else None)
        if not ask.nucleus:
            return counted
        place = (share, ask.resource_type if per_share else None, ask.nucleus, ask.urgent)
        if place not in self._views:
            nucleus = self._nucleus(ask.nucleus, EXPRESS if ask.urgent else PRODUCTION_OUTPUT)
            self._views[place] = counted.with_columns(**nucleus)
        view: Queues = self._views[place]
        return view

    @cached_property
    def _views(self) -> dict[tuple[Any, ...], Any]:
        """What was made for shares, nuclei and both."""
        return {}

    def _counted(self, share: str | None, resource_type: str | None) -> Queues:
        """The queues with the jobs of a share (None = of all), and the slots declared for it and a class of resources."""
        if ("share", share) not in self._views:
            counts = self._jobs.of_share(share)
            running, in_all = counts["running"], counts["running"] + counts["others_running"]
            counts["n_users"] = self._jobs.users(share)
            starts = {"starts_per_hour": self._starts * running / np.maximum(in_all, 1)}
            self._views["share", share] = self._base.with_columns(**counts, **starts)
        counted: Queues = self._views["share", share]
        if not self.facts.slots:
            return counted
        place = ("slots", share, resource_type)
        if place not in self._views:
            self._views[place] = counted.with_columns(num_slots=self._slots(share, resource_type))
        view: Queues = self._views[place]
        return view

    def _slots(self, share: str | None, resource_type: str | None) -> Ints:
        """Slots declared for the jobs of a share (None = of all) and a class of resources."""
        declared = self._base.num_slots.copy()
        for slot in self.facts.slots:
            open_to = slot["share"] in ("", "ANY", share) and slot["resource_type"] in ("", "ANY", resource_type)
            if (share is None or open_to) and (slot["expires"] is None or slot["expires"] > self.now):
                rows = self._rows[slot["queue"]]
                declared[rows] = np.maximum(declared[rows], 0) + slot["n"]
        return declared

    @cached_property
    def _starts(self) -> NDArray[np.float64]:
        starts = np.zeros(len(self._base))
        for entry in self.facts.measured:
            starts[self._rows[entry["queue"]]] = entry["starts_per_hour"]
        return starts

    def _nucleus(self, nucleus: str, activity: str) -> Arrays:
        """What lies between each queue and a nucleus."""
        if ("nucleus", nucleus, activity) not in self._views:
            base, output = self._base, self._outputs.get(nucleus)
            self._views["nucleus", nucleus, activity] = {
                "at_nucleus": base.source_site == nucleus,
                "nucleus_ok": np.full(len(base), output is None or up(output, "write_wan")),
                **self._links.to(nucleus, activity),
            }
        columns: Arrays = self._views["nucleus", nucleus, activity]
        return columns

    def _input(self, ask: Ask) -> Arrays:
        """Where the input of the chunk is: what each queue has on local disk, and what further on local tape."""
        if not ask.chunk.datasets:
            return {"missing_files": np.full(len(self._base), ask.chunk.files, dtype=np.int64)} if ask.chunk.files else {}
        count = len(self._base)
        columns: dict[str, NDArray[Any]] = {
            "available_gb": np.zeros(count),
            "missing_files": np.zeros(count, dtype=np.int64),
            "whole_datasets": np.zeros(count, dtype=np.int64),
        }
        for dataset in ask.chunk.datasets:
            disk, tape, sendable = self._copies(dataset, far=ask.read_wan)
            columns["available_gb"] += disk * _gb_per_file(dataset)
            columns["missing_files"] += dataset.files - disk
            columns["whole_datasets"] += disk >= dataset.files
            if tape.any():
                further = np.maximum(tape - disk, 0)
                columns["tape_gb"] = columns.get("tape_gb", 0.0) + further * _gb_per_file(dataset)
                columns["tape_files"] = columns.get("tape_files", 0) + further
            if not sendable:
                columns["source_ok"] = columns.get("source_ok", True) & (np.maximum(disk, tape) >= dataset.files)
        return columns

    def _copies(self, dataset: ChunkDataset, *, far: bool) -> tuple[Ints, Ints, bool]:
        """Files that each queue has on local disk and on local tape; whether a copy can be sent, or none is known at all.

        `far`: what a queue reads from other sites is as if it were there.
        """
        disk, tape = np.zeros(len(self._base), dtype=np.int64), np.zeros(len(self._base), dtype=np.int64)
        copies = self._replicas.get(dataset.name, ())
        for entry in copies:
            storage = self.storages[entry["storage"]]
            rows = self._readers.get(storage.name)
            if rows is not None:
                files = tape if storage.columns["is_tape"] else disk
                files[rows] = np.maximum(files[rows], min(entry["files"], dataset.files))
            if far and storage.name in self.far_sources:
                disk = np.where(self._far_reading, np.maximum(disk, min(entry["files"], dataset.files)), disk)
        return disk, tape, not copies or any(up(self.storages[entry["storage"]], "read_wan") for entry in copies)

    def _input_at_sites(self, ask: Ask) -> Arrays:
        """What of the input each nucleus has, on disk or tape."""
        if not ask.chunk.datasets:
            return {}
        names = self._nuclei.index
        gb, files = np.zeros(len(names)), np.zeros(len(names), dtype=np.int64)
        on_tape = np.zeros(len(names), dtype=np.bool_)
        for dataset in ask.chunk.datasets:
            disk, tape = np.zeros(len(names), dtype=np.int64), np.zeros(len(names), dtype=np.int64)
            for entry in self._replicas.get(dataset.name, ()):
                storage = self.storages[entry["storage"]]
                row = names.get(storage.columns["site"])
                if row is not None and (up(storage, "read_lan") or up(storage, "read_wan")):
                    copies = tape if storage.columns["is_tape"] else disk
                    copies[row] = max(copies[row], min(entry["files"], dataset.files))
            files += np.maximum(disk, tape)
            gb += np.maximum(disk, tape) * _gb_per_file(dataset)
            on_tape |= tape > disk
        return {"available_gb": gb, "available_files": files, "tape_only": on_tape}

    @cached_property
    def _replicas(self) -> Mapping[str, list[Mapping[str, Any]]]:
        return _grouped(self.facts.replicas, "dataset")

    @cached_property
    def _by_task(self) -> Mapping[Any, list[Mapping[str, Any]]]:
        return _grouped((job for job in self.facts.jobs if job["status"] in JOB.tried), "task_id")

    def _ended_and_used(self, ask: Ask) -> Arrays:
        """Jobs of the task that ended lately, and those of its user and share."""
        counts: dict[str, NDArray[Any]] = defaultdict(lambda: np.zeros(len(self._base), dtype=np.int64))
        for job in self._by_task.get(ask.task_id, ()):
            counts[f"task_{job['status']}"][self._rows[job["queue"]]] += job["n"]
        return {**counts, **(self._jobs.of_user(ask.user, ask.share) if ask.user else {})}


def _gb_per_file(dataset: ChunkDataset) -> float:
    return dataset.gb / dataset.files if dataset.files else 0.0


def _sums(work: Iterable[Mapping[str, Any]], nuclei: Sequence[str]) -> NDArray[np.float64]:
    """Remaining work of each of the nuclei, HS06 s."""
    sums: dict[str, float] = defaultdict(float)
    for entry in work:
        sums[entry["nucleus"]] += entry["rw"]
    return np.array([sums.get(name, 0.0) for name in nuclei], dtype=np.float64)


def _grouped(entries: Iterable[Mapping[str, Any]], attribute: str) -> Mapping[Any, list[Mapping[str, Any]]]:
    groups: dict[Any, list[Mapping[str, Any]]] = defaultdict(list)
    for entry in entries:
        groups[entry[attribute]].append(entry)
    return groups
