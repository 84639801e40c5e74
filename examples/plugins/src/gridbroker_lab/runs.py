"""How the jobs of the lab are made: all files of one run in one job, which is told the run.

A file is of the run whose number stands in its name: `lab.run000123.left.dat` is of run 123.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from workqueues.plugin_api import (
    Files,
    GeneratorTask,
    JobFill,
    JobGenerator,
    JobLimits,
    Secondary,
    Split,
    SplitRules,
    by_files,
    generator,
    splitter,
)

RUN = re.compile(r"run(\d+)")


def run_of(name: str) -> int | None:
    """The run of a file by its name; None where the name has none."""
    found = RUN.search(name)
    return int(found[1]) if found else None


@splitter("lab_runs")
def lab_runs(
    files: Files, rules: SplitRules, limits: JobLimits, most: int | None = None, secondaries: Sequence[Secondary] = ()
) -> Split:
    """One job a run, with all its files, which stand together in the dataset; a file without a run has a job of its own.

    A run is to GridBroker's own splitter what a boundary is that must not be split (groupBoundaryID 4): the limits of queues, and
    waiting for the rest of a run that is still being written, come with it.
    """
    by_run = replace(files, boundaries=[run_of(name) for name in files.names])
    unbound = [replace(each, files=replace(each.files, boundaries=())) for each in secondaries]
    return by_files(by_run, replace(rules, boundary=4), limits, most, unbound)


@generator(vo="lab", activity="production")
class LabJobs(JobGenerator):
    """Jobs on files have one run each, and its number as a parameter; all other jobs are GridBroker's."""

    def splitter(self, task: GeneratorTask, dataset_type: str, rules: SplitRules) -> str:
        """By runs, unless the task itself says how its files belong together or cuts their events."""
        usual = super().splitter(task, dataset_type, rules)
        return "lab_runs" if usual == "by_files" and not rules.boundary else usual

    def parameters(self, task: GeneratorTask, job: JobFill, queue: str, text: str) -> str:
        """`--run 123` for a job on the files of that run."""
        runs = {run_of(name) for name in job.streams.get("IN", ())} - {None}
        return f"{text} --run {runs.pop()}" if len(runs) == 1 else text
