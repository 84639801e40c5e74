"""Standard output and error of a job as plain files beside its log: who writes them, who reads them, and how long they stay."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core.management import call_command
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.agency.models import Agent
from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.gdpconfig import set_override
from broker_site.foundation.sql.prepared import Prepared, Rows
from brokerage.ledger.lease import Lease
from brokerage.models import ComputingQueue, StorageEndpoint
from brokerage.pilot.remote_root import RemoteRoot
from brokerage.pilot.remote_storage import RemoteFile, download
from brokerage.pilot.signed_urls import Grant, read_grant
from brokerage.pilot.storage_root import MARKER
from brokerage.queries.job_document import job_document
from brokerage.queries.signed_places import storage_key
from monitoring.log_pieces import PIECE
from tests.builders import grid, parameters, submitted
from tests.flow.steps import end, good, run_agents, take
from tests.flow.test_log_pages import failed_with, links, pack
from tests.storage_server.dripping import dripping
from tests.storage_server.serving import Serving
from workqueues.models import CatalogueFile, Replica

pytestmark = pytest.mark.django_db

STREAMS = ("pilot.log", "stdout", "stderr")
CONTENTS = {"pilot.log": b"staged in\n", "stdout": b"".join(b"line %09d\n" % n for n in range(20_000)), "stderr": b"short"}


@pytest.fixture
def failed(client: Client, tmp_path: Path) -> tuple[int, Path]:
    """A job that failed with a log, and where that lies; whose user looks."""
    return failed_with(client, tmp_path, 10)


def store(log: Path, contents: dict[str, bytes] = CONTENTS, *, age_s: float = 0) -> list[Path]:
    """The streams of a log as plain files beside it."""
    log.parent.mkdir(parents=True, exist_ok=True)
    files = [log.with_name(f"{log.name}.{stream}") for stream in contents]
    for file, content in zip(files, contents.values(), strict=True):
        file.write_bytes(content)
        os.utime(file, (time.time() - age_s,) * 2)
    return files


def log_of(queue: ComputingQueue) -> tuple[dict[str, Any], int]:
    """The log in the document of a job, and the number of the job."""
    job = take(queue).job_id
    return next(o for o in job_document(job)["outputs"] if o["type"] == "log"), job


def test_a_pilot_is_told_where_what_its_log_is_made_of_goes_without_a_further_statement(
    django_assert_num_queries: DjangoAssertNumQueries, monkeypatch: pytest.MonkeyPatch
) -> None:
    (queue,) = grid("ALPHA", path="/data")
    submitted(parameters("t1", nEvents=10, nEventsPerJob=10))
    run_agents()
    log, job = log_of(queue)
    expected = [{"stream": s, "lfn": f"{log['lfn']}.{s}", "path": f"{log['path']}.{s}"} for s in STREAMS]
    assert log["streams"] == expected
    executed, run = list[str](), Prepared.run

    def counted(statement: Prepared, *values: Any) -> Rows:
        executed.append(statement.name)
        return run(statement, *values)

    monkeypatch.setattr(Prepared, "run", counted)
    with django_assert_num_queries(0):
        outputs = job_document(job)["outputs"]
    assert executed == ["job_document"], "one statement tells all of a job"
    assert ["streams" in output for output in outputs] == [output["type"] == "log" for output in outputs]


def test_a_job_without_a_log_is_told_nothing_new() -> None:
    (queue,) = grid("ALPHA", path="/data")
    submitted({name: value for name, value in parameters("t1", nEvents=10, nEventsPerJob=10).items() if name != "log"})
    run_agents()
    outputs = job_document(take(queue).job_id)["outputs"]
    assert [(output["type"], "streams" in output) for output in outputs] == [("output", False)]


def test_addresses_of_streams_are_signed_for_this_attempt_these_names_and_what_a_log_keeps() -> None:
    (queue,) = grid("ALPHA")
    StorageEndpoint.objects.update(url="http://storage.example:8443", path="")
    set_override("storage", "LOG_MAX", 50_000, who="ada", why="test")
    submitted(parameters("t1", nEvents=10, nEventsPerJob=10))
    run_agents()
    log, job = log_of(queue)
    name = allowed("PUT", log["url"]).name
    for stream, told in zip(STREAMS, log["streams"], strict=True):
        assert set(told) == {"stream", "lfn", "url", "remove_url"}, "a server is no directory"
        write, remove = allowed("PUT", told["url"]), allowed("DELETE", told["remove_url"])
        assert (write.name, remove.name) == (f"{name}.{stream}",) * 2
        assert (write.job, write.epoch, write.size) == (job, 1, 50_064)
        assert (remove.job, remove.epoch, remove.expires > write.expires) == (job, 1, True)


def allowed(method: str, url: str) -> Grant:
    parts = urlsplit(url)
    return read_grant(method, parts.path.removeprefix("/"), parts.query, [storage_key("ALPHA_DISK", 1)], time.time())


def test_a_page_shows_plain_files_where_the_piece_is_and_leaves_the_archive_alone(
    client: Client, failed: tuple[int, Path]
) -> None:
    job_id, log = failed
    store(log)
    log.write_bytes(b"\x1f\x8bno archive at all")
    address = f"/jobs/{job_id}/log/"
    page = client.get(address).content.decode()
    for part in ("line 000019999", "short", "staged in", "the whole file"):
        assert part in page
    assert "line 000000000" not in page
    first = client.get(address + links(page)["beginning"]).content.decode()
    assert "line 000000000" in first
    text = client.get(f"{address}text/", {"stream": "stdout", "from": "0"})
    assert (text["Content-Type"], text["X-Piece"]) == ("text/plain; charset=utf-8", f"bytes 0-{PIECE} of 300000")
    assert text.content == CONTENTS["stdout"][:PIECE]


def test_a_user_fetches_one_of_them_whole_and_a_stranger_none(client: Client, failed: tuple[int, Path]) -> None:
    job_id, log = failed
    store(log)
    log.write_bytes(b"archive")
    address = f"/jobs/{job_id}/log/file/"
    answer = client.get(address, {"stream": "stdout"})
    assert (answer.content, answer["Content-Type"]) == (CONTENTS["stdout"], "text/plain; charset=utf-8")
    assert answer["Content-Disposition"] == f'attachment; filename="{log.name}.stdout"'
    assert (answer["X-Content-Type-Options"], "no-store" in answer["Cache-Control"]) == ("nosniff", True)
    for other in ("", "core", "../stdout"):
        assert client.get(address, {"stream": other}).status_code == 404
    StorageEndpoint.objects.update(url="http://storage.example:8443")
    link = client.get(address, {"stream": "stdout"})
    parts = urlsplit(link["Location"])
    assert (link.status_code, parts.path) == (302, f"/{Replica.objects.get().path}.stdout")
    assert 0 < int(parse_qs(parts.query)["expires"][0]) - time.time() <= 61
    client.force_login(ensure_user("eve", roles=[("other", "operator")]))
    assert client.get(address, {"stream": "stdout"}).status_code == 404


def test_a_stream_too_large_to_pass_on_is_told_and_still_shown_in_pieces(client: Client, failed: tuple[int, Path]) -> None:
    job_id, log = failed
    stdout = store(log)[1]
    log.write_bytes(b"archive")
    os.truncate(stdout, 10_000_065)
    refused = client.get(f"/jobs/{job_id}/log/file/", {"stream": "stdout"})
    assert (refused.status_code, b"the server passes on" in refused.content) == (503, True)
    assert client.get(f"/jobs/{job_id}/log/").content.decode().count("the whole file") == 2
    os.truncate(stdout, 10_000_064)
    assert len(client.get(f"/jobs/{job_id}/log/file/", {"stream": "stdout"}).content) == 10_000_064


@pytest.mark.parametrize("missing", [STREAMS, ("stderr",)])
def test_where_they_are_not_all_there_the_page_unpacks_the_archive(
    client: Client, failed: tuple[int, Path], missing: tuple[str, ...]
) -> None:
    """Older pilots, those that could not store them, and copies of the log elsewhere."""
    job_id, log = failed
    store(log, {name: b"of the file" for name in STREAMS if name not in missing})
    pack(log, {"pilot.log": b"", "stdout": b"of the archive", "stderr": b"of the archive"})
    page = client.get(f"/jobs/{job_id}/log/").content.decode()
    assert page.count("of the archive") == 2
    assert "of the file" not in page
    assert "the whole file" not in page
    whole = client.get(f"/jobs/{job_id}/log/file/", {"stream": "stderr"})
    assert (whole.status_code, "the archive of the log may have it" in whole.content.decode()) == (404, True)


def collected(folder: Path) -> Path:
    """The log is brought to another storage, as collection does it, and its copy where the job wrote it goes: where it is now."""
    root = folder / "collected"
    root.mkdir()
    (root / MARKER).write_text("BETA_DISK\n")
    endpoint = StorageEndpoint.objects.get()
    StorageEndpoint.objects.bulk_create([replaced(endpoint, name="BETA_DISK", path=str(root))])
    copy = Replica.objects.get()
    brought = root / copy.path
    brought.parent.mkdir(parents=True)
    pack(brought, {"pilot.log": b"", "stdout": b"of the archive", "stderr": b"of the archive"})
    Replica.objects.create(file=copy.file, storage="BETA_DISK", path=copy.path)
    Replica.objects.filter(id=copy.id).update(state="deleting")
    run_agent("evict", looked=True)
    assert [left.storage for left in Replica.objects.all()] == ["BETA_DISK"]
    return brought


def replaced(endpoint: StorageEndpoint, **values: Any) -> StorageEndpoint:
    """Another endpoint like this one."""
    fields = {field.attname: getattr(endpoint, field.attname) for field in endpoint._meta.concrete_fields}
    return StorageEndpoint(**{**fields, **values})


def test_of_a_log_that_was_brought_elsewhere_the_archive_is_shown_and_it_is_told_where_its_files_went(
    client: Client, failed: tuple[int, Path], tmp_path: Path
) -> None:
    job_id, log = failed
    log.write_bytes(b"archive")
    store(log)
    address, told = f"/jobs/{job_id}/log/", "the job wrote its log at ALPHA_DISK, and the archive alone was brought to BETA_DISK"
    assert told not in client.get(address).content.decode()
    brought = collected(tmp_path)
    page = client.get(address).content.decode()
    assert (page.count("of the archive"), told in page, "the whole file" in page) == (2, True, False)
    refused = client.get(f"{address}file/", {"stream": "stdout"})
    assert (refused.status_code, told in refused.content.decode()) == (404, True)
    assert client.get(f"{address}text/", {"stream": "stdout"}).content == b"of the archive"
    brought.unlink()
    gone = client.get(f"{address}text/", {"stream": "stdout"})
    assert (gone.status_code, told in gone.content.decode()) == (503, True)


def swept(*arguments: str) -> dict[str, Any]:
    out = io.StringIO()
    with contextlib.suppress(SystemExit):
        call_command("check_storage", "--json", *arguments, stdout=out)
    (result,) = json.loads(out.getvalue())["storages"]
    return dict(result)


def test_a_sweep_leaves_them_alone_while_their_log_lives_and_no_longer(tmp_path: Path, client: Client) -> None:
    job_id, log = failed_with(client, tmp_path, 7)
    log.write_bytes(b"archive")
    kept = store(log, age_s=90_000)
    foreign = store(log.with_name("unknown.tgz"), {"stdout": b"x"}, age_s=90_000)
    part = log.with_name(f".{log.name}.stdout.{job_id}.1.part")
    part.write_bytes(b"x")
    os.utime(part, (time.time() - 90_000,) * 2)
    result = swept("--remove-orphans")
    assert (result["right"], result["removed"], result["problems"]) == (1, 2, 0)
    assert [file.exists() for file in [*kept, *foreign, part, log]] == [True] * 3 + [False, False, True]
    Replica.objects.all().delete()
    assert swept("--remove-orphans", "--older-than", "0s")["removed"] == 4
    assert not any(file.exists() for file in [*kept, log])


def leased_at(folder: Path) -> Lease:
    """A job that a pilot has, whose outputs go to a storage in this folder."""
    (queue,) = grid("ALPHA", path=str(folder / "storage"))
    call_command("storage", "mark", "ALPHA_DISK", "--create", stdout=io.StringIO())
    submitted(parameters("t1", nEvents=10, nEventsPerJob=10))
    run_agents()
    return take(queue)


def test_a_sweep_leaves_those_alone_that_a_job_is_writing(tmp_path: Path) -> None:
    held = leased_at(tmp_path)
    log = next(Path(o["path"]) for o in job_document(held.job_id)["outputs"] if o["type"] == "log")
    output = next(Path(o["path"]) for o in job_document(held.job_id)["outputs"] if o["type"] == "output")
    written = store(log, age_s=90_000)
    written += store(log.with_name(f".{log.name}"), {f"stdout.{held.job_id}.1.part": b"x"}, age_s=90_000)
    others = store(output, {"stdout": b"no log"}, age_s=90_000)
    assert swept("--remove-orphans")["removed"] == 1
    assert [file.exists() for file in [*written, *others]] == [True] * 4 + [False]
    end(held, good(held.job_id))
    assert [Path(path).name for path in swept()["orphans"]] == [written[-1].name]


def doomed() -> str:
    """Let the log be removed as its dataset is given up; what could not be."""
    Replica.objects.update(state="deleting")
    run_agent("evict", looked=True)
    return Agent.objects.values_list("left_out", flat=True).get(name="evict")


def test_what_removes_a_log_removes_them_and_no_file_of_somebody_else(client: Client, failed: tuple[int, Path]) -> None:
    _, log = failed
    log.write_bytes(b"archive")
    pilot_log, stdout, stderr = store(log)
    dataset = CatalogueFile.objects.get(lfn=log.name).dataset
    named_so = CatalogueFile.objects.create(dataset=dataset, lfn=stderr.name, fsize=5, checksum="00000001")
    path = f"{Replica.objects.get().path}.stderr"
    Replica.objects.create(file=named_so, storage="ALPHA_DISK", path=path)
    Replica.objects.exclude(file=named_so).update(state="deleting")
    run_agent("evict", looked=True)
    assert [file.exists() for file in (log, pilot_log, stdout, stderr)] == [False, False, False, True]
    assert Replica.objects.get().file_id == named_so.id


def test_an_output_that_goes_takes_no_file_along_that_is_called_like_a_stream(tmp_path: Path) -> None:
    leased = leased_at(tmp_path)
    output = next(Path(o["path"]) for o in job_document(leased.job_id)["outputs"] if o["type"] == "output")
    end(leased, good(leased.job_id))
    (other,) = store(output, {"stdout": b"x"})
    output.write_bytes(b"made")
    assert doomed() == ""
    assert (output.exists(), other.exists()) == (False, True)


def test_a_directory_in_the_place_of_a_plain_file_is_told_and_keeps_no_log(failed: tuple[int, Path]) -> None:
    _, log = failed
    log.write_bytes(b"archive")
    pilot_log, stdout, stderr = store(log)
    stdout.unlink()
    (stdout / "in the way").mkdir(parents=True)
    assert "stdout is no file" in doomed()
    assert [file.exists() for file in (log, pilot_log, stdout, stderr)] == [False, False, True, False]
    assert not Replica.objects.exists()
    assert doomed() == ""


def test_a_log_whose_streams_cannot_be_removed_just_now_is_tried_again(
    failed: tuple[int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, log = failed
    log.write_bytes(b"archive")
    store(log)

    def broken(name: str, **_: Any) -> None:
        raise OSError(errno.EIO, f"no {name}")

    with monkeypatch.context() as patched:
        patched.setattr("brokerage.transfers.copy_removal.os.unlink", broken)
        assert "cannot be removed" in doomed()
    assert Replica.objects.get().state == "deleting"
    Replica.objects.update(removal_at=None)
    assert doomed() == ""
    assert not Replica.objects.exists()


def test_a_directory_in_the_place_of_a_file_keeps_that_one_alone(
    failed: tuple[int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first batch holds nothing but what cannot be removed; the rest of the storage is cleaned in the same run."""
    _, log = failed
    log.mkdir(parents=True)
    held = Replica.objects.get()
    later = log.with_name("later")
    later.write_bytes(b"x")
    file = CatalogueFile.objects.create(dataset=held.file.dataset, lfn="later", fsize=1, checksum="00000001")
    Replica.objects.create(file=file, storage="ALPHA_DISK", path=f"{held.path.rpartition('/')[0]}/later")
    monkeypatch.setattr("brokerage.agents.evict.BATCH", 1)
    assert f"{log.name} is no file" in doomed()
    assert (log.is_dir(), later.exists()) == (True, False)
    assert (Replica.objects.get().id, Replica.objects.get().state) == (held.id, "deleting")


