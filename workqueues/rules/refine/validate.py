"""Reading the document of a task: its parameters, its items, and everything that is wrong with them at once.

Here: the order of the checks. Not here: what needs the catalogue or the parent (`plan`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import problem
from workqueues.rules.jobs.command_length import too_long
from workqueues.rules.jobs.sandbox import source_filled, with_sandbox
from workqueues.rules.refine.characters import check_characters
from workqueues.rules.refine.contradictions import check_together
from workqueues.rules.refine.division import undivided
from workqueues.rules.refine.items import command_line, read_items, with_further_datasets
from workqueues.rules.refine.templates import check_items, output_streams
from workqueues.rules.refine.types import MOST_LISTED, TaskDocument
from workqueues.rules.task_parameters import TaskParameters, read_parameters

COUNTS = frozenset({"nFiles", "nEvents", "nEventsPerJob"})
"""Parameters by which a task without input says how many jobs it has."""


def read_task(params: Mapping[str, object]) -> TaskDocument:
    """What can be read of `params`, and all problems; without problems the task can be accepted.

    `field` of a problem is a path such as `jobParameters[2].dataset`. Rules: required, unknown, type, range, length, choice,
    format, characters, depth, contradiction, template, events, not_supported_yet. Never raises, whatever JSON it is given.
    Source: facts on task parameters 2, decisions F3, F4.
    """
    deep = check_characters(params)
    if any(p.rule in ("depth", "range") for p in deep):  # not even the texts of these values can be made
        return TaskDocument(TaskParameters(), (), tuple(deep))
    params = with_sandbox(params)
    task, problems = read_parameters(params)
    items, faulty = read_items(params)
    items, strange = with_further_datasets(items, params)
    problems += [*faulty, *strange]
    if not params.get("jobParameters") and not any(p.field == "jobParameters" for p in problems):
        problems.append(problem("jobParameters", "required", "the task needs at least one item"))
    if wrong := too_long(source_filled(command_line(items, output_streams(items)), task.sourceURL)):
        problems.append(problem("jobParameters", "length", f"{wrong}: give long lists in a file"))
    together = [*check_together(task), *check_items(items, task)]
    if task.workTo not in (None, "own"):
        together += [problem(field, "contradiction", why) for field, why in undivided(task, items)]
    if any(p.field in COUNTS for p in problems):  # what cannot be read is not missing too
        together = [p for p in together if (p.field, p.rule) != ("nFiles", "required")]
    return TaskDocument(task, items, bounded([*deep, *problems, *together]))


def validate(params: Mapping[str, object]) -> list[Problem]:
    """All problems of `params`; empty if the task can be accepted."""
    return list(read_task(params).problems)


def bounded(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Each problem once, and no more than an answer should hold; what was left out comes last."""
    listed = sorted(dict.fromkeys(problems), key=lambda problem: problem.rule == "more")
    left = len(listed) - MOST_LISTED
    return tuple(listed) if left <= 0 else (*listed[:MOST_LISTED], problem("", "more", f"at least {left} problems more"))
