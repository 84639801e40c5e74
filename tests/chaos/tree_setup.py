"""`python -m tests.chaos.tree_setup WHAT` with JSON on stdin: fills the database that DATABASE_URL names. Prints JSON.

`tables`: the tables, the configuration, the sites and their storage, as all brokers of the tree have them. `parent`: the inputs,
the user's token, and the tokens of the children. Else the name of a child: its queues, with the enrolments of their pilots.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import django


def main() -> int:
    """Fill the database and print what its clients need."""
    django.setup()
    from tests.chaos.tree_campaign import PARENT, TreeCampaign

    what, said = sys.argv[1], json.loads(sys.stdin.read())
    campaign = TreeCampaign.load(said["campaign"])
    make: Any = {"tables": make_tables, PARENT: make_parent}.get(what, make_child)
    print(json.dumps(make(campaign, what, said)))
    return 0


def make_tables(campaign: Any, what: str, said: Any) -> dict[str, Any]:
    """Tables, configuration, sites and storage endpoints."""
    from django.core.management import call_command
    from django.db import transaction

    from broker_site.foundation.gdpconfig import set_override
    from brokerage.feeds.storage_roots import put_mark
    from brokerage.ledger.storages import note_mark
    from brokerage.models import Site, StorageEndpoint
    from tests.chaos.campaign import endpoint
    from tests.chaos.tree_campaign import QUEUES, tree_overrides

    call_command("migrate", verbosity=0, interactive=False)
    with transaction.atomic():
        for app, component, name, value in tree_overrides(campaign):
            set_override(component, name, value, app=app, who="chaos", why="compressed time")
        for queue in QUEUES:
            site = Site.objects.create(name=f"SITE_{queue}", nucleus=True)
            path = str(campaign.of_jobs.storage / endpoint(queue))
            storage = StorageEndpoint.objects.create(name=endpoint(queue), site=site, free_gb=50_000, path=path)
            note_mark(storage.name, put_mark(storage.name, Path(path)))
    return {}


def make_parent(campaign: Any, what: str, said: Any) -> dict[str, Any]:
    """The inputs, and who may submit and pull."""
    from broker_site.foundation.access.credentials import ensure_user, issue_user_token
    from broker_site.foundation.access.principal import SYSTEM
    from tests.chaos.campaign import VO, InputFile
    from tests.chaos.setup import register
    from tests.chaos.tree_campaign import CHILDREN
    from workqueues.ledger.child_brokers import add_child

    for name, files in said["inputs"].items():
        register(name, [InputFile(lfn, tuple(storages), size, checksum) for lfn, storages, size, checksum in files])
    return {
        "token": issue_user_token(_demo(ensure_user), vo=VO).text,
        "children": {name: add_child(name, "", "", SYSTEM).secret for name in CHILDREN},
    }


def make_child(campaign: Any, what: str, said: Any) -> dict[str, Any]:
    """Queues at its own sites alone."""
    from broker_site.foundation.access.credentials import ensure_user, issue_enrolment
    from brokerage.models import ComputingQueue, QueueStorage, Site, StorageEndpoint
    from tests.chaos.campaign import endpoint
    from tests.chaos.tree_campaign import CHILDREN

    _demo(ensure_user)
    limits: dict[str, Any] = {"maxrss": 2000, "maxtime": 3600, "maxwdir": 5000, "corecount": 1, "corepower": 10}
    for name in CHILDREN[what]:
        site, storage = Site.objects.get(name=f"SITE_{name}"), StorageEndpoint.objects.get(name=endpoint(name))
        queue = ComputingQueue.objects.create(name=name, site=site, type="unified", **limits)
        for access in ("read_lan", "write_lan"):
            QueueStorage.objects.create(queue=queue, storage=storage, access=access, position=1)
    return {"enrolments": {name: issue_enrolment(name, site=f"SITE_{name}").text for name in CHILDREN[what]}}


def _demo(ensure_user: Any) -> Any:
    from tests.chaos.campaign import VO

    return ensure_user("demo", roles=[(VO, "submitter"), (VO, "production"), (VO, "operator")])


if __name__ == "__main__":
    sys.exit(main())
