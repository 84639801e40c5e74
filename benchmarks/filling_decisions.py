"""Decisions of the brokerage about tasks of `filling_pages`, taken and stored by its own cycle: what the pages of why and the dry
run of a configuration read.
"""

from __future__ import annotations

DECISIONS = 100
MOST_FILES = 2_000
"""Of a task that is decided about."""


def decide(most: int = DECISIONS) -> None:
    """Decide about the newest live tasks with files to give."""
    from django.db.models import Exists, F, OuterRef

    from broker_site.foundation.agency.run import new_run
    from brokerage.agents.decision_cycle import begin
    from brokerage.queries.usable_input import usable_input
    from workqueues.models import CatalogueDataset, Dataset, File
    from workqueues.rules.jobs.event_ranges import InputFile

    masters = Dataset.objects.filter(task__ended_at=None, type="input", n_files__lte=MOST_FILES, n_files_used__lt=F("n_files"))
    known = CatalogueDataset.objects.filter(name=OuterRef("dataset_name"), vo=OuterRef("vo"))
    chosen = list(masters.filter(Exists(known)).select_related("task").order_by("-id")[:most])
    run = new_run("generate")
    cycle = begin(run.now)
    cycle.load(run, [dataset.task for dataset in chosen])
    for dataset in chosen:
        ready = File.objects.filter(dataset=dataset, status="ready").order_by("id")
        usable = usable_input(dataset.task, dataset, list(map(InputFile._make, ready.values_list(*InputFile._fields))))
        if usable.files:
            cycle.decide(cycle.requests.for_queues(dataset.task, dataset, usable, usable.smallest()))
    cycle.decisions.store()
