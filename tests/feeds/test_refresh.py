"""Feeds keep the grid up to date; whatever goes wrong with one, what it last said stays, and its fault and age are told."""

from __future__ import annotations

import copy
import io
import json
import re
from datetime import timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.access.principal import SYSTEM
from broker_site.foundation.agency.run import BODIES, new_run
from broker_site.foundation.kernel import clock
from brokerage.feeds.refresh import last_copy, refresh_feed
from brokerage.ledger.grid_overrides import change_overrides
from brokerage.models import ComputingQueue, Feed, Link, LocalOverride, Site, Software, StorageEndpoint
from brokerage.queries.feeds import feed_states, stale_feeds
from tests.feeds.conftest import Place
from tests.grid import cric
from tests.grid.conftest import GOOD
from tests.pages.scene import visitor


def feed(name: str, kind: str, address: str) -> Feed:
    return Feed.objects.create(name=name, kind=kind, place=address)


def refresh() -> int:
    """All feeds, now."""
    Feed.objects.update(tried_at=None)
    return BODIES["refresh"](new_run("refresh"))


def refreshed(name: str) -> Feed:
    refresh()
    return Feed.objects.get(name=name)


@pytest.fixture
def grid(configured: Place) -> Place:
    """Sites, storage endpoints and queues from three feeds, read once."""
    for name, document in (("sites", cric.SITES), ("storages", cric.STORAGES), ("queues", cric.QUEUES)):
        feed(name, f"cric-{name}", configured.put(f"/{name}", document))
    assert refresh() == 2 + 3 + 6
    assert [f.fault for f in Feed.objects.all()] == [""] * 3
    return configured


def everything() -> list[Any]:
    return [
        sorted(map(str, model.objects.values_list(*(f.attname for f in model._meta.concrete_fields if f.name != "good_at"))))
        for model in (Site, StorageEndpoint, ComputingQueue)
    ]


def test_the_grid_is_read_in_the_order_of_what_refers_to_what(grid: Place) -> None:
    assert grid.asked == ["/sites", "/storages", "/queues"]
    assert ComputingQueue.objects.get(name="ALPHA").storages.count() == 4
    assert set(ComputingQueue.objects.values_list("source", flat=True)) == {"queues"}
    assert refresh() == 0


def test_each_feed_is_read_once_a_period(grid: Place) -> None:
    BODIES["refresh"](new_run("refresh"))
    assert len(grid.asked) == 3
    gdpconfig.set_override("feeds", "FEED_PERIOD", "0.05s", who="ann", why="tests")
    Feed.objects.update(tried_at=clock.now() - timedelta(seconds=1))
    BODIES["refresh"](new_run("refresh"))
    assert len(grid.asked) == 6
    Feed.objects.update(enabled=False)
    refresh()
    assert len(grid.asked) == 6


def test_what_changed_is_taken_and_what_is_gone_goes_out_of_use(grid: Place) -> None:
    document = copy.deepcopy(cric.QUEUES)
    document["ALPHA"]["maxrss"] = 32000
    del document["ZETA"]
    grid.put("/queues", document)
    assert refresh() == 2
    assert ComputingQueue.objects.get(name="ALPHA").maxrss == 32000
    zeta = ComputingQueue.objects.get(name="ZETA")
    assert (zeta.status, zeta.gone_at is not None) == ("offline", True)
    grid.put("/queues", cric.QUEUES)
    refresh()
    assert ComputingQueue.objects.get(name="ZETA").gone_at is None


def test_a_faulty_queue_keeps_its_last_good_version_and_shows_the_fault(grid: Place) -> None:
    document = copy.deepcopy(cric.QUEUES)
    document["ALPHA"] |= {"maxrss": "plenty", "status": "offline"}
    document["BETA"]["status"] = "test"
    grid.put("/queues", document)
    found = refreshed("queues")
    alpha = ComputingQueue.objects.get(name="ALPHA")
    assert (alpha.status, alpha.maxrss, alpha.gone_at) == ("online", 16000, None)
    assert alpha.fault == "queues.ALPHA.maxrss: type: expected a number, found the text 'plenty'"
    assert alpha.fault_since is not None
    assert alpha.good_at is not None
    assert ComputingQueue.objects.get(name="BETA").status == "test"
    assert (found.fault, list(found.faulty)) == ("", ["ALPHA"])
    assert feed_states(clock.now())[0].sentence.endswith("; 1 faulty entry")
    grid.put("/queues", cric.QUEUES)
    refresh()
    assert ComputingQueue.objects.get(name="ALPHA").fault == ""


