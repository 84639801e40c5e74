"""Django's admin of supply: the grid to edit, each edit audited; jobs, pilots and decisions to read."""

from brokerage.admin.decisions import DecisionAdmin, GridSnapshotAdmin
from brokerage.admin.grid import ComputingQueueAdmin, QueueStorageAdmin, SiteAdmin, StorageEndpointAdmin
from brokerage.admin.jobs import (
    JobAdmin,
    JobChangeAdmin,
    JobInputAdmin,
    JobResultAdmin,
    JobRetryHistoryAdmin,
    JobSpecAdmin,
)
from brokerage.admin.pilots import PilotAdmin, TaskQueueAdmin

__all__ = [
    "ComputingQueueAdmin",
    "DecisionAdmin",
    "GridSnapshotAdmin",
    "JobAdmin",
    "JobChangeAdmin",
    "JobInputAdmin",
    "JobResultAdmin",
    "JobRetryHistoryAdmin",
    "JobSpecAdmin",
    "PilotAdmin",
    "QueueStorageAdmin",
    "SiteAdmin",
    "StorageEndpointAdmin",
    "TaskQueueAdmin",
]
