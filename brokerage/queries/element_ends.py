"""What became of the files of pulled elements, and what was made of them and where it is: facts for their parent (row X5).

A fixed number of statements for all tasks of a report, and one more for each step by which jobs hang together; an element has a
thousand files at most.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from django.db import connection

from broker_site.foundation.kernel.machine import Names
from workqueues.rules.elements.ends import EndedFile, Made, MadeFile
from workqueues.rules.elements.messages import OutputTold
from workqueues.states import INPUT_FILE, MASTER_TYPES, OUTPUT_TYPES, PREMERGED_TYPES

_DUE = f"""
SELECT f.id FROM workqueues_file f WHERE f.task_id = ANY (%(tasks)s) AND f.report_due
    AND f.status IN ({Names(sorted(INPUT_FILE.final)).sql})
UNION
SELECT f.id FROM workqueues_file f WHERE f.task_id = ANY (%(ended)s) AND f.type IN ({MASTER_TYPES.sql}) AND f.report_due
ORDER BY 1 LIMIT %(most)s
"""
_USES = "SELECT file_id, job_id FROM brokerage_jobinput WHERE file_id = ANY (%(files)s) AND status = 'used' ORDER BY 1, 2"
_MERGES = f"""
SELECT f.out_job_id, i.job_id FROM workqueues_file f JOIN brokerage_jobinput i ON i.file_id = f.id AND i.status = 'used'
WHERE f.out_job_id = ANY (%(jobs)s) AND f.type IN ({PREMERGED_TYPES.sql}) GROUP BY 1, 2 ORDER BY 1, 2
"""
_MERGED = f"""
SELECT f.out_job_id, i.job_id FROM brokerage_jobinput i JOIN workqueues_file f ON f.id = i.file_id
WHERE i.job_id = ANY (%(jobs)s) AND i.status = 'used' AND f.type IN ({PREMERGED_TYPES.sql}) AND f.out_job_id IS NOT NULL
GROUP BY 1, 2 ORDER BY 1, 2
"""
_BESIDE = f"""
SELECT DISTINCT i.file_id FROM brokerage_jobinput i JOIN workqueues_dataset d ON d.id = i.dataset_id
WHERE i.job_id = ANY (%(jobs)s) AND i.status = 'used' AND d.type IN ({MASTER_TYPES.sql}) AND d.master_id IS NULL ORDER BY 1
"""
_FILES = """
SELECT f.id, f.task_id, f.lfn, f.status, concat_ws(': ', nullif(r.error_code, ''), nullif(r.error_message, ''))
FROM workqueues_file f LEFT JOIN brokerage_jobresult r ON r.job_id = f.job_id AND f.status = 'failed'
WHERE f.id = ANY (%(files)s) ORDER BY f.id
"""
_OUTPUTS = f"""
SELECT f.out_job_id, f.lfn, f.type, d.dataset_name, c.fsize, c.checksum, c.n_events, r.storage, r.path
FROM workqueues_file f JOIN workqueues_dataset d ON d.id = f.dataset_id
    LEFT JOIN workqueues_cataloguedataset e ON e.vo = d.vo AND e.name = d.dataset_name AND f.lost_at IS NULL
    LEFT JOIN workqueues_cataloguefile c ON c.dataset_id = e.id AND c.lfn = f.lfn
    LEFT JOIN LATERAL (
        SELECT storage, path FROM workqueues_replica WHERE file_id = c.id AND state = 'available'
        ORDER BY storage <> d.collected_at, kind <> 'origin', id LIMIT 1) r ON true
WHERE f.out_job_id = ANY (%(jobs)s) AND f.type IN ({OUTPUT_TYPES.sql}) AND f.status = 'finished' AND NOT f.no_output
ORDER BY f.id
"""


def made_of(tasks: Collection[int], ended: Collection[int], most: int) -> dict[int, Made]:
    """What is due to be told of these live and `ended` tasks, by task, with all that hangs together with it; `most` files."""
    due = [id_ for (id_,) in _rows(_DUE, tasks=sorted(tasks), ended=sorted(ended), most=most)]
    if not due:
        return {}
    files, uses, merges = _hanging_together(due)
    rows = _rows(_FILES, files=sorted(files))
    task_of = {id_: task for id_, task, *_ in rows}
    outputs = _by_job(_rows(_OUTPUTS, jobs=sorted(_jobs(uses, merges))))
    made: dict[int, Made] = {}
    for task in sorted(set(task_of.values())):
        mine = [EndedFile(id_, lfn, status, why or "") for id_, of, lfn, status, why in rows if of == task]
        used = {file.id: uses[file.id] for file in mine if file.id in uses}
        tied = _tied({job for jobs in used.values() for job in jobs}, merges)
        jobs = _jobs(used, tied)
        made[task] = Made(mine, used, tied, [output for job in sorted(jobs) for output in outputs.get(job, ())])
    return made


def _hanging_together(due: Iterable[int]) -> tuple[set[int], dict[int, list[int]], dict[int, list[int]]]:
    """Files that jobs join with these, the jobs that used each, and the merge jobs of each job."""
    files, uses, merges = set(due), dict[int, list[int]](), dict[int, list[int]]()
    new, known = set(files), set[int]()
    while new:
        found = _pairs(_rows(_USES, files=sorted(new)))
        uses |= found
        jobs = {job for used in found.values() for job in used} - known
        merging = _pairs(_rows(_MERGES, jobs=sorted(jobs))) if jobs else {}
        all_merges = {merge for of_job in merging.values() for merge in of_job}
        merging |= _pairs(_rows(_MERGED, jobs=sorted(all_merges))) if all_merges else {}
        for job, of_job in merging.items():
            merges[job] = sorted({*merges.get(job, ()), *of_job})
        jobs |= merging.keys() - known
        known |= jobs
        beside = {id_ for (id_,) in _rows(_BESIDE, jobs=sorted(jobs))} if jobs else set()
        new = beside - files
        files |= new
    return files, uses, merges


def _tied(jobs: Collection[int], merges: Mapping[int, list[int]]) -> dict[int, list[int]]:
    return {job: merges[job] for job in sorted(jobs) if job in merges}


def _jobs(uses: Mapping[int, list[int]], merges: Mapping[int, list[int]]) -> set[int]:
    return {job for jobs in uses.values() for job in jobs} | {merge for of_job in merges.values() for merge in of_job}


def _by_job(rows: Iterable[tuple[Any, ...]]) -> dict[int, list[MadeFile]]:
    found: dict[int, list[MadeFile]] = defaultdict(list)
    for job, lfn, kind, dataset, size, checksum, events, storage, path in rows:
        told = None
        if storage is not None:
            good = checksum.removeprefix("ad:").lower()
            told = OutputTold(
                dataset=dataset, lfn=lfn, size=size, checksum=good, n_events=events, storage=storage, path=path or lfn
            )
        found[job].append(MadeFile(job, lfn, kind == "log", told))
    return found


def _pairs(rows: Iterable[tuple[int, int]]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    for one, other in rows:
        found[one].append(other)
    return dict(found)


def _rows(sql: str, **values: Any) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())
