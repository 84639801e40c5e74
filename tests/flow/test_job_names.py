"""What jobs are called: after their task and the job with which their tries began."""

from __future__ import annotations

import pytest

from brokerage.models import Job, JobSpec
from tests.builders import catalogue_dataset, grid, reading, submitted
from tests.flow.steps import BAD, end, let_retry, run_agents, run_jobs, take

pytestmark = pytest.mark.django_db


def names() -> list[str]:
    return list(JobSpec.objects.order_by("job_id").values_list("job_name", flat=True))


def test_all_tries_of_an_input_have_one_name() -> None:
    (queue,) = grid()
    catalogue_dataset("in.data", 2)
    submitted(reading("t", "in.data", nFilesPerJob=1, maxAttempt=4))
    run_agents()
    first, second = Job.objects.order_by("id").values_list("id", flat=True)
    for _ in range(3):
        end(take(queue), BAD)
        let_retry()
        run_agents()
    other = [name for name in names() if name != f"t.{first}"]
    assert names()[:2] == [f"t.{first}", f"t.{second}"]
    assert len(names()) == 5 and set(other) == {f"t.{second}"}


def test_what_is_made_of_several_jobs_is_called_after_the_first_of_them() -> None:
    (queue,) = grid()
    catalogue_dataset("in.data", 2)
    task = submitted(reading("t", "in.data", nFilesPerJob=1, mergeOutput=True))
    run_agents()
    first = Job.objects.order_by("id").values_list("id", flat=True)[0]
    run_jobs(queue)
    run_agents(3)
    assert names()[2:] == [f"t.{first}"], "they are merged"
    assert Job.objects.filter(task_id=task.id).count() == 3
