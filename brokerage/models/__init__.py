"""Tables of supply: the grid, jobs, pilots, task queues and decisions. Columns, constraints and indexes; no logic."""

from brokerage.models.decision import Decision, GridSnapshot
from brokerage.models.grid import ComputingQueue, QueueStorage, Site, StorageEndpoint
from brokerage.models.job import Job, JobChange, JobInput, JobResult, JobRetryHistory, JobSpec
from brokerage.models.pilot import Pilot
from brokerage.models.taskqueue import TaskQueue

__all__ = [
    "ComputingQueue",
    "Decision",
    "GridSnapshot",
    "Job",
    "JobChange",
    "JobInput",
    "JobResult",
    "JobRetryHistory",
    "JobSpec",
    "Pilot",
    "QueueStorage",
    "Site",
    "StorageEndpoint",
    "TaskQueue",
]
