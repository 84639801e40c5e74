"""Tables of demand: columns, constraints and indexes; no logic.

Columns are those of seed 001 in snake_case (row J3, decision E3).
"""

from workqueues.models.catalogue import CatalogueDataset, CatalogueFile, Replica
from workqueues.models.chain import DatasetWriter, InputWriter, PlannedOutput
from workqueues.models.child_broker import ChildBroker, Installation, ParentBroker
from workqueues.models.dataset import Dataset, OutputTemplate
from workqueues.models.element import Element, ElementChange, ElementGroup, ElementInbox, ElementInput
from workqueues.models.file import EventRange, File
from workqueues.models.grant import ReadGrant
from workqueues.models.history import DatasetChange, FileChange, TaskChange, TaskNote
from workqueues.models.pulled_element import PulledElement
from workqueues.models.share import GlobalShare, ShareStanding, WorkQueue, WorkQueueStanding
from workqueues.models.task import JobParamsTemplate, Submission, Task, TaskParams, TaskThrottle
from workqueues.models.throttle import ProcessLock, ThrottleVerdict

__all__ = [
    "CatalogueDataset",
    "CatalogueFile",
    "ChildBroker",
    "Dataset",
    "DatasetChange",
    "DatasetWriter",
    "Element",
    "ElementChange",
    "ElementGroup",
    "ElementInbox",
    "ElementInput",
    "EventRange",
    "File",
    "FileChange",
    "GlobalShare",
    "InputWriter",
    "Installation",
    "JobParamsTemplate",
    "OutputTemplate",
    "ParentBroker",
    "PlannedOutput",
    "ProcessLock",
    "PulledElement",
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
