"""What a user sees of the log of a job: pieces of any log, by links that need no script, as a page and as plain text."""

from __future__ import annotations

import io
import re
import tarfile
import tracemalloc
from collections.abc import Mapping
from html import unescape
from pathlib import Path

import pytest
from django.test import Client

from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.gdpconfig import set_override
from brokerage.models import StorageEndpoint
from brokerage.queries.job_document import job_document
from brokerage.rules.dispatch.settlement import Report, ReportedOutput
from monitoring.log_pieces import PIECE
from tests.builders import grid, parameters, submitted
from tests.flow.steps import end, mark_storages, run_agents, take
from workqueues.models import File, Replica

LARGE = 2 * 10**9
LINK = re.compile(r'<a href="([^"]+)">([^<]+)</a>')


@pytest.fixture
def failed(client: Client, tmp_path: Path) -> tuple[int, Path]:
    """A job that failed with a log, and where that is to lie; whose user looks."""
    return failed_with(client, tmp_path, 10)


def failed_with(client: Client, tmp_path: Path, size: int) -> tuple[int, Path]:
    (queue,) = grid("ALPHA", path=str(tmp_path / "storage"))
    mark_storages(tmp_path)
    submitted(parameters("t1", nEvents=10, nEventsPerJob=10))
    run_agents()
    leased = take(queue)
    log = next(o for o in job_document(leased.job_id)["outputs"] if o["type"] == "log")
    end(leased, Report("failed", [ReportedOutput(log["lfn"], size, "0000000a", log["storage"])], error_code="PAYLOAD_EXIT"))
    path = tmp_path / "storage" / "ALPHA" / Replica.objects.get(file__lfn=log["lfn"]).path
    path.parent.mkdir(parents=True, exist_ok=True)
    client.force_login(ensure_user("ada", roles=[("demo", "operator")]))
    return leased.job_id, path


def pack(path: Path, members: Mapping[str, bytes]) -> None:
    with tarfile.open(path, "w:gz", compresslevel=1) as tar:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))


def links(page: str) -> dict[str, str]:
    return {word: unescape(address).split("#")[0] for address, word in LINK.findall(page)}


@pytest.mark.django_db
def test_a_user_leafs_through_a_long_output_by_links(client: Client, failed: tuple[int, Path]) -> None:
    job_id, path = failed
    pack(path, {"stdout": b"".join(b"line %09d\n" % n for n in range(20_000)), "stderr": b"short"})
    address = f"/jobs/{job_id}/log/"
    page = client.get(address).content.decode()
    assert "line 000019999" in page
    assert "line 000000000" not in page
    assert "bytes 236,000 to 300,000 of 300,000" in page.replace("\N{THIN SPACE}", ",").replace("\N{NARROW NO-BREAK SPACE}", ",")
    first = client.get(address + links(page)["beginning"]).content.decode()
    assert "line 000000000" in first
    assert "short" in first
    assert "earlier" not in links(first)
    second = client.get(address + links(first)["later"]).content.decode()
    assert "line 000004267" in second
    assert "line 000004200" not in second
    assert client.get(address + links(second)["end"]).content.decode().count("line 000019999") == 1
    text = client.get(links(first)["as plain text"])
    assert text["Content-Type"] == "text/plain; charset=utf-8"
    assert text["X-Content-Type-Options"] == "nosniff"
    assert text["X-Piece"] == f"bytes 0-{PIECE} of 300000"
    assert len(text.content) == PIECE


