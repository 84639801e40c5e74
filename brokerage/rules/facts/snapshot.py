"""The grid as one cycle of the brokerage sees it: computing queues with their jobs, and nuclei.

Here: which columns there are, their units and what 0 means. Not here: reading them from the database (`brokerage.queries`).
Names and units of the attributes are those of the CRIC queue document (facts on the grid 5.1).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import inf, nan
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from brokerage.rules.facts.columns import Columns, Flags, Floats, Ints, Texts, flag, made_of, number, text, whole
from brokerage.rules.facts.job_counts import effective_running, many_assigned
from brokerage.rules.facts.network import weight_to_nucleus
from brokerage.rules.facts.software import SoftwareIndex
from brokerage.states import JOB

JOBS = JOB.counted
"""Columns with numbers of jobs of the task's share."""

BUSY = ("running", "n_batch", "num_slots", "starting")
"""Columns of which the number of jobs that count as running is made."""

HOSPITAL = "_HOSPITAL"
BLOCKED = -1.0
"""Closeness of a link that cannot be used."""

CORE_POWER = 10.0
"""HS06 per core of a queue that publishes none (facts on queues 5.1)."""

TRANSFERRING_LIMIT = 2000


@dataclass(frozen=True, eq=False)
class Queues(Columns):
    """All candidate queues, one row each, after unified queues have become pseudo-queues.

    Counts are jobs of what the policy looks at: of all shares for the generic broker, of the task's share for the others. Columns
    that say `of the task` depend on its share, its nucleus, its input or its user, and are filled for one task.
    """

    noun: ClassVar[str] = "queue"

    unified_name: Texts = text("", "name of the unified queue that a pseudo-queue stands for; empty = the queue itself")
    site: Texts = text("", "site of the processors")
    cloud: Texts = text("", "cloud of the queue, where tasks name one")
    storage: Texts = text("", "default output storage; queues that share it are near to each other")
    output_site: Texts = text("", "site of that storage; empty = the site of the processors")
    type: Texts = text("unified", "production, analysis, or unified = both")
    status: Texts = text("online", "online, standby, brokeroff, test, offline or paused")
    corecount: Ints = whole(0, "cores per slot; 0 = any, -1 = any")
    corepower: Floats = number(0.0, "HS06 per core; 0 = not known, formulas take 10")
    maxrss: Floats = number(0.0, "MB per slot; 0 = no limit")
    minrss: Floats = number(0.0, "MB per slot that a job must need; 0 = no limit")
    maxtime: Floats = number(0.0, "longest walltime, s; 0 = no limit")
    mintime: Floats = number(0.0, "shortest walltime, s; 0 = no limit")
    maxwdir: Floats = number(0.0, "scratch disk per slot, MB; 0 = no limit")
    pledgedcpu: Floats = number(0.0, "cores that the site pledged; -1 = opportunistic, 0 = not known")
    maxdiskio: Floats = number(0.0, "most disk I/O, kB/s per core; 0 = the configured default")
    max_io_intensity: Floats = number(0.0, "most I/O intensity of a task, kB/s per core; 0 = no limit")
    transferringlimit: Ints = whole(0, "most jobs in transferring; 0 = 2000")
    fairsharepolicy: Texts = text("", "which work has a share here, `field=value:share` in a comma list")
    wnconnectivity: Texts = text("", "connectivity#stack of the worker nodes")
    any_release: Flags = flag(True, "the queue declares ANY in its releases: software is not checked")
    software: Texts = text("", "JSON of what the queue publishes of its software and hardware; empty = nothing")
    use_only_local_data: Flags = flag(False, "the queue reads no input from elsewhere")
    direct_access_lan: Flags = flag(False, "jobs read their input from the local storage without copying it")
    space_gb: Floats = number(nan, "free space of the default output storage, GB; not a number = not published")
    space_origin: Texts = text("", "where that number comes from; empty = it is published")
    input_space_gb: Floats = number(nan, "the same of the default input storage; not a number = it is the same storage")
    gpu: Flags = flag(False, "the slots are for tasks that want a GPU")
    virtual: Flags = flag(False, "virtual placement: input is read through a cache, wherever it is")
    allowed_processing: Texts = text("", "processing types that the queue takes, separated by |; empty = all")
    excluded_processing: Texts = text("", "processing types that the queue refuses, separated by |")
    read_lan_ok: Flags = flag(True, "a local endpoint can be read by jobs")
    write_lan_ok: Flags = flag(True, "a local endpoint can be written by jobs")
    read_wan_ok: Flags = flag(True, "the output endpoint can send")
    write_wan_ok: Flags = flag(True, "the output endpoint can receive")
    allow_no_pilot: Flags = flag(False, "jobs may wait here without pilots")
    requests_3h: Ints = whole(0, "job requests and updates by pilots in the last three hours")
    idle_s: Floats = number(nan, "seconds since a job last began, of none since jobs wait; not a number = not known")
    disk_io: Floats = number(0.0, "measured disk I/O of running jobs, kB/s per core")
    n_batch: Ints = whole(0, "batch workers running and submitted")
    num_slots: Ints = whole(-1, "slots declared for jobs; 0 = as many as are starting, -1 = none declared")
    running_cores: Ints = whole(0, "cores of all running and starting jobs")
    at_nucleus: Flags = flag(False, "of the task: writes at its nucleus, so that its output has no link to pass")
    nucleus_ok: Flags = flag(True, "of the task: its nucleus can receive output")
    nucleus_files: Ints = whole(0, "of the task: files on their way to its nucleus from everywhere")
    link_files: Ints = whole(0, "of the task: files queued on the link to its nucleus")
    link_origin: Texts = text("", "of the task: who counted them; empty = nobody")
    link_why: Texts = text("", "of the task: why the link to its nucleus is blocked, where that is told")
    closeness: Floats = number(nan, "of the task: closeness to its nucleus, 0 best; -1 = blocked; not a number = unknown")
    mbps: Floats = number(nan, "of the task: latest throughput to its nucleus; not a number = none is known")
    mbps_origin: Texts = text("", "of the task: who measured it; empty = nobody")
    source_ok: Flags = flag(True, "of the task: its input is here or can be read from elsewhere")
    available_gb: Floats = number(0.0, "of the task: input on local disk or in a cache, GB")
    missing_files: Ints = whole(0, "of the task: input files that are not there")
    tape_gb: Floats = number(0.0, "of the task: further input that is on local tape only, GB")
    tape_files: Ints = whole(0, "of the task: files of it")
    whole_datasets: Ints = whole(0, "of the task: input datasets that are there as a whole")
    task_finished: Ints = whole(0, "of the task: its jobs that finished there lately")
    task_failed: Ints = whole(0, "of the task: its jobs that failed there lately")
    task_closed: Ints = whole(0, "of the task: its jobs that were closed there lately")
    user_queued: Ints = whole(0, "of the task: jobs of its user that wait there")
    user_running: Ints = whole(0, "of the task: jobs of its user that run there")
    n_users: Ints = whole(0, "of the task: users whose jobs of its share are there")
    starts_per_hour: Floats = number(0.0, "of the task: jobs of its share that begin there in an hour")
    defined: Ints = whole(0, "jobs defined")
    assigned: Ints = whole(0, "jobs assigned: their input is moving")
    activated: Ints = whole(0, "jobs activated: waiting for a pilot")
    starting: Ints = whole(0, "jobs sent or starting")
    running: Ints = whole(0, "jobs running")
    transferring: Ints = whole(0, "jobs transferring, of all shares")
    others_waiting: Ints = whole(0, "jobs of other shares activated or starting")
    others_running: Ints = whole(0, "jobs of other shares running")

    @made_of("site", "output_site")
    def source_site(self) -> Texts:
        """Where output begins its way: the site of the output storage."""
        return np.where(self.output_site == "", self.site, self.output_site)

    @made_of("status")
    def online(self) -> Flags:
        """Whether the status is online."""
        online: Flags = self.status == "online"
        return online

    @made_of("type")
    def for_production(self) -> Flags:
        """Whether the queue takes production."""
        production: Flags = self.type != "analysis"
        return production

    @made_of("type")
    def for_analysis(self) -> Flags:
        """Whether the queue takes analysis."""
        analysis: Flags = self.type != "production"
        return analysis

    @made_of("corecount")
    def slot_size(self) -> Floats:
        """Cores per slot, at least one."""
        return np.maximum(self.corecount, 1.0)

    @made_of("corecount")
    def many_core(self) -> Flags:
        """Whether the slots have several cores."""
        many: Flags = self.corecount > 1
        return many

    @made_of("corepower")
    def power(self) -> Floats:
        """HS06 per core, the usual one where none is published."""
        return np.where(self.corepower > 0, self.corepower, CORE_POWER)

    @made_of("max_io_intensity")
    def most_io_intensity(self) -> Floats:
        """Most I/O intensity of a task, kB/s per core."""
        return unlimited(self.max_io_intensity)

    @made_of("requests_3h", "allow_no_pilot")
    def piloted(self) -> Flags:
        """Whether pilots ask for work, or none is needed."""
        return (self.requests_3h > 0) | self.allow_no_pilot

    @made_of("use_only_local_data")
    def reads_elsewhere(self) -> Flags:
        """Whether input may be elsewhere."""
        return np.logical_not(self.use_only_local_data)

    @made_of("maxrss")
    def most_memory(self) -> Floats:
        """Most memory of a job, MB."""
        return unlimited(self.maxrss)

    @made_of("maxtime")
    def most_time(self) -> Floats:
        """Longest walltime, s."""
        return unlimited(self.maxtime)

    @made_of("maxwdir", "corecount")
    def scratch_per_core(self) -> Floats:
        """Scratch disk of a slot, MB per core; without limit where none is set."""
        return unlimited(self.maxwdir) / self.slot_size

    @made_of("unified_name")
    def is_pseudo(self) -> Flags:
        """Whether the queue is a part of a unified one."""
        pseudo: Flags = self.unified_name != ""
        return pseudo

    @made_of("name", "unified_name")
    def own_names(self) -> list[str]:
        """For each row the queue under whose name its jobs are counted: of a pseudo-queue the unified one."""
        names: list[str] = np.where(self.is_pseudo, self.unified_name, self.name).tolist()
        return names

    @made_of("name", "unified_name")
    def rows_for_one(self) -> int:
        """The parts of the unified queue that has most; 1 where there is none."""
        return max(Counter(self.own_names).values(), default=1)

    def first_of_each(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Of these rows the first of each queue: parts of a unified one are one queue."""
        if self.rows_for_one == 1:
            return rows
        names, first = self.own_names, dict[str, int]()
        for row in rows.tolist():
            first.setdefault(names[row], row)
        return np.array([*first.values()], dtype=np.intp)

    @made_of("direct_access_lan")
    def copies_input(self) -> Floats:
        """1 where jobs copy their input, 0 where they read it directly."""
        return np.where(self.direct_access_lan, 0.0, 1.0)

    @made_of("space_gb")
    def known_space_gb(self) -> Floats:
        """Free space of the output storage; none published is none."""
        return np.nan_to_num(self.space_gb)

    @made_of(*BUSY)
    def busy(self) -> Ints:
        """Jobs that count as running."""
        return effective_running(self.running, self.n_batch, self.num_slots, self.starting)

    @made_of("activated", "starting")
    def waiting(self) -> Ints:
        """Jobs that wait for a pilot."""
        return self.activated + self.starting

    @made_of("activated", "starting", "defined")
    def waiting_or_defined(self) -> Ints:
        """Jobs that do not run yet, without those whose input moves."""
        return self.waiting + self.defined

    @made_of("activated", "starting", "defined", "assigned", "missing_files")
    def queued(self) -> Ints:
        """Jobs that stand before new ones: those whose input moves count where the task's input must move too."""
        return np.where(self.local, self.waiting_or_defined, self.queued_in_all_states)

    @made_of("activated", "starting", "defined", "assigned")
    def queued_in_all_states(self) -> Ints:
        """Jobs that do not run yet."""
        return self.waiting_or_defined + self.assigned

    @made_of(*JOBS, *BUSY)
    def ratio_at_hand(self) -> Floats:
        """Running over queued jobs for tasks whose input is there: no assigned job counts."""
        ratio: Floats = (self.busy + 1) / (self.waiting_or_defined + 10)
        return ratio

    @made_of(*JOBS, *BUSY)
    def ratio_moving(self) -> Floats:
        """Running over queued jobs for tasks whose input must move: less where too many wait for theirs."""
        ratio: Floats = (self.busy + 1) / ((self.queued_in_all_states + 10) * many_assigned(self.assigned, self.activated))
        return ratio

    @made_of("running", "others_running")
    def running_in_all(self) -> Ints:
        """Jobs running, of all shares."""
        return self.running + self.others_running

    @made_of("activated", "starting", "others_waiting")
    def waiting_in_all(self) -> Ints:
        """Jobs that wait for a pilot, of all shares."""
        return self.waiting + self.others_waiting

    @made_of("missing_files")
    def local(self) -> Flags:
        """Whether no input of the task is missing."""
        local: Flags = self.missing_files == 0
        return local

    def cap(self, least: int) -> Ints:
        """Jobs that may wait: twice those that count as running, at least the lower bound (decision A2)."""
        return self.derived(("cap", least), lambda table: np.maximum(2 * table.busy, least), BUSY)

    @made_of("closeness", "at_nucleus")
    def link_open(self) -> Flags:
        """Whether output can travel to the nucleus of the task: the link is not blocked, or there is none to pass."""
        is_open: Flags = (self.closeness != BLOCKED) | self.at_nucleus
        return is_open

    def link_free(self, cap: int) -> Flags:
        """Whether not more files wait on the link to the nucleus, or there is none to pass."""
        return self.derived(
            ("link", cap), lambda table: (table.link_files <= cap) | table.at_nucleus, ("link_files", "at_nucleus")
        )

    @made_of("transferring", "transferringlimit", "running", "others_running")
    def transfers_freely(self) -> Flags:
        """Whether not too many jobs transfer their output."""
        return np.less_equal(self.transferring, self.most_transferring)

    @made_of("transferringlimit", "running", "others_running")
    def most_transferring(self) -> Ints:
        """Jobs that may transfer their output: the limit of the queue (2000 if unset) or twice those that run."""
        limit = np.where(self.transferringlimit > 0, self.transferringlimit, TRANSFERRING_LIMIT)
        return np.maximum(limit, 2 * self.running_in_all)

    def most_disk_io(self, default: float) -> Floats:
        """Most disk I/O, kB/s per core."""
        return self.derived(
            ("disk_io", default), lambda table: np.where(table.maxdiskio > 0, table.maxdiskio, default), ("maxdiskio",)
        )

    def disk_io_over(self, default: float) -> Flags | None:
        """Where more disk I/O is measured than there should be; None where that is nowhere."""

        def over(table: Queues) -> Flags | None:
            rows: Flags = table.disk_io > table.most_disk_io(default)
            return rows if rows.any() else None

        return self.derived(("disk_io_over", default), over, ("disk_io", "maxdiskio"))

    @made_of("read_lan_ok", "write_lan_ok", "read_wan_ok", "write_wan_ok")
    def all_endpoints_up(self) -> Flags:
        """Whether no access to the storage of the queue is out of service."""
        return self.read_lan_ok & self.write_lan_ok & self.read_wan_ok & self.write_wan_ok

    @made_of("at_nucleus", "missing_files")
    def still(self) -> Flags:
        """Whether nothing travels: a queue of the nucleus that has all the input."""
        return self.at_nucleus & self.local

    def network_weight(self, cap: float, importance: float) -> Floats:
        """The network weight of the link to the nucleus of the task."""
        return self.derived(
            ("network", cap, importance),
            lambda table: weight_to_nucleus(table.link_files, table.mbps, table.closeness, table.at_nucleus, cap, importance),
            ("link_files", "mbps", "closeness", "at_nucleus"),
        )

    @made_of("name")
    def not_test(self) -> Flags:
        """Whether the name is without `test`, in any case."""
        return np.array(["test" not in name.lower() for name in self.name.tolist()], dtype=np.bool_)

    @made_of("name", "unified_name")
    def is_hospital(self) -> Flags:
        """Whether the queue is for jobs that failed elsewhere, by its name."""
        ends = np.char.endswith
        return ends(self.name, HOSPITAL) | ends(self.unified_name, HOSPITAL)

    @made_of("software")
    def published(self) -> SoftwareIndex:
        """What the queues publish of their software and hardware."""
        return SoftwareIndex(*self.coded("software"))

    @made_of("name", "unified_name", "site")
    def distinct_names(self) -> tuple[str, ...]:
        """Every name by which a task may mean a queue here: of queue, unified queue and site."""
        names = {*self.name.tolist(), *self.unified_name.tolist(), *self.site.tolist()}
        return tuple(sorted(names - {""}))


def unlimited(limits: Floats) -> Floats:
    """Limits to compare with: 0 stands for none."""
    return np.where(limits == 0, inf, limits)


@dataclass(frozen=True, eq=False)
class Nuclei(Columns):
    """All sites that can be the nucleus of a task, one row each."""

    noun: ClassVar[str] = "nucleus site"

    state: Texts = text("ACTIVE", "state of the site")
    free_gb: Floats = number(0.0, "free plus expired space of the default output storage, GB; 0 = none or not known")
    storages: Texts = text("", "JSON of the storages that take output: name, type, free_gb (with expired), read_wan, write_wan")
    can_send: Flags = flag(True, "the default output storage can be read from elsewhere")
    can_receive: Flags = flag(True, "the default output storage can be written from elsewhere")
    files_queued: Ints = whole(0, "output files on their way to the nucleus")
    total_rw: Floats = number(0.0, "remaining work of all tasks that have this nucleus, HS06 s")
    ahead_rw: Floats = number(
        nan, "of the task: remaining work here of tasks of its share and no lower priority, HS06 s; not a number = total_rw"
    )
    able_queues: Ints = whole(-1, "of the task: queues here that could run its jobs; -1 = not looked at")
    available_gb: Floats = number(0.0, "of the task: its input that is there, on disk or tape, GB")
    available_files: Ints = whole(0, "of the task: input files that are there, on disk or tape")
    tape_only: Flags = flag(False, "of the task: some of its input there is on tape only")

    @made_of("ahead_rw", "total_rw")
    def work_ahead(self) -> Floats:
        """Remaining work that stands before the task, HS06 s."""
        return np.where(np.isnan(self.ahead_rw), self.total_rw, self.ahead_rw)
