"""The attributes of our own grid document, part by part: type, unit, range and default of each.

Here: the tables and the reading of one value. Not here: the document as a whole (`grid_document`) and its JSON Schema
(`grid_schema`). Names and units are those of the facts on queues 5.1; numbers may come as text, missing or empty means the
default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from workqueues.rules.task_parameters import Parameter, found, read

QUEUE_STATUSES = ("online", "standby", "brokeroff", "test", "offline", "paused")
QUEUE_TYPES = ("production", "analysis", "unified")
ACCESS_STATES = ("ON", "OFF", "TEST")
ACCESSES = ("read_lan", "write_lan", "read_wan", "write_wan")
ROLE = r"(?:read|write)_lan(?:_[a-z0-9]+)?"
"""Roles of a storage endpoint at a queue that are used: reading and writing in the site, with `_analysis` for that scope."""

NAME = r"[A-Za-z0-9][A-Za-z0-9._:@+-]*"
LONGEST_NAME = 60

Table = Mapping[str, Parameter]


def table(*parameters: Parameter) -> Table:
    """Attributes by name."""
    return MappingProxyType({p.name: p for p in parameters})


SITE = table(
    Parameter("state", "text", "Only ACTIVE sites are used.", default="ACTIVE", length=16),
    Parameter("nucleus", "flag", "May collect the outputs of tasks.", default=False),
)

STORAGE = table(
    Parameter("site", "text", "Site of the endpoint.", required=True, length=LONGEST_NAME),
    Parameter("type", "text", "DATADISK, SCRATCHDISK, DATATAPE, ...", default="DATADISK", length=32),
    Parameter("state", "text", "Only ACTIVE endpoints are used.", default="ACTIVE", length=16),
    Parameter("is_tape", "flag", "Files have to be staged.", default=False),
    Parameter("free_gb", "number", "Free space, GB = 10^9 bytes.", high=1e12),
    Parameter("expired_gb", "number", "Space of expired files, GB.", high=1e12),
    Parameter("status", "object", f"{', '.join(ACCESS_STATES)} per access: {', '.join(ACCESSES)}.", default={}),
    Parameter(
        "path", "text", "Directory that local pilots reach; relative: below the instance's folder.", default="", length=1024
    ),
)

QUEUE = table(
    Parameter("status", "text", "Whether and how the queue is used.", default="online", choices=QUEUE_STATUSES),
    Parameter("type", "text", "Which activities it takes; unified is both.", default="production", choices=QUEUE_TYPES),
    Parameter("capability", "text", "ucore: the queue gets pseudo-queues.", default="", length=32),
    Parameter("corecount", "int", "Cores per slot; 0 and -1: any.", default=0, low=-1),
    Parameter("corepower", "number", "HS06 per core; 0: unknown, 10 is used.", default=0, high=1e6),
    Parameter("maxrss", "int", "Memory per slot, MB; 0: no limit.", default=0),
    Parameter("minrss", "int", "Least memory of a job, MB per slot.", default=0),
    Parameter("maxtime", "int", "Longest job, s; 0: no limit.", default=0),
    Parameter("mintime", "int", "Shortest job, s.", default=0),
    Parameter("maxwdir", "int", "Scratch disk per slot, MB; 0: no limit.", default=0),
    Parameter("transferringlimit", "int", "Most jobs in transferring; 0: 2000.", default=0),
    Parameter("workflow", "text", "Selects HEARTBEAT_TIMEOUT_<workflow>.", default="", length=32),
    Parameter("catchall", "text", "Further switches: key or key=value, comma list.", default="", length=1024),
    Parameter("local_pilots", "int", "Pilots that `up` and `demo` start for the queue.", default=0, high=50),
)
"""Attributes with a column of their own; what 5.1 calls atlas_site is the site."""

FURTHER = table(
    Parameter("timefloor", "number", "Least time for which a pilot asks for further jobs, min."),
    Parameter("maxinputsize", "number", "Largest input of a job, MB; -1: always read in place.", low=-1),
    Parameter("maxdiskio", "number", "Disk I/O, kB/s per core."),
    Parameter("pledgedcpu", "number", "Pledged cores; -1: opportunistic.", low=-1),
    Parameter("transtimehi", "number", "Time limit of transferring from priority 800 on, days."),
    Parameter("transtimelo", "number", "Time limit of transferring below priority 800, days."),
    Parameter("direct_access_lan", "flag", "Jobs read from the local storage without copying."),
    Parameter("direct_access_wan", "flag", "Jobs read from other storages without copying."),
    Parameter("is_cvmfs", "flag", "Software from CVMFS."),
    Parameter("fairsharepolicy", "text", "Shares that the queue does not take."),
    Parameter("wnconnectivity", "text", "connectivity#stack, as full#IPv6."),
    Parameter("jobseed", "text", "Kinds of event-service jobs.", choices=("std", "es", "eshigh", "all")),
    Parameter("releases", "texts", "AUTO, ANY, or names of releases."),
    Parameter("params", "object", "Switches that are looked up before catchall."),
)
"""Attributes that are typed but have no column: kept among the others."""


def read_value(parameter: Parameter, raw: object) -> tuple[Any, str, str]:
    """Value, broken rule ("" if none) and that in words; a number may come as text, empty is the default."""
    if raw is None or (raw == "" and parameter.kind != "text"):
        return parameter.default, "", ""
    if parameter.kind in ("int", "number") and isinstance(raw, str):
        try:
            raw = float(raw) if re.search(r"[.eEnN]", raw) else int(raw)
        except ValueError:
            return None, "type", f"expected a number, found {found(raw)}"
    if raw == "" and parameter.choices:
        return parameter.default, "", ""
    value, rule, message = read(parameter, raw)
    return (list(value) if isinstance(value, tuple) else value), rule, message


def name_fault(name: str) -> str:
    """What is wrong with the name of a site, storage endpoint or queue; empty if nothing."""
    if "/" in name:
        return f"{found(name)} holds a '/', which stands between a queue and its resource type"
    if len(name) > LONGEST_NAME:
        return f"{len(name)} characters, the limit is {LONGEST_NAME}"
    if not re.fullmatch(NAME, name):
        return f"{found(name)} is not a name: letters, digits and . _ : @ + - , a letter or digit first"
    return ""
