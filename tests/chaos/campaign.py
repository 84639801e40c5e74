"""What the chaos test runs: a small grid, its configuration, its input files and its tasks. Plain data, no application code.

Each input file holds one line that no other file holds, and each job sorts its inputs into one output (`sort`, no interpreter),
so the lines on storage show by themselves what was lost or doubled.
"""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

VO = "demo"
QUEUES: Mapping[str, int] = {"ALPHA": 3, "BETA": 2, "GAMMA": 2, "DELTA": 1}
"""Computing queue -> pilots there."""
SUBMITTED, SUBMITTED_SLOTS = "EPSILON", 2
"""The computing queue whose jobs are submitted, each with a pilot of its own, and how many of these run at a time."""
MERGING, FAILING = 1, 2
"""Tasks by number: one merges its outputs; in one the first try of every file fails, as `sort` merges two files at least."""
LATE: Mapping[int, Mapping[str, Any]] = {0: {"binding": "late_after", "bindingAfter": 1}, 3: {"binding": "late"}}
"""Tasks whose jobs are open to several queues, at once or after a while. Their input is at every queue, as none is brought."""


@dataclass(frozen=True, slots=True)
class Campaign:
    """The size of a run. Times in seconds; `folder` holds storage, software and everything else that a run writes; `submits`:
    whether jobs are also submitted.
    """

    folder: Path
    seed: int
    jobs: int = 500
    files_per_job: int = 4
    tasks: int = 5
    lease_s: float = 10.0
    claim_s: float = 5.0
    outage_s: float = 4.0
    submits: bool = False

    @property
    def queues(self) -> list[str]:
        """Where jobs may run."""
        return [*QUEUES, SUBMITTED] if self.submits else list(QUEUES)

    @property
    def files(self) -> int:
        """Input files of all tasks."""
        return self.jobs * self.files_per_job

    @property
    def storage(self) -> Path:
        """Where the storage endpoints have their directories."""
        return self.folder / "storage"

    @property
    def software(self) -> Path:
        """The software area of all queues."""
        return self.folder / "software"

    def dump(self) -> str:
        """As JSON, for the process that prepares the database."""
        return json.dumps(asdict(self) | {"folder": str(self.folder)})

    @classmethod
    def load(cls, text: str) -> Campaign:
        """The campaign of a `dump`."""
        fields = json.loads(text)
        return cls(**fields | {"folder": Path(fields["folder"])})


@dataclass(frozen=True, slots=True)
class InputFile:
    """One input on storage: size in bytes, adler32 as 8 hex digits."""

    lfn: str
    storages: tuple[str, ...]
    size: int
    checksum: str


def endpoint(queue: str) -> str:
    """The storage endpoint of a queue."""
    return f"{queue}_DISK"


def dataset(task: int) -> str:
    """The input dataset of the n-th task."""
    return f"chaos.in{task}"


def write_files(campaign: Campaign) -> Iterator[tuple[str, list[InputFile]]]:
    """Write the software and every input file; dataset and its files."""
    campaign.software.mkdir(parents=True)
    (campaign.software / "sort").symlink_to("/usr/bin/sort")
    dice = random.Random(campaign.seed)
    names = [endpoint(queue) for queue in campaign.queues]
    for name in names:
        (campaign.storage / name).mkdir(parents=True)
    for task in range(campaign.tasks):
        count = campaign.files // campaign.tasks
        places = [tuple(names) if task in LATE else (dice.choice(names),) for _ in range(count)]
        yield dataset(task), [write_file(campaign, f"{dataset(task)}.{i:06d}", at, dice) for i, at in enumerate(places)]


def write_file(campaign: Campaign, lfn: str, storages: tuple[str, ...], dice: random.Random) -> InputFile:
    """Write one input file, with a line of its own, to these storages."""
    content = f"{lfn} {dice.randbytes(8).hex()}\n".encode()
    for storage in storages:
        (campaign.storage / storage / lfn).write_bytes(content)
    return InputFile(lfn, storages, len(content), f"{zlib.adler32(content):08x}")


