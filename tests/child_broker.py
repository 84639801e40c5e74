"""A child broker as its parent hears it: its messages over the API, and what it would report of jobs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from django.test import Client

from broker_site.foundation.access.principal import SYSTEM
from broker_site.foundation.kernel import clock
from workqueues.ledger.child_brokers import add_child

SLOTS = {"pending_slots": 10, "running_slots": 10}


@dataclass
class Child:
    """A child broker as its parent hears it."""

    name: str = "west"
    team: str = ""
    sites: dict[str, Any] = field(default_factory=lambda: {"SITE_ALPHA": SLOTS})
    instance: str = field(default_factory=lambda: str(uuid4()))
    incarnation: str = field(default_factory=lambda: str(uuid4()))
    lineage: list[str] = field(default_factory=list)
    protocol: int = 1

    def __post_init__(self) -> None:
        self.token = add_child(self.name, self.team, "", SYSTEM).secret

    def call(self, what: str, **said: Any) -> Any:
        hello = {"protocol": self.protocol, "version": "9", "instance": self.instance, "incarnation": self.incarnation}
        body = {**hello, "lineage": self.lineage, "now": clock.now().isoformat(), **said}
        headers = {"authorization": f"Bearer {self.token}"}
        return Client(headers=headers).post(f"/api/v1/tree/{what}/", body, content_type="application/json")

    def pull(self, **more: Any) -> Any:
        return self.call("pull", **{"key": str(uuid4()), "sites": self.sites, **more})

    def pulled(self, **more: Any) -> list[dict[str, Any]]:
        """The elements of a pull that the child has said that it has."""
        answer = self.pull(**more)
        assert answer.status_code == 200, answer.content
        heads: list[dict[str, Any]] = answer.json()["elements"]
        if heads:
            self.parent = answer.json()["incarnation"]
            self.report(*(self.of(head, "Acquired") for head in heads))
        return heads

    def work(self, *heads: dict[str, Any]) -> list[dict[str, Any]]:
        wanted = [{"id": head["id"], "try_nr": head["try_nr"]} for head in heads]
        works: list[dict[str, Any]] = self.call("fetch", elements=wanted).json()["works"]
        return works

    def of(self, head: dict[str, Any], state: str, *ends: dict[str, Any]) -> dict[str, Any]:
        return {"id": head["id"], "try_nr": head["try_nr"], "incarnation": self.parent, "state": state, "ends": list(ends)}

    def report(self, *elements: dict[str, Any]) -> list[dict[str, Any]]:
        answer = self.call("report", elements=list(elements))
        assert answer.status_code == 200, answer.content
        verdicts: list[dict[str, Any]] = answer.json()["elements"]
        return verdicts


def ended(work: dict[str, Any], number: int, *lfns: str, end: str = "finished") -> dict[str, Any]:
    """Files of an element that ended in one job of the child, with an output and a log if it finished."""
    inputs = [{"lfn": lfn, "end": end} for lfn in lfns]
    if end != "finished":
        return {"inputs": inputs}
    items = [*work["parameters"]["jobParameters"], work["parameters"]["log"]]
    names = [
        (item["dataset"], item["value"].split("=")[-1].replace("${SN}", f"{item['offset'] + number:06d}"))
        for item in items
        if item["param_type"] in ("output", "log")
    ]
    return {"inputs": inputs, "outputs": [made(dataset, lfn) for dataset, lfn in names]}


def made(dataset: str, lfn: str, **more: Any) -> dict[str, Any]:
    """A file that the child made."""
    place = {"storage": "ALPHA_DISK", "path": f"of/child/{dataset}/{lfn}"}
    return {"dataset": dataset, "lfn": lfn, "size": 10, "checksum": "0000000a", **place, **more}
