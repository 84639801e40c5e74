"""How the jobs of one use case are made: a class with a hook for each thing that differs, declared with `@generator`.

Source: seed 001, "Plugins to generate jobs based on various usecases". Here: the hooks, what they are told, and their registry.
Not here: asking a generator and checking its answers (`generation`), and which one the configuration names for a VO and an
activity (the brokerage chooses it beside the policy).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from broker_site.foundation.kernel.registry import Registry
from workqueues.rules.jobs.job_parameters import JobFill
from workqueues.rules.jobs.split_rule import SplitRules
from workqueues.splitters.choice import splitter_name
from workqueues.splitters.protocol import JobLimits


@dataclass(frozen=True, slots=True)
class GeneratorTask:
    """What a generator knows of a task; `label` is its prodSourceLabel, `parameters` are PanDA's, as they were submitted."""

    id: int
    vo: str = ""
    label: str = ""
    processing_type: str = ""
    working_group: str = ""
    user: str = ""
    priority: int = 0
    share: str = ""
    transformation: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)


class JobGenerator:
    """What all use cases have in common; a subclass changes the hooks in which its own differs.

    A hook is pure: the same arguments give the same answer, it looks at nothing else and keeps nothing. The names of other
    methods begin with `_`.
    """

    name: ClassVar[str] = ""

    def splitter(self, _task: GeneratorTask, dataset_type: str, rules: SplitRules) -> str:
        """The name of the splitter that cuts master datasets of this type: as the split rule of the task says."""
        return splitter_name(dataset_type, rules)

    def limits(self, _task: GeneratorTask, limits: JobLimits) -> JobLimits:
        """What one job may take at a queue, given what task and queue allow; hard budgets must stay as they are."""
        return limits

    def parameters(self, _task: GeneratorTask, _job: JobFill, _queue: str, text: str) -> str:
        """The job parameters of one job at a queue; `text`: the template of the task, filled with what stands in `job`."""
        return text


GENERATORS: Registry[JobGenerator] = Registry("generator")
HOOKS = ("splitter", "limits", "parameters")


def generator(*, vo: str, activity: str) -> Callable[[type[JobGenerator]], type[JobGenerator]]:
    """Declare a generator, for where the configuration names it: `vo-activity`, for all VOs (`*`) just the activity.

    TypeError for a hook that does not exist: it would never be asked.
    """

    def declare(cls: type[JobGenerator]) -> type[JobGenerator]:
        if unknown := sorted(name for name in vars(cls) if not name.startswith("_") and name not in HOOKS):
            raise TypeError(f"generators have no hook {', '.join(unknown)}; there are: {', '.join(HOOKS)}")
        cls.name = activity if vo == "*" else f"{vo}-{activity}"
        GENERATORS.add(cls.name, cls())
        return cls

    return declare


@generator(vo="*", activity="standard")
class Standard(JobGenerator):
    """Jobs as the split rule of the task says, with its parameters."""
