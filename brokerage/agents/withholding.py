"""What the agent watch does with tasks whose input lies only at queues that are busy: they make no jobs until one is free."""

from __future__ import annotations

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import Run
from broker_site.foundation.gdpconfig.values import pick
from brokerage.queries.chunks import inputs_of
from brokerage.queries.withholdable_tasks import queues_at_data, withheld_tasks, withholdable_tasks
from brokerage.rules.dispatch.withholding import CAUSE, io_limit, withheld
from workqueues.catalogue import CatalogueUnavailable, catalogue
from workqueues.ledger.throttles import Cause, throttle_while
from workqueues.rules.jobs.activity import ANALYSIS_LABELS, PRODUCTION_LABELS
from workqueues.rules.refine import dataset_key

MOST_TASKS = 50
"""Tasks that are withheld, or go on, in a run."""


def withhold(run: Run) -> int:
    """Withhold tasks, and let those go on whose input is free: how many. While the catalogue is silent all stay as they are."""
    config = gdpconfig.component("task_withholder")
    limits = {
        label: (io_limit(label, config), priority)
        for label in (*PRODUCTION_LABELS, *ANALYSIS_LABELS)
        if (priority := pick(config, "LIMIT_PRIORITY_<label>", label=label)) is not None
    }
    held, tasks = withheld_tasks(), withholdable_tasks(limits)
    if not held and not tasks:
        return 0
    inputs = inputs_of([task.task_id for task in tasks])
    masters = {id_: [d for d in datasets if d.master_id is None and d.type == "input"] for id_, datasets in inputs.items()}
    keys = {d.id: dataset_key(d.vo, d.dataset_name, d.data_vo) for datasets in masters.values() for d in datasets}
    try:
        copies = catalogue().replicas(set(keys.values())) if keys else {}
    except CatalogueUnavailable as error:
        run.leave("tasks to withhold", error)
        return 0
    queues, causes = queues_at_data() if tasks else [], list[Cause]()
    for task in tasks:
        places = [
            {copy.storage for copy in copies.get(keys[d.id], ()) if copy.files >= d.n_files}
            for d in masters.get(task.task_id, ())
        ]
        if why := withheld(places, queues, task.share, gdpconfig.component("jobbroker", vo=task.vo)):
            causes.append(Cause(task.task_id, CAUSE, why))
    over = sorted(held - {cause.task_id for cause in causes})[:MOST_TASKS]
    new = [cause for cause in causes if cause.task_id not in held][:MOST_TASKS]
    return throttle_while(new, over, CAUSE, run.who) if new or over else 0
