"""200 tasks of all kinds for the grid of `examples/grids/world.json`, and the datasets that they read.

Data only: nothing here speaks with a system. The same every time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

Params = dict[str, Any]
SEED = 20261121


class Kind(NamedTuple):
    """So many tasks alike: their parameters beside those that all have, and how many files of input each reads (0: none)."""

    name: str
    tasks: int
    params: Mapping[str, Any]
    files: int = 0
    file_gb: float = 2.0


MANAGED = {"prodSourceLabel": "managed", "taskType": "prod", "cloud": "WORLD", "taskPriority": 500}
USERS = {"prodSourceLabel": "user", "taskType": "anal", "taskPriority": 1000}
RELEASE = {"transUses": "Athena-24.0.5", "architecture": "x86_64-el9-gcc13-opt"}
EIGHT = {"coreCount": 8, "ramCount": 1900, "ramUnit": "MBPerCore"}

KINDS = (
    Kind("evgen", 25, MANAGED | RELEASE | {"processingType": "evgen", "ramCount": 1800, "ramUnit": "MBPerCore"}),
    Kind("simul", 25, MANAGED | RELEASE | EIGHT | {"processingType": "simul", "cpuTime": 2500.0}, 20, 0.4),
    Kind("reco", 25, MANAGED | RELEASE | EIGHT | {"processingType": "reco", "ramCount": 3800, "ioIntensity": 600}, 40, 4.0),
    Kind("pile", 15, MANAGED | RELEASE | EIGHT | {"processingType": "pile", "workDiskCount": 20, "workDiskUnit": "GB"}, 30, 5.0),
    Kind("merge", 10, MANAGED | RELEASE | {"processingType": "merge", "ioIntensity": 3000, "ramCount": 1500}, 60, 3.0),
    Kind("urgent", 8, MANAGED | RELEASE | EIGHT | {"processingType": "urgent", "taskPriority": 1100}, 10),
    Kind("nucleus", 8, MANAGED | RELEASE | EIGHT | {"processingType": "reprocessing", "t1Weight": -1}, 20, 3.0),
    Kind("high", 8, MANAGED | RELEASE | EIGHT | {"processingType": "reco", "taskPriority": 900}, 20, 3.0),
    Kind("network", 6, MANAGED | RELEASE | EIGHT | {"processingType": "simul", "ipConnectivity": "full#IPv6"}, 10),
    Kind("large", 6, MANAGED | RELEASE | {"processingType": "simul", "ramCount": 30000, "ramUnit": "MB", "coreCount": 8}, 10),
    Kind("gpu", 6, USERS | {"architecture": "x86_64-el9-gcc13-opt&nvidia", "processingType": "ml", "ramCount": 3000}, 5),
    Kind(
        "varying",
        6,
        MANAGED | RELEASE | {"processingType": "simul", "coreCount": 0, "ramCount": 1500, "ramUnit": "MBPerCore"},
        10,
    ),
    Kind(
        "container", 6, USERS | {"container_name": "analysisbase-25.2.1", "processingType": "panda-client", "ramCount": 1800}, 8
    ),
    Kind("analysis", 30, USERS | {"processingType": "panda-client", "ramCount": 2000, "transUses": "Athena-24.0.5"}, 12),
    Kind("group", 6, USERS | {"processingType": "gangarobot", "workingGroup": "GP_HIGGS", "ramCount": 1500}, 12),
    Kind("named", 4, MANAGED | RELEASE | EIGHT | {"processingType": "simul", "includedSite": ["AMBERFELL", "BRACKFELL"]}, 10),
    Kind("sent", 2, MANAGED | RELEASE | EIGHT | {"processingType": "simul", "site": "DUNFELL"}, 5),
    Kind("impossible", 4, MANAGED | RELEASE | {"processingType": "simul", "ramCount": 999000, "ramUnit": "MB"}),
)
"""Together 200 tasks."""


def tasks() -> Iterator[tuple[Kind, Params]]:
    """Every task with its kind."""
    for kind in KINDS:
        for number in range(kind.tasks):
            yield kind, _task(kind, f"world.{kind.name}.{number:02d}")


def input_of(task: Params) -> str:
    """The dataset that a task reads."""
    return f"{task['taskName']}.in"


def storages_of(task: Params, storages: Sequence[str], nuclei: Sequence[str], tapes: Sequence[str]) -> list[str]:
    """Where the input of a task is: on up to three disks, most often one of a nucleus; of every fifth task also on tape."""
    dice = Random(f"{SEED}.{task['taskName']}")
    places = dice.sample(storages, dice.choice([0, 1, 1, 2]))
    if not places or dice.random() < 0.8:
        places.append(dice.choice(nuclei))
    return list(dict.fromkeys(places + ([dice.choice(tapes)] if dice.random() < 0.2 else [])))


def _task(kind: Kind, name: str) -> Params:
    stream: Params = {"type": "template", "param_type": "pseudo_input", "dataset": "seq_number", "value": "--n ${SEQNUMBER}"}
    made: Params = {"noInput": True, "nEvents": 20000, "nEventsPerJob": 1000}
    if kind.files:
        stream = {"type": "template", "param_type": "input", "dataset": f"{name}.in", "value": "--in ${IN/L}"}
        made = {"nFilesPerJob": 2}
    output = {"type": "template", "param_type": "output", "dataset": f"{name}.OUT", "value": f"--out={name}.${{SN}}.root"}
    return {
        "taskName": name,
        "userName": "ada" if kind.params["prodSourceLabel"] == "user" else "prodsys",
        "vo": "atlas",
        "transPath": "world.py",
        "cpuTime": 500.0,
        "cpuTimeUnit": "HS06sPerEvent",
        "outDiskCount": 100.0,
        "outDiskUnit": "kB",
        "log": {"type": "template", "param_type": "log", "dataset": f"{name}.log", "value": f"{name}.log.${{SN}}.tgz"},
        "jobParameters": [stream, output],
        **made,
        **kind.params,
    }
