"""A generator at work on one task: its hooks are asked here, and what they say is looked at before it is used.

What a hook raises is not caught: the agent that asks sets that one task aside with it, as where a rule of a policy fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workqueues.rules.jobs.job_parameters import JobFill
from workqueues.rules.jobs.job_size import Budget
from workqueues.rules.jobs.split_rule import SplitRules
from workqueues.splitters.check import BadPlan, check_split, storable
from workqueues.splitters.choice import OURS, SPLITTERS, Kind, SplitterDeclaration
from workqueues.splitters.generator import GENERATORS, GeneratorTask, JobGenerator, Standard
from workqueues.splitters.protocol import Files, JobLimits, Secondary, Split, Splitter


@dataclass(frozen=True, slots=True)
class Generation:
    generator: JobGenerator
    task: GeneratorTask

    @property
    def standard(self) -> bool:
        """Whether it is ours, which looks at nothing but the split rule."""
        return type(self.generator) is Standard

    def splitter(self, dataset_type: str, rules: SplitRules, kind: Kind) -> Splitter:
        """What cuts pieces of this kind; one of another package is checked at each cut. Raises BadPlan."""
        name = self.generator.splitter(self.task, dataset_type, rules)
        if name not in SPLITTERS:
            raise BadPlan(f"{self._label} names the splitter {name!r}; there are: {', '.join(SPLITTERS)}")
        declared = SPLITTERS[name]
        if kind not in declared.kinds and not self.standard:
            raise BadPlan(f"{self._label} names the splitter {name!r}, which cuts {', '.join(declared.kinds)}, not {kind}")
        return declared.cut if name in OURS else _Checked(declared)

    def limits(self, limits: JobLimits) -> JobLimits:
        """What one job may take at a queue. Raises BadPlan."""
        answer: Any = self.generator.limits(self.task, limits)
        if answer is limits:
            return answer
        if not isinstance(answer, JobLimits) or not all(isinstance(each, Budget) for each in answer.budgets):
            raise BadPlan(f"{self._label} gives limits that are no JobLimits")
        if min(answer.max_files, answer.max_inputs) < 1:
            raise BadPlan(f"{self._label} leaves a job no files: {answer.max_files}, with secondary ones {answer.max_inputs}")
        if gone := [each.what for each in limits.budgets if each.hard and each not in answer.budgets]:
            raise BadPlan(f"{self._label} changes the limit of a queue: {', '.join(gone)}")
        return answer

    @property
    def writes_parameters(self) -> bool:
        """Whether it has a say in the parameters of jobs."""
        return type(self.generator).parameters is not JobGenerator.parameters

    def parameters(self, job: JobFill, queue: str, text: str) -> str:
        """The parameters of one job. Raises BadPlan."""
        answer = self.generator.parameters(self.task, job, queue, text)
        if not storable(answer):
            raise BadPlan(f"{self._label} gives job parameters that are no text: {answer!r:.60}")
        return answer

    @property
    def _label(self) -> str:
        return f"the generator {self.generator.name}"


@dataclass(frozen=True, slots=True)
class _Checked:
    """A splitter of another package, whose splits are looked at."""

    declared: SplitterDeclaration

    def __call__(
        self, files: Files, rules: SplitRules, limits: JobLimits, most: int | None = None, secondaries: Sequence[Secondary] = ()
    ) -> Split:
        split = self.declared.cut(files, rules, limits, most, secondaries)
        try:
            check_split(files, limits, most, secondaries, split)
        except BadPlan as bad:
            raise BadPlan(f"the splitter {self.declared.name}: {bad}") from bad
        return split


STANDARD = GENERATORS[Standard.name]
