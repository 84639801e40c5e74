"""Keys of every job broker, of the generic one and of production, and what all brokers read of `core`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from broker_site.foundation.gdpconfig.keys import Key, Type, declare

_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0


def _bad_groups(value: Any) -> str | None:
    lists = value.values() if isinstance(value, Mapping) else [None]
    if all(isinstance(types, list | tuple) and all(isinstance(name, str) for name in types) for types in lists):
        return None
    return "an object of lists of processing types is expected"


def _broker(name: str, kind: Type, default: Any, doc: str, source: str, **more: Any) -> Key:
    """A key of the job brokers."""
    return Key(component="jobbroker", name=name, type=kind, default=default, doc=doc, source=source, **more)


declare(
    # What every job broker reads.
    _broker(
        "STORAGE_MIN_FREE_SIZE",
        "float",
        200.0,
        "A queue whose output storage has less free space (the production broker: not more) is skipped (-disk).",
        "seed 000",
        unit="GB",
        low=0,
        zero_is_unset=True,
    ),
    _broker(
        "JOBS_PER_BLOCK",
        "int",
        25,
        "Jobs that are made for one queue before the next queue is drawn among the chosen ones.",
        "facts on the brokerage 8.1",
        unit="jobs",
        low=1,
        high=10000,
    ),
    _broker(
        "SCOUTS_PER_BLOCK",
        "int",
        2,
        "The same while the scouts of a task are made.",
        "facts on the brokerage 8.1",
        unit="jobs",
        low=1,
        high=10000,
    ),
    _broker(
        "NQUEUELIMITSITE",
        "int",
        20,
        "A queue takes jobs until it has more queued than this and than twice what runs. 0 = the letter of the document.",
        "seed 000; decision A2",
        unit="jobs",
        low=0,
    ),
    _broker(
        "NQUEUELIMITSITE_<gshare>", "int", None, "NQUEUELIMITSITE for one share.", "facts on gdpconfig 1.2.1", unit="jobs", low=0
    ),
    # The generic broker.
    _broker(
        "BEST_GENERIC",
        "int",
        5,
        "How many of the best queues the generic broker takes.",
        "facts on the brokerage 4",
        unit="queues",
        low=1,
        high=1000,
    ),
    _broker(
        "PENDING_GENERIC",
        "duration",
        20 * _MINUTE,
        "How long a task waits when the generic broker finds no queue for it.",
        "as analysis, seed 000",
        low=0.05,
        high=30 * _DAY,
    ),
    # The production broker.
    _broker(
        "BEST_PRODUCTION",
        "int",
        10,
        "How many of the best queues the production broker takes.",
        "seed 000",
        unit="queues",
        low=1,
        high=1000,
    ),
    _broker(
        "PENDING_PRODUCTION",
        "duration",
        1 * _HOUR,
        "How long a task waits when the production broker finds no queue for it.",
        "seed 000",
        low=0.05,
        high=30 * _DAY,
    ),
    _broker(
        "MEMORY_COMPENSATION",
        "float",
        0.9,
        "Factor of the expected memory before it is compared, so that jobs near a lower limit do not need a high-memory queue.",
        "seed 000; decision B4",
        low=0.1,
        high=2,
    ),
    _broker(
        "LEAST_MAXTIME",
        "duration",
        24 * _HOUR,
        "Scouts, merge jobs and jobs of unknown walltime run only where maxtime is at least this.",
        "seed 000",
        low=0,
        high=30 * _DAY,
    ),
    _broker(
        "INACTIVE_AFTER",
        "duration",
        2 * _HOUR,
        "A queue where jobs wait is inactive when the last one began longer ago than this (-inactive).",
        "seed 000",
        low=0.05,
        high=30 * _DAY,
    ),
    _broker(
        "NQUEUED_SAT_CAP", "int", 300, "More files on the link to the nucleus: -link_unusable.", "seed 001", unit="files", low=1
    ),
    _broker(
        "NQUEUED_NUC_CAP_FOR_JOBS",
        "int",
        10_000,
        "More files on their way to the nucleus: -links_full.",
        "seed 000; facts on gdpconfig 1.2.1",
        unit="files",
        low=1,
    ),
    _broker(
        "IO_INTENSITY_CUTOFF", "float", 200.0, "Tasks with more I/O want their input near (-io).", "seed 000", unit="kB/s", low=0
    ),
    _broker(
        "SIZE_CUTOFF_TO_MOVE_INPUT", "float", 10.0, "Less input than this may be missing there.", "seed 000", unit="GB", low=0
    ),
    _broker(
        "NUM_CUTOFF_TO_MOVE_INPUT", "int", 100, "Fewer files than this may be missing there.", "seed 000", unit="files", low=0
    ),
    _broker(
        "MAX_DISKIO_DEFAULT",
        "float",
        1e10,
        "Most disk I/O per core at queues that set no maxDiskIO (-diskIO).",
        "seed 000",
        unit="kB/s",
        low=0,
        zero_is_unset=True,
    ),
    _broker("NW_ACTIVE", "bool", True, "Whether the network weight counts.", "decision A2"),
    _broker("NW_QUEUE_IMPORTANCE", "float", 0.5, "Part of the waiting files in the network weight.", "seed 000", low=0, high=1),
    _broker("NW_THRESHOLD", "float", 1.7, "Least network weight for urgent tasks (-lowNetworkWeight).", "seed 000", low=0),
    _broker("NW_WEIGHT_MULTIPLIER", "float", 1.0, "Factor of NW_THRESHOLD.", "seed 000", low=0),
    _broker("T1_CLOUD_WEIGHT", "float", 4.0, "Factor of the nucleus for tasks with much I/O and t1Weight 0.", "seed 001", low=0),
    _broker("REJECT_OPPORTUNISTIC", "bool", False, "High priority and scouts not at opportunistic queues.", "decision B1"),
    _broker(
        "PROCESSING_GROUPS",
        "json",
        {},
        "Processing group -> list of its processing types; a type that is in none is its own group.",
        "decision B11",
        check=_bad_groups,
    ),
    _broker(
        "MIN_WEIGHT_<label>",
        "float",
        None,
        "Queues with a lower weight are not taken for tasks of this label (-below_min_weight).",
        "facts on gdpconfig 1.2.1",
        low=0,
    ),
    _broker(
        "MIN_WEIGHT_<label>_<gshare>", "float", None, "MIN_WEIGHT for one label and share.", "facts on gdpconfig 1.2.1", low=0
    ),
    _broker(
        "MERGE_PREASSIGNMENT",
        "duration",
        24 * _HOUR,
        "Merge jobs run where their input is, until the queues there have been skipped for this long.",
        "seed 000",
        low=0.05,
        high=365 * _DAY,
    ),
    Key(
        component="core",
        name="WORK_SHORTAGE",
        type="bool",
        default=False,
        doc="Work is short: no jobs for opportunistic queues, nor beyond pledges; THROTTLE_THRESHOLD_FOR_WORK_SHORTAGE holds.",
        source="facts on the brokerage 2.3",
    ),
)
