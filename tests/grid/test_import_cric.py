"""`import_grid` takes CRIC's own documents: recognised by themselves, several at once, faulty entries stay as they were."""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from broker_site.foundation.access.models import Audit
from brokerage.models import ComputingQueue, Link, Site, Software, StorageEndpoint
from tests.grid import cric
from tests.grid.conftest import GOOD

pytestmark = pytest.mark.django_db

DOCUMENTS = {
    "queues": cric.QUEUES,
    "software": cric.SOFTWARE,
    "sites": cric.SITES,
    "closeness": cric.CLOSENESS,
    "storages": cric.STORAGES,
}

Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Import documents by name, after changing them: what is said."""

    def imported(*names: str, **documents: Any) -> str:
        options = [name for name in names if name.startswith("--")]
        files = []
        for name in (name for name in names if not name.startswith("--")):
            file = tmp_path / f"{name}.json"
            file.write_text(json.dumps(documents.get(name, DOCUMENTS.get(name))))
            files.append(str(file))
        out = io.StringIO()
        call_command("import_grid", *files, *options, stdout=out)
        return out.getvalue()

    return imported


def test_documents_are_recognised_and_imported_in_the_order_in_which_they_refer_to_each_other(run: Run) -> None:
    out = run(*DOCUMENTS).splitlines()
    assert [line for line in out if not line.startswith("faulty")] == [
        "2 sites (2 added)",
        "3 storage endpoints (3 added)",
        "6 queues (6 added)",
        "2 software documents (2 added)",
        "2 links (2 added)",
    ]
    assert [line for line in out if line.startswith("faulty")] == [
        "faulty, its last good version stays: links[3].closeness: range: expected -1 to 11, found the number 12",
    ]
    assert set(Site.objects.filter(nucleus=True).values_list("name", flat=True)) == {"SITE-A"}
    assert StorageEndpoint.objects.get(name="A_DATADISK").free_gb == pytest.approx(1073.741824)
    assert ComputingQueue.objects.get(name="ALPHA").attributes["copytools"] == {"rucio": {}}
    assert ComputingQueue.objects.get(name="ALPHA").local_pilots == 0
    assert (Link.objects.count(), Software.objects.count()) == (2, 2)
    assert set(ComputingQueue.objects.values_list("source", flat=True)) == {"cric"}
    assert run(*DOCUMENTS).count("unchanged") == 5


def test_a_dry_run_shows_all_of_it_and_writes_nothing(run: Run) -> None:
    out = run(*DOCUMENTS, "--dry-run")
    assert "+ queue ALPHA" in out
    assert out.count("would change: ") == 5
    assert not Site.objects.exists()
    assert not Audit.objects.exists()


def test_queues_without_their_sites_and_storages_are_faulty_and_nothing_is_written(run: Run) -> None:
    with pytest.raises(CommandError) as refused:
        run("queues")
    assert "document: empty: no entry can be used; the first, ALPHA: queues.ALPHA.atlas_site: reference: " in str(refused.value)
    assert not ComputingQueue.objects.exists()


def test_one_refused_file_refuses_all_of_them(run: Run) -> None:
    with pytest.raises(CommandError, match=r"queues\.json is refused"):
        run("sites", "queues", queues={"ALPHA": {"atlas_site": "MARS"}})
    assert not Site.objects.exists()


def test_a_faulty_queue_keeps_its_last_good_version(run: Run) -> None:
    run(*DOCUMENTS)
    document = copy.deepcopy(cric.QUEUES)
    document["ALPHA"]["maxrss"] = -7
    document["BETA"]["status"] = "test"
    out = run("queues", queues=document)
    assert "faulty, its last good version stays: queues.ALPHA.maxrss: range: " in out
    alpha = ComputingQueue.objects.get(name="ALPHA")
    assert (alpha.maxrss, alpha.status, alpha.fault[:26]) == (16000, "online", "queues.ALPHA.maxrss: range")
    assert ComputingQueue.objects.get(name="BETA").status == "test"


def test_a_document_that_lost_too_much_is_refused(run: Run) -> None:
    run(*DOCUMENTS)
    with pytest.raises(CommandError, match=r"document: loss: 4 of 6 queue entries would be gone at once, more than 20%"):
        run("queues", queues={name: cric.QUEUES[name] for name in ("ALPHA", "BETA")})
    assert not ComputingQueue.objects.exclude(gone_at=None).exists()


def test_our_own_document_and_crics_live_beside_each_other(run: Run) -> None:
    run(*DOCUMENTS)
    run("own", own=GOOD)
    assert run(*DOCUMENTS).count("unchanged") == 5
    assert set(ComputingQueue.objects.filter(status="online").values_list("name", flat=True)) >= {"NORTH", "SOUTH", "ALPHA"}


def test_rows_may_belong_to_a_feed(run: Run) -> None:
    run("sites", "--feed=cric-sites")
    assert set(Site.objects.values_list("source", flat=True)) == {"cric-sites"}


@pytest.mark.parametrize("document", [{}, [], {"A": 1}, 7, {"A": {"b": 1}}])
def test_what_is_no_known_document_is_refused_as_one_of_ours(run: Run, document: Any) -> None:
    with pytest.raises(CommandError, match=r"x\.json is refused"):
        run("x", x=document)
