"""Families about cutting input into jobs."""

from __future__ import annotations

from collections.abc import Sequence

from broker_site.roof.conformance.registry import Answer, Given, family
from workqueues.rules.jobs.feeding import NewFile, with_events
from workqueues.rules.jobs.job_size import GB, size_budgets
from workqueues.rules.jobs.split_rule import SplitRules
from workqueues.splitters.by_events import by_events
from workqueues.splitters.by_files import by_files
from workqueues.splitters.protocol import Files, JobLimits, JobPlan
from workqueues.splitters.secondaries import scaled


@family("event_splitting", given="files n_per_job", expect="jobs")
def event_splitting(given: Given) -> Answer:
    """The first and last event of each file that a job has."""
    fed = with_events([NewFile(name, n_events=n) for name, n in given["files"]])
    names, counts = [f.lfn for f in fed], [f.n_events or 0 for f in fed]
    files = Files(range(len(names)), n_events=counts, firsts=[0] * len(names), totals=counts)
    split = by_events(files, SplitRules(events_per_job=given["n_per_job"]), JobLimits(len(names) or 1, len(names) or 1))
    return {"jobs": [_ranges(job, names, counts) for job in split]}


def _ranges(job: JobPlan, names: Sequence[str], counts: Sequence[int]) -> list[list[str | int]]:
    found: list[list[str | int]] = [[names[i], 0, counts[i] - 1] for i in range(job.start, job.stop)]
    found[0][1] = job.skip
    if job.upto:
        found[-1][2] = job.upto - 1
    return found


@family("secondary_dataset", given="n_master ratio", expect="n_secondary")
def secondary_dataset(given: Given) -> Answer:
    """How many files of a secondary dataset go with so many of the master."""
    return {"n_secondary": scaled(given["ratio"], given["n_master"])}


@family("size_splitting", given="sizes_gb n_gb_per_job out_ratio work_gb", expect="jobs")
def size_splitting(given: Given) -> Answer:
    """The sizes of the files of each job."""
    sizes = given["sizes_gb"]
    budgets = size_budgets(given["n_gb_per_job"], given["out_ratio"], 0.0, given["work_gb"])
    files = Files(range(len(sizes)), [round(gb * GB) for gb in sizes])
    return {"jobs": [sizes[job.start : job.stop] for job in by_files(files, SplitRules(), JobLimits(budgets=tuple(budgets)))]}
