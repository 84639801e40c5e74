"""Checks the campaign of the demo from outside: the histogram against the random seeds, the storage against the register.

Knows nothing of the broker: it takes lists and folders. Every function returns the problems it found, as texts; none means well.
`python -m examples.demo.check --help` does the same from files.
"""

from __future__ import annotations

import argparse
import json
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from examples.demo.software.make_events import events
from examples.demo.software.merge_histogram import BINS, WIDTH
from examples.demo.software.process_events import mass

FIRST_SEED = 1001
"""The offset of the first task plus one: its jobs use this seed and the next ones."""
EVENTS_PER_FILE = 4000
STREAMS = (".pilot.log", ".stdout", ".stderr")
"""How plain files beside a log are called after it."""


@dataclass(frozen=True)
class Registered:
    """A copy of the register: file, size in bytes, adler32 as 8 hex digits, storage endpoint, path below its folder, dataset."""

    lfn: str
    size: int
    checksum: str
    storage: str
    path: str = ""
    dataset: str = ""

    @property
    def place(self) -> str:
        """Where it lies below the folder of its storage endpoint."""
        return self.path or self.lfn


def expected_histogram(seeds: Iterable[int], events_per_file: int = EVENTS_PER_FILE) -> dict[str, Any]:
    """What the seeds imply: counts per bin, number of events and sum of masses (MeV) over all events of all seeds."""
    counts, total, number = [0] * BINS, 0, 0
    for seed in seeds:
        for tracks in events(seed, events_per_file):
            value = mass(tracks)
            counts[min(value // WIDTH, BINS - 1)] += 1
            total += value
            number += 1
    return {"bin_width": WIDTH, "counts": counts, "events": number, "sum_of_masses": total}


def check_histogram(merged: Mapping[str, Any], files: int, events_per_file: int = EVENTS_PER_FILE) -> list[str]:
    """Problems of the merged histogram: a file missing or used twice, other numbers than the seeds imply."""
    problems = []
    for name, first in (("serial", 1), ("seed", FIRST_SEED)):
        found = Counter(entry[name] for entry in merged["files"])
        wanted = set(range(first, first + files))
        problems += [f"{name} {number} is missing" for number in sorted(wanted - set(found))]
        problems += [f"{name} {number} is there {n} times" for number, n in sorted(found.items()) if n > 1]
        problems += [f"{name} {number} was never given" for number in sorted(set(found) - wanted)]
    expected = expected_histogram(range(FIRST_SEED, FIRST_SEED + files), events_per_file)
    problems += [f"{name} is {merged[name]}, expected {value}" for name, value in expected.items() if merged[name] != value]
    return problems


def check_lines(merged: Sequence[Registered], folders: Mapping[str, Path], n: int) -> list[str]:
    """Problems of the files that merge the outputs of `n` jobs, each a line with its number: missing, doubled or unknown."""
    found: Counter[str] = Counter()
    for entry in {entry.lfn: entry for entry in merged}.values():  # of each one copy
        found.update((folders[entry.storage] / entry.place).read_text("ascii").splitlines())
    wanted = {str(number) for number in range(1, n + 1)}
    problems = [f"line {number} of the merged files is missing" for number in sorted(wanted - set(found), key=int)]
    problems += [f"line {number} of the merged files was never written" for number in sorted(set(found) - wanted)]
    return problems + [
        f"line {number} of the merged files is there {times} times" for number, times in found.items() if times > 1
    ]


def check_storage(registered: Sequence[Registered], folders: Mapping[str, Path], prefix: str) -> list[str]:
    """Problems of the files of one run, whose names begin with `prefix`: missing, doubled, wrong or unknown to the register.

    `folders` has the directory of each storage endpoint. The plain files beside a log belong to it; no register has them.
    """
    problems = []
    for lfn, entries in _by_name(registered).items():
        if (n := max(len({entry.dataset for entry in entries}), len(entries) - len({e.storage for e in entries}) + 1)) > 1:
            problems.append(f"{lfn} is registered {n} times")
    known = {(entry.storage, entry.place) for entry in registered}
    for entry in registered:
        problems += _check_one(entry, folders)
    for storage, folder in folders.items():
        for path in sorted(folder.rglob("*")):
            name, place = path.name.removeprefix("."), path.relative_to(folder).as_posix()
            if path.is_file() and name.startswith(prefix) and not {(storage, place), (storage, _log_of(place))} & known:
                problems.append(f"{place} stands on {storage} and is not registered there")
    return problems


def _log_of(place: str) -> str:
    """The log of which a file is a stream by its name; of any other file its own."""
    log = next((place.removesuffix(ending) for ending in STREAMS if place.endswith(ending)), place)
    return log if ".log." in log else place


def _by_name(registered: Sequence[Registered]) -> dict[str, list[Registered]]:
    """The copies of each file; one file may have copies on several storages."""
    files: dict[str, list[Registered]] = {}
    for entry in registered:
        files.setdefault(entry.lfn, []).append(entry)
    return files


def _check_one(entry: Registered, folders: Mapping[str, Path]) -> list[str]:
    folder = folders.get(entry.storage)
    if folder is None:
        return [f"{entry.lfn} is registered on {entry.storage}, which has no folder"]
    try:
        content = (folder / entry.place).read_bytes()
    except FileNotFoundError:
        return [f"{entry.lfn} is missing on {entry.storage}"]
    if len(content) != entry.size:
        return [f"{entry.lfn} on {entry.storage} has {len(content)} bytes, registered are {entry.size}"]
    checksum = f"{zlib.adler32(content):08x}"
    if checksum != entry.checksum.removeprefix("ad:"):
        return [f"{entry.lfn} on {entry.storage} has adler32 {checksum}, registered is {entry.checksum}"]
    return []


def main() -> int:
    """Print every problem; exit code 1 if there is any."""
    parser = argparse.ArgumentParser(description="Check the output of a demo campaign.")
    parser.add_argument("--histogram", type=Path, help="the merged histogram")
    parser.add_argument("--files", type=int, default=20, help="how many files of events are in it (default %(default)s)")
    parser.add_argument("--registered", type=Path, help="JSON list of {lfn, size, checksum, storage, path, dataset}")
    parser.add_argument("--storage", action="append", default=[], metavar="NAME=DIR", help="a storage endpoint and its folder")
    parser.add_argument("--prefix", default="demo.", help="how names of files of this run begin (default %(default)s)")
    options = parser.parse_args()
    problems = []
    if options.histogram:
        problems += check_histogram(json.loads(options.histogram.read_bytes()), options.files)
    if options.registered:
        folders = {name: Path(folder) for name, _, folder in (text.partition("=") for text in options.storage)}
        registered = [Registered(**entry) for entry in json.loads(options.registered.read_bytes())]
        problems += check_storage(registered, folders, options.prefix)
    print("\n".join(problems) or "all is well")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