def overrides(campaign: Campaign) -> Iterator[tuple[str, str, str, float | str]]:
    """Compressed time, and the policy: (app, component, key, value)."""
    agents = (
        "pull",
        "refine",
        "feed",
        "assign",
        "offer",
        "generate",
        "assess",
        "merge",
        "command",
        "wake",
        "reap",
        "finish",
        "storage",
    )
    yield "jedi", "agents", "CLAIM", campaign.claim_s
    for agent in (*agents, "transfer", "evict", "tally", "submit"):
        yield "jedi", "agents", f"PERIOD_{agent}", 0.5
    # Lost jobs make other policies avoid a queue for hours; what is tested here is that nothing is lost, not where it goes.
    for activity in ("production", "analysis"):
        yield "jedi", "core", f"POLICY_{activity}", "generic"
        yield "pandaserver", "watcher", f"HEARTBEAT_TIMEOUT_{activity}", campaign.lease_s
    for key in ("PENDING_WAIT", "PENDING_WAIT_ANALYSIS", "PENDING_WAIT_PRIO_900", "PENDING_WAIT_PRIO_950"):
        yield "jedi", "watchdog", key, 1.0
    yield "jedi", "jobbroker", "PENDING_GENERIC", 1.0
    yield "jedi", "taskbrokerage", "PENDING_NUCLEUS", 1.0
    yield "jedi", "jobbroker", "RETRY_PAUSE", 0.5
    yield "jedi", "jobbroker", "RETRY_PAUSE_MAX", 5.0
    yield "jedi", "dispatch", "POLL", 0.2
    yield "jedi", "storage", "LOOK_AGAIN", 0.5
    yield "jedi", "storage", "LOST_CONFIRM", 15.0
    for key, seconds in (("BACKOFF", 0.5), ("BACKOFF_MAX", 4.0), ("REST", 0.5), ("UPKEEP", 0.5), ("POLL", 2.0), ("CLAIM", 4.0)):
        yield "jedi", "transfers", key, seconds
    for key, seconds in (("MOVER_CLAIM", 4.0), ("LINK_BLOCK", 4.0), ("SILENT_AFTER", 20.0)):
        yield "jedi", "transfers", key, seconds
    yield "jedi", "transfers", "MAX_ATTEMPTS", 20
    # Few wait for their turn at a machine with few slots.
    for key in ("FEWEST_CPU_SLOTS", "FEWEST_IO_SLOTS"):
        yield "jedi", "submission", key, 2 * SUBMITTED_SLOTS


def task_parameters(campaign: Campaign, task: int) -> dict[str, Any]:
    """What is submitted for the n-th task: every second one is production, the others are a user's."""
    name = f"chaos{task}"
    options = "--batch-size=${ATTEMPTNR} " if task == FAILING else ""
    more = {"mergeOutput": True, "nFilesPerMergeJob": 10} if task == MERGING else {}
    return {
        **more,
        **LATE.get(task, {}),
        "taskName": name,
        "userName": "demo",
        "vo": VO,
        "prodSourceLabel": "managed" if task % 2 else "user",
        "taskType": "prod",
        "processingType": "chaos",
        "taskPriority": 500 + 10 * task,
        "architecture": "",
        "transUses": "",
        "transHome": "",
        "transPath": "sort",
        "ramCount": 100,
        "ramUnit": "MB",
        "nFilesPerJob": campaign.files_per_job,
        "maxAttempt": 20,
        "log": {"type": "template", "param_type": "log", "dataset": f"{name}.log", "value": f"{name}.log.${{SN}}.tgz"},
        "jobParameters": [
            {"type": "template", "param_type": "output", "dataset": f"{name}.out", "value": f"--output={name}.out.${{SN}}.txt"},
            {"type": "template", "param_type": "input", "dataset": dataset(task), "value": f"{options}${{IN/S}}"},
        ],
    }
