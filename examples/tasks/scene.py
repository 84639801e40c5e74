"""The small world of the worked task: a grid, work queues, shares, limits of the throttler, datasets and tasks.

Data only: nothing here speaks with a system. The same every time. `worked.py` runs it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

Params = dict[str, Any]
VO = "demo"
GB = 10**9


class Place(NamedTuple):
    """A site with one queue and one storage: HS06 of a core, MB of a slot's disk, longest job in s, MB of memory."""

    name: str
    corepower: float
    maxwdir: int
    maxtime: int
    maxrss: int


PLACES = (
    Place("NORTH", 10, 24_000, 172_800, 4_000),
    Place("SOUTH", 12, 14_000, 172_800, 4_000),
    Place("WEST", 20, 40_000, 14_400, 4_000),
    Place("ISLE", 10, 40_000, 172_800, 1_500),
)


def grid() -> Params:
    """The grid document; every queue reads and writes at its own storage."""
    on = dict.fromkeys(("read_lan", "write_lan", "read_wan", "write_wan"), "ON")
    queue = {"status": "online", "type": "unified", "corecount": 1, "releases": ["ANY"], "wnconnectivity": "full"}
    return {
        "format": "gridbroker-grid/1",
        "sites": {p.name: {"state": "ACTIVE"} for p in PLACES},
        "storages": {f"{p.name}_DISK": {"site": p.name, "type": "DATADISK", "free_gb": 500_000, "status": on} for p in PLACES},
        "queues": {
            p.name: queue
            | {"atlas_site": p.name, "astorages": {"read_lan": [f"{p.name}_DISK"], "write_lan": [f"{p.name}_DISK"]}}
            | {"corepower": p.corepower, "maxwdir": p.maxwdir, "maxtime": p.maxtime, "maxrss": p.maxrss}
            for p in PLACES
        },
    }


WORK_QUEUES: tuple[Params, ...] = (
    {"queue_order": 10, "queue_name": "group", "queue_share": 20, "criteria": "workingGroup LIKE :p1", "variables": "p1:GP_%"},
    {
        "queue_order": 20,
        "queue_name": "evgensimul",
        "queue_share": 30,
        "stretchable": True,
        "criteria": "processingType IN (:p1,:p2)",
        "variables": "p1:evgen,p2:simul",
    },
    {"queue_order": 30, "queue_name": "mcproc", "queue_share": 40, "is_partition": True},
    {
        "queue_order": 31,
        "queue_name": "mcreco",
        "queue_share": 25,
        "partition": "mcproc",
        "criteria": "processingType = :p1",
        "variables": "p1:reco",
    },
    {
        "queue_order": 32,
        "queue_name": "mcpile",
        "queue_share": 75,
        "partition": "mcproc",
        "criteria": "processingType LIKE :p1 AND NOT (coreCount > 8)",
        "variables": "p1:pile%",
    },
    {"queue_order": 40, "queue_name": "validation", "queue_share": 10, "criteria": "campaign = :p1", "variables": "p1:valid"},
)
"""In the order of evaluation; the two criteria that are examples of the language stand first. `default` takes what is left."""

SHARES: tuple[Params, ...] = (
    {"name": "MC", "value": 70, "position": 1},
    {"name": "MC Simulation", "parent": "MC", "value": 50, "position": 2, "processing_type": "evgen|simul"},
    {"name": "MC Pile-up", "parent": "MC", "value": 20, "position": 3, "processing_type": "pile"},
    {"name": "Groups", "value": 20, "position": 4, "working_group": "GP_.*"},
    {"name": "Users", "value": 10, "position": 5, "prod_source_label": "user"},
)

KEYS: tuple[tuple[str, str, object], ...] = (
    ("prod_job_throttler", "NQUEUELIMIT_MC Pile-up", 20),
    ("prod_job_throttler", "NQUEUECAP_MC Pile-up_SCORE", 60),
    ("jobbroker", "JOBS_PER_BLOCK", 3),
    ("jobbroker", "RETRY_PAUSE", 0),
)
"""Component, key and value: what may always wait in the share, the cap of its jobs of one core; small blocks, to see some; and
no pause before a next try.
"""

