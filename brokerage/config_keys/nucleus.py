"""Keys of the task broker, which chooses the nucleus of a task."""

from __future__ import annotations

from functools import partial

from broker_site.foundation.gdpconfig.keys import Key, declare

_MINUTE, _DAY = 60.0, 86400.0

_key = partial(Key, component="taskbrokerage")

declare(
    _key(
        name="NQUEUED_NUC_CAP",
        type="int",
        unit="files",
        default=2000,
        low=1,
        doc="A nucleus to which this many files wait for transfer takes no new task (-transfer_backlog).",
        source="seed 001",
    ),
    _key(
        name="DISK_THRESHOLD",
        type="float",
        unit="TB",
        default=5.0,
        low=0,
        doc="A nucleus with no more usable space, less what its tasks will still write, takes no new task (-space).",
        source="seed 001; decision A2",
    ),
    _key(
        name="DISK_THRESHOLD_<queue>",
        type="float",
        unit="TB",
        default=None,
        low=0,
        doc="DISK_THRESHOLD for the tasks of one share.",
        source="facts on gdpconfig 1.2.3",
    ),
    _key(
        name="INPUT_SIZE_THRESHOLD",
        type="float",
        unit="GB",
        default=1.0,
        low=0,
        doc="Tasks with more input want a part of it at the nucleus (-insize).",
        source="seed 001",
    ),
    _key(
        name="INPUT_SIZE_FRACTION",
        type="float",
        unit="%",
        default=10.0,
        low=0,
        high=100,
        doc="How much of the size of the input must be there.",
        source="seed 001",
    ),
    _key(
        name="INPUT_NUM_THRESHOLD",
        type="int",
        unit="files",
        default=100,
        low=0,
        doc="Tasks with more input files want a part of them at the nucleus (-innum).",
        source="seed 001",
    ),
    _key(
        name="INPUT_NUM_FRACTION",
        type="float",
        unit="%",
        default=10.0,
        low=0,
        high=100,
        doc="How many of the input files must be there.",
        source="seed 001",
    ),
    _key(
        name="MIN_IO_INTENSITY_WITH_LOCAL_DATA",
        type="float",
        unit="kB/s",
        default=200.0,
        low=0,
        doc="Where no nucleus has enough input, tasks with no more I/O than this go without.",
        source="facts on the brokerage 5",
    ),
    _key(
        name="MIN_INPUT_SIZE_WITH_LOCAL_DATA",
        type="float",
        unit="GB",
        default=10_000.0,
        low=0,
        doc="The same, if their input is not larger than this.",
        source="facts on the brokerage 5",
    ),
    _key(
        name="MAX_TASK_PRIO_WITH_LOCAL_DATA",
        type="int",
        default=800,
        doc="From this priority on a task goes without input at its nucleus where no nucleus has enough of it.",
        source="facts on the brokerage 5",
    ),
    _key(
        name="DATA_LOCATION_CHECK_PERIOD",
        type="duration",
        default=7 * _DAY,
        low=0.05,
        high=365 * _DAY,
        zero_is_unset=True,
        doc="A task that has waited longer for its nucleus goes without input there.",
        source="facts on the brokerage 5",
    ),
    _key(
        name="PENDING_NUCLEUS",
        type="duration",
        default=30 * _MINUTE,
        low=0.05,
        high=30 * _DAY,
        doc="How long a task stays assigning before a nucleus is looked for again.",
        source="facts on timeouts 4.4",
    ),
)
