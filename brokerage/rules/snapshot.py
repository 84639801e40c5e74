"""The grid as one cycle of the brokerage sees it: computing queues with their jobs, and nuclei.

Here: which columns there are, their units and what 0 means. Not here: reading them from the database (`brokerage.queries`).
Names and units of the attributes are those of the CRIC queue document (facts on the grid 5.1).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import nan
from typing import ClassVar

from brokerage.rules.columns import Columns, Flags, Floats, Ints, Texts, flag, number, text, whole


@dataclass(frozen=True, eq=False)
class Queues(Columns):
    """All candidate queues, one row each, after unified queues have become pseudo-queues. Counts are jobs of all shares."""

    noun: ClassVar[str] = "queue"

    unified_name: Texts = field(
        metadata=text("", "name of the unified queue that a pseudo-queue stands for; empty = the queue itself")
    )
    site: Texts = field(metadata=text("", "site of the processors"))
    status: Texts = field(metadata=text("online", "online, standby, brokeroff, test, offline or paused"))
    corecount: Ints = field(metadata=whole(0, "cores per slot; 0 = any, -1 = any"))
    corepower: Floats = field(metadata=number(0.0, "HS06 per core; 0 = not known, formulas take 10"))
    maxrss: Floats = field(metadata=number(0.0, "MB per slot; 0 = no limit"))
    minrss: Floats = field(metadata=number(0.0, "MB per slot that a job must need; 0 = no limit"))
    maxtime: Floats = field(metadata=number(0.0, "longest walltime, s; 0 = no limit"))
    mintime: Floats = field(metadata=number(0.0, "shortest walltime, s; 0 = no limit"))
    maxwdir: Floats = field(metadata=number(0.0, "scratch disk per slot, MB; 0 = no limit"))
    direct_access_lan: Flags = field(metadata=flag(False, "jobs read their input from the local storage without copying it"))
    space_gb: Floats = field(metadata=number(nan, "free space of the default output storage, GB; not a number = not published"))
    allowed_processing: Texts = field(metadata=text("", "processing types that the queue takes, separated by |; empty = all"))
    excluded_processing: Texts = field(metadata=text("", "processing types that the queue refuses, separated by |"))
    allow_no_pilot: Flags = field(metadata=flag(False, "jobs may wait here without pilots"))
    requests_3h: Ints = field(metadata=whole(0, "job requests and updates by pilots in the last three hours"))
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
