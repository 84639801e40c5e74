"""How the jobs of a task are made: the generator that the configuration names for it, with what that is told of the task; and
the queues that jobs can go to."""

from __future__ import annotations

from types import MappingProxyType

from broker_site.foundation import gdpconfig
from brokerage.models import ComputingQueue
from brokerage.rules.decision.policy_choice import generator_chosen
from workqueues.models import Task, TaskParams
from workqueues.rules.jobs.activity import activity_of
from workqueues.splitters.generation import STANDARD, Generation
from workqueues.splitters.generator import GeneratorTask


def generation_of(task: Task) -> Generation:
    """The generator at work on a task. Raises NoGenerator.

    Ours is told nothing more than the number of the task: it looks at nothing else, and the parameters are a row to read.
    """
    generator = generator_chosen(task.vo, activity_of(task.prod_source_label), gdpconfig.component("core", vo=task.vo))
    return Generation(generator, GeneratorTask(task.id) if generator is STANDARD else _generator_task(task))


def _generator_task(task: Task) -> GeneratorTask:
    submitted = TaskParams.objects.filter(task_id=task.id).values_list("task_params", flat=True).first() or {}
    return GeneratorTask(
        id=task.id,
        vo=task.vo,
        label=task.prod_source_label,
        processing_type=task.processing_type,
        working_group=task.working_group,
        user=task.user_name,
        priority=task.current_priority,
        share=task.gshare,
        transformation=task.trans_path,
        parameters=MappingProxyType(submitted),
    )


def queue_ids() -> dict[str, int]:
    """Every computing queue by name."""
    return dict(ComputingQueue.objects.values_list("name", "id"))
