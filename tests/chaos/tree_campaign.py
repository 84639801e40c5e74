"""What the chaos test of a tree of brokers runs: a grid that all of them know, its input files and its tasks. Plain data.

One parent without queues, two children with queues at their own sites. Some input files lie where one child reads them, some
where both do. Each job sorts its inputs into one output, as in `campaign`, so the lines show what was lost or doubled.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.chaos.campaign import Campaign, InputFile, dataset, endpoint, overrides, task_parameters, write_file

PARENT, WEST, EAST = "parent", "west", "east"
CHILDREN: Mapping[str, Mapping[str, int]] = {WEST: {"ALPHA": 2}, EAST: {"BETA": 2}}
"""Child broker -> its queues with the pilots of each."""
QUEUES = [queue for queues in CHILDREN.values() for queue in queues]
MERGING = 1
"""The task, by number, whose outputs are merged at the children."""


@dataclass(frozen=True, slots=True)
class TreeCampaign:
    """The size of a run. Times in seconds; `folder` holds storage, software, backups and the files beside the databases."""

    folder: Path
    seed: int
    jobs: int = 2000
    files_per_job: int = 2
    tasks: int = 4
    element_files: int = 20
    lease_s: float = 5.0

    @property
    def files(self) -> int:
        """Input files of all tasks."""
        return self.jobs * self.files_per_job

    @property
    def of_jobs(self) -> Campaign:
        """The same size as the campaign of one broker has it."""
        return Campaign(self.folder, self.seed, self.jobs, self.files_per_job, self.tasks)

    def dump(self) -> str:
        """As JSON, for the process that prepares a database."""
        return json.dumps(asdict(self) | {"folder": str(self.folder)})

    @classmethod
    def load(cls, text: str) -> TreeCampaign:
        """The campaign of a `dump`."""
        fields = json.loads(text)
        return cls(**fields | {"folder": Path(fields["folder"])})


def write_inputs(campaign: TreeCampaign) -> dict[str, list[InputFile]]:
    """Write the software and every input file: dataset -> its files. The same seed, the same places."""
    campaign.of_jobs.software.mkdir(parents=True)
    (campaign.of_jobs.software / "sort").symlink_to("/usr/bin/sort")
    for queue in QUEUES:
        (campaign.of_jobs.storage / endpoint(queue)).mkdir(parents=True)
    dice = random.Random(campaign.seed)
    storages = [endpoint(queue) for queue in QUEUES]
    found: dict[str, list[InputFile]] = {}
    for task in range(campaign.tasks):
        runs = range(0, campaign.files // campaign.tasks, campaign.element_files)
        places = [dice.choice([tuple(storages), *((name,) for name in storages)]) for _ in runs]
        found[dataset(task)] = [
            write_file(campaign.of_jobs, f"{dataset(task)}.{i:06d}", places[i // campaign.element_files], dice)
            for i in range(campaign.files // campaign.tasks)
        ]
    return found


def tree_overrides(campaign: TreeCampaign) -> Iterator[tuple[str, str, str, float | str]]:
    """Compressed time, of parent and children alike: (app, component, key, value)."""
    yield from overrides(campaign.of_jobs)
    yield "jedi", "elements", "LEASE", campaign.lease_s
    yield "jedi", "elements", "ELEMENT_FILES", campaign.element_files
    yield "jedi", "elements", "LOCATIONS", 2.0
    yield "jedi", "elements", "PARENT_TIMEOUT", 2.0
    yield "jedi", "elements", "STANDSTILL", 60.0
    yield "jedi", "elements", "RETURN_PAUSE", 1.0
    yield "jedi", "elements", "RETURN_PAUSE_MAX", 8.0


def tree_task(campaign: TreeCampaign, task: int) -> dict[str, Any]:
    """What is submitted to the parent for the n-th task: children do its work."""
    params = task_parameters(campaign.of_jobs, task)
    for name in ("binding", "bindingAfter", "mergeOutput", "nFilesPerMergeJob"):
        params.pop(name, None)
    params["jobParameters"][-1]["value"] = "${IN/S}"
    more = {"mergeOutput": True, "nFilesPerMergeJob": 5} if task == MERGING else {}
    return {**params, **more, "workTo": "children"}
