"""Makes the tables, the grid, the configuration, the inputs and the credentials of a run. Needs Django set up."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.db import connections, transaction

from broker_site.foundation.access.credentials import ensure_user, issue_enrolment, issue_user_token
from broker_site.foundation.gdpconfig import set_override
from brokerage.feeds.storage_roots import put_mark
from brokerage.ledger.storages import note_mark
from brokerage.models import ComputingQueue, QueueStorage, Site, StorageEndpoint
from tests.chaos.campaign import SUBMITTED, VO, Campaign, InputFile, endpoint, overrides, write_files
from workqueues.models import CatalogueDataset, CatalogueFile, Replica


@dataclass(frozen=True, slots=True)
class Credentials:
    """Token of the user who submits, and enrolment secrets by computing queue."""

    token: str
    enrolments: dict[str, str]


def make(campaign: Campaign) -> Credentials:
    """Make everything, from an empty database."""
    call_command("migrate", verbosity=0, interactive=False)
    with transaction.atomic():
        for app, component, name, value in overrides(campaign):
            set_override(component, name, value, app=app, who="chaos", why="compressed time")
        for queue in campaign.queues:
            _queue(campaign, queue)
        for name, files in write_files(campaign):
            register(name, files)
        for storage in StorageEndpoint.objects.order_by("name"):
            note_mark(storage.name, put_mark(storage.name, Path(storage.path)))
    user = ensure_user("demo", roles=[(VO, "submitter"), (VO, "production"), (VO, "operator")])
    made = Credentials(
        token=issue_user_token(user, vo=VO).text,
        enrolments={queue: issue_enrolment(queue, site=f"SITE_{queue}").text for queue in campaign.queues},
    )
    connections.close_all()
    return made


def _queue(campaign: Campaign, name: str) -> None:
    site = Site.objects.create(name=f"SITE_{name}", nucleus=name == "ALPHA")
    path = campaign.storage / endpoint(name)
    storage = StorageEndpoint.objects.create(name=endpoint(name), site=site, free_gb=50_000, path=str(path))
    limits: dict[str, Any] = {"maxrss": 2000, "maxtime": 3600, "maxwdir": 5000, "corecount": 1, "corepower": 10}
    limits["submission"] = "local" if name == SUBMITTED else "none"
    queue = ComputingQueue.objects.create(name=name, site=site, type="unified", **limits)
    for access in ("read_lan", "write_lan"):
        QueueStorage.objects.create(queue=queue, storage=storage, access=access, position=1)


def register(name: str, files: list[InputFile]) -> None:
    """Put a dataset with its files and their copies into the catalogue."""
    dataset = CatalogueDataset.objects.create(vo=VO, name=name, state="closed")
    rows = CatalogueFile.objects.bulk_create(
        CatalogueFile(dataset=dataset, lfn=f.lfn, fsize=f.size, checksum=f.checksum, n_events=1) for f in files
    )
    Replica.objects.bulk_create(
        Replica(file=row, storage=storage) for row, f in zip(rows, files, strict=True) for storage in f.storages
    )
