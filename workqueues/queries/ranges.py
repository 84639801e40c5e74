"""The event ranges of files: SQL that counts them, and what is free. The rules: `workqueues.rules.jobs.event_ranges`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from broker_site.foundation.sql.prepared import Call, Prepared, Rows
from workqueues.rules.jobs.event_ranges import Free, InputFile, Piece, Try, free_events, joined_pieces
from workqueues.rules.jobs.recovered_parts import PartOfJob, WantedPart, parts_of_jobs
from workqueues.states import EVENT

IS_LIVE = f"r.status IN ({EVENT.with_job.sql})"
IS_KEPT = f"r.status IN ({EVENT.processed.sql})"
USED_UP = "(coalesce(r.attempt_nr >= f.max_attempt, false) OR coalesce(r.failed_attempt >= f.max_failure, false))"
"""Whether the events of range `r` of file `f` have no tries left (decision D1), its own try being over."""

COUNTS = f"""
    SELECT count(*) FILTER (WHERE {IS_LIVE}) AS live,
        coalesce(sum(r.def_max_event_id - r.def_min_event_id + 1) FILTER (WHERE {IS_KEPT}), 0) AS done,
        f.n_events - coalesce((SELECT sum(upper(span) - lower(span)) FROM unnest(
            range_agg(int4range(r.def_min_event_id, r.def_max_event_id + 1)) FILTER (WHERE {IS_LIVE} OR {IS_KEPT} OR {USED_UP})
        ) AS span), 0) AS free,
        coalesce(max(r.attempt_nr) FILTER (WHERE NOT {IS_LIVE}), 0) AS attempt_nr,
        coalesce(max(r.failed_attempt), 0) AS failed_attempt, max(r.job_id) AS job_id
    FROM workqueues_eventrange r WHERE r.file_id = f.id
"""
"""Of the file `f`, from all its ranges: live ones, processed and free events, tries that are over, failures, the newest job."""

GIVEN_BACK = f"""CASE WHEN f.held = ''
    AND EXISTS (SELECT FROM workqueues_eventrange r WHERE r.file_id = f.id AND {IS_KEPT})
    AND NOT EXISTS (SELECT FROM workqueues_eventrange r WHERE r.file_id = f.id AND {IS_LIVE}) THEN 'partial' ELSE 'ready' END"""
"""The state of the file `f` with free events that no generator holds any more, or that is open again."""


class FileEvents(NamedTuple):
    """A file whose events jobs share. `live`: ranges that jobs have; `done`, `free`: events; `newly`: of `done`, those that came
    with the ends asked about; `attempt_nr`, `failed_attempt`: the largest of its ranges; `job_id`: its newest job.
    """

    file_id: int
    dataset_id: int
    status: str
    held: str
    n_events: int
    newly: int
    live: int
    done: int
    free: int
    attempt_nr: int
    failed_attempt: int
    job_id: int


_FILE_EVENTS = Prepared(
    "standing_of_files",
    "bigint[], bigint[]",
    f"""
    SELECT f.id, f.dataset_id, f.status, f.held, f.n_events,
        (SELECT coalesce(sum(r.def_max_event_id - r.def_min_event_id + 1), 0)::bigint FROM workqueues_eventrange r
            WHERE r.file_id = f.id AND r.job_id = ANY($2) AND {IS_KEPT}),
        c.live, c.done::bigint, c.free::bigint, c.attempt_nr, c.failed_attempt, c.job_id
    FROM workqueues_file f CROSS JOIN LATERAL ({COUNTS}) AS c WHERE f.id = ANY($1)
    """,
)


def file_events(file_ids: Sequence[int], ended: Sequence[int] = ()) -> Call:
    """How the events of the files stand, `newly` being those of the jobs `ended`; to be run, last, with `run_together`."""
    return _FILE_EVENTS.with_values(list(file_ids), list(ended))


def read_file_events(rows: Rows) -> dict[int, FileEvents]:
    """What `file_events` gave, by file id."""
    return {row[0]: FileEvents(*row) for row in rows}


_RANGES = Prepared(
    "ranges_of_files",
    "bigint[], text[]",
    """
    SELECT r.file_id, f.max_attempt, f.max_failure, r.def_min_event_id, r.def_max_event_id + 1, r.attempt_nr, r.failed_attempt,
        r.job_id, r.status = ANY($2)
    FROM workqueues_eventrange r JOIN workqueues_file f ON f.id = r.file_id WHERE r.file_id = ANY($1) ORDER BY r.file_id, r.id
    """,
)


def _tries(files: Sequence[InputFile]) -> tuple[dict[int, list[Try]], dict[int, tuple[int | None, int | None]]]:
    """The ranges of the files, and their limits of tries and failures; those without a range are left out. One statement."""
    tried: dict[int, list[Try]] = defaultdict(list)
    limits: dict[int, tuple[int | None, int | None]] = {}
    for file_id, max_attempt, max_failure, *about in _RANGES.run([f.id for f in files], [*EVENT.with_job, *EVENT.processed]):
        tried[file_id].append(Try(*about))
        limits[file_id] = (max_attempt, max_failure)
    return tried, limits


def parts_made_again(files: Sequence[InputFile], wanted: Mapping[str, Sequence[WantedPart]]) -> list[PartOfJob]:
    """What is free of the events that are wanted of `files`, with the jobs that had them; one statement."""
    tried, limits = _tries(files)
    ends = {f.id: max(part.stop for part in wanted[f.lfn]) for f in files if f.id in tried}
    return parts_of_jobs(files, wanted, {id_: free_events(end, tried[id_], *limits[id_]) for id_, end in ends.items()})


def free_pieces(files: Sequence[InputFile]) -> list[Piece]:
    """The free pieces of `files`, in order of file id and first event; one statement.

    They stay free while the caller holds the claim and the files are picked: the end of other jobs only adds to them.
    """
    tried, limits = _tries(files)
    pieces: list[Piece] = []
    for file in sorted(files, key=lambda f: f.id):
        if not file.n_events:
            pieces.append(Piece(file.id, 0, 0))
        elif file.id not in tried:
            pieces.append(Piece(file.id, 0, file.n_events, (Free(0, file.n_events),)))
        else:
            pieces += joined_pieces(file.id, free_events(file.n_events, tried[file.id], *limits[file.id]))
    return pieces
