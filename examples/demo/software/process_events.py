"""Second step of the demo campaign: reads files of events and computes the invariant mass of each event.

`--fail-first-at QUEUE` makes the first attempt at files fail when it runs at that queue, so that the demo shows retries.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path


def mass(tracks: Sequence[Sequence[int]]) -> int:
    """Invariant mass of an event in MeV, its tracks taken as massless: [energy in MeV, polar, azimuthal angle in 1/1000 rad]."""
    energy = px = py = pz = 0.0
    for track_energy, polar, azimuth in tracks:
        theta, phi = polar / 1000, azimuth / 1000
        energy += track_energy
        px += track_energy * math.sin(theta) * math.cos(phi)
        py += track_energy * math.sin(theta) * math.sin(phi)
        pz += track_energy * math.cos(theta)
    return int(math.sqrt(max(0.0, energy**2 - px**2 - py**2 - pz**2)))


def main() -> int:
    """Write one JSON line a file read: where it comes from, and the masses of its events."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--in", dest="inputs", required=True, help="files of events, separated by commas")
    parser.add_argument("--out", required=True, help="file to write")
    parser.add_argument("--attempt", type=int, default=1, help="which attempt at these files this is")
    parser.add_argument("--fail-first-at", default="", metavar="QUEUE", help="fail on purpose in first attempts at this queue")
    options = parser.parse_args()
    if options.attempt == 1 and options.fail_first_at and options.fail_first_at == os.environ.get("GRIDBROKER_QUEUE"):
        print(f"failing on purpose: first attempt, at {options.fail_first_at}", file=sys.stderr)
        return 1
    total = 0
    with Path(options.out).open("w", encoding="ascii") as out:
        for name in options.inputs.split(","):
            origin, *lines = Path(name).read_text(encoding="ascii").splitlines()
            masses = [mass(json.loads(line)["tracks"]) for line in lines]
            total += len(masses)
            out.write(json.dumps({**json.loads(origin), "masses": masses}) + "\n")
    books = {"files": {"output": [{"subFiles": [{"name": options.out, "nentries": total}]}]}}
    Path("jobReport.json").write_text(json.dumps(books), encoding="ascii")
    print(f"{total} events of {options.inputs}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