@pytest.fixture
def server(failed: tuple[int, Path], tmp_path: Path) -> Iterator[Serving]:
    """The storage of the log as a server without a directory."""
    root = tmp_path / "storage" / "ALPHA"
    serving = Serving(tmp_path, "ALPHA_DISK", root=root, key=storage_key("ALPHA_DISK", 1))
    StorageEndpoint.objects.update(url=serving.base, path="")
    yield serving
    serving.stop()


@pytest.mark.servers
def test_a_page_reads_ranges_of_files_behind_a_server_however_large_the_log_is(
    client: Client, failed: tuple[int, Path], server: Serving, tmp_path: Path
) -> None:
    job_id, log = failed
    store(log, {**CONTENTS, "stderr": b""})
    log.write_bytes(bytes(10_000_001))
    page = client.get(f"/jobs/{job_id}/log/").content.decode()
    for part in ("line 000019999", "staged in", "It is empty."):
        assert part in page
    text = client.get(f"/jobs/{job_id}/log/text/", {"stream": "stdout", "from": "15000"})
    assert text.content == CONTENTS["stdout"][15_000 : 15_000 + PIECE]
    link = client.get(f"/jobs/{job_id}/log/file/", {"stream": "stdout"})["Location"]
    assert download("ALPHA_DISK", link, tmp_path / "fetched").size == 300_000
    with pytest.raises(PermissionError):
        download("ALPHA_DISK", link.replace(".stdout?", ".stderr?"), tmp_path / "stolen")


