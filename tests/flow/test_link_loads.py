"""What our own transfers say of links and roots is what the brokers decide by, and it is told where a number comes from."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from django.db import connection
from django.db.models import F

from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.gdpconfig import set_override
from broker_site.foundation.kernel.clock import now
from brokerage.ledger.transfers.asking import ask
from brokerage.ledger.transfers.ends import finish
from brokerage.ledger.transfers.moves import TransferMove, move_transfers
from brokerage.models import (
    ComputingQueue,
    GridRevision,
    Link,
    LinkHour,
    LinkLoad,
    Site,
    StorageEndpoint,
    Transfer,
    TransferChange,
    TransferCount,
    TransferLink,
    TransferWish,
)
from brokerage.queries.what_if import current_request
from brokerage.queries.world import load_snapshot
from brokerage.rules.explain.what_if import what_if
from brokerage.rules.facts.ask import Ask
from brokerage.rules.grid.measurements import PRODUCTION_OUTPUT
from brokerage.rules.transfers.wishes import FileWish
from tests.builders import catalogue_dataset, grid, parameters, submitted
from tests.flow.steps import mark_storages, run_agents
from workqueues.models import CatalogueFile, Task

pytestmark = pytest.mark.django_db

A, B = "SITE_ALPHA", "SITE_BETA"
GB = 10**9


@pytest.fixture
def queues() -> list[ComputingQueue]:
    """ALPHA and BETA; BETA collects outputs."""
    made = grid("ALPHA", "BETA")
    StorageEndpoint.objects.update(free_gb=50000)
    Site.objects.filter(name=B).update(nucleus=True)
    return made


def asked(n: int, name: str = "out", activity: str = PRODUCTION_OUTPUT, size: int = 1000) -> list[int]:
    """So many files of ALPHA are wished at BETA, as outputs."""
    catalogue_dataset(name, n, size=size)
    files = CatalogueFile.objects.filter(dataset__name=name).order_by("id")
    wishes = [FileWish(f.id, "BETA_DISK", "output", activity, "demo", job_id=f.id) for f in files]
    return [transfer for transfer in ask(wishes, "test") if transfer is not None]


def brought(transfers: list[int], took: timedelta, ago: timedelta = timedelta(minutes=5)) -> None:
    """These transfers were done together in so much time."""
    move_transfers([TransferMove(t, new_key=uuid4()) for t in transfers], "submitting", "test", claim_s=60).run()
    finish([TransferMove(t) for t in transfers], "test")
    Transfer.objects.filter(id__in=transfers).update(ended_at=now() - ago)
    TransferChange.objects.filter(transfer_id__in=transfers, new="submitting").update(at=now() - ago - took)


def count() -> None:
    run_agent("links", looked=True)


def seen(nucleus: str = B) -> dict[str, object]:
    """What the brokers know of the link from ALPHA to BETA."""
    queues = load_snapshot().queues(Ask(nucleus=nucleus))
    at = queues.name.tolist().index("ALPHA")
    names = ("link_files", "link_origin", "mbps", "mbps_origin", "nucleus_files", "closeness")
    return {name: getattr(queues, name)[at].item() for name in names}


def revision() -> int:
    """How often the grid was changed."""
    return GridRevision.objects.values_list("number", flat=True).first() or 0


def managed(name: str = "m") -> Task:
    """A production task whose outputs are collected at BETA; its jobs are to be made next."""
    task = submitted(parameters(name, prodSourceLabel="managed", taskType="prod"))
    run_agents(1, names=("refine", "feed", "assign"))
    task.refresh_from_db()
    assert task.nucleus == B
    return task


def verdict(task: Task, queue: str = "ALPHA") -> tuple[str, str]:
    """The criterion that skips the queue now, and its reason; empty where it is chosen."""
    story = what_if(current_request(task)).before
    return next(((s.criterion, s.reason) for s in story.skipped if s.name == queue), ("", ""))


def numbers(task: Task) -> Mapping[str, object]:
    """The numbers of the criterion that skips ALPHA now."""
    return next(s.numbers for s in what_if(current_request(task)).before.skipped if s.name == "ALPHA")


def test_what_waits_on_a_link_is_counted_by_activity(queues: list[ComputingQueue]) -> None:
    asked(3)
    asked(2, "fast", "Express")
    assert seen()["link_files"] == 0, "nobody has counted yet"
    count()
    assert list(LinkLoad.objects.order_by("activity").values_list("source", "destination", "activity", "files", "bytes")) == [
        (A, B, "Express", 2, 2000),
        (A, B, "Production Output", 3, 3000),
    ]
    assert seen() | {"mbps": 0, "closeness": 0} == {
        "link_files": 3, "link_origin": "own transfers", "nucleus_files": 5, "mbps": 0, "mbps_origin": "", "closeness": 0
    }  # fmt: skip
    finish([TransferMove(t) for t in Transfer.objects.values_list("id", flat=True)], "test")
    count()
    assert seen()["link_files"] == 0


def test_a_link_with_too_much_waiting_is_left_out_and_taken_again_when_it_is_empty(queues: list[ComputingQueue]) -> None:
    task = managed()
    assert verdict(task)[0] != "-link_unusable"
    transfers = asked(4)
    set_override("jobbroker", "NQUEUED_SAT_CAP", 3, who="user:ada", why="test")
    count()
    assert verdict(task) == ("-link_unusable", f"4 files wait on its link to {B}, 3 at most")
    assert numbers(task)["counted_by"] == "own transfers", "why and what-if tell where the number comes from"
    before = revision()
    finish([TransferMove(transfers[0])], "test")
    count()
    assert verdict(task)[0] != "-link_unusable"
    assert revision() > before, "tasks that wait for a place are judged anew"


def test_too_much_on_the_way_to_a_nucleus_leaves_all_queues_out(queues: list[ComputingQueue]) -> None:
    task = managed()
    asked(4)
    set_override("jobbroker", "NQUEUED_NUC_CAP_FOR_JOBS", 3, who="user:ada", why="test")
    count()
    assert verdict(task) == ("-links_full", f"4 files wait for transfer to {B}, 3 at most")
    assert verdict(task, "BETA")[0] == "-links_full"


def test_a_nucleus_to_which_much_waits_takes_no_new_task(queues: list[ComputingQueue]) -> None:
    asked(4)
    set_override("taskbrokerage", "NQUEUED_NUC_CAP", 4, who="user:ada", why="test")
    count()
    task = submitted(parameters("t", prodSourceLabel="managed", taskType="prod"))
    run_agents(1, names=("refine", "feed", "assign"))
    story = what_if(current_request(Task.objects.get(id=task.id))).before
    assert {(s.name, s.criterion) for s in story.skipped} >= {(B, "-transfer_backlog")}


def test_a_link_that_failures_or_operators_block_is_not_used_while_that_lasts(queues: list[ComputingQueue]) -> None:
    task = managed()
    link = TransferLink.objects.create(
        source_id=A, destination_id=B, blocked_until=now() + timedelta(hours=1), blocked_why="18 of 20 transfers failed"
    )
    assert verdict(task) == ("-link_unusable", f"the link to {B} is blocked")
    assert numbers(task)["why"] == "18 of 20 transfers failed"
    count()
    before = revision()
    TransferLink.objects.update(blocked_until=now() - timedelta(seconds=1))
    TransferCount.objects.update(counted_at=now() - timedelta(minutes=1))
    assert verdict(task)[0] != "-link_unusable"
    count()
    assert revision() > before
    TransferLink.objects.filter(id=link.id).update(max_active=0)
    assert verdict(task)[0] == "-link_unusable"


@pytest.mark.parametrize(("source", "files", "origin"), [("own", 2, "own transfers"), ("feed", 7, "feed"), ("larger", 7, "feed")])
def test_whose_number_of_waiting_files_holds_is_configured(
    queues: list[ComputingQueue], source: str, files: int, origin: str
) -> None:
    Link.objects.create(source_id=A, destination_id=B, files_queued=7, closeness=3, measured_at=now())
    asked(2)
    count()
    set_override("transfers", "LINK_BACKLOG_SOURCE", source, who="user:ada", why="test")
    assert (seen()["link_files"], seen()["link_origin"], seen()["closeness"]) == (files, origin, 3)


def test_a_feed_that_is_too_old_does_not_hold_over_our_own_count(queues: list[ComputingQueue]) -> None:
    Link.objects.create(source_id=A, destination_id=B, files_queued=7, mbps_1h=5, measured_at=now() - timedelta(hours=2))
    asked(2)
    count()
    assert (seen()["link_files"], seen()["link_origin"]) == (2, "own transfers")
    assert seen()["mbps"] != 5
    TransferCount.objects.update(counted_at=F("counted_at") - timedelta(hours=2))
    assert seen()["link_files"] == 0, "nor do own counts that nobody makes any more"


def test_throughput_is_of_the_time_in_which_something_moved_and_each_end_counts_once(queues: list[ComputingQueue]) -> None:
    brought(asked(2, size=GB), timedelta(seconds=100))
    count()
    count()
    assert LinkHour.objects.count() == 1
    assert seen()["mbps"] == pytest.approx(20, rel=0.01)
    assert seen()["mbps_origin"] == "own transfers"
    TransferWish.objects.all().delete()
    brought(asked(2, "more", size=GB), timedelta(seconds=100), timedelta(seconds=0))
    count()
    assert LinkHour.objects.get().files == 2, "an end that may still be on its way is left for the next count"
    Link.objects.create(source_id=A, destination_id=B, mbps_1h=90, measured_at=now())
    assert (seen()["mbps"], seen()["mbps_origin"]) == (90, "feed")


def test_little_that_was_brought_says_nothing_of_a_link(queues: list[ComputingQueue]) -> None:
    brought(asked(2), timedelta(seconds=100))
    count()
    assert LinkHour.objects.get().files == 2
    assert seen()["mbps_origin"] == ""


def test_urgent_work_wants_a_link_that_was_fast(queues: list[ComputingQueue]) -> None:
    task = managed()
    Task.objects.filter(id=task.id).update(processing_type="urgent")
    task.refresh_from_db()
    brought(asked(1, size=GB), timedelta(seconds=5000))
    count()
    assert verdict(task)[0] == "-lowNetworkWeight"
    TransferWish.objects.all().delete()
    LinkHour.objects.update(busy_s=5)
    count()
    assert verdict(task)[0] != "-lowNetworkWeight"


def test_counting_does_not_read_the_transfers_that_were_counted(queues: list[ComputingQueue]) -> None:
    brought(asked(2, size=GB), timedelta(seconds=100))
    count()
    Transfer.objects.all().delete()
    count()
    assert seen()["mbps"] == pytest.approx(20, rel=0.01)


def test_free_space_seen_at_a_root_holds_where_none_is_published(queues: list[ComputingQueue], tmp_path: Path) -> None:
    task = managed()
    StorageEndpoint.objects.filter(name="ALPHA_DISK").update(free_gb=None)
    assert verdict(task)[0] == "-disk"
    mark_storages(tmp_path)
    run_agent("storage", looked=True)
    StorageEndpoint.objects.filter(name="ALPHA_DISK").update(root_free_gb=412.7)
    assert verdict(task)[0] != "-disk"
    (storage,) = (s for s in load_snapshot().grid.storages if s.name == "ALPHA_DISK")
    assert storage.columns["free_gb"] == 410
    StorageEndpoint.objects.filter(name="ALPHA_DISK").update(root_free_gb=50)
    assert verdict(task) == ("-disk", "its output storage has 50 GB free, more than 200 GB are wanted")
    assert numbers(task)["space_from"] == "its root"
    StorageEndpoint.objects.filter(name="ALPHA_DISK").update(free_gb=5000)
    assert verdict(task)[0] != "-disk", "what is published holds"


def test_the_space_at_a_root_is_looked_at_again_and_again(queues: list[ComputingQueue], tmp_path: Path) -> None:
    mark_storages(tmp_path)
    run_agent("storage", looked=True)
    assert StorageEndpoint.objects.filter(root_free_gb__gt=0).count() == 2
    (tmp_path / "BETA").rename(tmp_path / "away")
    run_agent("storage", looked=True)
    assert StorageEndpoint.objects.filter(root_free_gb=None).values_list("name", flat=True).get() == "BETA_DISK"


def test_transfers_that_ended_long_ago_go_with_their_history_and_those_that_did_not_stay(queues: list[ComputingQueue]) -> None:
    old, young, waiting = asked(3)
    brought([old, young], timedelta(seconds=1))
    Transfer.objects.filter(id=old).update(ended_at=now() - timedelta(days=8))
    TransferWish.objects.filter(transfer_id=young).update(closed_at=now())
    count()
    assert set(Transfer.objects.values_list("id", flat=True)) == {young, waiting}
    assert set(TransferChange.objects.values_list("transfer_id", flat=True)) == {young, waiting}
    assert set(TransferWish.objects.values_list("transfer_id", flat=True)) == {young, waiting}
    set_override("transfers", "KEEP_ENDED", "1min", who="user:ada", why="test")
    Transfer.objects.filter(id=young).update(ended_at=now() - timedelta(minutes=3))
    count()
    assert Transfer.objects.get().id == waiting


def test_what_is_forgotten_is_found_by_its_end(queues: list[ComputingQueue]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(
            "EXPLAIN SELECT id FROM brokerage_transfer WHERE ended_at < now() - interval '7 days' ORDER BY ended_at LIMIT 10"
        )
        assert "transfer_ended" in "".join(row[0] for row in cursor.fetchall())
