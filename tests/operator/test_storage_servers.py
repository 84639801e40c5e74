"""Endpoints that the broker reaches by their server alone: how they are, what lies there, and the keys of their servers."""

from __future__ import annotations

import io
import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core.management import CommandError, call_command

from brokerage.feeds.storage_roots import look_at_all
from brokerage.models import StorageEndpoint
from brokerage.pilot.remote_root import RemoteRoot
from brokerage.pilot.remote_storage import download
from brokerage.pilot.storage_root import MARKER
from brokerage.queries.pilots import storage_roots
from brokerage.queries.signed_places import storage_key
from monitoring.queries.job import Copy, OutputRow
from monitoring.stored_files import TooLarge, Unreadable, content, signed_link
from tests.builders import catalogue_dataset, grid
from tests.flow.steps import run_agents
from tests.pilot.peer import adler
from tests.storage_server.serving import Serving
from workqueues.catalogue import DatasetKey, catalogue
from workqueues.models import CatalogueFile

pytestmark = [pytest.mark.django_db, pytest.mark.servers]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Serving]:
    grid("ALPHA")
    serving = Serving(tmp_path, "ALPHA_DISK", key=storage_key("ALPHA_DISK", 1))
    StorageEndpoint.objects.update(url=serving.base)
    yield serving
    serving.stop()


def printed(*words: str) -> str:
    out = io.StringIO()
    call_command(*words, stdout=out)
    return out.getvalue().strip()


def state() -> tuple[str, str]:
    run_agents(1, ("storage",))
    return StorageEndpoint.objects.values_list("root_state", "root_fault").get()


def files_of(server: Serving) -> list[CatalogueFile]:
    """Three registered files: one as registered, one damaged, one absent."""
    catalogue_dataset("in.data", 3, size=7)
    CatalogueFile.objects.update(checksum=f"ad:{adler(b'content')}")
    (server.root / "in.data.000000").write_bytes(b"content")
    (server.root / "in.data.000001").write_bytes(b"kontent")
    return list(CatalogueFile.objects.order_by("lfn"))


def test_the_root_behind_a_server_is_seen_as_one_in_a_directory(server: Serving) -> None:
    assert state() == ("up", "")
    assert (StorageEndpoint.objects.get().root_gb or 0) > 0
    assert printed("storage", "list") == f"ALPHA_DISK  up  {server.base}"
    (server.root / MARKER).rename(server.folder / "mark")
    assert state()[0] == "down"
    assert "the mark of its root cannot be read" in state()[1]
    (server.folder / "mark").rename(server.root / MARKER)
    assert state() == ("up", "")
    server.key_file.write_text("x" * 64 + "\n")
    assert "its server has another key" in state()[1]
    server.stop()
    assert state() == ("down", "storage ALPHA_DISK is down: its server: Connection refused")


def test_one_server_that_hangs_does_not_hold_up_the_look_at_others(server: Serving) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hung = RemoteRoot("HUNG", f"http://127.0.0.1:{silent.getsockname()[1]}", "k" * 64)
        began = time.monotonic()
        looks = look_at_all({**storage_roots(), "HUNG": hung}, 1.0)
        assert time.monotonic() - began < 4
    assert looks["ALPHA_DISK"].fault == ""
    assert looks["HUNG"].fault == "storage HUNG is down: its server has not answered for 1 s"


def test_a_server_that_hangs_up_is_told_as_one_that_refuses() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def hang_up() -> None:
            listener.accept()[0].close()

        hangs_up = threading.Thread(target=hang_up)
        hangs_up.start()
        rude = RemoteRoot("RUDE", f"http://127.0.0.1:{listener.getsockname()[1]}", "k" * 64)
        fault = look_at_all({"RUDE": rude})["RUDE"].fault
        hangs_up.join()
    assert fault.startswith("storage RUDE is down: its server: ")


