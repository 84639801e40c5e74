"""First step of the demo campaign: makes collision events from a random seed.

Writes one JSON line that says where the file comes from, then one line an event: its number and the tracks in it, each with
energy, polar and azimuthal angle. The same seed and number of events give the same bytes on any machine.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections.abc import Iterator
from pathlib import Path

MEAN_ENERGY = 40_000
"""Mean energy of a track, MeV."""


def events(seed: int, count: int) -> Iterator[list[list[int]]]:
    """The tracks of each event: [energy in MeV, polar angle, azimuthal angle], angles in units of 1/1000 rad."""
    source = random.Random(seed)
    for _ in range(count):
        tracks = 2 + int(6 * source.random())
        yield [
            [
                1 + int(-MEAN_ENERGY * math.log(1 - source.random())),
                int(1000 * math.acos(1 - 2 * source.random())),
                int(2000 * math.pi * source.random()),
            ]
            for _ in range(tracks)
        ]


def main() -> None:
    """Write the file, and the number of its events for whoever keeps the books."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, required=True, help="random seed of this file")
    parser.add_argument("--serial", type=int, required=True, help="number of this file in the campaign")
    parser.add_argument("--events", type=int, required=True, help="how many events")
    parser.add_argument("--out", required=True, help="file to write")
    options = parser.parse_args()
    with Path(options.out).open("w", encoding="ascii") as file:
        file.write(json.dumps({"seed": options.seed, "serial": options.serial, "events": options.events}) + "\n")
        made = enumerate(events(options.seed, options.events))
        file.writelines(json.dumps({"event": number, "tracks": tracks}) + "\n" for number, tracks in made)
    books = {"files": {"output": [{"subFiles": [{"name": options.out, "nentries": options.events}]}]}}
    Path("jobReport.json").write_text(json.dumps(books), encoding="ascii")
    print(f"{options.events} events from seed {options.seed}")


if __name__ == "__main__":
    main()
