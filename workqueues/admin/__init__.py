"""Django's admin of demand: everything to read; tasks take commands. States change through the ledger only."""

from workqueues.admin.catalogue import CatalogueDatasetAdmin, CatalogueFileAdmin, ReplicaAdmin
from workqueues.admin.data import DatasetAdmin, EventRangeAdmin, FileAdmin, OutputTemplateAdmin
from workqueues.admin.histories import DatasetChangeAdmin, FileChangeAdmin, TaskChangeAdmin
from workqueues.admin.queues import ProcessLockAdmin, SubmissionAdmin, WorkQueueAdmin
from workqueues.admin.shares import GlobalShareAdmin, ShareStandingAdmin, ThrottleVerdictAdmin, WorkQueueStandingAdmin
from workqueues.admin.tasks import JobParamsTemplateAdmin, TaskAdmin, TaskParamsAdmin

__all__ = [
    "CatalogueDatasetAdmin",
    "CatalogueFileAdmin",
    "DatasetAdmin",
    "DatasetChangeAdmin",
    "EventRangeAdmin",
    "FileAdmin",
    "FileChangeAdmin",
    "GlobalShareAdmin",
    "JobParamsTemplateAdmin",
    "OutputTemplateAdmin",
    "ProcessLockAdmin",
    "ReplicaAdmin",
    "ShareStandingAdmin",
    "SubmissionAdmin",
    "TaskAdmin",
    "TaskChangeAdmin",
    "TaskParamsAdmin",
    "ThrottleVerdictAdmin",
    "WorkQueueAdmin",
    "WorkQueueStandingAdmin",
]