@pytest.mark.servers
def test_behind_a_server_older_logs_are_unpacked_and_one_that_is_away_is_told(
    client: Client, failed: tuple[int, Path], server: Serving
) -> None:
    job_id, log = failed
    pack(log, {"stdout": b"of the archive"})
    assert "of the archive" in client.get(f"/jobs/{job_id}/log/").content.decode()
    assert client.get(f"/jobs/{job_id}/log/file/", {"stream": "stdout"}).status_code == 404
    server.stop()
    assert "storage ALPHA_DISK is down" in client.get(f"/jobs/{job_id}/log/").content.decode()
    refused = client.get(f"/jobs/{job_id}/log/file/", {"stream": "stdout"})
    assert (refused.status_code, "storage ALPHA_DISK is down" in refused.content.decode()) == (503, True)


@pytest.mark.servers
def test_behind_a_server_they_go_with_their_log_and_are_nobodys_orphans_before(failed: tuple[int, Path], server: Serving) -> None:
    _, log = failed
    log.write_bytes(b"x" * 10)
    store(log, age_s=90_000)
    assert swept()["problems"] == 0
    assert doomed() == ""
    assert server.files() == []


@pytest.mark.servers
def test_behind_a_server_a_directory_keeps_a_file_but_no_log_beside_it(failed: tuple[int, Path], server: Serving) -> None:
    _, log = failed
    log.mkdir(parents=True)
    stdout = log.with_name(f"{log.name}.stdout")
    stdout.mkdir()
    assert "is no file" in doomed()
    assert Replica.objects.get().state == "deleting"
    log.rmdir()
    log.write_bytes(b"archive")
    Replica.objects.update(removal_at=None)
    assert "stdout is no file" in doomed()
    assert (log.exists(), stdout.exists(), Replica.objects.exists()) == (False, True, False)


