"""Generators and splitters of other packages: how they are declared, and what of their answers is refused, in which words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from workqueues.rules.jobs.dataset_attributes import Attributes
from workqueues.rules.jobs.job_parameters import JobFill
from workqueues.rules.jobs.job_size import Budget
from workqueues.rules.jobs.split_rule import SplitRules
from workqueues.splitters.by_files import by_files
from workqueues.splitters.check import BadPlan, check_split
from workqueues.splitters.choice import SPLITTERS, splitter
from workqueues.splitters.generation import STANDARD, Generation
from workqueues.splitters.generator import GENERATORS, GeneratorTask, JobGenerator, generator
from workqueues.splitters.protocol import Files, JobLimits, JobPlan, Portion, Secondary, Split

TASK = GeneratorTask(7, "lab", parameters={"taskName": "t"})
DISK = Budget(1.0, 0.0, 100.0, below=True, hard=True, what="scratch disk")
WISH = Budget(1.0, 0.0, 50.0, what="nGBPerJob")
LIMITS = JobLimits(10, 100, (WISH, DISK))


@pytest.fixture(autouse=True)
def undone() -> Iterator[None]:
    """What a test declares is forgotten after it."""

    class Undone(Exception):
        pass

    with pytest.raises(Undone), SPLITTERS.all_or_nothing(), GENERATORS.all_or_nothing():
        yield
        raise Undone


def using(**hooks: Any) -> Generation:
    """A generator with these hooks at work on a task; its name is lab-odd."""
    generator(vo="lab", activity="odd")(type("Odd", (JobGenerator,), hooks))
    return Generation(GENERATORS["lab-odd"], TASK)


def test_without_hooks_of_its_own_a_generator_makes_jobs_as_ours_does() -> None:
    for each in (Generation(STANDARD, TASK), using()):
        assert each.splitter("input", SplitRules(), "files") is by_files
        assert each.limits(LIMITS) is LIMITS
        assert each.parameters(JobFill(7), "ALPHA", "--in x") == "--in x"
    assert (Generation(STANDARD, TASK).standard, each.standard) == (True, False)


def test_a_hook_is_told_the_task_the_job_and_the_queue() -> None:
    def parameters(_self: Any, task: GeneratorTask, job: JobFill, queue: str, text: str) -> str:
        return f"{text} --of {task.vo}.{task.parameters['taskName']} --at {queue} --seed {job.seed}"

    used = using(parameters=parameters)
    assert used.writes_parameters
    assert used.parameters(JobFill(7, seed=3), "ALPHA", "--in x") == "--in x --of lab.t --at ALPHA --seed 3"


def test_names_are_shared_and_a_hook_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="splitter 'by_files' is declared twice"):
        splitter("by_files")(by_files)
    with pytest.raises(ValueError, match="generator 'standard' is declared twice"):
        generator(vo="*", activity="standard")(type("Other", (JobGenerator,), {}))
    with pytest.raises(TypeError, match="generators have no hook parameter; there are: splitter, limits, parameters"):
        using(parameter=lambda *_: "")


@pytest.mark.parametrize("text", [None, 3, "a\x00b", "\ud800"])
def test_parameters_that_no_job_can_have_are_refused(text: Any) -> None:
    with pytest.raises(BadPlan, match="the generator lab-odd gives job parameters that are no text: "):
        using(parameters=lambda *_: text).parameters(JobFill(7), "ALPHA", "")


def test_limits_may_be_narrower_or_wider_but_keep_what_a_queue_sets() -> None:
    narrow = JobLimits(2, 5, (DISK,))
    assert using(limits=lambda *_: narrow).limits(LIMITS) == narrow


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (JobLimits(budgets=(WISH,)), "changes the limit of a queue: scratch disk"),
        (JobLimits(budgets=(replace(DISK, most=200.0),)), "changes the limit of a queue: scratch disk"),
        (JobLimits(0, 5, (DISK,)), "leaves a job no files: 0, with secondary ones 5"),
        (None, "gives limits that are no JobLimits"),
        (JobLimits(budgets=(DISK, "more")), "gives limits that are no JobLimits"),  # type: ignore[arg-type]
    ],
)
def test_limits_that_cannot_hold_are_refused(said: Any, why: str) -> None:
    with pytest.raises(BadPlan, match=f"the generator lab-odd {why}"):
        using(limits=lambda *_: said).limits(LIMITS)


def test_a_splitter_that_is_not_there_or_cuts_something_else_is_refused() -> None:
    with pytest.raises(BadPlan, match="lab-odd names the splitter 'lab_days'; there are: by_files, by_events, pseudo"):
        using(splitter=lambda *_: "lab_days").splitter("input", SplitRules(), "files")


def test_a_splitter_of_files_is_not_given_events() -> None:
    with pytest.raises(BadPlan, match="names the splitter 'by_files', which cuts files, not events"):
        using(splitter=lambda *_: "by_files").splitter("input", SplitRules(events_per_job=5), "events")


def test_what_a_splitter_of_another_package_gives_is_checked() -> None:
    @splitter("lab_all")
    def everything(files: Files, rules: Any, limits: Any, most: int | None = None, secondaries: Any = ()) -> Split:
        return Split((JobPlan(0, len(files)),))

    cut = using(splitter=lambda *_: "lab_all").splitter("input", SplitRules(), "files")
    assert cut(Files([1, 2]), SplitRules(), JobLimits()).left == 0
    with pytest.raises(BadPlan, match="the splitter lab_all: job 0 says it has 0 bytes; it has 5"):
        cut(Files([1, 2], [2, 3]), SplitRules(), JobLimits())


FOUR = Files([1, 2, 3, 4], [10, 10, 10, 10], [5, 5, 5, 5])
EVENTS = replace(FOUR, firsts=[0, 2, 0, 0], totals=[5, 8, 5, 5])
OTHER = Secondary(Attributes(), Files(range(4), [1] * 4), 1, "minbias")
AGAIN = replace(OTHER, rule=Attributes(repeat=True))


def job(start: int, stop: int, **more: Any) -> JobPlan:
    return JobPlan(start, stop, 5 * (stop - start), 10 * (stop - start))._replace(**more)


@pytest.mark.parametrize(
    ("files", "split", "why"),
    [
        (FOUR, Split((job(0, 2), job(2, 4))), ""),
        (FOUR, Split((job(0, 2),), 2, "they wait"), ""),
        (FOUR, Split((job(0, 5),)), "has the pieces 0 up to 5 of 4"),
        (FOUR, Split((job(0, 2), job(1, 4))), "job 1 begins at piece 1, what came before ends at piece 2"),
        (FOUR, Split((job(0, 2), job(2, 4, size=3))), "job 1 says it has 3 bytes; it has 20"),
        (FOUR, Split((job(0, 2),), 3, "they wait"), "what is left begins at piece 1; it is piece 2"),
        (FOUR, Split((), 4, ""), "leaves 4 pieces without a reason"),
        (EVENTS, Split((job(0, 1, upto=3, n_events=3),), 4, "more later", skip=3), ""),
        (EVENTS, Split((job(0, 1, upto=9, n_events=9),), 3, "more later"), "has no events, or more than there are"),
        (EVENTS, Split((job(0, 1), job(1, 3), job(3, 4))), "job 1 has events that are not neighbours, at the pieces 1 and 2"),
        (EVENTS, Split((job(0, 1, upto=3, n_events=3), job(0, 1, skip=2, n_events=3)), 3, "x"), "begins at piece 0, event 2"),
    ],
)
def test_what_a_split_must_keep(files: Files, split: Split, why: str) -> None:
    if not why:
        check_split(files, JobLimits(), None, (), split)
        return
    with pytest.raises(BadPlan, match=why):
        check_split(files, JobLimits(), None, (), split)


@pytest.mark.parametrize(
    ("given", "portions", "at", "why"),
    [
        (OTHER, [Portion(1, 1), Portion(2, 1)], 3, ""),
        (OTHER, [Portion(1, 2), Portion(2, 1)], 3, "takes a file of minbias twice"),
        (OTHER, [Portion(0, 1), Portion(1, 1)], 2, "takes files of minbias that jobs took before"),
        (OTHER, [Portion(1, 1), Portion(2, 1)], 1, "hands on that they may be taken again"),
        (OTHER, [Portion(1, 1), Portion(3, 2)], 3, "goes round in minbias, which is not repeated"),
        (OTHER, [Portion(1, 1), Portion(2, 9)], 4, "takes .* of the 4 files of minbias"),
        (AGAIN, [Portion(1, 4), Portion(1, 4)], 1, ""),
    ],
)
def test_what_is_dealt_out_of_secondary_datasets(given: Secondary, portions: list[Portion], at: int, why: str) -> None:
    jobs = [job(2 * n, 2 * n + 2, size=20 + portion.n, others=(portion,)) for n, portion in enumerate(portions)]
    split = Split(tuple(jobs), secondaries=(replace(given, at=at),))
    if not why:
        check_split(FOUR, JobLimits(), None, [given], split)
        return
    with pytest.raises(BadPlan, match=why):
        check_split(FOUR, JobLimits(), None, [given], split)


def test_no_job_may_break_what_a_queue_sets() -> None:
    with pytest.raises(BadPlan, match="job 0 takes more scratch disk than there is"):
        check_split(FOUR, JobLimits(budgets=(replace(DISK, most=40.0),)), None, (), Split((job(0, 4),)))
