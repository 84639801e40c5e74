"""The process `manage.py mover`: killed again and again while it copies, it loses nothing and never leaves half a file."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import pytest
from django.db import connection

from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.gdpconfig import set_override
from brokerage.models import LocalCopy, Transfer
from tests.arch.source import ROOT
from tests.moving import asked, copy_at, marked_grid, move_all, parts, stored_files, wanted
from workqueues.models import CatalogueFile, Replica

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers]

SIZES = [*[1_000] * 150, *[3_000_000] * 6]
KILLS = 4


@contextmanager
def mover_process(redis_url: str) -> Iterator[subprocess.Popen[bytes]]:
    """A mover on the database of the tests."""
    database = connection.settings_dict
    host = quote(database["HOST"], safe="")
    url = f"postgresql://{database['USER']}:{database['PASSWORD']}@/{database['NAME']}?host={host}&port={database['PORT']}"
    env = os.environ | {"DATABASE_URL": url, "REDIS_URL": redis_url, "GRIDBROKER_PROFILE": "local"}
    env["DJANGO_SETTINGS_MODULE"] = "broker_site.settings"
    process = subprocess.Popen([sys.executable, "manage.py", "mover"], env=env, cwd=ROOT)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        process.wait()


def whole(folder: Path, files: list[CatalogueFile]) -> int:
    """How many files stand at their place; AssertionError where one is not what it ought to be."""
    n = 0
    for file in files:
        with suppress(FileNotFoundError):
            content = copy_at(folder, "BETA", file).read_bytes()
            assert (len(content), f"{zlib.adler32(content):08x}") == (file.fsize, file.checksum)
            n += 1
    return n


def test_a_mover_that_is_killed_at_any_moment_loses_nothing(tmp_path: Path, redis_url: str) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA")
    for name, value in (("MOVER_CLAIM", 0.5), ("LINK_ACTIVE", 200)):
        set_override("transfers", name, value, who="test", why="sooner")
    dice = random.Random(13)
    files = stored_files(tmp_path, [dice.randbytes(size) for size in SIZES], "ALPHA")
    asked(*map(wanted, files))
    for _ in range(KILLS):
        before = Transfer.objects.filter(status="done").count()
        with mover_process(redis_url) as mover:
            _work_until(lambda seen=before: Transfer.objects.filter(status="done").count() > seen)
            time.sleep(dice.random() * 0.1)
            mover.send_signal(signal.SIGKILL)
        whole(tmp_path, files)
        run_agent("transfer", looked=True)
        if not Transfer.objects.filter(ended_at=None).exists():
            break
    time.sleep(0.6)
    move_all()
    assert whole(tmp_path, files) == len(files)
    assert set(Transfer.objects.values_list("status", "attempt")) == {("done", 1)}
    assert Replica.objects.filter(storage="BETA_DISK", state="available").count() == len(files)
    assert not parts(tmp_path) and not LocalCopy.objects.exists()


def test_a_mover_that_is_told_to_end_leaves_its_copies_to_the_next_at_once(tmp_path: Path, redis_url: str) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA")
    (file,) = stored_files(tmp_path, [b"x" * 3_000_000], "ALPHA")
    asked(wanted(file))
    run_agent("transfer", looked=True)
    LocalCopy.objects.update(mb_per_s=0.1)
    with mover_process(redis_url) as mover:
        _work_until(lambda: LocalCopy.objects.filter(status="copying").exists())
        mover.send_signal(signal.SIGTERM)
        assert mover.wait(10) == 0
    assert LocalCopy.objects.get().status == "waiting"
    assert not copy_at(tmp_path, "BETA", file).exists()
    LocalCopy.objects.update(mb_per_s=None)
    move_all()
    assert whole(tmp_path, [file]) == 1 and not parts(tmp_path)


def _work_until(happened: object, seconds: float = 60.0) -> None:
    assert callable(happened)
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "nothing was copied"
        run_agent("transfer", looked=True)
        time.sleep(0.02)