@pytest.mark.parametrize("begin", [b"HTTP/1.1 200 OK\r\nX-", b"HTTP/1.1 404 Not Found\r\nX-"])
def test_a_server_that_drips_holds_no_request_and_is_told(
    client: Client, failed: tuple[int, Path], begin: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A byte now and then never is a silence that a connection would be given up for."""
    job_id, _ = failed
    monkeypatch.setattr("monitoring.stored_files.READ_S", 0.3)
    address, told = f"/jobs/{job_id}/log/", "storage ALPHA_DISK is too slow: its server had not sent all within 0.3 s"
    with dripping(begin) as url:
        StorageEndpoint.objects.update(url=url, path="")
        assert told in client.get(address).content.decode()
        for part in ("text", "file"):
            answer = client.get(f"{address}{part}/", {"stream": "stdout"})
            assert (answer.status_code, told in answer.content.decode()) == (503, True)


def test_an_archive_that_drips_is_given_up_as_well(
    client: Client, failed: tuple[int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id, _ = failed
    monkeypatch.setattr("monitoring.stored_files.READ_S", 0.3)
    monkeypatch.setattr("monitoring.stored_files._plain_pieces", missing_file)
    monkeypatch.setattr(RemoteRoot, "head", lambda *_, **__: RemoteFile(1_000, "", "tag"))
    with dripping(b'HTTP/1.1 200 OK\r\nETag: "tag"\r\nContent-Length: 1000\r\n\r\n') as url:
        StorageEndpoint.objects.update(url=url, path="")
        assert "had not sent all within 0.3 s" in client.get(f"/jobs/{job_id}/log/").content.decode()


def missing_file(*_: Any) -> Any:
    raise FileNotFoundError(errno.ENOENT, "no plain file")