@pytest.mark.parametrize("name", ["A\\u0000B", "A\\ud800B", "A\\nB", "A\\u0085B"])
def test_faults_with_signs_that_cannot_be_stored_are_told_without_them(grid: Place, name: str) -> None:
    text = json.dumps(cric.QUEUES)
    grid.put("/queues", f'{text[:-1]}, "{name}": {{"atlas_site": "SITE-A"}}, "C": {{"{name}": 1, "status": "{name}"}}}}')
    found = refreshed("queues")
    assert (found.fault, set(found.faulty)) == ("", {"A?B", "C"})
    grid.put("/queues", f'{{"{name}": 1, "{name}": 2}}')
    assert refreshed("queues").fault.startswith("A?B: duplicate: ")


BAD = [
    ("not json", "[1, 2", "json"),
    ("html", "<html>502</html>", "json"),
    ("empty text", "", "json"),
    ("empty", {}, "empty"),
    ("list", [], "type"),
    ("null", "null", "type"),
    ("infinity", '{"ALPHA": {"atlas_site": "SITE-A", "maxrss": Infinity}}', "json"),
    ("twice", '{"ALPHA": {}, "ALPHA": {}}', "duplicate"),
    ("another kind", cric.STORAGES, "kind"),
    ("no good entry", {"ALPHA": {"atlas_site": "MARS"}}, "empty"),
    ("lost", {name: cric.QUEUES[name] for name in ("ALPHA", "BETA", "GAMMA", "DELTA")}, "loss"),
]


