"""The command line of a job's payload, whole: as it is stored, or the task's job parameters with the values of the job."""

from __future__ import annotations

from django.db import DEFAULT_DB_ALIAS

from brokerage.models import JobSpec
from workqueues.models import JobParamsTemplate
from workqueues.rules.jobs.job_parameters import compiled


def command_line(spec: JobSpec, using: str = DEFAULT_DB_ALIAS) -> str:
    if spec.job_values is None:
        return spec.job_parameters
    return compiled(JobParamsTemplate.objects.using(using).get(task_id=spec.job.task_id).job_params_template).line(
        spec.job_values
    )
