"""Tables of demand: columns, constraints and indexes; no logic.

Columns are those of seed 001 in snake_case (row J3, decision E3).
"""

from workqueues.models.catalogue import CatalogueDataset, CatalogueFile, Replica
from workqueues.models.chain import DatasetWriter, InputWriter, PlannedOutput
from workqueues.models.dataset import Dataset, OutputTemplate
from workqueues.models.file import EventRange, File
from workqueues.models.grant import ReadGrant
from workqueues.models.history import DatasetChange, FileChange, TaskChange, TaskNote
from workqueues.models.share import GlobalShare, ShareStanding, WorkQueue, WorkQueueStanding
from workqueues.models.task import JobParamsTemplate, Submission, Task, TaskParams, TaskThrottle
from workqueues.models.throttle import ProcessLock, ThrottleVerdict

__all__ = [
    "CatalogueDataset",
    "CatalogueFile",
    "Dataset",
    "DatasetChange",
    "DatasetWriter",
    "EventRange",
    "File",
    "FileChange",
    "GlobalShare",
    "InputWriter",
    "JobParamsTemplate",
    "OutputTemplate",
    "PlannedOutput",
    "ProcessLock",
    "ReadGrant",
    "Replica",
    "ShareStanding",
    "Submission",
    "Task",
    "TaskChange",
    "TaskNote",
    "TaskParams",
    "TaskThrottle",
    "ThrottleVerdict",
    "WorkQueue",
    "WorkQueueStanding",
]
