"""Files of an input that grows, or is staged from tape, are used once their lumi block is complete (releasePerLB)."""

from __future__ import annotations

import pytest

from brokerage.ledger.transfers.ends import finish
from brokerage.ledger.transfers.moves import TransferMove
from brokerage.models import Job, Site, StorageEndpoint, Transfer
from brokerage.queries.invariants import check
from tests.builders import catalogue_dataset, grid, reading, submitted
from tests.flow.steps import ROUND, run_agents, run_jobs
from tests.flow.test_open_datasets import grow, let_check, open_dataset, status
from workqueues.ledger.open_inputs import close_dataset
from workqueues.models import CatalogueDataset, CatalogueFile, File, Replica, Task
from workqueues.rules.jobs.open_inputs import GROWING_BLOCK

pytestmark = pytest.mark.django_db


def number_blocks(dataset: CatalogueDataset, *blocks: int | None) -> None:
    """The lumi blocks of the files that have none yet, in the order in which they came."""
    new = CatalogueFile.objects.filter(dataset=dataset, lumi_block_nr=None).order_by("id")
    for file, block in zip(new, blocks, strict=True):
        CatalogueFile.objects.filter(id=file.id).update(lumi_block_nr=block)


def waiting(task: Task) -> list[int | None]:
    """Lumi blocks of the files that wait for their block."""
    return list(File.objects.filter(task=task, held=GROWING_BLOCK).order_by("id").values_list("lumi_block_nr", flat=True))


def test_a_block_of_an_open_dataset_is_used_once_a_later_one_is_there_and_nothing_more_comes() -> None:
    (queue,) = grid()
    dataset = open_dataset("in.data", 4)
    number_blocks(dataset, 1, 1, 1, 2)
    task = submitted(reading("t", "in.data", runUntilClosed=True, respectLB=True, releasePerLB=True))
    run_agents(3)
    assert (waiting(task), run_jobs(queue)) == ([1, 1, 1, 2], 0), "it was read once: more may be coming just now"
    let_check()
    run_agents(3)
    assert waiting(task) == [2]
    assert run_jobs(queue) == 2, "two files of the block, and the last one, which waits for no other block"
    grow(dataset, 2)
    number_blocks(dataset, 2, 3)
    let_check()
    run_agents()
    assert waiting(task) == [2, 2, 3], "a file of block 2 has come lately"
    let_check()
    run_agents(3)
    assert (waiting(task), run_jobs(queue)) == ([3], 1)
    close_dataset(dataset.id)
    run_agents(3)
    assert (waiting(task), run_jobs(queue)) == ([], 1)
    run_agents(3)
    assert status(task) == "done"
    by_job = File.objects.filter(task=task, type="input").values_list("job_id", "lumi_block_nr").distinct()
    assert len(by_job) == Job.objects.count() == 4, "no job has files of two blocks"


def test_files_without_a_block_and_those_of_closed_datasets_wait_for_none() -> None:
    grid()
    number_blocks(catalogue_dataset("closed", 2), 1, 2)
    open_dataset("open", 2)
    tasks = [submitted(reading(name, name, runUntilClosed=True, releasePerLB=True)) for name in ("closed", "open")]
    run_agents(3)
    assert [waiting(task) for task in tasks] == [[], []]
    assert Job.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_a_block_that_is_staged_is_used_once_all_of_it_is_on_disk() -> None:
    (queue,) = grid("ALPHA")
    StorageEndpoint.objects.create(name="ALPHA_TAPE", site=Site.objects.get(), is_tape=True)
    dataset = catalogue_dataset("in.data", 3, storage="ALPHA_TAPE")
    number_blocks(dataset, 1, 1, 2)
    for file in CatalogueFile.objects.order_by("id")[1:]:
        Replica.objects.create(file=file, storage="ALPHA_DISK")
    task = submitted(reading("t", "in.data", nFilesPerJob=1, prodSourceLabel="managed", inputPreStaging=True, releasePerLB=True))
    run_agents(3, ROUND)
    assert (waiting(task), run_jobs(queue)) == ([1], 1), "block 2 is on disk, of block 1 a file is on its way"
    (transfer,) = Transfer.objects.all()
    finish([TransferMove(transfer.id)], "mover")
    for _ in range(3):
        run_agents(names=ROUND)
        run_jobs(queue)
    assert (waiting(task), status(task)) == ([], "done")
    assert [(f.invariant.name, f.examples) for f in check() if f.violations] == []
