"""What the OpenAPI document tells of the verbs of pilots: their bodies, as `pilot_messages` reads them, and their answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import (
    Any,
    Literal,
    NotRequired,  # pydantic needs this one before Python 3.12
)

from typing_extensions import TypedDict

from broker_site.foundation.rest.plain_operations import tells
from brokerage.rules.dispatch.pilot_messages import Heartbeat, JobRequest, PastLeases, Registration, Reports, ResourceAttributes
from brokerage.rules.dispatch.settlement import Report
from brokerage.rules.dispatch.why_nothing import Reason
from workqueues.rules.jobs.log_streams import Stream


class LocalStorage(TypedDict):
    """A storage endpoint of the queue that is a directory."""

    name: str
    path: str


class Registered(TypedDict):
    """A pilot's id and token (good for `expires_in` s), its storage, and how long it waits between asks and for an answer, s."""

    pilot_id: str
    token: str
    expires_in: float
    storages: list[LocalStorage]
    poll_s: float
    long_poll_s: float


class StoragePlace(TypedDict):
    """A file at a storage endpoint: as a path below its marked root, or by a signed address."""

    storage: str
    path: NotRequired[str]
    root: NotRequired[str]
    mark: NotRequired[str]
    url: NotRequired[str]


class JobInputFile(TypedDict):
    """An input and its copies, nearest first; size in bytes, adler32."""

    lfn: str
    size: int | None
    checksum: str
    dataset: str
    sources: list[StoragePlace]


class LogStreamFile(TypedDict):
    """Where a pilot puts a stream of a log as a plain file, cut as in the log; at the storage, root and mark of the log."""

    stream: Stream
    lfn: str
    path: NotRequired[str]
    url: NotRequired[str]
    remove_url: NotRequired[str]


class JobOutputFile(StoragePlace):
    """An output and where it goes; `source_name`: what the payload calls it, where that is another name. `streams`: of a log."""

    lfn: str
    remove_url: NotRequired[str]
    type: Literal["output", "log"]
    optional: bool
    source_name: str | None
    streams: NotRequired[list[LogStreamFile]]


class LeasedJobDocument(TypedDict):
    """A job that a pilot got, under its token and lease (s); sizes of slots in MB and s."""

    id: int
    epoch: int
    token: str
    lease_s: float
    task_id: int
    attempt_nr: int
    queue: str
    transformation: str
    parameters: str
    container: str | None
    cores: int
    memory_mb: int
    disk_mb: int
    walltime_s: int
    metadata_file: str | None
    log_max: int
    inputs: list[JobInputFile]
    outputs: list[JobOutputFile]


class Lack(TypedDict):
    """An attribute by which the pilot does not suit the jobs of a task queue: what is needed, and what there is."""

    attribute: str
    needs: str
    has: str


class WhyNothing(TypedDict):
    """Why there is nothing: the reason and a sentence, the closest task queue and what the pilot lacks there, limits reached."""

    reason: Reason
    text: str
    task_queue: int | None
    lacks: list[Lack]
    limits: list[str]
    wait_s: float


class Matched(TypedDict, total=False):
    """What an ask got: a job, or several where it asked for `n`; or, where it wants to know, why it got none.

    `unknown`: fields of the ask that are not known here.
    """

    job: LeasedJobDocument | None
    jobs: list[LeasedJobDocument]
    nothing: WhyNothing
    unknown: list[str]


class Prolonged(TypedDict):
    """The lease goes on for so many seconds under this token; `command`: what the pilot shall do."""

    token: str
    lease_s: float
    command: Literal["tobekilled"] | None


class Ended(TypedDict):
    """How the job has ended."""

    status: str


class ToldOfJobs(TypedDict):
    """For each entry, in the same order, the answer to a heartbeat or report, or `problem`."""

    jobs: list[Mapping[str, Any]]


class Outcome(TypedDict):
    """What became of a lease."""

    job_id: int
    epoch: int
    outcome: Literal["finished", "live", "gone"]


class Outcomes(TypedDict):
    """What became of the leases that were asked for; those of other queues are not told."""

    outcomes: list[Outcome]


NOTHING = (
    "Nothing; Retry-After says when to ask again, X-Nothing the reason in a word, X-Unknown-Fields what is not known of the ask."
)
REGISTER = tells("A pilot begins.", Registration, answers={201: ("The pilot's token.", Registered)}, refusals=[409])
MATCH = tells(
    "A pilot asks for a job.",
    *(JobRequest, ResourceAttributes),
    answers={200: ("What it got.", Matched), 204: (NOTHING, None)},
)
SETTLED = tells("What became of jobs that an earlier pilot left.", PastLeases, answers={200: ("Their outcomes.", Outcomes)})
REPORTS = tells("Heartbeats and reports of several jobs.", Reports, answers={200: ("An entry for each.", ToldOfJobs)})
HEARTBEAT = tells("A sign of life of a job.", Heartbeat, answers={200: ("The lease goes on.", Prolonged)}, refusals=[409])
REPORT = tells("The last word of a job.", Report, answers={200: ("How it is recorded.", Ended)}, refusals=[409])
