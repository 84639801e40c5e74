"""Names of queues, sites and nuclei that tasks wish for and that the grid does not have."""

from __future__ import annotations

from broker_site.foundation.kernel.registry import nearest
from brokerage.models import ComputingQueue, Site
from brokerage.rules.facts.queue_names import meant_by, names_in


def grid_faults(site: str, nucleus: str) -> dict[str, str]:
    """What is wrong with the queues and the nucleus (each empty: none) that a task names, by parameter.

    Nothing while the grid is empty. What the grid had before it has still: it may come back. A pseudo-queue `QUEUE/SUFFIX` stands
    for its queue.
    """
    faults = {}
    if site and (known := _queue_names()):
        for name in names_in(site):
            if not meant_by(name, known) and not meant_by(name.partition("/")[0], known):
                faults["site"] = _absent("queue or site", name, known)
                break
    if nucleus and (sites := dict(Site.objects.values_list("name", "nucleus"))) and not sites.get(nucleus):
        faults["nucleus"] = _absent("nucleus", nucleus, {name for name, collects in sites.items() if collects})
    return faults


def _queue_names() -> set[str]:
    return {name for pair in ComputingQueue.objects.values_list("name", "site_id") for name in pair}


def _absent(kind: str, name: str, known: set[str]) -> str:
    near = nearest(name, known)
    return f"the grid has no {kind} {name}" + (f"; the nearest name is {near}" if near else "")
