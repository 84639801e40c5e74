"""Last step of the demo campaign: merges the masses of all events into one histogram."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path

BINS = 50
WIDTH = 10_000
"""Width of a bin, MeV; the last bin also takes what lies above."""


def histogram(masses: Iterable[int]) -> list[int]:
    """Number of events in each bin."""
    counts = [0] * BINS
    for mass in masses:
        counts[min(mass // WIDTH, BINS - 1)] += 1
    return counts


def main() -> None:
    """Write one JSON object: the histogram, the sum of all masses, and which files of events are in it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--in", dest="inputs", required=True, help="files of masses, separated by commas")
    parser.add_argument("--out", required=True, help="file to write")
    options = parser.parse_args()
    files = [json.loads(line) for name in options.inputs.split(",") for line in Path(name).read_text("ascii").splitlines()]
    files.sort(key=lambda entry: (entry["serial"], entry["seed"]))
    masses = [mass for entry in files for mass in entry["masses"]]
    merged = {
        "bin_width": WIDTH,
        "counts": histogram(masses),
        "events": len(masses),
        "sum_of_masses": sum(masses),
        "files": [{"serial": entry["serial"], "seed": entry["seed"], "events": entry["events"]} for entry in files],
    }
    Path(options.out).write_text(json.dumps(merged, indent=1) + "\n", encoding="ascii")
    books = {"files": {"output": [{"subFiles": [{"name": options.out, "nentries": len(masses)}]}]}}
    Path("jobReport.json").write_text(json.dumps(books), encoding="ascii")
    print(f"{len(masses)} events of {len(files)} files")


if __name__ == "__main__":
    main()