@pytest.mark.django_db
def test_a_plain_log_of_2_gb_is_shown_in_pieces_with_flat_memory(client: Client, tmp_path: Path) -> None:
    job_id, path = failed_with(client, tmp_path, LARGE)
    with path.open("wb") as file:
        file.seek(LARGE - 100)
        file.write(b"\n" * 60 + b"the last words of the payload" + b"\n" * 11)
    client.get(f"/jobs/{job_id}/log/")  # what the first page loads is not the log's
    tracemalloc.start()
    binary = client.get(f"/jobs/{job_id}/log/").content.decode()
    text = client.get(f"/jobs/{job_id}/log/text/", {"stream": path.name, "from": str(LARGE - 90)}).content.decode()
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()
    assert "the last words of the payload" in text
    assert "This piece does not look like text" in binary
    assert "too large to be passed on here: it is at ALPHA_DISK" in binary
    output = f"/jobs/{job_id}/outputs/{File.objects.get(out_job_id=job_id, type='log').id}/"
    refused = client.get(output)
    assert refused.status_code == 503
    assert (
        "It has 2\N{NARROW NO-BREAK SPACE}GB; the server passes on 10\N{NARROW NO-BREAK SPACE}MB at most."
        in refused.content.decode()
    )

    StorageEndpoint.objects.update(url="http://storage.example:8443")
    assert "from its storage, by a link that is good for a minute" in client.get(f"/jobs/{job_id}/log/").content.decode()
    link = client.get(output)
    assert link.status_code == 302
    assert link["Location"].startswith(f"http://storage.example:8443/{Replica.objects.get().path}?")
    assert "no-store" in link["Cache-Control"]


@pytest.mark.django_db
def test_hostile_names_and_texts_are_shown_as_they_are_written(client: Client, failed: tuple[int, Path]) -> None:
    job_id, path = failed
    hostile = "<script>alert(1)</script>&\"'"
    pack(path, {hostile: f"{hostile}\x1b[31m\u202e{hostile}\n".encode() * 4_000})
    address = f"/jobs/{job_id}/log/"
    page = client.get(address).content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert not {"\x1b", "\u202e"} & set(page)
    first = client.get(address + links(page)["beginning"]).content.decode()
    assert "later" in links(first)
    text = client.get(links(first)["as plain text"])
    assert (text.status_code, text["Content-Type"]) == (200, "text/plain; charset=utf-8")
    assert text.content.decode().startswith(hostile)


@pytest.mark.django_db
def test_a_stream_or_a_begin_that_is_none_is_told(client: Client, failed: tuple[int, Path]) -> None:
    job_id, path = failed
    pack(path, {"stdout": b"out"})
    page = client.get(f"/jobs/{job_id}/log/", {"stream": "<b>", "from": "x"}).content.decode()
    assert "This log has no stream &lt;b&gt;." in page
    assert "out" in page
    text = client.get(f"/jobs/{job_id}/log/text/", {"stream": "x"})
    assert (text.status_code, text.content.decode()) == (
        404,
        f"The log of job {job_id} has no such stream. It has: stdout.\n",
    )
    assert client.get(f"/jobs/{job_id}/log/text/", {"stream": "stdout", "from": "9" * 30}).content == b"out"
    client.force_login(ensure_user("eve", roles=[("other", "operator")]))
    assert client.get(f"/jobs/{job_id}/log/text/", {"stream": "stdout"}).status_code == 404
    path.unlink()
    client.force_login(ensure_user("ada", roles=[("demo", "operator")]))
    assert client.get(f"/jobs/{job_id}/log/text/", {"stream": "stdout"}).status_code == 503


@pytest.mark.django_db
def test_how_much_a_log_keeps_is_set_and_told_to_the_pilot() -> None:
    (queue,) = grid("ALPHA")
    submitted(parameters("t1", nEvents=10, nEventsPerJob=10))
    run_agents()
    leased = take(queue)
    assert job_document(leased.job_id)["log_max"] == 10_000_000
    set_override("storage", "LOG_MAX", 50_000, who="ada", why="test")
    assert job_document(leased.job_id)["log_max"] == 50_000


@pytest.mark.django_db
def test_a_stream_whose_name_is_no_utf_8_is_shown_and_its_links_lead_to_it(client: Client, failed: tuple[int, Path]) -> None:
    job_id, path = failed
    with tarfile.open(path, "w:gz", format=tarfile.GNU_FORMAT, errors="surrogateescape") as tar:
        entry = tarfile.TarInfo("core\udc80")
        entry.size = 3
        tar.addfile(entry, io.BytesIO(b"out"))
    shown = client.get(f"/jobs/{job_id}/log/")
    assert shown.status_code == 200
    assert client.get(links(shown.content.decode())["as plain text"]).content == b"out"
