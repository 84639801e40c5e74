"""The tests of the plugin: GridBroker's suites for policies and splitters, and what its own rules say at their limits."""

from __future__ import annotations

import pytest

from broker_site.plugin_api import Config
from broker_site.plugin_api.suites import DISPATCH_POLICY_CHECKS, POLICY_CHECKS, SPLITTER_CHECKS
from brokerage.plugin_api import Ask, Queues, decide, gathered, skips
from gridbroker_lab.dispatch import LabOldest
from gridbroker_lab.policy import LabProduction
from gridbroker_lab.runs import LabJobs, lab_runs
from workqueues.plugin_api import SPLITTERS, Files, GeneratorTask, JobFill, JobLimits, SplitRules

CONFIG = gathered(LabProduction, Config().component)
QUEUES = Queues.from_rows(
    [
        {"name": "BUSY", "pledgedcpu": 100, "running_cores": 64},
        {"name": "QUIET", "pledgedcpu": 100, "running_cores": 63},
        {"name": "GUEST", "pledgedcpu": 0, "running_cores": 0},
    ]
)


@pytest.mark.parametrize("check", POLICY_CHECKS)
def test_the_policy_conforms(check: str) -> None:
    POLICY_CHECKS[check](LabProduction, 200)


@pytest.mark.parametrize("check", DISPATCH_POLICY_CHECKS)
def test_the_dispatch_policy_conforms(check: str) -> None:
    DISPATCH_POLICY_CHECKS[check](LabOldest(), 200)


def test_interactive_work_goes_where_few_cores_are_busy() -> None:
    ask = Ask(vo="lab", processing_type="interactive")
    decision = decide(LabProduction, ask, QUEUES, CONFIG, "1")
    told = skips(decision, LabProduction, ask, QUEUES, CONFIG)
    assert [choice.name for choice in decision.chosen] == ["QUIET"]
    assert told["BUSY"].reason == "64 of its cores are busy, fewer than 64 are wanted for interactive work"
    assert told["GUEST"].reason == "cannot be computed: pledgedcpu is 0"


def test_other_work_goes_where_most_power_is_idle() -> None:
    decision = decide(LabProduction, Ask(vo="lab"), QUEUES, CONFIG, "1")
    assert [(choice.name, round(choice.weight, 6)) for choice in decision.chosen] == [("QUIET", 3.7), ("BUSY", 3.6)]


@pytest.mark.parametrize("check", SPLITTER_CHECKS)
def test_the_splitter_conforms(check: str) -> None:
    SPLITTER_CHECKS[check](SPLITTERS["lab_runs"], 200)


def test_a_job_has_the_files_of_one_run_and_the_last_run_waits_while_it_may_grow() -> None:
    files = Files(range(5), names=["lab.run1.left", "lab.run1.right", "lab.run2.left", "lab.run2.right", "lab.run3.left"])
    assert [(job.start, job.stop) for job in lab_runs(files, SplitRules(), JobLimits())] == [(0, 2), (2, 4), (4, 5)]
    growing = lab_runs(Files(files.ids, complete=False, names=files.names), SplitRules(), JobLimits())
    assert [(job.start, job.stop) for job in growing] == [(0, 2), (2, 4)]
    assert (growing.left, growing.reason[:33]) == (1, "the last files wait for more: a j")


def test_the_generator_leaves_other_tasks_to_ours() -> None:
    jobs, task = LabJobs(), GeneratorTask(1)
    names = [
        jobs.splitter(task, "input", rules) for rules in (SplitRules(), SplitRules(boundary=2), SplitRules(events_per_job=5))
    ]
    assert names == ["lab_runs", "by_files", "by_events"]
    assert jobs.splitter(task, "pseudo_input", SplitRules()) == "pseudo"
    assert (
        jobs.parameters(task, JobFill(1, streams={"IN": ["lab.run12.left", "lab.run12.right"]}), "ALPHA", "-x") == "-x --run 12"
    )
    assert jobs.parameters(task, JobFill(1, streams={"IN": ["lab.timing"]}), "ALPHA", "-x") == "-x"
