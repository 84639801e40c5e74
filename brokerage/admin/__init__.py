"""Django's admin of supply: the grid to edit, each edit audited; jobs, pilots and decisions to read."""

from brokerage.admin.decisions import DecisionAdmin, GridPartAdmin, StoredSnapshotAdmin
from brokerage.admin.grid import ComputingQueueAdmin, QueueStorageAdmin, SiteAdmin, StorageEndpointAdmin
from brokerage.admin.grid_facts import DeclaredSlotsAdmin, LinkAdmin, MeasuredAdmin, SoftwareAdmin
from brokerage.admin.grid_feeds import FeedAdmin
from brokerage.admin.grid_overrides import LocalOverrideAdmin
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
    "DeclaredSlotsAdmin",
    "FeedAdmin",
    "GridPartAdmin",
    "JobAdmin",
    "JobChangeAdmin",
    "JobInputAdmin",
    "JobResultAdmin",
    "JobRetryHistoryAdmin",
    "JobSpecAdmin",
    "LinkAdmin",
    "LocalOverrideAdmin",
    "MeasuredAdmin",
    "PilotAdmin",
    "QueueStorageAdmin",
    "SiteAdmin",
    "SoftwareAdmin",
    "StorageEndpointAdmin",
    "StoredSnapshotAdmin",
    "TaskQueueAdmin",
]
