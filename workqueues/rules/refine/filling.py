"""What the result of a preprocessing step does to the parameters of its task: equal texts are replaced, at any depth (row J26).

Source: facts on workflows 7.7 and on task parameters 2.2 (its job returns {placeholder: value}). Not here: whether the parameters
are right then, which is asked as at a submission.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import problem
from workqueues.rules.refine.changes import ParameterChange

SPEC = "preproSpec"
FIXED = (
    "taskName", "userName", "vo", "prodSourceLabel", "taskType", "taskPriority", "currentPriority", "workingGroup",
    "uniqueTaskName", "parentTaskName", "maxAttempt", "maxWalltime",
)  # fmt: skip
"""What a submission needs rights for, what was looked at then only, and what holds before the step is over: it fills in none."""
MOST_BYTES = 1_000_000
"""So much all values together may be, as JSON, each as often as it stands for something."""
MOST_TOLD = 20
"""Places that are told of."""


class Filled(NamedTuple):
    """The parameters with the values; `changes`: where (the first), `n` in how many places. `unused`: names that no value had.

    `problems`: then the task cannot go on.
    """

    params: Mapping[str, Any]
    changes: tuple[ParameterChange, ...] = ()
    n: int = 0
    unused: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    def sentence(self) -> str:
        """What was filled in, for the history."""
        told = ", ".join(change.sentence() for change in self.changes[:MOST_TOLD])
        more = f" and {self.n - MOST_TOLD} more" if self.n > MOST_TOLD else ""
        unused = f"no parameter is {', '.join(self.unused[:MOST_TOLD])}" if self.unused else ""
        return "; ".join(filter(None, [f"filled in: {told}{more}" if told else "nothing to fill in", unused]))


def fill(params: Mapping[str, Any], values: Mapping[str, Any]) -> Filled:
    """Put each value in the place of every parameter, or part of one, that is a text equal to its name.

    Names of parameters and keys stay, and so does preproSpec itself; what is put in is not looked at again.
    """
    filler = _Filler(values)
    after = {name: value if name == SPEC else filler.filled(name, value) for name, value in params.items()}
    problems = [
        problem(name, "unchangeable", "the preprocessing step may not fill it in")
        for name in FIXED
        if after.get(name) != params.get(name)
    ]
    if filler.n_bytes > MOST_BYTES:
        problems.append(problem("", "length", f"what the preprocessing step fills in has more than {MOST_BYTES} bytes together"))
    unused = tuple(name for name in values if name not in filler.used)
    return Filled(after, tuple(filler.changes), filler.n, unused, tuple(problems))


@dataclass
class _Filler:
    values: Mapping[str, Any]
    changes: list[ParameterChange] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    n: int = 0
    n_bytes: int = 0
    _sizes: dict[str, int] = field(default_factory=dict)

    def filled(self, path: str, value: Any) -> Any:
        """The value of a parameter, or a part of one, as it is then."""
        if isinstance(value, str):
            return self._put(path, value) if value in self.values and self.n_bytes <= MOST_BYTES else value
        if isinstance(value, Mapping):
            return {key: self.filled(f"{path}.{key}", inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.filled(f"{path}[{i}]", inner) for i, inner in enumerate(value)]
        return value

    def _put(self, path: str, name: str) -> Any:
        if name not in self._sizes:
            self._sizes[name] = len(json.dumps(self.values[name]))
        self.n_bytes += self._sizes[name]
        self.n += 1
        self.used.add(name)
        if len(self.changes) < MOST_TOLD:
            self.changes.append(ParameterChange(path[:100], name, self.values[name]))
        return self.values[name]
