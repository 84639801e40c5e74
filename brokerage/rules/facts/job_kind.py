"""The kind of a job: what it is made for (decision I1). The numbers stand in the database and never change."""

from __future__ import annotations

from enum import IntEnum


class JobKind(IntEnum):
    """What a job is made for; `label` is its name everywhere outside the database."""

    NORMAL = 0
    SCOUT = 1
    BUILD = 2
    PREPROCESS = 3
    MERGE = 4
    EVENT_SERVICE = 5
    ES_MERGE = 6
    JUMBO = 7
    COJUMBO = 8

    @property
    def label(self) -> str:
        """The name that people and programs read."""
        return self.name.lower()

    @classmethod
    def named(cls, label: str) -> JobKind:
        """The kind of this name. KeyError where there is none."""
        return cls[label.upper()]


KIND_NAMES = tuple(kind.label for kind in JobKind)
"""The name of every kind."""

BUILT_KINDS = (JobKind.NORMAL, JobKind.MERGE, JobKind.SCOUT, JobKind.PREPROCESS)
"""Kinds of which jobs are made; no other one exists in the database before its feature is built."""

METADATA_FILE = "jobMetadata.json"
"""The file in the working folder in which the payload of a preprocessing job says what it found, a JSON object."""

LEAST_SCOUT_PRIORITY = 901


def priority_of(kind: JobKind, task_priority: int) -> int:
    """The priority of a job of a task with this one: scouts go before other jobs (facts on the brokerage 10)."""
    return max(LEAST_SCOUT_PRIORITY, task_priority + 1) if kind is JobKind.SCOUT else task_priority


MERGING_KINDS = (JobKind.MERGE, JobKind.ES_MERGE)
"""Jobs that merge outputs of others; their priority is no measure for other work (facts on tables 4.5)."""
