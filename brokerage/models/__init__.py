"""Tables of supply: the grid, jobs, pilots, task queues and decisions. Columns, constraints and indexes; no logic."""

from brokerage.models.bulk import BulkAction, BulkTarget
from brokerage.models.decision import Decision, GridPart, StoredSnapshot
from brokerage.models.dispatch import (
    GroupUse,
    IdleHour,
    IdleSlot,
    JobOpening,
    MisfitQueue,
    Pilot,
    PlacementRound,
    RequirementPlace,
    RequirementSet,
    RequirementValue,
    TaskQueue,
)
from brokerage.models.grid import ComputingQueue, QueueStorage, Site, StorageEndpoint
from brokerage.models.grid_facts import DeclaredSlots, Link, Measured, Software
from brokerage.models.grid_feeds import Feed
from brokerage.models.grid_overrides import LocalOverride
from brokerage.models.job import Job, JobChange, JobInput, JobResult, JobRetryHistory, JobSpec
from brokerage.models.queue_ask import AskHour, QueueAsk
from brokerage.models.retry_rule import RetryRule
from brokerage.models.rollup import ErrorFingerprint, ErrorTask, TallyBucket, TallyGroup, TallyLevel, TallyMark, TaskLevel
from brokerage.models.saved_view import SavedView
from brokerage.models.site_limits import MatchGauge, PilotCE, RoomBlock, SiteAdvertisement
from brokerage.models.submission import SubmittedJob
from brokerage.models.transfer import LocalCopy, ReplicaChange, Transfer, TransferChange, TransferLink, TransferWish
from brokerage.models.transfer_figures import LinkHour, LinkLoad, TransferCount
from brokerage.models.waiting import GridRevision, TaskWait, WaitGroup

__all__ = [
    "AskHour",
    "BulkAction",
    "BulkTarget",
    "ComputingQueue",
    "Decision",
    "DeclaredSlots",
    "ErrorFingerprint",
    "ErrorTask",
    "Feed",
    "GridPart",
    "GridRevision",
    "GroupUse",
    "IdleHour",
    "IdleSlot",
    "Job",
    "JobChange",
    "JobInput",
    "JobOpening",
    "JobResult",
    "JobRetryHistory",
    "JobSpec",
    "Link",
    "LinkHour",
    "LinkLoad",
    "LocalCopy",
    "LocalOverride",
    "MatchGauge",
    "Measured",
    "MisfitQueue",
    "Pilot",
    "PilotCE",
    "PlacementRound",
    "QueueAsk",
    "QueueStorage",
    "ReplicaChange",
    "RequirementPlace",
    "RequirementSet",
    "RequirementValue",
    "RetryRule",
    "RoomBlock",
    "SavedView",
    "Site",
    "SiteAdvertisement",
    "Software",
    "StorageEndpoint",
    "StoredSnapshot",
    "SubmittedJob",
    "TallyBucket",
    "TallyGroup",
    "TallyLevel",
    "TallyMark",
    "TaskLevel",
    "TaskQueue",
    "TaskWait",
    "Transfer",
    "TransferChange",
    "TransferCount",
    "TransferLink",
    "TransferWish",
    "WaitGroup",
]
