"""The grid as one cycle of the brokerage sees it: computing queues with their jobs, and nuclei.

Here: which columns there are, their units and what 0 means. Not here: reading them from the database (`brokerage.queries`).
Names and units of the attributes are those of the CRIC queue document (facts on the grid 5.1).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import nan
from typing import ClassVar

import numpy as np

from brokerage.rules.columns import Columns, Flags, Floats, Ints, Texts, flag, number, text, whole
from brokerage.rules.load import effective_running
from brokerage.rules.network import weight_to_nucleus
from brokerage.rules.software import SoftwareIndex


@dataclass(frozen=True, eq=False)
class Queues(Columns):
    """All candidate queues, one row each, after unified queues have become pseudo-queues.

    Counts are jobs of what the policy looks at: of all shares for the generic broker, of the task's share and resource type for
    production. Columns that say `of the task` depend on its nucleus or its input, and are filled for one task.
    """

    noun: ClassVar[str] = "queue"

    unified_name: Texts = field(
        metadata=text("", "name of the unified queue that a pseudo-queue stands for; empty = the queue itself")
    )
    site: Texts = field(metadata=text("", "site of the processors"))
    type: Texts = field(metadata=text("unified", "production, analysis, or unified = both"))
    status: Texts = field(metadata=text("online", "online, standby, brokeroff, test, offline or paused"))
    corecount: Ints = field(metadata=whole(0, "cores per slot; 0 = any, -1 = any"))
    corepower: Floats = field(metadata=number(0.0, "HS06 per core; 0 = not known, formulas take 10"))
    maxrss: Floats = field(metadata=number(0.0, "MB per slot; 0 = no limit"))
    minrss: Floats = field(metadata=number(0.0, "MB per slot that a job must need; 0 = no limit"))
    maxtime: Floats = field(metadata=number(0.0, "longest walltime, s; 0 = no limit"))
    mintime: Floats = field(metadata=number(0.0, "shortest walltime, s; 0 = no limit"))
    maxwdir: Floats = field(metadata=number(0.0, "scratch disk per slot, MB; 0 = no limit"))
    pledgedcpu: Floats = field(metadata=number(0.0, "cores that the site pledged; -1 = opportunistic, 0 = not known"))
    maxdiskio: Floats = field(metadata=number(0.0, "most disk I/O, kB/s per core; 0 = the configured default"))
    max_io_intensity: Floats = field(metadata=number(0.0, "most I/O intensity of a task, kB/s per core; 0 = no limit"))
    transferringlimit: Ints = field(metadata=whole(0, "most jobs in transferring; 0 = 2000"))
    fairsharepolicy: Texts = field(metadata=text("", "which work has a share here, `field=value:share` in a comma list"))
    wnconnectivity: Texts = field(metadata=text("", "connectivity#stack of the worker nodes"))
    any_release: Flags = field(metadata=flag(True, "the queue declares ANY in its releases: software is not checked"))
    software: Texts = field(metadata=text("", "JSON of what the queue publishes of its software and hardware; empty = nothing"))
    use_only_local_data: Flags = field(metadata=flag(False, "the queue reads no input from elsewhere"))
    direct_access_lan: Flags = field(metadata=flag(False, "jobs read their input from the local storage without copying it"))
    space_gb: Floats = field(metadata=number(nan, "free space of the default output storage, GB; not a number = not published"))
    allowed_processing: Texts = field(metadata=text("", "processing types that the queue takes, separated by |; empty = all"))
    excluded_processing: Texts = field(metadata=text("", "processing types that the queue refuses, separated by |"))
    read_lan_ok: Flags = field(metadata=flag(True, "a local endpoint can be read by jobs"))
    write_lan_ok: Flags = field(metadata=flag(True, "a local endpoint can be written by jobs"))
    read_wan_ok: Flags = field(metadata=flag(True, "the output endpoint can send"))
    write_wan_ok: Flags = field(metadata=flag(True, "the output endpoint can receive"))
    allow_no_pilot: Flags = field(metadata=flag(False, "jobs may wait here without pilots"))
    requests_3h: Ints = field(metadata=whole(0, "job requests and updates by pilots in the last three hours"))
    idle_s: Floats = field(metadata=number(nan, "seconds since a job last began; not a number = none is known"))
    disk_io: Floats = field(metadata=number(0.0, "measured disk I/O of running jobs, kB/s per core"))
    n_batch: Ints = field(metadata=whole(0, "batch workers running and submitted"))
    num_slots: Ints = field(metadata=whole(-1, "slots declared for jobs; 0 = as many as are starting, -1 = none declared"))
    running_cores: Ints = field(metadata=whole(0, "cores of all running and starting jobs"))
    at_nucleus: Flags = field(metadata=flag(False, "of the task: belongs to its nucleus or shares the storage of it"))
    nucleus_ok: Flags = field(metadata=flag(True, "of the task: its nucleus can receive output"))
    nucleus_files: Ints = field(metadata=whole(0, "of the task: files on their way to its nucleus from everywhere"))
    link_files: Ints = field(metadata=whole(0, "of the task: files queued on the link to its nucleus"))
    closeness: Floats = field(
        metadata=number(nan, "of the task: closeness to its nucleus, 0 best; -1 = blocked; not a number = unknown")
    )
    mbps: Floats = field(metadata=number(nan, "of the task: latest throughput to its nucleus; not a number = none is known"))
    available_gb: Floats = field(metadata=number(0.0, "of the task: input on local disk or in a cache, GB"))
    missing_files: Ints = field(metadata=whole(0, "of the task: input files that are not there"))
    defined: Ints = field(metadata=whole(0, "jobs defined"))
    assigned: Ints = field(metadata=whole(0, "jobs assigned: their input is moving"))
    activated: Ints = field(metadata=whole(0, "jobs activated: waiting for a pilot"))
    starting: Ints = field(metadata=whole(0, "jobs sent or starting"))
    running: Ints = field(metadata=whole(0, "jobs running"))
    transferring: Ints = field(metadata=whole(0, "jobs transferring"))

    @cached_property
    def online(self) -> Flags:
        """Whether the status is online."""
        online: Flags = self.status == "online"
        return online

    @cached_property
    def slot_size(self) -> Ints:
        """Cores per slot, at least one."""
        return np.maximum(self.corecount, 1)

    @cached_property
    def known_space_gb(self) -> Floats:
        """Free space of the output storage; none published is none."""
        return np.nan_to_num(self.space_gb)

    @cached_property
    def busy(self) -> Ints:
        """Jobs that count as running."""
        return effective_running(self.running, self.n_batch, self.num_slots, self.starting)

    @cached_property
    def local(self) -> Flags:
        """Whether no input of the task is missing."""
        local: Flags = self.missing_files == 0
        return local

    def network_weight(self, cap: float, importance: float) -> Floats:
        """The network weight of the link to the nucleus of the task."""
        return self.derived(
            ("network", cap, importance),
            lambda: weight_to_nucleus(self.link_files, self.mbps, self.closeness, self.at_nucleus, cap, importance),
        )

    @cached_property
    def is_test(self) -> Flags:
        """Whether the name has `test` in it, in any case."""
        return np.array(["test" in name.lower() for name in self.name.tolist()], dtype=np.bool_)

    @cached_property
    def published(self) -> SoftwareIndex:
        """What the queues publish of their software and hardware."""
        return SoftwareIndex(*self.coded("software"))

    @cached_property
    def distinct_names(self) -> tuple[str, ...]:
        """Every name by which a task may mean a queue here: of queue, unified queue and site."""
        names = {*self.name.tolist(), *self.unified_name.tolist(), *self.site.tolist()}
        return tuple(sorted(names - {""}))


@dataclass(frozen=True, eq=False)
class Nuclei(Columns):
    """All sites that can be the nucleus of a task, one row each."""

    noun: ClassVar[str] = "site"

    state: Texts = field(metadata=text("ACTIVE", "state of the site"))
    free_gb: Floats = field(
        metadata=number(0.0, "free plus expired space of the default output storage, GB; 0 = none or not known")
    )
    files_queued: Ints = field(metadata=whole(0, "output files on their way to the nucleus"))
    total_rw: Floats = field(metadata=number(0.0, "remaining work of the tasks that have this nucleus, HS06 s"))