def test_the_catalogue_looks_for_files_at_the_server(server: Serving) -> None:
    lfns = [file.lfn for file in files_of(server)]
    looks = catalogue().check(DatasetKey("demo", "in.data"), lfns)
    assert [(looks[lfn][0].found, looks[lfn][0].state) for lfn in lfns] == [
        ("intact", "up"),
        ("damaged", "up"),
        ("absent", "up"),
    ]
    server.stop()
    looks = catalogue().check(DatasetKey("demo", "in.data"), lfns)
    assert {looks[lfn][0].state for lfn in lfns} == {"down"}


def test_a_server_is_held_against_the_catalogue_and_orphans_are_removed(server: Serving) -> None:
    files_of(server)
    (server.root / "sub").mkdir()
    (server.root / "sub" / "orphan").write_bytes(b"x")
    with pytest.raises(SystemExit):
        printed("check_storage", "--json")
    out = io.StringIO()
    with pytest.raises(SystemExit):
        call_command("check_storage", "--json", "--older-than", "0s", "--remove-orphans", stdout=out)
    (told,) = json.loads(out.getvalue())["storages"]
    assert (told["right"], told["lost"], told["orphans"], told["removed"]) == (2, ["in.data.000002"], ["sub/orphan"], 1)
    assert server.files() == ["in.data.000000", "in.data.000001"]


def test_a_page_shows_a_file_that_lies_behind_a_server(server: Serving) -> None:
    (server.root / "d").mkdir()
    (server.root / "d" / "out").write_bytes(b"content")
    (server.root / "large").write_bytes(bytes(10_000_001))
    out = OutputRow(1, "out", "d", "output", "finished", 7, "", None, (Copy("ALPHA_DISK", "d/out"),), False, None)
    assert content(out) == b"content"
    with pytest.raises(Unreadable, match=r"the server passes on 10.MB at most"):
        content(replace(out, copies=(Copy("ALPHA_DISK", "large"),)))
    server.stop()
    with pytest.raises(Unreadable, match="storage ALPHA_DISK is down"):
        content(out)


def test_a_file_too_large_for_the_page_is_fetched_by_a_link_signed_for_it_alone_and_a_minute(
    server: Serving, tmp_path: Path
) -> None:
    (server.root / "large").write_bytes(bytes(10_000_001))
    (server.root / "other").write_bytes(b"secret")
    out = OutputRow(1, "out", "d", "output", "finished", 10_000_001, "", None, (Copy("ALPHA_DISK", "large"),), False, None)
    with pytest.raises(TooLarge):
        content(out)
    link = signed_link(out)
    left = int(parse_qs(urlsplit(link).query)["expires"][0]) - time.time()
    assert 0 < left <= 61
    assert download("ALPHA_DISK", link, tmp_path / "fetched").size == 10_000_001
    with pytest.raises(PermissionError):
        download("ALPHA_DISK", link.replace("/large?", "/other?"), tmp_path / "stolen")
    StorageEndpoint.objects.update(root_state="down")
    assert signed_link(out) == ""


def test_a_new_key_is_known_before_it_is_used(server: Serving) -> None:
    before, upcoming = printed("storage", "key", "ALPHA_DISK"), printed("storage", "key", "ALPHA_DISK", "--next")
    assert before == server.key != upcoming
    server.key_file.write_text(f"{before}\n{upcoming}\n")
    assert state()[0] == "up"
    assert printed("storage", "key", "ALPHA_DISK", "--new") == upcoming
    assert printed("storage", "key", "ALPHA_DISK") == upcoming
    assert state()[0] == "up"
    server.key_file.write_text(f"{upcoming}\n")
    assert state()[0] == "up"


def test_what_cannot_be_is_told(server: Serving) -> None:
    with pytest.raises(CommandError, match="there is no storage endpoint NONE"):
        printed("storage", "key", "NONE")
    with pytest.raises(CommandError, match="is marked where its server runs"):
        printed("storage", "mark", "ALPHA_DISK")
    with pytest.raises(CommandError, match="say its directory with --root"):
        printed("storage", "serve", "ALPHA_DISK")
