"""Pilots that are no children of the system: they outlive it, as on other machines."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from broker_site.roof.embedded.instance import ROOT
from tests.chaos.campaign import QUEUES, Campaign


@contextmanager
def outside_pilots(campaign: Campaign) -> Iterator[Callable[[str, Mapping[str, str]], None]]:
    """A function that starts the pilots, given the address of the server and the enrolments; they end with the block."""
    started: list[subprocess.Popen[bytes]] = []

    def start(url: str, enrolments: Mapping[str, str]) -> None:
        for queue, n in QUEUES.items():
            secret = campaign.folder / f"enrolment-{queue}"
            secret.write_text(enrolments[queue] + "\n", encoding="ascii")
            started.extend(_pilot(campaign, url, queue, number, secret) for number in range(n))

    try:
        yield start
    finally:
        for pilot in started:
            pilot.terminate()
        for pilot in started:
            pilot.wait(20)


def _pilot(campaign: Campaign, url: str, queue: str, number: int, secret: Path) -> subprocess.Popen[bytes]:
    work = campaign.folder / "work" / queue / str(number)
    command = [sys.executable, "-m", "brokerage.pilot", "--server", url, "--queue", queue, "--slot", f"{queue}-{number}"]
    folders = ["--enrolment-file", str(secret), "--work", str(work), "--software", str(campaign.software)]
    with (campaign.folder / f"pilot-{queue}-{number}.log").open("ab") as log:
        return subprocess.Popen([*command, *folders], cwd=ROOT, env={"PATH": os.environ["PATH"]}, stderr=log)
