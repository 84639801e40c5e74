"""The demo campaign: submitted and followed through the REST API like a user would, then checked from outside.

Here: pace, submission, following, the verdict. Not here: the campaign itself (`examples/demo`) and the system (`supervisor`).
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.db.models import Q

from broker_site.foundation.gdpconfig import set_override
from broker_site.roof.demo_life import Hand, shown, unshown, wanted
from broker_site.roof.supervisor.sites_apart import mirrored
from brokerage.models import Job, JobRetryHistory, StorageEndpoint
from examples.demo.campaign import FILES_OF_EVENTS, LINES_TO_MERGE, life_tasks, prefix, tasks
from examples.demo.check import Registered, check_histogram, check_lines, check_storage
from workqueues.models import CatalogueFile, Task
from workqueues.states import MASTER_TYPES, TASK

PACE: Mapping[tuple[str, str, str], float] = {
    **{
        ("agents", f"PERIOD_{name}", "jedi"): 1.0
        for name in (
            "pull",
            "refine",
            "feed",
            "assign",
            "offer",
            "generate",
            "command",
            "wake",
            "reap",
            "finish",
            "storage",
            "transfer",
            "assess",
            "merge",
            "tally",
            "submit",
        )
    },
    ("transfers", "BACKOFF", "jedi"): 2.0,
    ("transfers", "BACKOFF_MAX", "jedi"): 20.0,
    ("transfers", "REST", "jedi"): 2.0,
    ("transfers", "UPKEEP", "jedi"): 1.0,
    ("transfers", "POLL", "jedi"): 5.0,
    ("transfers", "LINK_BLOCK", "jedi"): 20.0,
    ("storage", "LOST_CONFIRM", "jedi"): 20.0,
    ("storage", "LOOK_AGAIN", "jedi"): 1.0,
    ("agents", "CLAIM", "jedi"): 20.0,
    ("watchdog", "PENDING_WAIT", "jedi"): 2.0,
    ("taskbrokerage", "PENDING_NUCLEUS", "jedi"): 2.0,
    ("jobbroker", "PENDING_PRODUCTION", "jedi"): 2.0,
    ("jobbroker", "PENDING_GENERIC", "jedi"): 2.0,
    ("jobbroker", "RETRY_PAUSE", "jedi"): 1.0,
    ("jobbroker", "RETRY_PAUSE_MAX", "jedi"): 10.0,
    ("anal_jobbroker", "PENDING_ANALYSIS", "jedi"): 2.0,
    ("dispatch", "POLL", "jedi"): 0.2,
    ("jobbroker", "JOBS_PER_BLOCK", "jedi"): 1,
    ("watcher", "HEARTBEAT_TIMEOUT_production", "pandaserver"): 30.0,
    ("watcher", "HEARTBEAT_TIMEOUT_analysis", "pandaserver"): 30.0,
}
"""Time as the demo compresses it: configuration, not other code."""

LOOK_S = 0.25


class CampaignFailed(Exception):
    """The campaign did not come to its end; the message says what to look at."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far one task is: files of its input finished, given up, in all."""

    task_id: int
    name: str
    status: str
    finished: int
    failed: int
    files: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the campaign came to; `problems` names every output that is missing, doubled or wrong, and every promise not kept."""

    tasks: int
    jobs: int
    files: int
    lost: int
    retried: int
    queues: Mapping[str, int]
    shown: Mapping[str, str]
    """What each task beside the campaign shows, by name."""
    problems: Sequence[str] = field(default=())


def set_pace() -> None:
    """Compress time by configuration; a second run finds it so."""
    for (component, name, app), value in PACE.items():
        set_override(component, name, value, app=app, who="demo", why="the demo compresses time")


@dataclass(frozen=True, slots=True)
class Client:
    """The REST API as one user."""

    url: str
    token: str

    def call(self, path: str, body: Mapping[str, Any] | None = None, key: str = "") -> dict[str, Any]:
        """GET, or POST when there is a body. CampaignFailed, with the server's words, on any refusal."""
        request = urllib.request.Request(  # noqa: S310 - our own http URL
            f"{self.url}/api/v1/{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        if key:
            request.add_header("Idempotency-Key", key)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - our own http URL
                document: dict[str, Any] = json.load(answer)
                return document
        except urllib.error.HTTPError as refused:
            raise CampaignFailed(f"{path}: {refused.code} {refused.read(2000).decode(errors='replace')}") from refused


def submit(client: Client, run: str) -> list[int]:
    """Submit the three tasks, each a child of the one before, and those beside them: their ids."""
    documents = [*tasks(run), *life_tasks(run)]
    return [int(client.call("tasks/", task, key=f"{prefix(run)}{n}")["id"]) for n, task in enumerate(documents)]


def follow(client: Client, ids: Sequence[int], show: Callable[[list[Progress]], None], limit_s: float) -> None:
    """Look until every task has ended, and give commands meanwhile. CampaignFailed when one ends otherwise than it should, or not
    in time.
    """
    end, hand = time.monotonic() + limit_s, Hand(client)
    while True:
        progress = [_progress(client.call(f"tasks/{task_id}/")) for task_id in ids]
        show(progress)
        for one in progress:
            hand.act(one.task_id, one.name, one.status)
        if all(p.status in TASK.final for p in progress):
            break
        if time.monotonic() > end:
            raise CampaignFailed("not done in time: " + ", ".join(f"{p.name} is {p.status}" for p in progress))
        time.sleep(LOOK_S)
    if bad := [f"{p.name} ended {p.status}" for p in progress if p.status != wanted(p.name)]:
        raise CampaignFailed("; ".join(bad))


def _progress(task: Mapping[str, Any]) -> Progress:
    masters = [d for d in task["datasets"] if d["type"] in MASTER_TYPES and d["master_id"] is None]
    return Progress(
        task["id"],
        task["task_name"],
        task["status"],
        sum(d["n_files_finished"] for d in masters),
        sum(d["n_files_failed"] for d in masters),
        sum(d["n_files"] for d in masters),
    )


def verdict(ids: Sequence[int], run: str) -> Verdict:
    """Check every file of the run on its storage, and the histogram against what the random seeds imply."""
    registered = list(_registered(run))
    directories = {name: Path(path) for name, path in StorageEndpoint.objects.exclude(path="").values_list("name", "path")}
    with mirrored(prefix(run)) as mirrors:
        folders = {**directories, **mirrors}
        lost = [*check_storage(registered, folders, prefix(run)), *_histogram(registered, folders), *_lines(registered, folders)]
    jobs = Job.objects.filter(task_id__in=ids)
    queues = Counter(jobs.filter(status="finished").values_list("computing_queue__name", flat=True))
    retried = JobRetryHistory.objects.filter(task_id__in=ids).count()
    broken = [] if len(queues) >= 3 else [f"only {len(queues)} queues had work"]
    broken += [] if retried else ["no retry was seen"]
    return Verdict(
        tasks=Task.objects.filter(id__in=ids, status="done").count(),
        jobs=jobs.filter(status="finished").count(),
        files=len(registered),
        lost=len(lost),
        retried=retried,
        queues=dict(sorted(queues.items())),
        shown=shown(ids),
        problems=[*lost, *broken, *unshown(ids)],
    )


def _registered(run: str) -> Iterator[Registered]:
    """Every copy that may be read; a file without any is told of as well."""
    rows = CatalogueFile.objects.filter(dataset__name__startswith=prefix(run)).order_by("dataset_id", "lfn")
    copies = rows.filter(Q(replicas__state="available") | Q(replicas__isnull=True))
    columns = ("lfn", "fsize", "checksum", "replicas__storage", "replicas__path", "dataset__name")
    for lfn, size, checksum, storage, path, dataset in copies.values_list(*columns):
        yield Registered(lfn, size, checksum, storage, path or "", dataset)


def _lines(registered: Sequence[Registered], folders: Mapping[str, Path]) -> list[str]:
    try:
        return check_lines([entry for entry in registered if ".MERGED." in entry.lfn], folders, LINES_TO_MERGE)
    except (OSError, KeyError, ValueError) as error:
        return [f"the merged lines cannot be read: {error}"]


def _histogram(registered: Sequence[Registered], folders: Mapping[str, Path]) -> list[str]:
    merged = [entry for entry in registered if ".HIST." in entry.lfn]
    if (n := len({entry.lfn for entry in merged})) != 1:
        return [f"{n} merged histograms instead of one"]
    try:
        content = json.loads((folders[merged[0].storage] / merged[0].place).read_bytes())
    except (OSError, KeyError, ValueError) as error:
        return [f"the merged histogram cannot be read: {error}"]
    return check_histogram(content, FILES_OF_EVENTS)
