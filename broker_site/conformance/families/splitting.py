"""Families about cutting input into jobs."""

from __future__ import annotations

from broker_site.conformance.registry import Answer, Given, family
from workqueues.rules.job_size import GB, size_budgets
from workqueues.rules.split_rule import SplitRules
from workqueues.splitters.by_files import by_files
from workqueues.splitters.protocol import Files, JobLimits


@family("size_splitting", given="sizes_gb n_gb_per_job out_ratio work_gb", expect="jobs")
def size_splitting(given: Given) -> Answer:
    """The sizes of the files of each job."""
    sizes = given["sizes_gb"]
    budgets = size_budgets(given["n_gb_per_job"], given["out_ratio"], 0.0, given["work_gb"])
    files = Files(range(len(sizes)), [round(gb * GB) for gb in sizes])
    return {"jobs": [sizes[job.start : job.stop] for job in by_files(files, SplitRules(), JobLimits(budgets=tuple(budgets)))]}
