"""Jobs that end: what of them their ends need, read in one statement, and what becomes of their files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from broker_site.foundation import gdpconfig
from broker_site.foundation.sql.prepared import Call, Prepared
from brokerage.rules.dispatch.settlement import Ending, ExpectedOutput, ReportedOutput
from brokerage.rules.facts.job_kind import JobKind
from brokerage.states import JOB
from workqueues.ledger.files import Hold, JobOutcome, MadeFile
from workqueues.rules.jobs.event_ranges import Outcome
from workqueues.rules.jobs.retry_pause import RetryPause
from workqueues.states import LOG_TYPES, PREMERGED_TYPES, TASK

FILE_OUTCOME: dict[Ending, Outcome] = {"finished": "finished", "failed": "failed", "closed": "returned", "cancelled": "returned"}
"""What the end of a job is to its inputs: only `failed` is a failure (decision D1)."""

GOES_TO = """
CASE WHEN d.collected_at = '' OR d.collected_at = j.storage THEN ''
    ELSE coalesce((
        SELECT c.name FROM brokerage_storageendpoint c
        WHERE c.name = d.collected_at AND (d.storage_token <> '' OR c.site_id IS DISTINCT FROM e.site_id)), '') END
"""
"""Where an output of the dataset `d` is brought that the job `j` writes to the endpoint `e`.

At a storage of the nucleus that the task did not ask for by a token it is at the nucleus already. An endpoint that the grid has
no more collects nothing.
"""

ALSO_TO = """
ARRAY(
    SELECT c.name FROM unnest(d.also_at) WITH ORDINALITY AS a(name, number) JOIN brokerage_storageendpoint c ON c.name = a.name
    WHERE c.name <> j.storage ORDER BY a.number)
"""
"""Where it is brought besides."""

_SEE = Prepared(
    "see_jobs",
    "bigint[]",
    f"""
    SELECT j.id, j.epoch, j.status, j.ended_at IS NOT NULL, j.kill_requested, j.kill_outcome, j.kill_why, j.lease_holder::text,
        coalesce((SELECT host FROM brokerage_pilot WHERE id = j.lease_holder), ''), coalesce(q.name, ''),
        coalesce(s.vo, ''), j.storage, least(1e9 * coalesce(e.root_gb, e.free_gb + coalesce(e.expired_gb, 0)), 9e18)::bigint,
        u.whole, u.cut,
        ARRAY(SELECT json_build_array(f.id, f.lfn, d.dataset_name, f.optional, f.type IN ({LOG_TYPES.sql}), {GOES_TO}, {ALSO_TO},
                f.type IN ({PREMERGED_TYPES.sql}), CASE WHEN f.status = 'running' THEN f.n_events END)
            FROM workqueues_file f JOIN workqueues_dataset d ON d.id = f.dataset_id WHERE f.out_job_id = j.id ORDER BY f.id),
        coalesce(s.created_at, j.status_since), now(), j.token_since,
        EXISTS (SELECT FROM workqueues_task WHERE id = j.task_id AND status IN ({TASK.commanded.sql})), j.kind
    FROM brokerage_job j LEFT JOIN brokerage_computingqueue q ON q.id = j.computing_queue_id
    LEFT JOIN brokerage_jobspec s ON s.job_id = j.id LEFT JOIN brokerage_storageendpoint e ON e.name = j.storage
    CROSS JOIN LATERAL (
        SELECT coalesce(array_agg(file_id) FILTER (WHERE event_range_id IS NULL), '{{}}') AS whole,
            coalesce(array_agg(DISTINCT file_id) FILTER (WHERE event_range_id IS NOT NULL), '{{}}') AS cut
        FROM brokerage_jobinput WHERE job_id = j.id AND status = 'live' AND tracked
    ) AS u WHERE j.id = ANY($1)
    """,
)
_USES = Prepared(
    "end_uses",
    "bigint[], text[]",
    """
    UPDATE brokerage_jobinput i SET status = v.status FROM unnest($1, $2) AS v(job_id, status)
    WHERE i.job_id = v.job_id AND i.status = 'live'
    """,
)


class EndingJob(NamedTuple):
    """A job as it was read; `holder`: the pilot that holds it, `host`: where that runs.

    `queue`: empty of an open job; `storage`: where its outputs go, and the bytes that are there at most. `inputs`: its live
    tracked files, whole ones; `cut`: those of which it has event ranges. `made`: when the job was made; `now`: when it was read.
    `token_since`: when the job token that counts was issued. `commanded`: its task has a command that may wait for the job.
    `kind`: a JobKind. `kill_why`: what its end says where its pilot was asked to kill it.
    """

    id: int
    epoch: int
    status: str
    ended: bool
    kill_requested: bool
    kill_outcome: str
    kill_why: str
    holder: str | None
    host: str
    queue: str
    vo: str
    storage: str
    space: int | None
    inputs: Sequence[int]
    cut: Sequence[int]
    outputs: Sequence[ExpectedOutput]
    made: datetime
    now: datetime
    token_since: datetime | None
    commanded: bool
    kind: int = JobKind.NORMAL

    @property
    def merges(self) -> bool:
        """Whether it merges files that other jobs of its task made, which are its inputs."""
        return self.kind == JobKind.MERGE

    @property
    def tells(self) -> bool:
        """Whether its payload is to tell what it found."""
        return self.kind == JobKind.PREPROCESS

    @property
    def told(self) -> bool:
        """Whether its pilot has said its last word, and that was taken."""
        return self.ended or self.status in JOB.settled

    @property
    def own_inputs(self) -> Sequence[int]:
        """Its live tracked whole files that are inputs of the task."""
        return () if self.merges else self.inputs

    @property
    def delivers(self) -> bool:
        """Whether its outputs are on their way; its pilot has said its last word."""
        return self.status == "transferring"


def read_jobs(ids: Sequence[int]) -> list[EndingJob]:
    """The jobs with these ids, as they are now."""
    jobs = [EndingJob(*row) for row in _SEE.run(list(ids))]
    return [job._replace(outputs=[ExpectedOutput(*output) for output in job.outputs]) for job in jobs]


def job_outcome(
    job: EndingJob, outcome: Outcome, made: Mapping[int, ReportedOutput], holds: Mapping[int, Hold], *, unreadable: bool = False
) -> JobOutcome:
    """The end of a job as its files see it."""
    outputs = {o.file_id: made[o.file_id] for o in job.outputs if o.file_id in made}
    return JobOutcome(
        job.id,
        outcome,
        job.own_inputs,
        [o.file_id for o in job.outputs],
        {file_id: MadeFile(o.size, o.checksum, o.n_events) for file_id, o in outputs.items()},
        holds,
        frozenset(o.file_id for o in job.outputs if o.optional),
        job.cut,
        retry_pause(job.vo),
        unreadable,
        job.delivers,
    )


def uses(ends: Sequence[tuple[EndingJob, Outcome]]) -> Call:
    """The jobs have used their inputs, or give them back."""
    statuses = ["used" if outcome == "finished" else "returned" for _, outcome in ends]
    return _USES.with_values([job.id for job, _ in ends], statuses)


def retry_pause(vo: str) -> RetryPause:
    """How long files wait after a try that failed."""
    return RetryPause(*(gdpconfig.value("jobbroker", name, vo=vo) for name in ("RETRY_PAUSE", "RETRY_PAUSE_MAX")))
