"""What happens to whole machines loses nothing, does nothing twice, leaves nothing stuck: each a run of `tests.chaos.wrecks`.

Long forms all, for `make soak`: a wreck of `up` takes its start, half a minute on a busy machine, once more.
"""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chaos import small_disk
from tests.chaos.proxy import Proxy

ROOT = Path(__file__).resolve().parents[2]
LONGEST_S = 900.0
SUPERUSER = "only root can mount a disk on which servers of other users write" if os.geteuid() else ""


def wreck(name: str, *arguments: str, before: tuple[str, ...] = ()) -> dict[str, Any]:
    """The result of one run."""
    command = [*before, sys.executable, "-m", "tests.chaos.wrecks", name, *arguments]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LONGEST_S, check=False)
    assert ran.stdout, ran.stderr[-4000:]
    result: dict[str, Any] = json.loads(ran.stdout)
    return result


def line(name: str, result: dict[str, Any]) -> str:
    """A run in one line."""
    counted = ("jobs", "files", "finished", "doubled", "stuck", "lost_heartbeats")
    faults = "; ".join(f"{each['fault']}: {each['progress_s']} s to progress" for each in result["measured"])
    return f"{name}: {', '.join(f'{result[what]} {what}' for what in counted)}, {result['seconds']:.0f} s; {faults}"


def check(result: dict[str, Any], faults: int) -> None:
    """Every fault was done while there was work, and nothing is lost, doubled or stuck."""
    assert len(result["measured"]) == faults
    assert all(each["left"] > 0 for each in result["measured"]), "there was work to go on with after each fault"
    assert result["violations"] == []
    assert (result["finished"], result["doubled"], result["stuck"]) == (result["files"], 0, 0)


@pytest.mark.chaos
@pytest.mark.long
def test_up_is_killed_and_started_again(record_property: Callable[[str, object], None]) -> None:
    result = wreck("killed", "--jobs", "600", "--rounds", "2", "--lease", "60")
    record_property("told", line("up killed", result))
    check(result, 6)
    assert [each["processes"] for each in result["measured"]] == [[]] * 6, "nothing of the killed system runs on"


@pytest.mark.chaos
@pytest.mark.long
@pytest.mark.skipif(bool(SUPERUSER or small_disk.why_not()), reason=SUPERUSER or small_disk.why_not())
def test_disks_are_full_for_a_while(record_property: Callable[[str, object], None]) -> None:
    result = wreck("disk", "--jobs", "1200", before=tuple(small_disk.own_mounts()))
    record_property("told", line("disks full", result))
    check(result, 3)
    told = {each["fault"]: each["told"] for each in result["measured"]}
    assert "the disk of the database is full" in told["home full"]


@pytest.mark.chaos
@pytest.mark.long
def test_the_network_delays_resets_and_falls_silent(record_property: Callable[[str, object], None]) -> None:
    result = wreck("network", "--jobs", "1500")
    record_property("told", line("bad network", result))
    check(result, 9)


@pytest.mark.chaos
@pytest.mark.long
def test_postgresql_stands_still_for_a_while(record_property: Callable[[str, object], None]) -> None:
    result = wreck("frozen", "--jobs", "1200")
    record_property("told", line("frozen", result))
    check(result, 2)
    assert all(each["healthz"] > 0 for each in result["measured"]), "/healthz asks nothing of the database"


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of a server that sends back what it gets."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve(connection: socket.socket) -> None:
            with connection:
                try:
                    while data := connection.recv(1000):
                        connection.sendall(data)
                except OSError:
                    return

        def accept() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield int(server.getsockname()[1])


@pytest.fixture
def proxy(echo: int) -> Iterator[Proxy]:
    made = Proxy(("127.0.0.1", echo), random.Random(1))
    made.start()
    yield made
    made.stop()


def answer(connection: socket.socket, seconds: float = 5.0) -> bytes | str:
    """What comes back for a word; else the error."""
    try:
        connection.settimeout(seconds)
        connection.sendall(b"word")
        return connection.recv(1000)
    except OSError as problem:
        return type(problem).__name__


def test_the_proxy_passes_on_and_does_what_it_is_told_to(proxy: Proxy) -> None:
    """The faults of the network are real: a proxy that does nothing would make the test of them worthless."""
    first = socket.create_connection(("127.0.0.1", proxy.port))
    assert answer(first) == b"word"
    proxy.delay_s = 0.3
    assert answer(first, 0.2) == "TimeoutError"
    first.settimeout(5)
    assert first.recv(1000) == b"word"
    proxy.silence()
    assert answer(first, 0.2) == "TimeoutError"
    late = socket.create_connection(("127.0.0.1", proxy.port))
    assert answer(late, 0.2) == "TimeoutError"
    proxy.heal()
    assert answer(first) in ("ConnectionResetError", "BrokenPipeError", b"")
    again = socket.create_connection(("127.0.0.1", proxy.port))
    assert answer(again) == b"word"
    proxy.reset_part = 1.0
    assert answer(again) == "ConnectionResetError"
    for each in (first, late, again):
        each.close()
