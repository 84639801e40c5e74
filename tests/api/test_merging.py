"""REST on tasks that merge their outputs: what is shown of the files before, and which job merges which."""

from __future__ import annotations

import pytest

from brokerage.models import Job
from brokerage.rules.facts.job_kind import JobKind
from tests.api.people import Person
from tests.builders import grid, parameters, submitted
from tests.flow.steps import run_agents, run_jobs
from workqueues.models import Dataset, Task

pytestmark = pytest.mark.django_db


@pytest.fixture
def merging(db: None) -> Task:
    """A task of ada whose two jobs are being merged."""
    (queue,) = grid("ALPHA")
    task = submitted(parameters(mergeOutput=True, nEvents=20))
    run_agents()
    run_jobs(queue)
    run_agents(1, ("merge",))
    return task


def test_files_before_the_merge_are_shown_only_to_who_asks(ada: Person, merging: Task) -> None:
    def types(address: str) -> set[str]:
        return {row["type"] for row in ada.get(address).json()["results"]}

    shown, hidden = {"output", "log"}, {"trn_output", "trn_log"}
    inputs = {"pseudo_input", "random_seed"}
    assert {d["type"] for d in ada.get(f"tasks/{merging.id}/").json()["datasets"]} == inputs | shown
    for address in (f"tasks/{merging.id}/datasets/", f"tasks/{merging.id}/files/", "datasets/"):
        assert types(address) == inputs | shown
        assert types(f"{address}?premerged=true") == inputs | shown | hidden
        assert types(f"{address}?premerged=false") == inputs | shown
        assert types(f"{address}?type=trn_log") == {"trn_log"}
    one = Dataset.objects.get(type="trn_output")
    assert ada.get(f"datasets/{one.id}/").json()["dataset_name"] == "panda.um.t1.EVT"


def test_a_job_says_which_it_merges_and_which_merges_it(ada: Person, merging: Task) -> None:
    merge = Job.objects.get(kind=JobKind.MERGE)
    merged = list(Job.objects.filter(kind=JobKind.NORMAL).order_by("id").values_list("id", flat=True))
    told = ada.get(f"jobs/{merge.id}/").json()
    assert (told["kind"], told["merges"], told["merged_by"], told["retry_of"]) == ("merge", merged, [], [])
    told = ada.get(f"jobs/{merged[0]}/").json()
    assert (told["kind"], told["status"], told["merges"], told["merged_by"]) == ("normal", "merging", [], [merge.id])
