"""What is free of the files of a task whose events are cut into jobs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from broker_site.foundation.sql.prepared import Prepared
from workqueues.rules.jobs.event_ranges import Free, InputFile, Piece, Try, free_events, joined_pieces
from workqueues.states import EVENT

_RANGES = Prepared(
    "ranges_of_files",
    "bigint[], text[]",
    """
    SELECT r.file_id, f.max_attempt, f.max_failure, r.def_min_event_id, r.def_max_event_id + 1, r.attempt_nr, r.failed_attempt,
        r.job_id, r.status = ANY($2)
    FROM workqueues_eventrange r JOIN workqueues_file f ON f.id = r.file_id WHERE r.file_id = ANY($1) ORDER BY r.file_id, r.id
    """,
)


def free_pieces(files: Sequence[InputFile]) -> list[Piece]:
    """The free pieces of `files`, in order of file id and first event; one statement.

    They stay free while the caller holds the claim and the files are picked: the end of other jobs only adds to them.
    """
    tried: dict[int, list[Try]] = defaultdict(list)
    limits: dict[int, tuple[int | None, int | None]] = {}
    for file_id, max_attempt, max_failure, *about in _RANGES.run([f.id for f in files], [*EVENT.with_job, *EVENT.processed]):
        tried[file_id].append(Try(*about))
        limits[file_id] = (max_attempt, max_failure)
    found: list[Piece] = []
    for file in sorted(files, key=lambda f: f.id):
        if not file.n_events:
            found.append(Piece(file.id, 0, 0))
        elif file.id not in tried:
            found.append(Piece(file.id, 0, file.n_events, (Free(0, file.n_events),)))
        else:
            found += joined_pieces(file.id, free_events(file.n_events, tried[file.id], *limits[file.id]))
    return found
