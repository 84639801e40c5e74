"""Everything that is wrong with the parameters of a task, at once.

Here: the order of the checks, and known, missing and mistyped parameters. Not here: what needs the catalogue or the parent
(`plan`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from broker_site.foundation.kernel.registry import nearest
from broker_site.foundation.kernel.verdict import Problem
from workqueues.rules.refine.characters import check_characters
from workqueues.rules.refine.contradictions import check_together
from workqueues.rules.refine.items import read_items
from workqueues.rules.refine.templates import check_items
from workqueues.rules.task_parameters import TASK_PARAMETERS, find, problem, read

_MOST = 500
"""Problems that one answer lists."""
_HINTS = 50
"""Unknown names for which the nearest known one is looked up: the search is not free, and more are noise."""


def validate(params: Mapping[str, object]) -> list[Problem]:
    """All problems of `params`, in the order of the parameters; empty if the task can be accepted.

    `field` is a path such as `jobParameters[2].dataset`. Rules: required, unknown, type, range, length, choice, format,
    characters, depth, contradiction, template, not_supported_yet. Never raises, whatever JSON it is given. Source: facts on
    task parameters 2, decisions F3, F4.
    """
    values, problems = read_values(params)
    deep = check_characters(params)
    if any(p.rule in ("depth", "range") for p in deep):
        return deep + problems  # not even the texts of these values can be made: no rule may touch them
    items, wrong = read_items(params)
    problems += wrong
    if not params.get("jobParameters") and not any(p.field == "jobParameters" for p in problems):
        problems.append(problem("jobParameters", "required", "the task needs at least one item"))
    problems += check_together(values)
    problems += check_items(items, values)
    return _bounded(deep + list(dict.fromkeys(problems)))


def _bounded(problems: list[Problem]) -> list[Problem]:
    left = len(problems) - _MOST
    return problems if left <= 0 else [*problems[:_MOST], problem("", "more", f"and {left} problems more")]


def read_values(params: Mapping[str, object]) -> tuple[dict[str, Any], list[Problem]]:
    """The well-typed parameters by name (null left out), and the problems of the others."""
    values: dict[str, Any] = {}
    problems = []
    hints = 0
    for name, raw in params.items():
        known = find(name)
        if known is None:
            hints += 1
            near = nearest(name, TASK_PARAMETERS) if hints <= _HINTS else ""
            hint = f"; the nearest known one is {near}" if near else ""
            problems.append(problem(name[:100], "unknown", f"unknown parameter{hint}"))
            continue
        value, rule, message = read(known, raw)
        if rule:
            problems.append(problem(name, rule, message))
        elif value is not None:
            values[name] = value
        if not known.supported and known.asks(raw):
            problems.append(problem(name, "not_supported_yet", f"{known.doc} Not supported yet (row {known.row})"))
    for name, known in TASK_PARAMETERS.items():
        if known.required and params.get(name) is None:
            problems.append(problem(name, "required", f"must be given: {known.doc}"))
    return values, problems
