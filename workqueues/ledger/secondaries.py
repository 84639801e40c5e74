"""Files of secondary datasets for jobs: tracked ones are picked as those of the master are, the others only read."""

from __future__ import annotations

from workqueues.models import Dataset, Task
from workqueues.queries.secondaries import SecondaryFiles


def load_secondaries(run_id: str, task: Task, master: Dataset, n_master_files: int) -> list[SecondaryFiles]:
    """The secondary datasets of `master` for jobs on so many of its files (pieces, where events are cut), in order of id.

    Of a tracked dataset so many ready files are picked for the holder of the claim as these can need; what no job takes goes
    back with `give_back_picked`. Of the others all files are read, and `at` is where the last round stopped. Held files are left
    out. Raises Stale when the claim is gone.
    """
    raise NotImplementedError


def advance(dataset_id: int, n: int) -> None:
    """`n` files of an untracked secondary dataset were dealt out to jobs: the next round goes on behind them."""
    raise NotImplementedError
