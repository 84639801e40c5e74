"""Concrete datasets of templates: made once, whoever asks first, and written to like any other output."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connections

from brokerage.queries.invariants import check
from tests.builders import catalogue_dataset, grid, parameters, reading, submitted
from tests.flow.steps import run_agents
from workqueues.ledger.outputs import concrete_datasets
from workqueues.models import CatalogueDataset, Dataset, DatasetChange, Task

pytestmark = pytest.mark.django_db(transaction=True)
WHO = "test"


def instantiating(**more: object) -> Task:
    """A task with an output and a log that are templates, ready for its first jobs."""
    grid("ALPHA")
    catalogue_dataset("in.data", 2)
    task = submitted(reading("t", "in.data", **more))
    run_agents(1, ("refine", "feed"))
    task.refresh_from_db()
    return task


def templates() -> dict[str, Dataset]:
    return {d.dataset_name: d for d in Dataset.objects.filter(type__startswith="tmpl_")}


def test_each_queue_gets_a_dataset_of_its_own_that_inherits_from_the_template() -> None:
    items = [
        {"type": "template", "param_type": "input", "dataset": "in.data", "value": "--in ${IN/L}"},
        {
            "type": "template",
            "param_type": "output",
            "dataset": "t.OUT",
            "value": "--out=t.${SN}",
            "token": "DISK",
            "allowNoOutput": True,
        },
    ]
    task = instantiating(instantiateTmplSite=True, jobParameters=items)
    out = templates()["t.OUT"]
    alpha, beta = (concrete_datasets(task, [out.id], queue, WHO)[out.id] for queue in ("ALPHA", "BETA"))
    assert (alpha.dataset_name, beta.dataset_name) == (f"t.OUT.{alpha.id}", f"t.OUT.{beta.id}")
    assert (alpha.type, alpha.status, alpha.site, alpha.template_id) == ("output", "ready", "ALPHA", out.id)
    assert (alpha.storage_token, alpha.stream_name, alpha.attributes) == ("DISK", "OUTPUT0", "an")
    assert alpha.provenance_id == out.provenance_id is not None
    assert concrete_datasets(task, [out.id], "ALPHA", WHO)[out.id].id == alpha.id
    assert set(CatalogueDataset.objects.exclude(name="in.data").values_list("name", "state")) == {
        (alpha.dataset_name, "open"),
        (beta.dataset_name, "open"),
    }
    moves = DatasetChange.objects.filter(dataset_id=alpha.id).order_by("id").values_list("old", "new")
    assert [new for _, new in moves] == ["defined", "ready"]
    assert [(f.invariant.name, f.examples) for f in check() if f.violations] == []


def test_without_the_word_for_sites_all_queues_write_to_one() -> None:
    task = instantiating(instantiateTmpl=True)
    ids = [d.id for d in templates().values()]
    alpha, beta = (concrete_datasets(task, ids, queue, WHO) for queue in ("ALPHA", "BETA"))
    assert {i: d.id for i, d in alpha.items()} == {i: d.id for i, d in beta.items()}
    assert {d.type for d in alpha.values()} == {"output", "log"}


def test_a_dataset_that_is_no_template_stands_for_itself() -> None:
    task = submitted(parameters("plain"))
    grid("ALPHA")
    run_agents(1, ("refine", "feed"))
    ids = list(Dataset.objects.filter(type__in=["output", "log"]).values_list("id", flat=True))
    assert {i: d.id for i, d in concrete_datasets(task, ids, "ALPHA", WHO).items()} == {i: i for i in ids}
    assert Dataset.objects.filter(template_id__isnull=False).count() == 0


def test_callers_at_once_get_the_same_dataset() -> None:
    task = instantiating(instantiateTmplSite=True)
    ids = [d.id for d in templates().values()]
    start = Barrier(4)

    def ask(_: int) -> Mapping[int, Dataset]:
        try:
            start.wait(10)
            return concrete_datasets(task, ids, "ALPHA", WHO)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(ask, range(4)))
    assert len({tuple(sorted(d.id for d in answer.values())) for answer in answers}) == 1
    assert Dataset.objects.filter(template_id__isnull=False).count() == 2
    assert [(f.invariant.name, f.examples) for f in check() if f.violations] == []
