"""Brokers the 200 tasks of `tasks.py` over the grid of `examples/grids/world.json`, and tells which criteria skipped how many.

    python examples/world/broker.py

A private system of its own (instance `world`), without pilots that run: they are only noted as seen, so that queues count as
alive. Look at the result with `GRIDBROKER_INSTANCE=world make up`, or ask `GRIDBROKER_INSTANCE=world manage.py explain TASK_ID`.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path
from uuid import uuid4

ROOT = Path(__file__).resolve().parents[2]
GRID = ROOT / "examples" / "grids" / "world.json"
STEPS = ("refine", "feed", "assign", "generate")
MOST_ROUNDS = 60


def main() -> int:
    """Everything, on a database that is empty at the beginning."""
    sys.path.insert(0, str(ROOT))
    from examples.private import empty_system

    with empty_system("world"):
        from django.core.management import call_command

        call_command("import_grid", str(GRID), verbosity=0)
        return brokered()


def brokered() -> int:
    """Submit the tasks, let the agents decide, tell the outcome."""
    began = time.monotonic()
    prepare()
    ids = submit_all()
    print(f"{len(ids)} tasks submitted in {time.monotonic() - began:.1f} s")
    began = time.monotonic()
    rounds = run_agents()
    print(f"brokered in {time.monotonic() - began:.1f} s, {rounds} rounds of the agents")
    tell(ids)
    return 0


def prepare() -> None:
    """A pilot seen at every queue, and work queues that take every task."""
    from brokerage.ledger.pilots import register
    from brokerage.models import ComputingQueue, Pilot
    from workqueues.models import WorkQueue

    WorkQueue.objects.get_or_create(queue_name="default", queue_type="", vo="*", defaults={"queue_order": 1000})
    for queue in ComputingQueue.objects.all():
        register(Pilot(id=uuid4(), queue=queue, host="world", slot=queue.name, core_count=8, memory_mb=16000, disk_mb=50000))


def submit_all() -> dict[int, str]:
    """Task -> its kind; inputs are in the catalogue before."""
    from brokerage.models import StorageEndpoint
    from examples.world.tasks import input_of, storages_of, tasks
    from workqueues.ledger.submit import first_columns, submit
    from workqueues.models import CatalogueDataset, CatalogueFile, Replica
    from workqueues.rules.refine import validate

    there = StorageEndpoint.objects.filter(state="ACTIVE").order_by("name")
    disks = list(there.filter(is_tape=False, type="DATADISK").values_list("name", flat=True))
    nuclei = list(there.filter(is_tape=False, type="DATADISK", site__nucleus=True).values_list("name", flat=True))
    tapes = list(there.filter(is_tape=True).values_list("name", flat=True))
    found: dict[int, str] = {}
    for kind, params in tasks():
        if problems := validate(params):
            raise SystemExit(f"{params['taskName']}: {problems[0].field}: {problems[0].message}")
        if kind.files:
            dataset = CatalogueDataset.objects.create(vo=params["vo"], name=input_of(params), state="closed")
            files = CatalogueFile.objects.bulk_create(
                CatalogueFile(dataset=dataset, lfn=f"{dataset.name}.{n:04d}", fsize=int(kind.file_gb * 1e9), n_events=1000)
                for n in range(kind.files)
            )
            places = storages_of(params, disks, nuclei, tapes)
            Replica.objects.bulk_create(Replica(file=file, storage=place) for file in files for place in places)
        task, _ = submit(params, first_columns(params, params["userName"]), params["userName"], "example")
        found[task.id] = kind.name
    return found


def run_agents() -> int:
    """The agents up to generation, until no task is left that none of them has looked at: how many rounds."""
    from broker_site.foundation.agency.run import run_agent
    from workqueues.models import Task
    from workqueues.states import TASK

    fresh_states = [state for event in ("define", "feed", "assign", "generate") for state in TASK.accepting(event)]
    for number in range(1, MOST_ROUNDS + 1):
        handled = [run_agent(name, looked=True) or 0 for name in STEPS]
        fresh = Task.objects.filter(status__in=fresh_states, next_look_at=None)
        if not any(handled) or not fresh.exists():
            return number
    return MOST_ROUNDS


def tell(kinds: dict[int, str]) -> None:
    """Tables: what became of each kind, and first criteria by policy."""
    from brokerage.models import Job
    from workqueues.models import Task

    states = Counter((kinds[id_], status) for id_, status in Task.objects.filter(id__in=kinds).values_list("id", "status"))
    jobs = Counter(kinds[id_] for id_ in Job.objects.filter(task_id__in=kinds).values_list("task_id", flat=True))
    print(f"\n{'kind':12} {'tasks':>6} {'jobs':>6}  states")
    for kind, n in Counter(kinds.values()).items():
        told = ", ".join(f"{status} {count}" for (name, status), count in sorted(states.items()) if name == kind)
        print(f"{kind:12} {n:6} {jobs[kind]:6}  {told}")
    for policy, (decisions, criteria) in sorted(first_criteria().items()):
        print(f"\n{policy}: {decisions} decisions\n{'first criterion':24} {'skipped':>8}")
        for label, n in criteria.most_common():
            print(f"{label:24} {n:8}")


def first_criteria() -> dict[str, tuple[int, Counter[str]]]:
    """Policy -> its decisions, and how many candidates each criterion was the first to skip."""
    from brokerage.models import Decision
    from brokerage.rules.decision.record import decode

    found: dict[str, tuple[int, Counter[str]]] = {}
    for policy, packed in Decision.objects.values_list("policy", "record"):
        record = decode(bytes(packed))
        decisions, criteria = found.get(policy, (0, Counter()))
        criteria.update(f"-{record.labels[row]}" for row in record.decision.first.tolist() if row >= 0)
        found[policy] = (decisions + 1, criteria)
    return found


if __name__ == "__main__":
    sys.exit(main())
