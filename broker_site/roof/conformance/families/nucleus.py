"""Families of the task broker: its criteria, its weight, and the remaining work of a task."""

from __future__ import annotations

from typing import Any

from broker_site.roof.conformance.families.one_queue import chunk, factor_of, task, verdicts_of
from broker_site.roof.conformance.registry import Answer, Given, family
from brokerage.policies.nucleus import Nucleus
from brokerage.rules.facts.needs import remaining_work
from brokerage.rules.facts.snapshot import Nuclei


def _site(**columns: Any) -> Nuclei:
    return Nuclei.from_rows([{"name": "N", **columns}])


@family(
    "task_brokerage",
    given="status free_gb expired_gb total_rw total_in_gb avail_in_gb n_in n_avail queue_files",
    expect="failed_criteria",
)
def criteria(given: Given) -> Answer:
    """Every criterion that the one site fails."""
    site = _site(
        state=given["status"],
        free_gb=(given["free_gb"] or 0.0) + (given["expired_gb"] or 0.0),
        total_rw=given["total_rw"],
        available_gb=given["avail_in_gb"],
        available_files=given["n_avail"],
        files_queued=given["queue_files"],
    )
    ask = task(chunk=chunk(gb=given["total_in_gb"], files=given["n_in"]))
    failed = []
    for rule in Nucleus.rules:
        verdicts, _ = verdicts_of(rule.name, ask, site)
        failed += [criterion.label for criterion, passes in zip(rule.criteria, verdicts, strict=True) if not passes]
    return {"failed_criteria": failed}


@family("task_brokerage", given="total_rw avail_gb total_gb tape_only", expect="weight")
def nucleus_weight(given: Given) -> Answer:
    site = _site(total_rw=given["total_rw"], available_gb=given["avail_gb"], tape_only=given["tape_only"])
    ask = task(chunk=chunk(gb=given["total_gb"]))
    weight = 1.0
    for factor in Nucleus.weights:
        weight *= factor_of(factor.name, ask, site)
    return {"weight": weight}


@family("task_brokerage", given="n_events n_used [cpu_time]", expect="rw")
def work_of_a_task(given: Given) -> Answer:
    """HS06 s."""
    return {"rw": remaining_work(given["n_events"] or 0, given["n_used"] or 0, given["cpu_time"])}