SLOTS = 30
"""Slots that idle at each queue beside those that run, and jobs that may wait there."""

SIGNAL = (600, 1100, 900, 1500, 700, 1200, 1000, 800, 1400, 800)
"""Events of each file of the signal; an event has 2 MB, and every other file 0.3 GB of headers more."""

MINIMUM_BIAS = 5
"""Files of the pile-up dataset, 1.5 GB each, 2000 events."""


def signal_files() -> list[tuple[int, int]]:
    """Events and bytes of each file."""
    return [(n, n * 2_000_000 + (n_th % 2) * 3 * GB // 10) for n_th, n in enumerate(SIGNAL)]


def base(name: str, **more: Any) -> Params:
    """What all tasks have; more parameters replace these."""
    return {
        "taskName": name,
        "userName": "ada",
        "vo": VO,
        "prodSourceLabel": "managed",
        "taskType": "prod",
        "processingType": "simul",
        "taskPriority": 500,
        "architecture": "",
        "transUses": "",
        "transHome": "",
        "transPath": "make.py",
        "coreCount": 1,
        "ramCount": 1_800,
        "ramUnit": "MB",
        "skipScout": True,
        "log": {"type": "template", "param_type": "log", "dataset": f"{name}.log", "value": f"{name}.log.${{SN}}.tgz"},
    } | more


class Other(NamedTuple):
    """A task that is there before, and how many of its jobs run; the others wait."""

    params: Params
    running: int


def others() -> tuple[Other, ...]:
    """What the other shares have when the task comes."""

    def numbered(name: str, jobs: int, running: int, **more: Any) -> Other:
        items = [
            {"type": "template", "param_type": "number", "value": "--seed ${RNDMSEED}"},
            {"type": "template", "param_type": "output", "dataset": f"{name}.OUT", "value": f"--out={name}.OUT.${{SN}}.root"},
        ]
        return Other(base(name, noInput=True, nEvents=jobs * 100, nEventsPerJob=100, jobParameters=items, **more), running)

    return (
        numbered("demo.simul.1", 24, 18, site="NORTH"),
        numbered("demo.group.1", 3, 2, site="SOUTH", processingType="reco", workingGroup="GP_HIGGS"),
        numbered("demo.user.1", 2, 2, site="NORTH", prodSourceLabel="user", taskType="anal", processingType="panda-client"),
        numbered("demo.pile.0", 13, 5, site="SOUTH", processingType="pile"),
    )


def pile_up(name: str = "demo.pile.1", **more: Any) -> Params:
    """The worked task: signal with minimum bias beside it, 500 events a job; more parameters replace these, None removes."""
    items = [
        {"type": "template", "param_type": "input", "dataset": "demo.signal", "value": "--signal ${IN/L}"},
        {"type": "constant", "value": "--skip ${SKIPEVENTS} --events ${MAXEVENTS}"},
        {
            "type": "template",
            "param_type": "input",
            "dataset": "demo.minbias",
            "value": "--minbias ${MINBIAS/L}",
            "ratio": 2,
            "attributes": "repeat",
        },
        {
            "type": "template",
            "param_type": "pseudo_input",
            "dataset": "seq_number",
            "value": "--run ${SEQNUMBER}",
            "offset": 4000,
        },
        {"type": "template", "param_type": "number", "value": "--seed ${RNDMSEED}", "offset": 100},
        {"type": "template", "param_type": "output", "dataset": f"{name}.RDO", "value": f"--out={name}.RDO.${{SN}}.root"},
    ]
    params = base(
        name,
        processingType="pile",
        workingGroup="AP_LAB",
        nEventsPerJob=500,
        maxAttempt=3,
        cpuTime=300,
        cpuTimeUnit="HS06sPerEvent",
        cpuEfficiency=90,
        baseWalltime=600,
        outDiskCount=500,
        outDiskUnit="kB",
        workDiskCount=1,
        workDiskUnit="GB",
        jobParameters=items,
    )
    return {key: value for key, value in (params | more).items() if value is not None}
