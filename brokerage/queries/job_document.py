"""What a pilot needs to know of the job it got: parameters, inputs with their sources, outputs with their places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from broker_site.foundation import gdpconfig
from broker_site.foundation.sql.prepared import Call, Prepared, Rows
from brokerage.queries.signed_places import Endpoint, Holder, output_place, source_place, stream_place
from brokerage.rules.facts.job_kind import METADATA_FILE, JobKind
from workqueues.queries.read_grants import INPUT_IN_CATALOGUE
from workqueues.rules.jobs.dataset_attributes import read_attributes
from workqueues.rules.jobs.job_parameters import compiled, compiled_name
from workqueues.rules.jobs.log_streams import STREAMS, stream_file
from workqueues.states import LOG_TYPES, PREMERGED_TYPES

_COLUMNS = f"""
    SELECT j.id, j.epoch, j.task_id, j.attempt_nr, q.name, s.transformation, s.job_parameters, j.core_count, s.ram_mb, s.disk_mb,
        coalesce(nullif(s.walltime_s, 0), q.maxtime), j.storage,
        (SELECT json_build_array(name, path, mark, url, key_number) FROM brokerage_storageendpoint WHERE name = j.storage),
        (SELECT container_name FROM workqueues_task WHERE id = j.task_id),
        ARRAY(SELECT json_build_array(
                d.id, d.lfn, d.fsize, d.checksum, d.dataset_name, d.attributes, place.file,
                place.name, place.path, place.mark, place.url, place.key_number)
            FROM brokerage_jobinput i
            CROSS JOIN LATERAL (
                SELECT f.id, f.lfn, f.fsize, f.checksum, d.dataset_name, d.attributes, d.vo, d.data_vo
                FROM workqueues_file f JOIN workqueues_dataset d ON d.id = f.dataset_id
                WHERE f.id = i.file_id AND f.type IN ('input', {PREMERGED_TYPES.sql}) OFFSET 0) AS d
            LEFT JOIN LATERAL (SELECT c.id FROM workqueues_cataloguedataset c WHERE {INPUT_IN_CATALOGUE} OFFSET 0) AS c ON TRUE
            LEFT JOIN LATERAL (
                SELECT id FROM workqueues_cataloguefile WHERE dataset_id = c.id AND lfn = d.lfn OFFSET 0) AS t ON TRUE
            LEFT JOIN LATERAL (
                SELECT e.name, e.path, e.mark, e.url, e.key_number, r.path AS file, e.site_id <> q.site_id AS away
                FROM workqueues_replica r JOIN brokerage_storageendpoint e ON e.name = r.storage
                WHERE r.file_id = t.id AND r.state = 'available' AND (e.path <> '' OR e.url <> '')
                    AND (e.site_id = q.site_id
                        OR EXISTS (SELECT FROM brokerage_queuestorage u
                            WHERE u.queue_id = q.id AND u.storage_id = e.name AND u.access LIKE 'read%')
                        OR (s.reads_wan AND e.state = 'ACTIVE' AND e.root_state <> 'down'
                            AND coalesce(e.status ->> 'read_wan', 'ON') NOT IN ('OFF', 'TEST')))
                OFFSET 0) AS place ON TRUE
            WHERE i.job_id = j.id ORDER BY d.id, place.away, place.name),
        ARRAY(SELECT json_build_array(f.lfn, c.folder, CASE WHEN f.type IN ({LOG_TYPES.sql}) THEN 'log' ELSE 'output' END,
                f.optional, coalesce(d.template_id, d.id))
            FROM workqueues_file f JOIN workqueues_dataset d ON d.id = f.dataset_id
            LEFT JOIN workqueues_cataloguedataset c ON c.name = d.dataset_name AND c.vo = d.vo
            WHERE f.out_job_id = j.id ORDER BY f.id),
        ARRAY(SELECT json_build_array(t.dataset_id, t.filename_template, t.source_name)
            FROM workqueues_outputtemplate t WHERE t.task_id = j.task_id AND t.source_name <> '' ORDER BY t.id),
        s.job_values::json,
        CASE WHEN s.job_values IS NOT NULL
            THEN (SELECT job_params_template FROM workqueues_jobparamstemplate WHERE task_id = j.task_id) END,
        j.kind
    FROM brokerage_job j JOIN brokerage_jobspec s ON s.job_id = j.id
        JOIN brokerage_computingqueue q ON q.id = j.computing_queue_id
"""
"""Inputs with their copies on storage of the job's own site, and that its queue reads (where the job reads over the network: on
any that lets others read), those of the own site first; one row for an input without any. Outputs with the folders of their
datasets.

OFFSET 0 keeps the order of joins, from the pilot to its job, its files and their replicas: a plan made while tables were small
would else read all of one and throw most away.
"""
_JOB = Prepared("job_document", "bigint", f"{_COLUMNS} WHERE j.id = $1")
_LEASED = f"""
    SELECT document.*, l.epoch, l.lease_s, extract(epoch FROM l.token_since)::bigint, l.task_queue_id, l.is_new, ask.number
    FROM {{asks}} AS ask(pilot, request, number)
        CROSS JOIN LATERAL (
            SELECT id, epoch, lease_s, token_since, task_queue_id, status_since = now() AS is_new FROM brokerage_job
            WHERE lease_holder = ask.pilot AND lease_request = ask.request
                AND (status = 'sent' OR status = 'starting' AND lease_holder = lease_request) OFFSET 0) AS l
        CROSS JOIN LATERAL ({_COLUMNS} WHERE j.id = l.id OFFSET 0) AS document
    ORDER BY document.id
