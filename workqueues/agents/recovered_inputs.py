"""The inputs of a task that makes lost files again: those of the jobs that made them, with one boundary for each job."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from workqueues.queries.lost_outputs import Content
from workqueues.rules.jobs.feeding import NewFile
from workqueues.rules.refine import DatasetPlan
from workqueues.rules.refine.input_files import CannotFeed

Files = Sequence[NewFile]


def recovered_files(contents: Sequence[Content], catalogued: Mapping[str, Files]) -> dict[str, Files]:
    """The files of the catalogue by dataset; of a dataset that jobs had files of for themselves, only these. Raises CannotFeed
    where one is gone.
    """
    files: dict[str, Files] = dict(catalogued)
    for name in {c.dataset_name for c in contents if c.type == "input"}:
        had: dict[str, list[Content]] = defaultdict(list)
        for content in contents:
            if content.dataset_name == name:
                had[content.file.lfn].append(content)
        there = [f for f in catalogued.get(name, ()) if f.lfn in had]
        if gone := sorted(had.keys() - {f.lfn for f in there}):
            raise CannotFeed(f"{gone[0]} of {name}, of which a lost file was made, is gone too")
        files[name] = [_as_before(f, had[f.lfn]) for f in there]
    return files


def _as_before(file: NewFile, had: Sequence[Content]) -> NewFile:
    """A file of the catalogue with the events that jobs had of it, under their numbers: all together, where these had parts."""
    n_events = [content.file.n_events for content in had]
    return file._replace(
        boundary_id=min(content.job_id for content in had),
        n_events=None if None in n_events else sum(n or 0 for n in n_events),
        first_event=had[0].file.first_event,
    )


def recovered_records(contents: Sequence[Content], p: DatasetPlan) -> list[NewFile]:
    """The numbered records or seeds that the jobs had of a dataset."""
    return [c.file for c in contents if (c.dataset_name, c.type) == (p.name, p.type)]
