"""Tables of demand: columns, constraints and indexes; no logic.

Columns are those of seed 001 in snake_case (row J3, decision E3).
"""

from workqueues.models.catalogue import CatalogueDataset, CatalogueFile, Replica
from workqueues.models.claim import ProcessLock, Submission
from workqueues.models.dataset import Dataset, OutputTemplate
from workqueues.models.event import EventRange
from workqueues.models.file import File
from workqueues.models.history import DatasetChange, FileChange, TaskChange
from workqueues.models.queue import WorkQueue
from workqueues.models.share import GlobalShare, ShareStanding, WorkQueueStanding
from workqueues.models.task import JobParamsTemplate, Task, TaskParams
from workqueues.models.throttle import ThrottleVerdict

__all__ = [
    "CatalogueDataset",
    "CatalogueFile",
    "Dataset",
    "DatasetChange",
    "EventRange",
    "File",
    "FileChange",
    "GlobalShare",
    "JobParamsTemplate",
    "OutputTemplate",
    "ProcessLock",
    "Replica",
    "ShareStanding",
    "Submission",
    "Task",
    "TaskChange",
    "TaskParams",
    "ThrottleVerdict",
    "WorkQueue",
    "WorkQueueStanding",
]