@pytest.mark.parametrize(("document", "rule"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_a_feed_that_cannot_be_used_is_refused_whole_and_the_old_copy_stays(grid: Place, document: Any, rule: str) -> None:
    before, copied = everything(), last_copy(Feed.objects.get(name="queues"))
    grid.put("/queues", document)
    found = refreshed("queues")
    assert f": {rule}: " in found.fault
    assert found.fault_since is not None
    assert everything() == before
    assert last_copy(found) == copied == json.dumps(cric.QUEUES).encode()
    grid.put("/queues", cric.QUEUES)
    assert refreshed("queues").fault == ""


def test_how_much_may_be_lost_is_configured(grid: Place) -> None:
    gdpconfig.set_override("feeds", "FEED_MAX_LOSS", "0.5", who="ann", why="half the grid moves")
    grid.put("/queues", {name: cric.QUEUES[name] for name in ("ALPHA", "BETA", "GAMMA", "DELTA")})
    assert refreshed("queues").fault == ""
    assert ComputingQueue.objects.filter(gone_at__isnull=False).count() == 2


def test_a_server_that_is_down_slow_truncated_or_redirects_away_changes_nothing(grid: Place) -> None:
    before = everything()
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{"
    for put, told in (
        (lambda: grid.dripping("/queues", head, b" "), "timeout: no whole answer within 0.6 s"),
        (lambda: grid.raw("/queues", head), "truncated: 4999 bytes are missing"),
        (lambda: grid.put("/queues", "", 503), "the answer was 503 Service Unavailable"),
        (
            lambda: grid.put("/queues", "", 302, Location="http://127.0.0.9/"),
            "the host 127.0.0.9:80 is not listed in FEED_HOSTS",
        ),
        (lambda: grid.put("/queues", " " * 200_000), "more than 100000 bytes"),
        (grid.server.server_close, "ConnectionRefusedError: "),
    ):
        put()
        assert refreshed("queues").fault.startswith(told)
        assert everything() == before
    told = next(s.sentence for s in feed_states(clock.now()) if s.feed.name == "queues")
    assert "ago; failing since" in told


def test_a_document_older_than_ours_is_not_taken(grid: Place) -> None:
    newer = copy.deepcopy(cric.QUEUES)
    newer["ALPHA"]["maxrss"] = 32000
    grid.put("/queues", newer, Last_Modified="Mon, 04 May 2026 08:00:00 GMT")
    Feed.objects.filter(name="queues").update(data_at=None)
    assert refreshed("queues").fault == ""
    grid.put("/queues", cric.QUEUES, Last_Modified="Sun, 03 May 2026 08:00:00 GMT")
    assert refreshed("queues").fault == "of 2026-05-03 08:00:00, older than the copy that we have, of 2026-05-04 08:00:00"
    assert ComputingQueue.objects.get(name="ALPHA").maxrss == 32000


def test_a_run_that_was_overtaken_does_not_bring_older_data_back(grid: Place) -> None:
    Feed.objects.filter(name="queues").update(data_at=clock.now() - timedelta(minutes=10))
    slow = Feed.objects.get(name="queues")
    newer = copy.deepcopy(cric.QUEUES)
    newer["ALPHA"]["maxrss"] = 31000
    grid.put("/queues", newer, Last_Modified=format_datetime(clock.now(), usegmt=True))
    refresh()
    now = everything()
    grid.put("/queues", cric.QUEUES, Last_Modified=format_datetime(clock.now() - timedelta(minutes=5), usegmt=True))
    assert refresh_feed(slow, clock.now()) == 0
    assert everything() == now


@pytest.mark.parametrize("changed", [{"enabled": False}, {"place": "http://elsewhere/"}, {"kind": "grid"}, None], ids=str)
def test_a_feed_that_an_operator_changes_while_it_is_read_is_not_taken(grid: Place, changed: dict[str, Any] | None) -> None:
    read, rows = Feed.objects.get(name="queues"), Feed.objects.filter(name="queues")
    grid.put("/queues", {name: entry | {"maxrss": 31000} for name, entry in cric.QUEUES.items()})
    rows.update(**changed) if changed is not None else rows.delete()
    now = everything()
    assert refresh_feed(read, clock.now()) == 0
    grid.put("/queues", "no JSON")
    assert refresh_feed(read, clock.now()) == 0
    assert everything() == now


def test_an_override_survives_every_feed(grid: Place) -> None:
    LocalOverride.objects.create(kind="queue", name="ALPHA", attribute="maxrss", value="9000", reason="swap", beneath=16000)
    ComputingQueue.objects.filter(name="ALPHA").update(maxrss=9000)
    document = copy.deepcopy(cric.QUEUES)
    document["ALPHA"]["maxrss"] = 32000
    grid.put("/queues", document)
    refresh()
    assert ComputingQueue.objects.get(name="ALPHA").maxrss == 9000
    assert LocalOverride.objects.get().beneath == 32000


def test_our_own_document_software_and_networks_are_feeds_too(grid: Place) -> None:
    feed("own", "grid", grid.put("/own", GOOD))
    feed("software", "software", grid.put("/software", cric.SOFTWARE))
    feed("network", "network", grid.put("/network", cric.NETWORK))
    feed("closeness", "closeness", grid.put("/closeness", cric.CLOSENESS))
    Link.objects.create(source_id="SITE-A", destination_id="SITE-B", activity="old", measured_at=clock.now() - timedelta(days=8))
    refresh()
    assert ComputingQueue.objects.get(name="NORTH").local_pilots == 0
    assert StorageEndpoint.objects.get(name="SOUTH_DISK").path == ""
    assert ComputingQueue.objects.get(name="ALPHA").status == "online"
    assert set(Software.objects.values_list("queue", flat=True)) == {"ALPHA", "ALL"}
    assert set(Link.objects.values_list("activity", flat=True)) == {"closeness"}
    assert [f.fault for f in Feed.objects.all()] == [""] * 7


def test_old_feeds_are_warned_of_and_too_old_ones_make_tasks_wait(grid: Place) -> None:
    now = clock.now()
    assert stale_feeds(now) == []
    Feed.objects.filter(name="queues").update(data_at=now - timedelta(hours=7))
    assert {s.feed.name: s.state for s in feed_states(now)} == {"queues": "old", "sites": "fresh", "storages": "fresh"}
    assert stale_feeds(now) == []
    Feed.objects.filter(name="queues").update(data_at=now - timedelta(hours=49), fault="timeout", fault_since=now)
    (why,) = stale_feeds(now)
    assert why.startswith("feed queues: of 2 d ago; failing since ")
    assert why.endswith("timeout; too old to decide on")
    gdpconfig.set_override("feeds", "FEED_MAX_AGE_QUEUES", "50h", who="ann", why="tests")
    assert stale_feeds(now) == []
    Feed.objects.filter(name="queues").update(enabled=False)
    gdpconfig.set_override("feeds", "FEED_MAX_AGE_QUEUES", "1h", who="ann", why="tests")
    assert stale_feeds(now) == []


def test_metrics_of_links_are_never_too_old_to_decide(configured: Place) -> None:
    row = feed("network", "network", "http://127.0.0.1:1/x")
    Feed.objects.filter(pk=row.pk).update(created_at=clock.now() - timedelta(days=30))
    assert stale_feeds(clock.now()) == []


def test_the_admin_takes_feeds_of_listed_places_only_and_shows_how_they_are(grid: Place) -> None:
    root = Client()
    root.force_login(ensure_user("root", superuser=True))
    add = "/admin/brokerage/feed/add/"
    form = {"name": "more", "kind": "cric-queues", "enabled": "on"}
    for place in ("http://10.0.0.1/x", "file:///etc/passwd", "/etc/passwd", "nonsense"):
        assert "place" in root.post(add, form | {"place": place}).context["adminform"].form.errors
    assert "name" in root.post(add, form | {"name": "A B", "place": grid.address("/x")}).context["adminform"].form.errors
    assert root.post(add, form | {"place": grid.address("/x")}).status_code == 302
    page = root.get("/admin/brokerage/feed/queues/change/")
    assert re.search(r"fresh; feed queues: of \d+ s ago", page.text)


def test_a_feed_that_is_given_another_place_takes_what_that_one_has(grid: Place) -> None:
    root = Client()
    root.force_login(ensure_user("root", superuser=True))
    older = format_datetime(clock.now() - timedelta(hours=1), usegmt=True)
    mirror = grid.put("/mirror", {n: entry | {"maxrss": 31000} for n, entry in cric.QUEUES.items()}, Last_Modified=older)
    form = {"kind": "cric-queues", "place": mirror, "enabled": "on"}
    assert root.post("/admin/brokerage/feed/queues/change/", form).status_code == 302
    assert refreshed("queues").fault == ""
    assert ComputingQueue.objects.get(name="ALPHA").maxrss == 31000


def test_a_document_can_be_imported_once_from_a_listed_host(configured: Place) -> None:
    out = io.StringIO()
    call_command("import_grid", configured.put("/sites", cric.SITES), configured.put("/own", GOOD), stdout=out)
    assert "2 sites (2 added); 2 storage endpoints (2 added); 2 queues (2 added)" in out.getvalue()
    assert ComputingQueue.objects.get(name="NORTH").local_pilots == 0
    for address, told in (
        ("http://127.0.0.1:9/x", "is not listed in FEED_HOSTS"),
        (configured.put("/none", "", 404), "the answer was 404"),
        (configured.put("/bad", "{"), "bad is refused, nothing was changed:"),
    ):
        with pytest.raises(CommandError, match=told):
            call_command("import_grid", address)


def test_an_override_wins_over_a_feed_its_page_says_what_the_feed_says_now_and_that_holds_when_it_is_taken_away(
    grid: Place, client: Client
) -> None:
    client.force_login(visitor())
    change_overrides(SYSTEM, "queue", "ALPHA", {"status": "online", "maxrss": "9000"}, "drill", None)
    document = copy.deepcopy(cric.QUEUES)
    document["ALPHA"] |= {"status": "offline", "maxrss": 32000}
    grid.put("/queues", document)
    refresh()
    alpha = ComputingQueue.objects.get(name="ALPHA")
    assert (alpha.status, alpha.maxrss) == ("online", 9000)
    text = " ".join(re.sub("<[^>]+>", " ", client.get("/queues/ALPHA/").text).split()).replace("( ", "(").replace(" )", ")")
    assert "An operator set maxrss = 9000 (the feed queues says 32,000)" in text
    assert "An operator set status = online (the feed queues says offline)" in text
    change_overrides(SYSTEM, "queue", "ALPHA", {"status": None, "maxrss": None}, "over", None)
    alpha.refresh_from_db()
    assert (alpha.status, alpha.maxrss) == ("offline", 32000)
    change_overrides(SYSTEM, "queue", "ALPHA", {"status": "online"}, "drill", None)
    del document["ALPHA"]
    grid.put("/queues", document)
    refresh()
    alpha.refresh_from_db()
    assert (alpha.status, alpha.gone_at is not None) == ("online", True)
    change_overrides(SYSTEM, "queue", "ALPHA", {"status": None}, "over", None)
    alpha.refresh_from_db()
    assert alpha.status == "offline"