"""
_OF_ASK = Prepared("job_documents_of_ask", "uuid, uuid", _LEASED.format(asks="(VALUES ($1, $2, 1))"))
_OF_ASKS = Prepared(
    "job_documents_of_asks",
    "text[], text[]",
    _LEASED.format(asks="unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY"),
)


class LeasedJob(NamedTuple):
    """A job as the pilot that holds it is told of it, with its lease: epoch, seconds, and when its token was issued.

    `task_queue`: where it waited; None: it is gone. `is_new`: it was leased in the transaction that read it, not by the same
    request before.
    """

    document: dict[str, Any]
    epoch: int
    lease_s: float
    issued: int
    task_queue: int | None
    is_new: bool = True


class _JobRow(NamedTuple):
    id: int
    epoch: int
    task_id: int
    attempt_nr: int
    queue: str
    transformation: str
    parameters: str
    cores: int
    memory_mb: int
    disk_mb: int
    walltime_s: int
    storage: str
    place: Sequence[Any] | None
    container: str | None
    replicas: Sequence[Sequence[Any]]
    outputs: Sequence[Sequence[Any]]
    sources: Sequence[Sequence[Any]]
    values: Sequence[str] | None
    template: str | None
    kind: int


@dataclass(frozen=True, slots=True)
class Untold:
    """An ask that cannot be told its jobs. `used`: it may have got some now, not by the same request before."""

    fault: Exception
    used: bool


def job_document(job_id: int) -> dict[str, Any]:
    """The job as the pilot's wire format has it, without lease and token."""
    return _document(_JobRow(*_JOB.run(job_id)[0]))


def jobs_of_asks(asks: Sequence[tuple[UUID, UUID]]) -> Call:
    """To read the jobs that these asks (pilot, request) got and that are still only sent, for `leased_jobs`."""
    if len(asks) == 1:
        return _OF_ASK.with_values(*asks[0])
    return _OF_ASKS.with_values([str(pilot) for pilot, _ in asks], [str(request) for _, request in asks])


def leased_jobs(rows: Rows, asks: int) -> list[list[LeasedJob] | Untold]:
    """The rows of `jobs_of_asks` with so many asks: the jobs of each. One whose document cannot be made stops no other ask."""
    jobs: list[list[LeasedJob]] = [[] for _ in range(asks)]
    untold: dict[int, Exception] = {}
    fresh = set()
    for *columns, epoch, lease_s, issued, task_queue, is_new, number in rows:
        if is_new:
            fresh.add(number)
        try:
            jobs[number - 1].append(LeasedJob(_document(_JobRow(*columns)), epoch, lease_s, issued, task_queue, is_new))
        except Exception as fault:  # noqa: BLE001 - whatever it is, it is that of this job
            untold[number] = fault
    return [Untold(untold[n], n in fresh) if n in untold else some for n, some in enumerate(jobs, 1)]


def _document(job: _JobRow) -> dict[str, Any]:
    if job.storage and job.place is None:
        raise LookupError(f"the storage endpoint {job.storage} of job {job.id} is gone")
    if homeless := [lfn for lfn, folder, *_ in job.outputs if folder is None]:
        raise LookupError(f"the dataset of output {homeless[0]} of job {job.id} is not in the catalogue")
    place, holder = Endpoint(*(job.place or ("", "", "", "", 1))), Holder(job.id, job.epoch, job.walltime_s, job.disk_mb)
    return {
        "id": job.id,
        "task_id": job.task_id,
        "attempt_nr": job.attempt_nr,
        "queue": job.queue,
        "transformation": job.transformation,
        "parameters": job.parameters if job.template is None else compiled(job.template).line(job.values or ()),
        "container": job.container or None,
        "cores": job.cores,
        "memory_mb": job.memory_mb,
        "disk_mb": job.disk_mb,
        "walltime_s": job.walltime_s,
        "metadata_file": METADATA_FILE if job.kind == JobKind.PREPROCESS else None,
        "log_max": gdpconfig.value("storage", "LOG_MAX"),
        "inputs": _inputs(job.replicas, holder),
        "outputs": [
            {
                "lfn": lfn,
                **output_place(place, f"{folder}/{lfn}", holder),
                "type": type_,
                "optional": optional,
                "source_name": _source_name(job.sources, dataset_id, lfn),
                **({"streams": _streams(place, folder, lfn, holder)} if type_ == "log" else {}),
            }
            for lfn, folder, type_, optional, dataset_id in job.outputs
        ],
    }


def _streams(place: Endpoint, folder: str, log: str, holder: Holder) -> list[dict[str, Any]]:
    """Where the pilot puts what a log is made of, as plain files beside it."""
    files = [(stream, stream_file(log, stream)) for stream in STREAMS]
    return [{"stream": stream, "lfn": lfn, **stream_place(place, f"{folder}/{lfn}", holder)} for stream, lfn in files]


def _source_name(sources: Sequence[Sequence[Any]], dataset_id: int, lfn: str) -> str | None:
    """What the payload calls the file, where the template that named it says so (SOURCENAME of seed 001); None: the same."""
    return next((name for of, template, name in sources if of == dataset_id and compiled_name(template).may_be(lfn)), None)


def _inputs(replicas: Sequence[Sequence[Any]], holder: Holder) -> list[dict[str, Any]]:
    """What a pilot fetches. What every queue has by itself, and no endpoint of the site, the payload finds by its name."""
    by_file: dict[int, dict[str, Any]] = {}
    for file_id, lfn, size, checksum, dataset, attributes, path, *endpoint in replicas:
        if endpoint[0] is None and read_attributes(attributes).everywhere:
            continue
        entry = by_file.setdefault(file_id, {"lfn": lfn, "size": size, "checksum": checksum, "dataset": dataset, "sources": []})
        if endpoint[0] is not None:
            entry["sources"].append(source_place(Endpoint(*endpoint), path or lfn, holder))
    return list(by_file.values())
