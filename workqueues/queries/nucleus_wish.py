"""Whether there is the nucleus that a task wishes for; who knows the grid is above this app (`check_nucleus_with`)."""

from __future__ import annotations

from collections.abc import Callable

from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import problem

NucleusCheck = Callable[[str], str]
_checks: list[NucleusCheck] = []


def check_nucleus_with(check: NucleusCheck) -> None:
    """`check`: a name -> what is wrong with it, empty where nothing is."""
    _checks[:] = [check]


def check_nucleus(name: str) -> list[Problem]:
    """A problem with the rule `exists` where there is no such nucleus: the task would be assigned as if it wished for none."""
    fault = _checks[0](name) if name and _checks else ""
    return [problem("nucleus", "exists", fault)] if fault else []
